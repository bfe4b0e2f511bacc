"""Families with ``A(theta) = -alpha log(-theta)``: gamma with known shape and all that it becomes under a change of
variable.

Their statistic is ``Gamma(alpha, rate -theta)`` distributed. All that concerns estimation depends on ``alpha`` alone,
which is why the exact risks of `families.risk` are stated once for all of them.
"""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.families.base import ExponentialFamily, family
from cumulant.families.gamma import gamma_entropy, gamma_log_density
from cumulant.families.inverses import digamma, log_gamma
from cumulant.families.special import phi_ratio


class GammaType(ExponentialFamily):
    """``A(theta) = -alpha log(-theta) + offset``, ``theta < 0``, ``mu = -alpha / theta``, and ``T(x) ~ Gamma(alpha,
    -theta)``.

    ``KL(p || q) = alpha (z - 1 - log z)`` with ``z = mu_p / mu_q``: everything is free of scale.
    """

    alpha: float = 1.0
    offset: float = 0.0
    dim = 1
    domain = "theta < 0"
    mean_domain = "mu > 0"

    def log_partition(self, theta):
        return -self.alpha * jnp.log(-theta[..., 0]) + self.offset

    def to_mean(self, theta):
        return -self.alpha / theta

    def to_natural(self, mu):
        return -self.alpha / mu

    def conjugate(self, mu):
        return self.alpha * (np.log(self.alpha) - 1 - jnp.log(mu[..., 0])) - self.offset

    def kl(self, theta, other):
        return self.alpha * phi_ratio(-other[..., 0], -theta[..., 0])

    def in_domain(self, theta):
        return jnp.isfinite(theta[..., 0]) & (theta[..., 0] < 0)

    def in_mean_domain(self, mu):
        return jnp.isfinite(mu[..., 0]) & (mu[..., 0] > 0)

    def in_support(self, x):
        return (x > 0) & jnp.isfinite(x)

    def _log_statistic(self, theta):
        """``E log T(x) = digamma(alpha) - log(-theta)``."""
        return digamma(jnp.asarray(self.alpha, dtype=theta.dtype)) - jnp.log(-theta[..., 0])

    def _obstacle(self, central, count):
        limit = "the likelihood keeps growing as the scale goes to 0"
        return f"the statistic is zero on all {count:g} observations, and {limit}"


def _exponential(key, theta, shape):
    """Draws of the statistic where ``alpha = 1``."""
    return jax.random.exponential(key, (*shape, *theta.shape[:-1]), dtype=theta.dtype) / -theta[..., 0]


def _positive(name, value):
    checks.positive(name, value)


@family
class GammaKnownShape(GammaType):
    """Positive ``x``, gamma with known ``shape`` and rate ``rate``: ``T(x) = x``, ``theta = -rate``.

    ``A(theta) = -shape log(-theta)``, ``mu = shape / rate``, base measure ``x^(shape - 1) / Gamma(shape)``.

    Examples
    --------
    >>> fam = GammaKnownShape(shape=2.0)
    >>> fam.to_mean(fam.natural(rate=4.0))
    array([0.5])
    """

    shape: float

    support = "x > 0"

    def __post_init__(self):
        _positive("shape", self.shape)

    @property
    def alpha(self):
        return self.shape

    def statistics(self, x):
        return x[..., None]

    def log_base(self, x):
        return (self.shape - 1) * jnp.log(x) - log_gamma(jnp.asarray(self.shape, dtype=x.dtype))

    def natural(self, *, rate):
        return -jnp.asarray(rate)[..., None]

    def usual(self, theta):
        return {"rate": -theta[..., 0]}

    def expected_log_base(self, theta):
        return (self.shape - 1) * self._log_statistic(theta) - log_gamma(jnp.asarray(self.shape, dtype=theta.dtype))

    def entropy(self, theta):
        return gamma_entropy(jnp.full_like(theta[..., 0], self.shape)) - jnp.log(-theta[..., 0])

    def _log_density(self, x, theta):
        return gamma_log_density(x, jnp.asarray(self.shape, dtype=theta.dtype), -theta[..., 0])

    def _draw(self, key, theta, shape):
        rate = -theta[..., 0]
        return jax.random.gamma(key, self.shape, (*shape, *rate.shape), dtype=theta.dtype) / rate


@family
class Exponential(GammaType):
    """Waiting times ``x >= 0`` at a constant ``rate``: ``T(x) = x``, ``theta = -rate``, ``A(theta) = -log(-theta)``.

    ``mu = 1 / rate``, ``A*(mu) = -1 - log mu``, base measure 1.

    Examples
    --------
    >>> fam = Exponential()
    >>> fam.usual(fam.mle([1.0, 2.0, 3.0]))
    {'rate': np.float64(0.5)}
    """

    support = "x >= 0"
    constant_log_base = 0.0

    def statistics(self, x):
        return x[..., None]

    def natural(self, *, rate):
        return -jnp.asarray(rate)[..., None]

    def usual(self, theta):
        return {"rate": -theta[..., 0]}

    def in_support(self, x):
        return (x >= 0) & jnp.isfinite(x)

    def _draw(self, key, theta, shape):
        return _exponential(key, theta, shape)


@family
class LaplaceKnownCentre(GammaType):
    """Real ``x``, double exponential around a known ``centre`` with scale ``scale``.

    ``T(x) = |x - centre|``, ``theta = -1 / scale``, ``A(theta) = -log(-theta)``, ``mu = scale``, base measure 1/2.

    Examples
    --------
    >>> fam = LaplaceKnownCentre()
    >>> fam.usual(fam.mle([-1.0, 3.0]))
    {'scale': np.float64(2.0)}
    """

    centre: float = 0.0

    support = "x real"
    constant_log_base = -float(np.log(2.0))

    def statistics(self, x):
        return jnp.abs(x - self.centre)[..., None]

    def natural(self, *, scale):
        return (-1 / scale)[..., None]

    def usual(self, theta):
        return {"scale": -1 / theta[..., 0]}

    def in_support(self, x):
        return jnp.isfinite(x)

    def _draw(self, key, theta, shape):
        standard = jax.random.laplace(key, (*shape, *theta.shape[:-1]), dtype=theta.dtype)
        return self.centre - standard / theta[..., 0]


@family
class ParetoKnownMinimum(GammaType):
    """``x`` at least a known ``minimum``, with tail ``(minimum / x)^exponent``.

    ``T(x) = log(x / minimum)``, ``theta = -exponent``, ``A(theta) = -log(-theta)``, ``mu = 1 / exponent``,
    base measure ``1 / x``.

    Examples
    --------
    >>> fam = ParetoKnownMinimum(minimum=1.0)
    >>> fam.log_prob(2.0, fam.natural(exponent=3.0))  # log 3 - 4 log 2
    np.float64(-1.6739764335...)
    """

    minimum: float = 1.0

    support = "x >= minimum"

    def __post_init__(self):
        _positive("minimum", self.minimum)

    def statistics(self, x):
        return jnp.log(x / self.minimum)[..., None]

    def log_base(self, x):
        return -jnp.log(x)

    def natural(self, *, exponent):
        return -jnp.asarray(exponent)[..., None]

    def usual(self, theta):
        return {"exponent": -theta[..., 0]}

    def expected_log_base(self, theta):
        return 1 / theta[..., 0] - np.log(self.minimum)

    def in_support(self, x):
        return (x >= self.minimum) & jnp.isfinite(x)

    def _example_point(self):
        return np.asarray(2 * self.minimum)

    def _draw(self, key, theta, shape):
        return self.minimum * jnp.exp(_exponential(key, theta, shape))


@family
class WeibullKnownShape(GammaType):
    """Positive ``x`` with known ``shape`` ``k`` and scale ``scale``.

    ``T(x) = x^k``, ``theta = -scale^-k``, ``A(theta) = -log(-theta)``, ``mu = scale^k``, base measure ``k x^(k - 1)``.

    Examples
    --------
    >>> fam = WeibullKnownShape(shape=2.0)
    >>> fam.to_mean(fam.natural(scale=3.0))
    array([9.])
    """

    shape: float

    support = "x > 0"

    def __post_init__(self):
        _positive("shape", self.shape)

    def statistics(self, x):
        return (x**self.shape)[..., None]

    def log_base(self, x):
        return np.log(self.shape) + (self.shape - 1) * jnp.log(x)

    def natural(self, *, scale):
        # A scale that is not positive has no power: say so through the domain rather than through a complex number.
        return jnp.where(jnp.asarray(scale) > 0, -jnp.power(jnp.abs(scale), -self.shape), jnp.nan)[..., None]

    def usual(self, theta):
        return {"scale": (-theta[..., 0]) ** (-1 / self.shape)}

    def expected_log_base(self, theta):
        return np.log(self.shape) + (self.shape - 1) / self.shape * self._log_statistic(theta)

    def _draw(self, key, theta, shape):
        return _exponential(key, theta, shape) ** (1 / self.shape)


@family
class Rayleigh(GammaType):
    """Positive ``x``: the length of a plane normal vector with standard deviation ``scale`` in each coordinate.

    ``T(x) = x^2``, ``theta = -1 / (2 scale^2)``, ``A(theta) = -log(-theta)``, ``mu = 2 scale^2``, base measure ``2 x``.

    Examples
    --------
    >>> fam = Rayleigh()
    >>> fam.to_mean(fam.natural(scale=3.0))
    array([18.])
    """

    support = "x > 0"

    def statistics(self, x):
        return (x**2)[..., None]

    def log_base(self, x):
        return jnp.log(2 * x)

    def natural(self, *, scale):
        return jnp.where(jnp.asarray(scale) > 0, -0.5 / jnp.square(scale), jnp.nan)[..., None]

    def usual(self, theta):
        return {"scale": jnp.sqrt(-0.5 / theta[..., 0])}

    def expected_log_base(self, theta):
        return np.log(2.0) + 0.5 * self._log_statistic(theta)

    def _draw(self, key, theta, shape):
        return jnp.sqrt(_exponential(key, theta, shape))
