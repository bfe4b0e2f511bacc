"""The gamma family, and the inverse gamma: positive numbers with two free parameters."""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.families.base import ExponentialFamily, family
from cumulant.families.gamma_kernels import sums_of_excess_and_log
from cumulant.families.inverses import (
    digamma,
    implicit_inverse,
    inverse_digamma_gap,
    log_gamma,
    log_gamma_and_digamma,
    log_gamma_rest,
    plain_digamma_gap,
)
from cumulant.families.multigamma import multigamma_divergence
from cumulant.families.rows import divergence
from cumulant.families.special import phi, phi_ratio
from cumulant.families.tails import gamma_log_tails


def gamma_log_density(x, shape, rate):
    """``-log x - a phi(b x / a) - G(a)``, whose terms do not cancel for a large shape.

    ``G(a) = log Gamma(a) - a log a + a``, ``phi(z) = z - 1 - log z``; rounding ``z`` is no worse than rounding ``x``.
    """
    z, limits = rate * x / shape, jnp.finfo(jnp.result_type(x, shape, rate))
    tiny, scale = z < limits.tiny, 2.0 ** (limits.maxexp * 600 // 1024)  # what underflows is scaled up, twice
    log_z = jnp.log(jnp.where(tiny, (x * scale * rate) / shape * scale, z)) - jnp.where(tiny, 2 * np.log(scale), 0.0)
    # -log x = log(b / a) - log z: one logarithm for each observation.
    return (jnp.log(rate) - jnp.log(shape) - log_gamma_rest(shape)) - log_z - shape * ((z - 1) - log_z)


def gamma_entropy(shape):
    """The entropy at rate one: ``G(a) + a g(a) + log(a) - g(a)``, ``g(a) = log a - digamma(a) = -G'(a)``."""
    gap = plain_digamma_gap(shape)
    return log_gamma_rest(shape) + (shape - 1) * gap + jnp.log(shape)


def _accurate_divergence(theta, other):
    shape, rate, other_shape, other_rate = theta[..., 0], theta[..., 1], other[..., 0], other[..., 1]
    # Rates divided by shapes, so that products neither overflow nor underflow before the quotient does.
    return multigamma_divergence(other_shape, shape, 1) + other_shape * phi_ratio(
        -other_rate / other_shape, -rate / shape
    )


def _quick_divergence(theta, other):
    shape, other_shape, ratio = theta[..., 0], other[..., 0], other[..., 1] / theta[..., 1]
    (here, slope), there = log_gamma_and_digamma(shape), log_gamma(other_shape)
    slope, means, logs = slope * (other_shape - shape), shape * (ratio - 1), other_shape * jnp.log(ratio)
    value = there - here - slope + means - logs
    # The error of `log_gamma` is that of log Gamma(10) = 12.8 where its value is less.
    return value, 26 + jnp.abs(here) + jnp.abs(there) + jnp.abs(slope) + jnp.abs(means) + jnp.abs(logs)


@family
class Gamma(ExponentialFamily):
    """Positive ``x`` with shape ``a`` and rate ``b``.

    ``T(x) = (log x, x)``, ``theta = (a, -b)``, ``A(theta) = log Gamma(a) - a log b``,
    ``mu = (digamma(a) - log b, a / b)``, base measure ``1 / x``.

    The mean map is inverted through the one number ``log E x - E log x = log a - digamma(a)``, which is also what is
    kept of data, so that nothing cancels for a large shape.

    Examples
    --------
    >>> fam = Gamma()
    >>> theta = fam.natural(shape=2.0, rate=3.0)
    >>> fam.to_mean(theta)
    array([-0.67582795,  0.66666667])
    >>> fam.to_natural(fam.to_mean(theta))
    array([ 2., -3.])
    """

    dim = 2
    support = "x > 0"
    usual_domain = "a positive, finite shape and rate"
    domain = "theta[0] > 0 (the shape) and theta[1] < 0 (minus the rate)"
    mean_domain = "mu[1] > 0 and mu[0] < log(mu[1]) (Jensen's inequality for E log x)"
    ends = (0.0, np.inf)

    def statistics(self, x):
        return jnp.stack([jnp.log(x), x], axis=-1)

    def log_base(self, x):
        return -jnp.log(x)

    def log_partition(self, theta):
        return log_gamma(theta[..., 0]) - theta[..., 0] * jnp.log(-theta[..., 1])

    def natural(self, *, shape, rate):
        return jnp.stack(jnp.broadcast_arrays(shape, -rate), axis=-1)

    def usual(self, theta):
        return {"shape": theta[..., 0], "rate": -theta[..., 1]}

    def to_mean(self, theta):
        shape, rate = theta[..., 0], -theta[..., 1]
        return jnp.stack([digamma(shape) - jnp.log(rate), shape / rate], axis=-1)

    def to_natural(self, mu):
        return implicit_inverse(lambda self, m: self._central_to_natural(self._from_mean(m)), self, mu)

    def expected_log_base(self, theta):
        return jnp.log(-theta[..., 1]) - digamma(theta[..., 0])

    def _log_density(self, x, theta):
        return gamma_log_density(x, theta[..., 0], -theta[..., 1])

    def entropy(self, theta):
        return gamma_entropy(theta[..., 0]) - jnp.log(-theta[..., 1])

    def kl(self, theta, other):
        return divergence(_quick_divergence, _accurate_divergence, theta, other)

    def in_domain(self, theta):
        return jnp.all(jnp.isfinite(theta), axis=-1) & (theta[..., 0] > 0) & (theta[..., 1] < 0)

    def _log_tails(self, x, theta):
        return gamma_log_tails(-theta[..., 1] * x, theta[..., 0])

    def _point(self, y, theta):
        x = theta[..., 0] / -theta[..., 1] * jnp.exp(y)
        return x, jnp.log(x)

    def in_mean_domain(self, mu):
        positive = jnp.all(jnp.isfinite(mu), axis=-1) & (mu[..., 1] > 0)
        return positive & (mu[..., 0] < jnp.log(jnp.where(positive, mu[..., 1], 1.0)))

    def in_support(self, x):
        return (x > 0) & jnp.isfinite(x)

    def _draw(self, key, theta, shape):
        alpha, rate = theta[..., 0], -theta[..., 1]
        logs = jax.random.loggamma(key, alpha, (*shape, *alpha.shape), dtype=theta.dtype)
        # A tiny shape draws numbers below the smallest float: they are kept positive, as the support demands.
        return jnp.maximum(jnp.exp(logs - jnp.log(rate)), jnp.finfo(theta.dtype).tiny)

    # Central coordinates: (E x, log E x - E log x).

    def _central(self, x, weights):
        mean = jnp.sum(weights * x, axis=0)
        return jnp.stack([mean, jnp.sum(weights * phi(x / mean), axis=0)], axis=-1)

    def _central_of_numpy(self, x):
        if x.ndim != 1 or not x.flags.c_contiguous:
            return None
        guess = float(np.mean(x[:1024]))
        for _ in range(3):
            if not 1e-290 < guess < 1e290:
                return None
            excess, logs, fine = sums_of_excess_and_log(x, 0, len(x), 1 / guess)
            if not fine:
                return None
            excess, logs = excess / len(x), logs / len(x)
            gap = np.log1p(excess) - logs
            if gap < 1e-6:  # a spread so small that logarithms of the numbers themselves do not tell it
                return None
            if abs(excess) < 100 * gap:  # little has cancelled: the guess was near enough to the mean
                return np.array([guess * (1 + excess), gap])
            guess *= 1 + excess
        return None

    def _merge(self, first, second, share):
        mean = first[..., 0] + share * (second[..., 0] - first[..., 0])
        gap = (1 - share) * (first[..., 1] + phi(first[..., 0] / mean)) + share * (
            second[..., 1] + phi(second[..., 0] / mean)
        )
        return jnp.stack([mean, gap], axis=-1)

    def _from_mean(self, mu):
        return jnp.stack([mu[..., 1], jnp.log(mu[..., 1]) - mu[..., 0]], axis=-1)

    def _central_to_mean(self, central):
        return jnp.stack([jnp.log(central[..., 0]) - central[..., 1], central[..., 0]], axis=-1)

    def _central_to_natural(self, central):
        shape = inverse_digamma_gap(central[..., 1])
        return jnp.stack([shape, -shape / central[..., 0]], axis=-1)

    def _estimable(self, central):
        rounding = (4 * jnp.finfo(central.dtype).eps) ** 2
        return jnp.all(jnp.isfinite(central), axis=-1) & (central[..., 0] > 0) & (central[..., 1] > rounding)

    def _obstacle(self, central, count):
        return f"all {count:g} observations are equal, and the likelihood keeps growing as the shape goes to infinity"


@family
class InverseGamma(Gamma):
    """Positive ``x`` whose inverse is gamma with shape ``a`` and rate ``b`` (the ``scale`` of ``x``).

    The gamma family seen through ``T(x) = (-log x, 1 / x)``: ``theta = (a, -b)`` and the same ``A``, base measure ``1
    / x``.

    Examples
    --------
    >>> fam = InverseGamma()
    >>> fam.log_prob(0.5, fam.natural(shape=3.0, scale=1.0))
    np.float64(0.0794415...)
    """

    mean_domain = "mu[1] > 0 and mu[0] < log(mu[1]) (Jensen's inequality for E log 1/x)"

    def statistics(self, x):
        return jnp.stack([-jnp.log(x), 1 / x], axis=-1)

    def natural(self, *, shape, scale):
        return jnp.stack(jnp.broadcast_arrays(shape, -scale), axis=-1)

    def usual(self, theta):
        return {"shape": theta[..., 0], "scale": -theta[..., 1]}

    def expected_log_base(self, theta):
        return digamma(theta[..., 0]) - jnp.log(-theta[..., 1])

    def _log_density(self, x, theta):
        return gamma_log_density(1 / x, theta[..., 0], -theta[..., 1]) - 2 * jnp.log(x)

    def _log_tails(self, x, theta):
        lower, upper = gamma_log_tails(-theta[..., 1] / x, theta[..., 0])
        return upper, lower

    def _inverse_tails(self, log_lower, log_upper, theta):
        return 1 / Gamma()._inverse_tails(log_upper, log_lower, theta)

    def entropy(self, theta):
        shape, scale = theta[..., 0], -theta[..., 1]
        return gamma_entropy(shape) + 2 * (plain_digamma_gap(shape) - jnp.log(shape)) + jnp.log(scale)

    def _draw(self, key, theta, shape):
        return 1 / Gamma._draw(self, key, theta, shape)

    def _central(self, x, weights):
        return Gamma._central(self, 1 / x, weights)

    def _central_of_numpy(self, x):
        return None
