"""Chains of layers of different sizes: their gradients, their Jacobian in any order, and what each order costs."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import layers
from cumulant.precision import float64

RNG = np.random.default_rng(0)
SIZES = (5, 2, 7, 3, 4)
THETAS = [RNG.normal(size=(m, n)) for n, m in itertools.pairwise(SIZES)]
X = RNG.normal(size=5)


def dense(x, theta):
    return jnp.tanh(theta @ x)


def square(x):
    return jnp.sum(x**2) / 2


def test_backpropagation_is_the_recursion_of_the_course_and_what_jax_gives():
    value, gradients, pulled = layers.backpropagation([dense] * 4, THETAS, X, square)
    xs = [X]
    for theta in THETAS:
        xs.append(np.tanh(theta @ xs[-1]))
    assert_allclose(layers.feed_forward([dense] * 4, THETAS, X), xs[-1], rtol=1e-14)
    assert_allclose(value, np.sum(xs[-1] ** 2) / 2, rtol=1e-14)
    z = xs[-1]
    for k in range(4, 0, -1):
        m = (1 - xs[k] ** 2) * z
        assert_allclose(gradients[k - 1], np.outer(m, xs[k - 1]), rtol=1e-12, atol=1e-15)
        z = THETAS[k - 1].T @ m
    assert_allclose(pulled, z, rtol=1e-12)
    with float64():
        again = jax.grad(lambda thetas: square(layers.feed_forward([dense] * 4, thetas, jnp.asarray(X))))(
            list(map(jnp.asarray, THETAS))
        )
        for mine, theirs in zip(gradients, again, strict=True):
            assert_allclose(mine, np.asarray(theirs), rtol=1e-13)


@pytest.mark.parametrize("order", ["forward", "backward", "optimal"])
def test_every_order_gives_the_jacobian(order):
    functions = [functools.partial(dense, theta=theta) for theta in THETAS]
    found = layers.chain_jacobian(functions, X, order)
    whole = np.eye(5)
    x = X
    for theta in THETAS:
        x = np.tanh(theta @ x)
        whole = ((1 - x**2)[:, None] * theta) @ whole
    assert_allclose(found, whole, rtol=1e-12, atol=1e-14)


def cheapest(dims, i, j):
    """By trying all: the fewest multiplications for factors i to j."""
    if i == j:
        return 0
    return min(
        cheapest(dims, i, k) + cheapest(dims, k + 1, j) + dims[i] * dims[k + 1] * dims[j + 1] for k in range(i, j)
    )


@pytest.mark.parametrize("dims", [(784, 100, 100, 10, 1), (100, 5, 200, 5, 100), SIZES, (3, 8, 1, 9, 2, 6)])
@pytest.mark.parametrize("order", ["forward", "backward", "optimal"])
def test_what_is_multiplied_is_what_the_formulas_count(dims, order):
    matrices = [np.ones((m, n), np.float32) for n, m in itertools.pairwise(dims)]
    counted = layers.operations(lambda *each: layers.multiply_chain(each, order), *matrices).products
    assert counted == layers.chain_cost(dims, order)
    assert layers.chain_cost(dims) == cheapest(dims, 0, len(dims) - 2)


def test_bad_chains_are_refused():
    with pytest.raises(ValueError, match="one entry for each of functions"):
        layers.feed_forward([dense], THETAS, X)
    with pytest.raises(ValueError, match="at least one layer"):
        layers.chain_jacobian([], X)
    with pytest.raises(ValueError, match="order must be"):
        layers.chain_jacobian([jnp.tanh], X, "sideways")
    with pytest.raises(ValueError, match="x must be a vector"):
        layers.chain_jacobian([jnp.tanh], np.eye(2))
    with pytest.raises(ValueError, match="matrices must fit"):
        layers.multiply_chain([np.eye(2), np.eye(3)])
