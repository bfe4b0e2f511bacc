"""Gradient oracles: unbiased, with noise within their constants, and the guarantee that follows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.optim.gradients import ByRows, Exact, Noisy, Sampled
from cumulant.precision import float64

RNG = np.random.default_rng(2)
A, Y = RNG.normal(size=(9, 3)), RNG.normal(size=9)
SIGNS = np.sign(Y)
LOSSES = {
    "least squares": optim.LeastSquares(A, Y, l2=0.2),
    "least squares, summed": optim.LeastSquares(A, Y, l2=0.2, reduction="sum"),
    "logistic": optim.Logistic(A, SIGNS, l2=0.2),
}


def minimiser(problem):
    return optim.run(optim.Newton(), problem, np.zeros(3), tol=1e-12).x


@pytest.mark.parametrize("name", LOSSES)
def test_rows_are_unbiased_and_their_noise_is_within_the_constants(name):
    problem = LOSSES[name]
    best = minimiser(problem)
    for batch in (1, 3):
        a, b = ByRows("random", batch).noise(problem, best)
        for x in [best, *(best + scale * RNG.normal(size=3) for scale in (0.01, 1.0, 30.0) for _ in range(5))]:
            scaled = problem.weight * problem.n_terms * problem.term_gradient(x, np.arange(9))  # one a row: all draws
            np.testing.assert_allclose(scaled.mean(axis=0), problem.gradient(x), atol=1e-10)
            variance = np.mean(np.sum((scaled - problem.gradient(x)) ** 2, axis=1)) / batch
            assert variance <= (a * np.sum((x - best) ** 2) + b) * (1 + 1e-12)


def test_a_draw_of_rows_is_the_gradient_of_those_rows():
    problem = LOSSES["logistic"]
    x = np.array([0.3, -0.2, 0.1])
    with float64():
        drawn = np.asarray(
            [ByRows("random")(problem, jnp.asarray(x), 0, key) for key in jax.random.split(jax.random.key(0), 40)]
        )
    rows = problem.term_gradient(x, np.arange(9))
    nearest = np.min(np.linalg.norm(drawn[:, None] - rows[None], axis=2), axis=1)
    np.testing.assert_allclose(nearest, 0.0, atol=1e-12)
    assert len(np.unique(drawn.round(9), axis=0)) > 4


def test_noise_of_the_others_and_what_is_refused():
    problem = LOSSES["logistic"]
    assert Exact().noise(problem, np.zeros(3)) == (0.0, 0.0)
    assert Noisy(2.0).noise(problem, np.zeros(3)) == (0.0, 12.0)
    assert Sampled(pull, 1.0, (0.5, 2.0)).noise(None, None) == (0.5, 2.0)
    with pytest.raises(ValueError, match="known only to you"):
        Sampled(pull).noise(None, None)
    with pytest.raises(ValueError, match="order='random'"):
        ByRows().noise(problem, np.zeros(3))


def pull(x, data, step, key):
    return x - data


def mean_squares(solver, problem, x0, best, steps, runs):
    """``E |x_k - x*|^2`` over many runs, for k = 0, ..., steps."""
    with float64():
        keys = jax.random.split(jax.random.key(5), runs)

        def distances(key):
            state = solver.init(problem, jnp.asarray(x0), 0)._replace(key=key)

            def one(state, _):
                new = solver.step(problem, state)
                return new, jnp.sum((new.x - best) ** 2)

            return jax.lax.scan(one, state, None, length=steps)[1]

        found = np.asarray(jax.jit(jax.vmap(distances))(keys))
    return np.append(np.sum((x0 - best) ** 2), found.mean(axis=0)), found.std(axis=0) / np.sqrt(runs)


def test_the_guarantee_is_exact_for_noise_on_a_parabola():
    problem, x0 = optim.Quadratic([[2.0]], [0.0]), np.array([3.0])
    solver = optim.RobbinsMonro(0.2, Noisy(0.7))
    measured, error = mean_squares(solver, problem, x0, np.zeros(1), 12, 20_000)
    bound = optim.rates.noisy_gradient(np.full(12, 0.2), 2.0, 2.0, Noisy(0.7).noise(problem, x0), 9.0)
    assert np.all(np.abs(measured - bound)[1:] <= 5 * error)


@pytest.mark.parametrize("name", LOSSES)
def test_the_guarantee_holds_by_rows_and_on_a_box(name):
    loss = LOSSES[name]
    oracle = ByRows("random", 2)
    for problem in (loss, optim.Composite(loss, optim.Box(-0.1, 0.2))):
        solver = optim.ProximalGradient() if problem is not loss else optim.Newton()
        best = optim.run(solver, problem, np.zeros(3), tol=1e-12, max_steps=20_000).x
        noise = oracle.noise(loss, best)
        tau = loss.strong_convexity / (loss.smoothness**2 + noise.a)
        measured, error = mean_squares(optim.RobbinsMonro(tau, oracle), problem, np.full(3, 0.2), best, 30, 2000)
        taus = np.full(30, tau)
        bound = optim.rates.noisy_gradient(taus, loss.smoothness, loss.strong_convexity, noise, measured[0])
        assert np.all(measured[1:] <= bound[1:] + 5 * error)


def test_averages_leave_out_what_is_burnt():
    problem = optim.Quadratic([[1.0]], [0.0])

    def run(steps, **settings):
        return optim.run(
            optim.RobbinsMonro(0.3, Noisy(1.0), **settings), problem, [2.0], rng=3, max_steps=steps, tol=None
        ).x[0]

    path = np.array([run(k) for k in (1, 2, 3)])
    np.testing.assert_allclose(run(3, average=True), path.mean(), rtol=1e-12)
    np.testing.assert_allclose(run(3, average=True, burn_in=1), path[1:].mean(), rtol=1e-12)


def test_projected_iterates_stay_in_the_set():
    problem = optim.Composite(LOSSES["least squares"], optim.Simplex())
    result = optim.run(optim.RobbinsMonro(0.1, Noisy(5.0)), problem, np.ones(3) / 3, tol=None, max_steps=200, rng=1)
    np.testing.assert_allclose(result.x.sum(), 1.0, rtol=1e-12)
    assert np.all(result.x >= 0)


def test_rows_in_their_order_are_the_same_on_the_host_and_compiled():
    rng = np.random.default_rng(5)
    problem = optim.Logistic(rng.normal(size=(7, 3)), np.sign(rng.normal(size=7)), l2=0.1)
    oracle = ByRows("stream", 2)
    host = optim.run(optim.SGD(0.3, oracle, updates=5), problem, np.ones(3), max_steps=4, tol=None)
    compiled = optim.run(optim.RobbinsMonro(0.3, oracle), problem, np.ones(3), max_steps=20, tol=None)
    np.testing.assert_allclose(host.x, compiled.x, rtol=1e-12)
    with pytest.raises(TypeError, match="RobbinsMonro takes the other oracles; got Noisy"):
        optim.SGD(gradients=Noisy(1.0))
