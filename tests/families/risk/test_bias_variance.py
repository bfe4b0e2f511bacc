"""The Bregman bias-variance split on samples of estimates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.families import Categorical, ConjugatePrior, Normal, NormalKnownMean, NormalKnownVariance, Poisson, risk

CASES = [
    (NormalKnownMean(), [-0.5], None),
    (NormalKnownMean(), [-0.5], ConjugatePrior([2.0], 1.0)),
    (Normal(), [0.0, -0.5], ConjugatePrior([1.0, 2.0], 1.0)),
    (Categorical(3), [0.9, 0.4], ConjugatePrior([0.3, 0.3], 2.0)),
    (Poisson(), [0.5], ConjugatePrior([1.0], 0.5)),
]


@pytest.mark.parametrize(("family", "theta", "prior"), CASES, ids=[f"{c[0]}-{c[2] is None}" for c in CASES])
def test_the_identity_is_exact_on_the_sample(family, theta, prior):
    split = risk.bias_variance(family, theta, 6, prior, trials=500, rng=0)
    assert_allclose(split.bias + split.variance, split.total, rtol=1e-10)
    assert split.bias > 0
    assert split.variance > 0


def test_simulation_agrees_with_the_closed_forms():
    split = risk.bias_variance(NormalKnownMean(), [-0.5], 10, trials=200_000, rng=1)
    exact = risk.bias_variance_gamma(10, 0, 1, 0.5)
    assert abs(split.total - exact.total) < 3 * split.total_standard_error
    assert_allclose([split.bias, split.variance], [exact.bias, exact.variance], rtol=0.03)
    split = risk.bias_variance(Normal(), [0.0, -0.5], 3, ConjugatePrior([1.0, 2.0], 1.0), trials=200_000, rng=2)
    exact = risk.risk_map_normal1d(3, 1.0, (1.0, 2.0), (0.0, 1.0))
    assert abs(split.total - exact.total) < 3 * split.total_standard_error
    assert_allclose([split.bias, split.variance], [exact.bias, exact.variance], rtol=0.02)
    assert_allclose(split.centre, exact.expected_natural, atol=0.01)


def test_quadratic():
    split = risk.bias_variance(NormalKnownVariance(), [0.0], 4, ConjugatePrior([1.5], 2.0), trials=200_000, rng=3)
    exact = risk.bias_variance_quadratic(4, 2.0, 1, 1.5)
    assert_allclose([exact.bias, exact.variance], [0.5 * 1.5**2 / 9, 4 / 72])  # half of D^2/(1 + n/n0)^2
    assert_allclose([split.bias, split.variance], [exact.bias, exact.variance], rtol=0.02)


def test_the_symmetrised_divergence_is_a_covariance():
    # E S(mu, E mu) = E <theta, mu> - <E theta, E mu>; for the MLE of gamma type it is alpha/(n alpha - 1).
    family, n, trials = NormalKnownMean(), 10, 400_000
    mu = risk.sample_mean_statistic(family, [-0.5], n, trials, rng=4)[:, 0]
    theta = -0.5 / mu
    covariance = np.mean(theta * mu) - np.mean(theta) * 1.0  # E mu = 1 exactly
    symmetrised = np.mean(0.5 * (mu - 1) ** 2 / mu)
    error = 3 * np.std(0.5 / mu) / np.sqrt(trials)
    assert abs(covariance - 0.5 / (n / 2 - 1)) < error
    assert abs(symmetrised - 0.5 / (n / 2 - 1)) < error


def test_infinite_where_a_data_set_has_no_estimate():
    family = Categorical(3)
    split = risk.bias_variance(family, family.natural(probabilities=[0.8, 0.1, 0.1]), 2, trials=50, rng=0)
    assert split.total == split.bias == split.variance == np.inf
    assert not np.any(np.isnan(split.centre))
