"""The multivariate gamma function ``Gamma_d``: what is left of it when its leading growth is taken out.

``log Gamma_d(a) = d (d - 1) / 4 log pi + sum_i log Gamma(a - i/2)``, ``i = 0, ..., d - 1``, ``a > (d - 1) / 2``, is the
part of the Wishart's cumulant function that depends on its degrees of freedom ``2 a``. It grows like
``d (a log a - a)``. The same growth, with the other sign, is in the scale, so that entropies, divergences and densities
depend on the *rest* ``G(a) = log Gamma_d(a) - d (a log a - a)`` alone: written in terms of it they do not cancel,
however large ``a`` is. ``-G'`` is the *gap* ``d log a - digamma_d(a)`` of Jensen's inequality for the log determinant,
and ``G`` is convex.

The functions are plain JAX, used inside compiled programs; `size` is ``d``.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from cumulant.families.inverses import digamma_gap, log_gamma_rest

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_LARGE = 10.0
# log Gamma(x) = (x - 1/2) log x - x + log(2 pi) / 2 + sum_k s_k / x^(2k - 1), s_k = B_2k / (2k (2k - 1))  (DLMF 5.11.1)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_STEPS = 7
_NEAR = 0.02  # in units of log: closer than that, divergences are integrated
_GAUSS = np.polynomial.legendre.leggauss(3)
_NODES, _WEIGHTS = 0.5 * (1 + _GAUSS[0]), 0.5 * _GAUSS[1]


def log_multigamma(a, size):
    """``log Gamma_d(a)``."""
    return jnp.sum(gammaln(a[..., None] - _halves(a, size)), axis=-1) + 0.25 * size * (size - 1) * np.log(np.pi)


def _halves(a, size):
    return 0.5 * jnp.arange(size, dtype=a.dtype)


def multigamma_rest(a, size):
    """``G(a) = log Gamma_d(a) - d (a log a - a)``, to an absolute error of a few roundings of its own size.

    Large arguments use Stirling's series, whose leading terms cancel on paper.
    """
    if size == 1:
        return log_gamma_rest(a)
    a, half = a[..., None], _halves(a, size)
    large = a - half >= _LARGE
    far, whole = jnp.where(large, a - half, _LARGE), jnp.where(large, a, _LARGE + half)
    square = 1 / (far * far)
    series = jnp.zeros_like(far)
    for coefficient in reversed(_STIRLING):
        series = series * square + coefficient
    logs = whole * jnp.log1p(-half / whole) - (half + 0.5) * jnp.log(far)
    asymptotic = logs + half + _HALF_LOG_2PI + series / far
    near, whole = jnp.where(large, 1.0, a - half), jnp.where(large, 1.0, a)
    total = jnp.sum(jnp.where(large, asymptotic, gammaln(near) - whole * (jnp.log(whole) - 1)), axis=-1)
    return total + 0.25 * size * (size - 1) * np.log(np.pi)


def multigamma_gap(a, size):
    """``g(a) = d log a - digamma_d(a) = sum_i [log a - digamma(a - i/2)]`` and ``g'(a)``, to nearly full precision."""
    return _gap(a - 0.5 * (size - 1), size)


def _gap(u, size):
    """The gap and its slope at ``a = u + (d - 1) / 2``: sums of terms of one sign, accurate for tiny ``u``.

    Digammas whose arguments differ by whole numbers come from one another by the recurrence, so that only those at
    ``a`` and ``a - 1/2`` are evaluated.
    """
    least = 0.5 * (size - 1)
    a = u + least
    gap, slope = jnp.zeros_like(u), jnp.zeros_like(u)
    for start, count in ((0.0, (size + 1) // 2), (0.5, size // 2)):
        if count:
            x = u + (least - start)
            top, elasticity = digamma_gap(x)
            gap = gap + count * (top - (jnp.log1p(-start / a) if start else 0.0))
            slope = slope + count * (elasticity * top - start / a) / x
        if count > 1:
            step = jnp.arange(1, count, dtype=u.dtype)
            terms = 1 / (u[..., None] + (least - start - step))
            gap = gap + jnp.sum((count - step) * terms, axis=-1)
            slope = slope - jnp.sum((count - step) * terms * terms, axis=-1)
    return gap, slope


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def inverse_multigamma_gap(gap, size):
    """The ``a > (d - 1) / 2`` with ``d log a - digamma_d(a) = gap``, for ``gap > 0``.

    Newton's method between ``log u``, ``u = a - (d - 1) / 2``, and ``log gap``, where the relation runs from the line
    ``gap = 1 / u`` to the line ``gap = d (d + 1) / (4 u)``. The solution lies between them, and the steps stay there.
    """
    least = 0.5 * (size - 1)
    first, last = -jnp.log(gap), np.log(0.25 * size * (size + 1)) - jnp.log(gap)
    start = first + (last - first) / (1 + gap / size)  # within 20% up to d = 10, a factor 2 up to d = 300

    def step(_, carry):
        s, low, high = carry
        u = jnp.exp(s)
        value, slope = _gap(u, size)
        error = jnp.log(value / gap)
        low, high = jnp.where(error > 0, s, low), jnp.where(error < 0, s, high)
        trial = s - error * value / (u * slope)
        return jnp.where((trial >= low) & (trial <= high), trial, 0.5 * (low + high)), low, high

    bracket = (jnp.minimum(first, last) - 1e-3, jnp.maximum(first, last) + 1e-3)
    s, _, _ = jax.lax.fori_loop(0, _STEPS, step, (start, *bracket))
    return jnp.exp(s) + least


@inverse_multigamma_gap.defjvp
def _inverse_jvp(size, primals, tangents):
    a = inverse_multigamma_gap(primals[0], size)
    return a, tangents[0] / multigamma_gap(a, size)[1]


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def multigamma_divergence(b, a, size):
    """``G(b) - G(a) - G'(a) (b - a) >= 0``, accurate for ``b`` near ``a`` as well.

    There it is ``int_a^b (b - t) G''(t) dt``, by Gauss's rule in ``log(t - (d - 1) / 2)``, where the integrand is
    analytic in a strip of half-width pi: three nodes reach rounding.
    """
    b, a = jnp.broadcast_arrays(b, a)
    far = multigamma_rest(b, size) - multigamma_rest(a, size) + multigamma_gap(a, size)[0] * (b - a)
    near = jnp.abs(b - a) <= _NEAR * (a - 0.5 * (size - 1))
    return jnp.where(near, _integrated(b, a, size), far)


def _integrated(b, a, size):
    """The divergence of near arguments, by quadrature."""
    start = a - 0.5 * (size - 1)
    length = jnp.log1p(jnp.clip((b - a) / start, -2 * _NEAR, 2 * _NEAR))[..., None]
    nodes, weights = _NODES.astype(a.dtype), _WEIGHTS.astype(a.dtype)
    u = start[..., None] * jnp.exp(length * nodes)
    integrand = -u * u * jnp.expm1(length * (1 - nodes)) * _gap(u, size)[1]
    return length[..., 0] * jnp.sum(weights * integrand, axis=-1)


@multigamma_divergence.defjvp
def _divergence_jvp(size, primals, tangents):
    (b, a), (db, da) = primals, tangents
    (gap_b, _), (gap_a, slope) = multigamma_gap(b, size), multigamma_gap(a, size)
    return multigamma_divergence(b, a, size), (gap_a - gap_b) * db + slope * (b - a) * da
