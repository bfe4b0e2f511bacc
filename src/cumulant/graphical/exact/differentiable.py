"""The partition function of a graphical model inside JAX programs: called back to the host, with its own derivative."""

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["log_partition"]


def log_partition(family, theta):
    """``A(theta)`` of a `DiscreteFamily`; its gradient is the mean statistic, from one backward pass on the host.

    >>> import jax, numpy as np
    >>> from cumulant.graphical import Ising
    >>> model = Ising([(0, 1)], [0.5], [0.1, 0.0])
    >>> gradient = jax.grad(model.family.log_partition)(jax.numpy.asarray(model.theta))
    >>> bool(np.allclose(gradient, model.mean(), atol=1e-6))
    True
    """
    return _differentiable(family, theta)


def _plain(family, theta):
    theta = jnp.asarray(theta)
    shape = jax.ShapeDtypeStruct((), theta.dtype)
    return jax.pure_callback(lambda t: _value(family, t), shape, theta, vmap_method="sequential")


def _value(family, theta):
    theta = np.asarray(theta)
    return np.asarray(family.log_partition(theta), dtype=theta.dtype)


def _both(family, theta):
    theta = np.asarray(theta)
    value, mean = family.value_and_mean(theta)
    return np.asarray(value, dtype=theta.dtype), np.asarray(mean, dtype=theta.dtype)


def _forward(family, theta):
    theta = jnp.asarray(theta)
    shapes = (jax.ShapeDtypeStruct((), theta.dtype), jax.ShapeDtypeStruct(theta.shape, theta.dtype))
    return jax.pure_callback(lambda t: _both(family, t), shapes, theta, vmap_method="sequential")


def _backward(family, mean, cotangent):
    return (cotangent * mean,)


_differentiable = jax.custom_vjp(_plain, nondiff_argnums=(0,))
_differentiable.defvjp(_forward, _backward)
