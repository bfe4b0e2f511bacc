"""Acceptance checks of the sources on variational and conditional mean field particles that no other file has.

Carbonetto (2009), thesis, chapters 2 to 4. `docs/coverage.md` says where each check is.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import graphical, optim, particles, sampling
from cumulant.experiments._vsmc import right_and_down, tempered, trials
from cumulant.experiments.base import find
from cumulant.graphical import Ising, torus_log_partition
from cumulant.optim.interior_point import (
    Bounds,
    ConstrainedProblem,
    Harmonic,
    InteriorPointSA,
    damped_bfgs,
    solve_primal_dual,
)


def pattern(m):
    e = np.arange(m)
    return np.where((e * e + 3 * e) % 7 < 4, 1.0, -1.0)


def test_every_temperature_of_the_twenty_by_twenty_ferromagnet():
    """Check 7: ten values of log Z, and two free energies."""
    log_z = {
        1.0: 800.832460661, 0.9: 889.638532220, 0.8: 1000.711555652, 0.7: 1143.554671019, 0.6: 1334.027130006,
        0.5: 1600.693192225, 0.4: 2000.693148005, 0.3: 2667.359813848, 0.2: 4000.693147181, 0.1: 8000.693147181,
    }  # fmt: skip
    for T, expected in log_z.items():
        assert_allclose(torus_log_partition(20, 20, 1 / T), expected, atol=2e-9)
    for T, expected in ((1.0, -2.0020811517), (0.1, -2.0001732868)):
        assert_allclose(particles.free_energy(log_z[T], T, 400), expected, atol=1e-10)


@pytest.mark.slow
def test_glasses_of_twelve_by_twelve_and_the_numbers_of_their_ground_states():
    """Check 8: the values that `tests/graphical/test_acceptance.py` does not have."""
    edges = right_and_down(12)
    random = np.random.default_rng(2024).choice([-1.0, 1.0], 288)
    assert (random < 0).sum() == 165
    for J, beta, expected, ground in (
        (pattern(288), 1, 200.940785628, None),
        (pattern(288), 2, 372.545749522, None),
        (pattern(288), 10, 1780.465796916, (1760, 773005650)),
        (random, 2, 412.910528009, None),
        (random, 10, 2028.227909838, (2020, 3744)),
    ):
        found = Ising(edges, beta * J).log_partition(max_memory=2**32)
        assert_allclose(found, expected, atol=5e-9)
        if ground is not None:
            count = math.exp(found - ground[0])
            assert_allclose(count, ground[1], rtol=1e-8)
            assert round(count) % 2 == 0


def test_a_damped_update_by_hand():
    """Check 16."""
    B, dx, dy = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0]), np.array([0.2, 0.1])
    new = damped_bfgs(B, dx, dy, 0.75)
    assert_allclose(float(new.t), 5 / 19, rtol=1e-12)
    y = np.asarray(new.B) @ dx
    assert_allclose(y, [1.1578947368, -0.3421052632], atol=1e-10)
    assert_allclose(new.B, [[1.7688134811, 0.6109187442], [0.6109187442, 0.9530240074]], atol=1e-10)
    assert_allclose(np.linalg.det(new.B) / np.linalg.det(B), 0.75, rtol=1e-12)


def test_a_primal_dual_step_by_hand():
    """Check 17: theta = 2, lambda = 0.5, B = 1, gradient 1, mu = 0.3."""
    found = solve_primal_dual(1.0, [[-1.0]], [-2.0], [0.5], [1.0], 0.3)
    assert_allclose([found.dx[0], found.dz[0]], [-0.68, -0.18], atol=1e-12)
    assert_allclose(2.0 * found.dz[0] + 0.5 * found.dx[0], 0.3 - 1.0, atol=1e-12)


def test_interior_point_steps_with_noise_find_the_active_set():
    """Check 19: strictly feasible at every step, complementary in the end, errors that fall like the step sizes."""
    problem = ConstrainedProblem(optim.Quadratic(np.eye(3), [-1.0, 1.0, -2.0]), Bounds(0.0))
    solution, counts, errors = np.array([0.0, 1.0, 0.0]), (200, 3200), []
    for steps in counts:
        ends = []
        for seed in range(8):
            least = []
            result = optim.run(
                InteriorPointSA(Harmonic(1), gradients=optim.gradients.Noisy(0.5)),
                problem,
                [1.0, 1.0, 1.0],
                max_steps=steps,
                tol=None,
                rng=seed,
                callback=lambda info, least=least: least.append(float(np.min(info.x))) and False,
            )
            assert min(least) > 0
            assert np.all(result.x > 0)
            assert np.all(result.x * np.asarray(result.state.z) < 20.0 / steps)
            ends.append(np.sum((result.x - solution) ** 2))
        errors.append(np.mean(ends))
    # Squared errors fall like 1 / k: by 16, and at least by 5 within the noise of eight runs.
    assert errors[1] < errors[0] / 5


def test_stratified_resampling_is_never_off_by_two():
    """Checks 14 of chapter 3 and 22 of chapter 4."""
    rng, draws = np.random.default_rng(0), 20_000
    W = rng.dirichlet(np.ones(25))
    counts = np.array([np.bincount(sampling.resample(np.log(W), rng=rng), minlength=25) for _ in range(draws)])
    assert np.all(np.abs(counts - 25 * W) < 2)
    assert np.all((counts >= np.floor(25 * W) - 1) & (counts <= np.ceil(25 * W) + 1))
    error = np.maximum(counts.std(axis=0) / np.sqrt(draws), 1e-12)
    assert np.all(np.abs(counts.mean(axis=0) - 25 * W) < 5 * error + 1e-12)
    # The estimate of Z does not move with it: log_z grows by the weights of each step alone.
    model = Ising(graphical.grid(3, 3), 0.7, 0.2)
    result = particles.anneal(model, 100, 12, ess_threshold=1.0, rng=0)
    assert result.trace["resampled"].sum() == 11
    assert np.all(np.isfinite(result.trace["log_z"]))
    assert result.log_partition() == result.trace["log_z"][-1]


def test_bounds_of_a_hundred_random_models():
    """Check 18 of chapter 4: tree-reweighted above, mean field below."""
    rng = np.random.default_rng(0)
    for seed in range(100):
        n = int(rng.integers(4, 8))
        edges = graphical.complete(n)
        edges = edges[rng.random(len(edges)) < 0.7]
        if not len(edges):
            continue
        n = int(edges.max()) + 1
        model = Ising(edges, rng.normal(size=len(edges)), rng.normal(size=n))
        exact = model.log_partition(method="enumeration")
        assert graphical.tree_reweighted(model, "uniform").bound >= exact - 1e-9, seed
        assert graphical.mean_field(model).bound <= exact + 1e-9, seed


def test_the_identities_and_misprints_of_chapter_three():
    """Checks 2 to 5, 10, 14, 15, 16 and 30 once more, as the claims of the ledger state them."""
    report = find("vsmc-theorems").run(None, quick=True)
    missed = [claim.item for claim in report.claims if claim.verdict == "not reproduced"]
    assert missed == ["(3.52)"]  # an approximation, off by a third on the query that is tried


@pytest.mark.slow
def test_the_demonstration_with_the_settings_of_the_source():
    """Check 28: 20 seeds of 100 steps, the error of the bound and both modes, against annealing."""
    model, exact = Ising(graphical.torus(12, 12), 10.0), torus_log_partition(12, 12, 10.0)
    assert_allclose(exact, 2880.693147181, atol=5e-9)
    sa = trials(model, 20, 0, n_steps=100, step_size=0.4)
    ais = trials(tempered(model, 100), 20, 0)
    assert np.median(np.abs(sa.bound - exact)) < 40
    assert sa.both >= 0.7
    assert ais.both < sa.both
