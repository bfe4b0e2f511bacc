"""Which prior mean is best, and the landscape of risks over priors, for families of gamma type."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.errors import NotConvergedError
from cumulant.families.risk._arguments import grid
from cumulant.families.risk.exact import expectation_map_gamma, risk_map_gamma


def prior_mean_rule(n0: Any) -> Any:
    """``1 + 1/n0``, the ratio ``mu0/mu*`` that cancels the bias term of the bound (5.19) for a normal variance.

    A rule of thumb, not the optimum: the exact minimiser `best_prior_mean` depends on ``n`` as well, and the risk on
    this line exceeds the least one by up to about a half (Le Priol 2021, figure 5.5, whose caption says "coincides").
    As ``n`` grows the minimiser tends to ``1 + 2/(alpha n0)``, which is ``1 + 4/n0`` here.

    >>> prior_mean_rule([0.1, 1.0, 10.0])
    array([11. ,  2. ,  1.1])
    """
    (n0,) = grid(positive=("n0",), n0=n0)
    return (1.0 + 1.0 / n0)[()]


def best_prior_mean(n: Any, n0: Any, alpha: Any) -> Any:
    """The ratio ``mu0/mu*`` that minimises the exact risk `risk_map_gamma`, for a prior of strength ``n0 > 0``.

    The derivative of the risk in ``a = n0 r`` is ``alpha E[z (1 - z)] / (n0 + n)``, ``z = mu*/mu_n``: the minimiser
    is the root of ``E z^2 = E z``, found by Newton's method kept inside a bracket. The arguments broadcast.

    >>> best_prior_mean([1, 5, 10], 1.0, 0.5).round(3)
    array([1.603, 2.866, 3.565])
    """
    n, n0, alpha = grid(positive=("n0", "alpha"), n=n, n0=n0, alpha=alpha)

    def excess(log_ratio):  # E z^2 - E z, falling from positive to negative
        return expectation_map_gamma(n, n0, np.exp(log_ratio), alpha, _square_minus)

    position = np.log1p(1.0 / (2 * alpha * n0))
    low, high = np.zeros_like(position) - 1.0, position + 1.0
    for _ in range(12):  # a root is known to exist: widen until the sign changes
        below, above = excess(low) <= 0, excess(high) >= 0
        if not (np.any(below) or np.any(above)):
            break
        low, high = np.where(below, 2 * low, low), np.where(above, 2 * high, high)
    for _ in range(80):
        value = excess(position)
        reach = n0 * np.exp(position) / (n0 + n)
        slope = expectation_map_gamma(n, n0, np.exp(position), alpha, _square_minus_slope) * reach
        low, high = np.where(value > 0, position, low), np.where(value > 0, high, position)
        with np.errstate(divide="ignore", invalid="ignore"):  # a flat or rising slope: bisect
            newton = position + value / slope
        inside = (newton > low) & (newton < high)
        moved = np.where(value == 0, position, np.where(inside, newton, 0.5 * (low + high)))
        settled = np.all(np.abs(moved - position) <= 1e-13 * (1 + np.abs(position)))
        position = moved
        if settled:
            return np.exp(position)[()]
    raise NotConvergedError("the best prior mean was not found to 1e-13; this is a defect, please report the arguments")


def _square_minus(excess, *_):
    return (1.0 + excess) * excess


def _square_minus_slope(excess, *_):
    """``(2z - 1) z^2``: minus ``(n0 + n)`` times the derivative of ``z^2 - z`` in ``a``."""
    z = 1.0 + excess
    return (2.0 * excess + 1.0) * z * z


@dataclass(frozen=True)
class Landscape:
    """Exact risks over priors: `risk` has shape ``(len(n), len(n0), len(ratio))``.

    `best` is the minimising ratio for each ``n`` and ``n0``, `best_risk` the risk there, `rule` the line ``1 + 1/n0``.
    """

    n: np.ndarray
    n0: np.ndarray
    ratio: np.ndarray
    risk: np.ndarray
    best: np.ndarray
    best_risk: np.ndarray
    rule: np.ndarray


def risk_landscape(n: Any, n0: Any, ratio: Any, alpha: float = 0.5) -> Landscape:
    """The exact risk of the posterior mode over a grid of priors, with the best prior mean for each strength.

    >>> risk_landscape([1, 5], [0.1, 1.0], [0.5, 1.0, 2.0]).risk.shape
    (2, 2, 3)
    """
    n, n0, ratio = (np.atleast_1d(grid(value=each)[0]).ravel() for each in (n, n0, ratio))
    risk = risk_map_gamma(n[:, None, None], n0[:, None], ratio, alpha)
    best = best_prior_mean(n[:, None], n0, alpha)
    return Landscape(n, n0, ratio, risk, best, risk_map_gamma(n[:, None], n0, best, alpha), prior_mean_rule(n0))
