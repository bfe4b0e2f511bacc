"""Digamma and its kin for positive arguments, and the inverses that turn means into natural parameters.

The inverses use Newton's method on scales where it is nearly linear.

Each runs a fixed number of steps from a start good enough that the last ones change nothing: no branches, so a
million points cost a few vector passes. They are plain JAX, used inside compiled programs.
"""

import functools

import jax
import jax.numpy as jnp
from jax.scipy.special import polygamma

from cumulant.families.special import expm1_excess

_SHIFT = 12
# log x - digamma(x) = 1/(2x) + sum_k b_k / x^(2k), b_k = B_2k / (2k)
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def implicit_inverse(solve, family, mu):
    """``solve(family, mu)``, differentiated as what it is: the inverse of ``grad A``, whose Jacobian is the Fisher
    information.
    """
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

    ``g`` is ``1/x`` for small ``x`` and ``1/(2x)`` for large, so that ``log g`` is almost a line in ``log x``. Large
    arguments use the asymptotic series, small ones the recurrence up to where it holds. Its sums of ``1 / (x + i)``
    and of their squares are added up as fractions: all terms are positive, and two divisions do for all of them.
    """
    large = x >= _SHIFT
    small = jnp.where(large, 1.0, x)
    y = jnp.where(large, x, x + _SHIFT)
    inverse = 1 / y
    square = inverse * inverse
    value, slope = jnp.zeros_like(x), jnp.zeros_like(x)
    for k in range(len(_SERIES), 0, -1):
        value = value * square + _SERIES[k - 1]
        slope = slope * square + 2 * k * _SERIES[k - 1]
    value = inverse * (0.5 + inverse * value)
    slope = -inverse * inverse * (0.5 + inverse * slope)  # d/dy of the value
    above, above_squares, below = jnp.ones_like(x), jnp.ones_like(x), small
    for i in range(1, _SHIFT):
        term = small + i
        above, above_squares = above * term + below, above_squares * (term * term) + below * below
        below = below * term
    recurrence = above / below - jnp.log1p(_SHIFT / small)
    derivative = 1 / small - inverse - above_squares / (below * below)
    value = jnp.where(large, value, value + recurrence)
    slope = jnp.where(large, slope, slope + derivative)
    return value, x * slope / value


_HALF_LOG_2PI = 0.91893853320467274178
_STIRLING_SHIFT = 9
# log Gamma(x) = (x - 1/2) log x - x + log(2 pi) / 2 + sum_k s_k / x^(2k - 1), s_k = B_2k / (2k (2k - 1))
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _shifted(x):
    """``y >= 9``, which is ``x`` or ``x + 9``; whether it is ``x``; if not, the product ``x (x + 1) ... (x + 8)`` and
    the sum of the inverses of its factors times it; and Stirling's series at ``y``, without its leading terms.
    """
    large = x >= _STIRLING_SHIFT
    y = jnp.where(large, x, x + _STIRLING_SHIFT)
    small = jnp.where(large, 1.0, x)
    product, inverses = small, jnp.ones_like(x)
    for i in range(1, _STIRLING_SHIFT):
        inverses, product = inverses * (small + i) + product, product * (small + i)
    square = 1 / (y * y)
    series = jnp.zeros_like(x)
    for coefficient in reversed(_STIRLING):
        series = series * square + coefficient
    return y, large, product, inverses, _HALF_LOG_2PI + series / y


@jax.custom_jvp
def log_gamma(x):
    """``log Gamma(x)`` for ``x > 0``: Stirling's series, up to which the recurrence leads.

    The absolute error is a few units in the last place of ``log Gamma(10)`` or of the value, whichever is larger.
    """
    y, large, product, _, series = _shifted(x)
    value = (y - 0.5) * jnp.log(y) - y + series
    return jnp.where(large, value, value - jnp.log(product))


def log_gamma_and_digamma(x):
    """`log_gamma` and `digamma` in one pass, the latter to an absolute error of rounding."""
    y, large, product, inverses, series = _shifted(x)
    log_y, inverse = jnp.log(y), 1 / y
    slope = jnp.zeros_like(x)
    for coefficient in reversed(_SERIES):
        slope = slope * (inverse * inverse) + coefficient
    value = (y - 0.5) * log_y - y + series
    gap = inverse * (0.5 + inverse * slope)
    return (
        jnp.where(large, value, value - jnp.log(product)),
        log_y - jnp.where(large, gap, gap + inverses / product),
    )


@jax.custom_jvp
def log_gamma_rest(x):
    """``log Gamma(x) - (x log x - x)`` for ``x > 0``: what is left of Stirling's series without its leading terms."""
    y, large, product, _, series = _shifted(x)
    log_y = jnp.log(y)
    small = jnp.where(large, 1.0, x)
    # The leading terms are of y = x + 9 where x is small, and less those of x itself.
    lead = (y - 0.5) * log_y - _STIRLING_SHIFT - jnp.log(product) - small * jnp.log(small)
    return jnp.where(large, -0.5 * log_y, lead) + series


@jax.custom_jvp
def plain_digamma_gap(x):
    """``log x - digamma(x)``: the value of `digamma_gap`, differentiated by its elasticity."""
    return digamma_gap(x)[0]


@plain_digamma_gap.defjvp
def _plain_digamma_gap_jvp(primals, tangents):
    gap, elasticity = digamma_gap(primals[0])
    return gap, tangents[0] * elasticity * gap / primals[0]


log_gamma_rest.defjvps(lambda dx, answer, x: -dx * plain_digamma_gap(x))


def log_factorial_rest(x):
    """``log x! - (x log x - x)`` for ``x >= 0``, zero at zero."""
    positive = x > 0
    safe = jnp.where(positive, x, 1.0)
    return jnp.where(positive, log_gamma_rest(safe) + jnp.log(safe), 0.0)


def count_deviance(x, log_mean):
    """``m - x - x log(m / x) >= 0`` for a count ``x >= 0`` and ``m = exp(log_mean)``.

    ``-count_deviance - log_factorial_rest`` is the log density of a Poisson count, and sums of such terms that of a
    binomial or multinomial one, without the factorials that cancel (Loader 2000).
    """
    positive = x > 0
    safe = jnp.where(positive, x, 1.0)
    return jnp.where(positive, safe * expm1_excess(log_mean - jnp.log(safe)), jnp.exp(log_mean))


@jax.custom_jvp
def digamma(x):
    """``digamma(x)`` for ``x > 0``; its derivative is one pass too, where JAX's own expands a zeta function."""
    return digamma_and_slope(x)[0]


@jax.custom_jvp
def trigamma(x):
    """``trigamma(x)`` for ``x > 0``."""
    return digamma_and_slope(x)[1]


log_gamma.defjvps(lambda dx, answer, x: dx * digamma(x))  # pyright: ignore[reportFunctionMemberAccess]
digamma.defjvps(lambda dx, answer, x: dx * trigamma(x))  # pyright: ignore[reportFunctionMemberAccess]
trigamma.defjvps(lambda dx, answer, x: dx * polygamma(2, x))


def inverse_digamma_gap(gap):
    """The ``x > 0`` with ``log x - digamma(x) = gap``, for ``gap > 0``: Newton's method in ``log x`` and ``log gap``.

    The start is within 2% everywhere (Minka 2002, "Estimating a gamma distribution"); three steps reach rounding.
    """
    start = (3 - gap + jnp.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)

    def step(_, x):
        value, elasticity = digamma_gap(x)
        return x * jnp.exp(-jnp.log(value / gap) / elasticity)

    return jax.lax.fori_loop(0, 4, step, start)


def digamma_and_slope(x):
    """``digamma(x)`` and ``trigamma(x)`` for ``x > 0``, in one pass of additions and divisions."""
    gap, elasticity = digamma_gap(x)
    return jnp.log(x) - gap, (1 - elasticity * gap) / x


def inverse_digamma(y, steps=5):
    """The ``x > 0`` with ``digamma(x) = y`` (start of Minka 2000, "Estimating a Dirichlet distribution", appendix
    C). Two steps give three digits, five all of them.
    """
    x = jnp.where(y >= -2.22, jnp.exp(jnp.maximum(y, -2.22)) + 0.5, -1 / (jnp.minimum(y, -2.22) + 0.5772156649015329))

    def step(_, x):
        value, slope = digamma_and_slope(x)
        return jnp.maximum(x - (value - y) / slope, x / 8)

    return jax.lax.fori_loop(0, steps, step, x)
