"""Costs of differentiation: the jaxpr's counts against formulas, and the course's worked example."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import CumulantError
from cumulant.layers import chain_cost, derivative_cost, operations

DIMS = (6, 5, 4, 3, 2)


def example(x, y):
    """Equation 55 of the course: ``y log x + sqrt(y log x)``."""
    product = y * jnp.log(x)
    return product + jnp.sqrt(product)


def test_published_chain_costs():
    orders = ("forward", "backward", "optimal")
    assert [chain_cost((784, 100, 100, 10, 1), order) for order in orders] == [8631840, 89400, 89400]
    assert [chain_cost((100, 5, 200, 5, 100), order) for order in orders] == [250000, 250000, 57500]


def test_the_optimal_order_is_the_best_of_all():
    def best(dims):  # by trying every place for the last product
        if len(dims) == 2:
            return 0
        return min(best(dims[: k + 1]) + best(dims[k:]) + dims[0] * dims[k] * dims[-1] for k in range(1, len(dims) - 1))

    for dims in itertools.product((1, 2, 7), repeat=5):
        assert chain_cost(dims) == best(dims)


def test_full_jacobians_cost_what_the_formulas_say():
    """JAX multiplies by the identity first, which the formulas leave out: n_0^2 n_1 forward, n_t^2 n_{t-1} backward."""
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(m, n)) for n, m in itertools.pairwise(DIMS)]

    def chain(x):
        for matrix in matrices:
            x = jnp.tanh(matrix @ x)
        return x

    value = operations(chain, jnp.ones(DIMS[0])).products
    assert value == sum(n * m for n, m in itertools.pairwise(DIMS))
    forward = operations(jax.jacfwd(chain), jnp.ones(DIMS[0])).products - value
    assert forward == chain_cost(DIMS, "forward") + DIMS[0] ** 2 * DIMS[1]
    # The forward sweep of the backward mode does not need the last product; JAX's dead code is not counted.
    backward = operations(jax.jacrev(chain), jnp.ones(DIMS[0])).products - value
    assert backward == chain_cost(DIMS, "backward") + DIMS[-1] ** 2 * DIMS[-2]


def test_a_gradient_costs_a_few_evaluations_whatever_the_number_of_inputs():
    def loss(W, u):
        return jnp.sum(jnp.tanh(jnp.tanh(jnp.ones((20, W.shape[1])) @ W.T) @ u) ** 2)

    for inputs in (5, 500):
        cost = derivative_cost(loss, jnp.ones((10, inputs)), jnp.ones(10))
        assert cost.vjp.total <= 4 * cost.value.total
        assert cost.jvp.total <= 3.5 * cost.value.total


def test_the_worked_example():
    with jax.enable_x64(True):
        value, slopes = jax.value_and_grad(example, (0, 1))(2.0, 3.0)
        tangents = [jax.jvp(example, (2.0, 3.0), e)[1] for e in ((1.0, 0.0), (0.0, 1.0))]
    assert_allclose(value, 3.521468428281, atol=5e-13)
    assert_allclose(slopes, [2.020101259532, 0.933484994993], atol=5e-13)
    assert_allclose(tangents, slopes, rtol=1e-15)
    assert operations(example, 2.0, 3.0).nodes == 4  # log, product, root, sum


def test_loops_calls_and_branches_are_counted():
    def looped(x):
        return jax.lax.scan(lambda c, _: (jnp.sin(c) @ jnp.ones((3, 3)), None), x, None, length=5)[0]

    assert operations(jax.jit(looped), jnp.ones(3))[:2] == (45, 15)
    branch = operations(lambda x: jax.lax.cond(x[0] > 0, lambda v: v + v, lambda v: jnp.sin(v * v), x), jnp.ones(7))
    assert branch.elementwise == 15
    assert operations(lambda x: (jnp.sin(x), jnp.cos(x))[0], jnp.ones(4)).elementwise == 4
    with pytest.raises(CumulantError, match="while loop"):
        operations(lambda x: jax.lax.while_loop(lambda c: c < 3, lambda c: c + 1, x), 0.0)
    with pytest.raises(ValueError, match="order must be"):
        chain_cost(DIMS, "sideways")
