"""Likelihoods, the cumulant as an entropy, and stochastic mirror descent as a MAP estimate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import families, optim
from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.optim.problems.likelihoods import certify_likelihood

FAMILIES = {
    "exponential": (families.Exponential(), np.array([-0.7]), np.array([-2.0])),
    "normal": (families.Normal(), np.array([0.5, -0.3]), np.array([-1.0, -1.0])),
    "categorical": (families.Categorical(3), np.array([0.2, -0.4]), np.array([1.0, 1.0])),
}


@pytest.mark.parametrize("name", ["exponential", "normal"])
def test_the_cumulant_as_an_entropy(name):
    family, theta, other = FAMILIES[name]
    psi = optim.CumulantEntropy(family)
    np.testing.assert_allclose(psi.gradient(theta), family.to_mean(theta), rtol=1e-13)
    np.testing.assert_allclose(psi.conjugate_gradient(psi.gradient(theta)), theta, rtol=1e-10)
    assert psi.divergence(theta, other) == pytest.approx(family.kl(other, theta), rel=1e-12)
    v = np.linspace(1, 2, family.dim)
    np.testing.assert_allclose(psi.hessian_apply(theta, v), family.fisher(theta) @ v, rtol=1e-12)
    np.testing.assert_allclose(psi.inverse_hessian_apply(theta, psi.hessian_apply(theta, v)), v, rtol=1e-10)
    fenchel = psi.value(theta) + psi.conjugate(psi.gradient(theta)) - theta @ np.asarray(psi.gradient(theta))
    assert fenchel == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_gap_is_a_kullback_leibler_divergence(name):
    family, theta, other = FAMILIES[name]
    problem = optim.NegativeLogLikelihood(family, family.to_mean(theta))
    gap = problem.value(other) - problem.value(theta)
    certificate = certify_likelihood(problem, other)
    assert certificate.bound == pytest.approx(gap, rel=1e-10)
    assert abs(gap - certificate.bound) <= certificate.slack
    assert certificate.verify(Subject(problem, other)).bound == certificate.bound
    np.testing.assert_allclose(problem.gradient(theta), 0, atol=1e-14)
    assert certify_likelihood(problem, theta).upper < 1e-12


def test_no_certificate_where_there_is_no_estimate():
    problem = optim.SampleLikelihood.of(families.Poisson(), np.zeros(4))
    with pytest.raises(CertificateError, match="not shown that a finite maximum-likelihood estimate exists"):
        certify_likelihood(problem, np.array([0.0]))
    outside = optim.NegativeLogLikelihood(families.Exponential(), [2.0])
    with pytest.raises(CertificateError, match="not shown that theta is a natural parameter of the family"):
        certify_likelihood(outside, np.array([0.3]))
    assert outside.value([0.3]) == np.inf


@pytest.mark.parametrize("n0", [0.0, 0.5])
@pytest.mark.parametrize("name", ["normal", "categorical"])
def test_with_steps_one_over_n_it_is_the_map_estimate(name, n0):
    family, theta, start = FAMILIES[name]
    x = family.sample(theta, 400, rng=3)
    problem = optim.SampleLikelihood.of(family, x)
    solver = optim.StochasticMirrorDescent(family, optim.InverseCount(n0))
    result = optim.run(solver, problem, start, max_steps=400, tol=None)
    expected = family.map(x, families.ConjugatePrior(family.to_mean(start), n0)) if n0 else family.mle(x)
    np.testing.assert_allclose(result.x, expected, rtol=1e-10)
    np.testing.assert_allclose(
        family.to_mean(result.x), (n0 * family.to_mean(start) + problem.statistics.sum(0)) / (n0 + 400), rtol=1e-12
    )


def test_streaming_equals_batch_over_ten_thousand_samples_in_any_order():
    family = families.Exponential()
    x = family.sample([-0.5], 10_000, rng=0)
    solver = optim.StochasticMirrorDescent(family, optim.InverseCount(2.0))
    for order in (x, x[::-1], np.sort(x)):
        result = optim.run(solver, optim.SampleLikelihood.of(family, order), [-1.0], max_steps=10_000, tol=None)
        assert result.state.mean[0] == pytest.approx((2.0 + x.sum()) / 10_002, abs=1e-12)


def test_an_estimate_on_the_boundary_is_not_a_crash_and_not_a_nan():
    family = families.Normal()
    problem = optim.SampleLikelihood.of(family, np.arange(6.0))
    solver = optim.StochasticMirrorDescent(family, optim.InverseCount(0))
    result = optim.run(solver, problem, [0.0, -0.5], max_steps=6, every=1, tol=None)
    assert result.trace.value[1] == np.inf  # one observation: no variance
    assert np.all(np.isfinite(result.trace.value[2:]))
    np.testing.assert_allclose(result.x, family.mle(np.arange(6.0)), rtol=1e-12)
    stuck = optim.run(solver, problem, [0.0, -0.5], max_steps=1, tol=None)
    assert stuck.status == "diverged"
    np.testing.assert_array_equal(stuck.x, [0.0, -0.5])  # the last theta there was


def test_drawing_with_replacement_depends_on_the_seed_only():
    family = families.Exponential()
    problem = optim.SampleLikelihood.of(family, family.sample([-0.5], 50, rng=0))
    solver = optim.StochasticMirrorDescent(family, 0.1, order="random")
    first, again, other = (optim.run(solver, problem, [-1.0], max_steps=30, tol=None, rng=seed).x for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_stochastic_step_is_unbiased():
    # Given mu, the mean of the next mu over the draw is mu - gamma grad f(theta), exactly: average over all rows.
    family = families.Normal()
    x = np.arange(5.0)
    problem = optim.SampleLikelihood.of(family, x)
    solver = optim.StochasticMirrorDescent(family, 0.25)
    theta = np.array([0.2, -0.4])
    with jax.enable_x64(True):
        state = solver.init(problem, jnp.asarray(theta), 0)
        moved = [np.asarray(solver.step(problem, state._replace(step=k)).mean) for k in range(5)]
    expected = family.to_mean(theta) - 0.25 * problem.gradient(theta)
    np.testing.assert_allclose(np.mean(moved, axis=0), expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.NegativeLogLikelihood(families.Normal(), [1.0]), ValueError, "mean must have 2 entries"),
        (lambda: optim.SampleLikelihood(families.Normal(), np.zeros((0, 2))), ValueError, "there are no observations"),
        (
            lambda: optim.StochasticMirrorDescent(families.Normal(), order="sorted"),
            ValueError,
            "order must be 'stream' or 'random'",
        ),
        (
            lambda: optim.StochasticMirrorDescent(families.Normal(), 0.0),
            ValueError,
            "schedule must be a positive number",
        ),
        (
            lambda: optim.run(
                optim.StochasticMirrorDescent(families.Normal(), 1.5),
                optim.SampleLikelihood.of(families.Normal(), [1.0, 2.0]),
                [0.0, -1.0],
            ),
            ValueError,
            r"steps must be in \(0, 1\]",
        ),
        (
            lambda: optim.run(
                optim.StochasticMirrorDescent(families.Normal()),
                optim.SampleLikelihood.of(families.LogNormal(), [1.0, 2.0]),
                [0.0, -1.0],
            ),
            ValueError,
            "the solver is for",
        ),
        (
            lambda: optim.run(
                optim.StochasticMirrorDescent(families.Exponential()),
                optim.NegativeLogLikelihood(families.Exponential(), [1.0]),
                [-1.0],
            ),
            TypeError,
            "takes a SampleLikelihood",
        ),
    ],
)
def test_bad_input_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
