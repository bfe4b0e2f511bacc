"""The Poisson family: counts of events at a constant rate."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlogy

from cumulant.families.base import ExponentialFamily, family
from cumulant.families.factorials import expected_log_factorial
from cumulant.families.inverses import count_deviance, log_factorial_rest, log_gamma
from cumulant.families.special import expm1_excess
from cumulant.families.tails import gamma_log_tails


@family
class Poisson(ExponentialFamily):
    """Counts ``x`` in {0, 1, 2, ...} with mean ``rate``.

    ``T(x) = x``, ``theta = log rate``, ``A(theta) = exp(theta)``, ``mu = rate``, ``A*(mu) = mu log mu - mu``,
    base measure ``1 / x!``.

    Examples
    --------
    >>> fam = Poisson()
    >>> fam.kl(fam.natural(rate=3.0), fam.natural(rate=2.0))  # 3 log(3/2) - 1
    np.float64(0.2163953243...)
    """

    dim = 1
    support = "x in {0, 1, 2, ...}"
    usual_domain = "a positive, finite rate"
    domain = "theta finite (the log of a positive rate)"
    mean_domain = "mu > 0"
    discrete = True
    ends = (0.0, np.inf)

    def statistics(self, x):
        return x[..., None]

    def log_base(self, x):
        return -gammaln(x + 1)

    def log_partition(self, theta):
        return jnp.exp(theta[..., 0])

    def natural(self, *, rate):
        return jnp.log(rate)[..., None]

    def usual(self, theta):
        return {"rate": jnp.exp(theta[..., 0])}

    def to_mean(self, theta):
        return jnp.exp(theta)

    def to_natural(self, mu):
        return jnp.log(mu)

    def conjugate(self, mu):
        return xlogy(mu[..., 0], mu[..., 0]) - mu[..., 0]

    def _log_density(self, x, theta):
        return -count_deviance(x, theta[..., 0]) - log_factorial_rest(x)

    def kl(self, theta, other):
        first, second = theta[..., 0], other[..., 0]
        step = second - first
        far = jnp.exp(second) - jnp.exp(first) * (1 + step)  # no overflow of exp(step) for a tiny rate
        return jnp.where(step > 1, far, jnp.exp(first) * expm1_excess(jnp.minimum(step, 1.0)))

    def _log_tails(self, x, theta):
        lower, upper = gamma_log_tails(jnp.exp(theta[..., 0]), x + 1)  # a count of x + 1 or more: the (x + 1)-th event
        return upper, lower

    # exp theta, the rate, is gamma under the conjugate density.

    def _log_conjugate_normaliser(self, total, count):
        return log_gamma(total[..., 0]) - total[..., 0] * jnp.log(count)

    def _draw_conjugate(self, key, total, count, shape):
        return jax.random.loggamma(key, total, (*shape, 1), dtype=total.dtype) - jnp.log(count)

    def expected_log_base(self, theta):
        rate = jnp.exp(theta[..., 0])
        return -expected_log_factorial(lambda t: rate * jnp.expm1(-t), rate)

    def entropy(self, theta):
        rate = jnp.exp(theta[..., 0])
        large = jnp.maximum(rate, 1e3)  # there A - <theta, mu> - E log h cancels, and the expansion is exact to 1e-13
        expansion = 0.5 * jnp.log(2 * jnp.pi * jnp.e * large) - (1 / 12 + (1 / 24 + 19 / 360 / large) / large) / large
        return jnp.where(rate > 1e3, expansion, rate * (1 - theta[..., 0]) - self.expected_log_base(theta))

    def in_mean_domain(self, mu):
        return (mu[..., 0] > 0) & jnp.isfinite(mu[..., 0])

    def in_support(self, x):
        return (x >= 0) & (x == jnp.floor(x)) & jnp.isfinite(x)

    def _draw(self, key, theta, shape):
        rate = jnp.exp(theta[..., 0])
        return jax.random.poisson(key, rate, (*shape, *rate.shape))

    def _obstacle(self, central, count):
        return f"all {count:g} counts are zero, and the likelihood keeps growing as the rate goes to 0"
