"""The distance of a fit from the posterior itself: bounds against integrals over a fine grid."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from cumulant import variational as vi
from cumulant.errors import CertificateError


def posterior(seed, n, d, scale=1.0, prior=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(n, d))
    y = (rng.random(n) < 1 / (1 + np.exp(-X @ rng.normal(size=d)))).astype(int)
    return vi.logistic_regression(X, y, prior_scale=prior)


def truth(fit, width=9.0, points=401):
    """``KL(q | p)``, and the means and standard deviations of ``p``, by the trapezoidal rule around the fit."""
    d = len(fit.mean)
    axis = np.linspace(-width, width, points)
    u = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    z = fit.mean + u @ fit.scale.T
    log_p = np.asarray(fit.target.log_density(z))
    cell = d * np.log(axis[1] - axis[0]) + np.sum(np.log(np.diagonal(fit.scale)))
    log_z = logsumexp(log_p) + cell
    weights = np.exp(log_p + cell - log_z)
    mean = weights @ z
    return log_z - fit.elbo, mean, np.sqrt(weights @ (z - mean) ** 2)


@pytest.mark.parametrize("d", [1, 2])
def test_the_divergence_and_the_moments_are_within_their_bounds(d):
    """Forty posteriors with priors and data of all sizes; the bound fails with probability 1e-4 each."""
    ratios = []
    for seed in range(20):
        n, prior = [1, 3, 10, 40][seed % 4], [0.3, 1.0, 3.0][seed % 3]
        fit = vi.fit(posterior(seed, n, d, prior=prior), accuracy=1e-6)
        bound = vi.bound_divergence(fit, delta=1e-4, rng=seed)
        kl, mean, sd = truth(fit)
        assert kl <= bound.certificate.upper
        errors = np.maximum(np.abs(mean - fit.mean), np.abs(sd - np.linalg.norm(fit.scale, axis=1)))
        assert np.all(errors <= bound.coordinate_error)
        ratios.append(bound.certificate.upper / max(kl, 1e-12))
    assert np.min(ratios) < 30  # it says something where the prior is not much weaker than the data


def test_an_exact_fit_is_known_to_be_exact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    fit = vi.fit(vi.linear_regression(X, rng.normal(size=30)), accuracy=1e-12)
    assert vi.bound_divergence(fit).certificate.upper < 1e-10


@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
def test_columns_that_cancel_do_not_deceive_it(scale):
    """A column of another size: gradients are differences of large numbers. The bound holds, or is refused."""
    rng = np.random.default_rng(1)
    a, b = scale * rng.normal(size=20), rng.normal(size=20)
    X = np.stack([a, b], axis=1)
    y = rng.integers(2, size=20)
    fit = vi.fit(vi.logistic_regression(X, y), accuracy=1e-2)
    try:
        upper = vi.bound_divergence(fit).certificate.upper
    except CertificateError:
        upper = np.inf
    assert truth(fit, points=301)[0] <= upper


def test_a_fit_that_is_far_from_the_target_is_not_called_near():
    fit = vi.fit(posterior(3, 20, 2), accuracy=1e-6)
    away = np.concatenate([fit.parameters[:, :1] + 3.0, fit.parameters[:, 1:]], axis=1)
    moved = dataclasses.replace(fit, parameters=away)
    assert vi.bound_divergence(moved).certificate.upper > 4.0


def test_the_word_of_a_user_is_assumed():
    target = vi.Target(lambda x: -jnp.sum(x**2) / 2, 2, smoothness=1.0, strong_convexity=1.0)
    fit = vi.fit(target, rng=0)
    certificate = vi.bound_divergence(fit).certificate
    assert {a.status for a in certificate.assumptions if "convex" in a.text} == {"assumed"}


def test_what_it_needs_is_named():
    unknown = vi.fit(vi.Target(lambda x: -jnp.sum(x**2) / 2, 1), rng=0)
    with pytest.raises(CertificateError, match="smoothness"):
        vi.bound_divergence(unknown)
    counts = vi.fit(vi.poisson_regression([[1.0], [0.5]], [1, 2]))
    with pytest.raises(CertificateError, match="smoothness"):
        vi.bound_divergence(counts)
    good = vi.fit(posterior(0, 5, 1))
    with pytest.raises(ValueError, match="delta"):
        vi.bound_divergence(good, delta=0.0)
    with pytest.raises(ValueError, match="n must"):
        vi.bound_divergence(good, n=0)
    with pytest.raises(TypeError, match="GaussianFit"):
        vi.bound_divergence(good.target)
