"""Bounds against the exact risks they bound, and against published numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError
from cumulant.families import risk

SLACK = 1 + 1e-12  # of rounding: several of these bounds are attained in the limit
PRIORS = np.geomspace(1e-2, 1e2, 9)


def test_mle_bounds_at_published_points():
    n = [3, 4, 5, 10, 20, 100]
    assert_allclose(
        risk.bound_mle_gamma(n, 0.5).value, [0.833333, 0.375, 0.233333, 0.075, 0.0305556, 0.00520408], rtol=2e-6
    )
    assert_allclose(risk.bound_mle_variance(n).value, risk.bound_mle_gamma(n, 0.5).value)
    assert_allclose(risk.lower_bound_mle_gamma(n[:4], 0.5).value, [0.814815, 0.364583, 0.226667, 0.0733333], rtol=2e-6)
    assert_allclose(risk.bound_mle_gamma(2, 1.0).value, 0.75)


def test_mle_bounds_enclose_the_exact_risk():
    n, alpha = np.meshgrid(np.arange(1, 400), [0.01, 0.1, 0.5, 1.0, 2.0, 5.0])
    exact = risk.risk_mle_gamma(n, alpha)
    upper, lower = risk.bound_mle_gamma(n, alpha), risk.lower_bound_mle_gamma(n, alpha)
    weak = risk.lower_bound_mle_gamma(n, alpha, sharp=False)
    assert np.all(exact <= upper.value * SLACK)
    assert np.all(lower.value <= exact * SLACK)
    assert np.all(weak.value <= lower.value * SLACK)
    assert np.array_equal(upper.valid, n * alpha > 1)
    assert np.all(np.isinf(upper.value) == ~upper.valid)
    assert np.all(np.isinf(lower.value) == np.isinf(exact))
    gap = upper.value[upper.valid] - lower.value[upper.valid]
    assert_allclose(gap, (1 / (12 * alpha * n**2))[upper.valid], rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize(
    ("d", "n", "sharp", "plain"),
    [(2, 4, 2.8125, 3.375), (2, 15, 0.154167, 0.166667), (3, 20, 0.228125, 0.24375), (5, 30, 0.377083, 0.395833),
     (10, 55, 0.751136, 0.772727)],
)  # fmt: skip
def test_covariance_bounds_at_published_points(d, n, sharp, plain):
    assert_allclose(risk.bound_mle_covariance(n, d).value, sharp, rtol=3e-6)
    assert_allclose(risk.bound_mle_covariance(n, d, sharp=False).value, plain, rtol=3e-6)


def test_covariance_bounds_hold_for_all_dimensions_up_to_29():
    n, d = np.meshgrid(np.arange(1, 400), np.arange(1, 30))
    exact = risk.risk_mle_covariance(n, d)
    sharp, plain = risk.bound_mle_covariance(n, d), risk.bound_mle_covariance(n, d, sharp=False)
    assert np.all(exact <= sharp.value * SLACK)
    assert np.all(sharp.value <= plain.value * SLACK)
    assert np.array_equal(sharp.valid, n >= d + 2)
    # The order of growth: d^2/n + d^3/(n (n - d - 1)), up to a constant.
    order = d**2 / n + d**3 / (n * np.maximum(n - d - 1.0, 0.5))
    assert np.all((exact / order)[sharp.valid] < 2)


# (n, n0, r): (5.19), and (5.98) where it applies.
PUBLISHED = {
    (1, 1, 1): (0.5, None),
    (2, 1, 1): (1.16667, None),
    (5, 1, 1): (0.270833, 0.25),
    (10, 1, 1): (0.116162, 0.111111),
    (1, 1, 2): (0.25, None),
    (5, 1, 2): (0.2, 0.183333),
    (10, 1, 2): (0.1, None),
    (100, 1, 2): (0.01, None),
    (3, 10, 0.2): (1.371795, 1.358974),
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_map_bounds_at_published_points(case):
    variance, weak = PUBLISHED[case]
    assert_allclose(risk.bound_map_variance(*case).value, variance, rtol=5e-6)
    if weak is not None:
        assert_allclose(risk.bound_map_gamma_weak_prior(*case, 0.5).value, weak, rtol=3e-6)


def test_map_bounds_are_ordered_on_a_grid():
    n, n0, r = np.meshgrid([2, 3, 5, 10, 50], PRIORS, PRIORS)
    kl, both = risk.risk_map_gamma(n, n0, r, 0.5), risk.symmetrised_risk_map_gamma(n, n0, r, 0.5)
    weak, variance = risk.bound_map_gamma_weak_prior(n, n0, r, 0.5), risk.bound_map_variance(n, n0, r)
    assert np.all(weak.valid)
    assert np.all(variance.valid)
    assert np.all(kl <= both * SLACK)
    assert np.all(both <= weak.value * SLACK)
    assert np.all(weak.value <= variance.value * SLACK)


def test_the_variance_bound_at_one_observation_and_none():
    n0, r = np.meshgrid(PRIORS, PRIORS)
    assert np.all(risk.symmetrised_risk_map_gamma(1, n0, r, 0.5) <= risk.bound_map_variance(1, n0, r).value * SLACK)
    assert_allclose(risk.bound_map_variance(0, n0, r).value, 0.5 * (r - 1) ** 2 / r, atol=1e-15)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 2.0, 5.0])
def test_the_corrected_bound_is_never_violated(alpha):
    n, n0, r = np.meshgrid([1, 2, 3, 5, 10, 50], PRIORS, PRIORS)
    exact = risk.symmetrised_risk_map_gamma(n, n0, r, alpha)
    strong, weak = risk.bound_map_gamma_strong_prior(n, n0, r, alpha), risk.bound_map_gamma_weak_prior(n, n0, r, alpha)
    smallest = risk.bound_map_gamma(n, n0, r, alpha)
    assert np.all(exact <= strong.value * SLACK)
    assert np.all(exact <= weak.value * SLACK)
    assert np.array_equal(smallest.value, np.minimum(strong.value, weak.value))
    assert np.array_equal(weak.valid, n * alpha >= 1)
    # (5.99) beats (5.98) exactly where the prior is stronger than the data.
    clear = weak.valid & (np.abs(n0 * r - (n - 1 / alpha)) > 1e-9)
    assert np.array_equal((strong.value < weak.value)[clear], (n0 * r > n - 1 / alpha)[clear])


def test_the_printed_form_of_5_99_is_violated():
    exact = risk.symmetrised_risk_map_gamma(1, 1, 1, 2.0)
    corrected = risk.bound_map_gamma_strong_prior(1, 1, 1, 2.0).value
    assert_allclose(exact, 0.218742, rtol=3e-6)
    assert_allclose(corrected / 2.0, 0.2, rtol=1e-12)  # as printed, without the factor alpha
    assert corrected / 2.0 < exact <= corrected


def test_bounds_stay_finite_as_the_prior_fades():
    n = np.array([3, 10, 100])
    for bound in (risk.bound_map_variance(n, 1e-14, 1.0), risk.bound_map_gamma(n, 1e-14, 1.0, 0.5)):
        assert np.all(bound.value < 2.1)
    assert_allclose(risk.bound_map_gamma_weak_prior(n, 0, 1, 0.5).value, 1 / n + 1 / (n * (n / 2 - 1)), rtol=1e-14)
    assert np.all(risk.risk_mle_gamma(n, 0.5) <= risk.bound_map_gamma(n, 0, 1, 0.5).value)
    assert risk.bound_map_variance(2, 0, 1).value == np.inf
    assert not risk.bound_map_gamma(1, 0, 1, 0.5).valid


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 4.0])
def test_bounds_on_the_expected_inverse(alpha):
    n, n0, r = np.meshgrid([1, 2, 5, 20], PRIORS, PRIORS)
    exact = risk.expected_inverse(n, n0, r, alpha)
    assert np.all(risk.lower_bound_inverse(n, n0, r).value <= exact * SLACK)
    assert np.all(exact <= risk.bound_inverse(n, n0, r, alpha).value * SLACK)
    assert np.all(exact <= risk.strong_prior_bound_inverse(n, n0, r, alpha).value * SLACK)
    assert risk.bound_inverse(1, 0, 1, 0.5).value == np.inf


def test_smooth_and_quadratic_cases_agree():
    # Known variance v: A* = mu^2/(2v) is 1/v-smooth in the plain norm, with Var T = v.
    v, distance = 2.5, 1.7
    bound = risk.bound_smooth([1, 10], 3.0, 1 / v, v, distance)
    assert_allclose(bound.value, risk.risk_map_quadratic([1, 10], 3.0, 1, distance / np.sqrt(v)), rtol=1e-14)


def test_lipschitz_bound_on_a_bounded_set():
    # Bernoulli with means in [0.1, 0.9]: |A*'| = |logit| <= log 9.
    mu, nu = np.meshgrid(np.linspace(0.1, 0.9, 30), np.linspace(0.1, 0.9, 30))
    kl = mu * np.log(mu / nu) + (1 - mu) * np.log((1 - mu) / (1 - nu))
    assert np.all(kl <= risk.bound_lipschitz(np.log(9), np.abs(mu - nu)).value + 1e-15)


def test_the_variance_term_is_bounded_by_the_symmetrised_divergence():
    # Quadratic: C = 1 and the variance is exactly half of n C/(n0+n)^2.
    assert_allclose(risk.bound_variance_term(8, 2, 1.0).value, 2 * risk.bias_variance_quadratic(8, 2, 1, 0.3).variance)
    # Gamma-type MLE: E S(mu_n, E mu_n) = alpha/(n alpha - 1) dominates the variance alpha(psi(n alpha) - log(n alpha
    # - 1)).
    n = np.array([3, 5, 20, 1000])
    assert np.all(risk.bias_variance_gamma(n, 0, 1, 0.5).variance <= 0.5 / (n / 2 - 1))


def test_bad_arguments_are_named():
    with pytest.raises(DomainError, match=r"^d must be finite and positive; got 0\.0"):
        risk.bound_mle_covariance(3, 0)
    with pytest.raises(DomainError, match=r"^n must be a whole number"):
        risk.bound_map_variance(1.5, 1, 1)
