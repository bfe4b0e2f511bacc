"""Bounds on means, log-partition functions and distributions: true on random models, and attained where they say."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.graphical import (
    MCMC,
    FastMixing,
    Ising,
    SamplingPlan,
    distance_from_gap,
    fit,
    gap_from_distance,
    grid,
    largest_curvature,
    learning_problem,
    log_partition_change_bound,
    mean_change_bound,
    replay,
    total_variation_bound,
)


def enumerated(edges, n, theta):
    x = np.array(list(itertools.product((-1, 1), repeat=n)))
    T = np.concatenate([x, x[:, edges[:, 0]] * x[:, edges[:, 1]]], axis=1)
    score = T @ theta
    top = score.max()
    log_z = top + np.log(np.exp(score - top).sum())
    return T, np.exp(score - log_z), log_z


def test_the_bounds_hold_on_random_pairs_of_models():
    edges, n, rng = grid(2, 3), 6, np.random.default_rng(0)
    R = (n + len(edges)) ** 0.5  # of every state, about zero
    for scale in (0.01, 0.3, 3.0):
        for _ in range(20):
            first, second = scale * rng.normal(size=(2, n + len(edges)))
            T, p, a = enumerated(edges, n, first)
            _, q, b = enumerated(edges, n, second)
            distance, apart = float(np.linalg.norm(first - second)), 0.5 * float(np.abs(p - q).sum())
            assert np.linalg.norm(p @ T - q @ T) <= mean_change_bound(R, apart)
            assert abs(a - b) <= log_partition_change_bound(R, distance)
            assert apart <= total_variation_bound(R, distance)


def test_the_constants_are_attained():
    """A variable that is 3 or -3: no smaller constant is right."""
    R, t = 3.0, np.array([3.0, -3.0])

    def law(theta):
        w = np.exp(theta * t - abs(theta) * 3.0)
        return w / w.sum()

    p, q = law(0.2), law(-0.1)
    assert_allclose(abs((p - q) @ t), mean_change_bound(R, 0.5 * np.abs(p - q).sum()), rtol=1e-12)
    p, q = law(5e-5), law(-5e-5)
    assert_allclose(0.5 * np.abs(p - q).sum(), total_variation_bound(R, 1e-4), rtol=1e-6)
    log_z = lambda theta: np.logaddexp(3.0 * theta, -3.0 * theta)  # noqa: E731
    assert_allclose(log_z(40.0) - log_z(20.0), log_partition_change_bound(R, 20.0), rtol=1e-12)


def test_gaps_and_distances_over_a_box_with_active_constraints():
    x = np.random.default_rng(1).choice([-1, 1], (5, 4))
    edges, l2 = [(0, 1), (1, 2), (2, 3), (3, 0)], 0.3
    box = FastMixing(0.1, "box")
    problem = learning_problem(x, edges, mixing=box, l2=l2, fields=False)
    best = fit(x, edges, method="exact", mixing=box, l2=l2, fields=False)
    slope = float(np.linalg.norm(problem.gradient(best.model.couplings)))
    L = 4.0 + l2
    printed, rng = 0, np.random.default_rng(0)
    for _ in range(200):
        theta = rng.uniform(-0.1, 0.1, 4)
        gap, distance = problem.value(theta) - best.value, float(np.linalg.norm(theta - best.model.couplings))
        assert distance <= distance_from_gap(gap, l2) * (1 + 1e-9)
        assert gap <= gap_from_distance(distance, L, slope)
        printed += gap > gap_from_distance(distance, L)
    assert slope > 0.1
    assert printed > 20  # without the slope it is false where a constraint is active


def test_the_largest_curvature_of_the_four_by_four_grid():
    """1.1589 at all couplings 0.2 (Domke 2015 uses 9 = 10 - l2); R^2 = 24 is proved."""
    problem = learning_problem(np.zeros(24), grid(4, 4), mixing=FastMixing(0.2, "box"), l2=1.0, fields=False)
    found = largest_curvature(problem, starts=1, steps=6)
    covariance = Ising(grid(4, 4), found.theta).covariance()[16:, 16:]
    assert_allclose(np.linalg.eigvalsh(covariance)[-1] + 1.0, found.value, rtol=1e-9)
    assert 2.158 < found.value < problem.smoothness
    assert np.abs(found.theta).max() <= 0.2


def test_chains_may_start_at_the_data():
    x = Ising(grid(3, 3), 0.15).sample(60, rng=0)
    settings = {"mixing": FastMixing(0.2, "box"), "l2": 1.0, "fields": False}
    exact = fit(x, grid(3, 3), method="exact", **settings)
    plan = SamplingPlan(30, 500, 300)
    uniform, data = (
        fit(x, grid(3, 3), method=MCMC(plan=plan, starts=starts), rng=1, **settings) for starts in ("uniform", "data")
    )
    assert data.certificate.bound == uniform.certificate.bound  # any start will do
    assert np.linalg.norm(data.model.theta - exact.model.theta) <= data.certificate.upper
    assert (data.path != uniform.path).any()
    again = replay(data)
    assert (again.path == data.path).all()
    assert data.run.starts == again.run.starts == "data"
    near = fit(x, grid(3, 3), method=MCMC(plan=SamplingPlan(1, 50_000, 0), starts="data"), rng=0, **settings)
    assert_allclose(near.path[1], 0.0, atol=5e-3)  # without updates, chains are the data and the gradient is zero
    with pytest.raises(ValueError, match="starts='data'"):
        fit([0.3], [(0, 1)], method=MCMC(starts="data"), **settings)
    with pytest.raises(ValueError, match="'uniform' or 'data'"):
        fit(x, grid(3, 3), method=MCMC(starts="pool"), **settings)
