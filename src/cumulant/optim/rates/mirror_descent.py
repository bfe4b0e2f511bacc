"""What mirror descent guarantees on functions that are smooth relative to its entropy."""

import math
from typing import Any

import numpy as np

from cumulant.optim.rates._constants import constants, positive, ratio, steps


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
    if mu == 0:
        return ratio(L * D0, k)
    if mu == L:
        return ratio(0.0, k)
    with np.errstate(over="ignore"):
        return ratio(mu * D0, np.expm1(k * math.log1p(mu / (L - mu))))


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
    positive(tau=tau)
    return ratio(D0, tau * steps(k))


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


# Stochastic mirror descent on the likelihood of an exponential family, in expectation (Le Priol 2021, section 5.6).
# D_n = D_A(theta*; theta_n) = KL(p_theta_n || p_theta*) is the reverse of the risk f - f*.


def smd_variance(n: Any, C: float, D0: float = 0.0, start: int = 0) -> Any:
    """``E [f(average) - f*] <= (s (s + 1) D0 + 4 C n) / (n (n + 2 s + 1))`` with steps ``2 / (k + s + 1)``.

    For the average of the iterates ``k = 1, ..., n`` weighted by ``k + s``, ``s = start``; ``4 C / (n + 1)`` from ``s =
    0``, whose first step forgets the start. Under assumption (5.31) of Le Priol (2021), ``E S_{A*}(mu - gamma g, mu -
    gamma grad f) <= gamma^2 C`` at all iterates *and all steps used*: a constant that grows without bound as steps
    shrink gives nothing. Proof: one step has ``gamma E F' <= (1 - gamma) D - E D' + gamma^2 C``, ``F = f - f*``; with
    these steps and weights it telescopes. The thesis refers to Hanzely and Richtárik (2021), lemma 4.8, and gives no
    constants.

    Parameters
    ----------
    n : int or array of int
        Numbers of steps, at least 1.
    D0 : float
        ``D_A(theta*; theta)`` at the start; without effect where ``start = 0``.
    start : int
        ``s``: the first step is ``2 / (s + 2)``.

    Examples
    --------
    >>> smd_variance([1, 199], 1.0)
    array([2.  , 0.02])
    """
    constants(C=C, D0=D0)
    n = steps(n)
    if not np.all(n >= 1):
        raise ValueError(f"n must be at least 1; got {n}")
    if start < 0:
        raise ValueError(f"start must not be negative; got {start}")
    return ((start * (start + 1) * D0 + 4 * C * n) / (n * (n + 2 * start + 1)))[()]


def smd_gap(n: Any, gamma: Any, C: float, D0: float) -> Any:
    """``E D_n <= P D0 + (1 - P) C``, ``P = prod_{i <= n} (1 - gamma_i)``: for any steps in (0, 1], on a likelihood.

    ``C = min f - E min f_X = E A*(T) - A*(mu*)`` is the optimality gap of single observations,
    `families.risk.gap_constant`. Proof: ``D_n = D_{A*}(mu_n; mu*)`` is convex in ``mu_n = (1 - gamma) mu_{n-1} +
    gamma T``. It implies ``P D0 + C``, the form that follows from assumption 5.35 of Le Priol 2021; it does not go to
    zero, however small the steps.

    Parameters
    ----------
    n : int or array of int
        Numbers of steps.
    gamma : float or array
        A constant step, or the sizes of steps 1, 2, ...

    Examples
    --------
    >>> float(smd_gap(1, 0.5, 1.0, 3.0))                            # (3 + 1) / 2
    2.0
    """
    constants(C=C, D0=D0)
    n, gamma = steps(n), np.asarray(gamma, dtype=np.float64)
    if not np.all((gamma > 0) & (gamma <= 1)):
        raise ValueError(f"gamma must be in (0, 1]; got {gamma}")
    products = np.concatenate([[1.0], np.cumprod(1 - np.atleast_1d(gamma))])
    kept = (1 - gamma) ** n if gamma.ndim == 0 else products[n.astype(int)]
    return (kept * D0 + (1 - kept) * C)[()]


def smd_optimum_variance_start(relative_smoothness: float = 1.0, relative_strong_convexity: float = 1.0) -> int:
    """The first ``N0`` whose step ``(2 N0 + 1) / (alpha (N0 + 1)^2)`` is at most ``1 / (2 beta)``.

    >>> smd_optimum_variance_start()
    3
    """
    constants(relative_smoothness, relative_strong_convexity)
    start = 0
    while 2 * start + 1 > relative_strong_convexity * (start + 1) ** 2 / (2 * relative_smoothness):
        start += 1
    return start


def smd_optimum_variance(N: Any, C: float, D0: float, start: int, relative_strong_convexity: float = 1.0) -> Any:
    """``E D_N <= (N0^2 D_{N0} + 4C (N - N0) / alpha^2) / N^2`` with steps ``(2n + 1) / (alpha (n + 1)^2)`` from ``N0``.

    Under the variance assumption at the optimum, ``E D_{A*}(mu - 2 gamma g(theta*); mu) <= 2 gamma^2 C`` (Le Priol
    2021, 5.33): one step gives ``E D_{n+1} <= (1 - gamma alpha) D_n + gamma^2 C`` for ``gamma <= 1 / (2 beta)``.
    ``C`` is 1 for the normal distribution of known variance, and infinite for families with a barrier, such as the
    normal distribution of known mean. Under assumption (5.31) with constant ``C`` the same holds, by the one step of
    `smd_variance`.

    Parameters
    ----------
    N : int or array of int
        Counts from `start`: the iterate after ``N - start`` steps.
    D0 : float
        ``D_A(theta*; theta)`` at the start.
    start : int
        ``N0``, at least `smd_optimum_variance_start`.

    Examples
    --------
    >>> float(smd_optimum_variance(2, 1.0, 4.0, 1))                 # (4 + 4) / 4
    2.0
    """
    constants(C=C, D0=D0)
    alpha = relative_strong_convexity
    N = steps(N)
    if not np.all(max(start, 1) <= N):
        raise ValueError(f"N must be at least start = {start} and positive; got {N}")
    return ((start**2 * D0 + 4 * C * (N - start) / alpha**2) / N**2)[()]
