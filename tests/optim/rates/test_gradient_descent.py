"""The theorems on gradient descent, against gradient descent: many problems at once, by the solver's own `step`."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.optim import rates
from cumulant.optim.solvers.gradient_descent import GradientDescentState

K = 40


def descend(solver, problems, x0, taus, steps=K):
    """Values and iterates after each step, for a stack of problems, with `solver.step`."""

    def one(problem, x, tau):
        value, gradient = problem.value_and_gradient(x)
        state = GradientDescentState(x, value, gradient, tau, jnp.zeros_like(tau), jnp.asarray(False))

        def step(s, _):
            new = solver.step(problem, s)
            return new, (new.value, new.x)

        _, (values, xs) = jax.lax.scan(step, state, length=steps)
        return jnp.concatenate([value[None], values]), jnp.concatenate([x[None], xs])

    with jax.enable_x64(True):
        out = jax.jit(jax.vmap(one))(problems, jnp.asarray(x0), jnp.asarray(taus))
        return jax.tree.map(np.asarray, out)


def quadratics(rng, count, dim=4, floor=0.0):
    """Random quadratics with their spectra and minimisers: C = U diag U^T, b = C x*."""
    bases = np.linalg.qr(rng.normal(size=(count, dim, dim)))[0]
    spectra = np.maximum(10.0 ** rng.uniform(-3, 0, size=(count, dim)), floor)
    spectra[:, 0] = 1.0  # L = 1
    C = np.einsum("nij,nj,nkj->nik", bases, spectra, bases)
    C = (C + np.swapaxes(C, 1, 2)) / 2
    best = rng.normal(size=(count, dim))
    stack = jax.tree.unflatten(
        jax.tree.structure(optim.Quadratic(np.eye(dim), np.zeros(dim))), [C, np.einsum("nij,nj->ni", C, best)]
    )
    return stack, spectra, best


def gaps(stack, best, xs):
    """``f(x) - f*`` without cancellation."""
    d = xs - best[:, None]
    return np.einsum("nki,nij,nkj->nk", d, np.asarray(stack.C), d) / 2


@pytest.fixture(scope="module")
def thousand():
    """A thousand quadratics with L = 1, flat directions among them, run with steps below 1/L."""
    rng = np.random.default_rng(0)
    stack, spectra, best = quadratics(rng, 1000)
    taus = rng.uniform(0.2, 1.0, size=1000)
    x0 = best + rng.normal(size=(1000, 4))
    _, xs = descend(optim.GradientDescent(1.0), stack, x0, taus)
    return stack, spectra, best, taus, x0, xs


def test_the_contraction_of_one_step():
    np.testing.assert_allclose(
        rates.gd_contraction(10.0, 1.0, [0.1, 2 / 11, 0.19, 0.2]), [0.9, 9 / 11, 0.9, 1.0], rtol=1e-14
    )
    grid = np.linspace(0, 0.2, 2001)
    h = rates.gd_contraction(10.0, 1.0, grid)
    assert grid[np.argmin(h)] == pytest.approx(2 / 11, abs=1e-4)
    kinks = np.abs(np.diff(h, 2)) > 1e-9
    assert np.all(np.abs(grid[1:-1][kinks] - 2 / 11) < 2e-4)  # piecewise linear, one kink


def test_the_linear_rate_on_quadratics(thousand):
    _, spectra, best, taus, x0, xs = thousand
    distance = np.linalg.norm(xs - best[:, None], axis=-1)
    for i in range(1000):
        bound = rates.gd_quadratic(1.0, spectra[i].min(), taus[i], np.arange(K + 1), distance[i, 0])
        assert np.all(distance[i] <= bound * (1 + 1e-10))
    assert x0.shape == best.shape


def test_the_linear_rate_is_attained_in_the_extreme_eigenspace():
    problem = optim.Quadratic(np.diag([1.0, 10.0]), np.zeros(2))
    result = optim.run(optim.GradientDescent("2/(L+mu)"), problem, [1.0, 1.0], max_steps=10, tol=None)
    assert np.linalg.norm(result.x) == pytest.approx(rates.gd_quadratic(10.0, 1.0, 2 / 11, 10, math.sqrt(2)), rel=1e-12)


def test_the_rate_on_degenerate_quadratics_holds_and_is_the_worst_case(thousand):
    stack, _, best, taus, x0, xs = thousand
    gap = gaps(stack, best, xs)
    squared = np.sum((x0 - best) ** 2, axis=1)
    k = np.arange(1, K + 1)
    ratio = gap[:, 1:] * taus[:, None] * k / squared[:, None]
    assert np.max(ratio) < 1 / (4 * np.e)  # 0.0919699
    bound = np.array(
        [rates.gd_degenerate_quadratic(t, np.arange(K + 1), s) for t, s in zip(taus, squared, strict=True)]
    )
    assert np.all(gap <= bound * (1 + 1e-10))
    # The worst case: one direction, with tau lambda = 1 / (2k + 1).
    for steps in (1, 5, 20):
        eigenvalue = 1 / (2 * steps + 1)
        problem = optim.Quadratic(np.diag([eigenvalue, 0.0]), np.zeros(2))
        worst = optim.run(optim.GradientDescent(1.0), problem, [1.0, 0.0], max_steps=steps, tol=None).value
        assert worst == pytest.approx(rates.gd_degenerate_quadratic(1.0, steps, 1.0), rel=1e-12)
    assert max(t * (1 - t) ** 20 for t in np.linspace(0, 1, 100_001)) == pytest.approx(0.017947118232, abs=1e-9)
    assert rates.gd_degenerate_quadratic(0.5, 10, 1.0) == pytest.approx(0.017947118232, abs=1e-11)


def huber(x, slope):
    return jnp.sum(jnp.where(jnp.abs(x) <= slope, x**2 / 2, slope * jnp.abs(x) - slope**2 / 2))


def test_the_convex_rate_is_attained_by_a_huber_function():
    k = np.arange(1, 50)
    slopes = 1 / (2 * k + 1)
    structure = jax.tree.structure(optim.Objective(huber, 1.0, smoothness=1.0))
    stack = jax.tree.unflatten(structure, [slopes, np.ones(49), np.zeros(49), np.zeros(49)])
    values, _ = descend(optim.GradientDescent(1.0), stack, np.ones((49, 1)), np.ones(49), steps=49)
    attained = values[np.arange(49), k]
    np.testing.assert_allclose(attained, 1 / (4 * k + 2), atol=1e-12)
    np.testing.assert_allclose(attained, rates.gd_convex(1.0, 1.0, k), atol=1e-12)
    bound = rates.gd_convex(1.0, 1.0, np.arange(50))
    assert np.all(values <= bound * (1 + 1e-12))


def pseudo_huber(x, data):
    matrix, ridge = data
    return jnp.sum(jnp.sqrt(1 + (matrix @ x) ** 2) - 1) + ridge * jnp.vdot(x, x) / 2


@pytest.fixture(scope="module")
def curved():
    """A hundred smooth, strongly convex functions that are not quadratic, all minimised at zero."""
    rng = np.random.default_rng(1)
    matrices = rng.normal(size=(100, 6, 4))
    mu = 10.0 ** rng.uniform(-3, 0, size=100)
    L = np.linalg.norm(matrices, 2, axis=(1, 2)) ** 2 + mu
    structure = jax.tree.structure(optim.Objective(pseudo_huber, (1.0, 1.0), smoothness=1.0))
    stack = jax.tree.unflatten(structure, [matrices, mu, L, mu, np.zeros(100)])
    x0 = rng.normal(size=(100, 4)) * 5
    return stack, L, mu, x0


def test_the_rates_on_strongly_convex_functions_that_are_not_quadratic(curved):
    stack, L, mu, x0 = curved
    for best_step in (False, True):
        taus = 2 / (L + mu) if best_step else 1 / L
        values, xs = descend(optim.GradientDescent(1.0), stack, x0, taus)
        distance = np.linalg.norm(xs, axis=-1)
        for i in range(100):
            bound = rates.gd_strongly_convex(L[i], mu[i], np.arange(K + 1), distance[i, 0], best_step=best_step)
            assert np.all(distance[i] <= bound * (1 + 1e-10))
            if not best_step:
                assert np.all(values[i] <= rates.gd_convex(L[i], distance[i, 0] ** 2, np.arange(K + 1)) * (1 + 1e-10))


def test_the_decrease_of_one_step(curved):
    stack, L, mu, x0 = curved
    rng = np.random.default_rng(4)
    share = rng.uniform(0.1, 1.9, size=100)
    values, _ = descend(optim.GradientDescent(1.0), stack, x0, share / L, steps=1)
    for i in range(100):
        matrix = np.asarray(jax.tree.leaves(stack)[0])[i]
        product = matrix @ x0[i]
        gradient = matrix.T @ (product / np.sqrt(1 + product**2)) + mu[i] * x0[i]
        promised = rates.gd_decrease(L[i], share[i] / L[i], np.linalg.norm(gradient))
        assert values[i, 0] - values[i, 1] >= promised - 1e-12 * abs(values[i, 0])


def test_exact_line_search_contracts_the_gap(thousand):
    stack, spectra, best, _, x0, _ = thousand
    some = jax.tree.map(lambda leaf: leaf[:200], stack)
    _, xs = descend(optim.GradientDescent(optim.ExactLineSearch()), some, x0[:200], np.ones(200), steps=15)
    gap = gaps(some, best[:200], xs)
    for i in range(200):
        bound = rates.gd_exact_line_search(1.0, spectra[i].min(), np.arange(16), gap[i, 0])
        assert np.all(gap[i] <= bound * (1 + 1e-9) + 1e-26)
    worst = optim.run(
        optim.GradientDescent(optim.ExactLineSearch()),
        optim.Quadratic(np.diag([1.0, 10.0]), np.zeros(2)),
        [10.0, 1.0],
        max_steps=5,
        tol=None,
    )
    assert worst.value == pytest.approx(rates.gd_exact_line_search(10.0, 1.0, 5, 55.0), rel=1e-12)


def test_armijo_accepts_no_less_and_reduces_no_more_than_promised(curved):
    stack, L, _, x0 = curved
    search = optim.Armijo(0.3, 0.5, initial=1.0)

    def one(problem, x, tau):
        value, gradient = problem.value_and_gradient(x)
        return search.search(problem, x, value, gradient, tau)

    with jax.enable_x64(True):
        steps, reductions = jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(stack, jnp.asarray(x0), jnp.full(100, 1.0)))
    for i in range(100):
        assert steps[i] >= rates.armijo_step(L[i], 0.3, 0.5, 1.0)
        assert reductions[i] <= rates.armijo_reductions(L[i], 0.3, 0.5, 1.0)
    assert np.max(reductions) >= 2  # else nothing was tested
    assert rates.armijo_step(10.0, 0.3, 0.5, 1.0) == pytest.approx(0.07)
    assert rates.armijo_reductions(10.0, 0.3, 0.5, 1.0) == 3
    assert rates.armijo_reductions(0.1, 0.3, 0.5, 1.0) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rates.gd_convex(0.0, 1.0, 3), "L, the smoothness constant, must be positive"),
        (lambda: rates.gd_quadratic(1.0, 2.0, 0.1, 3), "mu, the strong convexity constant, must be between 0 and L"),
        (lambda: rates.gd_convex(1.0, 1.0, -1), "k, the number of steps, must not be negative"),
        (lambda: rates.gd_convex(1.0, -1.0, 1), "R2 must be finite and not negative; got -1.0"),
        (lambda: rates.gd_degenerate_quadratic(0.0, 1, 1.0), "tau, the step size, must be positive"),
    ],
)
def test_constants_no_function_has_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
