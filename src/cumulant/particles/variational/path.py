"""A path of parameters that is given: annealing inside a two-block family."""

import dataclasses
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.certificates import Assumption
from cumulant.particles.bridges import Population, Start, Step, on_the_word_of
from cumulant.particles.variational.family import TwoBlockFamily

WEIGHTS = ("rb", "naive")


@dataclasses.dataclass(frozen=True, eq=False)
class ParameterPath:
    """A bridge through ``p(x; theta_0), ..., p(x; theta_K)`` for parameters that no particle has a say in.

    Weights are ``f_A(x_A; theta_k) / f_A(x_A; theta_(k-1))`` (`weights` ``"rb"``) or ``exp <t(x), theta_k -
    theta_(k-1)>`` (``"naive"``, as in annealed importance sampling); the move is that of the family, by default one
    sweep over both blocks. The path begins at the start of the family and ends at its target, so that ``E exp(log_z) =
    Z`` of the target and the result has a certificate.

    Parameters
    ----------
    family : TwoBlockFamily
    path : array (K + 1, dim)
    weights : str
    designed_by : whole numbers
        Seeds of the islands that chose the path, if any did. Particles from the same random numbers are not
        independent of it, and a run with one of these seeds is refused.

    Examples
    --------
    >>> from cumulant import particles
    >>> from cumulant.graphical import Ising, torus
    >>> family = particles.IsingFamily(Ising(torus(4, 4), 0.5))
    >>> result = particles.run(ParameterPath.tempered(family, 50), 500, rng=0)
    >>> bool(abs(result.log_partition() - 17.105367) < 4 * result.log_partition_error)
    True
    """

    family: TwoBlockFamily
    path: np.ndarray
    weights: str = "rb"
    designed_by: tuple[int, ...] = ()
    fixed: bool = dataclasses.field(default=True, init=False)

    def __post_init__(self):
        checks.choice("weights", self.weights, WEIGHTS)
        path = checks.real_array("path", self.path, ndim=2)
        if len(path) < 2 or path.shape[1] != self.family.dim:
            raise ValueError(f"path must have at least 2 rows of {self.family.dim} parameters; got shape {path.shape}")
        if not (np.array_equal(path[0], self.family.start) and np.array_equal(path[-1], self.family.target)):
            raise ValueError("path must begin at the start of the family and end at its target")
        object.__setattr__(self, "path", path)

    @classmethod
    def tempered(cls, family: TwoBlockFamily, n_steps: int, weights: str = "rb") -> "ParameterPath":
        """``theta_k = start + (k / K) (target - start)``: annealed importance sampling with resampling."""
        checks.instance("family", family, TwoBlockFamily, "a TwoBlockFamily")
        checks.whole("n_steps", n_steps)
        return cls(family, straight(family.start, family.target, n_steps), weights)

    @property
    def exact(self) -> bool:
        """Whether all states have the same weights."""
        return self.family.exact

    @property
    def magnitude(self) -> float:
        """Of the terms of the family."""
        return self.family.magnitude

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What a certificate rests on besides the engine."""
        return family_assumptions(self.family)

    def begin(self, n: int, seed: int) -> Start:
        """Exact draws of the start."""
        rng = np.random.default_rng([seed, 0, 0])
        return Start(self.family.begin(n, rng), self.family.log_partition_at_start)

    def advance(self, population: Population) -> Step:
        """The next parameter."""
        k = population.step
        x, last = population.x, k == len(self.path) - 1
        if self.weights == "rb":
            increments = weigh(self.family, x[0], self.path[k - 1], self.path[k])
        else:
            increments = self.family.statistics(*x) @ (self.path[k] - self.path[k - 1])
        if last and self.weights == "rb":
            x = redraw(self.family, x, self.path[k], population)
        return Step(x, increments, last)

    def move(self, population: Population) -> Any:
        """The move of the family."""
        return self.family.move(population.x, self.path[population.step], population.generator())

    def kinds(self, population: Population) -> dict[str, float]:
        """None besides the product of mean weights."""
        return {}

    def draws(self, x: Any) -> np.ndarray:
        """Those of the family."""
        return self.family.draws(*x)


def straight(start: np.ndarray, end: np.ndarray, n_steps: int) -> np.ndarray:
    """`n_steps` equal steps from one parameter to another, ``(n_steps + 1, dim)``; both ends exactly."""
    path = start + np.linspace(0.0, 1.0, n_steps + 1)[:, None] * (end - start)
    path[-1] = end
    return path


def weigh(family: TwoBlockFamily, x_A: Any, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """``log f_A(x_A; new) - log f_A(x_A; old)``."""
    return family.block_values(x_A, new) - family.block_values(x_A, old)


def redraw(family: TwoBlockFamily, x: Any, theta: np.ndarray, population: Population) -> Any:
    """``x_B`` given ``x_A``: Rao-Blackwellised weights speak of ``x_A`` alone, and no move follows the last step."""
    return x[0], family.sample_B(x[0], theta, population.generator(1))


def family_assumptions(family: TwoBlockFamily) -> tuple[Assumption, ...]:
    """Families of this package are tested against enumeration; of others it is the author's word."""
    name = type(family).__name__
    return on_the_word_of(family, f"the samplers, statistics and block marginals of {name} are those of one family")
