"""Stochastic proximal steps in stages of constant size, from the variance of the gradients.

For ``F = f + R`` with ``f`` ``mu``-strongly convex and ``L``-smooth, ``R`` convex, ``x* = argmin F``, and unbiased
gradients whose standard deviation at ``x`` is at most ``sqrt(b) + sqrt(a) |x - x*|``, ``noise = (a, b)``. A gradient
step contracts by ``1 - step mu`` for ``step <= 2 / (L + mu)``, proximal maps do not expand, and only the *variance* is
added: these bounds are below those of `second_moment`, which add the second moment, and a batch divides all of it.
"""

import math
from typing import Any

import numpy as np

from cumulant.optim.rates._constants import constants, positive


def staged_sgd(
    mu: float, L: float, noise: tuple[float, float], sizes: Any, lengths: Any, distance_squared: float
) -> np.ndarray:
    """Bounds on ``E |x - x*|^2`` after each stage of ``n = lengths[j]`` steps of size ``sizes[j]``.

    From ``e`` to ``r^n e + (1 - r^n) step^2 v / (1 - r)``, ``r = (1 - step mu)^2``, with the variance ``v = (sqrt(b) +
    sqrt(a e))^2`` at the beginning of the stage; for steps so short that no bound grows: ``step^2 v <= (1 - r) e``.

    >>> staged_sgd(1.0, 2.0, (0.1, 0.01), [0.1, 0.05], [10, 20], 1.0).round(4)
    array([0.1296, 0.0177])
    """
    _check(mu, L, noise, distance_squared)
    e, bounds = float(distance_squared), []
    for step, n in zip(np.ravel(sizes), np.ravel(lengths), strict=True):
        e = _stage(mu, L, noise, float(step), float(n), e)
        bounds.append(e)
    return np.array(bounds)


def staged_sgd_average(
    mu: float, L: float, noise: tuple[float, float], step: float, n_steps: float, distance_squared: float
) -> float:
    """``E F(mean of x_1 .. x_n) - F*`` is at most ``e / (2 step n) + step v`` for steps of one size, at most ``1 / L``.

    ``v`` and the condition on the step as in `staged_sgd`. From ``E F(x_{k+1}) - F* <= (e_k - e_{k+1}) / (2 step) +
    step v``: smoothness, the three-point inequality of the proximal map, and its non-expansiveness for the noise.

    >>> round(staged_sgd_average(1.0, 2.0, (0.1, 0.01), 0.1, 100, 1.0), 4)
    0.0673
    """
    _check(mu, L, noise, distance_squared)
    if step > (1 + 1e-12) / L:
        raise ValueError(f"step must be at most 1 / L = {1 / L:.6g} for the average; got {step}")
    _stage(mu, L, noise, step, n_steps, distance_squared)
    return distance_squared / (2 * step * n_steps) + step * _variance(noise, distance_squared)


def plan_stages(
    mu: float, L: float, noise: tuple[float, float], distance_squared: float, enough: float
) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and lengths of stages, each taking a fifth off the bound, until it is at most `enough`.

    The size of a stage is the one that reduces the bound most in its first step, ``mu e / (v + mu^2 e)``, at most ``1 /
    L``. At least one step.

    >>> sizes, lengths = plan_stages(1.0, 2.0, (0.1, 0.01), 1.0, 0.02)
    >>> bool(staged_sgd(1.0, 2.0, (0.1, 0.01), sizes, lengths, 1.0)[-1] <= 0.02)
    True
    """
    _check(mu, L, noise, distance_squared)
    positive(enough=enough, distance_squared=distance_squared)
    e, found = float(distance_squared), []
    while e > enough or not found:
        v = _variance(noise, e)
        step = min(mu * e / (v + mu**2 * e), 1 / L)
        floor = step * v / (mu * (2 - step * mu) * e)  # where the bound would end, relative to e: at most 1 / 2
        goal = max(0.8, min(enough / e, 1.0))
        count = math.log((goal - floor) / (1 - floor)) / (2 * math.log1p(-step * mu)) if step * mu < 1 else 1.0
        n = max(math.ceil(count), 1)
        found.append((step, n))
        e = _stage(mu, L, noise, step, n, e)
    sizes, lengths = np.array(found).T
    return sizes, lengths


def _stage(mu: float, L: float, noise: tuple[float, float], step: float, n: float, e: float) -> float:
    positive(step=step)
    if step > 2 / (L + mu) * (1 + 1e-12):
        raise ValueError(f"step must be at most 2 / (L + mu) = {2 / (L + mu):.6g}; got {step}")
    plateau = step * _variance(noise, e) / (mu * (2 - step * mu))
    if plateau > e * (1 + 1e-9):
        raise ValueError(f"step {step:.6g} is too long: the bound grows from {e:.6g} towards {plateau:.6g}")
    left = math.exp(2 * n * math.log1p(-step * mu)) if step * mu < 1 else 0.0
    return left * e + (1 - left) * plateau


def _variance(noise: tuple[float, float], e: float) -> float:
    return (math.sqrt(noise[1]) + math.sqrt(noise[0] * e)) ** 2


def _check(mu: float, L: float, noise: tuple[float, float], distance_squared: float) -> None:
    constants(L, mu, noise=noise, distance_squared=distance_squared)
    positive(mu=mu)
