"""Expectations of a random loss: fresh draws are unbiased, and projected steps obey the theorem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.optim.gradients import Fresh
from cumulant.precision import float64


def half_square(x, z):
    return jnp.sum((x - z) ** 2) / 2


def sign(key):
    return jax.random.rademacher(key, (1,), float)


SIGNS = optim.Expectation(half_square, sign, strong_convexity=1.0)


def test_fresh_draws_are_unbiased_with_the_variance_of_the_loss():
    with float64():
        keys = jax.random.split(jax.random.key(0), 4000)
        for batch in (1, 5):
            oracle = Fresh(batch)
            found = np.asarray(jax.vmap(lambda key, g=oracle: g(SIGNS, jnp.array([0.3]), 0, key))(keys))[:, 0]
            error = found.std() / np.sqrt(4000)
            assert abs(found.mean() - 0.3) <= 4 * error  # x - z, E z = 0
            assert found.var() == pytest.approx(1 / batch, rel=0.1)


def test_projected_steps_and_their_average_obey_their_bounds():
    """z = +-1: the gradient at x in [-1, 1] is x -+ 1, of second moment 1 + x^2 <= 2 = C^2; x* = 0. In [-1/2, 1/2] the
    first steps are cut off: all paths are enumerated.
    """
    problem, narrow = (optim.Composite(SIGNS, optim.Box(-size, size)) for size in (1.0, 0.5))
    solvers = [
        optim.RobbinsMonro(optim.InverseTime(1.0), Fresh(), average=average, leading=average)
        for average in (False, True)
    ]

    def run(key, solver, steps, problem=problem):
        state = solver.init(problem, jnp.array([0.4]), key)
        return jax.lax.fori_loop(0, steps, lambda _, s: solver.step(problem, s), state)

    with float64():
        keys = jax.random.split(jax.random.key(1), 2000)
        for steps in (1, 5, 40):
            last = np.asarray(jax.jit(jax.vmap(lambda key, n=steps: run(key, solvers[0], n).x))(keys))[:, 0]
            error = (last**2).std() / np.sqrt(last.size)
            assert abs(np.mean(last**2) - 1 / steps) <= 3 * error + 1e-12  # the mean of k signs: 1/k, never clipped
            assert np.mean(last**2) <= float(optim.rates.sgd(np.sqrt(2.0), 1.0, steps)) + 3 * error
        cut = np.asarray(jax.jit(jax.vmap(lambda key: run(key, solvers[0], 5, narrow).x))(keys))[:, 0]
        state = jax.jit(jax.vmap(lambda key: run(key, solvers[1], 40)))(keys)
        gap = np.asarray(state.mean)[:, 0] ** 2 / 2
    paths = np.array([0.4])
    for k in range(5):
        paths = np.clip(paths - (paths - np.array([[-1.0], [1.0]])) / (k + 1), -0.5, 0.5).ravel()
    assert set(np.round(cut, 12)) == set(np.round(paths, 12))
    assert abs(np.mean(cut**2) - np.mean(paths**2)) <= 4 * (cut**2).std() / np.sqrt(cut.size)
    assert np.mean(paths**2) < 0.9 / 5  # without the projection 1/5
    # f(mean of x_0 .. x_{T-1}) - f* <= C^2 (1 + log T) / (2 mu T) for steps 1 / (mu (k + 1)).
    assert gap.mean() + 3 * gap.std() / np.sqrt(gap.size) <= 2 * (1 + np.log(40)) / (2 * 40)


def test_values_are_means_over_the_fixed_sample_and_certify_nothing():
    with float64():
        draws = np.asarray(jax.vmap(sign)(jax.random.split(jax.random.key(7), 50)))
    problem = optim.Expectation(half_square, sign, sample=50, seed=7, strong_convexity=1.0)
    assert problem.value([0.3]) == pytest.approx(np.mean((0.3 - draws) ** 2) / 2, abs=1e-12)
    np.testing.assert_allclose(problem.gradient([0.3]), [0.3 - draws.mean()], atol=1e-12)
    for each in (problem, optim.Composite(problem, optim.L2Ball(0.5))):
        solver = optim.RobbinsMonro(optim.InverseTime(1.0), Fresh(2))
        result = optim.run(solver, each, [0.4], max_steps=200, tol=None, rng=0)
        assert result.certificate is None
        assert "estimated from a sample" in result.refusal


def test_bad_input_is_refused():
    with pytest.raises(TypeError, match="loss must be a function"):
        optim.Expectation(lambda x: x, sign)
    with pytest.raises(ValueError, match="smoothness must be at least"):
        optim.Expectation(half_square, sign, smoothness=0.5, strong_convexity=1.0)
    with pytest.raises(TypeError, match="need an Expectation"):
        Fresh()(optim.Quadratic([[1.0]], [0.0]), jnp.ones(1), 0, jax.random.key(0))
    with pytest.raises(ValueError, match="known only to you"):
        Fresh().noise(SIGNS, [0.0])
    assert Fresh(constants=(0.0, 1.0)).noise(SIGNS, [0.0]) == (0.0, 1.0)
