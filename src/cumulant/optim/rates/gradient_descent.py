"""What gradient descent guarantees on smooth functions."""

import math
from typing import Any

import numpy as np

from cumulant.optim.rates._constants import constants, positive, steps


def gd_contraction(L: float, mu: float, tau: Any) -> Any:
    """``h(tau) = max(|1 - tau mu|, |1 - tau L|)``: by how much one step shrinks the distance to the minimiser.

    For quadratics with spectrum in ``[mu, L]``, and for every ``mu``-strongly convex ``L``-smooth function. Below one
    exactly for ``0 < tau < 2/L``; smallest, ``(L - mu) / (L + mu)``, at ``tau = 2 / (L + mu)`` (Peyré 2021,
    proposition 4).

    >>> gd_contraction(10.0, 1.0, [0.1, 2 / 11, 0.19, 0.2]).round(6)
    array([0.9     , 0.818182, 0.9     , 1.      ])
    """
    constants(L, mu, tau=tau)
    tau = np.asarray(tau, dtype=np.float64)
    return np.maximum(np.abs(1 - tau * mu), np.abs(1 - tau * L))[()]


def gd_quadratic(L: float, mu: float, tau: float, k: Any, distance: float = 1.0) -> Any:
    """``|x_k - x*| <= h(tau)^k |x_0 - x*|`` on ``<C x, x>/2 - <b, x>`` with spectrum of ``C`` in ``[mu, L]``.

    If ``C`` is singular, let `mu` be its smallest non-zero eigenvalue and ``x*`` the projection of ``x_0`` on the
    solutions. (Peyré 2021, proposition 4, with the 1/2 restored.)

    >>> float(gd_quadratic(10.0, 1.0, 2 / 11, 10, distance=2**0.5))
    0.1901136240...
    """
    constants(distance=distance)
    return (gd_contraction(L, mu, tau) ** steps(k) * distance)[()]


def gd_degenerate_quadratic(tau: float, k: Any, distance_squared: float) -> Any:
    """``f(x_k) - f* <= d^2 / (2 tau) * (2k / (2k + 1))^(2k) / (2k + 1)`` on any convex quadratic, ``0 < tau <= 1/L``.

    ``d`` is the distance of ``x_0`` to the solutions. This is the exact worst case, ``max_t t (1 - t)^(2k)``; it is
    below ``d^2 / (4 e tau k)``, and so below the ``d^2 / (tau k)`` of Peyré 2021, proposition 5.

    >>> float(gd_degenerate_quadratic(0.5, 10, 1.0))
    0.0179471...
    """
    constants(distance_squared=distance_squared)
    positive(tau=tau)
    k = steps(k)
    worst = np.exp(-2 * k * np.log1p(1 / np.where(k > 0, 2 * k, np.inf))) / (2 * k + 1)
    return (distance_squared / (2 * tau) * worst)[()]


def gd_convex(L: float, R2: float, k: Any) -> Any:
    """``f(x_k) - f* <= L R^2 / (4 k + 2)``, ``R = |x_0 - x*|``, for convex ``L``-smooth ``f`` and ``tau = 1/L``.

    Tight: a Huber function attains it (Drori and Teboulle 2014, theorem 3.1). It implies ``L R^2 / (2 (k + 1))``
    (Peyré 2021, theorem 1).

    >>> float(gd_convex(1.0, 1.0, 10))
    0.0238095...
    """
    constants(L, R2=R2)
    return (L * np.asarray(R2) / (4 * steps(k) + 2))[()]


def gd_strongly_convex(L: float, mu: float, k: Any, distance: float = 1.0, *, best_step: bool = False) -> Any:
    """``|x_k - x*| <= (1 - mu/L)^k |x_0 - x*|`` at ``1/L``; with `best_step`, ``((L-mu)/(L+mu))^k`` at ``2/(L+mu)``.

    For ``mu``-strongly convex ``L``-smooth functions (Taylor, Hendrickx and Glineur 2017). Sharper than the
    ``(L / (L + mu))^(k/2)`` of Peyré 2021, equation 26.

    >>> float(gd_strongly_convex(2.0, 1.0, 3))
    0.125
    """
    constants(L, mu, distance=distance)
    return gd_quadratic(L, mu, 2 / (L + mu) if best_step else 1 / L, k, distance)


def gd_decrease(L: float, tau: float, gradient_norm: Any) -> Any:
    """``f(x) - f(x - tau g) >= tau (1 - L tau / 2) |g|^2``: what one step gains; ``|g|^2 / (2 L)`` at ``tau = 1/L``.

    The descent lemma (Nesterov 2004, section 1.2.3), for ``L``-smooth functions, convex or not.

    >>> float(gd_decrease(2.0, 0.5, 1.0))
    0.25
    """
    constants(L, gradient_norm=gradient_norm)
    return tau * (1 - L * tau / 2) * np.asarray(gradient_norm, dtype=np.float64)[()] ** 2


def gd_exact_line_search(L: float, mu: float, k: Any, gap: float = 1.0) -> Any:
    """``f(x_k) - f* <= ((L - mu)/(L + mu))^(2k) (f(x_0) - f*)`` with exact line search (Kantorovich 1948).

    On quadratics with spectrum in ``[mu, L]``; de Klerk, Glineur and Taylor (2017) extend it to strongly convex
    functions.

    >>> float(gd_exact_line_search(10.0, 1.0, 1))                        # (9/11)^2
    0.6694214...
    """
    constants(L, mu, gap=gap)
    return (((L - mu) / (L + mu)) ** (2 * steps(k)) * gap)[()]


def armijo_step(L: float, alpha: float, beta: float, initial: float) -> float:
    """The accepted step is at least ``min(initial, 2 beta (1 - alpha) / L)`` on an ``L``-smooth function.

    Armijo (1966).

    >>> round(armijo_step(10.0, 0.3, 0.5, 1.0), 12)
    0.07
    """
    constants(L)
    return min(initial, 2 * beta * (1 - alpha) / L)


def backtracking_step(L: float, beta: float, initial: float) -> float:
    """`Backtracking` accepts steps of at least ``min(initial, beta / (2 L))`` on an ``L``-smooth function.

    ``beta / L`` until the values differ by no more than rounding (Beck and Teboulle 2009, remark 3.2). Put it in place
    of ``tau`` in `ista` and `fista`: ``L`` is then assumed, where the method does without it.

    >>> backtracking_step(10.0, 0.5, 1.0)
    0.025
    """
    constants(L)
    return min(initial, beta / (2 * L))


def armijo_reductions(L: float, alpha: float, beta: float, initial: float) -> int:
    """At most ``ceil(log(initial L / (2 (1 - alpha))) / log(1/beta))`` reductions, and none if that is negative.

    Armijo (1966).

    >>> armijo_reductions(10.0, 0.3, 0.5, 1.0)
    3
    """
    constants(L)
    return max(0, math.ceil(math.log(initial * L / (2 * (1 - alpha))) / math.log(1 / beta)))
