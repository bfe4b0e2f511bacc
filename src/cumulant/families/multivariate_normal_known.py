"""The normal family in several dimensions when the covariance or the mean is known."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.families.base import ExponentialFamily, constant, family
from cumulant.families.cholesky import (
    diagonal,
    factorise,
    far_excess,
    gram,
    log_det,
    near_or_far,
    positive_definite,
    symmetric_part,
    trace_excess,
    whiten,
)
from cumulant.families.multivariate_normal import (
    check_shape,
    floats,
    full_rank,
    log_density,
    outer,
    second_moment,
    spread_out,
    why_not_full_rank,
)
from cumulant.families.rows import ByRows
from cumulant.geometry.symmetric import unvech, vech
from cumulant.precision import any_tracer

_LOG_2PI = float(np.log(2 * np.pi))


@family
class MultivariateNormalKnownCovariance(ExponentialFamily):
    """Vectors ``x`` with mean ``m`` and a known `covariance` ``S``.

    ``T(x) = x``, ``theta = S^-1 m``, ``A(theta) = theta^T S theta / 2``, ``mu = m``, ``A*(mu) = mu^T S^-1 mu / 2``,
    base measure ``N(x; 0, S)``.

    Examples
    --------
    >>> fam = MultivariateNormalKnownCovariance(covariance=[[2.0, 1.0], [1.0, 2.0]])
    >>> fam.natural(mean=[3.0, 3.0])
    array([1., 1.])
    """

    covariance: Any = constant()

    support = "x real, a vector"
    usual_domain = "a finite mean"
    domain = "theta finite"
    mean_domain = "mu finite"

    def __post_init__(self):
        value, matrix = _known("covariance", self.covariance, 2)
        object.__setattr__(self, "covariance", value)
        if matrix is None:
            return
        if matrix.shape[0] != matrix.shape[1] or not _symmetric(matrix):
            raise ValueError(f"covariance must be a symmetric matrix; got {matrix}")
        if not np.all(np.linalg.eigvalsh(matrix) > 0):
            raise ValueError(f"covariance must be positive definite; its eigenvalues are {np.linalg.eigvalsh(matrix)}")

    @property
    def size(self):
        """The number of coordinates."""
        return np.shape(self.covariance)[-1]

    @property
    def dim(self):
        return self.size

    @property
    def event_shape(self):
        return (self.size,)

    def statistics(self, x):
        return x

    def log_base(self, x):
        return log_density(x, self._precision_factor(x.dtype))

    def log_partition(self, theta):
        return 0.5 * jnp.sum(theta * self.to_mean(theta), axis=-1)

    def natural(self, *, mean):
        (mean,) = floats(mean)
        check_shape("mean", mean, (self.size,))
        return self.to_natural(mean)

    def usual(self, theta):
        return {"mean": self.to_mean(theta)}

    def to_mean(self, theta):
        return theta @ self._covariance(theta.dtype)

    def to_natural(self, mu):
        factor = self._precision_factor(mu.dtype)
        return (mu @ factor) @ factor.T

    def conjugate(self, mu):
        return 0.5 * jnp.sum((mu @ self._precision_factor(mu.dtype)) ** 2, axis=-1)

    def expected_log_base(self, theta):
        factor = self._precision_factor(theta.dtype)
        quadratic = 2 * self.log_partition(theta) + self.size
        return -0.5 * (quadratic + self.size * _LOG_2PI - log_det(factor))

    def entropy(self, theta):
        value = 0.5 * (self.size * (1 + _LOG_2PI) - log_det(self._precision_factor(theta.dtype)))
        return jnp.broadcast_to(value, theta.shape[:-1])

    def _log_density(self, x, theta):
        return log_density(x - self.to_mean(theta), self._precision_factor(theta.dtype))

    def kl(self, theta, other):
        return self.log_partition(theta - other)

    def _draw(self, key, theta, shape):
        standard = jax.random.normal(key, (*shape, *theta.shape), dtype=theta.dtype)
        return self.to_mean(theta) + standard @ factorise(self._covariance(theta.dtype))[0].T

    def _covariance(self, dtype):
        return jnp.asarray(self.covariance).astype(dtype)

    def _precision_factor(self, dtype):
        """A triangular ``L`` with ``L L^T`` the precision matrix."""
        return factorise(self._covariance(dtype))[1].T


@family
class MultivariateNormalKnownMean(ByRows):
    """Vectors ``x`` with a known `mean` and covariance ``S``: the family of covariance matrices.

    ``T(x) = vech((x - mean)(x - mean)^T)``, ``theta = vech(-S^-1 / 2)``, ``A(theta) = -log det(-2 unvech(theta)) / 2``,
    ``mu = vech(S)``, ``A*(mu) = -log det(S) / 2 - d / 2``, base measure ``(2 pi)^(-d/2)``.

    Examples
    --------
    >>> fam = MultivariateNormalKnownMean(mean=[0.0, 0.0])
    >>> fam.usual(fam.mle([[1.0, 0.0], [1.0, 2.0]]))["covariance"]
    array([[1., 1.],
           [1., 2.]])
    """

    mean: Any = constant()

    support = "x real, a vector"
    usual_domain = "a symmetric, positive definite covariance"
    domain = "theta finite, and unvech(theta) negative definite (minus half the precision matrix)"
    mean_domain = "unvech(mu) positive definite (the covariance matrix)"

    def __post_init__(self):
        value, vector = _known("mean", self.mean, 1)
        object.__setattr__(self, "mean", value)
        if vector is not None and not np.all(np.isfinite(vector)):
            raise ValueError(f"mean must be finite; got {vector}")

    @property
    def size(self):
        """The number of coordinates."""
        return np.shape(self.mean)[-1]

    @property
    def dim(self):
        return self.size * (self.size + 1) // 2

    @property
    def event_shape(self):
        return (self.size,)

    @property
    def constant_log_base(self):
        return -0.5 * self.size * _LOG_2PI

    def statistics(self, x):
        apart = x - self._mean(x.dtype)
        return vech(outer(apart, apart))

    def log_partition(self, theta):
        return -0.5 * log_det(factorise(-2 * unvech(theta))[0])

    def natural(self, *, covariance):
        (covariance,) = floats(covariance)
        check_shape("covariance", covariance, (self.size, self.size))
        return -0.5 * vech(gram(factorise(symmetric_part(covariance))[1]))

    def usual(self, theta):
        return {"covariance": gram(factorise(-2 * unvech(theta))[1])}

    def to_mean(self, theta):
        return vech(gram(factorise(-2 * unvech(theta))[1]))

    def to_natural(self, mu):
        return -0.5 * vech(gram(factorise(unvech(mu))[1]))

    def conjugate(self, mu):
        return -0.5 * (log_det(factorise(unvech(mu))[0]) + self.size)

    def entropy(self, theta):
        return 0.5 * self.size * (1 + _LOG_2PI) + self.log_partition(theta)

    def _log_density(self, x, theta):
        return log_density(x - self._mean(x.dtype), factorise(-2 * unvech(theta))[0])

    def kl(self, theta, other):
        return near_or_far(_near_divergence, _far_divergence, *jnp.broadcast_arrays(theta, other))

    def in_domain(self, theta):
        return jnp.all(jnp.isfinite(theta), axis=-1) & positive_definite(-2 * unvech(theta))

    def in_mean_domain(self, mu):
        return jnp.all(jnp.isfinite(mu), axis=-1) & positive_definite(unvech(mu))

    def _draw(self, key, theta, shape):
        standard = jax.random.normal(key, (*shape, *theta.shape[:-1], self.size), dtype=theta.dtype)
        return self._mean(theta.dtype) + spread_out(standard, factorise(-2 * unvech(theta))[1])

    def _mean(self, dtype):
        return jnp.asarray(self.mean).astype(dtype)

    def _central(self, x, weights):
        return vech(second_moment(x - self._mean(x.dtype), weights))

    def _estimable(self, central):
        return full_rank(self._mean(central.dtype), unvech(central))

    def _obstacle(self, central, count):
        return why_not_full_rank(np.asarray(self.mean), unvech(np.asarray(central)), count, self.size)


def _near_divergence(theta, other):
    change = whiten(factorise(-2 * unvech(theta))[1], -2 * unvech(other - theta))
    root, _ = factorise(change + jnp.eye(change.shape[-1], dtype=change.dtype))
    return 0.5 * trace_excess(change, root), diagonal(root) ** 2


def _far_divergence(theta, other):
    factor, inverse = factorise(-2 * unvech(theta))
    return 0.5 * far_excess(factor, inverse, factorise(-2 * unvech(other))[0])


def _known(name, value, ndim):
    """A constant of a family, and the same for looking at, or None where that cannot be done.

    Numbers become float64; JAX arrays keep their type. Tracers, stacks of constants for `vmap` and the placeholders
    that JAX puts into pytrees are left alone.
    """
    if isinstance(value, jax.Array):
        visible = not any_tracer(value) and value.ndim == ndim
        return value, np.asarray(value) if visible else None
    if not isinstance(value, np.ndarray | np.generic | list | tuple | int | float):
        return value, None
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"{name} must be a {('vector', 'matrix')[ndim - 1]}; got an array of shape {array.shape}")
    return array, array


def _symmetric(matrix) -> bool:
    spread = np.sqrt(np.abs(np.diagonal(matrix)))
    return bool(np.all(np.abs(matrix - matrix.T) <= np.sqrt(np.finfo(matrix.dtype).eps) * np.outer(spread, spread)))
