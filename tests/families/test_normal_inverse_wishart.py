import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, NoEstimateError
from cumulant.families.normal_inverse_wishart import NormalInverseGamma, NormalInverseWishart
from cumulant.geometry.symmetric import vech
from tests.families import matrix_laws as laws

_KAPPA, _DOF = np.array([0.5, 2.0, 6.0]), np.array([3.0, 7.5, 40.0])


class Members:
    """Three members, three others, one observation for each, and 40 observations of the second member."""

    def __init__(self, family):
        self.family, rng, size = family, np.random.default_rng(13), family.size
        self.mean, self.scale = 0.5 * rng.normal(size=(3, size)), laws.positive_definite(rng, size, (3,))
        self.theta = self.natural(self.mean, _KAPPA, _DOF, self.scale)
        scale = self.scale + 0.3 * laws.positive_definite(rng, size, (3,))
        self.other = self.natural(self.mean + 0.2, 1.3 * _KAPPA, _DOF + 0.5, scale)
        self.x = self.pair(rng.normal(size=(3, size)), laws.positive_definite(rng, size, (3,)))
        covariances = np.stack([self.draw(7.5, self.scale[1], rng) for _ in range(40)])
        means = np.stack([rng.multivariate_normal(self.mean[1], c / 2.0) for c in covariances])
        self.data = self.pair(means, covariances)
        # One member at a time, as in the laws of all families: their program serves here too.
        each = [family.sample(one, 20_000, rng=3 + b) for b, one in enumerate(self.theta)]
        self.draws = jax.tree.map(lambda *parts: np.stack(parts, axis=1), *each)

    def draw(self, dof, scale, rng):
        return np.reshape(scipy.stats.invwishart.rvs(dof, scale, random_state=rng), scale.shape)

    def natural(self, mean, kappa, dof, scale):
        if isinstance(self.family, NormalInverseGamma):
            return self.family.natural(mean=mean[:, 0], kappa=kappa, shape=dof / 2, scale=scale[:, 0, 0] / 2)
        return self.family.natural(mean=mean, kappa=kappa, dof=dof, scale=scale)

    def pair(self, mean, covariance):
        return (mean[:, 0], covariance[:, 0, 0]) if isinstance(self.family, NormalInverseGamma) else (mean, covariance)

    def log_density(self, x, b):
        """By scipy: the inverse Wishart times the normal."""
        mean, covariance = x
        if isinstance(self.family, NormalInverseGamma):
            variance = scipy.stats.invgamma(_DOF[b] / 2, scale=self.scale[b, 0, 0] / 2)
            return variance.logpdf(covariance) + scipy.stats.norm.logpdf(
                mean, self.mean[b, 0], np.sqrt(covariance / _KAPPA[b])
            )
        marginal = scipy.stats.invwishart.logpdf(np.moveaxis(covariance, 0, -1), _DOF[b], self.scale[b])
        given = [
            scipy.stats.multivariate_normal(self.mean[b], c / _KAPPA[b]).logpdf(m) for m, c in zip(*x, strict=True)
        ]
        return marginal + np.array(given)


@pytest.fixture(scope="module", params=[NormalInverseWishart(2), NormalInverseGamma()], ids=lambda f: type(f).__name__)
def members(request):
    return Members(request.param)


def test_round_trips(members):
    usual = members.family.usual(members.theta)
    if isinstance(members.family, NormalInverseGamma):
        expected = {"mean": members.mean[:, 0], "kappa": _KAPPA, "shape": _DOF / 2, "scale": members.scale[:, 0, 0] / 2}
    else:
        expected = {"mean": members.mean, "kappa": _KAPPA, "dof": _DOF, "scale": members.scale}
    assert list(usual) == list(expected)
    for name, value in expected.items():
        assert_allclose(usual[name], value, rtol=1e-10, atol=1e-12)
    laws.round_trips_in_float32(members.family, members.theta)


def test_divergences(members):
    laws.neighbours_have_the_divergence_of_the_quadratic_form(members.family, members.theta, members.other)


@pytest.mark.slow
def test_derivatives_of_divergences(members):
    laws.derivatives_of_divergences(members.family, members.theta, members.other)


def test_the_density_is_a_product_of_an_inverse_wishart_and_a_normal(members):
    for b in range(3):
        assert_allclose(
            members.family.log_prob(members.x, members.theta[b]), members.log_density(members.x, b), rtol=1e-10
        )
    written_out = np.sum(members.theta * members.family.statistics(members.x), axis=-1)
    written_out += members.family.log_base(members.x) - members.family.log_partition(members.theta)
    assert_allclose(members.family.log_prob(members.x, members.theta), written_out, rtol=1e-9)
    mean, covariance = members.x
    assert np.all(members.family.log_prob((mean, -covariance), members.theta) == -np.inf)
    assert np.all(members.family.log_prob((np.full_like(mean, np.inf), covariance), members.theta) == -np.inf)
    laws.gradients_of_densities(members.family, members.x, members.theta)


def test_the_entropy_is_the_mean_of_minus_the_log_density(members):
    laws.the_entropy_is_the_mean_of_minus_the_log_density(members.family, members.draws, members.theta)


def test_draws_have_the_right_marginals(members):
    """The variances are inverse chi-squared, the means Student (dof - d + 1 degrees of freedom)."""
    n, size = 20_000, members.family.size
    mean, covariance = members.draws
    assert mean.shape == (n, 3, *members.family.event_shape[0])
    assert covariance.shape == (n, 3, *members.family.event_shape[1])
    mean, covariance = mean.reshape(n, 3, size), covariance.reshape(n, 3, size, size)
    for b in range(3):
        freedom = _DOF[b] - size + 1
        variance = members.scale[b, 0, 0] / covariance[:, b, 0, 0]
        assert scipy.stats.kstest(variance, scipy.stats.chi2(freedom).cdf).pvalue > 1e-3
        spread = np.sqrt(members.scale[b, -1, -1] / (_KAPPA[b] * freedom))
        student = scipy.stats.t(freedom, loc=members.mean[b, -1], scale=spread)
        assert scipy.stats.kstest(mean[:, b, -1], student.cdf).pvalue > 1e-3


def test_statistics_add_up_and_the_estimate_is_a_maximum_of_the_likelihood(members):
    theta = laws.statistics_add_up(members.family, members.data).mle()
    steps = 0.02 * np.concatenate(
        [np.zeros((1, members.family.dim)), np.eye(members.family.dim), -np.eye(members.family.dim)]
    )
    steps = steps / np.sqrt(np.diagonal(members.family.fisher(theta)))
    data = tuple(leaf[:, None] for leaf in members.data)
    values = members.family.log_prob(data, theta + steps).sum(axis=0)
    assert np.all(values[1:] < values[0])


def test_estimates_do_not_cancel_far_from_the_origin(members):
    mean, covariance = members.data
    shifted = np.round(mean * 2.0**20) / 2.0**20
    near, far = (members.family.collect((shifted + origin, covariance), np.ones(40)) for origin in (0.0, 2.0**20))
    size = members.family.size
    assert_allclose(far.central[1 : 1 + size] - 2.0**20, near.central[1 : 1 + size], atol=1e-8)
    assert_allclose(far.central[-1], near.central[-1], rtol=1e-8)


def test_no_estimate_from_degenerate_data(members):
    mean, covariance = members.data
    with pytest.raises(NoEstimateError, match="means of all 40 observations are equal"):
        members.family.mle((np.broadcast_to(mean[:1], mean.shape), covariance), np.ones(40))
    with pytest.raises(NoEstimateError, match="all 40 covariances are equal"):
        members.family.mle((mean, np.broadcast_to(covariance[:1], covariance.shape)), np.ones(40))
    with pytest.raises(DomainError, match="positive"):
        members.family.mle((mean, -covariance), np.ones(40))


def test_refusals_of_events(members):
    mean, covariance = members.x
    with pytest.raises(DomainError, match="must be a tuple of two arrays"):
        members.family.log_prob(mean, members.theta)
    with pytest.raises(DomainError, match="must be a tuple of two arrays"):
        members.family.log_prob((mean, covariance, mean), members.theta)
    with pytest.raises(DomainError, match="NaN"):
        members.family.log_prob((np.full_like(mean, np.nan), covariance), members.theta)


def test_refusals_of_parameters():
    family, good = NormalInverseWishart(2), {"mean": [0.0, 0.0], "kappa": 1.0, "dof": 3.0, "scale": np.eye(2)}
    for bad in (
        {"kappa": 0.0},
        {"dof": 1.0},
        {"scale": -np.eye(2)},
        {"scale": [[1.0, 0.2], [0.0, 1.0]]},
        {"mean": [0.0, np.inf]},
    ):
        with pytest.raises(
            DomainError, match="a finite mean, kappa > 0, dof > size - 1 and a symmetric, positive definite scale"
        ):
            family.natural(**{**good, **bad})
    with pytest.raises(ValueError, match=r"mean must have shape \(..., 2\)"):
        family.natural(**{**good, "mean": [0.0]})
    with pytest.raises(DomainError, match=r"shapes \(..., 2\) and \(..., 2, 2\); got \(2,\) and \(3, 3\)"):
        family.log_prob((np.zeros(2), np.eye(3)), family.natural(**good))
    with pytest.raises(DomainError, match="Jensen"):
        family.to_natural(family.statistics((np.zeros(2), np.eye(2))))
    with pytest.raises(DomainError, match="a positive kappa, shape and scale"):
        NormalInverseGamma().natural(mean=0.0, kappa=1.0, shape=-1.0, scale=1.0)


def test_events_may_be_numbers_lists_and_batches():
    family = NormalInverseGamma()
    theta = family.natural(mean=1.0, kappa=2.0, shape=3.0, scale=4.0)
    one = family.log_prob((1.5, 2.0), theta)
    assert_allclose(family.log_prob(([1.5, 0.0], [2.0, 1.0]), theta)[0], one, rtol=1e-14)
    assert_allclose(
        family.log_prob((jnp.float32(1.5), jnp.float32(2.0)), jnp.asarray(theta, dtype=jnp.float32)), one, rtol=1e-5
    )
    from_lists, from_arrays = (
        family.mle(([1.5, 0.0, 2.0], [2.0, 1.0, 4.0])),
        family.mle((np.array([1.5, 0, 2]), np.array([2.0, 1, 4]))),
    )
    assert_allclose(from_lists, from_arrays, rtol=1e-14)
    matrices = NormalInverseWishart(1)
    assert_allclose(matrices.log_prob(([1.5], [[2.0]]), theta), one, rtol=1e-12)


def test_the_posterior_of_a_normal_is_in_the_family():
    """Conjugacy: prior plus log likelihood is the log density of the updated member, up to a constant."""
    rng = np.random.default_rng(0)
    family, data = NormalInverseWishart(2), rng.normal(size=(7, 2))
    prior = {"mean": np.array([1.0, -1.0]), "kappa": 2.0, "dof": 5.0, "scale": np.array([[2.0, 0.3], [0.3, 1.0]])}
    centre, apart = data.mean(axis=0), data.mean(axis=0) - prior["mean"]
    scatter = (data - centre).T @ (data - centre)
    posterior = family.natural(
        mean=(2.0 * prior["mean"] + 7 * centre) / 9.0,
        kappa=9.0,
        dof=12.0,
        scale=prior["scale"] + scatter + 2.0 * 7 / 9.0 * np.outer(apart, apart),
    )
    x = rng.normal(size=(4, 2)), laws.positive_definite(rng, 2, (4,))
    likelihood = [scipy.stats.multivariate_normal(m, c).logpdf(data).sum() for m, c in zip(*x, strict=True)]
    difference = family.log_prob(x, posterior) - family.log_prob(x, family.natural(**prior)) - likelihood
    assert_allclose(difference, difference[0], rtol=1e-10)
    # sufficient statistics add up in natural coordinates: linear in the data
    second = sum(np.outer(row, row) for row in data)
    added = family.natural(**prior) + np.concatenate([[3.5], data.sum(axis=0), -0.5 * vech(second), [-3.5]])
    assert_allclose(posterior, added, rtol=1e-12)
