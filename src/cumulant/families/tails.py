"""Tail probabilities, each accurate relative to itself: normal, incomplete gamma and beta, inverse Gaussian, von Mises.

Every function returns ``(log P(X <= x), log P(X > x))``. In a suitable coordinate (``log x``, log odds) each density is
log-concave, so that its tail beyond ``x`` is the density there times ``int_0^inf exp(-e(v)) dv`` with ``e`` convex and
``e(0) = 0``, ``e'(0) >= 0`` on the side away from the mode. The exponents below are sums of positive terms, and Gauss's
rule integrates them to rounding: one formula for all parameters, where series, fractions and asymptotic expansions each
serve a part. The other tail is one minus that. Where a density is nearly a power over many orders of magnitude (a shape
below one and a small argument), the power series is used.

Which tail is integrated is decided by numbers that are rounded once. The compiler computes a comparison again for each
of its uses, and may round a sum of products differently each time.

Plain JAX, used inside compiled programs.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc, ndtri

from cumulant.families.bessel import log_0f1_excess
from cumulant.families.inverses import digamma, log_gamma, log_gamma_rest
from cumulant.families.multigamma import multigamma_divergence
from cumulant.families.special import excess, expm1_excess, phi_ratio

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_DEPTH = 38.0  # exp(-38) is below the rounding of a double
_NEWTON_STEPS = 12
# log Gamma(1 + x) = -log(1 + x) + (1 - gamma) x + sum_k (-1)^k (zeta(k) - 1) x^k / k  (DLMF 5.7.3)
_ZETA_MINUS_ONE = (
    0.6449340668482264, 0.2020569031595943, 0.08232323371113819, 0.03692775514336993, 0.01734306198444914,
    0.008349277381922827, 0.00407735619794434, 0.0020083928260822145, 0.0009945751278180853, 0.0004941886041194646,
    0.0002460865533080483, 0.00012271334757848915, 6.124813505870483e-05, 3.058823630702049e-05, 1.528225940865187e-05,
    7.637197637899762e-06, 3.81729326499984e-06, 1.908212716553939e-06, 9.539620338727961e-07, 4.769329867878065e-07,
    2.38450502727733e-07, 1.1921992596531106e-07, 5.960818905125948e-08, 2.980350351465228e-08,
)  # fmt: skip


def _gauss_legendre(n):
    """Nodes and weights on ``[0, 1]``: NumPy's weights are good to 1e-13, and Newton's method makes them exact."""
    x = np.polynomial.legendre.leggauss(n)[0].astype(np.longdouble)
    slope = np.ones_like(x)
    for _ in range(2):
        before, value = np.ones_like(x), x
        for k in range(2, n + 1):
            before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
        slope = n * (x * value - before) / (x * x - 1)
        x = x - value / slope
    return (0.5 * (1 + x)).astype(float), (1 / ((1 - x * x) * slope * slope)).astype(float)


_NODES, _WEIGHTS = _gauss_legendre(48)


def log_one_minus_exp(log_p):
    """``log(1 - p)`` from ``log p <= 0``."""
    near = log_p > -0.7
    return jnp.where(near, jnp.log(-jnp.expm1(jnp.where(near, log_p, -1.0))), jnp.log1p(-jnp.exp(log_p)))


def order_tails(on_the_left, log_tail):
    """Both tails from the smaller, or one of two halves: the one on the side of ``x``."""
    log_tail = jnp.minimum(log_tail, 0.0)
    other = log_one_minus_exp(log_tail)
    return jnp.where(on_the_left, log_tail, other), jnp.where(on_the_left, other, log_tail)


def _log_integral(exponent, end):
    """``log int_0^end exp(-exponent(v)) dv`` by Gauss's rule."""

    def add(total, node):
        return total + node[1] * jnp.exp(-exponent(end * node[0])), None

    rule = jnp.asarray(np.stack([_NODES, _WEIGHTS], axis=1), dtype=end.dtype)
    total, _ = jax.lax.scan(add, jnp.zeros_like(end), rule)
    return jnp.log(total) + jnp.log(end)


def _end(exponent, slope, start):
    """Where a convex exponent has grown to its depth: Newton's method on its logarithm, to a digit or two."""
    start = jax.lax.stop_gradient(start)

    def step(_, v):
        value = exponent(v)
        return jnp.maximum(v - jnp.log(value / _DEPTH) * value / slope(v), 0.25 * v)

    return jax.lax.stop_gradient(jax.lax.fori_loop(0, _NEWTON_STEPS, step, start))


def _first_guess(linear, curvature):
    """Where ``linear v + curvature v^2 / 2`` reaches its depth, or twice."""
    tiny = jnp.finfo(linear.dtype).tiny
    return jnp.minimum(_DEPTH / jnp.maximum(linear, tiny), jnp.sqrt(2 * _DEPTH / jnp.maximum(curvature, tiny)))


def normal_log_tails(z):
    """Of a standard normal number."""
    distance = jnp.abs(z)
    near = distance < 5
    far = jnp.where(near, 5.0, distance)
    fraction = far
    for k in range(24, 0, -1):  # Laplace's continued fraction of Mills' ratio (DLMF 7.9.3)
        fraction = far + k / fraction
    beyond = -0.5 * far * far - _HALF_LOG_2PI - jnp.log(fraction)
    within = jnp.log(0.5 * erfc(jnp.where(near, distance, 0.0) * np.sqrt(0.5)))
    return order_tails(z < 0, jnp.where(near, within, jnp.where(jnp.isinf(z), -jnp.inf, beyond)))


def normal_quantile(log_lower, log_upper):
    """The standard normal number with these two tails."""
    away = ndtri(jnp.exp(jnp.minimum(log_lower, log_upper)))
    return jnp.where(log_lower < log_upper, away, -away)


def _two_exponentials(linear, up, down):
    """``log int_0^inf exp(-[linear v + up (e^v - 1 - v) + down (e^-v - 1 + v)]) dv``."""

    def exponent(v):
        return linear * v + up * expm1_excess(v) + down * expm1_excess(-v)

    def slope(v):
        return linear + up * jnp.expm1(v) - down * jnp.expm1(-v)

    return _log_integral(exponent, _end(exponent, slope, _first_guess(linear, up + down)))


def gamma_log_tails(x, shape):
    """Of a gamma number of rate one: the incomplete gamma functions ``log P(shape, x)`` and ``log Q(shape, x)``."""
    x, shape = jnp.broadcast_arrays(x, shape)
    small, left = x < 1, x < shape
    safe = jnp.where(small, 1.0, x)
    shape_safe = jnp.where(small, 1.0, shape)
    log_tail = (
        -shape_safe * phi_ratio(safe, shape_safe)
        - log_gamma_rest(shape_safe)
        + _two_exponentials(jnp.abs(safe - shape_safe), jnp.where(left, 0.0, safe), jnp.where(left, safe, 0.0))
    )
    lower, upper = order_tails(left, log_tail)
    series = _gamma_series(jnp.where(small, x, 0.5), jnp.where(small, shape, 1.0))
    return jnp.where(small, series, lower), jnp.where(small, log_one_minus_exp(series), upper)


def _gamma_series(x, shape):
    """``log P(shape, x)`` for ``x < 1``, relative to itself.

    ``P = x^a / Gamma(a + 1) (1 + a sum_n (-x)^n / (n! (a + n)))`` (DLMF 8.7.1).
    """
    total, term = jnp.zeros_like(x), jnp.ones_like(x)
    for n in range(1, 21):
        term = -term * x / n
        total = total + term / (shape + n)
    return jnp.minimum(shape * jnp.log(x) - _log_gamma1p(shape) + jnp.log1p(shape * total), 0.0)


def _log_gamma1p(x):
    """``log Gamma(1 + x)`` for ``x >= 0``, relative to itself for a small ``x``."""
    near = x < 0.5
    safe = jnp.where(near, x, 0.0)
    series = jnp.zeros_like(x)
    for k in range(len(_ZETA_MINUS_ONE) + 1, 1, -1):
        series = safe * (_ZETA_MINUS_ONE[k - 2] * (-1) ** k / k + series)
    return jnp.where(
        near, safe * (1 - np.euler_gamma + series) - jnp.log1p(safe), log_gamma(1 + jnp.where(near, 1.0, x))
    )


def beta_log_tails(p, q, a, b):
    """Of a beta number at ``p``, with ``q = 1 - p``: ``log I_p(a, b)`` and ``log I_q(b, a)``."""
    p, q, a, b = jnp.broadcast_arrays(p, q, a, b)
    first = (a <= 1) & (p * jnp.maximum(b, 1.0) <= 0.5)
    second = ~first & (b <= 1) & (q * jnp.maximum(a, 1.0) <= 0.5)
    series = first | second

    def choose(one, other):
        return jnp.where(second, other, one)

    x, s, t = (jnp.where(series, choose(*pair), 0.5) for pair in ((p, q), (a, b), (b, a)))
    by_series = _beta_series(x, jnp.where(series, s, 1.0), jnp.where(series, t, 1.0))
    rest = log_one_minus_exp(by_series)
    p, q = jnp.where(series, 0.5, p), jnp.where(series, 0.5, q)
    a, b = jnp.where(series, 1.0, a), jnp.where(series, 1.0, b)
    lower, upper = _beta_quadrature(p, q, a, b)
    return (
        jnp.where(series, choose(by_series, rest), lower),
        jnp.where(series, choose(rest, by_series), upper),
    )


def _beta_series(x, a, b):
    """``log I_x(a, b)`` for ``a <= 1`` and ``x max(b, 1) <= 1/2``, relative to itself.

    ``I = x^a Gamma(a + b) / (Gamma(a + 1) Gamma(b)) (1 + a sum_n (1 - b)_n x^n / (n! (a + n)))`` (DLMF 8.17.7).
    """

    def add(state, n):
        total, term = state
        term = term * (n - b) * x / n
        return (total + term / (a + n), term), None

    orders = jnp.arange(1, 49, dtype=x.dtype)
    (total, _), _ = jax.lax.scan(add, (jnp.zeros_like(x), jnp.ones_like(x)), orders)
    near = a <= b
    below, above = jnp.where(near, b, 1.0), jnp.where(near, a + b, 1.0)
    # G(a + b) - G(b) = G'(b) a + a divergence, G(x) = log Gamma(x) - x log x + x
    rise = a * digamma(below) + _log_gamma_divergence(above, below)
    growth = jnp.where(near, rise, log_gamma(a + b) - log_gamma(b))
    return jnp.minimum(a * jnp.log(x) + growth - _log_gamma1p(a) + jnp.log1p(a * total), 0.0)


def _log_gamma_divergence(b, a):
    """``log Gamma(b) - log Gamma(a) - digamma(a) (b - a)`` for ``b >= a``: of ``x log x - x``, and of the rest."""
    return b * phi_ratio(a, b) + multigamma_divergence(b, a, 1)


def _beta_quadrature(p, q, a, b):
    total = a + b
    linear = a * q - b * p
    left = a * q >= b * p
    # Moving down the log odds by v, e(v) = linear v + total [log(1 + p (exp(-v) - 1)) + p v]; moving up, p and q change
    # places. Written in terms of the smaller of p and q, moved the way that it moves.
    half = jnp.minimum(p, q)
    towards = jnp.where(left == (p <= q), -1.0, 1.0).astype(p.dtype)
    slopes = jnp.abs(linear)

    def bent(s):
        near = jnp.abs(s) < 1
        safe = jnp.where(near, s, 0.0)
        close = half * expm1_excess(safe) - excess(half * jnp.expm1(safe))
        away = jnp.where(near, 1.0, s)
        return jnp.where(near, close, jnp.logaddexp(jnp.log1p(-half), jnp.log(half) + away) - half * away)

    def exponent(v):
        return slopes * v + total * bent(towards * v)

    def slope(v):
        odds = jnp.log(half) - jnp.log1p(-half) + towards * v
        return slopes + total * towards * (jax.nn.sigmoid(odds) - half)

    integral = _log_integral(exponent, _end(exponent, slope, _first_guess(slopes, total * p * q)))
    return order_tails(left, beta_log_density(p, q, a, b) + integral)


def beta_log_density(p, q, a, b):
    """``a log p + b log q - log B(a, b)``, the log density of the log odds, without terms that cancel (Loader 2000)."""
    total = a + b
    deviance = a * phi_ratio(p * total, a) + b * phi_ratio(q * total, b)
    return log_gamma_rest(total) - log_gamma_rest(a) - log_gamma_rest(b) - deviance


def inverse_gaussian_log_tails(x, mean, shape):
    """Of an inverse Gaussian number: with ``t = log(x / mean)``, the density of ``t`` is ``exp(-k cosh t - t / 2)``."""
    up, down = 0.5 * shape * x / mean**2, 0.5 * shape / x  # k exp(t) / 2 and k exp(-t) / 2, k = shape / mean
    left = x < jnp.minimum(mean, shape)  # at most a standard deviation above the mode of t
    linear = jnp.where(left, down - up - 0.5, up - down + 0.5)
    log_density = 0.5 * (jnp.log(shape) - jnp.log(x)) - _HALF_LOG_2PI - 0.5 * shape / x * ((x - mean) / mean) ** 2
    integral = _two_exponentials(linear, jnp.where(left, down, up), jnp.where(left, up, down))
    return order_tails(left, log_density + integral)


def von_mises_log_tails(angle, concentration):
    """Of an angle in ``[-pi, pi]`` measured from the mean direction; the circle is cut opposite to it."""
    start = jnp.minimum(jnp.abs(angle), np.pi)
    height = jnp.sin(0.5 * start) ** 2
    tiny = jnp.finfo(start.dtype).tiny
    top = jnp.minimum(height + 0.5 * _DEPTH / jnp.maximum(concentration, tiny), 1.0)
    depth = jax.lax.stop_gradient(jnp.where(top < 1, 2 * jnp.arcsin(jnp.sqrt(top)) - start, np.pi))
    length = jnp.maximum(jnp.minimum(depth, np.pi - start), 0.0)

    def exponent(v):
        return 2 * concentration * jnp.sin(start + 0.5 * v) * jnp.sin(0.5 * v)

    log_density = -2 * concentration * height - log_0f1_excess(0.0, concentration**2) - 2 * _HALF_LOG_2PI
    return order_tails(angle < 0, log_density + _log_integral(exponent, length))


def table_log_tails(x, logs):
    """Of a class with log probabilities ``logs`` on the last axis, below the last class."""
    shape = jnp.broadcast_shapes(x.shape, logs.shape[:-1])
    place = jnp.broadcast_to(x, shape).astype(int)[..., None]
    logs = jnp.broadcast_to(logs, (*shape, logs.shape[-1]))
    lower = jnp.take_along_axis(jax.lax.cumlogsumexp(logs, axis=logs.ndim - 1), place, axis=-1)
    above = jax.lax.cumlogsumexp(logs, axis=logs.ndim - 1, reverse=True)
    return lower[..., 0], jnp.take_along_axis(above, jnp.minimum(place + 1, logs.shape[-1] - 1), axis=-1)[..., 0]
