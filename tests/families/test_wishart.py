import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from scipy.special import digamma, multigammaln, polygamma

from cumulant.errors import DomainError, NoEstimateError
from cumulant.families.gamma import Gamma, InverseGamma
from cumulant.families.multigamma import (
    inverse_multigamma_gap,
    log_multigamma,
    multigamma_divergence,
    multigamma_gap,
    multigamma_rest,
)
from cumulant.families.wishart import InverseWishart, Wishart
from cumulant.geometry.symmetric import vech
from cumulant.precision import precise
from tests.families import matrix_laws as laws

_DOF = np.array([3.0, 7.5, 40.0])


class Members:
    """Three members, three others, one observation for each, and 40 observations of the second member."""

    def __init__(self, family):
        self.family, rng = family, np.random.default_rng(11)
        self.peer = {Wishart: scipy.stats.wishart, InverseWishart: scipy.stats.invwishart}[type(family)]
        self.scale = laws.positive_definite(rng, 2, (3,))
        self.theta = family.natural(dof=_DOF, scale=self.scale)
        self.other = family.natural(dof=[3.5, 6.0, 60.0], scale=self.scale + 0.3 * laws.positive_definite(rng, 2, (3,)))
        self.x = laws.positive_definite(rng, 2, (3,))
        self.data = np.stack([self.peer.rvs(7.5, self.scale[1], random_state=rng) for _ in range(40)])


@pytest.fixture(scope="module", params=[Wishart(2), InverseWishart(2)], ids=lambda family: type(family).__name__)
def members(request):
    return Members(request.param)


def test_round_trips(members):
    usual = members.family.usual(members.theta)
    assert_allclose(usual["dof"], _DOF, rtol=1e-13)
    assert_allclose(usual["scale"], members.scale, rtol=1e-9, atol=1e-12)
    laws.round_trips_in_float32(members.family, members.theta)


def test_divergences(members):
    laws.neighbours_have_the_divergence_of_the_quadratic_form(members.family, members.theta, members.other)
    if type(members.family) is Wishart:  # its inverse has the same
        laws.derivatives_of_divergences(members.family, members.theta, members.other)


def _entropy(members, b):
    """By scipy for the Wishart; by change of variables, of Jacobian ``det^-(d+1)``, for its inverse.

    (``scipy.stats.invwishart.entropy`` subtracts ``(d + 1) / 2 log 2`` once, not ``d`` times, as of scipy 1.17.)
    """
    if type(members.family) is Wishart:
        return scipy.stats.wishart(_DOF[b], members.scale[b]).entropy()
    inverse = np.linalg.inv(members.scale[b])
    mean_log_det = digamma((_DOF[b] - np.arange(2)) / 2).sum() + np.linalg.slogdet(2 * inverse)[1]
    return scipy.stats.wishart(_DOF[b], inverse).entropy() - 3 * mean_log_det


def test_densities_and_entropies_against_scipy(members):
    table, entropies = members.family.log_prob(members.x[:, None], members.theta), members.family.entropy(members.theta)
    for b in range(3):
        expected = members.peer.logpdf(np.moveaxis(members.x, 0, -1), _DOF[b], members.scale[b])
        assert_allclose(table[:, b], expected, rtol=1e-10)
        assert_allclose(entropies[b], _entropy(members, b), rtol=1e-10)
    outside = members.x.copy()
    outside[0, 0, 0] = -1.0  # not positive definite
    outside[1, 0, 1] += 0.1  # not symmetric
    outside[2, 1, 1] = np.inf
    assert np.all(members.family.log_prob(outside[:, None], members.theta) == -np.inf)
    laws.gradients_of_densities(members.family, members.x, members.theta)


def test_draws_have_the_right_moments_and_marginals(members):
    n = 20_000
    theta = members.theta[1:]
    # One member at a time, as in the laws of all families: their program serves here too.
    draws = np.stack([members.family.sample(one, n, rng=3 + b) for b, one in enumerate(theta)], axis=1)
    assert draws.shape == (n, 2, 2, 2)
    assert np.all(members.family.in_support(draws))
    wishart = draws if type(members.family) is Wishart else np.linalg.inv(draws)
    scale = members.scale[1:] if type(members.family) is Wishart else np.linalg.inv(members.scale[1:])
    a = np.array([1.0, -0.5])
    for b, dof in enumerate(_DOF[1:]):
        expected = dof * scale[b]
        error = np.sqrt(dof * (scale[b] ** 2 + np.outer(np.diagonal(scale[b]), np.diagonal(scale[b]))) / n)
        assert np.all(np.abs(wishart[:, b].mean(axis=0) - expected) < 5 * error)
        # a^T W a is chi-squared after scaling, and so is the inverse of a^T W^-1 a, with dof - d + 1 degrees of freedom
        projected = np.einsum("i,nij,j->n", a, wishart[:, b], a) / (a @ scale[b] @ a)
        assert scipy.stats.kstest(projected, scipy.stats.chi2(dof).cdf).pvalue > 1e-3
        inverse = np.einsum("i,nij,j->n", a, np.linalg.inv(wishart[:, b]), a)
        assert (
            scipy.stats.kstest((a @ np.linalg.inv(scale[b]) @ a) / inverse, scipy.stats.chi2(dof - 1).cdf).pvalue > 1e-3
        )


def test_statistics_add_up_and_the_estimate_solves_the_likelihood_equations(members):
    """``E x = dof scale`` and ``E log det x`` of the data, for the Wishart; of the inverses, for its inverse."""
    usual = members.family.usual(laws.statistics_add_up(members.family, members.data).mle())
    wishart = members.data if type(members.family) is Wishart else np.linalg.inv(members.data)
    scale = usual["scale"] if type(members.family) is Wishart else np.linalg.inv(usual["scale"])
    assert_allclose(usual["dof"] * scale, wishart.mean(axis=0), rtol=1e-8)
    log_det = digamma((usual["dof"] - np.arange(2)) / 2).sum() + np.linalg.slogdet(2 * scale)[1]
    assert_allclose(log_det, np.linalg.slogdet(wishart)[1].mean(), rtol=1e-8)
    peer = members.peer.logpdf(np.moveaxis(members.data, 0, -1), usual["dof"], usual["scale"]).sum()
    moved = [
        members.peer.logpdf(np.moveaxis(members.data, 0, -1), usual["dof"] * s, usual["scale"] / s).sum()
        for s in (0.9, 1.1)
    ]
    assert peer > max(moved)


def test_no_estimate_from_equal_matrices(members):
    with pytest.raises(NoEstimateError, match="all 40 observations are equal"):
        members.family.mle(np.tile(members.x[0], (40, 1, 1)), np.ones(40))
    with pytest.raises(NoEstimateError, match="all 1 observations are equal"):
        members.family.mle(members.data, np.arange(40) < 1)
    assert np.all(np.isfinite(members.family.mle(members.data, np.arange(40) < 2)))


def test_refusals(members):
    family = members.family
    with pytest.raises(DomainError, match="dof > size - 1"):
        family.natural(dof=1.0, scale=np.eye(2))
    with pytest.raises(DomainError, match="symmetric, positive definite scale"):
        family.natural(dof=5.0, scale=-np.eye(2))
    with pytest.raises(DomainError, match="symmetric, positive definite scale"):
        family.natural(dof=5.0, scale=np.eye(2) + np.eye(2, k=1))
    with pytest.raises(ValueError, match=r"scale must have shape \(..., 2, 2\)"):
        family.natural(dof=5.0, scale=np.eye(3))
    with pytest.raises(DomainError, match="Jensen's inequality"):
        family.to_natural(np.concatenate([[0.0], vech(np.eye(2))]))
    with pytest.raises(DomainError, match="symmetric, positive definite matrix"):
        family.mle(np.stack([np.eye(2), -np.eye(2)]))
    with pytest.raises(DomainError, match=r"shape \(..., 2, 2\)"):
        family.log_prob(np.eye(3), members.theta[0])
    with pytest.raises(ValueError, match="size must be a whole number"):
        type(family)(1.5)


def test_in_one_dimension_they_are_the_gamma_families():
    theta, other = np.array([[2.0, -3.0], [0.3, -0.1]]), np.array([[2.5, -1.0], [0.3, -0.2]])
    x = np.array([0.7, 2.0])
    for matrices, numbers in ((Wishart(1), Gamma()), (InverseWishart(1), InverseGamma())):

        def program(f, point, t, o):
            return f.log_prob(point, t), f.to_mean(t), f.kl(t, o), f.entropy(t)

        answer = laws.in_float64(program, matrices, x[:, None, None], theta, other)
        for value, wanted in zip(answer, laws.in_float64(program, numbers, x, theta, other), strict=True):
            assert_allclose(value, wanted, rtol=1e-11)


def test_the_inverse_of_a_wishart_matrix_is_inverse_wishart():
    scale = laws.positive_definite(np.random.default_rng(0), 3)
    theta, inverse = (
        Wishart(3).natural(dof=6.0, scale=scale),
        InverseWishart(3).natural(dof=6.0, scale=np.linalg.inv(scale)),
    )
    assert_allclose(theta, inverse, rtol=1e-9)
    x = laws.positive_definite(np.random.default_rng(1), 3)
    jacobian = 2 * 4 * 0.5 * np.linalg.slogdet(x)[1]  # det^(d + 1)
    expected = Wishart(3).log_prob(x, theta) + jacobian
    assert_allclose(InverseWishart(3).log_prob(np.linalg.inv(x), inverse), expected, rtol=1e-10)


@pytest.mark.parametrize("size", [2, 5])
def test_means_near_every_boundary_are_inverted(size):
    """From just above ``d - 1`` degrees of freedom to 1e12, and means a relative 1e-9 inside their boundary."""
    rng = np.random.default_rng(size)
    family, mean = Wishart(size), laws.positive_definite(rng, size)
    dof = size - 1 + np.array([1e-6, 1e-3, 0.5, 10.0, 1e4, 1e8])
    theta = family.natural(dof=dof, scale=mean / dof[:, None, None])
    back = family.to_natural(family.to_mean(theta))
    # the gap is a difference of log determinants: what their rounding allows
    gap = size * (size + 1) / (2 * dof)
    assert np.all(np.abs(back[:, 0] / theta[:, 0] - 1) < 1e-8 + 1e-13 / gap)
    log_det = np.linalg.slogdet(mean)[1]
    inside = log_det - 1e-9 * abs(log_det)
    natural = family.to_natural(np.concatenate([[inside], vech(mean)]))
    assert_allclose(natural[0], size * (size + 1) / 4 / (log_det - inside), rtol=1e-6)
    # from data nothing is subtracted, and 1e12 degrees of freedom are found to all digits
    close = mean + 1e-6 * mean * np.array([-1.0, 1.0])[:, None, None]
    estimate = family.mle(close)
    assert_allclose(estimate[0], size * (size + 1) / 4 / (size * 0.5e-12), rtol=1e-6)


def test_answers_do_not_cancel_with_many_degrees_of_freedom():
    """The Wishart is then normal, with variance 2 n V_ij^2 on and n V_ii V_jj off the diagonal."""
    family, dof = Wishart(2), 1e12
    theta = family.natural(dof=dof, scale=np.eye(2) / dof)
    variance = np.array([2.0, 2.0, 2.0]) / dof  # of the half-vectorised entries, sqrt 2 off the diagonal included
    limit = 0.5 * np.sum(np.log(2 * np.pi * np.e * variance)) - 0.5 * np.log(2)  # the sqrt 2 is no part of the volume
    assert_allclose(family.entropy(theta), limit, rtol=1e-9)
    step = 1e-6 * np.array([[1.0, 0.5], [0.5, -0.3]])
    density = -0.5 * np.sum(vech(step) ** 2 / variance) - 0.5 * np.sum(np.log(2 * np.pi * variance)) + 0.5 * np.log(2)
    assert_allclose(family.log_prob(np.eye(2) + step, theta), density, rtol=1e-5)
    moved = family.natural(dof=dof, scale=(np.eye(2) + step) / dof)
    assert_allclose(family.kl(theta, moved), 0.5 * np.sum(vech(step) ** 2 / variance), rtol=1e-5)
    # the same mean with more degrees of freedom: d (d + 1) / 4 (r - 1 - log r) with r the ratio
    other = family.natural(dof=1.5 * dof, scale=np.eye(2) / (1.5 * dof))
    assert_allclose(family.kl(theta, other), 1.5 * (0.5 - np.log(1.5)), rtol=1e-9)


_SIZES = [1, 2, 7]


@pytest.mark.parametrize("size", _SIZES)
def test_the_multivariate_gamma_function(size):
    a = 0.5 * (size - 1) + np.logspace(-6, 3, 19)
    halves = a[:, None] - 0.5 * np.arange(size)
    growth = size * (a * np.log(a) - a)
    scale = 1 + np.abs(growth)
    assert_allclose(precise(lambda t: log_multigamma(t, size))(a), [multigammaln(t, size) for t in a], rtol=1e-12)
    rest = precise(lambda t: multigamma_rest(t, size))(a)
    assert np.max(np.abs(rest + growth - [multigammaln(t, size) for t in a]) / scale) < 1e-13
    gap, slope = precise(lambda t: multigamma_gap(t, size))(a)
    assert_allclose(gap, size * np.log(a) - digamma(halves).sum(axis=1), rtol=1e-9)
    assert_allclose(slope, size / a - polygamma(1, halves).sum(axis=1), rtol=1e-9)
    back = precise(lambda g: inverse_multigamma_gap(g, size))(gap)
    assert_allclose(back, a, rtol=1e-13)
    # far out: d (d + 1) / (4 a) + O((d / a)^2)
    far = np.array([1e6, 1e9, 1e12])
    gap, _ = precise(lambda t: multigamma_gap(t, size))(far)
    assert np.all(np.abs(gap / (size * (size + 1) / (4 * far)) - 1) < size / far + 1e-14)
    assert_allclose(precise(lambda g: inverse_multigamma_gap(g, size))(gap), far, rtol=1e-13)


@pytest.mark.parametrize("size", _SIZES)
def test_the_divergence_of_the_multivariate_gamma_function(size):
    least = 0.5 * (size - 1)
    u = np.array([1e-4, 0.1, 1.0, 30.0, 1e3])[:, None]
    a, b = u + least, u * np.array([1e-3, 0.2, 0.9, 1.1, 4.0, 6.0, 1e3]) + least
    a = np.broadcast_to(a, b.shape)
    divergence = precise(lambda t, s: multigamma_divergence(t, s, size))
    rest = precise(lambda t: multigamma_rest(t, size))
    gap = precise(lambda t: multigamma_gap(t, size))
    written_out = rest(b) - rest(a) + gap(a)[0] * (b - a)
    assert_allclose(divergence(b, a), written_out, rtol=1e-9, atol=1e-12)
    # nearby, half the second derivative times the square
    near = (a - least) * (1 + 1e-7) + least
    assert_allclose(divergence(near, a), -0.5 * gap(a)[1] * (near - a) ** 2, rtol=1e-6)
    with jax.enable_x64(True):
        slopes = jax.jit(jax.vmap(jax.grad(lambda t, s: multigamma_divergence(t, s, size), argnums=(0, 1))))
        first, second = slopes(jnp.asarray(b.ravel()), jnp.asarray(a.ravel()))
    assert_allclose(np.asarray(first).reshape(b.shape), gap(a)[0] - gap(b)[0], rtol=1e-10)
    assert_allclose(np.asarray(second).reshape(b.shape), gap(a)[1] * (b - a), rtol=1e-10)
