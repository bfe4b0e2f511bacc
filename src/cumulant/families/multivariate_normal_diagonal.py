"""Normal families with independent coordinates: a variance for each, or one for all."""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.families.base import ExponentialFamily, family
from cumulant.families.multivariate_normal import check_shape, check_size, floats
from cumulant.families.special import phi_ratio

_LOG_2PI = float(np.log(2 * np.pi))


class IndependentNormal(ExponentialFamily):
    """Observations whose `_coordinates` are independent and normal: ``theta = (m / v, -1 / (2 v))``.

    The second half of a parameter has an entry for each variance: `size` of them, or one `shared` by all.
    """

    size: int
    shared = False

    support = "x real, a vector"
    domain = "theta finite, with theta[size:] < 0 (minus half the precision)"

    def __post_init__(self):
        check_size(self.size)

    @property
    def dim(self):
        return self.size + (1 if self.shared else self.size)

    @property
    def event_shape(self):
        return (self.size,)

    @property
    def constant_log_base(self):
        return -0.5 * self.size * _LOG_2PI

    def statistics(self, x):
        z = self._coordinates(x)
        return jnp.concatenate([z, self._squares(z)], axis=-1)

    def log_partition(self, theta):
        mean, variances = self._moments(theta)
        return 0.5 * (jnp.sum(mean * theta[..., : self.size], axis=-1) + self._total(jnp.log(variances)))

    def to_mean(self, theta):
        return self._central_to_mean(jnp.concatenate(self._moments(theta), axis=-1))

    def conjugate(self, mu):
        _, variances = self._split(self._from_mean(mu))
        return -0.5 * (self._total(jnp.log(variances)) + self.size)

    def entropy(self, theta):
        return 0.5 * (self.size * (1 + _LOG_2PI) + self._total(jnp.log(self._moments(theta)[1])))

    def kl(self, theta, other):
        return self._central_kl(*(jnp.concatenate(self._moments(each), axis=-1) for each in (theta, other)))

    def _central_kl(self, first, second):
        (mean, variances), (other_mean, other_variances) = self._split(first), self._split(second)
        distance = jnp.sum(((mean - other_mean) / jnp.sqrt(other_variances)) ** 2, axis=-1)
        return 0.5 * (distance + self._total(phi_ratio(variances, other_variances)))

    def in_domain(self, theta):
        return jnp.all(jnp.isfinite(theta), axis=-1) & jnp.all(theta[..., self.size :] < 0, axis=-1)

    def in_mean_domain(self, mu):
        return jnp.all(jnp.isfinite(mu), axis=-1) & jnp.all(self._split(self._from_mean(mu))[1] > 0, axis=-1)

    def _log_density(self, x, theta):
        mean, variances = self._moments(theta)
        distance = jnp.sum(((self._coordinates(x) - mean) / jnp.sqrt(variances)) ** 2, axis=-1)
        return -0.5 * (distance + self._total(jnp.log(variances)) + self.size * _LOG_2PI)

    def _draw(self, key, theta, shape):
        mean, variances = self._moments(theta)
        return mean + jnp.sqrt(variances) * jax.random.normal(key, (*shape, *mean.shape), dtype=theta.dtype)

    def _coordinates(self, x):
        return x

    def _split(self, vector):
        return vector[..., : self.size], vector[..., self.size :]

    def _moments(self, theta):
        shift, half = self._split(theta)
        variances = -0.5 / half
        return shift * variances, variances

    @property
    def _per_variance(self):
        """How many coordinates have the same variance."""
        return self.size if self.shared else 1

    def _total(self, values):
        """The sum over coordinates of a function of the variances."""
        return self._per_variance * jnp.sum(values, axis=-1)

    def _squares(self, apart):
        """The statistic that is second in ``T``, of vectors."""
        return jnp.sum(apart**2, axis=-1, keepdims=True) if self.shared else apart**2

    # Central coordinates: (mean, variances), merged by the parallel form of Welford's update.

    def _central(self, x, weights):
        z, weights = self._coordinates(x), weights[..., None]
        mean = jnp.sum(weights * z, axis=0)
        mean = mean + jnp.sum(weights * (z - mean), axis=0)  # a second pass takes the rounding of the first away
        return jnp.concatenate([mean, jnp.sum(weights * self._squares(z - mean), axis=0) / self._per_variance], axis=-1)

    def _merge(self, first, second, share):
        (mean, variances), (other_mean, other_variances) = self._split(first), self._split(second)
        share, step = share[..., None], other_mean - mean
        between = share * (1 - share) * self._squares(step) / self._per_variance
        return jnp.concatenate(
            [mean + share * step, (1 - share) * variances + share * other_variances + between], axis=-1
        )

    def _from_mean(self, mu):
        mean, squares = self._split(mu)
        return jnp.concatenate([mean, (squares - self._squares(mean)) / self._per_variance], axis=-1)

    def _central_to_mean(self, central):
        mean, variances = self._split(central)
        return jnp.concatenate([mean, variances * self._per_variance + self._squares(mean)], axis=-1)

    def _central_to_natural(self, central):
        mean, variances = self._split(central)
        return jnp.concatenate([mean / variances, -0.5 / variances], axis=-1)

    def _estimable(self, central):
        mean, variances = self._split(central)
        rounding = self._squares(4 * jnp.finfo(central.dtype).eps * mean) / self._per_variance
        return jnp.all(jnp.isfinite(central), axis=-1) & jnp.all(variances > rounding, axis=-1)

    def _obstacle(self, central, count):
        return f"all {count:g} observations are equal, and the likelihood keeps growing as the variance goes to 0"


@family
class MultivariateNormalDiagonal(IndependentNormal):
    """Vectors ``x`` of `size` ``d`` with independent coordinates of means ``m_i`` and variances ``v_i``.

    ``T(x) = (x_i, x_i^2)``, all ``x_i`` first, ``theta = (m_i / v_i, -1 / (2 v_i))``,
    ``A(theta) = sum_i [m_i^2 / v_i + log v_i] / 2``, ``mu = (m_i, m_i^2 + v_i)``,
    ``A*(mu) = -sum_i [log v_i + 1] / 2``, base measure ``(2 pi)^(-d/2)``.

    Examples
    --------
    >>> fam = MultivariateNormalDiagonal(size=2)
    >>> fam.natural(mean=[1.0, 2.0], variances=[0.5, 4.0])
    array([ 2.   ,  0.5  , -1.   , -0.125])
    """

    size: int

    usual_domain = "a finite mean and positive, finite variances"
    mean_domain = "mu[size:] > mu[:size]^2 (positive variances)"

    def natural(self, *, mean, variances):
        mean, variances = floats(mean, variances)
        check_shape("mean", mean, (self.size,))
        check_shape("variances", variances, (self.size,))
        mean, variances = jnp.broadcast_arrays(mean, variances)
        return self._central_to_natural(jnp.concatenate([mean, variances], axis=-1))

    def usual(self, theta):
        mean, variances = self._moments(theta)
        return {"mean": mean, "variances": variances}

    def _obstacle(self, central, count):
        mean, variances = self._split(np.asarray(central))
        constant = int(np.argmax(~(variances > (4 * np.finfo(variances.dtype).eps * mean) ** 2)))
        return (
            f"column {constant} of the {count:g} observations is constant, "
            "and the likelihood keeps growing as its variance goes to 0"
        )


@family
class MultivariateNormalIsotropic(IndependentNormal):
    """Vectors ``x`` of `size` ``d`` with independent coordinates of means ``m_i`` and one variance ``v``.

    ``T(x) = (x, |x|^2)``, ``theta = (m / v, -1 / (2 v))``, ``A(theta) = |m|^2 / (2 v) + d log(v) / 2``,
    ``mu = (m, |m|^2 + d v)``, ``A*(mu) = -d [log v + 1] / 2``, base measure ``(2 pi)^(-d/2)``.

    Examples
    --------
    >>> fam = MultivariateNormalIsotropic(size=2)
    >>> fam.usual(fam.mle([[0.0, 1.0], [2.0, 5.0]]))
    {'mean': array([1., 3.]), 'variance': np.float64(2.5)}
    """

    size: int

    shared = True
    usual_domain = "a finite mean and a positive, finite variance"
    mean_domain = "mu[size] > |mu[:size]|^2 (a positive variance)"

    def natural(self, *, mean, variance):
        mean, variance = floats(mean, variance)
        check_shape("mean", mean, (self.size,))
        batch = jnp.broadcast_shapes(mean.shape[:-1], variance.shape)
        mean, variance = jnp.broadcast_to(mean, (*batch, self.size)), jnp.broadcast_to(variance, batch)
        return self._central_to_natural(jnp.concatenate([mean, variance[..., None]], axis=-1))

    def usual(self, theta):
        mean, variances = self._moments(theta)
        return {"mean": mean, "variance": variances[..., 0]}
