"""The constants that analyses of stochastic mirror descent need, and what they then say about a run."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import chi2

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


def test_published_values_of_the_variance_condition():
    found = risk.smd_assumption_gamma("variance", [1.0, 0.1, 0.01, 1e-3, 1e-4], 0.1, 0.5)
    assert_allclose(found, [0.765, 17.5, 132, 569, 1992], rtol=2e-3)
    assert risk.smd_assumption_gamma("variance", 0.0, 0.1, 0.5) == np.inf
    # For alpha > 1 one step is bounded, by alpha/(alpha - 1)/gamma^2 at mu = 0, which explodes as the step shrinks.
    assert_allclose(risk.smd_assumption_gamma("variance", 0.0, [0.1, 0.01], 3.0), [150, 15000])
    assert_allclose(risk.smd_assumption_gamma("variance", 1e-9, 0.1, 3.0), 150, rtol=1e-6)


def test_published_values_of_the_condition_at_the_optimum():
    found = risk.smd_assumption_gamma("optimum", [1.0, 0.5, 0.21, 0.199, 0.0], 0.1, 0.5)
    assert_allclose(found, [0.7348, 2.610, 20.11, np.inf, np.inf], rtol=3e-4)
    assert np.isfinite(risk.smd_assumption_gamma("optimum", 0.2, 0.1, 0.5))  # on the edge: still E log T


def test_both_conditions_against_plain_quadrature():
    mu, gamma = 0.7, 0.15
    law = chi2(1)  # T = x^2 with variance one

    def mean(f):  # in g = sqrt(T), where the density is smooth
        return 2 * quad(lambda g: f(g * g) * np.exp(-g * g / 2) / np.sqrt(2 * np.pi), 0, 12, epsabs=1e-13, limit=200)[0]

    assert_allclose(mean(lambda t: t), law.mean(), rtol=1e-10)
    centre = (1 - gamma) * mu + gamma
    moved = lambda t: (1 - gamma) * mu + gamma * t  # noqa: E731
    variance = mean(lambda t: 0.5 * (moved(t) - centre) * (1 / centre - 1 / moved(t))) / gamma**2
    phi = lambda z: z - 1 - np.log(z)  # noqa: E731
    optimum = mean(lambda t: 0.5 * phi((mu + 2 * gamma * (t - 1)) / mu)) / (2 * gamma**2)
    assert_allclose(risk.smd_assumption_gamma("variance", mu, gamma, 0.5), variance, rtol=1e-9)
    assert_allclose(risk.smd_assumption_gamma("optimum", mu, gamma, 0.5), optimum, rtol=1e-9)


def test_small_steps_lose_no_digits():
    # As gamma -> 0 both constants tend to alpha Var(T)/mu^2 = 1 at mu = mu*: each is a half second derivative.
    for kind in ("variance", "optimum"):
        assert_allclose(risk.smd_assumption_gamma(kind, 1.0, [1e-4, 1e-8], 0.5), 1.0, rtol=1e-3)


def test_other_families():
    normal = NormalKnownVariance(2.0)
    assert risk.smd_assumption(normal, [0.3], "variance", [5.0], 0.1) == 1.0
    family = Categorical(3)
    theta, mu, gamma = family.natural(probabilities=[0.5, 0.3, 0.2]), np.array([0.3, 0.3]), 0.1
    p, full = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.3, 0.4])
    total_variance = total_optimum = 0.0
    for k in range(3):
        one = np.eye(3)[k]
        a, b = (1 - gamma) * full + gamma * one, (1 - gamma) * full + gamma * p
        total_variance += p[k] * np.sum((a - b) * (np.log(a) - np.log(b)))
        c = full + 2 * gamma * (one - p)
        total_optimum += p[k] * np.sum(c * np.log(c / full))
    assert_allclose(risk.smd_assumption(family, theta, "variance", mu, gamma), total_variance / gamma**2, rtol=1e-10)
    assert_allclose(
        risk.smd_assumption(family, theta, "optimum", mu, gamma), total_optimum / (2 * gamma**2), rtol=1e-10
    )
    assert risk.smd_assumption(family, theta, "optimum", [0.05, 0.5], gamma) == np.inf
    bernoulli = Bernoulli()
    assert np.isfinite(risk.smd_assumption(bernoulli, [0.2], "variance", [0.4], 0.2))
    assert risk.smd_assumption(bernoulli, [0.2], "optimum", [0.1], 0.2) == np.inf
    assert risk.smd_assumption(NormalKnownMean(), [-0.5], "gap", [1.0], 0.1) == risk.gap_constant(
        NormalKnownMean(), [-0.5]
    )


def test_gap_constants():
    assert_allclose(risk.gap_constant(NormalKnownMean(), [-3.0]), 0.635181, rtol=1e-6)
    assert_allclose(risk.gap_constant(Exponential(), [-1.0]), 0.577216, rtol=1e-6)
    family = Categorical(3)
    theta = family.natural(probabilities=[0.5, 0.3, 0.2])
    assert_allclose(risk.gap_constant(family, theta), family.entropy(theta), rtol=1e-12)
    assert risk.gap_constant(Normal(), [0.0, -0.5]) == np.inf
    assert risk.gap_constant(Gamma(), [1.0, -1.0]) == np.inf
    assert risk.gap_constant(NormalKnownVariance(2.0), [1.0], batch=4) == 0.125


@pytest.mark.parametrize("batch", [1, 2, 10])
@pytest.mark.parametrize(
    ("family", "theta"),
    [
        (GammaKnownShape(0.7), [-2.0]),
        (Categorical(3), [0.9, 0.4]),
        (Bernoulli(), [0.4]),
        (Poisson(), [0.5]),
        (Normal(), [0.3, -0.4]),
    ],
    ids=str,
)
def test_gap_constants_are_the_mean_drop_of_the_conjugate(family, theta, batch):
    if batch < risk.gap_batch(family):
        assert risk.gap_constant(family, theta, batch) == np.inf
        return
    draws = risk.sample_mean_statistic(family, theta, batch, 100_000, rng=batch)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(_conjugate(family, draws))
    start = float(family.conjugate(family.to_mean(np.asarray(theta))))
    error = np.std(values) / np.sqrt(values.size)
    assert abs(values.mean() - start - risk.gap_constant(family, theta, batch)) < 4 * error + 1e-12


def _conjugate(family, mu):
    """A* on the closure of the mean domain, where 0 log 0 = 0."""
    if isinstance(family, Poisson):
        return np.where(mu > 0, mu * np.log(np.where(mu > 0, mu, 1.0)) - mu, 0.0)[:, 0]
    if isinstance(family, Categorical | Bernoulli):
        p = np.column_stack([mu, 1 - mu.sum(axis=1)]).clip(0)
        return np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0), axis=1)
    return family.conjugate(mu)


def test_larger_batches_shrink_the_gap_like_half_the_dimension_over_the_batch():
    k = 2000
    for family, theta in (
        (Exponential(), [-1.0]),
        (Categorical(4), [0.1, 0.2, 0.3]),
        (Normal(), [0.3, -0.4]),
        (Poisson(), [1.0]),
    ):
        assert_allclose(k * risk.gap_constant(family, theta, k), family.dim / 2, rtol=0.01)


def test_constant_steps_stay_within_the_gap():
    # mu_0 = 5 mu*, gamma = .1: E KL(p_n || p*) <= (1 - gamma)^n KL(p_0 || p*) + C.
    rng, trials, gamma, start = np.random.default_rng(0), 100_000, 0.1, 5.0
    phi = lambda y: 0.5 * (y - 1 - np.log(y))  # noqa: E731
    mu, seen = np.full(trials, start), {}
    for n in range(1, 101):
        mu = (1 - gamma) * mu + gamma * rng.chisquare(1, size=trials)
        seen[n] = phi(mu)
    checked = [1, 10, 50, 100]
    mean = np.array([seen[n].mean() for n in checked])
    error = np.array([seen[n].std() for n in checked]) / np.sqrt(trials)
    published = np.array([1.037, 0.264, 0.0247, 0.0258])
    assert np.all(np.abs(mean - published) < 4 * error + [5e-4, 5e-4, 5e-5, 5e-5])
    bound = (1 - gamma) ** np.array(checked) * phi(start) + risk.gap_constant(NormalKnownMean(), [-0.5])
    assert_allclose(bound, [1.711, 1.052, 0.641, 0.635], atol=6e-4)
    assert np.all(mean + 3 * error <= bound)


def test_the_table():
    rows = {a.name: (a.holds, a.vanishes, a.on_objective, a.last_iterate) for a in risk.smd_analyses()}
    assert rows == {
        "variance": (False, True, True, False),
        "optimum": (False, True, False, True),
        "gap": (True, False, False, True),
    }


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="kind must be 'variance', 'optimum' or 'gap'; got 'noise'"):
        risk.smd_assumption(Exponential(), [-1.0], "noise", [1.0], 0.1)
    with pytest.raises(ValueError, match="gamma must be strictly between 0 and 1"):
        risk.smd_assumption(Exponential(), [-1.0], "variance", [1.0], 1.5)
    with pytest.raises(NotImplementedError, match="Poisson"):
        risk.smd_assumption(Poisson(), [0.0], "variance", [1.0], 0.1)
    with pytest.raises(ValueError, match="mean parameter of Exponential"):
        risk.smd_assumption(Exponential(), [-1.0], "variance", [-1.0], 0.1)
