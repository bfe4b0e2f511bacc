"""Theorems 7, 8, 10 and 11 and corollary 14 of Domke, Garrigos and Gower (2023): means over replicated runs.

A Gaussian target in two dimensions, whose best approximation is itself: the distance to it is known exactly, and each
bound is compared with the mean over replicas plus three standard errors. The published-style table of the bounds is
checked to its digits.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import optim
from cumulant import variational as vi
from cumulant.optim import rates, schedules
from tests.variational.test_parts import COV, MEAN, best_fit

MU, M = 0.8768, 2.7817
D = 2


@functools.cache
def setting(kind):
    target, q = vi.gaussian(MEAN, COV), vi.FullRank(D, kind)
    best = best_fit(q, MEAN, COV)
    start = q.pack(np.zeros(D), np.eye(D))
    if kind == "symmetric":
        with jax.enable_x64(True):
            start = np.asarray(q.project(start, target.smoothness**-0.5))
    return target, q, best, start


def replicate(kind, solver, n_steps, replicas, seed=0):
    """The last iterates, or averages, of independent runs: ``(replicas, d, d + 1)``."""
    target, q, _, start = setting(kind)
    draws = np.zeros((1, D))
    with jax.enable_x64(True):
        if kind == "triangular":
            problem = vi.proximal_problem(target, q, draws)
        else:
            problem = vi.projected_problem(target, q, draws, target.smoothness**-0.5)

        def one(key):
            state = solver.init(problem, jnp.asarray(start), key)
            return jax.lax.fori_loop(0, n_steps, lambda _, s: solver.step(problem, s), state).mean

        keys = jax.vmap(jax.random.PRNGKey)(jnp.arange(replicas) + 1000 * seed)
        return np.asarray(jax.jit(jax.vmap(one))(keys))


def squared_distances(kind, w):
    return np.sum((w - setting(kind)[2]) ** 2, axis=(1, 2))


def constants(kind, estimator, **more):
    target, _, best, start = setting(kind)
    apart = float(np.trace(COV))  # |w* - (mode, 0)|^2
    moment = estimator.second_moment(D, target.smoothness, apart, **more)
    return target, moment, float(np.sum((best - start) ** 2)), target.smoothness**2 * apart


def divergences(kind, w):
    """``KL(q_w | target)`` in closed form."""
    q, P = setting(kind)[1], np.linalg.inv(COV)
    out = []
    for each in w:
        m, C = each[:, 0], each[:, 1:]
        S = C @ C.T
        out.append((np.trace(P @ S) + (m - MEAN) @ P @ (m - MEAN) - D - np.linalg.slogdet(P @ S)[1]) / 2)
    assert q.dim == D
    return np.array(out)


def holds(values, bound):
    """The mean plus three standard errors is below the bound."""
    return values.mean() + 3 * values.std(ddof=1) / np.sqrt(len(values)) <= bound


def test_the_table_of_bounds():
    """The bound column for the example of the theory: means, steps and constants as there."""
    target, energy, far, drift = constants("triangular", vi.EnergyGradient())
    mu, L = target.strong_convexity, target.smoothness
    assert_allclose([mu, L, energy.a, energy.b], [MU, M, 77.38, 116.07], rtol=1e-4)
    step = mu / (2 * energy.a)
    assert_allclose(step, 0.005665, rtol=1e-3)
    assert_allclose(rates.proximal_sgd(mu, energy, step, 3000, far, drift), 1.65, rtol=5e-3)
    assert_allclose(rates.proximal_sgd_decaying(mu, energy, 20_000, far, drift), 0.0673, rtol=5e-3)
    size = (energy.a * 2000) ** -0.5
    assert_allclose(rates.proximal_sgd_average(L, energy, size, 2000, far), 0.800, rtol=5e-3)
    assert_allclose((2 * energy.a * far + energy.b) / np.sqrt(energy.a * 2000), 1.168, rtol=5e-3)
    target, entropy, far, _ = constants("symmetric", vi.EntropyGradient())
    assert_allclose(entropy, [154.8, 243.3], rtol=1e-3)
    step = mu / (2 * entropy.a)
    assert_allclose(rates.projected_sgd(mu, entropy, step, 3000, far), 1.62, rtol=5e-3)
    assert_allclose(rates.projected_sgd_decaying(mu, entropy, 20_000, far), 0.267, rtol=5e-3)
    assert_allclose(rates.projected_sgd_average(entropy, (2 / (entropy.a * 2000)) ** 0.5, 2000, far), 0.802, rtol=5e-3)
    _, stl, far, _ = constants("symmetric", vi.StickingTheLanding(), residual_smoothness=0.0)
    assert_allclose(rates.projected_sgd(mu, stl, mu / (2 * stl.a), 3000, far), 0.336, rtol=5e-3)
    assert_allclose(rates.projected_sgd_decaying(mu, stl, 20_000, far), 0.0561, rtol=5e-3)
    assert_allclose(rates.projected_sgd_average(stl, (2 / (stl.a * 2000)) ** 0.5, 2000, far), 0.697, rtol=5e-3)
    assert_allclose(rates.average_discount(1.0, (2 / 2000) ** 0.5, proximal=False) ** 2000, 0.1355, atol=1e-4)


class TestProximal:
    def test_constant_steps(self):
        """Theorem 7; the published measurement is .01445 (300 replicas), a bound of 1.65."""
        target, moment, far, drift = constants("triangular", vi.EnergyGradient())
        step = target.strong_convexity / (2 * moment.a)
        solver = optim.RobbinsMonro(step, vi.EnergyGradient())
        for n_steps in (10, 100, 3000):
            d2 = squared_distances("triangular", replicate("triangular", solver, n_steps, 200))
            assert holds(d2, rates.proximal_sgd(target.strong_convexity, moment, step, n_steps, far, drift))
            recursion = rates.second_moment_recursion([step] * n_steps, target.strong_convexity, moment, far, drift)
            assert holds(d2, recursion[-1])
        assert abs(d2.mean() - 0.01445) <= 4 * d2.std() / np.sqrt(200)

    def test_decaying_steps(self):
        """Theorem 7, anytime: at three times of one schedule."""
        target, moment, far, drift = constants("triangular", vi.EnergyGradient())
        mu = target.strong_convexity
        schedule = schedules.Switching(mu / (2 * moment.a), 1 / mu)
        solver = optim.RobbinsMonro(schedule, vi.EnergyGradient())
        for n_steps in (500, 4000):
            d2 = squared_distances("triangular", replicate("triangular", solver, n_steps, 200))
            assert holds(d2, rates.proximal_sgd_decaying(mu, moment, n_steps, far, drift))
            sizes = [schedule(k) for k in range(n_steps)]
            assert holds(d2, rates.second_moment_recursion(sizes, mu, moment, far, drift)[-1])

    def test_averages(self):
        """Theorem 8; measured gap .0706 as published, within four standard errors, a bound of .800."""
        target, moment, far, _ = constants("triangular", vi.EnergyGradient())
        size = (moment.a * 2000) ** -0.5
        discount = rates.average_discount(moment.a, size, proximal=True)
        solver = optim.RobbinsMonro(size, vi.EnergyGradient(), average=True, discount=discount)
        gap = divergences("triangular", replicate("triangular", solver, 2000, 200))
        assert holds(gap, rates.proximal_sgd_average(target.smoothness, moment, size, 2000, far))
        assert abs(gap.mean() - 0.0706) <= 4 * gap.std() / np.sqrt(200)


class TestProjected:
    @pytest.mark.parametrize(
        ("estimator", "more", "measured"),
        [(vi.EntropyGradient(), {}, 0.0072), (vi.StickingTheLanding(), {"residual_smoothness": 0.0}, 1.34e-4)],
        ids=["entropy", "stl"],
    )
    def test_constant_steps(self, estimator, more, measured):
        """Theorem 10 and corollary 14; measured .0072 and 1.34e-4 with 300 replicas."""
        target, moment, far, _ = constants("symmetric", estimator, **more)
        step = target.strong_convexity / (2 * moment.a)
        d2 = squared_distances("symmetric", replicate("symmetric", optim.RobbinsMonro(step, estimator), 3000, 100))
        assert holds(d2, rates.projected_sgd(target.strong_convexity, moment, step, 3000, far))
        assert abs(d2.mean() - measured) <= 5 * d2.std() / np.sqrt(100)

    def test_averages(self):
        """Theorem 11 with the entropy estimator; measured .0742, a bound of .802."""
        _, moment, far, _ = constants("symmetric", vi.EntropyGradient())
        size = (2 / (moment.a * 2000)) ** 0.5
        discount = rates.average_discount(moment.a, size, proximal=False)
        solver = optim.RobbinsMonro(size, vi.EntropyGradient(), average=True, discount=discount, leading=True)
        gap = divergences("symmetric", replicate("symmetric", solver, 2000, 100))
        assert holds(gap, rates.projected_sgd_average(moment, size, 2000, far))
        assert abs(gap.mean() - 0.0742) <= 4 * gap.std() / np.sqrt(100)

    def test_entropy_gradients_reach_a_plateau_that_is_proportional_to_the_step(self):
        """Check 16: half the step, half the plateau, within a quarter."""
        solvers = [optim.RobbinsMonro(step, vi.EntropyGradient()) for step in (0.004, 0.002)]
        plateaus = [squared_distances("symmetric", replicate("symmetric", s, 4000, 100)).mean() for s in solvers]
        assert 1.5 <= plateaus[0] / plateaus[1] <= 2.5

    @pytest.mark.slow
    def test_sticking_the_landing_reaches_the_target_itself(self):
        """Check 15: with decaying steps the distance is 3.5e-11 after 20,000."""
        target, moment, _, _ = constants("symmetric", vi.StickingTheLanding(), residual_smoothness=0.0)
        mu = target.strong_convexity
        solver = optim.RobbinsMonro(schedules.Switching(mu / (2 * moment.a), 2 / mu), vi.StickingTheLanding())
        d2 = squared_distances("symmetric", replicate("symmetric", solver, 20_000, 30))
        assert d2.mean() < 1e-8


@pytest.mark.parametrize("ratio", [1.0, 1.9, 3.5, 8.9, 20.99, 101.0])
@pytest.mark.parametrize("noise", [0.0, 1e-3, 10.0])
def test_the_bound_of_decaying_steps_is_above_its_recursion(ratio, noise):
    """At every step, also where the ratio of constants is far from whole."""
    schedule = schedules.Switching(1 / (2 * ratio), 1.0)
    recursion = rates.second_moment_recursion([schedule(k) for k in range(3000)], 1.0, (ratio, noise), 2.0)
    bound = rates.proximal_sgd_decaying(1.0, (ratio, noise), np.arange(3001), 2.0)
    assert np.all(recursion <= bound * (1 + 1e-12))


def test_moments_below_the_curvature_and_growing_weights_are_refused():
    with pytest.raises(ValueError, match="at least mu"):
        rates.proximal_sgd_decaying(1.0, (0.75, 0.0), 10, 1.0)
    with pytest.raises(ValueError, match="discount"):
        optim.RobbinsMonro(0.1, vi.EnergyGradient(), average=True, discount=1.5)
