import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest

from cumulant.graphical import Ising, annealed_importance_sampling, grid, spin_glass
from cumulant.graphical.bounds.log_partition import bound_log_partition
from cumulant.sampling import lower_from_estimates
from tests.graphical.models import random_model
from tests.reference.annealed import annealed_log_weight


def annealed_estimates(*arguments, **options):
    return annealed_importance_sampling(*arguments, **options).log_weights[0]


def test_weighted_draws_estimate_the_means_of_the_model():
    model = spin_glass(grid(3, 3), couplings=0.6, fields=0.5, rng=0).given({4: -1})
    draws = annealed_importance_sampling(model, 4000, 30, rng=3)
    assert (draws.values[:, :, 4] == -1).all()
    error = np.maximum(draws.standard_error(model.family.statistics), 1e-12)
    assert np.all(np.abs(draws.mean(model.family.statistics) - model.mean()) <= 4.5 * error)
    assert abs(draws.log_normaliser - model.log_partition()) < 4.5 * draws.log_normaliser_error


def test_the_kernel_is_the_plain_loop():
    for seed in (1, 2, 4, 6):  # seed 6 has impossible states
        model = random_model(seed)
        structure, theta, _ = model.restricted()
        if structure.n_variables == 0:
            continue
        sizes = structure.cardinalities.tolist()
        fields, constant = [np.zeros(k) for k in sizes], 0.0
        factors = []
        for f in range(structure.n_factors):
            scope, table = structure.scope(f), structure.table(f, theta)
            if len(scope) == 1:
                fields[scope[0]] += table
            elif scope:
                factors.append((scope, table))
            else:
                constant += float(table)
        base = constant + sum(np.logaddexp.reduce(t) for t in fields)
        estimates = annealed_estimates(model, 3, 5, rng=11)
        expected = [annealed_log_weight(sizes, fields, factors, np.linspace(0, 1, 6), 11, c) for c in range(3)]
        assert_allclose(estimates, base + np.array(expected), rtol=1e-12)


def test_estimates_are_unbiased_and_do_not_depend_on_threads():
    model = spin_glass(grid(3, 4), couplings=0.8, fields=0.5, rng=0)
    estimates = annealed_estimates(model, 4000, 8, rng=1)
    assert np.array_equal(estimates, annealed_estimates(model, 4000, 8, rng=1, n_jobs=1))
    ratio = np.exp(estimates - model.log_partition())
    assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std() / np.sqrt(ratio.size)
    assert ratio.std() > 0.3  # short annealing: there is something to average over
    tied = model.given({0: 1})
    ratio = np.exp(annealed_estimates(tied, 4000, 20, rng=2) - tied.log_partition())
    assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std() / np.sqrt(ratio.size)


@pytest.mark.parametrize("rare", [0.3, 0.8, 0.97])
def test_the_bound_from_estimates_misses_at_most_delta_of_the_time_in_markovs_worst_case(rare):
    """Estimates that are ``Z / rare`` with probability `rare`, else zero: Markov's inequality is an equality."""
    rng, trials, delta = np.random.default_rng(0), 1500, 0.05
    missed = 0
    for _ in range(trials):
        estimates = np.where(rng.random(40) < rare, -np.log(rare), -np.inf)
        missed += lower_from_estimates(estimates, delta) > 0.0
    assert binomtest(missed, trials, delta, alternative="greater").pvalue > 1e-3


def misses(n_models, delta):
    rng, missed = np.random.default_rng(5), 0
    edges = grid(3, 3)
    for seed in range(n_models):
        model = Ising(edges, rng.normal(size=len(edges)), rng.uniform(-1, 1, 9))
        lower = lower_from_estimates(annealed_estimates(model, 16, 3, rng=seed), delta)
        missed += lower > model.log_partition()
    return missed


def test_probable_lower_bounds_miss_at_most_delta_of_the_time():
    missed = misses(300, 0.05)
    assert binomtest(missed, 300, 0.05, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
def test_probable_intervals_miss_at_most_delta_of_the_time():
    missed, likely, n_models = 0, 0, 400
    edges, rng = grid(4, 4), np.random.default_rng(6)
    for seed in range(n_models):
        model = Ising(edges, 0.5 * rng.normal(size=len(edges)), rng.uniform(-1, 1, 16))
        interval = bound_log_partition(
            model, max_memory=2**8, max_work=6, exact=False, sampling=True, delta=0.05, rng=seed
        )
        missed += model.log_partition() not in interval
        likely += interval.certificate.kind == "with probability"
    assert likely > 0.9 * n_models  # else this would be a test of certain bounds
    assert binomtest(missed, n_models, 0.05, alternative="greater").pvalue > 1e-3


def test_sampling_narrows_the_interval_and_says_so():
    rng = np.random.default_rng(0)
    edges = grid(10, 10)
    model = Ising(edges, rng.choice([-0.5, 0.5], len(edges)), 0.0)
    certain = bound_log_partition(model, max_memory=2**14, max_work=8, exact=False)
    likely = bound_log_partition(model, max_memory=2**14, max_work=8, exact=False, sampling=True)
    truth = model.log_partition()
    assert truth in certain
    assert truth in likely
    assert likely.lower > certain.lower
    assert likely.certificate.kind == "with probability"
    assert likely.certificate.delta == 1e-6
    assert abs(likely.estimate - truth) < 0.2


def test_bad_numbers_are_refused():
    model = spin_glass(grid(2, 2), rng=0)
    for name in ("n", "temperatures"):
        with pytest.raises(ValueError, match=f"{name} must be a whole number from 1"):
            annealed_importance_sampling(model, **{name: 0})
