"""What methods with momentum guarantee: Nesterov's, Polyak's, conjugate gradients, and the flow."""

from typing import Any

import numpy as np

from cumulant.optim.rates._constants import constants, positive, ratio, steps


def nesterov(s: float, R2: float, k: Any) -> Any:
    """``f(x_k) - f* <= 2 R^2 / (s (k + 1)^2)``, ``R = |x_0 - x*|``, for convex ``L``-smooth ``f`` and ``s <= 1/L``.

    For ``beta_k = k / (k + 3)``, counted from zero (Nesterov 1983; Su, Boyd and Candès 2016, theorem 6). Infinite at
    ``k = 0``, where the theorem says nothing.

    >>> nesterov(0.25, 1.0, [1, 3, 9])
    array([2.  , 0.5 , 0.08])
    """
    positive(s=s)
    constants(R2=R2)
    k = steps(k)
    return np.where(k > 0, 2 * R2 / (s * (k + 1) ** 2), np.inf)[()]


def nesterov_strongly_convex(L: float, mu: float, k: Any, gap: float, R2: float) -> Any:
    """``f(x_k) - f* <= (1 - sqrt(mu/L))^k (f(x_0) - f* + mu/2 |x_0 - x*|^2)`` with the constant momentum, ``s = 1/L``.

    ``beta = (1 - sqrt(mu/L)) / (1 + sqrt(mu/L))`` (Nesterov 2004, theorem 2.2.3).

    Parameters
    ----------
    gap : float
        ``f(x_0) - f*``.
    R2 : float
        ``|x_0 - x*|^2``.

    Examples
    --------
    >>> nesterov_strongly_convex(4.0, 1.0, [0, 1, 2], 1.0, 2.0)
    array([2. , 1. , 0.5])
    """
    constants(L, mu, gap=gap, R2=R2)
    return ((1 - np.sqrt(mu / L)) ** steps(k) * (gap + mu / 2 * R2))[()]


def nesterov_quadratic_factor(s: float, mu: float) -> float:
    """``1 - s mu``: by what ``f`` shrinks in the end, a step, under the momentum ``k / (k + 3)`` on a quadratic.

    So acceleration with a vanishing friction is linear there, though slower than gradient descent's ``(1 - s mu)^2``;
    only the flow loses the linear rate (Peyré 2021, section 5.3, corrected). An asymptotic factor: a power of ``k``
    comes on top.

    >>> nesterov_quadratic_factor(0.25, 2.0)
    0.5
    """
    positive(s=s)
    constants(mu=mu)
    if s * mu > 1:
        raise ValueError(f"s must be at most 1/mu; got s = {s}, mu = {mu}")
    return 1 - s * mu


def nesterov_flow(R2: float, t: Any, friction: float = 3.0) -> Any:
    """``f(x(t)) - f* <= (r - 1)^2 R^2 / (2 t^2)``, ``r >= 3``: ``2 R^2 / t^2`` for ``r = 3`` (Su, Boyd, Candès 2016).

    >>> nesterov_flow(1.0, [1.0, 2.0])
    array([2. , 0.5])
    """
    constants(R2=R2)
    if not friction >= 3:
        raise ValueError(f"friction must be at least 3 for the rate 1 / t^2; got {friction}")
    return ratio((friction - 1) ** 2 * R2, 2 * np.square(t))


def heavy_ball_contraction(L: float, mu: float) -> float:
    """``rho = (sqrt L - sqrt mu) / (sqrt L + sqrt mu)``: the spectral radius of `HeavyBall` on quadratics.

    >>> round(heavy_ball_contraction(100.0, 1.0), 6)
    0.818182
    """
    constants(L, mu)
    return float((np.sqrt(L) - np.sqrt(mu)) / (np.sqrt(L) + np.sqrt(mu)))


def heavy_ball(L: float, mu: float, k: Any, distance: float = 1.0) -> Any:
    """``|x_k - x*| <= (1 + k (1 + rho)) rho^k |x_0 - x*|`` on quadratics with spectrum in ``[mu, L]``.

    With the best constants and ``x_{-1} = x_0``. Along an eigenvector the error is ``rho^k (U_k(c) - rho U_{k-1}(c))``
    with Chebyshev polynomials of the second kind at a ``c`` in [-1, 1], of which ``|U_k| <= k + 1``; the eigenvalue
    ``L``, where ``c = -1``, attains the bound (the method: Polyak 1964).

    >>> float(heavy_ball(9.0, 1.0, 1))                                   # (1 + 3/2) / 2
    1.25
    """
    constants(L, mu, distance=distance)
    k, rho = steps(k), heavy_ball_contraction(L, mu)
    return ((1 + k * (1 + rho)) * rho**k * distance)[()]


def conjugate_gradient(L: float, mu: float, k: Any, gap: float = 1.0) -> Any:
    """``f(x_k) - f* <= 4 rho^(2k) (f(x_0) - f*)``, ``rho`` as in `heavy_ball_contraction`, on quadratics.

    The sharper form ``(f(x_0) - f*) / T_k((L + mu) / (L - mu))^2`` is returned, with Chebyshev's polynomial ``T_k``
    (Saad 2003, theorem 6.29).

    >>> float(conjugate_gradient(3.0, 1.0, 1))                           # 1 / T_1(2)^2
    0.25
    """
    constants(L, mu, gap=gap)
    k, rho = steps(k), heavy_ball_contraction(L, mu)
    return (gap * (2 * rho**k / (1 + rho ** (2 * k))) ** 2)[()]
