"""Formulas of back-propagation and of layers (Peyré 2021, sections 9 and 10) that other tests leave open."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.layers import (
    barron_bound,
    derivative_cost,
    fixed_point,
    gaussian_barron_constant,
    leapfrog,
    leapfrog_back,
    neural_ode,
    operations,
    recurrent,
    step_network,
)

RNG = np.random.default_rng(0)


def dense(x, theta, k):
    """``tanh(theta_k x)``: a feed-forward network as a recursion over its layers."""
    return jnp.tanh(theta[k] @ x)


def test_back_propagation_through_fully_connected_layers():
    """``m = rho'(theta x) z``, ``z <- theta^T m``, ``grad_theta = m x^T``, from the last layer to the first."""
    theta, x0 = RNG.normal(size=(4, 3, 3)), RNG.normal(size=3)
    with jax.enable_x64(True):
        found = jax.jit(jax.grad(lambda t, x: jnp.sum(recurrent(dense, x, t, 4) ** 2) / 2, (0, 1)))(theta, x0)
        found = [np.asarray(each) for each in found]
    xs = [x0]
    for layer in theta:
        xs.append(np.tanh(layer @ xs[-1]))
    z, expected = xs[-1], np.zeros_like(theta)
    for k in range(4, 0, -1):
        m = (1 - xs[k] ** 2) * z
        expected[k - 1], z = np.outer(m, xs[k - 1]), theta[k - 1].T @ m
    assert_allclose(found[0], expected, atol=1e-13)
    assert_allclose(found[1], z, atol=1e-13)


def perceptron(x, theta, k):
    """``x + W2^T rho(W1 x)`` with ``W1, W2`` of shape (q, n)."""
    return x + theta[1].T @ jnp.tanh(theta[0] @ x)


def test_back_propagation_through_the_residual_perceptron():
    """``m = rho'(W1 x) (W2 z)``: ``z + W1^T m``, ``m x^T`` and ``rho(W1 x) z^T``; and when it is a gradient step."""
    W1, W2, x0 = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3)), RNG.normal(size=3)
    target = RNG.normal(size=3)
    with jax.enable_x64(True):
        loss = lambda w, x: jnp.vdot(target, recurrent(perceptron, x, w, 1))  # noqa: E731
        (first, second), start = jax.jit(jax.grad(loss, (0, 1)))((W1, W2), x0)
        first, second, start = (np.asarray(each) for each in (first, second, start))
    hidden = np.tanh(W1 @ x0)
    m = (1 - hidden**2) * (W2 @ target)
    assert_allclose(start, target + W1.T @ m, atol=1e-13)
    assert_allclose(first, np.outer(m, x0), atol=1e-13)
    assert_allclose(second, np.outer(hidden, target), atol=1e-13)
    # W2 = -tau W1 and rho = psi', psi = log cosh: one step of gradient descent on sum psi(W1 x).
    moved = recurrent(perceptron, x0, (W1, -0.1 * W1), 1)
    assert_allclose(moved, x0 - 0.1 * W1.T @ np.tanh(W1 @ x0), atol=1e-14)


STEPS = 200


def driven(x, theta, t):
    """``x' = theta(t) x`` with ``theta`` constant over each step of a unit of time."""
    return theta[jnp.minimum((t * STEPS + 0.5).astype(int), STEPS - 1)] * x


def test_the_discrete_gradient_over_the_step_is_that_of_the_control():
    """``x(1) = x_0 exp(int theta)``, ``L = x(1)^2 / 2``: ``grad_theta(t) = x(1)^2`` at every time."""
    theta = np.sin(np.arange(STEPS) / STEPS)
    with jax.enable_x64(True):
        ends = lambda t: neural_ode(driven, 1.5, t, 1.0, STEPS, method="euler")  # noqa: E731
        value, slope = jax.jit(jax.value_and_grad(lambda t: ends(t) ** 2 / 2))(jnp.asarray(theta))
        value, slope = float(value), np.asarray(slope)
    exact = 1.5**2 * np.exp(2 * (1 - np.cos(1.0)))
    assert_allclose(slope * STEPS, exact, rtol=0.02)
    assert_allclose(slope * STEPS, 2 * value / (1 + theta / STEPS), rtol=1e-12)  # of Euler's method, exactly


def push(s, theta, t):
    return theta * s + jnp.cos(t)


def pull(r, theta, t):
    return -theta * jnp.sin(r) + t**2


def test_the_leapfrog_knows_its_two_clocks():
    """``F`` at ``tau k``, ``G`` at ``tau (k + 1/2)``; backwards it takes ``G`` off first."""
    r, s, tau = 0.7, -0.2, 0.05
    for k in range(40):
        r += tau * (1.3 * s + np.cos(tau * k))
        s += tau * (-1.3 * np.sin(r) + (tau * (k + 0.5)) ** 2)
    found = leapfrog(push, pull, 0.7, -0.2, 1.3, tau, 40)
    assert_allclose(found, (r, s), rtol=1e-13)
    assert_allclose(leapfrog_back(push, pull, *found, 1.3, tau, 40), (0.7, -0.2), rtol=1e-12)


def cosine(x, theta):
    return jnp.cos(theta * x)


def test_the_error_of_an_implicit_gradient_is_of_the_order_of_the_residual():
    """At a point ``x`` that is not quite the fixed point: off by no more than a constant times ``|h(x) - x|``."""
    exact, errors, residuals = -0.297474341510, [], []
    for tol in (1e-2, 1e-4, 1e-6):
        with jax.enable_x64(True):
            layer = lambda t, tol=tol: fixed_point(cosine, 0.5, t, tol=tol)  # noqa: E731
            x, slope = (float(each) for each in jax.jit(jax.value_and_grad(layer))(1.0))
        errors.append(abs(slope - exact))
        residuals.append(abs(np.cos(x) - x))
        assert residuals[-1] <= tol * (1 + x)
    assert errors[0] > 1e-5  # a rough solve is seen in the gradient
    assert np.all(np.array(errors) <= 2 * np.array(residuals) + 1e-12)


def shared(x, y):
    product = y * jnp.log(x)
    return product + jnp.sqrt(product)


def swollen(x, y):
    return y * jnp.log(x) + jnp.sqrt(y * jnp.log(x))


def test_a_graph_shares_what_a_formula_repeats_and_reverse_mode_visits_each_node_once():
    assert operations(shared, 2.0, 3.0).nodes == 4
    assert operations(swollen, 2.0, 3.0).nodes == 6  # the same function written out
    # Each node is evaluated once and adds one local derivative to each of its arguments: a small multiple, not 2^depth.
    for function, nodes in ((shared, 4), (swollen, 6)):
        assert derivative_cost(function, 2.0, 3.0).vjp.nodes <= 4 * nodes

    def deep(x, depth):
        for _ in range(depth):
            x = x * x + x  # two sons at every level
        return x

    counts = [derivative_cost(lambda x, d=d: deep(x, d), 0.5).vjp.nodes for d in (5, 10, 20)]
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])  # linear in the depth


def test_some_network_is_within_barrons_bound():
    """A Gaussian bump on [-r, r], mean squared error of the steps against ``(2 r C_f)^2 / q``, constant ``f(0)`` in."""
    r, grid = 2.0, np.linspace(-2, 2, 8001)
    bump = lambda t: np.exp(-(t**2) / 2)  # noqa: E731
    constant = gaussian_barron_constant(1)
    for q in (2, 8, 32, 128):
        network = step_network(bump, -r, r, q, lipschitz=np.exp(-0.5))
        error = np.mean((network(grid) - bump(grid)) ** 2)
        assert error <= barron_bound(constant, r, q)
    assert barron_bound(constant, r, 8) == pytest.approx((2 * r * 0.797885) ** 2 / 8, rel=1e-5)
