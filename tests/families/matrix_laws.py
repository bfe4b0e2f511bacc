"""Checks that the tests of the matrix families share. The laws of all families are in ``tests/laws``."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose


def positive_definite(rng, size, batch=()):
    """Random covariance matrices whose coordinates have different scales."""
    root = np.exp(rng.normal(size=(*batch, size, 1))) * rng.normal(size=(*batch, size, size + 2))
    return root @ np.swapaxes(root, -1, -2) / (size + 2)


def round_trips_in_float32(family, theta):
    """Through the mean to 1e-3 of the largest entry, through the usual parameters to 1e-4."""
    single = jnp.asarray(theta, dtype=jnp.float32)
    scale = np.max(np.abs(theta), axis=-1, keepdims=True)
    back = family.to_natural(family.to_mean(single))
    assert back.dtype == jnp.float32
    assert np.max(np.abs(back - theta) / scale) < 1e-3
    again = family.natural(**family.usual(single))
    assert again.dtype == jnp.float32
    assert np.max(np.abs(again - theta) / scale) < 1e-4


def neighbours_have_the_divergence_of_the_quadratic_form(family, theta, other):
    """``KL(theta, theta + h) = h^T F h / 2 + O(h^3)``, down to steps whose divergence is 1e-16 of the terms it is made of."""
    fisher = family.fisher(theta)
    direction = (other - theta) / np.sqrt(np.einsum("bi,bij,bj->b", other - theta, fisher, other - theta))[:, None]
    assert_allclose(family.kl(theta, theta), 0, atol=1e-25)
    for size in (1e-4, 1e-6, 1e-8):
        near = theta + size * direction
        moved = near - theta  # what the rounding of the parameter left of the step
        expected = 0.5 * np.einsum("bi,bij,bj->b", moved, fisher, moved)
        assert_allclose(family.kl(theta, near), expected, rtol=100 * size + 1e-6)


def derivatives_of_divergences(family, theta, other):
    """In the second argument: the difference of means, and the Fisher information where the two are equal."""
    with jax.enable_x64(True):
        t, o = jnp.asarray(theta), jnp.asarray(other)
        gradient = jax.jit(jax.vmap(jax.grad(family.kl, argnums=1)))(t, o)
        expected = family.to_mean(other) - family.to_mean(theta)
        assert_allclose(np.asarray(gradient), expected, rtol=1e-7, atol=1e-9 * np.max(np.abs(expected)))
        hessian = jax.jit(jax.vmap(jax.hessian(family.kl, argnums=1)))(t, t)
        fisher = family.fisher(theta)
        assert_allclose(np.asarray(hessian), fisher, rtol=1e-7, atol=1e-9 * np.max(np.abs(fisher)))


def gradients_of_densities(family, x, theta):
    """Under ``jit``, ``vmap`` and ``grad`` in float32, the family passed as an argument: the score is ``T(x) - mu``."""
    t = jnp.asarray(theta, dtype=jnp.float32)
    data = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=jnp.float32), x)
    program = jax.jit(lambda f, d, p: jax.vmap(jax.value_and_grad(f.log_prob, argnums=1))(d, p))
    value, score = program(family, data, t)
    assert value.dtype == jnp.float32
    assert_allclose(np.asarray(value), family.log_prob(x, theta), rtol=2e-3, atol=2e-3)
    expected = family.statistics(x) - family.to_mean(theta)
    assert_allclose(np.asarray(score), expected, rtol=1e-2, atol=1e-3 * np.max(np.abs(expected)))


def the_entropy_is_the_mean_of_minus_the_log_density(family, theta, n=20_000):
    """Within five standard errors."""
    values = -np.asarray(family.log_prob(family.sample(theta, n, rng=1), theta))
    error = np.std(values, axis=0) / np.sqrt(n)
    assert np.max(np.abs(values.mean(axis=0) - family.entropy(theta)) / error) < 5


def statistics_add_up(family, x):
    """In any split, by weights as by repetition; and they are the mean of ``T``."""
    n = np.shape(jax.tree.leaves(x)[0])[0]
    first, second = jax.tree.map(lambda leaf: leaf[: n // 2], x), jax.tree.map(lambda leaf: leaf[n // 2 :], x)
    whole, half = family.collect(x), family.collect(first)
    assert_allclose((half + family.collect(second)).central, whole.central, rtol=1e-9, atol=1e-12)
    assert_allclose(whole.mean, np.mean(family.statistics(x), axis=0), rtol=1e-9, atol=1e-10)
    weights = np.where(np.arange(n) < n // 2, 2.0, 1.0)
    assert_allclose(family.collect(x, weights).central, (whole + half).central, rtol=1e-9, atol=1e-12)
