"""Inverses of the special functions that turn means into natural parameters, by Newton's method where it is nearly linear.

Each iteration runs a fixed number of steps from a start good enough that the last ones change nothing: no branches, so a
million points cost a few vector passes. They are plain JAX, used inside compiled programs.
"""

import functools

import jax
import jax.numpy as jnp
from jax.scipy.special import digamma

__all__ = ["digamma_gap", "implicit_inverse", "inverse_digamma", "inverse_digamma_gap"]

_SHIFT = 12
# log x - digamma(x) = 1/(2x) + sum_k b_k / x^(2k), b_k = B_2k / (2k)
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def implicit_inverse(solve, family, mu):
    """``solve(family, mu)``, differentiated as what it is: the inverse of ``grad A``, whose Jacobian is the Fisher information."""
    return _implicit(solve, family, mu)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _implicit(solve, family, mu):
    return solve(family, mu)


@_implicit.defjvp
def _implicit_jvp(solve, primals, tangents):
    family, mu = primals
    theta = _implicit(solve, family, mu)
    return theta, jnp.linalg.solve(family.fisher(theta), tangents[1][..., None])[..., 0]


def digamma_gap(x):
    """``g(x) = log x - digamma(x)`` and its elasticity ``x g'(x) / g(x)``, both to nearly full relative precision.

    Both run from -1 to -1 as it were: ``g`` is ``1/x`` for small ``x`` and ``1/(2x)`` for large, so that ``log g`` is almost a
    line in ``log x``. Large arguments use the asymptotic series, small ones the recurrence up to where it holds.
    """
    large = x >= _SHIFT
    y = jnp.where(large, x, x + _SHIFT)
    inverse = 1 / y
    square = inverse * inverse
    value, slope = jnp.zeros_like(x), jnp.zeros_like(x)
    for k in range(len(_SERIES), 0, -1):
        value = value * square + _SERIES[k - 1]
        slope = slope * square + 2 * k * _SERIES[k - 1]
    value = inverse * (0.5 + inverse * value)
    slope = -inverse * inverse * (0.5 + inverse * slope)  # d/dy of the value
    recurrence, derivative = -jnp.log1p(_SHIFT / x), 1 / x - inverse
    for k in range(_SHIFT):
        term = 1 / (x + k)
        recurrence, derivative = recurrence + term, derivative - term * term
    value = jnp.where(large, value, value + recurrence)
    slope = jnp.where(large, slope, slope + derivative)
    return value, x * slope / value


def inverse_digamma_gap(gap):
    """The ``x > 0`` with ``log x - digamma(x) = gap``, for ``gap > 0``: Newton's method in ``log x`` and ``log gap``.

    The start is within 2% everywhere (Minka 2002, "Estimating a gamma distribution"); three steps reach rounding.
    """
    start = (3 - gap + jnp.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)

    def step(_, x):
        value, elasticity = digamma_gap(x)
        return x * jnp.exp(-jnp.log(value / gap) / elasticity)

    return jax.lax.fori_loop(0, 4, step, start)


def inverse_digamma(y):
    """The ``x > 0`` with ``digamma(x) = y`` (Minka 2000, "Estimating a Dirichlet distribution", appendix C)."""
    x = jnp.where(y >= -2.22, jnp.exp(y) + 0.5, -1 / (y + 0.5772156649015329))
    for _ in range(4):
        x = x - (digamma(x) - y) / jax.scipy.special.polygamma(1, x)
    return x
