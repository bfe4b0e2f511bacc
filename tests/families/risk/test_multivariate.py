"""Normals in several dimensions: the laws of their statistics, exact risks against simulation, constants."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from cumulant.families import ConjugatePrior, Normal, risk
from cumulant.families.multivariate_normal import MultivariateNormal
from cumulant.families.multivariate_normal_diagonal import MultivariateNormalDiagonal, MultivariateNormalIsotropic
from cumulant.families.multivariate_normal_known import MultivariateNormalKnownCovariance, MultivariateNormalKnownMean
from cumulant.families.risk.theories import Theory

COVARIANCE = np.array([[2.0, 0.6], [0.6, 1.0]])
MEAN = np.array([1.0, -2.0])
CASES = {
    "full": (MultivariateNormal(2), {"mean": MEAN, "covariance": COVARIANCE}),
    "known mean": (MultivariateNormalKnownMean(MEAN), {"covariance": COVARIANCE}),
    "known covariance": (MultivariateNormalKnownCovariance(COVARIANCE), {"mean": MEAN}),
    "diagonal": (MultivariateNormalDiagonal(2), {"mean": MEAN, "variances": [2.0, 0.5]}),
    "isotropic": (MultivariateNormalIsotropic(2), {"mean": MEAN, "variance": 1.5}),
}
EXACT = {
    "full": lambda n: risk.risk_mle_normal(n, 2),
    "known mean": lambda n: risk.risk_mle_covariance(n, 2),
    "known covariance": lambda n: risk.risk_map_quadratic(n, 0, 2, 0),
    "diagonal": lambda n: 2 * risk.risk_mle_normal(n, 1),
    "isotropic": lambda n: risk.risk_mle_isotropic(n, 2),
}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if name == "diagonal" else ()) for name in CASES])
def case(request):
    family, usual = CASES[request.param]
    return request.param, family, np.asarray(family.natural(**usual))


def test_the_exact_risk_is_found_and_agrees_with_simulation(case):
    name, family, theta = case
    n = np.array([12, 40])
    exact = risk.expected_kl(family, theta, n)
    assert exact.kind == "exact"
    assert_allclose(exact.value, EXACT[name](n))
    simulated = risk.monte_carlo_risk(family, theta, n, trials=100_000, rng=2)
    assert simulated.tail_known
    assert np.all(np.abs(simulated.value - exact.value) < 3 * simulated.standard_error)


@pytest.mark.slow
def test_mean_statistics_have_the_law_of_raw_data(case):
    _, family, theta = case
    n, trials = 3, 4000
    direct = risk.sample_mean_statistic(family, theta, n, trials, rng=0)
    raw = Theory(family).sample_central(theta, n, trials, np.random.default_rng(1))
    raw = np.asarray(family._central_to_mean(raw))
    assert all(stats.ks_2samp(direct[:, k], raw[:, k]).pvalue > 1e-4 for k in range(family.dim))
    assert_allclose(n * np.cov(direct.T), family.fisher(theta), atol=0.12 * np.max(family.fisher(theta)))


def test_too_few_observations_are_infinite_not_nan():
    family, usual = CASES["full"]
    theta = family.natural(**usual)
    found = risk.monte_carlo_risk(family, theta, [1, 2, 3, 4, 5, 7], trials=100_000, rng=0)
    assert np.array_equal(np.isinf(found.value), [True, True, True, True, False, False])
    assert_allclose(found.tail_index, [0, 0, 0.5, 1.0, 1.5, 2.5])
    assert not np.any(np.isnan(found.quantiles))
    known, usual = CASES["known mean"]
    found = risk.monte_carlo_risk(known, known.natural(**usual), [1, 2, 3, 4], trials=100_000, rng=0)
    assert np.array_equal(np.isinf(found.value), [True, True, True, False])


def test_a_prior_makes_every_risk_finite():
    family, usual = CASES["known mean"]
    theta = np.asarray(family.natural(**usual))
    prior = ConjugatePrior([1.0, 0.0, 1.0], 2.0)
    found = risk.expected_kl(family, theta, [1, 5], prior, trials=20_000, rng=0)
    assert found.kind == "monte carlo"
    assert np.all(np.isfinite(found.value))
    diagonal = MultivariateNormalDiagonal(2)
    theta = np.asarray(diagonal.natural(mean=[0.0, 1.0], variances=[1.0, 4.0]))
    prior = ConjugatePrior([1.0, 0.0, 2.0, 3.0], 1.5)
    exact = risk.expected_kl(diagonal, theta, [1, 6], prior)
    each = [Normal().natural(mean=0.0, variance=1.0), Normal().natural(mean=1.0, variance=4.0)]
    priors = [ConjugatePrior([1.0, 2.0], 1.5), ConjugatePrior([0.0, 3.0], 1.5)]
    total = sum(risk.expected_kl(Normal(), t, [1, 6], p).value for t, p in zip(each, priors, strict=True))
    assert_allclose(exact.value, total, rtol=1e-12)


def test_one_dimension_is_the_plain_normal():
    n = np.arange(2, 30)
    assert_allclose(risk.risk_mle_isotropic(n, 1), risk.risk_mle_normal(n, 1), rtol=1e-12)
    assert np.isinf(risk.risk_mle_isotropic(2, 2))
    assert np.isfinite(risk.risk_mle_isotropic(2, 3))
    assert_allclose(1e4 * risk.risk_mle_isotropic(1e4, 5), 3.0, rtol=0.01)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("full", marks=pytest.mark.slow),
        "known mean",
        pytest.param("diagonal", marks=pytest.mark.slow),
        "isotropic",
    ],
)
def test_constants_of_self_concordance_are_reached_and_not_exceeded(name):
    family, usual = CASES[name]
    rng = np.random.default_rng(0)
    points, directions = [], []
    for _ in range(60):
        root = np.tril(rng.normal(size=(2, 2)), -1) + np.diag(rng.uniform(0.3, 2, size=2))
        own = {
            "mean": rng.normal(size=2),
            "covariance": root @ root.T,
            "variances": rng.uniform(0.2, 3, 2),
            "variance": 0.7,
        }
        mu = family.to_mean(family.natural(**{key: own[key] for key in usual}))
        points.append(mu)
        directions.append(rng.normal(size=family.dim))
    # Along the last statistic alone, a variance, the half barrier is met exactly.
    points.append(points[0])
    directions.append(np.eye(family.dim)[-1])
    found = risk.check_self_concordance(family.conjugate, np.array(points), np.array(directions))
    constant = risk.self_concordance_constant(family)
    assert np.all(found.ratios <= constant * (1 + 1e-8))
    assert_allclose(found.ratios[-1], constant, rtol=1e-8)


def test_the_certificate_bounds_the_divergence():
    family, usual = CASES["full"]
    mu_star = np.asarray(family.to_mean(family.natural(**usual)))
    draws = risk.sample_mean_statistic(family, family.natural(**usual), 2000, 20, rng=0)
    for mu in draws:
        certificate = risk.certify_local_quadratic(risk.LocalQuadratic(family, mu_star), mu)
        assert family.bregman_conjugate(mu_star, mu) <= certificate.upper


@pytest.mark.parametrize("name", CASES)
def test_gap_constants(name):
    family, usual = CASES[name]
    theta = np.asarray(family.natural(**usual))
    first = risk.gap_batch(family)
    assert first == {"full": 3, "known mean": 2, "known covariance": 1, "diagonal": 2, "isotropic": 2}[name]
    if first > 1:
        assert risk.gap_constant(family, theta, first - 1) == np.inf
    for k in (first, 8):
        draws = risk.sample_mean_statistic(family, theta, k, 100_000, rng=k)
        values = family.conjugate(draws)
        error = np.std(values) / np.sqrt(values.size)
        exact = risk.gap_constant(family, theta, k) + family.conjugate(family.to_mean(theta))
        assert abs(np.mean(values) - exact) < 4 * error
