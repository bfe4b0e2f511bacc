"""Learning a family of which only the statistic and a sampler are known."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cumulant import checks
from cumulant.certificates import Assumption, assume, check
from cumulant.errors import CertificateError
from cumulant.families.finite import SampledFamily
from cumulant.graphical.learning.problem import RegularisedLikelihood
from cumulant.graphical.mixing.certificates import Mixing


@dataclass(frozen=True)
class SampledModel:
    """A `SampledFamily` bound to a parameter: one can draw from it."""

    family: SampledFamily
    theta: np.ndarray

    def sample(self, n: int = 1, *, rng: Any = None) -> Any:
        """`n` draws by the sampler of the family."""
        return self.family.sampler(self.theta, n, np.random.default_rng(rng))


@dataclass(frozen=True)
class _Draws:
    """Independent draws in the place of chains."""

    problem: "SampledFamilyProblem"

    def uniform(self, draw: np.random.Generator, chains: int) -> np.ndarray:
        return np.zeros((chains, 0))

    def run(self, x: np.ndarray, theta: np.ndarray, updates: int, seed: int, n_jobs: int | None) -> np.ndarray:
        family = self.problem.family
        mean = family.mean_estimate(theta, len(x), np.random.default_rng(seed))
        apart = float(np.linalg.norm(mean - self.problem.mean))
        check(apart <= 2.0 * family.radius, "|T(x) - c| <= radius", f"means are {apart:.6g} apart")
        return mean


@dataclass(frozen=True)
class SampledFamilyProblem(RegularisedLikelihood):
    """Minimise ``A(theta) - <theta, mean> + l2/2 |theta|^2`` where ``A`` is unknown and ``grad A = E T`` is sampled.

    The value of the objective is counted from ``A(0)``, which is unknown.
    """

    family: SampledFamily
    mean: np.ndarray
    l2: float

    convex: ClassVar[bool] = True
    data: ClassVar[None] = None

    @property
    def shape(self) -> tuple[int]:
        """Of ``theta``."""
        return (self.family.dim,)

    @property
    def R(self) -> float:
        """The radius of the statistics, as given."""
        return float(self.family.radius)

    @property
    def least_smoothness(self) -> float:
        """No Lipschitz constant of the gradient is below this."""
        return self.l2

    @property
    def bias(self) -> float:
        """How far the mean of draws is from ``E T``, at most: ``2 R total_variation``."""
        return 2.0 * self.R * float(self.family.total_variation)

    @cached_property
    def chains(self) -> _Draws:
        """What gives sampled gradients."""
        return _Draws(self)

    def full(self, theta: np.ndarray) -> np.ndarray:
        """All parameters are learnt."""
        return theta

    def bind(self, theta: np.ndarray) -> SampledModel:
        """The model with this parameter."""
        return SampledModel(self.family, theta)

    def project(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """By the projector of the family; without one there is no set to stay in."""
        if self.family.project is None:
            return theta, 0.0
        point = np.asarray(self.family.project(theta), dtype=np.float64)
        if point.shape != theta.shape or not np.isfinite(point).all():
            raise ValueError(f"project must give a finite parameter of shape {theta.shape}; got shape {point.shape}")
        return point, 0.0

    def at_start(self) -> tuple[float, np.ndarray]:
        """Nothing is known at the start; the first sampled gradient takes its place."""
        return 0.0, np.zeros(self.shape)

    def distance_from_start(self) -> float:
        """``|theta_0 - theta*| <= |grad f(theta_0)| / l2 <= 2 R / l2 + |theta_0|``, as both means are within ``R`` of
        the centre; or the reach of the set.
        """
        start = float(np.linalg.norm(self.project(np.zeros(self.shape))[0]))
        return min(2.0 * self.R / self.l2 + start if self.l2 > 0 else np.inf, self.family.reach)

    def sampling(self, path: np.ndarray) -> tuple[Mixing | None, tuple[Assumption, ...]]:
        """What sampled gradients rest on: the user's word, all of it."""
        far = f"total variation at most {self.family.total_variation:g}"
        grounds = (
            assume("draws of the sampler are independent and near to the model", far),
            assume("|T(x) - c| <= radius for every x", f"radius = {self.R:g}"),
        )
        if self.family.project is None:
            return None, grounds
        still = max((float(np.linalg.norm(self.project(theta)[0] - theta)) for theta in path), default=0.0)
        size = float(np.linalg.norm(path, axis=1).max(initial=0.0))
        fixed = check(still <= 1e-9 * (1.0 + size), "project leaves every iterate where it is", f"within {still:.2g}")
        reach = f"no member is farther than {self.family.reach:g} from the start"
        return None, (*grounds, assume("project is the Euclidean projection onto a convex set", reach), fixed)


def sampled_family_problem(data: Any, family: SampledFamily, l2: float) -> SampledFamilyProblem:
    """From observations, or from their mean statistic; observations that contradict the radius are refused."""
    checks.not_negative("l2", l2)
    x = np.asarray(data)
    if x.ndim == 1 and x.shape == (family.dim,) and x.dtype.kind in "iuf":
        mean = x.astype(np.float64)
    else:
        statistics = np.asarray(family.statistics(data), dtype=np.float64)
        if statistics.ndim != 2 or statistics.shape[1] != family.dim or not len(statistics):
            raise ValueError(f"statistics must give shape (observations, {family.dim}); got {statistics.shape}")
        mean = statistics.mean(axis=0)
        widest = float(np.linalg.norm(statistics - statistics[0], axis=1).max())
        if widest > 2.0 * family.radius:
            raise CertificateError(
                f"radius = {family.radius:g} is too small: statistics of the data are {widest:.6g} apart",
                "|T(x) - c| <= radius",
            )
    if not np.isfinite(mean).all():
        raise ValueError("the mean statistic of the data must be finite")
    return SampledFamilyProblem(family, mean, float(l2))
