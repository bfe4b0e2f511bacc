"""Which analyses of stochastic mirror descent apply: their constants, evaluated at an iterate.

Maximum likelihood by stochastic mirror descent takes ``mu <- mu - gamma g`` with ``g = mu - T(x)``, in the mirror map
``grad A``. Three assumptions in the literature, each with a constant ``C`` (Le Priol 2021, section 5.6):

* variance (5.31): ``E S_{A*}(mu - gamma g, mu - gamma grad f) <= gamma^2 C``, with the symmetrised divergence ``S``;
* optimum (5.33): ``E Breg_{A*}(mu - 2 gamma g(theta*); mu) <= 2 gamma^2 C``;
* gap (5.35): ``min f - E min f_x <= C``.

A finite answer at one iterate is not a theorem; an infinite one refutes the assumption.
"""

import functools
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.families.base import ExponentialFamily
from cumulant.families.bernoulli import Bernoulli, Binomial, Geometric, NegativeBinomial
from cumulant.families.categorical import Categorical, Multinomial
from cumulant.families.dirichlet import Beta
from cumulant.families.finite import FiniteFamily
from cumulant.families.gamma import Gamma
from cumulant.families.gamma_type import GammaType
from cumulant.families.inverse_gaussian import InverseGaussian
from cumulant.families.multivariate_normal import MultivariateNormal
from cumulant.families.multivariate_normal_diagonal import MultivariateNormalDiagonal, MultivariateNormalIsotropic
from cumulant.families.multivariate_normal_known import MultivariateNormalKnownCovariance, MultivariateNormalKnownMean
from cumulant.families.normal import Normal, NormalKnownVariance
from cumulant.families.poisson import Poisson
from cumulant.families.product import Product
from cumulant.families.risk._arguments import grid, natural_parameter, whole
from cumulant.families.risk.monte_carlo import sample_mean_statistic
from cumulant.families.risk.normal_steps import full_constant, shared_constant
from cumulant.families.risk.quadrature import gamma_blocks, line_nodes
from cumulant.families.risk.step_domain import can_leave
from cumulant.families.risk.theories import CountTheory, entropic, theory
from cumulant.families.special import excess_numpy, log_minus_digamma
from cumulant.families.von_mises import VonMises
from cumulant.precision import float64, to_numpy


def smd_assumption_gamma(kind: str, ratio: Any, gamma: Any, alpha: Any) -> Any:
    """The constant ``C`` of (5.31) ("variance") or (5.33) ("optimum") at ``mu = ratio mu*``, for gamma-type families.

    ``variance``: ``alpha E[(m - m_bar)^2 / (m m_bar)] / gamma^2``, ``m = (1-gamma) mu + gamma T``; it grows without
    bound as ``mu`` goes to 0, and is infinite there for ``alpha <= 1``. ``optimum``: infinite as soon as ``mu < 2
    gamma mu*``, where the argument leaves the domain with positive probability. By quadrature to rounding error; the
    arguments broadcast.

    Examples
    --------
    >>> smd_assumption_gamma("variance", [1.0, 0.1, 0.01, 0.0], 0.1, 0.5).round(2)
    array([  0.77,  17.47, 132.  ,    inf])
    >>> smd_assumption_gamma("optimum", [1.0, 0.5, 0.19], 0.1, 0.5).round(4)
    array([0.7348, 2.6101,    inf])
    """
    ratio, gamma, alpha = grid(positive=("gamma", "alpha"), ratio=ratio, gamma=gamma, alpha=alpha)
    if np.any(gamma >= 1) and kind == "variance":
        raise DomainError(f"gamma must be below 1 for the iterate to keep its past; got {gamma.max()}")
    if kind == "variance":
        start, weight = (1.0 - gamma) * ratio, gamma
    elif kind == "optimum":
        start, weight = ratio - 2.0 * gamma, 2.0 * gamma
    else:
        raise ValueError(f"kind must be 'variance' or 'optimum' here, or 'gap' (see gap_constant); got {kind!r}")
    shape = ratio.shape
    ratio, gamma, alpha, start, weight = (each.ravel() for each in (ratio, gamma, alpha, start, weight))
    answer = np.full(start.size, np.inf)
    edge = start == 0
    if kind == "variance":  # m = gamma T: alpha (alpha/(alpha - 1) - 1) / gamma^2
        slim = np.where(alpha > 1, alpha, 2.0)
        answer[edge] = np.where(alpha > 1, alpha / (slim - 1.0) / gamma**2, np.inf)[edge]
    else:
        answer[edge] = (alpha * log_minus_digamma(alpha) / (2.0 * gamma**2))[edge]
    inside = np.flatnonzero(start > 0)
    for index, t, mass in gamma_blocks(alpha[inside], alpha[inside] * start[inside] / weight[inside]):
        each = inside[index]
        step = weight[each, None] * np.expm1(t)
        if kind == "variance":
            mean = start[each] + weight[each]
            value = step**2 / ((mean[:, None] + step) * mean[:, None])
            answer[each] = alpha[each] * np.sum(mass * value, axis=1) / gamma[each] ** 2
        else:
            value = excess_numpy(step / ratio[each, None])
            answer[each] = alpha[each] * np.sum(mass * value, axis=1) / (2.0 * gamma[each] ** 2)
    return answer.reshape(shape)[()]


@functools.singledispatch
def _at_iterate(family, theta_star, kind, mu, gamma) -> float:
    raise NotImplementedError(
        f"the constants of mirror descent are computed where a sum or an integral over one variable gives them, which "
        f"is not so for {family}: monte_carlo_smd estimates them"
    )


@_at_iterate.register
def _(family: GammaType, theta_star, kind, mu, gamma):
    return float(smd_assumption_gamma(kind, mu[0] / family.to_mean(theta_star)[0], gamma, family.alpha))


@_at_iterate.register(NormalKnownVariance)
@_at_iterate.register(MultivariateNormalKnownCovariance)
def _(family, theta_star, kind, mu, gamma):
    return float(family.dim)  # quadratic: gamma^2 E |T - mu*|_F^2, and 4 gamma^2 / 2 of the same over 2 gamma^2


@_at_iterate.register(Bernoulli)
@_at_iterate.register(Binomial)
@_at_iterate.register(Categorical)
@_at_iterate.register(Geometric)
@_at_iterate.register(Multinomial)
@_at_iterate.register(NegativeBinomial)
@_at_iterate.register(Poisson)
def _(family, theta_star, kind, mu, gamma):
    known = theory(family)
    assert isinstance(known, CountTheory)
    truth, total = np.asarray(family.to_mean(theta_star)), 0.0
    for term in known.entropy_terms(theta_star, 1):
        at_truth, at = float(term.level(truth)), float(term.level(mu))
        change = term.values - at_truth
        if kind == "variance":
            centre = (1 - gamma) * at + gamma * at_truth
            value = change * np.log1p(gamma * change / centre) / gamma
        elif term.sign > 0 and at < 2 * gamma * at_truth:  # the level of a count of zero becomes negative
            return np.inf
        else:
            value = at * entropic(np.maximum(2 * gamma * change / at, -1.0)) / (2 * gamma**2)
        total += term.sign * float(value @ term.mass)
    return total


@_at_iterate.register(Normal)
@_at_iterate.register(MultivariateNormalIsotropic)
def _(family, theta_star, kind, mu, gamma):
    return shared_constant(kind, gamma, *_moments(family, family.to_natural(mu)), *_moments(family, theta_star))


@_at_iterate.register
def _(family: MultivariateNormalDiagonal, theta_star, kind, mu, gamma):
    mean, variances = _moments(family, family.to_natural(mu))
    true_mean, true_variances = _moments(family, theta_star)
    rows = zip(mean[:, None], variances, true_mean[:, None], true_variances, strict=True)
    return sum(shared_constant(kind, gamma, *row) for row in rows)


@_at_iterate.register(MultivariateNormal)
@_at_iterate.register(MultivariateNormalKnownMean)
def _(family, theta_star, kind, mu, gamma):
    moments = *_moments(family, family.to_natural(mu)), *_moments(family, theta_star)
    return full_constant(kind, gamma, *moments, isinstance(family, MultivariateNormalKnownMean))


def _moments(family, theta):
    """The mean, and what the family has of variances."""
    usual = family.usual(theta)
    mean = usual.get("mean", usual.get("location", getattr(family, "mean", None)))
    second = next(usual[name] for name in ("variance", "variances", "covariance") if name in usual)
    return np.atleast_1d(np.asarray(mean, dtype=np.float64)), np.asarray(second, dtype=np.float64)


@_at_iterate.register
def _(family: Product, theta_star, kind, mu, gamma):
    pieces = zip(family.parts, family.split(theta_star), family.split(mu), strict=True)
    return sum(_at_iterate(part, theta, kind, own, gamma) for part, theta, own in pieces)


@_at_iterate.register(Beta)
@_at_iterate.register(Gamma)
@_at_iterate.register(InverseGaussian)
@_at_iterate.register(VonMises)
def _(family, theta_star, kind, mu, gamma):
    x, mass = line_nodes(family, theta_star)
    values = _values(family, family.statistics(x), family.to_mean(theta_star), kind, mu, gamma)
    return np.inf if np.isinf(values).any() else float(values @ mass)


@_at_iterate.register
def _(family: FiniteFamily, theta_star, kind, mu, gamma):
    mass = np.asarray(family.usual(theta_star)["probabilities"])
    values = _values(family, np.asarray(family.T), family.to_mean(theta_star), kind, mu, gamma)
    return np.inf if np.isinf(values).any() else float(values @ mass)


def _values(family, statistics, truth, kind, mu, gamma):
    """What the mean over observations is taken of; infinite where an iterate leaves the domain."""
    if kind == "variance":
        moved, centre = (1 - gamma) * mu + gamma * statistics, (1 - gamma) * mu + gamma * truth
        with float64():
            values = to_numpy(_symmetrised(family, moved, np.broadcast_to(centre, moved.shape)))
        return values / gamma**2
    if can_leave(family, mu, np.asarray(truth), 2 * gamma):
        return np.full(len(statistics), np.inf)
    moved = mu + 2 * gamma * (statistics - truth)
    inside = np.asarray(family.in_mean_domain(moved))
    with float64():
        values = to_numpy(_divergence(family, np.where(inside[:, None], moved, mu), np.broadcast_to(mu, moved.shape)))
    return np.where(inside, values, np.inf) / (2 * gamma**2)


@jax.jit
def _symmetrised(family, mu, nu):
    return family.symmetrised(mu, nu)


@jax.jit
def _divergence(family, mu, nu):
    return family.bregman_conjugate(mu, nu)


def smd_assumption(family: ExponentialFamily, theta_star: Any, kind: str, mu: Any, gamma: float) -> float:
    """The constant ``C`` that an analysis of mirror descent needs at the iterate `mu` with step `gamma`.

    Parameters
    ----------
    family, theta_star
        The family and the natural parameter of the truth.
    kind : str
        ``"variance"`` (5.31), ``"optimum"`` (5.33) or ``"gap"`` (5.35, which depends on neither `mu` nor `gamma`).
    mu : array
        Mean parameter of the iterate, shape ``(dim,)``.
    gamma : float
        Step size, between 0 and 1.

    Returns
    -------
    float
        By a sum over counts or states, or an integral over one variable: for all families with a count, a class or a
        number for an observation, normals in any number of dimensions, and products of these. `NotImplementedError`
        for others, whose constant `monte_carlo_smd` estimates. Whether ``"optimum"`` is infinite, because a step can
        leave the domain, is decided in closed form: the observations that do it may be too rare for any grid.

    Examples
    --------
    >>> from cumulant.families import Normal, NormalKnownMean, Poisson
    >>> float(round(smd_assumption(NormalKnownMean(), [-0.5], "variance", [0.1], 0.1), 3))
    17.47
    >>> [round(smd_assumption(Poisson(), [0.0], "optimum", [mu], 0.1), 3) for mu in (1.0, 0.1)]
    [0.954, inf]
    >>> [round(smd_assumption(Normal(), [0.0, -0.5], "variance", [0.0, v], 0.1), 2) for v in (1.0, 0.1, 0.01)]
    [1.59, 21.12, 143.51]
    """
    if kind not in ("variance", "optimum", "gap"):
        raise ValueError(f"kind must be 'variance', 'optimum' or 'gap'; got {kind!r}")
    theta_star = natural_parameter(family, theta_star)
    if kind == "gap":
        return gap_constant(family, theta_star)
    checks.fraction("gamma", gamma)
    mu = np.asarray(mu, dtype=np.float64)
    family.to_natural(mu)  # refuses what is not a mean of the family
    return _at_iterate(family, theta_star, kind, mu, float(gamma))


@dataclass(frozen=True)
class MonteCarloConstant:
    """An estimate of a constant, and its standard error; infinite where a draw shows that the constant is."""

    value: float
    standard_error: float


def monte_carlo_smd(
    family: ExponentialFamily,
    theta_star: Any,
    kind: str,
    mu: Any = None,
    gamma: float = 0.1,
    *,
    batch: int = 1,
    trials: int = 10_000,
    rng: Any = None,
) -> MonteCarloConstant:
    """The constants of `smd_assumption` and `gap_constant` by simulation, for any family and batches of observations.

    An infinite value is a fact, a finite one an estimate: what is too rare to be drawn is not seen, but for steps that
    leave the domains of gamma, beta, Dirichlet, inverse Gaussian and von Mises families, which are known.

    Examples
    --------
    >>> from cumulant.families import Dirichlet
    >>> found = monte_carlo_smd(Dirichlet(3), [1.0, 2.0, 3.0], "gap", batch=2, trials=1000, rng=0)
    >>> bool(found.value - 4 * found.standard_error < 1.2674 < found.value + 4 * found.standard_error)
    True
    """
    if kind not in ("variance", "optimum", "gap"):
        raise ValueError(f"kind must be 'variance', 'optimum' or 'gap'; got {kind!r}")
    theta_star, trials, batch = natural_parameter(family, theta_star), whole("trials", trials), whole("batch", batch)
    truth = np.asarray(family.to_mean(theta_star))
    if kind == "gap" and any(part.discrete for part in getattr(family, "parts", (family,))):
        raise ValueError(f"kind='gap' by simulation is for continuous families: gap_constant sums for {family}")
    draws = sample_mean_statistic(family, theta_star, batch, trials, rng=rng)
    if kind == "gap":
        inside = np.asarray(family.in_mean_domain(draws))
        safe = np.where(inside[:, None], draws, truth)
        with float64():
            values = np.where(inside, to_numpy(_divergence(family, safe, np.broadcast_to(truth, safe.shape))), np.inf)
    else:
        checks.fraction("gamma", gamma)
        mu = np.asarray(mu, dtype=np.float64)
        family.to_natural(mu)  # refuses what is not a mean of the family
        values = _values(family, draws, truth, kind, mu, float(gamma))
    if not np.isfinite(values).all():
        return MonteCarloConstant(np.inf, np.inf)
    return MonteCarloConstant(float(values.mean()), float(values.std(ddof=1) / np.sqrt(trials)))


# The optimality gap -------------------------------------------------------------------------------------------------


def gap_constant(family: ExponentialFamily, theta_star: Any, batch: int = 1) -> float:
    """``min f - E min f_batch = E A*(mean of T over a batch) - A*(mu*)``, the constant of (5.35).

    Finite as soon as a batch cannot be given infinite density: ``alpha (log(k alpha) - digamma(k alpha))`` for
    gamma-type families and batches of ``k``, the entropy for one draw of a class, sums over the total count for other
    discrete families, an integral over the spread of a batch for the gamma; infinite for a normal with unknown mean
    and variance and one observation at a time. `gap_batch` is the batch size from which it is finite. Of the beta and
    Dirichlet families `monte_carlo_smd` estimates it. Any step
    ``gamma <= 1`` then brings mirror descent within ``C`` of the truth, not closer: larger batches make ``C``
    smaller, as ``d/(2k)``.

    Examples
    --------
    >>> from cumulant.families import Exponential, Normal
    >>> round(gap_constant(Exponential(), [-1.0]), 6)
    0.577216
    >>> gap_constant(Normal(), [0.0, -0.5]), round(gap_constant(Normal(), [0.0, -0.5], batch=2), 6)
    (inf, 0.981755)
    """
    return float(theory(family).gap(natural_parameter(family, theta_star), whole("batch", batch)))


def gap_batch(family: Any) -> int:
    """The smallest batch whose likelihood is bounded almost surely, so that `gap_constant` is finite.

    One for discrete and gamma-type families, two for the normal, gamma, beta, Dirichlet and inverse Gaussian
    families, ``d + 1`` for the ``d``-dimensional normal (Le Priol 2021, section 5.6.2).

    >>> from cumulant.families import Geometric, Normal
    >>> gap_batch(Geometric()), gap_batch(Normal())
    (1, 2)
    """
    batch = theory(family).batch
    if batch is None:
        raise NotImplementedError(f"the batch size that bounds the likelihood of {family} is not known here")
    return batch
