"""Expectations over a gamma variable to rounding error, for any shape and however close the integrand's pole.

With ``W = p e^t ~ Gamma(p, 1)``, the density of ``t`` is proportional to ``exp(-p (e^t - 1 - t))``. In ``t`` the
integrands of this package are analytic in a strip of half-width pi/2, so the trapezoidal rule converges
exponentially, and every term is positive: nothing cancels. Where the integrand has stopped varying (``W`` far below
its pole) the density is a pure exponential, and the rest of the infinite sum is a geometric series in closed form:
small shapes cost no more than others.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from cumulant.families.special import excess_numpy

_LOG_EPS = 38.0  # e^-38 is below the rounding of a double
_BLOCK = 1 << 19  # nodes held in memory at once


def gamma_blocks(shape: np.ndarray, pole: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield ``(index, t, weight)``: nodes and weights (which add up to one), a row for each entry in `index`.

    ``E f(W) = sum weight * f(shape * exp(t))`` for ``W ~ Gamma(shape, 1)`` and ``f(w)`` that is smooth on the scale of
    ``pole + w`` (a function of ``log(pole + w)`` and its exponentials), with ``pole > 0``.
    """
    step = 0.4 / np.sqrt(np.maximum(shape, 5.0))
    # Left: where f has stopped varying, or, for shapes above 2, where the density has died (f grows like 1/w at most).
    flat = np.minimum(np.log(pole) - np.log(shape), 0.0) - _LOG_EPS
    dead = np.where(shape >= 240.0, np.sqrt(240.0 / shape), 80.0 / shape + 1.0)
    left = np.where(shape > 2.0, np.maximum(flat, -dead), flat)
    right = np.where(shape > 60.0, np.sqrt(160.0 / shape), np.log1p(160.0 / shape))
    count = np.ceil((right - left) / step).astype(int) + 1
    order = np.argsort(count)
    start = 0
    while start < order.size:
        stop = int(np.searchsorted(np.cumsum(count[order[start:]]), _BLOCK)) + start
        index = order[start : max(stop, start + 1)]
        size = int(count[index[-1]])
        place = np.arange(size)
        inside = place < count[index, None]  # rows of one block differ in length
        t = left[index, None] + step[index, None] * np.where(inside, place, count[index, None] - 1)
        p = shape[index, None]
        with np.errstate(over="ignore", under="ignore"):
            weight = np.where(inside, np.exp(-p * _exp_excess(t)), 0.0)
            # Nodes left of the first: weights e^{p (t - k h)}, k >= 1, to a common constant; there f(w) = f(0).
            ratio = p[:, 0] * step[index]
            weight[:, 0] += weight[:, 0] / np.expm1(np.minimum(ratio, 700.0))
        yield index, t, weight / weight.sum(axis=1, keepdims=True)
        start += index.size


def _exp_excess(t):
    """``e^t - 1 - t`` without cancellation."""
    near = np.abs(t) < 0.5
    grown = np.expm1(t)
    return np.where(near, excess_numpy(np.where(near, grown, 0.0)), grown - t)


def line_nodes(family: Any, theta: np.ndarray, count: int = 4001) -> tuple[np.ndarray, np.ndarray]:
    """Observations and weights for expectations in a family of numbers, or of angles: the trapezoidal rule.

    In ``x``, ``log x`` or ``logit x``, whichever maps the support to the whole line, where the density falls
    exponentially on both sides; cut where it is below ``e^-45`` of its largest value.
    """
    low, high = family.ends

    def point(y):
        if np.isfinite(low) and np.isfinite(high):
            x = 1.0 / (1.0 + np.exp(-y))
            return x, -np.logaddexp(0.0, y) - np.logaddexp(0.0, -y)
        return (np.exp(y), y) if np.isfinite(low) else (y, np.zeros_like(y))

    if np.isfinite(high - low) and high - low > 1.0 + 1e-9:  # angles
        x = low + (high - low) * np.arange(count) / count
        logs = np.asarray(family.log_prob(x, theta))
    else:
        middle = family.quantile(0.5, theta)
        y = float(
            np.log(middle / (1 - middle)) if np.isfinite(high) else np.log(middle) if np.isfinite(low) else middle
        )
        scale = 1.0 if np.isfinite(low) else float(family.quantile(0.75, theta) - middle)
        far = y + scale * np.concatenate([-np.geomspace(1e4, 1e-3, 2000), np.geomspace(1e-3, 1e4, 2000)])
        with np.errstate(over="ignore"):
            x, slope = point(np.clip(far, -700.0, 700.0) if np.isfinite(low) else far)
            logs = np.asarray(family.log_prob(x, theta)) + slope
        seen = far[np.nan_to_num(logs, nan=-np.inf) > np.nanmax(logs) - 45.0]
        x, slope = point(np.linspace(seen[0], seen[-1], count))
        logs = np.asarray(family.log_prob(x, theta)) + slope
    weight = np.exp(logs - logs.max())
    return x, weight / weight.sum()


def normal_nodes(strip: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a standard normal expectation, for integrands analytic in ``|Im g| < strip``.

    The trapezoidal rule again: its error is ``exp(-2 pi strip / step)`` or ``exp(-2 pi^2 / step^2)``, whichever is
    larger.
    """
    step = min(0.5, 2 * np.pi * strip / _LOG_EPS)
    half = int(np.ceil(9.5 / step))
    g = step * np.arange(-half, half + 1)
    weight = np.exp(-0.5 * g * g)
    return g, weight / weight.sum()
