"""What proximal gradient methods guarantee on ``F = f + R``, and what penalties do to the solution."""

from typing import Any

import numpy as np

from cumulant import checks
from cumulant.optim.rates._constants import constants, positive, ratio, steps
from cumulant.optim.rates.accelerated import nesterov
from cumulant.optim.rates.gradient_descent import gd_quadratic


def ista(tau: float, R2: float, k: Any) -> Any:
    """``F(x_k) - F* <= R^2 / (2 tau k)``, ``R = |x_0 - x*|``, for convex ``f`` and ``tau <= 1/L``.

    Beck and Teboulle 2009, theorem 3.1. Infinite at ``k = 0``.

    >>> ista(0.5, 1.0, [1, 2, 4])
    array([1.  , 0.5 , 0.25])
    """
    constants(R2=R2)
    positive(tau=tau)
    return ratio(R2, 2 * tau * steps(k))


def fista(tau: float, R2: float, k: Any) -> Any:
    """``F(x_k) - F* <= 2 R^2 / (tau (k + 1)^2)`` for convex ``f`` and ``tau <= 1/L`` (Beck and Teboulle 2009).

    >>> fista(0.5, 1.0, [1, 3])
    array([1.  , 0.25])
    """
    return nesterov(tau, R2, k)


def ista_strongly_convex(L: float, mu: float, tau: float, k: Any, distance: float = 1.0) -> Any:
    """``|x_k - x*| <= h(tau)^k |x_0 - x*|``, ``h`` as in `gd_contraction`: proximal maps do not expand distances.

    For ``mu``-strongly convex ``L``-smooth ``f`` and any convex penalty (Taylor, Hendrickx and Glineur 2018).

    >>> float(ista_strongly_convex(2.0, 1.0, 0.5, 3))
    0.125
    """
    return gd_quadratic(L, mu, tau, k, distance)


def stochastic_proximal_average(
    L: float, step: float, n_steps: Any, distance_squared: float, gap: float, noise: float = 0.0
) -> Any:
    """``E F(mean x) - F* <= |x_0 - x*|^2 / (step T) + (F(x_0) - F*) / T + 5/2 step noise``, ``F = f + R``.

    The mean of ``x_1 .. x_T``, equally weighted; each ``f_i`` convex and ``L``-smooth, ``R`` convex, ``noise = E |grad
    f_i(x*) - grad f(x*)|^2``, ``step <= 1 / (5 L)``. Infinite at ``T = 0``. With ``noise = 0`` it has the form that Le
    Priol (2021, (4.22) and theorem 4.D.2) states for any noise, where it is false: started at ``x*`` its right side is
    zero, and the iterates leave.

    Where the gradients are *quadratically bounded* instead, `proximal_sgd_average` bounds another, weighted average.

    Proof: by the three-point inequality of the proximal map, ``F(x') - F* <= (|x - x*|^2 - |x' - x*|^2) / (2 s) - (1/s
    - L) |x' - x|^2 / 2 + <e, x' - x>`` plus a term of mean zero, ``e = grad f(x) - grad f_i(x)`` and ``s`` the step.
    The last two add up to at most ``|e|^2 / (2 (1/s - L)) <= 5 s |e|^2 / 8``, and ``E |e|^2 <= 4 L (F(x) - F*) + 2
    noise``. So ``E F(x') - F* <= E (|x - x*|^2 - |x' - x*|^2) / (2 s) + (F(x) - F*) / 2 + 5/4 s noise``; add up.

    >>> round(float(stochastic_proximal_average(2.0, 0.01, 100, 2.0, 2.0 - np.log(2), 1.0)), 3)
    2.038
    """
    constants(L, distance_squared=distance_squared, gap=gap, noise=noise)
    if not 0 < checks.number("step", step) <= 1 / (5 * L) * (1 + 1e-12):
        raise ValueError(f"step must be positive and at most 1 / (5 L) = {1 / (5 * L):.6g} for this rate; got {step}")
    return ratio(distance_squared / step + gap, steps(n_steps)) + 2.5 * step * noise


def penalised_residual(lam: Any, R0: float) -> Any:
    """``|A x_lam - y| <= sqrt(2 lam R(x_0))`` for ``x_lam = argmin |A x - y|^2 / 2 + lam R(x)`` and ``A x_0 = y``.

    And ``R(x_lam) <= R(x_0)``: compare the objective at both. So as ``lam -> 0`` the solutions approach those of
    ``A x = y`` with the least ``R`` (Peyré 2021, proposition 9, with the square root restored).

    >>> round(float(penalised_residual(1e-4, 1.0)), 5)
    0.01414
    """
    constants(lam=lam, R0=R0)
    return np.sqrt(2 * np.asarray(lam, dtype=np.float64) * R0)[()]


def ridge_distance(lam: Any, smallest: float, norm: float) -> Any:
    """``|x_lam - A^+ y| <= lam / (s^2 + lam) |A^+ y|``, ``s`` the smallest non-zero singular value of ``A``.

    For ridge regression, whose solution shrinks each singular direction of ``A^+ y`` by ``s^2 / (s^2 + lam)`` (Peyré
    2021, section 7.2).

    >>> float(ridge_distance(1.0, 1.0, 3.0))
    1.5
    """
    constants(lam=lam, norm=norm)
    positive(smallest=smallest)
    lam = np.asarray(lam, dtype=np.float64)
    return (lam / (smallest**2 + lam) * norm)[()]
