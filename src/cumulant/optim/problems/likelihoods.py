"""Negative log-likelihoods of exponential families, and the cumulant function as an entropy.

``f(theta) = A(theta) - <mean, theta>`` is one-smooth and one-strongly convex *relative to* ``A``: its Bregman
divergence is that of ``A``. So mirror descent with ``psi = A`` and step one lands on the maximum-likelihood estimate
at once, stochastic mirror descent with steps ``1 / (n0 + n)`` is the MAP estimate of a stream, and the distance to
the optimum is a Kullback-Leibler divergence that can be computed exactly (Le Priol 2021, thesis chapter 5).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from cumulant.certificates import Certificate, by_construction, check, issuer, rounding
from cumulant.errors import CertificateError, DomainError
from cumulant.families import BoundedFamily, ExponentialFamily, Family
from cumulant.geometry.entropy import Entropy, entropy_type
from cumulant.optim.certify.self_concordance import decrement_bound
from cumulant.optim.problems.base import array, is_concrete, not_negative, problem_type, widen
from cumulant.optim.protocol import Problem
from cumulant.precision import any_jax, precise


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

    family: Any

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
    l2: Any = 0.0

    convex: ClassVar[bool] = True
    constants_are: ClassVar[str] = "by construction"
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
    def smoothness(self) -> float | None:
        """``R^2 + l2`` where statistics lie in a ball of radius ``R`` (``hess A`` is their covariance), else None."""
        family = self.family
        return family.statistics_radius() ** 2 + float(self.l2) if isinstance(family, BoundedFamily) else None

    @property
    def strong_convexity(self) -> float:
        """``l2``: ``A`` alone is strictly but not strongly convex."""
        return float(self.l2)

    @property
    def relative_smoothness(self) -> float | None:
        """One, relative to ``A``; unknown with a penalty."""
        return 1.0 if float(self.l2) == 0 else None

    @property
    def reference(self) -> CumulantEntropy:
        """The entropy relative to which the constants are one."""
        return CumulantEntropy(self.family)

    def value(self, x):
        """``A(theta) - <mean, theta> + l2/2 |theta|^2``; infinite outside the domain."""
        return self.value_and_gradient(x)[0]

    def gradient(self, x):
        """``grad A(theta) - mean + l2 theta``."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x):
        """``f(theta)`` and its gradient."""
        if isinstance(self.family, ExponentialFamily) or any_jax(self.target, x):
            return _value_and_gradient(self, x)
        return _formula(self, np.asarray(x, dtype=np.float64), np)

    @precise
    def hessian_apply(self, x, v):
        """The Fisher information, plus ``l2``, applied to ``v``."""
        return self.family.fisher(x) @ v + self.l2 * v

    def gradient_rounding(self, x) -> float:
        """A bound on the rounding error of `gradient` in float64, in Euclidean norm."""
        family, x = self.family, np.asarray(x, dtype=np.float64)
        size = float(np.linalg.norm(np.abs(family.to_mean(x)) + np.abs(self.target) + float(self.l2) * np.abs(x)))
        if isinstance(family, BoundedFamily):
            return family.mean_rounding(x) * (size + 2 * family.statistics_radius())
        return rounding(size, terms=64.0 + family.dim)

    def certify(self, x) -> Certificate:
        """How far ``f(theta)`` is from the minimum: see `certify_likelihood`."""
        return certify_likelihood(self, x)


def _formula(problem: _Likelihood, x: Any, xp: Any) -> tuple[Any, Any]:
    value, mean = problem.family.value_and_mean(x)
    value = value - (problem.target * x).sum() + problem.l2 / 2 * (x * x).sum()
    inside = problem.family.in_domain(x)
    return xp.where(inside, value, xp.inf)[()], mean - problem.target + problem.l2 * x


@precise
def _value_and_gradient(problem, x):
    return _formula(problem, x, jnp)


def _mean(value: Any, family: Family, name: str, ndim: int) -> Any:
    value = array(value, name, ndim)
    if value.shape[-1] != family.dim:
        raise ValueError(
            f"{name} must have {family.dim} entries on its last axis for {family}; got shape {value.shape}"
        )
    return value


@problem_type
class NegativeLogLikelihood(_Likelihood):
    """``f(theta) = A(theta) - <mean, theta> + l2/2 |theta|^2``: minus the average log-likelihood, without ``h``.

    Without a penalty ``f(theta) - f* = KL(p* || p_theta)``, and a finite minimiser exists when `mean` is in the
    interior of the mean domain. Le Priol (2021, section 5.2, equation 5.12).

    Parameters
    ----------
    family : Family
        In closed form or discrete.
    mean : array (dim,)
        The mean statistic of the data.
    l2 : float

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.families import Exponential
    >>> problem = NegativeLogLikelihood(Exponential(), [2.0])
    >>> result = optim.run(optim.MirrorDescent(problem.reference), problem, [-3.0])
    >>> result.x, result.work
    (array([-0.5]), 1)

    The parameter of an Ising model whose spins have these means and products:

    >>> from cumulant.graphical import Ising
    >>> problem = NegativeLogLikelihood(Ising([(0, 1)], 0.0).family, [0.2, 0.1, 0.3])
    >>> result = optim.run(optim.LBFGS(), problem, np.zeros(3), max_steps=2)
    >>> result.x.round(4), result.certificate.upper < 1e-12
    (array([0.1894, 0.0456, 0.301 ]), True)
    """

    family: Any
    mean: Any
    l2: Any = 0.0

    def __post_init__(self):
        if is_concrete(self.mean) and isinstance(self.family, Family):
            object.__setattr__(self, "mean", _mean(self.mean, self.family, "mean", 1))
        if is_concrete(self.l2):
            not_negative(self.l2, "l2")

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
    family : Family
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
        if is_concrete(self.statistics) and isinstance(self.family, Family):
            rows = _mean(self.statistics, self.family, "statistics", 2)
            if not len(rows):
                raise ValueError("statistics must have at least one row: there are no observations")
            object.__setattr__(self, "statistics", rows)

    @classmethod
    def of(cls, family: Family, x: Any) -> "SampleLikelihood":
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


class NewtonDecrement(NamedTuple):
    """What one Newton step at a point of a family with bounded statistics proves.

    `upper` bounds ``f(theta) - f*`` with rounding allowed for, and is infinite where nothing is proved; `bound` is the
    same before that. A finite one proves that a minimiser exists. `direction` is the Newton step.
    """

    bound: float
    upper: float
    decrement: float
    smallest: float
    ratio: float
    direction: np.ndarray


def newton_decrement(family: BoundedFamily, mean: np.ndarray, theta: np.ndarray) -> NewtonDecrement:
    """The distance of ``f(theta) = A(theta) - <mean, theta>`` to its minimum from gradient and Fisher information.

    Statistics lie in a ball of radius ``R``, so along ``v`` the third derivative of ``A`` is at most ``M |v|`` times
    the second, ``M = 2 R``: a third central moment is at most the range times the variance. Then, with ``lambda`` the
    smallest eigenvalue of the Fisher information along `family.directions`, ``nu`` the Newton decrement and
    ``k = nu M / sqrt(lambda) < 1``: ``f(theta) - f* <= (lambda / M^2) [(1 - k) log(1 - k) + k]``, and there is a
    minimiser (as in Bach 2010, proposition 2). `mean` is taken in the affine hull of the statistics.
    """
    basis, radius = family.directions(), family.statistics_radius()
    moved = np.asarray(family.to_mean(theta)) - mean
    g = basis.T @ moved
    if not g.size:
        return NewtonDecrement(0.0, 0.0, 0.0, np.inf, 0.0, np.zeros_like(theta))
    values, vectors = np.linalg.eigh(basis.T @ np.asarray(family.fisher(theta)) @ basis)
    size = float(np.linalg.norm(np.abs(mean)) + 2 * radius)  # no statistic is longer, if the mean is one of theirs
    relative = family.mean_rounding(theta)
    doubt = 4 * relative * size**2 + rounding(values, terms=8.0 + values.size)
    smallest, error = float(values[0]), relative * size
    if not smallest > doubt:
        return NewtonDecrement(np.inf, np.inf, np.inf, smallest, np.inf, -basis @ g)
    along = vectors.T @ g
    decrement = float(np.sqrt(np.sum(along**2 / values)))
    # The exact Fisher information is at least (1 - doubt / smallest) times the computed one.
    sure = (decrement / np.sqrt(1 - doubt / smallest) + error / np.sqrt(smallest - doubt)) * (1 + 1e-9)
    return NewtonDecrement(
        decrement_bound(decrement**2, smallest, 2 * radius),
        decrement_bound(sure**2, smallest - doubt, 2 * radius),
        decrement,
        smallest,
        sure * 2 * radius / np.sqrt(smallest - doubt),
        -basis @ (vectors @ (along / values)),
    )


@issuer
def certify_likelihood(problem: Any, x: Any) -> Certificate:
    """The distance to the maximum likelihood, in float64 from the mean statistic.

    With a penalty, ``|grad f|^2 / (2 l2)``. Without, ``f(theta) - f* = KL(p* || p_theta)`` (Le Priol 2021, (5.12)):
    from ``p*`` itself where it has a closed form; where statistics are bounded, from the Newton decrement at ``theta``,
    or, where that is too large, from the difference to an estimate whose own decrement is small.

    Refused where the sample has no finite maximum-likelihood estimate, or where ``theta`` is not in the domain.
    """
    problem, x = widen(problem), np.asarray(x, dtype=np.float64)
    family, mean = problem.family, np.asarray(problem.target)
    inside = check(np.all(family.in_domain(x)) and np.all(np.isfinite(x)), "theta is a natural parameter of the family")
    if float(problem.l2) > 0:
        return _certify_penalised(problem, x, inside)
    if isinstance(family, BoundedFamily):
        return _certify_bounded(problem, x, inside)
    exists = check(
        np.all(family.in_mean_domain(mean)),
        "a finite maximum-likelihood estimate exists",
        f"the mean statistic {np.array2string(mean, threshold=6, precision=6)} is inside the mean domain",
    )
    best = _estimate(family, mean)
    terms = (family.log_partition(x), family.log_partition(best), mean * (x - best))
    return Certificate(
        "f(x) - f*",
        float(family.kl(best, x)),
        "the gap of a likelihood is KL(p* || p_theta), Le Priol 2021 (5.12)",
        (exists, inside, by_construction("the objective is the likelihood of an exponential family")),
        slack=rounding(*terms, terms=8 + family.dim),
    )


def _estimate(family: Any, mean: np.ndarray) -> np.ndarray:
    try:
        return family.to_natural(mean)
    except DomainError as reason:
        text = "a finite maximum-likelihood estimate exists"
        raise CertificateError(f"no certificate: it was not shown that {text} ({reason})", assumption=text) from None


def _certify_penalised(problem: Any, x: np.ndarray, inside: Any) -> Certificate:
    l2, norm = float(problem.l2), float(np.linalg.norm(problem.gradient(x)))
    bound = norm**2 / (2 * l2)
    return Certificate(
        "f(x) - f*",
        bound,
        "strong convexity: |grad f(x)|^2 / (2 mu), Polyak 1963",
        (inside, check(l2 > 0, "the objective is strongly convex", f"mu = l2 = {l2:g}")),
        slack=max((norm + problem.gradient_rounding(x)) ** 2 / (2 * l2) * (1 + 1e-12) - bound, np.finfo(float).tiny),
        details={"gradient norm": norm},
    )


def _certify_bounded(problem: Any, x: np.ndarray, inside: Any) -> Certificate:
    family, mean = problem.family, np.asarray(problem.target)
    best, added, lost = x, 0.0, 0.0
    found = newton_decrement(family, mean, x)
    if not np.isfinite(found.upper):
        best = _estimate(family, mean)
        found = newton_decrement(family, mean, best)
        value, least = (float(problem.value(theta)) for theta in (x, best))
        added = max(value - least, 0.0)
        both = (value, least, mean * x, mean * best)
        lost = rounding(*both, terms=8.0 + family.dim) + sum(
            family.mean_rounding(theta) * (1.0 + abs(float(family.log_partition(theta)))) for theta in (x, best)
        )
    hull = float(np.linalg.norm(_outside(family, mean)))
    near = check(
        hull <= rounding(mean, 2 * family.statistics_radius(), terms=64.0 + family.dim),
        "the mean statistic is in the affine hull of the statistics, up to rounding",
        f"it is {hull:.2g} away" if hull else "",
    )
    exists = check(
        np.isfinite(found.upper),
        "a finite maximum-likelihood estimate exists: the Newton decrement is small",
        f"ratio {found.ratio:.3g} < 1",
    )
    bound = found.bound + added
    return Certificate(
        "f(x) - f*",
        bound,
        "self-concordance of a family with bounded statistics: half the squared Newton decrement, to leading order, "
        "Bach 2010",
        (inside, near, exists, by_construction("third central moments are at most the range times the variance")),
        slack=float(found.upper - found.bound) + lost + hull * float(np.linalg.norm(x - best) + np.linalg.norm(x)),
        details={"decrement": found.decrement, "lambda": found.smallest},
    )


def _outside(family: Any, mean: np.ndarray) -> np.ndarray:
    """The part of ``mean - E T(x)`` that no difference of statistics reaches."""
    off = mean - np.asarray(family.to_mean(np.zeros(family.dim)))
    return off - family.directions() @ (family.directions().T @ off)
