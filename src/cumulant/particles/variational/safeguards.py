"""Bounds on a step so that importance weights cannot degenerate: rules on their variance and effective sample size.

With normalised weights ``W``, ``Q = sum W^2`` and ``S = Q - 1/n`` (``n`` times the sample variance). A step ``a`` along
``d`` is allowed where one of two conditions holds for the new weights:

* variance: ``b S(a) <= S``: the variance grows by a factor of at most ``1 / b``;
* effective sample size: ``n x Q(a) <= 1``: the effective size stays at least ``x n``.

One is enough. At equal weights no step satisfies the first, and where weights are uneven none satisfies the second.

Reference: Carbonetto (2009), PhD thesis, section 3.3.8.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cumulant import checks

MODES = ("joint-quadratic", "rb-quadratic", "exact", "line-search", "linear")
HALVINGS = 25  # of the longest step, by bisection and by backtracking


class AllowedStep(NamedTuple):
    """The length of a step and the rule that set it: ``"schedule"``, ``"variance"`` or ``"ess"``."""

    step: float
    rule: str


class WeightModel(NamedTuple):
    """``S(a) = S + slope a + curvature a^2 + ...`` along a direction."""

    variance: float
    slope: float
    curvature: float


@dataclasses.dataclass(frozen=True)
class Safeguard:
    """How the steps of variational sequential Monte Carlo are bounded.

    Parameters
    ----------
    mode : str
        What the new weights are taken to be. ``"joint-quadratic"``: the second-order model of ``W exp <t(x), a d>``
        with the statistics of whole particles (Carbonetto's choice). ``"exact"``: the weights that are used, with
        ``x_B`` summed out, by bisection; ``"line-search"``: the same by halving. Two more are for comparison and must
        not be trusted: ``"rb-quadratic"``, the second-order model of the weights that are used, which sees no bound
        where the conditional means are alike, as they are near independence; and ``"linear"``, a first-order model.
    variance : float
        ``b`` of the variance rule, between 0 and 1.
    ess : float
        ``x`` of the rule on the effective sample size, between 0 and 1.

    Examples
    --------
    >>> Safeguard("exact", ess=0.95)
    Safeguard(mode='exact', variance=0.75, ess=0.95)
    """

    mode: str = "joint-quadratic"
    variance: float = 0.75
    ess: float = 0.9

    def __post_init__(self):
        checks.choice("mode", self.mode, MODES)
        checks.fraction("variance", self.variance)
        checks.fraction("ess", self.ess)

    @property
    def on_weights(self) -> bool:
        """Whether the rule looks at the new weights themselves."""
        return self.mode in ("exact", "line-search")


def require_weights(weights: Any) -> np.ndarray:
    """Weights of particles, none negative, that sum to one."""
    W = checks.real_array("weights", weights, ndim=1)
    if not W.size or W.min() < 0 or abs(W.sum() - 1.0) > 1e-6:
        raise ValueError(f"weights must be numbers, none negative, that sum to one; their sum is {W.sum():g}")
    return W


def weight_model(weights: Any, projections: Any, curvatures: Any = None) -> WeightModel:
    """The variance of the weights ``W exp(a r + a^2 c / 2)`` to second order in the step ``a``.

    ``slope = 2 sum W (W - Q) r`` and ``curvature = sum W (2 W - Q) r^2 + sum W (W - Q) c``, with ``r`` centred at its
    weighted mean (Carbonetto 2009, equations 3.62 and 3.64).

    Parameters
    ----------
    weights : array (n,)
        That sum to one.
    projections : array (n,)
        ``r = <t, d>`` of each particle, or ``<E[t | x_A], d>``.
    curvatures : array (n,), optional
        ``c = d^T Cov[t | x_A] d``, for conditional means.

    Examples
    --------
    >>> model = weight_model([0.1, 0.2, 0.3, 0.4], [1.0, -1.0, 2.0, 0.5])
    >>> [round(each, 12) for each in model]
    [0.05, 0.04, 0.217]
    """
    W = require_weights(weights)
    r = checks.real_array("projections", projections, ndim=1)
    if r.shape != W.shape:
        raise ValueError(f"projections must be a number for each of the {W.size} weights; got {r.size}")
    r = r - W @ r
    total = float(np.sum(W**2))
    curvature = float(np.sum(W * (2 * W - total) * r**2))
    if curvatures is not None:
        c = checks.real_array("curvatures", curvatures, ndim=1)
        if c.shape != W.shape:
            raise ValueError(f"curvatures must be a number for each of the {W.size} weights; got {c.size}")
        curvature += float(np.sum(W * (W - total) * c))
    return WeightModel(total - 1 / W.size, float(2 * np.sum(W * (W - total) * r)), curvature)


def smallest_root(curvature: float, slope: float, level: float) -> float:
    """The smallest positive ``a`` with ``curvature a^2 + slope a = level``: 0 for ``level <= 0``, infinite for none.

    >>> round(smallest_root(0.217, 0.04, 0.05 / 3), 10)
    0.1998948286
    >>> smallest_root(-1.0, 0.5, 1.0)                       # the parabola never gets there
    inf
    """
    if level <= 0:
        return 0.0
    disc = slope * slope + 4 * curvature * level
    if disc < 0 or (curvature <= 0 and slope <= 0):
        return math.inf
    if slope >= 0:  # no cancellation, whatever the sign of the curvature and however small it is
        return 2 * level / (slope + math.sqrt(disc))
    return (-slope + math.sqrt(disc)) / (2 * curvature)


def safeguarded_step(
    weights: Any,
    projections: Any,
    cap: float,
    safeguard: Safeguard | None = None,
    *,
    curvatures: Any = None,
    log_ratios: Callable[[float], np.ndarray] | None = None,
) -> AllowedStep:
    """The longest step, up to `cap`, that the variance rule or the rule on the effective sample size allows.

    Parameters
    ----------
    weights : array (n,)
        That sum to one.
    projections : array (n,)
        ``<t, d>`` of each particle: of whole particles, or the conditional mean for ``"rb-quadratic"``.
    cap : float
        The longest step that is wanted.
    safeguard : Safeguard
    curvatures : array (n,), optional
        ``d^T Cov[t | x_A] d`` of each particle, for ``"rb-quadratic"``.
    log_ratios : function of a step, optional
        The logarithms of the new weights over the old ones, for ``"exact"`` and ``"line-search"``; they then hold for
        the weights after the step. It must draw no random numbers.

    Examples
    --------
    >>> t = np.array([1.0, -1.0, 2.0, 0.5])
    >>> safeguarded_step(np.full(4, 0.25), t, 1.0)          # equal weights: 1 / (3 sd(t))
    AllowedStep(step=0.30792014..., rule='ess')
    >>> safeguarded_step(np.full(4, 0.25), t, 1.0, Safeguard("exact"), log_ratios=lambda a: a * t).step
    0.328787...
    """
    rule = _rule(safeguard)
    W = require_weights(weights)
    checks.positive("cap", cap)
    total = float(np.sum(W**2))
    if rule.on_weights:
        if log_ratios is None:
            raise ValueError(f"the safeguard {rule.mode!r} needs log_ratios, the weights as a function of the step")
        return _on_weights(W, total, cap, rule, log_ratios)
    if rule.mode == "rb-quadratic" and curvatures is None:
        raise ValueError("the safeguard 'rb-quadratic' needs curvatures, d^T Cov[t | x_A] d of each particle")
    model = weight_model(W, projections, curvatures if rule.mode == "rb-quadratic" else None)
    curvature = 0.0 if rule.mode == "linear" else model.curvature
    by_variance = smallest_root(curvature, model.slope, model.variance * (1 - rule.variance) / rule.variance)
    by_ess = smallest_root(curvature, model.slope, 1 / (rule.ess * W.size) - total)
    step, name = max((by_variance, "variance"), (by_ess, "ess"))
    return AllowedStep(step, name) if step < cap else AllowedStep(cap, "schedule")


def least_steps_between_resamplings(n: int, threshold: float, safeguard: Safeguard | None = None) -> float:
    """How many steps at least lie between two resamplings at an effective size of `threshold`, where the rules hold.

    ``log[(n / threshold - 1) / (1 / x - 1)] / log(1 / b)``: after the first step the variance grows by at most the
    factor ``1 / b`` at each.

    >>> round(least_steps_between_resamplings(100, 50), 1)
    7.6
    """
    rule = _rule(safeguard)
    checks.whole("n", n)
    if not 0 < checks.number("threshold", threshold) < n:
        raise ValueError(f"threshold must be an effective size between 0 and n = {n}; got {threshold}")
    return math.log((n / threshold - 1) / (1 / rule.ess - 1)) / math.log(1 / rule.variance)


def _rule(safeguard: Safeguard | None) -> Safeguard:
    if safeguard is None:
        return Safeguard()
    return checks.instance("safeguard", safeguard, Safeguard, "a Safeguard")


def variance_gradient(weights: Any, statistics: Any) -> np.ndarray:
    """``grad S = 2 sum W^2 (t - mean t)``: how the variance of the weights changes with ``theta``."""
    W, t = np.asarray(weights), np.asarray(statistics)
    return 2 * (W**2 @ t - np.sum(W**2) * (W @ t))


def _on_weights(
    W: np.ndarray, total: float, cap: float, rule: Safeguard, log_ratios: Callable[[float], np.ndarray]
) -> AllowedStep:
    """By bisection, or by halving, on the weights themselves; what is returned satisfies one of the rules."""
    n = W.size
    with np.errstate(divide="ignore"):
        logs = np.log(W)

    def holds(step: float) -> str | None:
        new = logs + log_ratios(step)
        new = np.exp(new - new.max())
        square = float(np.sum(new**2) / new.sum() ** 2)
        if rule.ess * n * square <= 1:
            return "ess"
        return "variance" if rule.variance * (square - 1 / n) <= total - 1 / n else None

    if holds(cap):
        return AllowedStep(cap, "schedule")
    low, high, name = 0.0, cap, "variance"
    for _ in range(HALVINGS):
        middle = 0.5 * high if rule.mode == "line-search" else 0.5 * (low + high)
        found = holds(middle)
        if found is None:
            high = middle
        else:
            low, name = middle, found
            if rule.mode == "line-search":
                break
    return AllowedStep(low, name)
