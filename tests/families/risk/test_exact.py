"""Exact risks against published numbers, 45-digit quadrature, and each other."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import digamma
from scipy.stats import binom, gamma, poisson

from cumulant.errors import DomainError
from cumulant.families import risk

# n, n0, ratio, alpha, risk, E[mu*/mu_n]: from the integrals int (1 - (1 + s/b)^-p) e^-s/s ds and int (1 + s/b)^-p
# e^-s ds in 45-digit arithmetic (mpmath).
QUADRATURE = np.array(
    [
        (1, 1, 1, 0.5, 0.07583254206089324, 1.3113590848375969),
        (5, 1, 2, 0.5, 0.04596287573593341, 1.0314886245652484),
        (100, 1, 2, 0.5, 0.004901577630136396, 1.0095882727980292),
        (3, 10, 0.2, 0.5, 0.5455398336571649, 3.1476619701629427),
        (1, 1e-06, 1, 0.5, 625.0240788686936, 1252.3160159541558),
        (3, 1e-08, 1, 0.5, 0.8153244591459577, 2.9996240457556724),
        (1, 1000000.0, 1, 0.1, 4.999856671806439e-13, 1.0000000000099998),
        (1, 0.01, 0.01, 0.01, 88.39027258976186, 8848.38513767891),
        (7, 0.3, 5, 0.05, 0.04473660540352714, 2.346203225003129),
        (1000, 0.5, 0.1, 0.03, 0.0005321146615752249, 1.034944556651608),
        (10000, 1, 1, 10.0, 4.999091767659877e-05, 1.000009998100241),
        (10000, 10000.0, 1.01, 0.5, 1.8460833404250545e-05, 0.9950741305725451),
        (2, 0.0001, 100, 3.0, 0.3343022700989338, 1.1911482412295165),
        (50, 1000.0, 0.001, 1.0, 16.95708211099656, 20.991439335404568),
        (1, 100, 1, 100.0, 4.9002081660580224e-05, 1.0000009801048702),
        (20, 0.001, 1000.0, 2.5, 0.024113669167220346, 0.9699917702027513),
        (1, 1e-10, 1, 1.0, 20.871419606971983, 22.44863526962865),
        (4, 0.2, 0.0001, 0.3, 1.2353064222635828, 5.637812319564242),
        (300, 7, 3, 0.7, 0.002024061044368855, 0.9603783860365481),
        (1, 3, 0.5, 0.001, 0.0006900269812003899, 2.6508877125097166),
    ]
)


def test_mle_of_a_normal_variance():
    n = [3, 4, 5, 10, 20, 100]
    published = [0.815512, 0.364819, 0.226766, 0.0733399, 0.0301393, 0.00518742]
    assert_allclose(risk.risk_mle_gamma(n, 0.5), published, rtol=2e-6)


def test_mle_is_infinite_exactly_where_one_over_the_mean_is():
    assert_allclose(risk.risk_mle_gamma([1, 2], 0.5), np.inf)
    assert risk.risk_mle_gamma(1, 1.0) == np.inf
    assert_allclose(risk.risk_mle_gamma([2, 3, 5, 10], 1.0), [0.729637, 0.324172, 0.146680, 0.0602786], rtol=2e-6)
    assert np.isfinite(risk.risk_mle_gamma(3, 0.34))
    assert risk.risk_mle_gamma(3, 1 / 3 - 1e-9) == np.inf
    assert risk.risk_mle_gamma(0, 5.0) == np.inf


def test_mle_keeps_its_digits_for_huge_samples():
    n = np.array([1e6, 1e12])
    # 1/(2n) + 1/(n(na - 1)) - 1/(12 a n^2) + O(n^-4): the series of digamma.
    assert_allclose(risk.risk_mle_gamma(n, 2.0), 0.5 / n + 1 / (n * (2 * n - 1)) - 1 / (24 * n**2), rtol=1e-14)


@pytest.mark.parametrize(
    ("d", "n", "published"),
    [(2, 4, 2.53649), (2, 15, 0.144868), (3, 20, 0.216188), (5, 30, 0.358737), (10, 55, 0.715098)],
)
def test_mle_of_a_covariance(d, n, published):
    assert_allclose(risk.risk_mle_covariance(n, d), published, rtol=3e-6)


def test_mle_of_a_covariance_in_one_dimension_is_that_of_a_variance():
    n = np.arange(1, 50)
    assert_allclose(risk.risk_mle_covariance(n, 1), risk.risk_mle_gamma(n, 0.5), rtol=1e-13)


def test_mle_of_a_covariance_as_printed():
    d, n = 4, np.arange(6, 60)
    terms = sum(digamma((n - i) / 2) for i in range(d)) - d * np.log(n / 2)
    assert_allclose(risk.risk_mle_covariance(n, d), d * (d + 1) / 2 / (n - d - 1) + 0.5 * terms, rtol=1e-11)
    assert_allclose(risk.risk_mle_covariance([1, 4, 5], d), np.inf)


def test_mle_of_the_full_normal():
    assert_allclose(risk.risk_mle_normal([4, 5, 10, 100]), [1.671671, 0.753247, 0.175431, 0.0105259], rtol=3e-6)
    assert risk.risk_mle_normal(3) == np.inf
    assert_allclose(risk.risk_mle_normal(12, 2), 0.39185, rtol=2e-5)
    assert_allclose(risk.risk_mle_normal([4, 5], 3), np.inf)
    assert np.isfinite(risk.risk_mle_normal(6, 3))


# (n, n0, r): risk, symmetrised risk.
PUBLISHED_MAP = {
    (1, 1, 1): (0.0758325, 0.155680),
    (2, 1, 1): (0.104332, 0.192183),
    (5, 1, 1): (0.0894067, 0.155680),
    (10, 1, 1): (0.0525031, 0.0938490),
    (1, 1, 2): (0.0444182, 0.128936),
    (5, 1, 2): (0.0459629, 0.0990776),
    (10, 1, 2): (0.0361059, 0.0721193),
    (100, 1, 2): (0.00490158, 0.00974463),
    (3, 10, 0.2): (0.545540, 0.766139),
}


def test_map_of_a_normal_variance():
    n, n0, ratio = np.array(list(PUBLISHED_MAP)).T
    expected = np.array(list(PUBLISHED_MAP.values())).T
    assert_allclose(risk.risk_map_gamma(n, n0, ratio, 0.5), expected[0], rtol=3e-6)
    assert_allclose(risk.symmetrised_risk_map_gamma(n, n0, ratio, 0.5), expected[1], rtol=3e-6)


def test_expected_inverse_of_a_normal_variance():
    found = risk.expected_inverse([1, 2, 5], 1, [1, 1, 2], 0.5)
    assert_allclose(found, [1.311359, 1.384366, 1.031489], rtol=1e-6)


def test_map_against_quadrature_in_high_precision():
    n, n0, ratio, alpha, value, inverse = QUADRATURE.T
    assert_allclose(risk.risk_map_gamma(n, n0, ratio, alpha), value, rtol=1e-13)
    assert_allclose(risk.expected_inverse(n, n0, ratio, alpha), inverse, rtol=1e-13)


@pytest.mark.parametrize(("n", "n0", "ratio", "alpha"), [(3, 2.0, 0.7, 0.5), (1, 0.5, 3.0, 0.2), (40, 5.0, 1.5, 1.7)])
def test_map_against_the_density_of_the_mean(n, n0, ratio, alpha):
    law = gamma(n * alpha, scale=1 / alpha)  # of n times the mean statistic, in units of mu*
    z = lambda s: (n0 + n) / (n0 * ratio + s)  # noqa: E731

    def mean(f):  # in the probability: the density itself is singular at zero for small shapes
        ends = [0.0, 1e-3, 0.5, 0.999, 1.0 - 1e-13]
        return sum(quad(lambda u: f(z(law.ppf(u))), a, b, epsabs=1e-12, limit=200)[0] for a, b in pairwise(ends))

    assert_allclose(risk.risk_map_gamma(n, n0, ratio, alpha), alpha * mean(lambda v: v - 1 - np.log(v)), rtol=1e-7)
    assert_allclose(
        risk.symmetrised_risk_map_gamma(n, n0, ratio, alpha), alpha * mean(lambda v: (v - 1) ** 2 / v), rtol=1e-7
    )


def test_map_becomes_the_mle_as_the_prior_fades():
    n = np.array([3, 5, 50])
    assert_allclose(risk.risk_map_gamma(n, 0, 1, 0.5), risk.risk_mle_gamma(n, 0.5), rtol=1e-15)
    assert_allclose(risk.risk_map_gamma(n, 1e-13, 1, 0.5), risk.risk_mle_gamma(n, 0.5), rtol=2e-6)
    assert_allclose(risk.symmetrised_risk_map_gamma(n, 0, 1, 0.5), 0.5 / (n / 2 - 1), rtol=1e-14)
    assert_allclose(risk.expected_inverse(n, 0, 1, 0.5), n / (n - 2), rtol=1e-14)
    assert_allclose(risk.risk_map_gamma([1, 2], 0, 1, 0.5), np.inf)
    # A prior mean of zero pulls towards the boundary without holding back: mu_n = n/(n0 + n) times the MLE.
    assert_allclose(risk.risk_map_gamma(9, 3, 0, 0.5), risk.risk_map_gamma(9, 3, 1e-13, 0.5), rtol=1e-6)
    assert risk.risk_map_gamma(2, 3, 0, 0.5) == np.inf


def test_map_with_no_data_is_the_divergence_of_the_prior_mean():
    ratio = np.array([0.5, 1.0, 4.0])
    assert_allclose(risk.risk_map_gamma(0, 2, ratio, 3.0), 3 * (1 / ratio - 1 + np.log(ratio)), atol=1e-15)
    assert_allclose(risk.symmetrised_risk_map_gamma(0, 2, ratio, 3.0), 3 * (ratio - 1) ** 2 / ratio, atol=1e-15)
    assert risk.risk_map_gamma(0, 0, 1, 1) == np.inf
    assert risk.symmetrised_risk_map_gamma(0, 1, 0, 1) == np.inf


def test_extreme_arguments_are_never_nan():
    extreme = np.array([0.0, 1e-300, 1e-8, 1.0, 1e8, 1e15])
    grids = np.meshgrid([0, 1, 3, 1e9], extreme, extreme, [1e-3, 0.5, 1e4])
    for function in (risk.risk_map_gamma, risk.symmetrised_risk_map_gamma, risk.expected_inverse):
        value = function(*grids)
        assert not np.any(np.isnan(value))
        assert np.all(value >= 0)
    split = risk.bias_variance_gamma(*grids)
    assert not any(np.any(np.isnan(part)) for part in split)


def test_grids_broadcast_in_one_call():
    value = risk.risk_map_gamma(np.array([1, 5])[:, None, None], np.array([0.1, 1, 10])[:, None], [0.5, 1, 2, 4], 0.5)
    assert value.shape == (2, 3, 4)
    assert_allclose(value[1, 2, 3], risk.risk_map_gamma(5, 10, 4, 0.5), rtol=1e-14)
    assert np.ndim(risk.risk_map_gamma(5, 10, 4, 0.5)) == 0


def test_bias_and_variance_of_the_mle_of_a_variance():
    split = risk.bias_variance_gamma([5, 10], 0, 1, 0.5)
    assert_allclose(split.bias, [0.0779205, 0.0134282], rtol=2e-6)
    assert_allclose(split.variance, [0.148846, 0.0599117], rtol=4e-6)
    n = np.array([3, 5, 10, 100, 1e6])
    split = risk.bias_variance_gamma(n, 0, 1, 0.5)
    assert_allclose(split.total, risk.risk_mle_gamma(n, 0.5), rtol=1e-12)
    assert np.all(split.bias <= 2 / (n * (n - 2)))
    assert_allclose(split.bias[-1] * n[-1] ** 2, 1.0, rtol=1e-5)  # alpha/2 (1/(n alpha))^2 = 1/n^2


@pytest.mark.parametrize("alpha", [0.05, 0.5, 3.0])
def test_bias_and_variance_of_the_map_add_up(alpha):
    grids = np.meshgrid([0, 1, 7, 200], [1e-3, 1, 30], [0.1, 1, 5])
    split = risk.bias_variance_gamma(*grids, alpha)
    assert_allclose(split.total, risk.risk_map_gamma(*grids, alpha), rtol=1e-11, atol=1e-16)
    assert_allclose(split.bias + split.variance, split.total, rtol=1e-14)


def test_quadratic():
    assert risk.risk_map_quadratic(3, 1, 2, 1.0) == 0.21875
    assert_allclose(risk.risk_map_quadratic([1, 10], 0, 3, 5.0), [1.5, 0.15])
    assert risk.risk_map_quadratic(0, 2, 3, 5.0) == 12.5
    assert risk.risk_map_quadratic(0, 0, 3, 5.0) == np.inf


def test_categorical():
    n = [0, 1, 5, 10, 100, 1000]
    published = [0.0689593, 0.0932454, 0.0888339, 0.0660983, 0.00962863, 0.000996229]
    found = risk.risk_map_categorical(n, 3.0, [0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3])
    assert_allclose(found, published, rtol=2e-6)
    assert found[1] > found[0]  # the prior was lucky: the first observation makes things worse


def test_categorical_as_a_plain_sum():
    p, mu0 = np.array([0.7, 0.05, 0.25]), np.array([0.2, 0.5, 0.3])
    for n, n0 in [(1, 0.5), (8, 2.0), (60, 1.0)]:
        j = np.arange(n + 1)
        plain = sum(
            pk * (np.log(pk) - binom.pmf(j, n, pk) @ np.log((n0 * m + j) / (n0 + n)))
            for pk, m in zip(p, mu0, strict=True)
        )
        assert_allclose(risk.risk_map_categorical(n, n0, p, mu0), plain, rtol=1e-11)


def test_categorical_mle_is_infinite_and_impossible_classes_are_not():
    assert_allclose(risk.risk_map_categorical([1, 10, 1000], 0, [0.5, 0.5], [0.5, 0.5]), np.inf)
    assert risk.risk_map_categorical(5, 1.0, [0.5, 0.5], [1.0, 0.0]) == np.inf
    # All truth on one class: KL = -log q_0, with q_0 = (n0/2 + n) / (n0 + n).
    assert_allclose(risk.risk_map_categorical(5, 1.0, [1.0, 0.0], [0.5, 0.5]), np.log(6 / 5.5), rtol=1e-13)
    assert risk.risk_map_categorical(5, 0.0, [1.0, 0.0], [0.5, 0.5]) == 0
    assert risk.risk_map_categorical(0, 0.0, [1.0, 0.0], [0.5, 0.5]) == np.inf


@pytest.mark.parametrize(("n", "worst"), [(500, (1.0193, 0.9970, 0.9950)), (50, (1.0075, 1.1930, 1.6398))])
def test_worst_case_of_two_classes_is_near_minimax(n, worst):
    p = np.concatenate([np.geomspace(1e-3, 0.1, 120), np.linspace(0.1, 0.5, 100)])
    for n0, published in zip([1.0, 1.5, 2.0], worst, strict=True):
        found = max(2 * n * risk.risk_map_categorical(n, n0, [q, 1 - q], [0.5, 0.5]) for q in p)
        assert_allclose(found, published, rtol=1e-3)


def test_poisson_as_a_plain_sum():
    counts = np.arange(400)
    for n, n0, rate, mean in [(1, 1.0, 2.0, 1.0), (20, 0.3, 3.0, 9.0)]:
        estimate = (n0 * mean + counts) / (n0 + n)
        plain = poisson.pmf(counts, n * rate) @ (rate * np.log(rate / estimate) - rate + estimate)
        assert_allclose(risk.risk_map_poisson(n, n0, rate, mean), plain, rtol=1e-11)
    assert risk.risk_map_poisson(10, 0.0, 2.0, 1.0) == np.inf


def test_every_exact_risk_tends_to_half_its_dimension_over_n():
    n = 1e4
    assert_allclose(n * risk.risk_mle_gamma(n, [0.5, 1.0, 3.0]), 0.5, rtol=0.01)
    assert_allclose(n * risk.risk_map_gamma(n, 1.0, 2.0, [0.5, 1.0, 3.0]), 0.5, rtol=0.01)
    d = np.array([1, 2, 5])
    assert_allclose(n * risk.risk_mle_covariance(n, d), d * (d + 1) / 4, rtol=0.01)
    assert_allclose(n * risk.risk_mle_normal(n), 1.0, rtol=0.01)
    assert_allclose(n * risk.risk_map_categorical(n, 3.0, [0.5, 0.3, 0.2], [1 / 3] * 3), 1.0, rtol=0.01)
    assert_allclose(n * risk.risk_map_poisson(n, 1.0, 2.0, 1.0), 0.5, rtol=0.01)


def test_the_remainder_of_smooth_families_is_of_order_n_to_minus_two():
    n = np.array([2000.0, 4000.0, 8000.0])
    remainder = risk.risk_map_gamma(n, 1.0, 1.5, 0.5) - 0.5 / n
    assert_allclose(remainder[:-1] / remainder[1:], 4.0, rtol=0.05)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((-1, 1, 1, 1), "n"), ((1, -1, 1, 1), "n0"), ((1, 1, -1, 1), "ratio"), ((1, 1, 1, 0), "alpha")],
)
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(DomainError, match=f"^{name} must be finite"):
        risk.risk_map_gamma(*arguments)
    with pytest.raises(DomainError, match="must be finite"):
        risk.risk_map_gamma(np.nan, 1, 1, 1)


def test_other_bad_arguments():
    with pytest.raises(DomainError, match=r"n must be a whole number; got 2\.5"):
        risk.risk_mle_covariance(2.5, 2)
    with pytest.raises(DomainError, match="add up to 1"):
        risk.risk_map_categorical(3, 1.0, [0.5, 0.6], [0.5, 0.5])
    with pytest.raises(ValueError, match="same length"):
        risk.risk_map_categorical(3, 1.0, [0.5, 0.5], [0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match="do not broadcast"):
        risk.risk_map_gamma([1, 2], [1, 2, 3], 1, 1)
    with pytest.raises(TypeError, match="alpha must be a number"):
        risk.risk_mle_gamma(3, "half")
