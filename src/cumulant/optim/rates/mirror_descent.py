"""What mirror descent guarantees on functions that are smooth relative to its entropy."""

import math
from typing import Any

import numpy as np

from cumulant.optim.rates._constants import constants, steps

__all__ = ["implicit_mirror", "mirror", "mirror_divergence", "mirror_steps", "simplex_radius"]


def mirror(L: float, D0: float, k: Any, mu: float = 0.0) -> Any:
    """``f(x_k) - f(x) <= mu D0 / ((1 + mu/(L - mu))^k - 1)``, which is ``L D0 / k`` for ``mu = 0``; ``D0 = D(x|x_0)``.

    For every ``x``, when ``mu D_psi <= D_f <= L D_psi`` and ``tau = 1/L`` (Lu, Freund and Nesterov 2018, theorem
    3.1). Infinite at ``k = 0``; zero after one step if ``mu = L``, as for the likelihood of an exponential family in
    its own geometry.

    >>> mirror(2.0, 3.0, [1, 2, 6])
    array([6., 3., 1.])
    """
    constants(L, mu, D0=D0)
    k = steps(k)
    with np.errstate(divide="ignore", over="ignore"):
        if mu == 0:
            return (L * D0 / k)[()]
        if mu == L:
            return np.where(k > 0, 0.0, np.inf)[()]
        return (mu * D0 / np.expm1(k * math.log1p(mu / (L - mu))))[()]


def mirror_divergence(L: float, mu: float, D0: float, k: Any) -> Any:
    """``D(x*|x_k) <= (1 - mu/L)^k D(x*|x_0)`` at ``tau = 1/L``: the minimiser first (Lu, Freund, Nesterov 2018).

    >>> mirror_divergence(2.0, 1.0, 1.0, [0, 1, 2])
    array([1.  , 0.5 , 0.25])
    """
    constants(L, mu, D0=D0)
    return ((1 - mu / L) ** steps(k) * D0)[()]


def mirror_steps(D0: float, sizes: Any) -> Any:
    """``f(x_k) - f(x) <= D0 / (tau_1 + ... + tau_k)`` for any steps ``tau_i <= 1/L``; for implicit steps, any size.

    >>> mirror_steps(1.0, [0.5, 0.5, 1.0])
    array([2. , 1. , 0.5])
    """
    constants(D0=D0, sizes=sizes)
    return D0 / np.cumsum(np.asarray(sizes, dtype=np.float64))


def implicit_mirror(tau: float, D0: float, k: Any) -> Any:
    """``f(x_k) - f* <= D(x*|x_0) / (tau k)`` for implicit steps of any size, ``f`` convex (Chen, Teboulle 1993).

    >>> implicit_mirror(0.5, 1.0, [1, 4])
    array([2. , 0.5])
    """
    constants(D0=D0)
    if not tau > 0:
        raise ValueError(f"tau, the step size, must be positive; got {tau}")
    with np.errstate(divide="ignore"):
        return (D0 / (tau * steps(k)))[()]


def simplex_radius(d: int) -> float:
    """``log d``: the largest ``KL(x|x_0)`` on the simplex from the uniform ``x_0``.

    The Euclidean radius is ``|x - x_0|^2 <= 1 - 1/d``: what mirror descent gains on the simplex is not there but in
    the dual norm, ``|grad f|_inf`` in place of ``|grad f|_2`` (Peyré 2021, section 6.2, with the radius corrected).

    >>> round(simplex_radius(8), 6)
    2.079442
    """
    if d < 1:
        raise ValueError(f"d, the number of entries, must be at least 1; got {d}")
    return math.log(d)
