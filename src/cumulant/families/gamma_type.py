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
from cumulant.families.quantiles import solve_tails
from cumulant.families.special import phi_ratio
from cumulant.families.tails import gamma_log_tails, log_one_minus_exp, order_tails


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
    ends = (0.0, np.inf)

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

    # The rest holds where T is increasing and alpha is one, so that T is exponential; other families override it.

    def _from_statistic(self, t):
        """The inverse of the statistic."""
        return t

    def _log_tails(self, x, theta):
        upper = theta[..., 0] * self.statistics(x)[..., 0]
        return log_one_minus_exp(upper), upper

    def _inverse_tails(self, log_lower, log_upper, theta):
        return self._from_statistic(log_upper / theta[..., 0])

    def _draw(self, key, theta, shape):
        exponential = jax.random.exponential(key, (*shape, *theta.shape[:-1]), dtype=theta.dtype)
        return self._from_statistic(exponential / -theta[..., 0])

    # -theta is gamma under the conjugate density.

    def _log_conjugate_normaliser(self, total, count):
        shape = self.alpha * count + 1
        return log_gamma(shape) - shape * jnp.log(total[..., 0]) - count * self.offset

    def _draw_conjugate(self, key, total, count, shape):
        return -jax.random.gamma(key, self.alpha * count + 1, (*shape, 1), dtype=total.dtype) / total

    def _log_statistic(self, theta):
        """``E log T(x) = digamma(alpha) - log(-theta)``."""
        return digamma(jnp.asarray(self.alpha, dtype=theta.dtype)) - jnp.log(-theta[..., 0])

    def _obstacle(self, central, count):
        limit = "the likelihood keeps growing as the scale goes to 0"
        return f"the statistic is zero on all {count:g} observations, and {limit}"


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
    fitting_advice = "; Gamma() fits it too"

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

    def _log_tails(self, x, theta):
        return gamma_log_tails(-theta[..., 0] * x, jnp.asarray(self.shape, dtype=theta.dtype))

    def _point(self, y, theta):
        x = self.shape / -theta[..., 0] * jnp.exp(y)
        return x, jnp.log(x)

    def _inverse_tails(self, log_lower, log_upper, theta):
        return solve_tails(self, log_lower, log_upper, theta)

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
    ends = (-np.inf, np.inf)
    constant_log_base = -float(np.log(2.0))

    def statistics(self, x):
        return jnp.abs(x - self.centre)[..., None]

    def natural(self, *, scale):
        return (-1 / scale)[..., None]

    def usual(self, theta):
        return {"scale": -1 / theta[..., 0]}

    def in_support(self, x):
        return jnp.isfinite(x)

    def _log_tails(self, x, theta):
        return order_tails(x < self.centre, theta[..., 0] * jnp.abs(x - self.centre) - np.log(2.0))

    def _inverse_tails(self, log_lower, log_upper, theta):
        away = (jnp.minimum(log_lower, log_upper) + np.log(2.0)) / theta[..., 0]
        return self.centre + jnp.where(log_lower < log_upper, -away, away)

    def _draw(self, key, theta, shape):
        standard = jax.random.laplace(key, (*shape, *theta.shape[:-1]), dtype=theta.dtype)
        return self.centre - standard / theta[..., 0]


@family
class ParetoKnownMinimum(GammaType):
    """``x`` at least a known ``minimum``, with tail ``(minimum / x)^exponent``.

    ``T(x) = log(x / minimum)``, ``theta = -exponent``, ``A(theta) = -log(-theta)``, ``mu = 1 / exponent``,
    base measure ``1 / x``. ``families.profile(ParetoKnownMinimum, x)`` fits the minimum too.

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

    @property
    def ends(self):
        return (self.minimum, np.inf)

    def in_support(self, x):
        return (x >= self.minimum) & jnp.isfinite(x)

    def _example_point(self):
        return np.asarray(2 * self.minimum)

    def _from_statistic(self, t):
        return self.minimum * jnp.exp(t)


@family
class WeibullKnownShape(GammaType):
    """Positive ``x`` with known ``shape`` ``k`` and scale ``scale``.

    ``T(x) = x^k``, ``theta = -scale^-k``, ``A(theta) = -log(-theta)``, ``mu = scale^k``, base measure ``k x^(k - 1)``.
    With ``k`` unknown this is no exponential family: ``families.profile(WeibullKnownShape, x)`` fits both.

    Examples
    --------
    >>> fam = WeibullKnownShape(shape=2.0)
    >>> fam.to_mean(fam.natural(scale=3.0))
    array([9.])
    """

    shape: float

    support = "x > 0"
    fitting_advice = "; to fit it from data, families.profile(WeibullKnownShape, x)"

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

    def _from_statistic(self, t):
        return t ** (1 / self.shape)


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

    def _from_statistic(self, t):
        return jnp.sqrt(t)
