"""Proximal and projected stochastic gradients whose noise grows with the distance from the solution.

The gradients are unbiased and *quadratically bounded*: ``E |g|^2 <= a |x - x*|^2 + b``, as are those of black-box
variational inference (Domke, Garrigos and Gower 2023, definition 5). ``moment = (a, b)`` throughout. Every bound is in
expectation over the draws, which are independent.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from cumulant import checks
from cumulant.optim.rates._constants import constants, steps


class SecondMoment(NamedTuple):
    """The constants of ``E |g|^2 <= a |x - x*|^2 + b``, for every ``x`` (of the set, where one is projected on)."""

    a: float
    b: float


def second_moment_recursion(
    step_sizes: Any, mu: float, moment: tuple[float, float], distance_squared: float, gradient_squared: float = 0.0
) -> np.ndarray:
    """Bounds on ``E |x_k - x*|^2``, k = 0, 1, ..., for proximal steps of any sizes: what the theorems below unroll.

    For ``f + R`` with ``f`` ``mu``-strongly convex, ``R`` convex, ``x* = argmin f + R`` and ``gradient_squared`` at
    least ``|grad f(x*)|^2`` (0 for projections on a set whose interior holds ``x*``), ``e_{k+1} = (1 - 2 tau mu + 2 a
    tau^2) e_k + 2 tau^2 (b + |grad f(x*)|^2)``.

    Proximal maps do not expand and leave ``x* = prox(x* - tau grad f(x*))`` in its place (Domke, Garrigos and Gower
    2023, proof of theorem 7).

    >>> second_moment_recursion([0.25, 0.25], mu=1.0, moment=(1.0, 0.5), distance_squared=4.0)
    array([4.       , 2.5625   , 1.6640625])
    """
    a, b = _moment(moment)
    constants(mu=mu, distance_squared=distance_squared, gradient_squared=gradient_squared)
    taus = np.asarray(step_sizes, dtype=np.float64)
    if taus.ndim != 1 or not np.all(np.isfinite(taus) & (taus > 0)):
        raise ValueError(f"step_sizes must be a vector of positive numbers, one for each update; got {step_sizes}")
    bounds = np.empty(taus.size + 1)
    bounds[0] = distance_squared
    for k, tau in enumerate(taus):
        bounds[k + 1] = (1 - 2 * tau * mu + 2 * a * tau**2) * bounds[k] + 2 * tau**2 * (b + gradient_squared)
    return bounds


def proximal_sgd(
    mu: float,
    moment: tuple[float, float],
    step: float,
    k: Any,
    distance_squared: float,
    gradient_squared: float = 0.0,
) -> Any:
    """``E |x_k - x*|^2 <= (1 - step mu)^k |x_0 - x*|^2 + (2 step / mu) (b + |grad f(x*)|^2)``.

    For ``0 < step <= min(mu / (2 a), 1 / mu)``, by proximal steps (Domke, Garrigos and Gower 2023, theorem 7).

    >>> round(float(proximal_sgd(0.8768, (77.38, 116.07), 0.005665, 3000, 2.8, 11.0)), 2)
    1.64
    """
    a, b = _moment(moment)
    _strongly(mu, step, min(mu / (2 * a) if a else math.inf, 1 / mu))
    constants(distance_squared=distance_squared, gradient_squared=gradient_squared)
    return ((1 - step * mu) ** steps(k) * distance_squared + 2 * step / mu * (b + gradient_squared))[()]


def proximal_sgd_decaying(
    mu: float, moment: tuple[float, float], k: Any, distance_squared: float, gradient_squared: float = 0.0
) -> Any:
    """``E |x_k - x*|^2 <= 16 floor(a / mu^2)^2 |x_0 - x*|^2 / k^2 + 8 (b + |grad f(x*)|^2) / (mu^2 k)``.

    For the steps of `schedules.Switching(mu / (2 a), 1 / mu)`, by proximal steps (Domke, Garrigos and Gower 2023,
    theorem 7). Infinite at ``k = 0``.

    >>> round(float(proximal_sgd_decaying(0.8768, (77.38, 116.07), 20000, 2.8, 11.0)), 3)
    0.067
    """
    a, b = _moment(moment)
    constants(distance_squared=distance_squared, gradient_squared=gradient_squared)
    _at_least_the_curvature(a, mu)
    return _decaying(a / mu**2, 8 * (b + gradient_squared) / mu**2, k, distance_squared)


def proximal_sgd_logarithmic(
    mu: float,
    moment: tuple[float, float],
    scale: float,
    n_steps: int,
    distance_squared: float,
    gradient_squared: float = 0.0,
) -> float:
    """``E |x_T - x*|^2 <= |x_0 - x*|^2 / T + (2 A log T / (mu T)) (b + |grad f(x*)|^2)`` for ``step = A log T / T``.

    With ``A = scale >= 1 / mu``, and ``T = n_steps`` so large that ``T / log T >= max(2 a A / mu, A mu)``; proximal
    steps (Domke, Garrigos and Gower 2023, corollary 34).

    >>> round(proximal_sgd_logarithmic(1.0, (1.0, 1.0), 1.0, 100, 4.0), 6)
    0.132103
    """
    a, b = _moment(moment)
    constants(distance_squared=distance_squared, gradient_squared=gradient_squared)
    T = n_steps
    if not (T >= 2 and scale >= 1 / mu and T / math.log(T) >= max(2 * a * scale / mu, scale * mu)):
        raise ValueError(
            "the steps A log T / T have a rate for A >= 1 / mu and T / log T >= max(2 a A / mu, A mu); "
            f"got A = {scale}, T = {T}, a = {a}, mu = {mu}"
        )
    return distance_squared / T + 2 * scale * math.log(T) / (mu * T) * (b + gradient_squared)


def projected_sgd(mu: float, moment: tuple[float, float], step: float, k: Any, distance_squared: float) -> Any:
    """``E |x_k - x*|^2 <= (1 - mu step / 2)^k |x_0 - x*|^2 + 2 step b / mu``.

    For ``0 < step <= min(mu / (2 a), 2 / mu)``, by steps that are projected on a convex set which holds the minimiser
    (Domke, Garrigos and Gower 2023, theorem 10). With ``b = 0`` convergence is geometric (corollary 14).

    >>> round(float(projected_sgd(0.8768, (309.5, 0.0), 0.001416, 3000, 2.8)), 3)
    0.435
    """
    a, b = _moment(moment)
    _strongly(mu, step, min(mu / (2 * a) if a else math.inf, 2 / mu))
    constants(distance_squared=distance_squared)
    return ((1 - step * mu / 2) ** steps(k) * distance_squared + 2 * step * b / mu)[()]


def projected_sgd_decaying(mu: float, moment: tuple[float, float], k: Any, distance_squared: float) -> Any:
    """``E |x_k - x*|^2 <= 16 floor(2 a / mu^2)^2 |x_0 - x*|^2 / k^2 + 16 b / (mu^2 k)``.

    For the steps of `schedules.Switching(mu / (2 a), 2 / mu)`, projected on a convex set which holds the minimiser
    (Domke, Garrigos and Gower 2023, theorem 10). Infinite at ``k = 0``.

    >>> round(float(projected_sgd_decaying(1.0, (1.0, 1.0), 100, 1.0)), 4)
    0.1664
    """
    a, b = _moment(moment)
    constants(distance_squared=distance_squared)
    _at_least_the_curvature(a, mu)
    return _decaying(2 * a / mu**2, 16 * b / mu**2, k, distance_squared)


def average_discount(a: float, step: float, *, proximal: bool) -> float:
    """``theta = 1 / (1 + 2 a step^2)`` for proximal and ``1 / (1 + a step^2)`` for projected steps.

    The average that theorems 8 and 11 of Domke, Garrigos and Gower (2023) speak of weighs iterate ``t`` by ``theta^t``:
    early iterates weigh more.

    >>> average_discount(2.0, 0.5, proximal=True), average_discount(2.0, 0.5, proximal=False)
    (0.5, 0.6666666666666666)
    """
    return 1 / (1 + (2 if proximal else 1) * a * step**2)


def proximal_sgd_average(
    L: float, moment: tuple[float, float], step: float, n_steps: int, distance_squared: float
) -> float:
    """``E F(mean x) - F* <= step (a |x_0 - x*|^2 / (1 - theta^T) + b)`` for ``F = f + R`` convex, ``step <= 1 / L``.

    The mean of ``x_1 .. x_T`` has the weights of `average_discount`. With ``step = 1 / sqrt(a T)``, ``T >= 2``: at most
    ``(2 a |x_0 - x*|^2 + b) / sqrt(a T)`` (Domke, Garrigos and Gower 2023, theorem 8). For smooth terms and equal
    weights there is `stochastic_proximal_average`.

    >>> round(proximal_sgd_average(2.7817, (77.38, 116.07), (77.38 * 2000) ** -0.5, 2000, 1.0), 3)
    0.523
    """
    a, b = _moment(moment)
    constants(L, distance_squared=distance_squared)
    if not 0 < step <= 1 / L:
        raise ValueError(f"step must be positive and at most 1 / L = {1 / L:.6g}; got {step}")
    return step * (a * distance_squared * _total(average_discount(a, step, proximal=True), n_steps) + b)


def projected_sgd_average(moment: tuple[float, float], step: float, n_steps: int, distance_squared: float) -> float:
    """``E f(mean x) - f* <= (step / 2) (a |x_0 - x*|^2 / (1 - theta^T) + b)`` for ``f`` convex.

    The mean of ``x_0 .. x_{T-1}`` has the weights of `average_discount`. With ``step = sqrt(2 / (a T))``, ``T >= 2``:
    at most ``(2 a |x_0 - x*|^2 + b) / sqrt(2 a T)`` (Domke, Garrigos and Gower 2023, theorem 11).

    >>> round(projected_sgd_average((2.0, 1.0), 0.1, 100, 1.0), 4)
    0.166
    """
    a, b = _moment(moment)
    constants(distance_squared=distance_squared, step=step)
    return step / 2 * (a * distance_squared * _total(average_discount(a, step, proximal=False), n_steps) + b)


def _total(theta: float, n_steps: int) -> float:
    """``1 / (1 - theta^T)``."""
    if n_steps < 1:
        raise ValueError(f"n_steps must be at least 1; got {n_steps}")
    return -1 / math.expm1(n_steps * math.log(theta)) if theta < 1 else math.inf


def _at_least_the_curvature(a: float, mu: float) -> None:
    """Gradients of a strongly convex function grow like ``mu |x - x*|``: a smaller ``a`` is a mistake."""
    if not (mu > 0 and a >= mu**2):
        raise ValueError(f"a must be at least mu^2, the growth of the gradient itself; got a = {a}, mu = {mu}")


def _decaying(ratio: float, floor: float, k: Any, distance_squared: float) -> Any:
    k = steps(k)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = 16 * math.floor(ratio) ** 2 * distance_squared / k**2 + floor / k
    return np.where(k > 0, bound, np.inf)[()]


def _moment(moment: tuple[float, float]) -> tuple[float, float]:
    constants(moment=moment)
    return float(moment[0]), float(moment[1])


def _strongly(mu: float, step: float, limit: float) -> None:
    checks.positive("mu", mu)
    if not 0 < step <= limit * (1 + 1e-12):
        raise ValueError(f"step must be positive and at most {limit:.6g} for this rate; got {step}")
