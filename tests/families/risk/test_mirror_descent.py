"""The posterior mode is mirror descent: streaming equals batch, one full step is the MLE, and Bregman duality."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.families import ConjugatePrior, Normal, NormalKnownMean, StreamingMAP

# Two here; the laws over all families are tested with the families themselves.
FAMILIES = [(NormalKnownMean(), [-0.7], [-0.2]), (Normal(), [0.4, -0.5], [-1.0, -0.2])]


@pytest.mark.parametrize("family", [Normal()], ids=str)
def test_streaming_is_batch_in_any_order(family):
    rng = np.random.default_rng(0)
    x = rng.normal(1.0, 2.0, size=10_000)
    prior = ConjugatePrior([0.0, 1.0], 2.5)
    batch = family.map(x, prior)
    stream, backwards = StreamingMAP(family, prior), StreamingMAP(family, prior)
    for piece in np.split(x, 100):
        stream = stream.update(piece)
    for piece in np.split(x[::-1], 50):
        backwards = backwards.update(piece)
    assert_allclose(stream.theta, batch, rtol=1e-12)
    assert_allclose(backwards.theta, batch, rtol=1e-12)


def test_the_recursion_with_decreasing_steps_is_the_posterior_mode():
    rng = np.random.default_rng(1)
    statistics = rng.chisquare(1, size=10_000)
    n0, mu0 = 1.5, 2.0
    mu = mu0
    for n, t in enumerate(statistics, start=1):
        mu = mu - (mu - t) / (n0 + n)
    assert_allclose(mu, (n0 * mu0 + statistics.sum()) / (n0 + statistics.size), rtol=1e-12)
    family = NormalKnownMean()
    assert_allclose(
        family.map(np.sqrt(statistics), ConjugatePrior([mu0], n0)), family.to_natural(np.array([mu])), rtol=1e-12
    )


@pytest.mark.parametrize(("family", "theta", "other"), FAMILIES, ids=[str(f[0]) for f in FAMILIES])
def test_one_full_step_of_mirror_descent_is_the_maximum_likelihood_estimate(family, theta, other):
    x = family.sample(np.asarray(other), 60, rng=2)
    target = family.collect(x).mean
    gradient = family.to_mean(np.asarray(theta)) - target  # of f(theta) = A(theta) - <target, theta>
    landed = family.to_natural(family.to_mean(np.asarray(theta)) - 1.0 * gradient)
    assert_allclose(landed, family.mle(x), rtol=1e-8)


@pytest.mark.parametrize(("family", "theta", "other"), FAMILIES[1:], ids=["normal"])
def test_bregman_duality(family, theta, other):
    theta, other = np.asarray(theta), np.asarray(other)
    mu, nu = family.to_mean(theta), family.to_mean(other)
    kl = family.kl(theta, other)
    assert_allclose(family.bregman(other, theta), kl, rtol=1e-10)
    assert_allclose(family.bregman_conjugate(mu, nu), kl, rtol=1e-10)
    by_hand = family.conjugate(mu) - family.conjugate(nu) - np.sum(other * (mu - nu))
    assert_allclose(by_hand, kl, rtol=1e-9)
    assert_allclose(family.to_natural(mu), theta, rtol=1e-9)
    with jax.enable_x64(True):
        hessian = np.asarray(jax.hessian(family.conjugate)(jax.numpy.asarray(mu)))
    assert_allclose(hessian @ family.fisher(theta), np.eye(family.dim), atol=1e-7)


def test_the_divergence_of_the_published_figure():
    assert_allclose(Normal().bregman_conjugate([0.0, 1.0], [1.0, 2.0]), 0.5, rtol=1e-14)
