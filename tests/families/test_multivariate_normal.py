import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, NoEstimateError
from cumulant.families.multivariate_normal import MultivariateNormal
from cumulant.families.multivariate_normal_diagonal import MultivariateNormalDiagonal, MultivariateNormalIsotropic
from cumulant.families.multivariate_normal_known import MultivariateNormalKnownCovariance, MultivariateNormalKnownMean
from cumulant.families.normal import Normal
from cumulant.families.statistics import Statistics
from cumulant.geometry.symmetric import vech
from tests.families import matrix_laws as laws

_RNG = np.random.default_rng(20)
_KNOWN_COVARIANCE = laws.positive_definite(_RNG, 3)
_KNOWN_MEAN = np.array([1.0, -2.0, 0.5])


def _usual(family, rng, count=3):
    """Usual parameters of `count` members, and for each its mean vector and covariance matrix."""
    mean = rng.normal(size=(count, family.size))
    match family:
        case MultivariateNormal():
            covariance = laws.positive_definite(rng, family.size, (count,))
            return {"mean": mean, "covariance": covariance}, mean, covariance
        case MultivariateNormalDiagonal():
            variances = np.exp(rng.normal(size=(count, family.size)))
            return {"mean": mean, "variances": variances}, mean, variances[..., None] * np.eye(family.size)
        case MultivariateNormalIsotropic():
            variance = np.exp(rng.normal(size=count))
            return {"mean": mean, "variance": variance}, mean, variance[:, None, None] * np.eye(family.size)
        case MultivariateNormalKnownCovariance():
            return {"mean": mean}, mean, np.broadcast_to(family.covariance, (count, family.size, family.size))
    covariance = laws.positive_definite(rng, family.size, (count,))
    return {"covariance": covariance}, np.broadcast_to(family.mean, (count, family.size)), covariance


class Members:
    """Three members of a family and three others, with their means, covariances and 60 observations of the first."""

    def __init__(self, family):
        self.family = family
        rng = np.random.default_rng(7)
        self.usual, self.mean, self.covariance = _usual(family, rng)
        self.theta = family.natural(**self.usual)
        others, self.other_mean, self.other_covariance = _usual(family, rng)
        self.other = family.natural(**others)
        self.x = rng.normal(size=(3, family.size))
        self.data = rng.normal(size=(60, family.size)) @ rng.normal(size=(family.size, family.size)) + 1.0


_FAMILIES = [
    MultivariateNormal(3),
    MultivariateNormalDiagonal(3),
    MultivariateNormalIsotropic(3),
    MultivariateNormalKnownCovariance(_KNOWN_COVARIANCE),
    MultivariateNormalKnownMean(_KNOWN_MEAN),
]


@pytest.fixture(scope="module", params=_FAMILIES, ids=lambda family: f"{type(family).__name__}-{family.size}")
def members(request):
    return Members(request.param)


def test_round_trips(members):
    for name, value in members.family.usual(members.theta).items():
        assert_allclose(value, members.usual[name], rtol=1e-9, atol=1e-10)
    laws.round_trips_in_float32(members.family, members.theta)


def test_divergences(members):
    for b in range(3):
        inverse = np.linalg.inv(members.other_covariance[b])
        ratio, apart = inverse @ members.covariance[b], members.mean[b] - members.other_mean[b]
        expected = 0.5 * (np.trace(ratio) - members.family.size - np.linalg.slogdet(ratio)[1] + apart @ inverse @ apart)
        assert_allclose(members.family.kl(members.theta, members.other)[b], expected, rtol=1e-9)
    laws.neighbours_have_the_divergence_of_the_quadratic_form(members.family, members.theta, members.other)


def test_derivatives(members):
    if type(members.family) in (MultivariateNormal, MultivariateNormalKnownMean):
        laws.derivatives_of_divergences(members.family, members.theta, members.other)
    laws.gradients_of_densities(members.family, members.x, members.theta)


def test_log_prob_and_entropy_against_scipy(members):
    table, entropies = members.family.log_prob(members.x[:, None], members.theta), members.family.entropy(members.theta)
    for b in range(3):
        peer = scipy.stats.multivariate_normal(members.mean[b], members.covariance[b])
        assert_allclose(table[:, b], peer.logpdf(members.x), rtol=1e-10)
        assert_allclose(entropies[b], peer.entropy(), rtol=1e-10)
    outside = np.where(np.eye(3, members.family.size) == 1, np.inf, members.x)
    assert np.all(members.family.log_prob(outside[:, None], members.theta) == -np.inf)


def test_draws_have_the_right_moments_and_marginals(members):
    n = 20_000
    draws = members.family.sample(members.theta, n, rng=3)
    assert draws.shape == (n, 3, members.family.size)
    direction = np.linspace(1.0, 2.0, members.family.size)
    for b in range(3):
        spread = np.sqrt(direction @ members.covariance[b] @ direction)
        projected = (draws[:, b] - members.mean[b]) @ direction / spread
        assert scipy.stats.kstest(projected, "norm").pvalue > 1e-3
        variances = np.diagonal(members.covariance[b])
        assert np.all(np.abs(draws[:, b].mean(axis=0) - members.mean[b]) < 5 * np.sqrt(variances / n))
        error = np.sqrt((members.covariance[b] ** 2 + np.outer(variances, variances)) / n)
        assert np.all(np.abs(np.cov(draws[:, b].T) - members.covariance[b]) < 5 * error)


def test_statistics_add_up_to_the_sample_mean_and_covariance(members):
    usual = members.family.usual(laws.statistics_add_up(members.family, members.data).mle())
    mean, covariance = members.data.mean(axis=0), np.cov(members.data.T, bias=True)
    match members.family:
        case MultivariateNormal():
            expected = {"mean": mean, "covariance": covariance}
        case MultivariateNormalDiagonal():
            expected = {"mean": mean, "variances": np.diagonal(covariance)}
        case MultivariateNormalIsotropic():
            expected = {"mean": mean, "variance": np.mean(np.diagonal(covariance))}
        case MultivariateNormalKnownCovariance():
            expected = {"mean": mean}
        case _:
            apart = members.data - members.family.mean
            expected = {"covariance": apart.T @ apart / 60}
    for name, value in expected.items():
        assert_allclose(usual[name], value, rtol=1e-9)


def test_estimates_come_with_standard_errors():
    data = np.random.default_rng(9).normal(size=(60, 3))
    estimate = MultivariateNormal(3).estimate(data)
    covariance = np.cov(data.T, bias=True)
    variances = np.diagonal(covariance)
    assert_allclose(estimate.usual_standard_errors["mean"], np.sqrt(variances / 60), rtol=1e-8)
    expected = np.sqrt((covariance**2 + np.outer(variances, variances)) / 60)  # Isserlis
    assert_allclose(estimate.usual_standard_errors["covariance"], expected, rtol=1e-8)


# What concerns single families ---------------------------------------------------------------------------------------


def test_in_one_dimension_it_is_the_normal_family():
    theta = Normal().natural(mean=[1.0, -3.0], variance=[2.0, 0.5])
    other = Normal().natural(mean=[0.0, -3.1], variance=[1.0, 0.6])
    families = [Normal(), MultivariateNormal(1), MultivariateNormalDiagonal(1), MultivariateNormalIsotropic(1)]
    expected, *answers = laws.in_float64(
        lambda t, o: [(f.log_partition(t), f.to_mean(t), f.kl(t, o)) for f in families], theta, other
    )
    for answer in answers:
        for value, wanted in zip(answer, expected, strict=True):
            assert_allclose(value, wanted, rtol=1e-12)


def test_diagonal_and_isotropic_are_restrictions_of_the_full_family():
    mean, x = np.array([1.0, 2.0, 3.0]), np.random.default_rng(0).normal(size=(4, 3))
    full = MultivariateNormal(3)
    narrow = full.log_prob(x, full.natural(mean=mean, covariance=2.0 * np.eye(3)))
    diagonal, isotropic = MultivariateNormalDiagonal(3), MultivariateNormalIsotropic(3)
    assert_allclose(diagonal.log_prob(x, diagonal.natural(mean=mean, variances=np.full(3, 2.0))), narrow, rtol=1e-12)
    assert_allclose(isotropic.log_prob(x, isotropic.natural(mean=mean, variance=2.0)), narrow, rtol=1e-12)


@pytest.mark.parametrize("kind", [MultivariateNormal, MultivariateNormalDiagonal, MultivariateNormalIsotropic])
def test_estimates_do_not_cancel_far_from_the_origin(kind):
    family, rng = kind(3), np.random.default_rng(5)
    spread = rng.normal(size=(999, 3)) @ np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.2, 0.3, 1.0]])
    x = np.round(spread * 2.0**20) / 2.0**20 + 2.0**20  # exactly representable: the shift loses nothing
    near = family.collect(x - 2.0**20).central
    far = (family.collect(x[:500]) + family.collect(x[500:])).central
    assert_allclose(far[3:], near[3:], rtol=1e-9)
    assert_allclose(far[:3] - 2.0**20, near[:3], atol=1e-9)


def test_divergence_of_ill_conditioned_neighbours():
    """Covariances of condition number 1e8 that differ by one part in 1e6: in the eigenbasis the answer is exact."""
    family = MultivariateNormal(4)
    eigenvalues, ratio = np.array([1e-4, 1.0, 1e2, 1e4]), 1 + 1e-6 * np.array([1.0, -1.0, 2.0, 0.5])
    theta = family.natural(mean=np.zeros(4), covariance=np.diag(eigenvalues))
    other = family.natural(mean=np.zeros(4), covariance=np.diag(eigenvalues * ratio))
    step = ratio - 1
    expected = 0.5 * np.sum(step**2 / 2 - 2 * step**3 / 3)  # of 1/r - 1 + log r to third order
    assert_allclose(family.kl(theta, other), expected, rtol=1e-9)


def test_no_estimate_from_too_few_or_degenerate_data():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 4)) * [1.0, 1e-6, 1e6, 1.0] + [0.0, 5.0, 0.0, 1e3]
    all_of_them, first = np.ones(50), np.arange(50)  # weights of zero and one, so that all data sets have one shape
    family = MultivariateNormal(4)
    assert np.all(np.isfinite(family.mle(x, all_of_them)))
    assert np.all(np.isfinite(family.mle(x, first < 5)))
    with pytest.raises(NoEstimateError, match=r"4 observations are too few .* in dimension 4, which needs 5"):
        family.mle(x, first < 4)
    with pytest.raises(NoEstimateError, match="column 2 of the 50 observations is constant"):
        family.mle(np.where(np.arange(4) == 2, 0.1, x), all_of_them)
    collinear = x.copy()
    collinear[:, 3] = 2 * x[:, 0] - 3e6 * x[:, 1] + 7
    with pytest.raises(
        NoEstimateError, match="column 3 of the 50 observations is a linear combination of columns 0, 1"
    ):
        family.mle(collinear, all_of_them)
    with pytest.raises(NoEstimateError, match="data set 1"):
        family.mle(np.stack([x, collinear], axis=1))
    known = MultivariateNormalKnownMean(np.zeros(4))
    assert np.all(np.isfinite(known.mle(x, first < 4)))
    with pytest.raises(NoEstimateError, match=r"3 observations are too few .* which needs 4"):
        known.mle(x, first < 3)
    diagonal = MultivariateNormalDiagonal(4)
    assert np.all(np.isfinite(diagonal.mle(x, first < 2)))
    with pytest.raises(NoEstimateError, match=r"column 1 .* is constant"):
        diagonal.mle(np.where(np.arange(4) == 1, -0.3, x), all_of_them)
    with pytest.raises(NoEstimateError, match="all 50 observations are equal"):
        MultivariateNormalIsotropic(4).mle(np.tile(x[:1], (50, 1)))


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e9])
@pytest.mark.parametrize("n", [5, 300_000])
def test_collinear_data_are_found_out_whatever_their_number_and_place(n, shift):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, 3)) + shift
    x[:, 2] = x[:, 0] + x[:, 1] / 3
    with pytest.raises(NoEstimateError, match=r"linear combination of columns 0, 1|singular to rounding"):
        MultivariateNormal(3).mle(x)
    honest = x + 1e-3 * (1 + 1e-3 * shift) * rng.normal(size=(n, 3))
    assert np.all(np.isfinite(MultivariateNormal(3).mle(honest)))


def test_refusals_of_parameters():
    family = MultivariateNormal(2)
    with pytest.raises(DomainError, match="symmetric, positive definite covariance"):
        family.natural(mean=[0.0, 0.0], covariance=[[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(DomainError, match="symmetric, positive definite covariance"):
        family.natural(mean=[0.0, 0.0], covariance=[[1.0, 0.1], [0.2, 1.0]])
    with pytest.raises(DomainError, match="finite mean"):
        family.natural(mean=[0.0, np.inf], covariance=np.eye(2))
    with pytest.raises(ValueError, match=r"covariance must have shape \(..., 2, 2\); got \(3, 3\)"):
        family.natural(mean=[0.0, 0.0], covariance=np.eye(3))
    with pytest.raises(ValueError, match=r"mean must have shape \(..., 2\)"):
        family.natural(mean=[0.0], covariance=np.eye(2))
    with pytest.raises(DomainError, match="negative definite"):
        family.log_partition([0.0, 0.0, -1.0, 2.0, -1.0])
    with pytest.raises(DomainError, match="5 entries"):
        family.log_partition([0.0, 0.0])
    with pytest.raises(DomainError, match="positive definite"):
        family.to_natural([1.0, 1.0, 1.0, np.sqrt(2.0), 1.0])
    with pytest.raises(DomainError, match=r"shape \(..., 2\)"):
        family.log_prob([[1.0, 2.0, 3.0]], family.natural(mean=[0, 0], covariance=np.eye(2)))
    with pytest.raises(DomainError, match="NaN"):
        family.log_prob([np.nan, 0.0], family.natural(mean=[0, 0], covariance=np.eye(2)))
    with pytest.raises(ValueError, match="size must be a whole number"):
        MultivariateNormal(0)
    with pytest.raises(DomainError, match="positive, finite variances"):
        MultivariateNormalDiagonal(2).natural(mean=[0.0, 0.0], variances=[1.0, -1.0])
    with pytest.raises(DomainError, match="positive, finite variance"):
        MultivariateNormalIsotropic(2).natural(mean=[0.0, 0.0], variance=0.0)


def test_refusals_of_constants():
    with pytest.raises(ValueError, match="covariance must be positive definite"):
        MultivariateNormalKnownCovariance([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="covariance must be a symmetric matrix"):
        MultivariateNormalKnownCovariance([[1.0, 0.5], [0.4, 1.0]])
    with pytest.raises(ValueError, match="covariance must be a matrix"):
        MultivariateNormalKnownCovariance(3)
    with pytest.raises(ValueError, match="covariance must be positive definite"):
        MultivariateNormalKnownCovariance(jnp.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="mean must be a vector"):
        MultivariateNormalKnownMean(0.0)
    with pytest.raises(ValueError, match="mean must be finite"):
        MultivariateNormalKnownMean([0.0, np.nan])


def test_constants_are_leaves_that_can_be_differentiated_and_batched():
    covariances = laws.positive_definite(np.random.default_rng(2), 3, (4,))
    x = np.array([1.0, 2.0, -1.0])
    stacked = MultivariateNormalKnownCovariance(jnp.asarray(covariances, dtype=jnp.float32))
    at = jnp.asarray(np.zeros(3), dtype=jnp.float32)
    values = jax.jit(jax.vmap(lambda family: family.log_prob(jnp.asarray(x, dtype=jnp.float32), at)))(stacked)
    for covariance, value in zip(covariances, values, strict=True):
        assert_allclose(value, scipy.stats.multivariate_normal(np.zeros(3), covariance).logpdf(x), rtol=1e-4)
    family = MultivariateNormalKnownMean(np.zeros(3))
    theta = -0.5 * vech(np.linalg.inv(covariances[0]))
    slope = laws.in_float64(lambda f, point, t: jax.grad(lambda g: g.log_prob(point, t))(f), family, x, theta)
    assert_allclose(slope.mean, np.linalg.solve(covariances[0], x), rtol=1e-9)


def test_equality_and_hash_look_at_constants():
    a, b = MultivariateNormalKnownMean([0.0, 1.0]), MultivariateNormalKnownMean([0.0, 1.0])
    assert a == b
    assert hash(a) == hash(b)
    assert a != MultivariateNormalKnownMean([0.0, 2.0])
    assert isinstance(a.collect([[1.0, 2.0]]) + b.collect([[0.0, 0.0]]), Statistics)


def test_large_sizes_use_the_same_formulas():
    """Forty dimensions, against scipy: beyond what is unrolled."""
    rng = np.random.default_rng(3)
    mean, covariance = rng.normal(size=40), laws.positive_definite(rng, 40)
    family = MultivariateNormal(40)
    theta = family.natural(mean=mean, covariance=covariance)
    x = rng.normal(size=(5, 40))
    assert_allclose(family.log_prob(x, theta), scipy.stats.multivariate_normal(mean, covariance).logpdf(x), rtol=1e-9)
    assert_allclose(
        family.to_mean(theta), np.concatenate([mean, vech(covariance + np.outer(mean, mean))]), rtol=1e-8, atol=1e-10
    )
