"""The theorems on proximal gradients, against the methods on random Lasso problems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.optim import rates
from cumulant.optim.solvers.proximal_gradient import ProximalGradientState
from tests.optim.rates.test_accelerated import accelerated, iterate, known

N, ROWS, COLUMNS, K = 200, 15, 30, 60


def solve_lassos(matrices, targets, weights, steps=8_000):
    """Minimisers to machine precision, by cyclic coordinate descent: not the method under test."""

    def one(A, y, weight):
        squares = jnp.sum(A**2, axis=0)

        def coordinate(j, both):
            x, residual = both
            raw = x[j] + A[:, j] @ residual / squares[j]
            new = jnp.sign(raw) * jnp.maximum(jnp.abs(raw) - weight / squares[j], 0.0)
            return x.at[j].set(new), residual - A[:, j] * (new - x[j])

        def sweep(_, both):
            return jax.lax.fori_loop(0, COLUMNS, coordinate, both)

        return jax.lax.fori_loop(0, steps // COLUMNS, sweep, (jnp.zeros(COLUMNS), y))[0]

    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.vmap(one))(matrices, targets, weights))


@pytest.fixture(scope="module")
def lassos():
    rng = np.random.default_rng(0)
    matrices, targets = rng.normal(size=(N, ROWS, COLUMNS)), rng.normal(size=(N, ROWS))
    weights = 0.1 * np.max(np.abs(np.einsum("nij,ni->nj", matrices, targets)), axis=1)
    best = solve_lassos(matrices, targets, weights)
    structure = jax.tree.structure(
        optim.Composite(optim.LeastSquares(np.ones((2, 2)), np.ones(2), reduction="sum"), optim.L1(1.0))
    )
    problems = jax.tree.unflatten(structure, [matrices, targets, np.zeros(N), weights])
    L = np.linalg.norm(matrices, 2, axis=(1, 2)) ** 2

    def values(xs):
        residual = np.einsum("nij,nkj->nki", matrices, xs) - targets[:, None]
        return np.sum(residual**2, axis=-1) / 2 + weights[:, None] * np.sum(np.abs(xs), axis=-1)

    return problems, L, values, values(best[:, None])[:, 0], np.sum(best**2, axis=1)


def test_ista(lassos):
    problems, L, values, lowest, squared = lassos
    states = ProximalGradientState(np.zeros((N, COLUMNS)), 1 / L, known(N))
    gap = values(iterate(optim.ProximalGradient(), states, problems)) - lowest[:, None]
    bound = np.array([rates.ista(1 / L[i], squared[i], np.arange(K + 1)) for i in range(N)])
    assert np.all(gap <= bound)
    assert np.all(np.diff(gap, axis=1) <= 1e-12)
    assert 0.1 < np.max(gap[:, 1:] / bound[:, 1:]) < 0.3


def test_fista(lassos):
    problems, L, values, lowest, squared = lassos
    states = accelerated(np.zeros((N, COLUMNS)), 1 / L, np.zeros(N))
    gap = values(iterate(optim.AcceleratedProximalGradient(), states, problems)) - lowest[:, None]
    bound = np.array([rates.fista(1 / L[i], squared[i], np.arange(K + 1)) for i in range(N)])
    assert np.all(gap <= bound)
    assert 0.1 < np.max(gap[:, 1:] / bound[:, 1:]) < 0.6


def test_a_run_can_be_verified():
    rng = np.random.default_rng(3)
    problem = optim.Composite(optim.LeastSquares(rng.normal(size=(12, 5)), rng.normal(size=12)), optim.L1(0.05))
    best = optim.run(optim.AcceleratedProximalGradient(restart=True), problem, np.zeros(5), tol=1e-15, max_steps=20_000)
    R2, tau = float(best.x @ best.x), 1 / problem.smoothness
    run = optim.run(optim.ProximalGradient(), problem, np.zeros(5), max_steps=100, tol=None, every=1)
    assert optim.compare_with_rate(run.trace, lambda k: rates.ista(tau, R2, k), optimum=best.value).holds
    seen = []
    again = {"max_steps": 100, "tol": None, "every": 1, "callback": seen.append}
    optim.run(optim.ProximalGradient(), problem, np.zeros(5), **again)
    found = [snapshot.x for snapshot in seen]
    distance = np.linalg.norm(np.array(found) - best.x, axis=1)
    mu, L = problem.strong_convexity, problem.smoothness
    bound = rates.ista_strongly_convex(L, mu, tau, np.arange(1, 101), np.sqrt(R2))
    assert np.all(distance <= bound + 1e-7)  # the reference is certified to 1e-15 in value, and so to 1e-7 in x


def test_penalties_bound_the_residual_and_the_penalty():
    rng = np.random.default_rng(4)
    A, feasible = rng.normal(size=(4, 10)), rng.normal(size=10)
    y = A @ feasible
    for lam in (1.0, 1e-1, 1e-2):
        x = optim.lasso(A, y, lam, tol=1e-12).x
        assert np.linalg.norm(A @ x - y) <= rates.penalised_residual(lam, np.sum(np.abs(feasible)))
        assert np.sum(np.abs(x)) <= np.sum(np.abs(feasible)) + 1e-9
        x = optim.ridge(A, y, lam).x
        assert np.linalg.norm(A @ x - y) <= rates.penalised_residual(lam, feasible @ feasible / 2)
        assert x @ x <= feasible @ feasible
