"""The beta and Dirichlet families: probabilities that are themselves random."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from cumulant import checks
from cumulant.families.base import ExponentialFamily, family
from cumulant.families.inverses import (
    digamma_and_slope,
    digamma_gap,
    implicit_inverse,
    inverse_digamma,
    log_gamma,
    log_gamma_and_digamma,
    log_gamma_rest,
    plain_digamma_gap,
)
from cumulant.families.multigamma import multigamma_divergence
from cumulant.families.rows import divergence, in_chunks
from cumulant.families.special import phi_ratio
from cumulant.families.tails import beta_log_density, beta_log_tails

_LARGE_BATCH = 1024


class _LogSimplex(ExponentialFamily):
    """What the beta and the Dirichlet share: ``T`` is the logarithm of a point of the simplex, ``theta`` the
    concentrations.
    """

    size: int
    domain = "theta > 0 (the concentrations)"
    mean_domain = "sum(exp(mu)) < 1 (Jensen's inequality for E log x)"

    @property
    def dim(self):
        return self.size

    def log_partition(self, theta):
        return _log_beta(theta)

    def to_mean(self, theta):
        logs, total = _log_shares(theta)
        return logs - plain_digamma_gap(theta) + plain_digamma_gap(total)

    def kl(self, theta, other):
        return divergence(_quick_divergence, _accurate_divergence, theta, other)

    def entropy(self, theta):
        total = jnp.sum(theta, axis=-1)
        relative = jnp.sum(_excess_entropy(theta), axis=-1) - _excess_entropy(total)
        return relative + jnp.sum(self.to_mean(theta), axis=-1)

    def to_natural(self, mu):
        return implicit_inverse(_invert, self, mu)

    def expected_log_base(self, theta):
        return -jnp.sum(self.to_mean(theta), axis=-1)

    def in_domain(self, theta):
        return jnp.all(jnp.isfinite(theta) & (theta > 0), axis=-1)

    def in_mean_domain(self, mu):
        return jnp.all(jnp.isfinite(mu), axis=-1) & (logsumexp(mu, axis=-1) < 0)

    def _estimable(self, central):
        rounding = 16 * self.size * jnp.finfo(central.dtype).eps
        return jnp.all(jnp.isfinite(central), axis=-1) & (logsumexp(central, axis=-1) < -rounding)

    def _obstacle(self, central, count):
        return f"all {count:g} observations are equal, and the likelihood keeps growing with the concentration"


def _accurate_divergence(theta, other):
    total, other_total = (jnp.sum(each, axis=-1, keepdims=True) for each in (theta, other))
    shares = jnp.sum(other * phi_ratio(theta / total, other / other_total), axis=-1)
    rests = multigamma_divergence(jnp.concatenate([other, other_total], -1), jnp.concatenate([theta, total], -1), 1)
    return jnp.maximum(shares + jnp.sum(rests[..., :-1], axis=-1) - rests[..., -1], 0.0)


def _quick_divergence(theta, other):
    (here, slope), there = log_gamma_and_digamma(theta), log_gamma(other)
    total, end = log_gamma_and_digamma(jnp.sum(theta, axis=-1)), log_gamma(jnp.sum(other, axis=-1))
    moved = (slope - total[1][..., None]) * (other - theta)
    ends = total[0] - end
    value = jnp.sum(there - here - moved, axis=-1) + ends
    # The error of `log_gamma` is that of log Gamma(10) = 12.8 where its value is less.
    return value, jnp.sum(26 + jnp.abs(here) + jnp.abs(there) + jnp.abs(moved), axis=-1) + jnp.abs(ends)


def _log_shares(a):
    """``log(a_k / sum a)``, accurate relative to itself for a share near one as well, and the sum."""
    largest = jax.nn.one_hot(jnp.argmax(a, axis=-1), a.shape[-1], dtype=bool)
    rest = jnp.sum(jnp.where(largest, 0.0, a), axis=-1, keepdims=True)
    total = jnp.sum(a, axis=-1, keepdims=True)
    return jnp.where(largest, -jnp.log1p(rest / jnp.where(largest, a, 1.0)), jnp.log(a / total)), total


@jax.custom_jvp
def _log_beta(a):
    """``sum log Gamma(a_k) - log Gamma(sum a)``.

    In large batches of small concentrations, where little cancels, it is computed as it is written, in half the time.
    """
    if math.prod(a.shape[:-1]) < _LARGE_BATCH:
        return _accurate_log_beta(a)
    small = jnp.all(jnp.sum(a, axis=-1) <= 64)
    return jax.lax.cond(small, _plain_log_beta, _accurate_log_beta, a)


def _plain_log_beta(a):
    return jnp.sum(log_gamma(a), axis=-1) - log_gamma(jnp.sum(a, axis=-1))


def _accurate_log_beta(a):
    """For large ``a_k`` the leading terms are ``a_k log(a_k / sum a)``."""
    logs, total = _log_shares(a)
    large = a >= 9
    far, near = jnp.where(large, a, 9.0), jnp.where(large, 1.0, a)
    terms = jnp.where(large, log_gamma_rest(far) + far * logs, log_gamma(near) - near * (jnp.log(total) - 1))
    return jnp.sum(terms, axis=-1) - log_gamma_rest(total[..., 0])


@_log_beta.defjvp
def _log_beta_jvp(primals, tangents):
    (a,), (change,) = primals, tangents
    logs, total = _log_shares(a)
    return _log_beta(a), jnp.sum((logs - plain_digamma_gap(a) + plain_digamma_gap(total)) * change, axis=-1)


def _excess_entropy(a):
    """``log Gamma(a) - a digamma(a) + a``, of terms that do not cancel."""
    return log_gamma_rest(a) + a * plain_digamma_gap(a)


def _invert(family, mu):
    """The inverse of the mean map, for a few points at a time: none waits for the slowest of a million."""
    rows = mu.reshape(-1, family.size)
    return in_chunks(_invert_rows, rows, most=max(16, 2048 // family.size)).reshape(mu.shape)


def _invert_rows(mu):
    """The ``a`` with ``digamma(a_k) - digamma(sum a) = mu_k``: Newton's method in ``log a`` from near the solution.

    The Hessian is diagonal plus rank one (Minka 2000), so a step costs as much as evaluating the residual.
    """
    epsilon = jnp.finfo(mu.dtype).eps
    total = jnp.exp(_log_total(mu))
    start = inverse_digamma(mu + digamma_and_slope(total)[0], steps=2)

    def step(state):
        a, _, count = state
        # Logarithms of shares rather than two digammas: for a large total these agree in all their digits.
        logs, s = _log_shares(a)
        residual = logs - digamma_gap(a)[0] + digamma_gap(s)[0] - mu
        diagonal, corner = digamma_and_slope(a)[1], digamma_and_slope(s)[1]
        # (diag(d) - c 11^T)^-1 g by Sherman and Morrison; 1/c - sum(1/d) > 0 since the Hessian is positive definite.
        room = 1 / corner - jnp.sum(1 / diagonal, axis=-1, keepdims=True)
        change = -(residual + jnp.sum(residual / diagonal, axis=-1, keepdims=True) / room) / (diagonal * a)
        settled = jnp.all(jnp.abs(change) <= epsilon * (16 + 4 * s))  # the condition number grows with the total
        return a * jnp.exp(jnp.clip(change, -1.5, 1.5)), settled, count + 1

    def unfinished(state):
        return ~state[1] & (state[2] < 50)

    return jax.lax.while_loop(unfinished, step, (start, jnp.asarray(False), 0))[0]


def _log_total(mu):
    """``log sum a`` to a few digits, by Newton's method on one equation in a bracket that cannot miss.

    Given the total ``s``, ``a_k(s) = digamma^-1(mu_k + digamma(s))``, and ``log(sum_k a_k(s) / s)`` falls through
    zero once. Since ``digamma(x) > log(x - 1/2)``, the root is below ``K / (2 (1 - sum exp mu))``.
    """
    size = mu.shape[-1]
    room = -jnp.expm1(logsumexp(mu, axis=-1, keepdims=True))
    high = jnp.log(0.5 * size / room)
    low = jnp.full_like(high, -60.0)

    def step(state):
        low, high, v, _, count = state
        s = jnp.exp(v)
        value, slope = digamma_and_slope(s)
        a = inverse_digamma(mu + value, steps=2)
        sums = jnp.sum(a, axis=-1, keepdims=True)
        excess = jnp.log(sums / s)
        derivative = s * slope * jnp.sum(1 / digamma_and_slope(a)[1], axis=-1, keepdims=True) / sums - 1
        low, high = jnp.where(excess > 0, v, low), jnp.where(excess > 0, high, v)
        newton = v - excess / derivative
        inside = (newton > low) & (newton < high)
        new = jnp.where(inside, newton, 0.5 * (low + high))
        return low, high, new, jnp.all(jnp.abs(new - v) < 1e-2), count + 1

    start = jnp.log(jnp.maximum((size - 1) / (2 * -jnp.log1p(-room)), 1e-20))
    state = (low, high, jnp.clip(start, low + 1e-3, high), jnp.asarray(False), 0)
    return jax.lax.while_loop(lambda state: ~state[3] & (state[4] < 100), step, state)[2]


@family
class Dirichlet(_LogSimplex):
    """Points ``x`` of the open simplex with K coordinates and ``concentration`` ``a`` (K positive numbers).

    ``T(x) = log x``, ``theta = a``, ``A(theta) = sum log Gamma(a_k) - log Gamma(sum a)``,
    ``mu_k = digamma(a_k) - digamma(sum a)``, base measure ``1 / prod x_k``.

    Examples
    --------
    >>> fam = Dirichlet(3)
    >>> theta = fam.natural(concentration=[0.5, 2.0, 30.0])
    >>> fam.to_natural(fam.to_mean(theta)).round(10)
    array([ 0.5,  2. , 30. ])
    """

    size: int

    support = "x > 0 with sum(x) = 1"
    on_surface = True

    def __post_init__(self):
        checks.whole("size", self.size, 2)

    @property
    def event_shape(self):
        return (self.size,)

    def statistics(self, x):
        return jnp.log(x)

    def log_base(self, x):
        return -jnp.sum(jnp.log(x), axis=-1)

    def natural(self, *, concentration):
        shape = jnp.shape(concentration)
        if shape[-1:] != (self.size,):
            raise ValueError(f"concentration must have {self.size} entries on the last axis; got shape {shape}")
        return 1.0 * concentration

    def usual(self, theta):
        return {"concentration": theta}

    def _log_density(self, x, theta):
        return jnp.sum((theta - 1) * jnp.log(x), axis=-1) - self.log_partition(theta)

    def in_support(self, x):
        tolerance = 64 * self.size * jnp.finfo(x.dtype).eps
        return jnp.all((x > 0) & jnp.isfinite(x), axis=-1) & (jnp.abs(jnp.sum(x, axis=-1) - 1) <= tolerance)

    def _example_point(self):
        return np.full(self.size, 1 / self.size)

    def _draw(self, key, theta, shape):
        logs = jax.random.loggamma(key, theta, (*shape, *theta.shape), dtype=theta.dtype)
        # A tiny concentration draws numbers below the smallest float: they are kept positive, as the support demands.
        return jnp.maximum(jax.nn.softmax(logs, axis=-1), jnp.finfo(theta.dtype).tiny)


@family
class Beta(_LogSimplex):
    """A probability ``x`` in (0, 1) with parameters ``a`` and ``b``.

    ``T(x) = (log x, log(1 - x))``, ``theta = (a, b)``, ``A = log Gamma(a) + log Gamma(b) - log Gamma(a + b)``,
    base measure ``1 / (x (1 - x))``.

    Examples
    --------
    >>> fam = Beta()
    >>> fam.log_prob(0.3, fam.natural(a=2.0, b=5.0))
    np.float64(0.770524801...)
    """

    size = 2
    support = "0 < x < 1"
    ends = (0.0, 1.0)

    def statistics(self, x):
        return jnp.stack([jnp.log(x), jnp.log1p(-x)], axis=-1)

    def log_base(self, x):
        return -jnp.log(x) - jnp.log1p(-x)

    def natural(self, *, a, b):
        return jnp.stack(jnp.broadcast_arrays(1.0 * a, 1.0 * b), axis=-1)

    def usual(self, theta):
        return {"a": theta[..., 0], "b": theta[..., 1]}

    def _log_density(self, x, theta):
        return beta_log_density(x, 1 - x, theta[..., 0], theta[..., 1]) - jnp.log(x) - jnp.log1p(-x)

    def _log_tails(self, x, theta):
        return beta_log_tails(x, 1 - x, theta[..., 0], theta[..., 1])

    def _point(self, y, theta):
        x = theta[..., 0] / (theta[..., 0] + theta[..., 1] * jnp.exp(-y))
        return x, jnp.log(x) + jnp.log1p(-x)

    def in_support(self, x):
        return (x > 0) & (x < 1)

    def _example_point(self):
        return np.asarray(0.5)

    def _draw(self, key, theta, shape):
        logs = jax.random.loggamma(key, theta, (*shape, *theta.shape), dtype=theta.dtype)
        limits = jnp.finfo(theta.dtype)
        return jnp.clip(jax.nn.sigmoid(logs[..., 0] - logs[..., 1]), limits.tiny, 1 - limits.epsneg)
