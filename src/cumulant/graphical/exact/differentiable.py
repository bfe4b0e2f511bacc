"""A discrete family inside JAX programs: its sums are called back to the host, and have their own derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.errors import DomainError
from cumulant.precision import call_on_host


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def log_partition(family, theta):
    """``A(theta)`` of a `DiscreteFamily`; its gradient is the mean statistic, from one backward pass on the host.

    >>> import jax, numpy as np
    >>> from cumulant.graphical import Ising
    >>> model = Ising([(0, 1)], [0.5], [0.1, 0.0])
    >>> gradient = jax.grad(model.family.log_partition)(jax.numpy.asarray(model.theta))
    >>> bool(np.allclose(gradient, model.mean(), atol=1e-6))
    True
    """
    return _on_the_host(family.log_partition, theta, ())


@log_partition.defjvp
def _log_partition_tangent(family, primals, tangents):
    value, mean = value_and_mean(family, primals[0])
    return value, jnp.sum(mean * tangents[0], axis=-1)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def value_and_mean(family, theta):
    """``A(theta)`` and its gradient; the derivative of the gradient is the covariance of the statistics."""

    def both(theta):
        value, mean = family.value_and_mean(theta)
        return np.concatenate([np.expand_dims(value, -1), mean], axis=-1)

    found = _on_the_host(both, theta, (family.dim + 1,))
    return found[..., 0], found[..., 1:]


@value_and_mean.defjvp
def _value_and_mean_tangent(family, primals, tangents):
    value, mean = value_and_mean(family, primals[0])
    change = jnp.einsum("...ij,...j->...i", fisher(family, primals[0]), tangents[0])
    return (value, mean), (jnp.sum(mean * tangents[0], axis=-1), change)


def fisher(family, theta):
    """The covariance of the statistics, which has no derivative of its own."""
    return _on_the_host(family.fisher, theta, (family.dim, family.dim))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def to_natural(family, mu):
    """The natural parameter of a mean: of least norm where there are several, NaN where there is none."""
    return _on_the_host(family.to_natural, mu, (family.dim,))


@to_natural.defjvp
def _to_natural_tangent(family, primals, tangents):
    theta = to_natural(family, primals[0])
    inverse = jnp.linalg.pinv(fisher(family, theta), rtol=1e-10, hermitian=True)
    return theta, jnp.einsum("...ij,...j->...i", inverse, tangents[0])


def _on_the_host(function, parameter, event):
    """`function` of NumPy arrays with batches on the leading axes; NaN where it refuses its argument."""
    parameter = jnp.asarray(parameter)
    batch = parameter.shape[:-1]

    def call(value):
        try:
            return function(value)
        except DomainError:
            return np.full((*value.shape[:-1], *event), np.nan)

    return call_on_host(call, (*batch, *event), parameter, vmap_method="broadcast_all")
