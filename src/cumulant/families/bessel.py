"""Modified Bessel functions of the first kind, as the von Mises-Fisher family needs them: any order, any argument.

Everything is a function of ``s = kappa^2``, in which it is smooth at zero. Orders are raised to at least 50 by the
recurrence that is stable downwards, and there Debye's uniform expansion (DLMF 10.41.3) is exact to rounding. Plain JAX.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

_TOP = 50  # from this order on ten terms of Debye's expansion leave less than a rounding
_TERMS = 10
# Stirling's series for log Gamma(n + 1) - (n log n - n + log(2 pi n) / 2)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


@functools.cache
def _debye(top: float) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients in rising powers of ``t`` of ``sum_k u_k(t) / top^k`` and ``sum_k q_k(t) / top^k`` over ``k >= 1``.

    ``u_k`` are Debye's polynomials (DLMF 10.41.9); those of the derivative are ``v_k = u_k - (1 - t^2) q_k`` with
    ``q_k = t u_{k-1} / 2 + t^2 u_{k-1}'``.
    """
    t, u = np.polynomial.Polynomial([0.0, 1.0]), np.polynomial.Polynomial([1.0])
    first = second = np.polynomial.Polynomial([0.0])
    for k in range(1, _TERMS + 1):
        second = second + (0.5 * t * u + t**2 * u.deriv()) / top**k
        u = 0.5 * t**2 * (1 - t**2) * u.deriv() + ((1 - 5 * t**2) * u).integ() / 8
        first = first + u / top**k
    return first.coef, second.coef


def _expansions(top, t):
    def polynomial(coefficients):
        value = jnp.zeros_like(t)
        for c in reversed(coefficients):
            value = value * t + float(c)
        return value

    first, second = _debye(top)
    return polynomial(first), polynomial(second)


def _orders(order: float) -> tuple[float, int]:
    """The order at which the expansion is used, and how many steps of the recurrence lead down from it."""
    steps = max(0, int(np.ceil(_TOP - order)))
    return order + steps, steps


def _ratio_and_logs(order, s):
    """``G_j = (I_{j+1}/I_j) 2 (j + 1) / kappa``, in (0, 1], for ``j = order``, and the sum of ``log G_j`` from there
    to the top.
    """
    top, steps = _orders(order)
    w = jnp.sqrt(1 + s / top**2)
    u, q = _expansions(top, 1 / w)
    start = 2 * (top + 1) / top * (1 / (1 + w) - q / ((1 + u) * w))

    def down(carry, n):
        ratio, logs = carry
        ratio = 1 / (1 + s / (4 * (n + 1) * (n + 2)) * ratio)
        return (ratio, logs + jnp.log(ratio)), None

    orders = jnp.asarray(top - 1 - np.arange(steps), dtype=s.dtype)
    return jax.lax.scan(down, (start, jnp.zeros_like(s)), orders)[0]


def _normalised_ratio(order, s):
    """``(I_{order+1}(kappa) / I_order(kappa)) 2 (order + 1) / kappa``, one at ``s = 0``."""
    return _ratio_and_logs(order, s)[0]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def log_0f1(order, s):
    """``log[Gamma(order + 1) (2 / kappa)^order I_order(kappa)] = log 0F1(; order + 1; s / 4)`` with ``s = kappa^2 >=
    0``.
    """
    top, _ = _orders(order)
    w = jnp.sqrt(1 + s / top**2)
    u, _ = _expansions(top, 1 / w)
    excess = (s / top**2) / (1 + w)  # w - 1
    stirling = sum(c / top ** (2 * k + 1) for k, c in enumerate(_STIRLING))
    value = top * (excess - jnp.log1p(excess / 2)) - 0.5 * jnp.log(w) + jnp.log1p(u) + stirling
    return jnp.where(s == 0, 0.0, value - _ratio_and_logs(order, s)[1])


def log_0f1_excess(order, s):
    """``log_0f1 - kappa``, without the cancellation of the two for a large ``kappa``."""
    top, _ = _orders(order)
    z = jnp.sqrt(s) / top
    w = jnp.sqrt(1 + z * z)
    u, _ = _expansions(top, 1 / w)
    stirling = sum(c / top ** (2 * k + 1) for k, c in enumerate(_STIRLING))
    leading = top * (1 / (w + z) - 1 - jnp.log1p(0.5 * z * z / (1 + w)))  # w - z = 1 / (w + z)
    return leading - 0.5 * jnp.log(w) + jnp.log1p(u) + stirling - _ratio_and_logs(order, s)[1]


def mean_complement(size, s):
    """``1 - |E x|`` without cancellation for a large concentration, ``s = kappa^2``."""
    return _complement(size / 2 - 1, s)


@log_0f1.defjvp
def _log_0f1_jvp(order, primals, tangents):
    (s,), (ds,) = primals, tangents
    return log_0f1(order, s), _normalised_ratio(order, s) / (4 * (order + 1)) * ds


def mean_length(size, s):
    """``(1/kappa) |E x|`` of the von Mises-Fisher distribution on the sphere in ``size`` dimensions: smooth in ``s =
    kappa^2``.
    """
    return _normalised_ratio(size / 2 - 1, s) / size


def _complement(order, s):
    """``1 - I_{order+1}(kappa) / I_order(kappa)`` without cancellation for large ``kappa``."""
    top, steps = _orders(order)
    large = s > top * top
    kappa = jnp.sqrt(jnp.where(large, s, top * top))
    z = kappa / top
    w = jnp.sqrt(1 + z * z)
    u, q = _expansions(top, 1 / w)
    c = (1 - 1 / (z + w)) / z + z * q / ((1 + u) * w)

    def down(c, n):
        rest = 2 * n / kappa - c
        return rest / (1 + rest), None

    c, _ = jax.lax.scan(down, c, jnp.asarray(top - np.arange(steps), dtype=s.dtype))
    return jnp.where(large, c, 1 - jnp.sqrt(s) * _normalised_ratio(order, s) / (2 * (order + 1)))


def inverse_mean_length(size, length):
    """The ``kappa`` with ``|E x| = length`` for ``0 <= length < 1``: Newton's method on log odds against ``log kappa``.

    The start ``r (d - r^2) / (1 - r^2)`` (Banerjee et al. 2005) is right at both ends, where the curve has slope one.
    """
    order = size / 2 - 1
    r = jnp.where(length > 0, length, 0.5)
    kappa = r * (size - r * r) / ((1 - r) * (1 + r))

    def step(_, kappa):
        c = _complement(order, kappa * kappa)
        a = jnp.where(c < 0.5, 1 - c, kappa * mean_length(size, kappa * kappa))
        slope = kappa * (c * (2 - c) - (size - 1) * a / kappa) / (a * c)
        slope = jnp.where(kappa > 1e4 * size, 1.0, slope)  # it is 1 + O(1 / kappa) there, and the formula cancels
        return kappa * jnp.exp(jnp.clip((jnp.log(r / (1 - r)) - jnp.log(a / c)) / slope, -1.0, 1.0))

    return jnp.where(length > 0, jax.lax.fori_loop(0, 5, step, kappa), 0.0)
