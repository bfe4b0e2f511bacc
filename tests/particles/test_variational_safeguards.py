"""Safeguards: published numbers, finite differences, and the conditions themselves after every step."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import particles
from cumulant.graphical import Ising, torus
from cumulant.particles import Safeguard, safeguarded_step, weight_model
from cumulant.particles.variational.safeguards import smallest_root, variance_gradient

W, T = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, -1.0, 2.0, 0.5])
EQUAL = np.full(4, 0.25)


def variance(weights, logs):
    new = weights * np.exp(logs)
    new = new / new.sum()
    return np.sum(new**2) - 1 / new.size


def test_the_model_of_the_variance():
    assert_allclose(weight_model(W, T), (0.05, 0.04, 0.434 / 2), rtol=1e-12)
    h = 1e-4
    ahead, here, behind = (variance(W, a * T) for a in (h, 0.0, -h))
    assert_allclose(
        weight_model(W, T)[1:], [(ahead - behind) / (2 * h), (ahead - 2 * here + behind) / (2 * h * h)], rtol=1e-6
    )
    statistics = np.random.default_rng(0).normal(size=(4, 3))
    slopes = [weight_model(W, column).slope for column in statistics.T]
    assert_allclose(variance_gradient(W, statistics), slopes, rtol=1e-12)


def test_the_model_of_rao_blackwellised_weights():
    family = particles.IsingFamily(Ising(torus(4, 4), 0.5), "edge")
    rng = np.random.default_rng(1)
    x_A, _ = family.begin(4, rng)
    theta, d = rng.normal(size=(2, family.dim)) * 0.3
    means, spread = family.block_means(x_A, theta) @ d, family.block_products(x_A, theta, d) @ d
    model = weight_model(W, means, spread)
    h, now = 1e-3, family.block_values(x_A, theta)
    ahead, behind = (variance(W, family.block_values(x_A, theta + a * d) - now) for a in (h, -h))
    assert_allclose(model[1:], [(ahead - behind) / (2 * h), (ahead - 2 * 0.05 + behind) / (2 * h * h)], rtol=1e-4)


def test_published_roots():
    step, rule = safeguarded_step(W, T, 1.0)
    assert rule == "variance"
    assert_allclose(step, 0.1998948286, atol=5e-11)
    assert_allclose(variance(W, step * T), 0.06656843, atol=5e-9)
    step, rule = safeguarded_step(EQUAL, T, 1.0)
    assert rule == "ess"
    assert_allclose(step, 0.3079201436, atol=5e-11)
    assert_allclose(1 / (variance(EQUAL, step * T) + 0.25), 3.64189, atol=5e-6)
    assert_allclose(step, 1 / (3 * T.std()), rtol=1e-12)
    exact = Safeguard("exact")
    assert_allclose(safeguarded_step(W, T, 1.0, exact, log_ratios=lambda a: a * T).step, 0.2006783788, atol=1e-7)
    assert_allclose(safeguarded_step(EQUAL, T, 1.0, exact, log_ratios=lambda a: a * T).step, 0.3287873502, atol=1e-7)
    # At equal weights the variance rule allows nothing.
    assert smallest_root(*reversed(weight_model(EQUAL, T)[1:]), 0.0) == 0.0
    assert_allclose(particles.least_steps_between_resamplings(100, 50), 7.6, atol=0.05)
    assert_allclose(particles.least_steps_between_resamplings(100, 50, Safeguard(variance=0.95)), 42.8, atol=0.05)


@pytest.mark.parametrize(
    ("curvature", "slope", "level", "root"),
    [
        (1.0, 0.0, 4.0, 2.0), (1.0, -3.0, 4.0, 4.0), (1.0, 3.0, 4.0, 1.0), (-1.0, 3.0, 2.0, 1.0),
        (-1.0, -3.0, 2.0, np.inf), (-1.0, 1.0, 2.0, np.inf), (0.0, 2.0, 4.0, 2.0), (0.0, -2.0, 4.0, np.inf),
        (0.0, 0.0, 1.0, np.inf), (1e-300, 2.0, 4.0, 2.0), (-1e-300, 2.0, 4.0, 2.0), (1.0, 1.0, -1.0, 0.0),
    ],
)  # fmt: skip
def test_smallest_roots(curvature, slope, level, root):
    assert_allclose(smallest_root(curvature, slope, level), root, rtol=1e-14)


@pytest.mark.parametrize("mode", ["exact", "line-search"])
def test_exact_steps_satisfy_a_rule_at_every_step(mode):
    rule, n = Safeguard(mode), 50
    result = particles.variational_smc(Ising(torus(4, 4), 1.0), n, 40, safeguard=rule, family="edge", rng=0)
    ess, resampled = result.trace["ess"], result.trace["resampled"]
    before = np.where(resampled[:-1] == 1, n, ess[:-1])
    old, new = 1 / before - 1 / n, 1 / ess[1:] - 1 / n
    assert np.all((rule.variance * new <= old + 1e-12) | (rule.ess * n / ess[1:] <= 1 + 1e-12))
    assert np.all(result.trace["step_size"][1:] > 0)


def test_refusals():
    with pytest.raises(ValueError, match="needs log_ratios"):
        safeguarded_step(W, T, 1.0, Safeguard("exact"))
    with pytest.raises(ValueError, match="needs curvatures"):
        safeguarded_step(W, T, 1.0, Safeguard("rb-quadratic"))
    with pytest.raises(ValueError, match="mode must be one of"):
        Safeguard("quadratic")
    with pytest.raises(ValueError, match="variance must be strictly between 0 and 1"):
        Safeguard(variance=1.5)


@pytest.mark.parametrize(
    ("weights", "projections", "cap", "words"),
    [
        ([0.5, np.nan], [1.0, 2.0], 1.0, "weights must be finite"),
        ([5.0, 5.0], [1.0, 2.0], 1.0, "that sum to one; their sum is 10"),
        ([1.5, -0.5], [1.0, 2.0], 1.0, "none negative"),
        ([0.5, 0.5], [1.0, 2.0, 3.0], 1.0, "projections must be a number for each of the 2 weights; got 3"),
        ([0.5, 0.5], [1.0, np.inf], 1.0, "projections must be finite"),
        ([0.5, 0.5], [1.0, 2.0], -1.0, "cap must be positive"),
    ],
)
def test_what_no_rule_can_judge_is_refused(weights, projections, cap, words):
    """A step is never allowed because a comparison with NaN is false."""
    with pytest.raises(ValueError, match=words):
        particles.safeguarded_step(weights, projections, cap)


def test_sizes_at_which_nothing_is_resampled_are_refused():
    with pytest.raises(ValueError, match="threshold must be an effective size between 0 and n = 100; got 200"):
        particles.least_steps_between_resamplings(100, 200)
