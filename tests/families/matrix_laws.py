"""Checks that the tests of the matrix families share. The laws of all families are in ``tests/laws``."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose


def positive_definite(rng, size, batch=()):
    """Random covariance matrices whose coordinates have different scales."""
    root = np.exp(rng.normal(size=(*batch, size, 1))) * rng.normal(size=(*batch, size, size + 2))
    return root @ np.swapaxes(root, -1, -2) / (size + 2)


def in_float64(function, *arguments):
    """One compiled program in float64, NumPy in and out."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, jax.jit(function)(*jax.tree.map(jnp.asarray, arguments)))


def round_trips_in_float32(family, theta):
    """Through the mean to 1e-3 of the largest entry, through the usual parameters to 1e-4."""
    program = jax.jit(lambda t: (family.to_natural(family.to_mean(t)), family.natural(**family.usual(t))))
    back, again = program(jnp.asarray(theta, dtype=jnp.float32))
    assert back.dtype == again.dtype == jnp.float32
    scale = np.max(np.abs(theta), axis=-1, keepdims=True)
    assert np.max(np.abs(back - theta) / scale) < 1e-3
    assert np.max(np.abs(again - theta) / scale) < 1e-4


def neighbours_have_the_divergence_of_the_quadratic_form(family, theta, other):
    """``KL(theta, theta + h) = h^T F h / 2 + O(h^3)``, down to divergences of 1e-16."""
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

    def program(t, o):
        gradient = jax.vmap(jax.grad(family.kl, argnums=1))(t, o)
        hessian = jax.vmap(jax.jacfwd(jax.grad(family.kl, argnums=1), argnums=1))(t, t)
        return gradient, family.to_mean(o) - family.to_mean(t), hessian, family.fisher(t)

    gradient, difference, hessian, fisher = in_float64(program, theta, other)
    assert_allclose(gradient, difference, rtol=1e-7, atol=1e-9 * np.max(np.abs(difference)))
    assert_allclose(hessian, fisher, rtol=1e-7, atol=1e-9 * np.max(np.abs(fisher)))


def gradients_of_densities(family, x, theta):
    """Under ``jit``, ``vmap`` and ``grad`` in float32, the family passed as an argument: the score is ``T(x) - mu``."""

    def program(f, d, p):
        return jax.vmap(jax.value_and_grad(f.log_prob, argnums=1))(d, p)

    data, t = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=jnp.float32), (x, theta))
    value, score = jax.jit(program)(family, data, t)
    assert value.dtype == score.dtype == jnp.float32
    exact, expected = in_float64(
        lambda d, p: (family.log_prob(d, p), family.statistics(d) - family.to_mean(p)), x, theta
    )
    assert_allclose(np.asarray(value), exact, rtol=2e-3, atol=2e-3)
    assert_allclose(np.asarray(score), expected, rtol=1e-2, atol=1e-3 * np.max(np.abs(expected)))


def the_entropy_is_the_mean_of_minus_the_log_density(family, draws, theta):
    """Within five standard errors."""
    values = -np.asarray(family.log_prob(draws, theta))
    error = np.std(values, axis=0) / np.sqrt(len(values))
    assert np.max(np.abs(values.mean(axis=0) - family.entropy(theta)) / error) < 5


def statistics_add_up(family, x):
    """In any split, by weights as by repetition; and they are the mean of ``T``. Returns those of all of `x`."""
    n = np.shape(jax.tree.leaves(x)[0])[0]
    first, second = jax.tree.map(lambda leaf: leaf[: n // 2], x), jax.tree.map(lambda leaf: leaf[n // 2 :], x)
    whole, half = family.collect(x, np.ones(n)), family.collect(first)
    assert_allclose((half + family.collect(second)).central, whole.central, rtol=1e-9, atol=1e-12)
    assert_allclose(whole.mean, np.mean(family.statistics(x), axis=0), rtol=1e-9, atol=1e-10)
    doubled = family.collect(x, np.where(np.arange(n) < n // 2, 2.0, 1.0))
    assert_allclose(doubled.central, (whole + half).central, rtol=1e-9, atol=1e-12)
    return whole
