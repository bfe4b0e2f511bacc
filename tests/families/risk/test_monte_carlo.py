"""Simulation against the exact risks; the laws of mean statistics; heavy tails."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from cumulant.families import (
    Categorical,
    ConjugatePrior,
    Exponential,
    LogNormal,
    Normal,
    NormalKnownMean,
    NormalKnownVariance,
    Poisson,
    WeibullKnownShape,
    risk,
)
from cumulant.families.bernoulli import Bernoulli, Binomial, Geometric, NegativeBinomial
from cumulant.families.categorical import Multinomial
from cumulant.families.gamma import Gamma
from cumulant.families.risk.monte_carlo import estimated_tail_index
from cumulant.families.risk.multivariate import wishart
from cumulant.families.risk.theories import Theory

TRIALS = 100_000


def standard_errors(found, exact):
    return (found.value - exact) / found.standard_error


def test_gamma_type_within_three_standard_errors():
    n = np.array([5, 10, 40])  # n alpha > 2: the divergence has a variance
    found = risk.monte_carlo_risk(NormalKnownMean(), [-0.5], n, trials=TRIALS, rng=1)
    assert np.all(np.abs(standard_errors(found, risk.risk_mle_gamma(n, 0.5))) < 3)
    assert np.all(found.reliable)
    found = risk.monte_carlo_risk(WeibullKnownShape(1.5), [-0.7], [3, 8], trials=TRIALS, rng=2)
    assert np.all(np.abs(standard_errors(found, risk.risk_mle_gamma([3, 8], 1.0))) < 3)
    prior = ConjugatePrior([2.0], 1.0)
    found = risk.monte_carlo_risk(NormalKnownMean(), [-0.5], [1, 5, 10], prior, trials=TRIALS, rng=3)
    assert np.all(np.abs(standard_errors(found, risk.risk_map_gamma([1, 5, 10], 1.0, 2.0, 0.5))) < 3)


def test_normal_within_three_standard_errors():
    family = Normal()
    theta = family.natural(mean=3.0, variance=2.0)
    found = risk.monte_carlo_risk(family, theta, [8, 30], trials=TRIALS, rng=4)
    assert np.all(np.abs(standard_errors(found, risk.risk_mle_normal([8, 30]))) < 3)
    prior = ConjugatePrior([2.0, 7.0], 1.5)
    found = risk.monte_carlo_risk(family, theta, [1, 4, 20], prior, trials=TRIALS, rng=5)
    exact = risk.risk_map_normal1d([1, 4, 20], 1.5, (2.0, 7.0), (3.0, 11.0)).total
    assert np.all(np.abs(standard_errors(found, exact)) < 3)


def test_classes_and_counts_within_three_standard_errors():
    family = Categorical(3)
    theta = family.natural(probabilities=[0.5, 0.3, 0.2])
    found = risk.monte_carlo_risk(family, theta, [1, 20], ConjugatePrior([1 / 3, 1 / 3], 3.0), trials=TRIALS, rng=6)
    exact = risk.risk_map_categorical([1, 20], 3.0, [0.5, 0.3, 0.2], [1 / 3] * 3)
    assert np.all(np.abs(standard_errors(found, exact)) < 3)
    found = risk.monte_carlo_risk(Poisson(), [np.log(2.0)], [1, 20], ConjugatePrior([1.0], 1.0), trials=TRIALS, rng=7)
    assert np.all(np.abs(standard_errors(found, risk.risk_map_poisson([1, 20], 1.0, 2.0, 1.0))) < 3)
    found = risk.monte_carlo_risk(
        NormalKnownVariance(2.0), [0.5], [3], ConjugatePrior([0.0], 2.0), trials=TRIALS, rng=8
    )
    assert np.all(np.abs(standard_errors(found, risk.risk_map_quadratic([3], 2.0, 1, 1 / np.sqrt(2)))) < 3)


def test_infinite_variance_is_admitted_and_infinite_risk_is_infinite():
    found = risk.monte_carlo_risk(NormalKnownMean(), [-0.5], [1, 2, 3, 4, 5], trials=20_000, rng=9)
    assert_allclose(found.tail_index, [0.5, 1.0, 1.5, 2.0, 2.5])
    assert np.array_equal(found.reliable, [False, False, False, False, True])
    assert np.all(np.isinf(found.value[:2]))
    assert np.all(np.isfinite(found.value[2:]))
    assert np.all(np.isinf(found.standard_error[:4]))
    # A loose check is all that can be had at n = 3 and 4.
    assert_allclose(found.value[2:4], risk.risk_mle_gamma([3, 4], 0.5), rtol=0.5)
    # Quantiles exist however heavy the tail: the median of (1/2)(z - 1 - log z) is that of a monotone law, finite at
    # n = 1.
    assert np.all(np.isfinite(found.quantiles))


def test_data_sets_without_an_estimate_count_as_infinite():
    family = Categorical(3)
    found = risk.monte_carlo_risk(family, family.natural(probabilities=[0.8, 0.1, 0.1]), [2, 30], trials=2000, rng=10)
    assert np.all(np.isinf(found.value))
    assert np.all(np.isinf(found.quantiles[0]))  # two draws never show three classes
    assert np.isfinite(found.quantiles[1, 1])
    assert not np.any(np.isnan(found.quantiles))
    assert not np.any(found.reliable)
    found = risk.monte_carlo_risk(Normal(), [0.0, -0.5], 1, trials=100, rng=0)
    assert found.value == np.inf
    assert np.all(np.isinf(found.quantiles))


def test_quantiles_are_those_of_the_law():
    # Known variance: KL = chi2_1 / (2n) exactly.
    found = risk.monte_carlo_risk(NormalKnownVariance(), [0.0], 4, trials=TRIALS, levels=[0.5, 0.9, 0.99], rng=11)
    exact = stats.chi2.ppf([0.5, 0.9, 0.99], 1) / 8
    # Three standard errors of an order statistic.
    density = stats.chi2.pdf(exact * 8, 1) * 8
    error = np.sqrt(np.array([0.5, 0.9, 0.99]) * np.array([0.5, 0.1, 0.01]) / TRIALS) / density
    assert np.all(np.abs(found.quantiles - exact) < 3 * error)


@pytest.mark.slow
def test_a_family_with_no_known_tail_is_judged_by_its_draws():
    family = Gamma()
    theta = family.natural(shape=2.0, rate=1.0)
    few = risk.monte_carlo_risk(family, theta, 3, trials=4000, rng=12)
    many = risk.monte_carlo_risk(family, theta, 60, trials=4000, rng=13)
    assert not few.tail_known
    assert not few.reliable
    assert many.reliable
    assert_allclose(many.value, risk.asymptote(2, 60), rtol=0.15)


def test_hills_estimate_tells_heavy_tails_from_light_ones():
    rng = np.random.default_rng(0)
    assert estimated_tail_index(1 / rng.gamma(1.5, size=100_000)) < 2
    assert estimated_tail_index(rng.exponential(size=100_000)) > 3
    assert estimated_tail_index(np.zeros(10)) == np.inf


SAMPLERS = [
    (NormalKnownMean(1.0), [-0.5]),
    (Exponential(), [-2.0]),
    (Normal(), [0.5, -0.25]),
    (LogNormal(), [0.5, -0.25]),
    (NormalKnownVariance(3.0), [0.4]),
    (Poisson(), [0.3]),
    (Bernoulli(), [0.4]),
    (Binomial(5), [-0.2]),
    (Geometric(), [-0.6]),
    (NegativeBinomial(2.5), [-0.6]),
]


QUICK = (NormalKnownMean, Normal, Poisson)  # the others compile their raw sampler for a few seconds each


@pytest.mark.parametrize(
    ("family", "theta"),
    [
        pytest.param(*case, id=str(case[0]), marks=() if type(case[0]) in QUICK else pytest.mark.slow)
        for case in SAMPLERS
    ],
)
def test_mean_statistics_have_the_law_of_raw_data(family, theta):
    n, trials = 4, 4000
    direct = risk.sample_mean_statistic(family, theta, n, trials, rng=0)
    raw = Theory(family).sample_central(np.asarray(theta), n, trials, np.random.default_rng(1))
    raw = np.asarray(family._central_to_mean(raw))
    assert direct.shape == (trials, family.dim)
    for k in range(family.dim):
        # One in ten thousand would fail by chance; ties (counts) make the test conservative.
        assert stats.ks_2samp(direct[:, k], raw[:, k]).pvalue > 1e-4
    fisher = np.atleast_2d(family.fisher(np.asarray(theta)))
    error = np.sqrt(np.diag(fisher) / n / trials)
    assert np.all(np.abs(direct.mean(axis=0) - family.to_mean(np.asarray(theta))) < 4 * error)


@pytest.mark.parametrize("family", [Categorical(3), Multinomial(4, 3)], ids=str)
def test_mean_statistics_of_classes(family):
    theta = family.natural(probabilities=[0.2, 0.5, 0.3])
    draws = risk.sample_mean_statistic(family, theta, 5, 20_000, rng=0)
    fisher = family.fisher(theta)
    assert np.all(np.abs(draws.mean(axis=0) - family.to_mean(theta)) < 4 * np.sqrt(np.diag(fisher) / 5 / 20_000))
    assert_allclose(5 * np.cov(draws.T), fisher, rtol=0.06)


def test_bartlett():
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    rng = np.random.default_rng(0)
    for n in (1, 2, 7):
        draws = wishart(scale, n, 40_000, rng)
        assert_allclose(draws.mean(axis=0), n * scale, rtol=0.05)
        # Var S_ij = n (s_ij^2 + s_ii s_jj)
        assert_allclose(draws.var(axis=0), n * (scale**2 + np.outer(np.diag(scale), np.diag(scale))), rtol=0.08)
        assert np.all(np.linalg.matrix_rank(draws[:50]) == min(n, 2))


def test_the_same_seed_gives_the_same_answer():
    a, b = (risk.monte_carlo_risk(Exponential(), [-1.0], 5, trials=100, rng=3) for _ in range(2))
    assert a.value == b.value
    assert a.value != risk.monte_carlo_risk(Exponential(), [-1.0], 5, trials=100, rng=4).value


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="n must be a whole number of at least 1; got 0"):
        risk.monte_carlo_risk(Exponential(), [-1.0], 0, trials=10)
    with pytest.raises(ValueError, match="trials must be a whole number"):
        risk.monte_carlo_risk(Exponential(), [-1.0], 1, trials=0)
    with pytest.raises(ValueError, match="levels must be strictly between 0 and 1"):
        risk.monte_carlo_risk(Exponential(), [-1.0], 1, trials=10, levels=[0.5, 1.0])
    with pytest.raises(ValueError, match="theta_star must be one natural parameter"):
        risk.monte_carlo_risk(Exponential(), [[-1.0]], 1, trials=10)
    with pytest.raises(ValueError, match="theta < 0"):
        risk.monte_carlo_risk(Exponential(), [1.0], 1, trials=10)
