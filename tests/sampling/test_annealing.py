"""Annealing: the normaliser of Gaussians is known, its estimate unbiased, and its lower bound holds."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.families import MultivariateNormal, Normal
from cumulant.sampling import (
    HMC,
    GeometricPath,
    RandomWalk,
    Target,
    annealed_importance_sampling,
    log_mean_exp,
    lower_from_estimates,
    next_temperature,
    weighted_sample_size,
)

SHIFT = np.array([2.0, -1.0])
LOG_Z = float(np.log(2 * np.pi * 0.25))


def narrow(x, shift):
    return -2.0 * jnp.sum((x - shift) ** 2)


def path(covariance=9.0):
    family = MultivariateNormal(2)
    theta = family.natural(mean=np.zeros(2), covariance=covariance * np.eye(2))
    return GeometricPath(family, theta, Target(narrow, 2, SHIFT))


@pytest.mark.parametrize("options", [{"temperatures": 15}, {"share": 0.95}], ids=["fixed", "adaptive"])
def test_the_normaliser_and_the_moments_of_a_gaussian(options):
    draws = annealed_importance_sampling(path(), HMC(0.3, 4), 1500, rng=0, **options)
    assert abs(draws.log_normaliser - LOG_Z) < 4.5 * draws.log_normaliser_error < 0.5
    assert np.all(np.abs(draws.mean() - SHIFT) < 4.5 * draws.standard_error())
    assert 200 < draws.effective_sample_size() <= 1500
    used = draws.settings["temperatures"]
    assert used[0] == 0
    assert used[-1] == 1
    assert (np.diff(used) > 0).all()
    again = annealed_importance_sampling(path(), HMC(0.3, 4), 1500, rng=0, **options)
    assert_allclose(again.log_weights, draws.log_weights)


def test_the_mean_weight_is_unbiased_however_badly_the_chain_mixes():
    estimates = np.array([
        annealed_importance_sampling(path(4.0), RandomWalk(0.2), 20, temperatures=4, rng=seed).log_normaliser
        for seed in range(300)
    ])  # fmt: skip
    z = np.exp(estimates)
    assert abs(z.mean() - np.exp(LOG_Z)) < 4.5 * z.std() / np.sqrt(z.size)
    assert z.std() > 0.05 * z.mean()  # it is not exact
    misses = [lower_from_estimates(estimates[k : k + 10], 0.1) > LOG_Z for k in range(0, 300, 10)]
    assert np.mean(misses) <= 0.1


def test_the_next_temperature_keeps_the_share_it_was_asked_for():
    ratio = np.random.default_rng(0).normal(scale=30.0, size=400)
    t = next_temperature(ratio, 0.25, 0.6)
    assert 0.25 < t < 1
    assert_allclose(weighted_sample_size((t - 0.25) * ratio), 0.6 * 400, rtol=1e-6)
    assert next_temperature(np.zeros(5), 0.9, 0.99) == 1.0
    with pytest.raises(ValueError, match="share must be"):
        next_temperature(ratio, 0.0, 1.0)


def test_the_mean_of_weights_in_logarithms():
    logs = np.random.default_rng(1).normal(size=50)
    value, error = log_mean_exp(logs - 900.0)
    assert_allclose(value + 900.0, np.log(np.exp(logs).mean()), rtol=1e-12)
    weights = np.exp(logs)
    assert_allclose(error, weights.std(ddof=1) / weights.mean() / np.sqrt(50), rtol=1e-12)
    assert log_mean_exp([3.0]) == (3.0, np.inf)


@pytest.mark.parametrize("temperatures", [0, [0.0, 0.5], [0.5, 1.0], [0.0, 0.6, 0.6, 1.0], [0.0], True])
def test_schedules_that_are_none_are_refused(temperatures):
    with pytest.raises(ValueError, match="temperatures must be"):
        annealed_importance_sampling(path(), RandomWalk(1.0), 4, temperatures=temperatures)


def test_a_path_joins_distributions_of_one_dimension():
    with pytest.raises(ValueError, match="begins in 1 dimensions and ends in 2"):
        GeometricPath(Normal(), Normal().natural(mean=0.0, variance=1.0), Target(narrow, 2, SHIFT))
