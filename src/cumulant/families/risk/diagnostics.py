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
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.families.base import ExponentialFamily
from cumulant.families.bernoulli import Bernoulli
from cumulant.families.categorical import Categorical
from cumulant.families.gamma_type import GammaType
from cumulant.families.normal import NormalKnownMean, NormalKnownVariance
from cumulant.families.risk._arguments import grid, natural_parameter, whole
from cumulant.families.risk.quadrature import gamma_blocks
from cumulant.families.risk.theories import theory
from cumulant.families.special import excess_numpy, log_minus_digamma
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
        f"the assumptions of mirror descent are evaluated for gamma-type, known-variance normal, Bernoulli and "
        f"categorical families; {family} is none of them"
    )


@_at_iterate.register
def _(family: GammaType, theta_star, kind, mu, gamma):
    return float(smd_assumption_gamma(kind, mu[0] / family.to_mean(theta_star)[0], gamma, family.alpha))


@_at_iterate.register
def _(family: NormalKnownVariance, theta_star, kind, mu, gamma):
    return 1.0  # quadratic: gamma^2 E (T - mu*)^2 / v, and 4 gamma^2 / 2 of the same over 2 gamma^2


@_at_iterate.register(Bernoulli)
@_at_iterate.register(Categorical)
def _(family, theta_star, kind, mu, gamma):
    size = family.dim
    statistics = np.vstack([np.eye(size), np.zeros((1, size))])  # T of each class
    mean = np.asarray(family.to_mean(theta_star))
    p = np.append(mean, 1.0 - mean.sum())
    if kind == "variance":
        moved, centre = (1 - gamma) * mu + gamma * statistics, (1 - gamma) * mu + gamma * mean
        with float64():
            values = to_numpy(_symmetrised(family, moved, np.broadcast_to(centre, moved.shape)))
        return float(p @ values) / gamma**2
    moved = mu + 2 * gamma * (statistics - mean)
    everything = np.column_stack([moved, 1.0 - moved.sum(axis=1)])
    if np.any(everything < 0):
        return np.inf
    full = np.append(mu, 1.0 - mu.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.sum(np.where(everything > 0, everything * np.log(everything / full), 0.0), axis=1)
    return float(p @ values) / (2 * gamma**2)


@jax.jit
def _symmetrised(family, mu, nu):
    return jnp.sum((family.to_natural(mu) - family.to_natural(nu)) * (mu - nu), axis=-1)


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

    Examples
    --------
    >>> from cumulant.families import NormalKnownMean
    >>> float(round(smd_assumption(NormalKnownMean(), [-0.5], "variance", [0.1], 0.1), 3))
    17.47
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


# The optimality gap -------------------------------------------------------------------------------------------------


def gap_constant(family: ExponentialFamily, theta_star: Any, batch: int = 1) -> float:
    """``min f - E min f_batch = E A*(mean of T over a batch) - A*(mu*)``, the constant of (5.35).

    Finite as soon as a batch cannot be given infinite density: ``alpha (log(k alpha) - digamma(k alpha))`` for
    gamma-type families and batches of ``k``, the entropy for one draw of a class; infinite for a normal with unknown
    mean and variance and one observation at a time. `gap_batch` is the batch size from which it is finite. Any step
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

    >>> from cumulant.families import Exponential, Normal
    >>> gap_batch(Exponential()), gap_batch(Normal())
    (1, 2)
    """
    batch = theory(family).batch
    if batch is None:
        raise NotImplementedError(f"the batch size that bounds the likelihood of {family} is not known here")
    return batch


# The table ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Analysis:
    """An analysis of stochastic mirror descent and what it gives (a row of table 5.1 of Le Priol 2021).

    Attributes
    ----------
    name, equation : str
    constant : float
        The supremum of its constant over iterates and over the step sizes that its rate needs.
    holds : bool
        Whether that constant is finite.
    vanishes : bool
        Whether its bound goes to zero, as ``1/n``.
    on_objective : bool
        Whether it bounds ``f(theta_n) - f*``, the risk, rather than the reverse divergence
        ``KL(p_{theta_n} || p_{theta*})``.
    last_iterate : bool
        Whether it is about the last iterate rather than an average.
    """

    name: str
    equation: str
    constant: float
    holds: bool
    vanishes: bool
    on_objective: bool
    last_iterate: bool


def smd_analyses(family: GammaType | None = None, gamma: float = 0.1) -> tuple[Analysis, ...]:
    """Table 5.1 of Le Priol (2021): what three analyses of mirror descent need, and give, for a gamma-type family.

    Whether each assumption holds is computed: the supremum of its constant over iterates is its limit at ``mu = 0``. A
    rate of ``1/n`` needs steps that go to zero, and hence a constant that is bounded over all steps up to `gamma`:
    that of (5.31) is ``alpha / (alpha - 1) / gamma^2`` at ``mu = 0`` for ``alpha > 1``, and unbounded.
    What each then gives is the form of its bound: ``4 C/(n + 1)`` on ``f`` for a weighted average of iterates,
    ``O(C/n)`` on the reverse divergence of the last iterate, and ``(1 - gamma)^n D + C`` on the same.

    Examples
    --------
    >>> [(a.name, a.holds, a.vanishes, a.on_objective, a.last_iterate) for a in smd_analyses()]
    [('variance', False, True, True, False), ('optimum', False, True, False, True), ('gap', True, False, False, True)]
    """
    family = NormalKnownMean() if family is None else family
    steps = gamma * np.array([1.0, 1e-3])  # a constant that grows on the way from one to the other is unbounded
    variance, optimum = (
        float(at[0] if at[1] <= 2 * at[0] < np.inf else np.inf)
        for at in (smd_assumption_gamma(kind, 0.0, steps, family.alpha) for kind in ("variance", "optimum"))
    )
    gap = gap_constant(family, np.array([-1.0]))
    return (
        Analysis("variance", "(5.31)", variance, bool(np.isfinite(variance)), True, True, False),
        Analysis("optimum", "(5.33)", optimum, bool(np.isfinite(optimum)), True, False, True),
        Analysis("gap", "(5.35)", gap, bool(np.isfinite(gap)), False, False, True),
    )
