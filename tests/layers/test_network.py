"""One hidden layer: published gradients, JAX's own, training, the constructed network and Barron's constants."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import optim
from cumulant.layers import (
    OneHiddenLayer,
    barron_bound,
    barron_constant,
    gaussian_barron_constant,
    step_network,
)

A = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
Y = np.array([0.0, 1.0, -1.0])
W, U = np.array([[0.5, -0.5], [1.0, 2.0]]), np.array([1.0, -1.0])
X = np.column_stack([W, U])


def test_published_values():
    layer = OneHiddenLayer(A, Y, reduction="sum")
    assert_allclose(layer.predict(X, A), [-0.10859925, -0.50325641, -0.45257413], atol=6e-9)
    value, gradient = layer.value_and_gradient(X)
    assert_allclose(value, 1.285624357453, atol=1e-11)
    published = [[0.11133524, -0.21641437, -0.36142611], [-0.00337896, 0.13310141, -0.88199254]]
    assert_allclose(gradient, published, atol=6e-9)
    assert_allclose(layer.outer(W), [-1.36637052, 0.74635330], atol=6e-9)


REFERENCE = {
    "sigmoid": jax.nn.sigmoid,
    "atan": lambda r: jnp.arctan(r) / jnp.pi + 0.5,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
}


@pytest.mark.parametrize("name", list(REFERENCE))
def test_closed_gradients_are_those_of_automatic_differentiation(name):
    rng = np.random.default_rng(0)
    data, y, x = rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=(4, 4))
    layer = OneHiddenLayer(data, y, activation=name)

    def loss(x):
        return jnp.mean((REFERENCE[name](data @ x[:, :-1].T) @ x[:, -1] - y) ** 2) / 2

    with jax.enable_x64(True):
        value, gradient = jax.jit(jax.value_and_grad(loss))(x)
        if name == "tanh":
            v = rng.normal(size=x.shape)
            curved = jax.jit(lambda x, v: jax.jvp(jax.grad(loss), (x,), (v,))[1])(x, v)
            assert_allclose(layer.hessian_apply(x, v), curved, atol=1e-12)
    found = layer.value_and_gradient(x)
    assert_allclose(found[0], value, rtol=1e-13)
    assert_allclose(found[1], gradient, atol=1e-13)


def test_variable_projection():
    rng = np.random.default_rng(1)
    layer = OneHiddenLayer(rng.normal(size=(9, 3)), rng.normal(size=9), activation="tanh")
    problem, W, h = layer.projected(), rng.normal(size=(4, 3)), 1e-6
    direction = rng.normal(size=W.shape)
    slope = (problem.value(W + h * direction) - problem.value(W - h * direction)) / (2 * h)
    assert_allclose(np.sum(problem.gradient(W) * direction), slope, rtol=1e-6)
    hidden = np.tanh(layer.A @ W.T)
    residual = layer.y - hidden @ np.linalg.lstsq(hidden, layer.y, rcond=None)[0]
    assert_allclose(problem.value(W), residual @ residual / 18, rtol=1e-12)
    assert_allclose(layer.gradient(problem.full(W))[:, -1], 0.0, atol=1e-12)


@pytest.mark.slow
def test_it_trains_and_claims_nothing():
    layer = OneHiddenLayer(np.column_stack([np.linspace(-1, 1, 40), np.ones(40)]), np.linspace(-1, 1, 40) ** 2)
    start = layer.start(6, rng=0, scale=3.0)
    assert_allclose(np.linalg.norm(start[:, :-1], axis=1), 3.0)
    assert np.all(layer.gradient(start)[:, :-1] == 0)
    result = optim.run(optim.GradientDescent(optim.Armijo()), layer, start, max_steps=200, tol=None, every=200)
    assert result.value < 0.2 * layer.value(start)
    assert result.certificate is None


def test_the_constructed_network_is_within_its_bound():
    """The published sup errors for a sine, and the bound for a rougher function and a slower sigmoid."""
    grid = np.linspace(0, 1, 4001)
    for q, published in ((10, 0.309017), (20, 0.156434), (40, 0.078459), (80, 0.039260)):
        network = step_network(lambda t: np.sin(2 * np.pi * t), 0.0, 1.0, q, lipschitz=2 * np.pi)
        error = np.max(np.abs(network(grid) - np.sin(2 * np.pi * grid)))
        assert_allclose(error, published, atol=6e-7)
        assert error <= np.pi / q * (1 + 1e-9)
        assert_allclose(network.certificate.bound, np.pi / q, rtol=1e-6)
    grid = np.linspace(-2, 3, 20_001)
    for activation in ("sigmoid", "atan"):
        for width in (0.3, 0.03, 1e-3):
            network = step_network(
                lambda t: 1 + np.abs(t - 0.3), -2.0, 3.0, 25, lipschitz=1.0, width=width, activation=activation
            )
            assert np.max(np.abs(network(grid) - 1 - np.abs(grid - 0.3))) <= network.certificate.upper


def test_barron_constants():
    assert_allclose([gaussian_barron_constant(p) for p in (1, 2, 10)], [0.797885, 1.253314, 3.084328], atol=5e-7)
    for p, width in ((1, 0.4), (3, 2.0)):
        scale = (2 * np.pi) ** (p / 2) * width**p
        found = barron_constant(lambda w: scale * np.exp(-((width * w) ** 2) / 2), p)  # noqa: B023
        assert_allclose(found, gaussian_barron_constant(p, width), rtol=1e-9)
    assert_allclose(barron_bound(2.0, 0.5, 10), 0.4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: OneHiddenLayer(A, Y[:2]), "one row for each entry of y"),
        (lambda: OneHiddenLayer(A, Y, activation="gelu"), "activation must be one of"),
        (lambda: OneHiddenLayer(A * np.nan, Y), "A must be finite"),
        (lambda: OneHiddenLayer(A, Y).start(0), "units must be a whole number"),
        (lambda: step_network(np.sin, 1.0, 0.0, 3, lipschitz=1.0), "start must be below end"),
        (lambda: step_network(np.sin, 0.0, 1.0, 3, lipschitz=1.0, activation="relu"), "rise from 0 to 1"),
        (lambda: barron_bound(-1.0, 1.0, 3), "constant must be finite and not negative"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
