"""Self-concordance constants, and the certificate they give, against the divergence it bounds."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError
from cumulant.families import (
    Categorical,
    Exponential,
    GammaKnownShape,
    Normal,
    NormalKnownMean,
    NormalKnownVariance,
    Poisson,
    risk,
)
from cumulant.families.bernoulli import Bernoulli
from cumulant.families.gamma import Gamma


def test_omega_and_its_conjugate():
    s = np.linspace(0, 0.9, 10)
    # omega*(s) = sup_t s t - omega(t), attained at t = s/(1 - s).
    t = s / (1 - s)
    assert_allclose(risk.omega_star(s), s * t - risk.omega(t), atol=1e-14)
    assert risk.omega_star(1.0) == np.inf


def test_the_radius_is_the_crossing():
    gap = lambda t: risk.omega_star(t / (1 - t)) - t**2  # noqa: E731
    crossing = brentq(gap, 0.1, 0.3, xtol=1e-14)
    assert_allclose(crossing, 0.215344, atol=1e-6)
    assert_allclose(risk.QUADRATIC_RADIUS, crossing, atol=1e-9)
    assert crossing >= risk.QUADRATIC_RADIUS
    # Normal variance: with u = (mu* - mu)/mu*, KL = (1/2)(u/(1-u) + log(1-u)) reaches the squared norm u^2/2 at u =
    # .41225.
    exact = brentq(lambda u: u / (1 - u) + np.log1p(-u) - u**2, 0.2, 0.6)
    assert_allclose(exact, 0.412250, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 3.0])
def test_the_ratio_of_a_logarithm(alpha):
    family = GammaKnownShape(alpha)
    found = risk.check_self_concordance(family.conjugate, [[0.01], [1.0], [50.0]], [[1.0], [-2.0], [0.5]])
    assert_allclose(found.ratios, alpha**-0.5, rtol=1e-10)
    assert_allclose(risk.self_concordance_constant(family), alpha**-0.5)


def test_the_constant_of_the_normal_is_an_upper_bound_and_is_reached():
    rng = np.random.default_rng(0)
    mean, spread = rng.normal(size=400), rng.uniform(0.05, 4, size=400)
    points = np.stack([mean, mean**2 + spread], axis=1)
    directions = np.vstack([rng.normal(size=(399, 2)), [[0.0, 1.0]]])
    found = risk.check_self_concordance(Normal().conjugate, points, directions)
    assert_allclose(found.constant, np.sqrt(2), rtol=1e-6)
    assert np.all(found.ratios <= risk.self_concordance_constant(Normal()) * (1 + 1e-9))


def test_bernoulli_is_not_self_concordant_near_the_ends():
    entropy = lambda m: jnp.sum(m * jnp.log(m) + (1 - m) * jnp.log(1 - m))  # noqa: E731
    mu = np.linspace(0.01, 0.99, 197)[:, None]
    ratios = risk.check_self_concordance(entropy, mu, np.ones_like(mu)).ratios
    inside = mu[:, 0] * (1 - mu[:, 0]) >= 1 / 8
    assert np.array_equal(ratios <= 1, inside)
    assert_allclose([mu[inside].min(), mu[inside].max()], [0.146447, 0.853553], atol=0.005)
    assert risk.self_concordance_constant(Bernoulli()) == np.inf
    assert risk.self_concordance_constant(Categorical(3)) == np.inf
    assert risk.self_concordance_constant(Poisson()) == np.inf
    assert risk.self_concordance_constant(NormalKnownVariance()) == 0


def test_the_published_statement_fails_where_the_constant_is_not_one():
    # Bernoulli: norm .1005 < .21, yet KL = .2203 exceeds its square .0101.
    family = Bernoulli()
    distance = risk.fisher_distance(family, family.natural(probability=0.01), [1e-12])
    kl = family.kl(family.natural(probability=0.01), family.natural(probability=1e-12))
    assert_allclose([distance, kl, distance**2], [0.1005, 0.2203, 0.0101], rtol=3e-3)
    # Gamma with shape .1: norm .2098, KL .0882 > .0440.
    family = GammaKnownShape(0.1)
    mu = 1 - 0.2098 / np.sqrt(0.1)
    theta = family.to_natural(np.array([1.0]))
    distance, kl = risk.fisher_distance(family, theta, [mu]), family.kl(theta, family.to_natural(np.array([mu])))
    assert_allclose([distance, kl, distance**2], [0.2098, 0.0882, 0.0440], rtol=2e-3)


@pytest.mark.parametrize(
    "family", [GammaKnownShape(0.1), NormalKnownMean(), Exponential(), GammaKnownShape(3.0)], ids=str
)
def test_the_corrected_statement_holds_for_gamma_types(family):
    # Everything is free of scale: mu* = 1, and mu on both sides of it.
    rng = np.random.default_rng(1)
    constant = risk.self_concordance_constant(family)
    t = rng.uniform(0, 0.5, size=10_000)
    u = rng.choice([-1, 1], size=t.size) * t / constant / np.sqrt(family.alpha)
    z = 1 / (1 + u)
    kl = family.alpha * (z - 1 - np.log(z))
    assert np.all(kl <= risk.omega_star(t / (1 - t)) / constant**2 * (1 + 1e-10) + 1e-15)
    near = t < risk.QUADRATIC_RADIUS
    assert np.all(kl[near] <= (t[near] / constant) ** 2 * (1 + 1e-10) + 1e-15)


def test_the_corrected_statement_holds_for_the_normal():
    rng = np.random.default_rng(2)
    family, count = Normal(), 20_000
    mean, variance = rng.normal(size=count), rng.uniform(0.1, 5, size=count)
    mu_star = np.stack([mean, mean**2 + variance], axis=1)
    theta_star = family.to_natural(mu_star)
    fisher = family.fisher(theta_star)
    direction = rng.normal(size=(count, 2))
    norm = np.sqrt(np.einsum("ni,nij,nj->n", direction, np.linalg.inv(fisher), direction))
    t = rng.uniform(0, 0.5, size=count)
    mu = mu_star + (t / np.sqrt(2) / norm)[:, None] * direction
    kl = family.kl(theta_star, family.to_natural(mu))
    assert np.all(kl <= risk.omega_star(t / (1 - t)) / 2 * (1 + 1e-9) + 1e-14)
    near = t < risk.QUADRATIC_RADIUS
    share = kl[near] / (t[near] ** 2 / 2)
    assert 0.6 < np.max(share[t[near] > 0.01]) < 0.75  # .69: the certificate is not loose by much


def test_the_certificate():
    family, mu_star, mu = Normal(), np.array([0.0, 1.0]), np.array([0.05, 1.1])
    kl = family.kl(family.to_natural(mu_star), family.to_natural(mu))
    sharp = risk.certify_local_quadratic(risk.LocalQuadratic(family, mu_star), mu)
    square = risk.certify_local_quadratic(risk.LocalQuadratic(family, mu_star, "square"), mu)
    assert isinstance(sharp, Certificate)
    assert kl <= sharp.upper <= square.upper
    assert_allclose(square.upper, risk.fisher_distance(family, family.to_natural(mu_star), mu) ** 2, rtol=1e-12)
    subject = Subject(risk.LocalQuadratic(family, mu_star), mu)
    assert sharp.verify(subject).bound == sharp.bound
    assert square.verify(Subject(risk.LocalQuadratic(family, mu_star, "square"), mu)).bound == square.bound
    assert Certificate.from_json(sharp.to_json()).verify(subject).bound == sharp.bound
    with pytest.raises(CertificateError, match=r"does not hold|not shown"):
        sharp.verify(Subject(risk.LocalQuadratic(family, mu_star), np.array([0.3, 1.4])))


def test_the_certificate_of_a_quadratic_is_exact():
    family = NormalKnownVariance(4.0)
    certificate = risk.certify_local_quadratic(risk.LocalQuadratic(family, [1.0]), [7.0])
    assert_allclose(certificate.bound, family.kl([0.25], [1.75]), rtol=1e-12)


def test_refusals():
    with pytest.raises(CertificateError, match=r"not shown that A\* is self-concordant") as caught:
        risk.certify_local_quadratic(risk.LocalQuadratic(Bernoulli(), [0.5]), [0.5001])
    assert caught.value.assumption == "A* is self-concordant"
    with pytest.raises(CertificateError, match=r"mu\|_F < 0\.5"):
        risk.certify_local_quadratic(risk.LocalQuadratic(Exponential(), [1.0]), [1.6])
    with pytest.raises(CertificateError, match=r"< 0\.2153"):
        risk.certify_local_quadratic(risk.LocalQuadratic(Exponential(), [1.0], "square"), [1.3])
    with pytest.raises(CertificateError, match="no self-concordance constant is known for Gamma"):
        risk.self_concordance_constant(Gamma())
    with pytest.raises(ValueError, match="form must be"):
        risk.certify_local_quadratic(risk.LocalQuadratic(Exponential(), [1.0], "round"), [1.1])
    with pytest.raises(ValueError, match=r"not finite and strictly convex at points\[1\]"):
        risk.check_self_concordance(lambda x: jnp.sum(-jnp.log(x)), [[1.0], [-1.0]], [[1.0], [1.0]])


@pytest.mark.parametrize(
    ("n0", "distance", "constant"), [(0.0, 0.0, 1.0), (10.0, 3.0, 1.0), (2.0, 0.5, 1.41421356), (50.0, 0.01, 1.0)]
)
def test_enough_samples_reach_the_quadratic_regime(n0, distance, constant):
    d = 3
    n = risk.samples_to_quadratic(d, n0, distance, constant)
    # E |mu* - mu_n|_F^2 = (n d + n0^2 D^2)/(n + n0)^2, and E|.| is at most its square root.
    assert (n * d + (n0 * distance) ** 2) / (n + n0) ** 2 <= 1 / (25 * constant**2) * (1 + 1e-12)
    # Without the factor n0 in its second term, as printed, the rule fails.
    if n0 == 10.0:
        printed = 25 * d + 5 * distance - n0
        assert (printed * d + (n0 * distance) ** 2) / (printed + n0) ** 2 > 1 / 25


def test_minus_log_det_is_self_concordant():
    """With equality along the matrix itself in one dimension, and ``1 / sqrt(d)`` along it in ``d``."""
    rng = np.random.default_rng(1)
    for d in (1, 2, 4):
        roots = rng.normal(size=(50, d, d))
        matrices = roots @ np.swapaxes(roots, 1, 2) + 0.01 * np.eye(d)
        directions = rng.normal(size=(50, d, d))
        directions = directions + np.swapaxes(directions, 1, 2)

        def barrier(x, d=d):
            return -jnp.linalg.slogdet(x.reshape(d, d))[1]

        points, other = matrices.reshape(50, -1), directions.reshape(50, -1)
        assert risk.check_self_concordance(barrier, points, other).constant <= 1 + 1e-9
        assert_allclose(risk.check_self_concordance(barrier, points, points).ratios, d**-0.5, rtol=1e-7)
