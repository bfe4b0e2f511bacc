"""Special functions written so that nothing cancels: differences that are small where their terms are large.

Those in JAX follow the rule of precision: NumPy in, float64 NumPy out; differentiable to any order.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.errors import DomainError
from cumulant.precision import any_tracer, precise, to_jax

# B_{2k} / (2k): the coefficients of log x - digamma(x) - 1/(2x) in powers of 1/x^2 (DLMF 5.11.2).
_DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
_SHIFT = 10  # from x + 10 on, eight terms of the series leave less than one unit in the last place of a double
_ATANH_TERMS = 18  # r^2 <= 1/9, so that 9^-18 is below the rounding of a double


def _excess(x, xp):
    """``x - log(1 + x)`` in the array library `xp`, for ``x > -1``.

    With ``r = x / (2 + x)``, ``log(1 + x) = 2 atanh r`` and ``x - 2 r = r x``: what is left of the series has no
    cancelling leading term.
    """
    near = (x > -0.5) & (x < 1.0)
    safe = xp.where(near, x, 0.0)
    r = safe / (2.0 + safe)
    square = r * r
    series = xp.zeros_like(square)
    for k in range(_ATANH_TERMS, 0, -1):
        series = series * square + 1.0 / (2 * k + 1)
    infinite = x == xp.inf  # infinity minus its logarithm
    far = xp.where(near | infinite, 1.0, x)
    plain = xp.where(infinite, xp.inf, far - xp.log1p(far))
    return xp.where(near, r * (safe - 2.0 * square * series), plain)


# `log1p_excess` in plain JAX, without checks.
excess = jax.custom_jvp(lambda x: _excess(x, jnp))
excess.defjvps(lambda dx, answer, x: dx * x / (1.0 + x))


@jax.custom_jvp
def _phi_jax(z):
    """``z - 1 - log z``. Away from one nothing cancels, and ``z - 1`` would forget a small ``z``."""
    near = (z > 0.5) & (z < 2.0)
    far = jnp.where(near | (z == jnp.inf), 1.0, z)
    plain = jnp.where(z == jnp.inf, jnp.inf, (far - 1.0) - jnp.log(far))
    return jnp.where(near, _excess(jnp.where(near, z, 1.0) - 1.0, jnp), plain)


_phi_jax.defjvps(lambda dz, answer, z: dz * (z - 1.0) / z)


@jax.custom_jvp
def expm1_excess(x):
    """``exp(x) - 1 - x >= 0`` in plain JAX, accurate relative to itself."""
    near = jnp.abs(x) < 1.0
    safe = jnp.where(near, x, 0.0)
    series = jnp.ones_like(safe)
    for k in range(19, 2, -1):
        series = 1.0 + safe / k * series
    return jnp.where(near, 0.5 * safe * safe * series, jnp.expm1(x) - x)


expm1_excess.defjvps(lambda dx, answer, x: dx * jnp.expm1(x))


def phi_ratio(numerator, denominator):
    """`phi` of a quotient of positive numbers, in plain JAX: finite where the quotient underflows."""
    z = numerator / denominator
    tiny = z < jnp.finfo(z.dtype).tiny
    logs = jnp.log(jnp.where(tiny, numerator, 1.0)) - jnp.log(jnp.where(tiny, denominator, 1.0))
    return jnp.where(tiny, -1.0 - logs, _phi_jax(jnp.where(tiny, 1.0, z)))


def _public(function: Callable, lowest: float, name: str) -> Callable:
    """`function` under the rule of precision; a concrete argument below `lowest`, or NaN, is refused."""
    compiled = precise(function)

    def call(x):
        x = to_jax(x, "x")
        if not any_tracer(x) and not np.all(np.asarray(x) >= lowest):
            raise DomainError(
                f"x, the argument of {name}, must be at least {lowest:g} and not NaN; got {np.asarray(x).min()}"
            )
        return compiled(x)

    return call


_log1p_excess = _public(lambda x: excess(1.0 * x), -1.0, "log1p_excess")
_phi = _public(lambda x: _phi_jax(1.0 * x), 0.0, "phi")


def log1p_excess(x: Any) -> Any:
    """``x - log(1 + x)``, accurate near zero, where it is ``x^2/2 - x^3/3 + ...``; infinite at -1.

    >>> log1p_excess([1e-9, 1.0])
    array([5.00000000e-19, 3.06852819e-01])
    """
    return _log1p_excess(x)


def phi(z: Any) -> Any:
    """``phi(z) = z - 1 - log z``, accurate near one; infinite at zero.

    ``alpha phi(mu*/mu)`` is the Kullback-Leibler divergence of every family with ``A = -alpha log(-theta)``, and
    ``phi(z) + phi(1/z) = (z - 1)^2 / z``.

    >>> phi([1.0, 1.0 + 2.0**-40])
    array([0.00000000e+00, 4.13590306e-25])
    """
    return _phi(z)


# For NumPy loops that cannot afford a compilation for each shape: no JAX, no checks.


def excess_numpy(x: Any) -> np.ndarray:
    """`log1p_excess`."""
    with np.errstate(divide="ignore"):  # infinite at -1, as it should be
        return _excess(np.asarray(x), np)


def log_minus_digamma(x: Any) -> np.ndarray:
    """``log x - digamma(x)`` to full relative precision for ``x > 0``: ``1/(2x) + 1/(12 x^2) - ...`` for large ``x``.

    A sum of positive terms, ``sum_k (1/y_k - log(1 + 1/y_k))`` over ``y_k = x + k``, which moves the argument up, and
    the series there. The two terms agree to all digits long before their difference stops mattering. Infinite at zero.

    References
    ----------
    DLMF 5.5.2 (recurrence) and 5.11.2 (asymptotic series).

    Examples
    --------
    >>> float(log_minus_digamma(1.0))  # Euler's constant
    0.5772156649015...
    >>> float(log_minus_digamma(1e12))
    5.0000000000...e-13
    """
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore"):
        total = np.sum(excess_numpy(1.0 / (x[..., None] + np.arange(_SHIFT))), axis=-1)
    inverse = 1.0 / (x + _SHIFT)
    square = inverse * inverse
    series = np.zeros_like(inverse)
    for coefficient in reversed(_DIGAMMA_SERIES):
        series = series * square + coefficient
    return total + 0.5 * inverse + square * series
