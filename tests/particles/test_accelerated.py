"""Particles moved by programs of JAX: weights by hand, unbiasedness against enumeration, Kaufman's torus."""

import numpy as np
import pytest
from tests.particles.test_annealing import DENSE, GLASS, TORUS, relative, unbiased

from cumulant import graphical, particles
from cumulant.errors import DomainError
from cumulant.graphical.exact.lattices import torus_log_partition
from cumulant.particles.accelerated_bridges import ColouredBridge, TorusBridge
from cumulant.particles.bridges import Population
from cumulant.particles.temperatures import Temperatures

JAX = graphical.ColouredGibbs()
GIVEN = graphical.Ising(graphical.grid(3, 3), 0.4, np.linspace(-0.5, 0.5, 9)).given({4: 1, 0: -1})


@pytest.mark.parametrize("threshold", [0.0, 1.0])
@pytest.mark.parametrize(
    ("model", "weights"), [(TORUS, "rb"), (GLASS, "rb"), (GLASS, "naive"), (DENSE, None), (GIVEN, None)]
)
def test_coloured_annealing_is_unbiased(model, weights, threshold):
    settings = {"n_particles": 20, "temperatures": 5, "weights": weights, "ess_threshold": threshold, "sampler": JAX}
    assert unbiased(relative(model, particles.anneal, 200, **settings))


def test_weights_are_ratios_of_tempered_sums():
    """Of a single step from 0 to 0.6: one over all spins, one with the larger colour summed out by enumeration."""
    for weights in ("naive", "rb"):
        bridge = ColouredBridge(GLASS, Temperatures.of([0.0, 0.6, 1.0], None), weights)
        start = bridge.begin(7, 3)
        rows = bridge.draws(start.x)
        step = bridge.advance(Population(start.x, np.zeros(7), 0.0, 1, 3, start.memory))
        couplings = np.zeros((12, 12))
        couplings[tuple(GLASS.edges.T)] = GLASS.couplings
        couplings += couplings.T
        if weights == "naive":
            expected = 0.6 * np.einsum("ni,ij,nj->n", rows, couplings, rows) / 2
        else:
            second = bridge._classes.order[-6:] if bridge._second else bridge._classes.order[:6]
            h = rows @ couplings[:, second]
            before, after = GLASS.fields[second], GLASS.fields[second] + 0.6 * h
            expected = (np.log(np.cosh(after)) - np.log(np.cosh(before))).sum(axis=1)
        np.testing.assert_allclose(step.log_increments, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("field", [0.0, 0.15])
def test_torus_weights_are_ratios_of_tempered_sums(field):
    torus = graphical.UniformTorus(4, 64, 0.3, field)
    bridge = TorusBridge(torus, Temperatures.of([0.0, 0.7, 1.0], None))
    start = bridge.begin(5, 1)
    grid = bridge.draws(start.x).reshape(5, 4, 64).astype(float)
    step = bridge.advance(Population(start.x, np.zeros(5), 0.0, 1, 1, start.memory))
    s = sum(np.roll(grid, shift, axis) for axis in (1, 2) for shift in (1, -1))
    second = np.add.outer(np.arange(4), np.arange(64)) % 2 == 1
    expected = np.log(np.cosh(field + 0.7 * 0.3 * s) / np.cosh(field))[:, second].sum(axis=1)
    np.testing.assert_allclose(step.log_increments, expected, rtol=1e-11)
    moved = bridge.draws(step.x).reshape(5, 4, 64)
    assert (moved[:, ~second] == grid[:, ~second]).all()  # only the second colour is drawn anew
    assert not (moved == grid).all()


def test_the_torus_has_kaufmans_normaliser():
    torus = graphical.UniformTorus(8, 64, 0.35)
    exact = torus_log_partition(8, 64, 0.35)
    found = np.array([particles.anneal(torus, 100, 40, rng=seed).log_partition() - exact for seed in range(20)])
    assert abs(np.exp(found).mean() - 1) < 4 * np.exp(found).std(ddof=1) / np.sqrt(20)
    result = particles.anneal(torus, 400, 60, sweeps=2, rng=0)
    assert abs(result.log_partition() - exact) < 4 * result.log_partition_error < 0.5
    grid = lambda x: x.reshape(-1, 8, 64)  # noqa: E731
    energy = result.expect(lambda x: (grid(x) * (np.roll(grid(x), 1, 1) + np.roll(grid(x), 1, 2))).sum(axis=(1, 2)))
    slope = (torus_log_partition(8, 64, 0.35 + 1e-4) - torus_log_partition(8, 64, 0.35 - 1e-4)) / 2e-4
    assert energy == pytest.approx(slope, rel=0.03)


def test_a_field_is_there_from_the_start():
    model = graphical.Ising(graphical.torus(4, 64), 0.2, 0.3)
    by_words = particles.anneal(graphical.UniformTorus(4, 64, 0.2, 0.3), 1000, 60, rng=0)
    by_kernels = particles.anneal(model, 1000, 60, rng=0)
    error = np.hypot(by_words.log_partition_error, by_kernels.log_partition_error)
    assert abs(by_words.log_partition() - by_kernels.log_partition()) < 4 * error < 0.2


def test_paths_may_be_chosen_and_nothing_is_certified():
    chosen = particles.anneal(graphical.UniformTorus(4, 64, 0.3), 200, None, pilot=True, rng=0)
    assert chosen.certificate is None
    assert abs(chosen.log_partition() - torus_log_partition(4, 64, 0.3)) < 4 * chosen.log_partition_error
    coloured = particles.anneal(GLASS, 200, None, share=0.8, sampler=JAX, sweeps=2, rng=0)
    assert coloured.certificate is None
    assert abs(coloured.log_partition() - GLASS.log_partition()) < 4 * coloured.log_partition_error
    assert (particles.anneal(GLASS, 200, None, share=0.8, sampler=JAX, sweeps=2, rng=0).mean() == coloured.mean()).all()


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (graphical.UniformTorus(4, 64, 0.35, 0.1), {"sweeps": 2}),
        (GLASS, {"sampler": JAX, "sweeps": 2, "resampling": "systematic", "ess_threshold": 0.95}),
        (DENSE, {"sampler": JAX, "ess_threshold": 0.95}),
    ],
    ids=["torus", "two colours", "all colours"],
)
def test_many_steps_in_one_program_are_those_of_single_ones(monkeypatch, model, settings):
    """Programs of one step, of one step and of the ten that are left, and the last step by itself."""
    settings = {"n_particles": 40, "temperatures": 13, "rng": 3, **settings}
    single = particles.anneal(model, **settings)
    monkeypatch.setattr("cumulant.particles.accelerated_bridges._on_accelerator", lambda: True)
    monkeypatch.setattr("cumulant.particles.engine._AT_ONCE", 1e9)
    many = particles.anneal(model, **settings)
    assert single.trace["resampled"].sum() > 0
    for name, values in single.trace.items():
        np.testing.assert_allclose(many.trace[name], values, rtol=1e-10, atol=1e-12)
    assert (many.draws.values == single.draws.values).all()
    np.testing.assert_allclose(many.outcomes[0].variance, single.outcomes[0].variance, rtol=1e-9)
    residual = {**settings, "resampling": "residual"}  # its random numbers depend on the weights: step by step
    assert np.isfinite(particles.anneal(model, **residual).log_partition())


def test_chains_of_particles_are_kept_whole():
    for model, exact in ((GLASS, GLASS.log_partition()), (graphical.UniformTorus(4, 64, 0.3), None)):
        sampler = JAX if exact is not None else None
        exact = torus_log_partition(4, 64, 0.3) if exact is None else exact
        result = particles.anneal(model, 400, 30, chain_length=5, sampler=sampler, n_islands=4, rng=0)
        assert abs(result.log_partition() - exact) < 4 * result.replicate_error < 0.5


def test_draws_have_the_evidence():
    draws = particles.anneal(GIVEN, 50, 5, sampler=JAX, rng=0).draws.values[0]
    assert (draws[:, 4] == 1).all()
    assert (draws[:, 0] == -1).all()


def test_what_cannot_be_run_is_refused():
    with pytest.raises(DomainError, match="multiple of 64; got 96"):
        particles.anneal(graphical.UniformTorus(4, 96, 0.3))
    with pytest.raises(DomainError, match=r"rarer than 2\^-20"):
        particles.anneal(graphical.UniformTorus(4, 64, 2.0))
    with pytest.raises(ValueError, match=r"must be left out or be ColouredGibbs\(\)"):
        particles.anneal(GLASS, sampler=graphical.Gibbs())
    with pytest.raises(ValueError, match="must be left out; got ColouredGibbs"):
        particles.anneal(graphical.Potts([(0, 1)], 1.0, n_states=2), sampler=JAX)
