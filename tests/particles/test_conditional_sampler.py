"""Conditional mean field with sequential Monte Carlo: unbiased on fixed paths, right on models with known answers."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import graphical, particles
from cumulant.errors import CumulantError
from cumulant.experiments._spin_glasses import exact, exact_by_halves, instance
from cumulant.graphical import Ising

SQUARE = Ising([(0, 1), (0, 2), (1, 3), (2, 3)], [-0.5, 0.5, 0.5, 0.5], [0.4, 0.3, -0.5, -0.2])
SMALL = graphical.spin_glass(graphical.grid(3, 3), couplings=0.8, fields=0.5, rng=1)


@pytest.mark.parametrize("sweeps", [0, 1])
def test_the_four_node_example_with_many_particles(sweeps):
    result = particles.conditional_mean_field(SQUARE, 100_000, temperatures=20, sweeps=sweeps, rng=0)
    assert abs(result.log_partition() - 3.3675311122) < 0.01
    assert np.abs(result.mean() - SQUARE.mean()[:4]).max() < 0.01
    for found in (0, -1):
        assert result.outcomes[0].population.memory[found].couplings.shape == (4,)
    assert np.array_equal(result.outcomes[0].population.memory[-1].fields, SQUARE.fields)


@pytest.mark.parametrize(
    ("model", "n_islands", "settings"),
    [
        (SQUARE, 400, {"sweeps": 0}),
        (SMALL, 200, {"sweeps": 0}),
        (SMALL, 50, {"partition": "split_largest"}),
        (SMALL, 100, {"free_edges": True, "start": "uniform"}),
        (SMALL, 200, {"backward": "reversal", "sweeps": 0}),
        (SMALL, 50, {"backward": "reversal", "partition": "peel", "start": "uniform"}),
    ],
)
def test_the_estimate_is_unbiased_on_the_path_of_a_pilot(model, n_islands, settings):
    """Islands of 200 particles each, against enumeration: the mean of Z is exact within 4 standard errors."""
    result = particles.conditional_mean_field(
        model, 200, temperatures=2, n_islands=n_islands, pilot=True, rng=1, **settings
    )
    ratios = np.exp([each.log_z - model.log_partition() for each in result.outcomes])
    assert abs(ratios.mean() - 1) < 4 * ratios.std(ddof=1) / np.sqrt(n_islands)
    # E Z (mean - exact mean) = 0 for every spin, by the same theorem.
    weights = np.exp([each.population.log_weights for each in result.outcomes])
    means = np.einsum("is,isn->in", weights, result.draws.values)
    off = ratios[:, None] * (means - model.mean()[: model.n_variables])
    assert np.all(np.abs(off.mean(axis=0)) < 4.5 * off.std(axis=0, ddof=1) / np.sqrt(n_islands))


def test_a_path_designed_by_another_population_has_a_certificate():
    settings: dict[str, Any] = {"temperatures": 4, "n_islands": 4, "rng": 5}
    result = particles.conditional_mean_field(SMALL, 100, pilot=True, **settings)
    assert result.certificate is not None
    assert result.certificate.lower < SMALL.log_partition()
    assert result.certificate.verify(result.subject).lower == pytest.approx(result.certificate.lower)
    assert particles.conditional_mean_field(SMALL, 100, **settings).certificate is None


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads():
    one, other = (particles.conditional_mean_field(SMALL, 300, temperatures=5, rng=7, n_jobs=n) for n in (1, 2))
    assert one.log_partition() == other.log_partition()
    assert np.array_equal(one.draws.values, other.draws.values)
    assert one.trace["n_blocks"][-1] == 9
    assert np.nanmax(one.trace["distinct"]) <= 300


def test_evidence():
    model = SMALL.given({4: 1, 0: -1})
    result = particles.conditional_mean_field(model, 20_000, temperatures=5, rng=0)
    assert abs(result.log_partition() - model.log_partition()) < 0.02
    exact = model.marginals()[:, 1] * 2 - 1
    assert_allclose(result.mean(), exact, atol=0.03)
    better = particles.conditional_means(result, 5)
    assert_allclose(better, exact, atol=0.015)
    assert better[4] == 1
    assert better[0] == -1


def test_means_by_conditioning_serve_other_methods_and_refuse_other_models():
    result = particles.hot_coupling(SMALL, 2000, steps_per_group=10, rng=0)
    exact = SMALL.mean()[:9]
    assert np.abs(particles.conditional_means(result) - exact).mean() < 0.5 * np.abs(result.mean() - exact).mean()
    other = particles.anneal(graphical.Potts([(0, 1)], 1.0, n_states=3), 10, 2, rng=0)
    with pytest.raises(TypeError, match="the model of result must be an Ising model"):
        particles.conditional_means(other)


def test_a_single_spin_and_a_run_that_is_stopped():
    alone = Ising([(0, 1)], 0.7, [0.3, -0.2]).given({1: 1})
    result = particles.conditional_mean_field(alone, 10, temperatures=2, rng=0)
    assert result.log_partition() == pytest.approx(alone.log_partition())
    settings: dict[str, Any] = {"temperatures": 50, "rng": 0, "time_limit": 1e-9}
    stopped = particles.conditional_mean_field(SMALL, 50, **settings)
    assert stopped.status == "time_limit"
    assert stopped.certificate is None
    with pytest.raises(CumulantError, match="stopped"):
        particles.conditional_means(stopped)
    with pytest.raises(CumulantError, match="pilot run did not reach the end"):
        particles.conditional_mean_field(SMALL, 50, pilot=True, **settings)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": 3}, "model must be an Ising model; got int"),
        ({"model": Ising([(0, 1)], 0.7).given({0: 1, 1: 1})}, "model must have a spin that is not given as evidence"),
        ({"n_particles": 0}, "n_particles must be a whole number of at least 1"),
        ({"temperatures": 0}, "temperatures must be a whole number of at least 1"),
        ({"sweeps": -1}, "sweeps must be a whole number of at least 0"),
        ({"free_edges": 1}, "free_edges must be True or False"),
        ({"start": "hot"}, "start must be one of 'mean_field', 'uniform'"),
        ({"backward": "forward"}, "backward must be one of 'mixture', 'reversal'"),
        ({"pilot": "other"}, "pilot must be True or False"),
        ({"ess_threshold": 2.0}, "ess_threshold must be between 0 and 1"),
    ],
)
def test_wrong_arguments_are_refused(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        particles.conditional_mean_field(**{"model": SQUARE, **wrong})


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_sweeps_halve_the_error_on_the_complete_graph(seed):
    model = instance(seed, graphical.complete(26))
    truth = exact_by_halves(model)
    found = [_runs(model, truth, sweeps) for sweeps in (0, 1)]
    for logs, errors in found:
        assert abs(np.median(logs)) < 0.5
        assert np.median(errors) < (0.259, 0.200)[seed]  # that of mean field
    assert np.median(found[1][1]) < 0.7 * np.median(found[0][1])


@pytest.mark.slow
def test_sweeps_repair_the_grid():
    model = instance(0, graphical.grid(12, 12))
    (logs, errors), (better, small) = (_runs(model, exact(model), sweeps) for sweeps in (0, 1))
    assert abs(np.median(logs)) < 1.0
    assert np.abs(better).max() < 0.1
    assert np.median(small) < 0.5 * np.median(errors)


def _runs(model, truth, sweeps):
    """Errors of log Z and of the means, in ten runs with 1,000 particles."""
    results = [particles.conditional_mean_field(model, sweeps=sweeps, rng=100 + k) for k in range(10)]
    return (
        np.array([result.log_partition() - truth[0] for result in results]),
        np.array([np.abs(result.mean() - truth[1]).mean() for result in results]),
    )


@pytest.mark.slow
def test_the_recommended_settings_on_the_grid():
    """Those of the guide, `docs/conditional_mean_field.md`: ten runs, each within 0.1 nats and 0.02."""
    model = instance(0, graphical.grid(12, 12))
    log_z, means = exact(model)
    for seed in range(10):
        result = particles.conditional_mean_field(model, 1000, rng=seed)
        assert abs(result.log_partition() - log_z) < 0.1
        assert np.abs(particles.conditional_means(result, 20) - means).mean() < 0.02
