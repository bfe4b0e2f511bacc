"""The exact risk of a normal with unknown mean and variance, against Gauss quadrature and published numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import roots_genlaguerre, roots_hermitenorm

from cumulant.errors import DomainError
from cumulant.families import Normal, risk

PRIOR, TRUTH = (1.0, 2.0), (0.0, 1.0)


def gauss(n, n0, prior, truth, nodes=80):
    """Total, bias and E theta by Gauss-Hermite times generalised Gauss-Laguerre quadrature."""
    m, v = truth[0], truth[1] - truth[0] ** 2
    g, wg = roots_hermitenorm(nodes)
    xbar = m + np.sqrt(v / n) * g[:, None]
    if n == 1:
        squares, ws = np.zeros((1, 1)), np.ones(1)
    else:
        s, ws = roots_genlaguerre(nodes, (n - 1) / 2 - 1)
        squares = 2 * v * s[None, :]
    weight = np.outer(wg / wg.sum(), ws / ws.sum())
    mu1 = (n0 * prior[0] + n * xbar) / (n0 + n) + 0 * squares
    mu2 = (n0 * prior[1] + n * xbar**2 + squares) / (n0 + n)
    spread = mu2 - mu1**2
    kl = 0.5 * ((v + (mu1 - m) ** 2) / spread - 1 - np.log(v / spread))
    theta = np.array([np.sum(weight * mu1 / spread), np.sum(weight * -0.5 / spread)])
    centre = -0.5 / theta[1]
    bias = 0.5 * ((v + (theta[0] * centre - m) ** 2) / centre - 1 - np.log(v / centre))
    return np.sum(weight * kl), bias, theta


def test_published_curve_of_bias_and_variance():
    n = [0, 1, 2, 3, 5, 10, 20, 100]
    found = risk.risk_map_normal1d(n, 1.0, PRIOR, TRUTH)
    assert_allclose(found.total, [0.5, 0.46534, 0.35856, 0.27846, 0.18656, 0.10002, 0.05091, 0.01007], atol=6e-6)
    assert_allclose(found.bias, [0.5, 0.30078, 0.17144, 0.10337, 0.04635, 0.01331, 0.00355, 0.00015], atol=6e-6)
    assert_allclose(found.variance, [0, 0.16456, 0.18712, 0.17509, 0.14021, 0.08671, 0.04736, 0.00993], atol=6e-6)


def test_published_totals_under_a_stronger_prior():
    found = risk.risk_map_normal1d([1, 3, 5, 10, 20, 100], 4.0, PRIOR, TRUTH)
    assert_allclose(found.total, [0.37875, 0.23793, 0.16623, 0.09059, 0.04654, 0.00975], atol=6e-6)
    assert_allclose(found.bias, [0.34442, 0.18561, 0.11390, 0.04700, 0.01564, 0.00078], atol=6e-6)


@pytest.mark.parametrize("n", [1, 2, 5, 30])
@pytest.mark.parametrize(("n0", "prior", "truth"), [(1.0, PRIOR, TRUTH), (4.0, (0.3, 1.2), (-0.5, 2.0))])
def test_against_gauss_quadrature(n, n0, prior, truth):
    total, bias, theta = gauss(n, n0, prior, truth)
    found = risk.risk_map_normal1d(n, n0, prior, truth)
    assert_allclose(found.total, total, rtol=2e-6)
    assert_allclose(found.bias, bias, rtol=2e-6)
    assert_allclose(found.expected_natural, theta, rtol=2e-6, atol=1e-9)


def test_the_split_is_an_identity():
    n0 = np.array([1e-3, 0.1, 1.0, 50.0])[:, None]
    found = risk.risk_map_normal1d([1, 2, 4, 9, 60], n0, (2.0, 4.5), (0.0, 1.0))
    assert_allclose(found.bias + found.variance, found.total, rtol=1e-12)
    assert found.expected_natural.shape == (4, 5, 2)


def test_affine_invariance():
    shift, scale = 1000.0, 3.0

    def moved(mu):
        mean = shift + scale * mu[0]
        return mean, mean**2 + scale**2 * (mu[1] - mu[0] ** 2)

    plain = risk.risk_map_normal1d([1, 7], 2.0, (0.3, 1.2), TRUTH)
    found = risk.risk_map_normal1d([1, 7], 2.0, moved((0.3, 1.2)), moved(TRUTH))
    # E x^2 - (E x)^2 of the arguments themselves has lost six of sixteen digits.
    assert_allclose(found.total, plain.total, rtol=1e-9)


def test_the_natural_parameter_is_that_of_the_original_coordinates():
    # E theta is linear in theta: the member it names is moved by the affine map like any other.
    family = Normal()
    plain = risk.risk_map_normal1d(6, 2.0, (0.3, 1.2), TRUTH)
    shift, scale = 5.0, 2.0
    prior = (shift + scale * 0.3, (shift + scale * 0.3) ** 2 + scale**2 * (1.2 - 0.09))
    moved = risk.risk_map_normal1d(6, 2.0, prior, (shift, shift**2 + scale**2))
    first, second = family.usual(plain.expected_natural), family.usual(moved.expected_natural)
    assert_allclose(second["mean"], shift + scale * first["mean"], rtol=1e-12)
    assert_allclose(second["variance"], scale**2 * first["variance"], rtol=1e-12)


def test_without_a_prior_it_is_the_mle():
    n = np.array([2, 3, 4, 5, 50])
    found = risk.risk_map_normal1d(n, 0.0, PRIOR, (1.0, 5.0))
    assert_allclose(found.total, risk.risk_mle_normal(n))
    theta_star = Normal().to_natural(np.array([1.0, 5.0]))
    assert_allclose(found.expected_natural[2:], (n[2:] / (n[2:] - 3.0))[:, None] * theta_star, rtol=1e-13)
    assert not np.any(np.isnan(found.expected_natural))
    faint = risk.risk_map_normal1d(9, 1e-9, PRIOR, (1.0, 5.0))
    assert_allclose(faint.total, risk.risk_mle_normal(9), rtol=1e-6)


def test_a_prior_far_from_the_truth_and_almost_degenerate():
    found = risk.risk_map_normal1d([1, 3, 10], 0.01, (1.0, 1.0 + 1e-4), TRUTH)
    assert np.all(np.isfinite(found.total))
    assert_allclose(found.bias + found.variance, found.total, rtol=1e-11)


def test_bad_arguments_are_named():
    with pytest.raises(DomainError, match="prior_mean must have E x\\^2 > \\(E x\\)\\^2"):
        risk.risk_map_normal1d(3, 1.0, (1.0, 1.0), TRUTH)
    with pytest.raises(ValueError, match="true_mean must be a pair"):
        risk.risk_map_normal1d(3, 1.0, PRIOR, (0.0, 1.0, 2.0))
