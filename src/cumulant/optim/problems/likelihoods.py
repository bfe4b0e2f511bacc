"""Negative log-likelihoods of exponential families, and the cumulant function as an entropy.

``f(theta) = A(theta) - <mean, theta>`` is one-smooth and one-strongly convex *relative to* ``A``: its Bregman
divergence is that of ``A``. So mirror descent with ``psi = A`` and step one lands on the maximum-likelihood estimate
at once, stochastic mirror descent with steps ``1 / (n0 + n)`` is the MAP estimate of a stream, and the distance to
the optimum is a Kullback-Leibler divergence that can be computed exactly (Le Priol 2021, thesis chapter 5).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from cumulant.certificates import Certificate, by_construction, check, recipe_of, rounding, verifier
from cumulant.errors import DomainError
from cumulant.families import ExponentialFamily
from cumulant.geometry.entropy import Entropy, entropy_type
from cumulant.optim.problems.smooth import array, is_concrete, problem_type, widen
from cumulant.optim.protocol import Problem
from cumulant.precision import precise

__all__ = ["CumulantEntropy", "NegativeLogLikelihood", "SampleLikelihood", "certify_likelihood", "likelihood_gap"]


@entropy_type
@dataclass(frozen=True)
class CumulantEntropy(Entropy):
    """The cumulant function ``A`` of a family, used as an entropy: dual coordinates are mean parameters.

    ``D(theta|other) = A(theta) - A(other) - <mu(other), theta - other> = KL(p_other || p_theta)``.

    Banerjee, Merugu, Dhillon and Ghosh (2005); Le Priol (2021, section 5.2).

    >>> from cumulant.families import Poisson
    >>> psi = CumulantEntropy(Poisson())
    >>> psi.conjugate_gradient(psi.gradient([0.5]))
    array([0.5])
    """

    family: ExponentialFamily

    @property
    def closure(self) -> str:
        """The domain in words."""
        return f"a natural parameter ({self.family.domain or 'finite'})"

    @property
    def interior(self) -> str:
        """The same: the domain is open."""
        return self.closure

    @property
    def conjugate_closure(self) -> str:
        """The domain of the conjugate in words."""
        return f"a mean parameter ({self.family.mean_domain or 'finite'})"

    def _value(self, x):
        return jnp.where(self.family.in_domain(x), self.family.log_partition(x), jnp.inf)

    def _gradient(self, x):
        return self.family.to_mean(x)

    def _conjugate(self, u):
        return jnp.where(self.family.in_mean_domain(u), self.family.conjugate(u), jnp.inf)

    def _conjugate_gradient(self, u):
        return self.family.to_natural(u)

    def _hessian_apply(self, x, v):
        return jnp.einsum("...ij,...j->...i", self.family.fisher(x), v)

    def _inverse_hessian_apply(self, x, v):
        return jnp.linalg.solve(self.family.fisher(x), v[..., None])[..., 0]

    def _divergence(self, x, y):
        return jnp.where(self.family.in_domain(x), self.family.bregman(x, y), jnp.inf)

    def _in_domain(self, x):
        return self.family.in_domain(x)

    def _in_conjugate_domain(self, u):
        return self.family.in_mean_domain(u)

    _in_closure = _in_interior = _in_domain
    _in_conjugate_closure = _in_conjugate_domain


class _Likelihood(Problem):
    """What the two likelihoods share: all of it follows from the family and the mean statistic."""

    family: Any

    quadratic: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    constants_are: ClassVar[str] = "by construction"
    smoothness: ClassVar[None] = None
    strong_convexity: ClassVar[float] = 0.0
    relative_smoothness: ClassVar[float] = 1.0
    relative_strong_convexity: ClassVar[float] = 1.0

    @property
    def target(self) -> Any:
        """The mean statistic."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``theta``."""
        return (self.family.dim,)

    @property
    def reference(self) -> CumulantEntropy:
        """The entropy relative to which the constants are one."""
        return CumulantEntropy(self.family)

    @precise
    def value(self, x):
        """``A(theta) - <mean, theta>``; infinite outside the domain."""
        inside = self.family.in_domain(x)
        return jnp.where(inside, self.family.log_partition(x) - jnp.vdot(self.target, x), jnp.inf)

    @precise
    def gradient(self, x):
        """``grad A(theta) - mean``."""
        return self.family.to_mean(x) - self.target

    @precise
    def value_and_gradient(self, x):
        """``f(theta)`` and its gradient."""
        inside = self.family.in_domain(x)
        value = jnp.where(inside, self.family.log_partition(x) - jnp.vdot(self.target, x), jnp.inf)
        return value, self.family.to_mean(x) - self.target

    @precise
    def hessian_apply(self, x, v):
        """The Fisher information applied to ``v``."""
        return self.family.fisher(x) @ v


def _mean(value: Any, family: ExponentialFamily, name: str, ndim: int) -> Any:
    value = array(value, name, ndim)
    if value.shape[-1] != family.dim:
        raise ValueError(
            f"{name} must have {family.dim} entries on its last axis for {family}; got shape {value.shape}"
        )
    return value


@problem_type
class NegativeLogLikelihood(_Likelihood):
    """``f(theta) = A(theta) - <mean, theta>``: minus the average log-likelihood, up to the base measure.

    ``f(theta) - f* = KL(p* || p_theta)``. A finite minimiser exists when `mean` is in the interior of the mean domain.

    Le Priol (2021, section 5.2, equation 5.12).

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.families import Exponential
    >>> problem = NegativeLogLikelihood(Exponential(), [2.0])
    >>> result = optim.run(optim.MirrorDescent(problem.reference), problem, [-3.0])
    >>> result.x, result.work
    (array([-0.5]), 1)
    """

    family: Any
    mean: Any

    def __post_init__(self):
        if is_concrete(self.mean) and isinstance(self.family, ExponentialFamily):
            object.__setattr__(self, "mean", _mean(self.mean, self.family, "mean", 1))

    @property
    def target(self) -> Any:
        """The mean statistic."""
        return self.mean


@problem_type
class SampleLikelihood(_Likelihood):
    """The negative log-likelihood of a sample, kept row by row for stochastic methods.

    ``f(theta) = (1/n) sum_i [A(theta) - <T(x_i), theta>]``.

    The objective of stochastic mirror descent in Le Priol (2021, section 5.3).

    Parameters
    ----------
    family : ExponentialFamily
    statistics : array (n, dim)
        ``T(x_i)``, one row an observation; ``SampleLikelihood.of(family, x)`` computes them.

    Examples
    --------
    >>> from cumulant.families import Poisson
    >>> problem = SampleLikelihood.of(Poisson(), [1, 2, 6])
    >>> problem.n_terms, problem.gradient([np.log(3.0)]).round(12)
    (3, array([0.]))
    """

    family: Any
    statistics: Any

    def __post_init__(self):
        if is_concrete(self.statistics) and isinstance(self.family, ExponentialFamily):
            rows = _mean(self.statistics, self.family, "statistics", 2)
            if not len(rows):
                raise ValueError("statistics must have at least one row: there are no observations")
            object.__setattr__(self, "statistics", rows)

    @classmethod
    def of(cls, family: ExponentialFamily, x: Any) -> "SampleLikelihood":
        """The likelihood of observations `x`, on the first axis.

        >>> from cumulant.families import Normal
        >>> SampleLikelihood.of(Normal(), [1.0, 3.0]).target
        array([2., 5.])
        """
        return cls(family, family.statistics(x))

    @property
    def n_terms(self) -> int:
        """The number of observations."""
        return self.statistics.shape[0]

    @property
    def target(self) -> Any:
        """The mean statistic of the sample."""
        return self.statistics.mean(axis=0)


@verifier
def likelihood_gap(problem: Any, x: Any) -> float:
    """``f(theta) - f* = KL(p* || p_theta)``, in float64 from the mean statistic."""
    problem, x = widen(problem), np.asarray(x, dtype=np.float64)
    return float(problem.family.kl(problem.family.to_natural(problem.target), x))


def certify_likelihood(problem: Any, x: Any) -> Certificate:
    """The exact distance to the maximum likelihood, ``f(theta) - f* = KL(p* || p_theta)`` (Le Priol 2021, (5.12)).

    Refused where the sample has no finite maximum-likelihood estimate, or where ``theta`` is not in the domain.
    """
    problem, x = widen(problem), np.asarray(x, dtype=np.float64)
    family, mean = problem.family, np.asarray(problem.target)
    exists = check(
        np.all(family.in_mean_domain(mean)),
        "a finite maximum-likelihood estimate exists",
        f"the mean statistic {np.array2string(mean, threshold=6, precision=6)} is inside the mean domain",
    )
    inside = check(np.all(family.in_domain(x)), "theta is a natural parameter of the family")
    try:
        best = family.to_natural(mean)
        bound = float(family.kl(best, x))
    except DomainError as problem_:
        check(False, "the maximum-likelihood estimate is representable", str(problem_))
        raise
    terms = (family.log_partition(x), family.log_partition(best), mean * (x - best))
    return Certificate(
        "f(x) - f*",
        bound,
        "the gap of a likelihood is KL(p* || p_theta), Le Priol 2021 (5.12)",
        (exists, inside, by_construction("the objective is the likelihood of an exponential family")),
        slack=rounding(*terms, terms=8 + family.dim),
        recipe=recipe_of(likelihood_gap),
    )
