"""`solve`: inside `jit`, under `vmap`, and its derivatives, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.precision import float64

RNG = np.random.default_rng(11)
A = RNG.normal(size=(30, 10))
Y = RNG.normal(size=30)
L2 = 0.7
EXACT = np.linalg.solve(A.T @ A + L2 * np.eye(10), A.T @ Y)
RIDGE = optim.LeastSquares(A, Y, l2=L2, reduction="sum")


@pytest.fixture
def x64():
    with float64():
        yield


def ridge(y, l2):
    return optim.LeastSquares(jnp.asarray(A), y, l2=l2, reduction="sum")


def test_numpy_in_numpy_out():
    x, info = optim.solve(optim.GradientDescent(), RIDGE, np.zeros(10), tol=1e-14, max_steps=5000)
    assert type(x) is np.ndarray
    assert x.dtype == np.float64
    assert bool(info.converged)
    assert 0 < int(info.steps) < 5000
    np.testing.assert_allclose(x, EXACT, atol=1e-6)
    np.testing.assert_allclose(info.value, RIDGE.value(EXACT), rtol=1e-12)
    assert RIDGE.value(x) - RIDGE.value(EXACT) <= info.bound + 1e-12


def test_steps_are_those_of_run():
    x, info = optim.solve(optim.GradientDescent(), RIDGE, np.zeros(10), tol=1e-8, max_steps=5000)
    result = optim.run(optim.GradientDescent(), RIDGE, np.zeros(10), max_steps=int(info.steps), tol=None)
    np.testing.assert_allclose(x, result.x, rtol=1e-12)


@pytest.mark.parametrize(
    "solver",
    [optim.Newton(), optim.GradientDescent(), optim.AcceleratedGradient(), optim.ConjugateGradient()],
    ids=lambda solver: type(solver).__name__,
)
def test_a_thousand_starts_in_one_compiled_call(solver, x64):
    starts = jnp.asarray(np.random.default_rng(0).normal(size=(1000, 10)))
    many = jax.jit(jax.vmap(lambda x0: optim.solve(solver, RIDGE, x0, tol=1e-13, max_steps=5000)))
    x, info = many(starts)
    assert x.shape == (1000, 10)
    assert info.steps.shape == (1000,)
    assert bool(jnp.all(info.converged))
    np.testing.assert_allclose(x, np.broadcast_to(EXACT, (1000, 10)), atol=1e-5)


def test_derivatives_are_those_of_the_closed_form(x64):
    def weights(y, l2):
        return optim.solve(optim.Newton(), ridge(y, l2), jnp.zeros(10), tol=1e-13)[0]

    inverse = np.linalg.inv(A.T @ A + L2 * np.eye(10))
    for wrapped in (lambda f: f, jax.jit):
        by_y, by_l2 = wrapped(jax.jacrev(weights, argnums=(0, 1)))(jnp.asarray(Y), L2)
        np.testing.assert_allclose(by_y, inverse @ A.T, atol=1e-10)
        np.testing.assert_allclose(by_l2, -inverse @ EXACT, atol=1e-10)
    forward = jax.jacfwd(weights)(jnp.asarray(Y), L2)
    np.testing.assert_allclose(forward, inverse @ A.T, atol=1e-10)
    second = jax.jacfwd(jax.jacrev(weights, argnums=1), argnums=1)(jnp.asarray(Y), L2)
    np.testing.assert_allclose(second, 2 * inverse @ inverse @ EXACT, atol=1e-9)


def test_derivatives_by_products_alone(x64):
    def weights(y):
        return optim.solve(optim.Newton(), ridge(y, L2), jnp.zeros(10), tol=1e-13, linear_solver="iterative")[0]

    inverse = np.linalg.inv(A.T @ A + L2 * np.eye(10))
    np.testing.assert_allclose(jax.jacrev(weights)(jnp.asarray(Y)), inverse @ A.T, atol=1e-9)


def test_a_start_has_no_derivative(x64):
    moved = jax.jacrev(lambda x0: optim.solve(optim.Newton(), RIDGE, x0, tol=1e-13)[0])(jnp.ones(10))
    np.testing.assert_array_equal(moved, 0.0)


def test_the_lasso_and_its_derivative(x64):
    def weights(y):
        problem = optim.Composite(ridge(y, L2), optim.L1(3.0))
        return optim.solve(optim.ProximalGradient(0.01), problem, jnp.zeros(10), tol=1e-13, max_steps=20_000)[0]

    x = np.asarray(weights(jnp.asarray(Y)))
    kept = x != 0
    assert 0 < kept.sum() < 10
    part = A[:, kept]
    by_y = np.zeros((10, 30))
    by_y[kept] = np.linalg.solve(part.T @ part + L2 * np.eye(kept.sum()), part.T)
    np.testing.assert_allclose(jax.jacrev(weights)(jnp.asarray(Y)), by_y, atol=1e-8)


def fit(tree, data):
    x, y = data
    return jnp.sum((x @ tree["w"] + tree["b"] - y) ** 2) / 2 + L2 / 2 * jnp.sum(tree["w"] ** 2)


def test_trees_and_hyperparameters(x64):
    start = {"w": jnp.zeros(10), "b": jnp.zeros(())}

    def loss(y):
        x, info = optim.solve(optim.Newton(), optim.Objective(fit, (jnp.asarray(A), y)), start, tol=1e-12)
        return x["w"], info.converged

    centred = A - A.mean(axis=0)
    inverse = np.linalg.inv(centred.T @ centred + L2 * np.eye(10))
    w, converged = loss(jnp.asarray(Y))
    assert bool(converged)
    np.testing.assert_allclose(w, inverse @ centred.T @ Y, atol=1e-10)
    by_y = jax.jacrev(lambda y: loss(y)[0])(jnp.asarray(Y))
    np.testing.assert_allclose(by_y, inverse @ centred.T, atol=1e-10)


def test_what_did_not_converge_says_so():
    _, info = optim.solve(optim.GradientDescent(1e-4), RIDGE, np.zeros(10), tol=1e-10, max_steps=3)
    assert (int(info.steps), bool(info.converged)) == (3, False)
    _, stuck = optim.solve(optim.Newton(), optim.Objective(flat), np.zeros(2), tol=0.0)
    assert int(stuck.steps) <= 2


def flat(x, _):
    return jnp.sum(x**2)


def test_what_solve_cannot_do_is_refused():
    with pytest.raises(TypeError, match="compiled solver"):
        optim.solve(optim.LBFGS(), RIDGE, np.zeros(10))
    with pytest.raises(TypeError, match="must have a gradient"):
        optim.solve(optim.Newton(), 3.0, np.zeros(10))
    with pytest.raises(ValueError, match="needs the smoothness"):
        jax.jit(lambda y: optim.solve(optim.GradientDescent("1/L"), ridge(y, L2), jnp.zeros(10))[0])(jnp.asarray(Y))
    with pytest.raises(ValueError, match="max_steps must be"):
        optim.solve(optim.Newton(), RIDGE, np.zeros(10), max_steps=0)
