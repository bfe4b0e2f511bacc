"""The normal family on the line: mean and variance both unknown, or one of them known."""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.families.base import ExponentialFamily, family
from cumulant.families.gamma_type import GammaType
from cumulant.families.inverses import log_gamma
from cumulant.families.multivariate_normal_diagonal import IndependentNormal
from cumulant.families.tails import normal_log_tails, normal_quantile

_LOG_2PI = float(np.log(2 * np.pi))


@family
class Normal(IndependentNormal):
    """Real ``x`` with mean ``m`` and variance ``v``.

    ``T(x) = (x, x^2)``, ``theta = (m / v, -1 / (2 v))``, ``A = -theta_0^2 / (4 theta_1) - log(-2 theta_1) / 2``,
    ``mu = (m, m^2 + v)``, ``A*(mu) = -log(mu_1 - mu_0^2) / 2 - 1/2``, base measure ``1 / sqrt(2 pi)``.

    Statistics are kept as (mean, variance), so that estimates do not cancel when ``|m|`` is much larger than ``sqrt
    v``.

    Examples
    --------
    >>> fam = Normal()
    >>> theta = fam.natural(mean=1.0, variance=4.0)
    >>> fam.to_mean(theta), fam.entropy(theta)
    (array([1., 5.]), np.float64(2.112085713...))
    """

    size = 1
    support = "x real"
    usual_domain = "a finite mean and a positive, finite variance"
    domain = "theta[0] finite and theta[1] < 0 (minus half the precision)"
    mean_domain = "mu[1] > mu[0]^2 (a positive variance)"

    @property
    def event_shape(self):
        return ()

    def natural(self, *, mean, variance):
        return self._central_to_natural(jnp.stack(jnp.broadcast_arrays(mean, variance), axis=-1))

    def usual(self, theta):
        variance = -0.5 / theta[..., 1]
        return {"mean": theta[..., 0] * variance, "variance": variance}

    def _draw(self, key, theta, shape):
        return super()._draw(key, theta, shape)[..., 0]

    # Under the conjugate density the precision is gamma, and the mean normal given it.

    def _precision(self, total, count):
        """Shape and rate of the precision."""
        return 0.5 * (count + 3), 0.5 * (total[..., 1] - total[..., 0] ** 2 / count)

    def _log_conjugate_normaliser(self, total, count):
        shape, rate = self._precision(total, count)
        return log_gamma(shape) - shape * jnp.log(rate) + 0.5 * (_LOG_2PI - jnp.log(count)) - np.log(2.0)

    def _draw_conjugate(self, key, total, count, shape):
        first, second = jax.random.split(key)
        half, rate = self._precision(total, count)
        precision = jax.random.gamma(first, half, shape, dtype=total.dtype) / rate
        mean = total[..., 0] / count + jax.random.normal(second, shape, total.dtype) / jnp.sqrt(count * precision)
        return jnp.stack([mean * precision, -0.5 * precision], axis=-1)

    def _log_tails(self, x, theta):
        mean, variances = self._moments(theta)
        return normal_log_tails(((self._coordinates(x) - mean) / jnp.sqrt(variances))[..., 0])

    def _inverse_tails(self, log_lower, log_upper, theta):
        mean, variances = self._moments(theta)
        return mean[..., 0] + jnp.sqrt(variances[..., 0]) * normal_quantile(log_lower, log_upper)

    def _coordinates(self, x):
        return x[..., None]


@family
class NormalKnownVariance(ExponentialFamily):
    """Real ``x`` with mean ``m`` and known ``variance`` ``v``.

    ``T(x) = x``, ``theta = m / v``, ``A(theta) = v theta^2 / 2``, ``mu = m``, ``A*(mu) = mu^2 / (2 v)``,
    base measure ``N(x; 0, v)``.

    Examples
    --------
    >>> fam = NormalKnownVariance(variance=4.0)
    >>> fam.natural(mean=2.0)
    array([0.5])
    """

    variance: float = 1.0

    dim = 1
    support = "x real"
    domain = "theta finite"
    mean_domain = "mu finite"

    def __post_init__(self):
        checks.positive("variance", self.variance)

    def statistics(self, x):
        return x[..., None]

    def log_base(self, x):
        return -0.5 * (x**2 / self.variance + _LOG_2PI + np.log(self.variance))

    def log_partition(self, theta):
        return 0.5 * (np.sqrt(self.variance) * theta[..., 0]) ** 2

    def natural(self, *, mean):
        return (mean / self.variance)[..., None]

    def usual(self, theta):
        return {"mean": theta[..., 0] * self.variance}

    def to_mean(self, theta):
        return theta * self.variance

    def to_natural(self, mu):
        return mu / self.variance

    def conjugate(self, mu):
        return 0.5 * mu[..., 0] ** 2 / self.variance

    def expected_log_base(self, theta):
        mean = theta[..., 0] * self.variance
        return -0.5 * (mean**2 / self.variance + 1 + _LOG_2PI + np.log(self.variance))

    def entropy(self, theta):
        return jnp.full_like(theta[..., 0], 0.5 * (1 + _LOG_2PI + np.log(self.variance)))

    def _log_density(self, x, theta):
        apart = (x - theta[..., 0] * self.variance) / np.sqrt(self.variance)
        return -0.5 * (apart**2 + _LOG_2PI + np.log(self.variance))

    def kl(self, theta, other):
        return 0.5 * (np.sqrt(self.variance) * (theta[..., 0] - other[..., 0])) ** 2

    def _log_conjugate_normaliser(self, total, count):
        precision = count * self.variance
        return 0.5 * (total[..., 0] ** 2 / precision + _LOG_2PI - jnp.log(precision))

    def _draw_conjugate(self, key, total, count, shape):
        precision = count * self.variance
        return total / precision + jax.random.normal(key, (*shape, 1), total.dtype) / jnp.sqrt(precision)

    def _log_tails(self, x, theta):
        return normal_log_tails((x - theta[..., 0] * self.variance) / np.sqrt(self.variance))

    def _inverse_tails(self, log_lower, log_upper, theta):
        return theta[..., 0] * self.variance + np.sqrt(self.variance) * normal_quantile(log_lower, log_upper)

    def _draw(self, key, theta, shape):
        mean = theta[..., 0] * self.variance
        return mean + np.sqrt(self.variance) * jax.random.normal(key, (*shape, *mean.shape), dtype=theta.dtype)


@family
class NormalKnownMean(GammaType):
    """Real ``x`` with known ``mean`` and variance ``v``: the family of variances.

    ``T(x) = (x - mean)^2``, ``theta = -1 / (2 v)``, ``A(theta) = -log(-2 theta) / 2``, ``mu = v``,
    ``A*(mu) = -log(mu) / 2 - 1/2``, base measure ``1 / sqrt(2 pi)``.

    Examples
    --------
    >>> fam = NormalKnownMean(mean=1.0)
    >>> fam.usual(fam.mle([0.0, 2.0, 4.0]))
    {'variance': np.float64(3.666666...)}
    """

    mean: float = 0.0

    alpha = 0.5
    offset = -0.5 * float(np.log(2.0))
    constant_log_base = -0.5 * _LOG_2PI
    support = "x real"
    ends = (-np.inf, np.inf)

    def statistics(self, x):
        return ((x - self.mean) ** 2)[..., None]

    def natural(self, *, variance):
        return (-0.5 / variance)[..., None]

    def usual(self, theta):
        return {"variance": -0.5 / theta[..., 0]}

    def in_support(self, x):
        return jnp.isfinite(x)

    def _log_tails(self, x, theta):
        return normal_log_tails((x - self.mean) * jnp.sqrt(-2 * theta[..., 0]))

    def _inverse_tails(self, log_lower, log_upper, theta):
        return self.mean + jnp.sqrt(-0.5 / theta[..., 0]) * normal_quantile(log_lower, log_upper)

    def _draw(self, key, theta, shape):
        scale = jnp.sqrt(-0.5 / theta[..., 0])
        return self.mean + scale * jax.random.normal(key, (*shape, *scale.shape), dtype=theta.dtype)


@family
class LogNormal(Normal):
    """Positive ``x`` whose logarithm is normal with mean ``location`` and variance ``variance``.

    The normal family seen through ``T(x) = (log x, log^2 x)``: same ``A``, base measure ``1 / (x sqrt(2 pi))``.

    Examples
    --------
    >>> fam = LogNormal()
    >>> fam.log_prob(2.0, fam.natural(location=0.0, variance=1.0))
    np.float64(-1.852312...)
    """

    support = "x > 0"
    ends = (0.0, np.inf)

    def log_base(self, x):
        return -0.5 * _LOG_2PI - jnp.log(x)

    def natural(self, *, location, variance):
        return Normal().natural(mean=location, variance=variance)

    def usual(self, theta):
        variance = -0.5 / theta[..., 1]
        return {"location": theta[..., 0] * variance, "variance": variance}

    def expected_log_base(self, theta):
        return -0.5 * _LOG_2PI + theta[..., 0] / (2 * theta[..., 1])

    def entropy(self, theta):
        return super().entropy(theta) - theta[..., 0] / (2 * theta[..., 1])

    def in_support(self, x):
        return (x > 0) & jnp.isfinite(x)

    def _log_density(self, x, theta):
        return super()._log_density(x, theta) - jnp.log(x)

    def _draw(self, key, theta, shape):
        return jnp.exp(super()._draw(key, theta, shape))

    def _inverse_tails(self, log_lower, log_upper, theta):
        return jnp.exp(super()._inverse_tails(log_lower, log_upper, theta))

    def _coordinates(self, x):
        return jnp.log(x)[..., None]
