"""What stochastic gradient methods guarantee, in expectation, on ``f = (1/n) sum f_i``.

Rows are drawn uniformly with replacement; ``k`` counts updates of one term each. ``L`` is the largest smoothness
constant of a term, ``mu`` the strong convexity of ``f``.
"""

from typing import Any

import numpy as np

from cumulant.optim.rates._constants import constants, positive, ratio, steps


def sgd(C: float, mu: float, k: Any, refined: bool = False) -> Any:
    """``E |x_k - x*|^2 <= C^2 / (mu^2 k)`` with steps ``tau_k = 1 / (mu (k + 1))``, whatever the start.

    ``f`` is ``mu``-strongly convex and ``E |grad f_i(x)|^2 <= C^2`` where the iterates go (on all of space the two
    contradict each other: project, or bound ``C`` along the run). Peyré 2021, theorem 2, states ``R / (k + 1)`` with
    ``R = max(|x_0 - x*|, C^2 / mu^2)``, which is false at ``k = 1``: its induction multiplies by ``1 - 2 mu tau_0 =
    -1``. `refined`: ``C^2 (k - H_k) / (mu^2 k (k - 1))`` from ``k = 2`` on, ``H_k`` the harmonic numbers, which implies
    the printed bound there.

    With ``f`` ``L``-smooth, ``E f(x_k) - f*`` is at most ``L / 2`` times that. Infinite at ``k = 0``.

    >>> sgd(1.0, 1.0, [1, 2, 4]), sgd(1.0, 1.0, [2, 3], refined=True).round(6)
    (array([1.  , 0.5 , 0.25]), array([0.25    , 0.194444]))
    """
    constants(C=C)
    positive(mu=mu)
    k = steps(k)
    if not np.all(k == np.floor(k)):
        raise ValueError(f"k, the number of updates, must be whole; got {k}")
    bound = ratio(1.0, k)
    if refined:
        harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, max(int(np.max(k, initial=0)), 1) + 1))])
        bound = np.where(k >= 2, ratio(k - harmonic[k.astype(int)], k * (k - 1)), bound)[()]
    return C**2 / mu**2 * bound


def sgd_recursion(step_sizes: Any, C: float, mu: float, distance_squared: float) -> np.ndarray:
    """``e_{k+1} = max(1 - 2 mu tau_k, 0) e_k + tau_k^2 C^2``: bounds on ``E |x_k - x*|^2`` for any steps, k = 0, 1, ...

    Under the assumptions of `sgd`; ``mu = 0`` for functions that are convex (Peyré 2021, equation 52).

    >>> sgd_recursion([1.0, 0.5], C=1.0, mu=1.0, distance_squared=9.0)
    array([9.  , 1.  , 0.25])
    """
    constants(C=C, mu=mu, distance_squared=distance_squared)
    taus = _step_sizes(step_sizes)
    bounds = np.empty(taus.size + 1)
    bounds[0] = distance_squared
    for k, tau in enumerate(taus):
        bounds[k + 1] = max(1 - 2 * mu * tau, 0.0) * bounds[k] + tau**2 * C**2
    return bounds


def sgd_decreasing(L: float, mu: float, k: Any, distance_squared: float, noise: float) -> Any:
    """``E |x_k - x*|^2 <= max(4 L |x_0 - x*|^2 / mu, 8 noise / mu^2) / (k + 4 L / mu)``.

    Steps ``1 / (2 L + mu k / 2)``, terms convex and ``L``-smooth, ``noise = E |grad f_i(x*)|^2``. By induction from
    ``e' <= (1 - mu tau) e + 2 tau^2 noise``, which holds for ``tau <= 1 / (2 L)`` (Moulines and Bach 2011).

    >>> sgd_decreasing(L=1.0, mu=1.0, k=[0, 4], distance_squared=2.0, noise=1.0)
    array([2., 1.])
    """
    constants(L, mu, distance_squared=distance_squared, noise=noise)
    positive(mu=mu)
    return (max(4 * L * distance_squared / mu, 8 * noise / mu**2) / (steps(k) + 4 * L / mu))[()]


def sga(step_sizes: Any, C: float, distance_squared: float, mu: float = 0.0) -> np.ndarray:
    """Bounds on ``E f(mean of x_1 ... x_k) - f*`` for k = 1, ..., K and any steps ``tau_0 >= ... >= tau_K``.

    ``f`` is convex and ``E |grad f_i|^2 <= C^2`` where the iterates go. With ``e_l`` the bounds of `sgd_recursion`,

        (1/k) [ e_1 / (2 tau_1) + sum_{l=2}^k e_l (1/tau_l - 1/tau_{l-1}) / 2 + C^2 / 2 sum_{l=1}^k tau_l ],

    the sum of ``f(x_l) - f* <= (e_l - e_{l+1}) / (2 tau_l) + tau_l C^2 / 2`` by parts (Zinkevich 2003). A constant step
    gives ``e_1 / (2 tau k) + tau C^2 / 2``, steps like ``1 / sqrt(k)`` the order ``log(k) / sqrt(k)``. `sga_constant`
    is for means that include the start.

    >>> sga([0.1] * 4, C=1.0, distance_squared=1.0).round(4)
    array([5.1   , 2.575 , 1.7333])
    """
    taus = _step_sizes(step_sizes)
    if taus.size < 2 or np.any(np.diff(taus) > 0):
        raise ValueError("step_sizes must be at least two, and must not increase")
    bounds = sgd_recursion(taus, C, mu, distance_squared)[1:-1]
    inverse, later = 1 / (2 * taus[1:]), taus[1:]
    weights = np.diff(inverse, prepend=0.0)
    return np.cumsum(bounds * weights + C**2 / 2 * later) / np.arange(1, later.size + 1)


def sga_constant(C: float, distance_squared: Any, k: Any, step_size: Any = None) -> Any:
    """``E f(mean of x_0 ... x_{k-1}) - f* <= |x_0 - x*|^2 / (2 tau k) + tau C^2 / 2``, a constant step ``tau``.

    ``f`` is convex and ``E |grad f_i|^2 <= C^2`` where the iterates go. Without a `step_size` it is the best one for
    each ``k``, `sga_best_step`, which gives ``C |x_0 - x*| / sqrt(k)`` (Nemirovski et al. 2009, section 2.2).
    Infinite at ``k = 0``.

    >>> sga_constant(2.0, 1.0, [25, 100]), sga_constant(2.0, 1.0, [25, 100], step_size=0.1)
    (array([0.4, 0.2]), array([0.4 , 0.25]))
    """
    constants(C=C, distance_squared=distance_squared)
    k, distance = steps(k), np.asarray(distance_squared, dtype=np.float64)
    if step_size is None:
        return C * ratio(np.sqrt(distance), np.sqrt(k))
    tau = np.asarray(step_size, dtype=np.float64)
    if not np.all(np.isfinite(tau) & (tau > 0)):
        raise ValueError(f"step_size must be positive and finite; got {step_size}")
    return (ratio(distance, 2 * tau * k) + tau * C**2 / 2)[()]


def sga_best_step(C: float, distance_squared: Any, k: Any) -> Any:
    """``tau = |x_0 - x*| / (C sqrt(k))``: the constant step with the smallest bound `sga_constant` after ``k`` updates.

    >>> float(sga_best_step(2.0, 1.0, 100))
    0.05
    """
    constants(distance_squared=distance_squared)
    positive(C=C)
    return ratio(np.sqrt(np.asarray(distance_squared, dtype=np.float64)), C * np.sqrt(steps(k)))


def sag_start(L: float, n: int, gap: float, distance_squared: float, noise: float) -> float:
    """``C_0 = f(x_0) - f* + 4 L / n |x_0 - x*|^2 + noise / (16 L)``, ``noise = (1/n) sum |grad f_i(x*)|^2``.

    What `sag` starts from when the stored gradients are zero (Schmidt, Le Roux and Bach 2017, theorem 1).

    >>> sag_start(L=1.0, n=4, gap=1.0, distance_squared=2.0, noise=16.0)
    4.0
    """
    constants(L, gap=gap, distance_squared=distance_squared, noise=noise)
    positive(n=n)
    return float(gap + 4 * L / n * distance_squared + noise / (16 * L))


def sag(L: float, n: int, k: Any, C0: float, mu: float = 0.0) -> Any:
    """``E f(x_k) - f* <= (1 - min(mu / (16 L), 1 / (8 n)))^k C_0``, steps ``1 / (16 L)``.

    With ``mu = 0`` the bound is ``32 n C_0 / k``, on the value at the mean of the iterates. Schmidt, Le Roux and Bach
    2017, theorem 1; ``C_0`` from `sag_start`.

    >>> sag(L=1.0, n=2, k=[0, 1], C0=1.0, mu=1.0), float(sag(1.0, 2, 64, 1.0))
    (array([1.    , 0.9375]), 1.0)
    """
    constants(L, mu, C0=C0)
    positive(n=n)
    k = steps(k)
    if mu > 0:
        return (C0 * (1 - min(mu / (16 * L), 1 / (8 * n))) ** k)[()]
    return ratio(32 * n * C0, k)


def saga(L: float, mu: float, n: int, k: Any, distance_squared: float, gap: float) -> Any:
    """``E |x_k - x*|^2 <= (1 - min(1 / (4 n), mu / (3 L)))^k (|x_0 - x*|^2 + 2 n / (3 L) (f(x_0) - f*))``.

    Steps ``1 / (3 L)``, every term ``mu``-strongly convex, stored gradients those at the start (Defazio, Bach and
    Lacoste-Julien 2014, corollary 1).

    >>> float(saga(L=1.0, mu=1.0, n=1, k=1, distance_squared=1.0, gap=1.5))
    1.5
    """
    constants(L, mu, distance_squared=distance_squared, gap=gap)
    positive(mu=mu, n=n)
    start = distance_squared + 2 * n / (3 * L) * gap
    return (start * (1 - min(1 / (4 * n), mu / (3 * L))) ** steps(k))[()]


def svrg_contraction(L: float, mu: float, tau: float, inner: int) -> float:
    """``1 / (mu tau (1 - 2 L tau) inner) + 2 L tau / (1 - 2 L tau)``: by how much a stage of SVRG contracts.

    Johnson and Zhang (2013, theorem 1).

    >>> round(svrg_contraction(L=1.0, mu=0.1, tau=0.1, inner=1000), 6)
    0.375
    """
    constants(L, mu)
    positive(mu=mu, inner=inner)
    if not 0 < tau < 1 / (2 * L):
        raise ValueError(f"tau, the step size, must be in (0, 1/(2L)) = (0, {1 / (2 * L):g}); got {tau}")
    return float(1 / (mu * tau * (1 - 2 * L * tau) * inner) + 2 * L * tau / (1 - 2 * L * tau))


def svrg(L: float, mu: float, tau: float, inner: int, stage: Any, gap: float = 1.0) -> Any:
    """``E f(x_s) - f* <= a^s (f(x_0) - f*)``, ``a`` from `svrg_contraction`, when stages end in a random iterate.

    Terms convex and ``L``-smooth; ``SVRG(snapshot="random")`` (Johnson and Zhang 2013, theorem 1). Says something where
    ``a < 1``.

    >>> svrg(L=1.0, mu=0.1, tau=0.1, inner=1000, stage=[0, 1, 2]).round(6)
    array([1.      , 0.375   , 0.140625])
    """
    constants(gap=gap)
    return (svrg_contraction(L, mu, tau, inner) ** steps(stage) * gap)[()]


def noisy_gradient(
    step_sizes: Any, L: float, mu: float, noise: tuple[float, float], distance_squared: float
) -> np.ndarray:
    """A bound on ``E |x_k - x*|^2`` for ``k = 0, 1, ...`` of (projected, proximal) steps along unbiased gradients.

    With ``f`` ``mu``-strongly convex and ``L``-smooth and ``E |g - grad f(x)|^2 <= a |x - x*|^2 + b``
    (`optim.gradients`; independent draws): ``E |x_{k+1} - x*|^2 <= (1 - 2 tau mu + tau^2 (L^2 + a)) E |x_k - x*|^2 +
    tau^2 b``. Proximal maps do not expand, so ``|x_{k+1} - x*|`` is at most the distance of ``x_k - tau g`` from
    ``x* - tau grad f(x*)``; expand the square (Robbins and Monro 1951; Nemirovski et al. 2009, section 2.1).

    >>> noisy_gradient([0.5, 0.5], L=1.0, mu=1.0, noise=(0.0, 1.0), distance_squared=4.0)
    array([4.    , 1.25  , 0.5625])
    """
    constants(L, mu, distance_squared=distance_squared, noise=noise)
    bounds = [float(distance_squared)]
    for tau in _step_sizes(step_sizes):
        bounds.append((1 - 2 * tau * mu + tau**2 * (L**2 + noise[0])) * bounds[-1] + tau**2 * noise[1])
    return np.array(bounds)


def _step_sizes(values: Any) -> np.ndarray:
    taus = np.asarray(values, dtype=np.float64)
    if taus.ndim != 1 or taus.size == 0 or not np.all(np.isfinite(taus) & (taus > 0)):
        raise ValueError(f"step_sizes must be a vector of positive numbers, one for each update; got {values}")
    return taus
