"""Learning a discrete model: the data as mean statistics, the regularised likelihood, and the set to stay in."""

import copy
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cumulant.certificates import Assumption, Certificate, Subject, by_construction, check, issuer, rounding
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.learning.chains import SpinChains, SubgraphChains, TableChains
from cumulant.graphical.learning.planner import SamplingPlan, lipschitz
from cumulant.graphical.learning.statistics_ball import (
    largest_variance_at_zero,
    spectral_gap_smoothness,
    statistics_ball,
)
from cumulant.graphical.mixing.certificates import Mixing, NotFastMixing
from cumulant.graphical.mixing.fast_mixing import CouplingSet, FastMixing, TableSet, fast_set
from cumulant.graphical.mixing.ferromagnetic import Ferromagnetic, FerromagneticSet
from cumulant.graphical.mixing.projected_gradient import proximal_bound
from cumulant.graphical.pairwise import Ising
from cumulant.optim.driver.trace import Trace
from cumulant.optim.protocol import Problem

_UNIT = 2.0**-53


@dataclass(frozen=True)
class SampledRun:
    """What, beside the problem and the plan, a run by sampling was: enough to do it again.

    Attributes
    ----------
    seed : int
        Of every draw.
    delta : float
        The probability of missing what is certified.
    smoothness : float or None
        ``L``, of which steps were the inverse; None: `RegularisedLikelihood.smoothness`.
    errors : array (iterations + 1,)
        How far each projection can have been from the true one.
    starts : str
        Where chains began: ``"uniform"`` or ``"data"``.
    """

    seed: int
    delta: float
    smoothness: float | None
    errors: np.ndarray = field(repr=False)
    starts: str = "uniform"


@dataclass(frozen=True)
class Fit:
    """A model that was learnt, and what is known about it.

    Attributes
    ----------
    model : DiscreteModel
    certificate : Certificate or None
        What is guaranteed, and about which objective; None where nothing can be: then `refusal` says why.
    method : str
    refusal : str
    status : str
        How the run ended, as in `optim.run`: ``"converged"`` where the accuracy asked for is certified.
    plan : SamplingPlan or None
        Iterations, chains and updates, of methods that sample.
    path : array (iterations + 1, parameters) or None
        The iterates of methods that sample, from the start.
    run : SampledRun or None
        Of ``"mcmc"``: the seed and settings by which `replay` does it again.
    value : float
        The objective where it was computed, else NaN: sampling does not compute the likelihood.
    seconds : float
    trace : Trace or None
        The record of the run. Of methods that sample, its values are estimates.
    problem : LearningProblem or None
        What was minimised.
    """

    model: Any
    certificate: Certificate | None
    method: str
    refusal: str = ""
    status: str = "converged"
    plan: SamplingPlan | None = None
    path: np.ndarray | None = None
    run: SampledRun | None = None
    value: float = math.nan
    seconds: float = 0.0
    trace: Trace | None = field(default=None, repr=False)
    problem: Any = field(default=None, repr=False)

    @property
    def subject(self) -> Subject:
        """What the certificate speaks of: ``fit.certificate.verify(fit.subject)`` issues it again from the data."""
        return Subject(self.problem, self)

    def __str__(self):
        lines = [f"{self.method}: {self.model}, {self.status}, {self.seconds:.2g} s"]
        if self.plan is not None:
            p = self.plan
            lines.append(
                f"  {p.iterations} iterations of {p.chains} chains of {p.updates} updates: {p.work:.3g} updates in all"
            )
        if not math.isnan(self.value):
            lines.append(f"  objective {self.value:.10g}")
        lines.append("  " + (self.refusal if self.certificate is None else str(self.certificate)).replace("\n", "\n  "))
        return "\n".join(lines)


class RegularisedLikelihood(Problem):
    """What learning problems know of their constants: statistics within ``R`` of a centre, and ``l2``."""

    R: Any
    l2: Any

    @property
    def smoothness(self) -> Any:
        """``R^2 + l2``, as the covariance of the statistics is at most ``R^2``."""
        return lipschitz(self.R, self.l2)

    @property
    def smoothness_in_set(self) -> Any:
        """A constant that serves where iterates are projected to."""
        return self.smoothness

    @property
    def strong_convexity(self) -> float:
        """``l2``."""
        return self.l2


@dataclass(frozen=True)
class LearningProblem(RegularisedLikelihood):
    """Minimise ``f(theta) = A(theta) - <theta, mean> + l2/2 |theta|^2`` over ``theta`` in a set.

    `model` gives the family; `free` are the parameters that are learnt (not those of single variables, where there are
    no fields), the others are zero. ``|T(x) - c| <= R`` for those that are free, and some ``c``.
    """

    model: DiscreteModel
    mean: np.ndarray
    l2: float
    free: np.ndarray
    mixing: FastMixing | Ferromagnetic | None
    data: np.ndarray | None = None

    convex: ClassVar[bool] = True
    constants_are: ClassVar[str] = "checked"
    bias: ClassVar[float] = 0.0

    @property
    def objective(self) -> str:
        """What the objective is called in certificates."""
        return "f"

    @property
    def n(self) -> int:
        """How many variables there are."""
        return self.model.n_variables

    @property
    def edges(self) -> np.ndarray:
        """Of an Ising model."""
        assert isinstance(self.model, Ising)
        return self.model.edges

    @property
    def shape(self) -> tuple[int]:
        """Of ``theta``, the free parameters."""
        return (self.free.size,)

    @cached_property
    def R(self) -> float:
        """The radius of a ball that holds the statistics of every state: see `statistics_ball`."""
        return statistics_ball(self.model.family, self.free)[1]

    @cached_property
    def smoothness_in_set(self) -> float:
        """`smoothness`, or what the spectral gap of Gibbs sampling proves in a set in which it mixes fast, if that is
        less: see `spectral_gap_smoothness`.
        """
        if not isinstance(self.fast_set, CouplingSet | TableSet):
            return self.smoothness
        try:
            mixing = self.fast_set.mixing(self.fast_set.within.radius * (1.0 + 2e-9))  # iterates may be off by 1e-9
        except NotFastMixing:
            return self.smoothness
        return min(self.smoothness, self.l2 + spectral_gap_smoothness(self.model.family, self.free, mixing.log_rate))

    @property
    def least_smoothness(self) -> float:
        """No Lipschitz constant of the gradient is below this: what the Hessian at zero shows."""
        return largest_variance_at_zero(self.model.family, self.free) + self.l2

    @cached_property
    def fast_set(self) -> CouplingSet | TableSet | FerromagneticSet | None:
        """The set to stay in, where there is one."""
        return None if self.mixing is None else fast_set(self.model, self.free, self.mixing)

    @cached_property
    def chains(self) -> SpinChains | TableChains | SubgraphChains:
        """What gives sampled gradients."""
        model = self.model
        if isinstance(self.mixing, Ferromagnetic):
            assert isinstance(model, Ising)
            return SubgraphChains(model)
        return SpinChains(model, self.free) if isinstance(model, Ising) else TableChains(model, self.free)

    def full(self, theta: np.ndarray) -> np.ndarray:
        """All parameters from the free ones."""
        out = np.zeros(self.model.family.dim)
        out[self.free] = theta
        return out

    def bind(self, theta: np.ndarray) -> DiscreteModel:
        """The model with these free parameters."""
        new = copy.copy(self.model)
        new._bind(self.model.family, self.full(theta))
        return new

    def unbind(self, model: DiscreteModel) -> np.ndarray:
        """The free parameters of a model."""
        return np.asarray(model.theta)[self.free]

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """``f`` and its gradient, exact."""
        value, mean = self.model.family.value_and_mean(self.full(theta))
        gap = mean[self.free] - self.mean + self.l2 * theta
        return float(value - self.mean @ theta + 0.5 * self.l2 * theta @ theta), gap

    def value(self, theta: np.ndarray) -> float:
        """``f``."""
        return self.value_and_gradient(theta)[0]

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Of ``f``, exact."""
        return self.value_and_gradient(theta)[1]

    def gradient_rounding(self, theta: np.ndarray) -> float:
        """How far rounding can take the computed gradient from the true one, in the Euclidean norm.

        Elimination adds, for each belief, logarithms that are at most the sum of the largest entries of all tables,
        once for each factor and variable; an error of a logarithm is a relative error of a belief.
        """
        structure, tables = self.model.structure, self.model.family.log_tables(self.full(theta))
        sizes = np.maximum.reduceat(np.abs(tables), structure.table_starts[:-1]) if tables.size else np.zeros(1)
        terms = structure.n_factors + structure.n_variables + 16
        logarithms = float(sizes.sum() + np.log(structure.cardinalities).sum())
        design = self.model.family.design
        largest = 1.0 if design is None or not design.nnz else float(abs(design).sum(axis=0).max())
        each = 4.0 * _UNIT * terms * (1.0 + logarithms) * largest
        return math.sqrt(self.free.size) * each + 4.0 * _UNIT * float(
            np.linalg.norm(self.mean) + self.l2 * np.linalg.norm(theta)
        )

    def project(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """A point of the set, and how far from the true projection it can be: ``1/2 |point - theta|^2`` is at most half
        the square of that above the smallest.
        """
        return (theta, 0.0) if self.fast_set is None else self.fast_set.project(theta)

    def at_start(self) -> tuple[float, np.ndarray]:
        """The objective and its gradient where runs start: at zero, where every state has the same probability, or at
        the smallest member of a set of ferromagnets, where spins are independent.
        """
        if isinstance(self.fast_set, FerromagneticSet):
            start, n = self.fast_set.least, self.n
            tanh = np.tanh(start[:n])
            mean = np.concatenate([tanh, tanh[self.edges[:, 0]] * tanh[self.edges[:, 1]]])
            value = float(np.logaddexp(start[:n], -start[:n]).sum() - self.mean @ start)
            return value + 0.5 * self.l2 * float(start @ start), mean - self.mean + self.l2 * start
        sizes = np.diff(self.model.structure.table_starts)
        uniform = np.repeat(1.0 / sizes, sizes)
        value = float(np.log(self.model.structure.cardinalities).sum())
        return value, self.model.family.mean_of(uniform)[self.free] - self.mean

    def sampling(self, path: np.ndarray) -> tuple[Mixing | None, tuple[Assumption, ...]]:
        """How fast chains mix at every iterate, and what that rests on; `CertificateError` where one left the set."""
        if self.fast_set is None or self.mixing is None:
            raise ValueError(
                "method='mcmc' needs mixing=FastMixing(...): the set in which Gibbs sampling is certain to mix"
            )
        if isinstance(self.fast_set, FerromagneticSet) or isinstance(self.mixing, Ferromagnetic):
            assert isinstance(self.fast_set, FerromagneticSet)
            return self.fast_set.sampling(path)
        largest, radius = max((self.fast_set.size(theta) for theta in path), default=0.0), self.mixing.radius
        inside = check(largest <= radius * (1.0 + 1e-9), "every iterate lies in the set", f"largest norm {largest:.9g}")
        mixing = self.fast_set.mixing(largest)
        return mixing, (
            check((mixing.kappa or 0.0) < 1, "the set mixes fast", f"kappa = {mixing.kappa:.6g}"),
            inside,
            by_construction("fresh independent chains in every iteration, one uniformly chosen site a step"),
        )

    def distance_from_start(self) -> float:
        """A bound on ``|theta_0 - theta*|``, ``theta_0`` the start: ``|grad f(theta_0)| / l2`` by strong convexity, or
        the reach of the set; infinite where neither is known. Of tables, ``theta*`` is the optimum each of whose tables
        adds up to zero: there is one, as constants change no probability, and all steps from zero stay among such
        tables.
        """
        known = [math.inf]
        if self.l2 > 0:
            known.append(float(np.linalg.norm(self.at_start()[1])) / self.l2)
        if self.fast_set is not None:
            known.append(self.fast_set.reach())
        return min(known)

    def certify(self, theta: np.ndarray) -> Certificate:
        """See `certify_gap`."""
        return certify_gap(self, theta)


@issuer
def certify_gap(problem: LearningProblem, answer: Any) -> Certificate:
    """``f(theta) - min f`` over the set, from the gradient at ``theta`` and strong convexity.

    The bound is that of `proximal_bound`, without a set ``|g|^2 / (2 l2)``. The slack is the rounding of the gradient
    and of the sums. `answer` is a `Fit`, or the free parameters.
    """
    theta = problem.unbind(answer.model) if isinstance(answer, Fit) else np.asarray(answer)
    l2 = problem.l2
    convex = check(l2 > 0, "the objective is strongly convex", f"l2 = {l2:g}")
    value, g = problem.value_and_gradient(theta)
    target, z, bound = proximal_bound(problem, theta, g)
    move, outside = theta - z, l2 * float(np.linalg.norm(target - z))
    doubt = problem.gradient_rounding(theta)
    slack = doubt * float(np.linalg.norm(move)) + doubt**2 / (2.0 * l2)
    slack += rounding(g * move, l2 * move**2, outside * target, terms=theta.size + 8.0)
    assumptions = [convex, by_construction("gradients are exact but for rounding")]
    if isinstance(problem.fast_set, FerromagneticSet):
        assumptions.append(problem.fast_set.check_inside(theta[None]))
    elif problem.fast_set is not None and isinstance(problem.mixing, FastMixing):
        size, radius = problem.fast_set.size(theta), problem.mixing.radius
        inside = check(size <= radius * (1.0 + 1e-9), "theta lies in the set", f"norm {size:.9g}, radius {radius:g}")
        assumptions.append(inside)
    return Certificate(
        f"{problem.objective}(theta) - min",
        bound,
        "strong convexity at the projected gradient step of length 1 / l2 (Polyak 1963)",
        tuple(assumptions),
        slack=slack,
        details={"value": value},
    )
