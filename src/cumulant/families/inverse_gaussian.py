"""The inverse Gaussian family: first-passage times of a drifting Brownian motion."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import exp1

from cumulant.families.base import ExponentialFamily, family
from cumulant.families.special import phi_ratio
from cumulant.families.tails import inverse_gaussian_log_tails

_LOG_2PI = float(np.log(2 * np.pi))


@family
class InverseGaussian(ExponentialFamily):
    """Positive ``x`` with mean ``m`` and shape ``l`` (variance ``m^3 / l``).

    ``T(x) = (x, 1/x)``, ``theta = (-l / (2 m^2), -l / 2)``, ``A(theta) = -2 sqrt(theta_0 theta_1) - log(-2 theta_1) /
    2``, ``mu = (m, 1/m + 1/l)``, ``A*(mu) = -(log(mu_1 - 1/mu_0) + 1) / 2``, base measure ``1 / sqrt(2 pi x^3)``.

    Statistics are kept as ``(E x, E 1/x - 1 / E x)``, the second computed as a sum of squares.

    Examples
    --------
    >>> fam = InverseGaussian()
    >>> fam.to_mean(fam.natural(mean=2.0, shape=4.0))
    array([2.  , 0.75])
    """

    dim = 2
    support = "x > 0"
    domain = "theta[0] < 0 and theta[1] < 0"
    mean_domain = "mu[0] > 0 and mu[1] > 1 / mu[0] (Jensen's inequality for E 1/x)"
    ends = (0.0, np.inf)

    def statistics(self, x):
        return jnp.stack([x, 1 / x], axis=-1)

    def log_base(self, x):
        return -0.5 * _LOG_2PI - 1.5 * jnp.log(x)

    def log_partition(self, theta):
        return -2 * jnp.sqrt(-theta[..., 0]) * jnp.sqrt(-theta[..., 1]) - 0.5 * jnp.log(-2 * theta[..., 1])

    def natural(self, *, mean, shape):
        mean, shape = jnp.broadcast_arrays(mean, shape)
        return jnp.stack([jnp.where(mean > 0, -0.5 * shape / mean**2, jnp.nan), -0.5 * shape], axis=-1)

    def usual(self, theta):
        return {"mean": jnp.sqrt(theta[..., 1] / theta[..., 0]), "shape": -2 * theta[..., 1]}

    def to_mean(self, theta):
        mean = jnp.sqrt(theta[..., 1] / theta[..., 0])
        return jnp.stack([mean, 1 / mean - 0.5 / theta[..., 1]], axis=-1)

    def conjugate(self, mu):
        return -0.5 * (jnp.log(mu[..., 1] - 1 / mu[..., 0]) + 1)

    def expected_log_base(self, theta):
        mean = jnp.sqrt(theta[..., 1] / theta[..., 0])
        log_mean = jnp.log(mean)
        scaled = _scaled_exp1(-4 * theta[..., 1] / mean, jnp.log(-4 * theta[..., 1]) - log_mean)
        return -0.5 * _LOG_2PI - 1.5 * (log_mean - scaled)

    def entropy(self, theta):
        return 0.5 * (1 - jnp.log(-2 * theta[..., 1])) - self.expected_log_base(theta)

    def _log_density(self, x, theta):
        mean, shape = jnp.sqrt(theta[..., 1] / theta[..., 0]), -2 * theta[..., 1]
        return 0.5 * (jnp.log(shape) - _LOG_2PI - 3 * jnp.log(x) - shape / x * ((x - mean) / mean) ** 2)

    def _log_tails(self, x, theta):
        return inverse_gaussian_log_tails(x, jnp.sqrt(theta[..., 1] / theta[..., 0]), -2 * theta[..., 1])

    def _point(self, y, theta):
        mean, shape = jnp.sqrt(theta[..., 1] / theta[..., 0]), -2 * theta[..., 1]
        spread = 0.5 * mean / shape  # the mode of log x is log mean - asinh(spread)
        x = mean / (spread + jnp.sqrt(1 + spread * spread)) * jnp.exp(y)
        return x, jnp.log(x)

    def kl(self, theta, other):
        mean, shape = jnp.sqrt(theta[..., 1] / theta[..., 0]), -2 * theta[..., 1]
        centre, weight = jnp.sqrt(other[..., 1] / other[..., 0]), -2 * other[..., 1]
        apart = (mean - centre) / centre
        return 0.5 * (phi_ratio(weight, shape) + weight / mean * apart * apart)

    def in_domain(self, theta):
        return jnp.all(jnp.isfinite(theta) & (theta < 0), axis=-1)

    def in_mean_domain(self, mu):
        return jnp.all(jnp.isfinite(mu) & (mu > 0), axis=-1) & (mu[..., 0] * mu[..., 1] > 1)

    def in_support(self, x):
        return (x > 0) & jnp.isfinite(x)

    def _draw(self, key, theta, shape):
        """The smaller root of Michael, Schucany and Haas (1976), or its mirror image."""
        first, second = jax.random.split(key)
        mean, weight = jnp.sqrt(theta[..., 1] / theta[..., 0]), -2 * theta[..., 1]
        size = (*shape, *mean.shape)
        w = mean / (2 * weight) * jax.random.normal(first, size, dtype=theta.dtype) ** 2
        ratio = 1 / (1 + w + jnp.sqrt(w * (2 + w)))
        keep = jax.random.uniform(second, size, dtype=theta.dtype) * (1 + ratio) <= 1
        return mean * jnp.where(keep, ratio, 1 / ratio)

    # Central coordinates: (E x, E 1/x - 1 / E x) = (m, 1/l).

    def _central(self, x, weights):
        mean = jnp.sum(weights * x, axis=0)
        return jnp.stack([mean, jnp.sum(weights * (x - mean) ** 2 / x, axis=0) / mean**2], axis=-1)

    def _merge(self, first, second, share):
        mean = first[..., 0] + share * (second[..., 0] - first[..., 0])

        def spread(part):
            return part[..., 1] + (part[..., 0] - mean) ** 2 / (part[..., 0] * mean**2)

        return jnp.stack([mean, (1 - share) * spread(first) + share * spread(second)], axis=-1)

    def _from_mean(self, mu):
        return jnp.stack([mu[..., 0], mu[..., 1] - 1 / mu[..., 0]], axis=-1)

    def _central_to_mean(self, central):
        return jnp.stack([central[..., 0], central[..., 1] + 1 / central[..., 0]], axis=-1)

    def _central_to_natural(self, central):
        return jnp.stack([-0.5 / (central[..., 1] * central[..., 0] ** 2), -0.5 / central[..., 1]], axis=-1)

    def _estimable(self, central):
        rounding = (4 * jnp.finfo(central.dtype).eps) ** 2
        return jnp.all(jnp.isfinite(central), axis=-1) & (central[..., 0] * central[..., 1] > rounding)

    def _obstacle(self, central, count):
        return f"all {count:g} observations are equal, and the likelihood keeps growing as the shape goes to infinity"


def _scaled_exp1(z, log_z):
    """``exp(z) E1(z)``: a series below one, an asymptotic one where the factors would overflow and underflow."""
    middle = jnp.clip(z, 1.0, 50.0)
    large = jnp.maximum(z, 50.0)
    asymptotic = jnp.ones_like(z)
    for k in range(20, 0, -1):
        asymptotic = 1 - k / large * asymptotic
    small = jnp.minimum(z, 1.0)
    series = jnp.zeros_like(z)
    for k in range(20, 0, -1):  # sum_k (-1)^(k+1) z^k / (k k!)
        series = small / k * (1 / k - series)
    below = jnp.exp(small) * (series - np.euler_gamma - log_z)
    return jnp.where(z < 1, below, jnp.where(z < 50, jnp.exp(middle) * exp1(middle), asymptotic / large))
