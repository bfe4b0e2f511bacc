"""Gaussians for regressions by quadrature: expectations against high precision, certificates against the optimum."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from cumulant import optim
from cumulant import variational as vi
from cumulant.certificates import Subject
from cumulant.errors import DomainError
from cumulant.variational.quadrature import expectations
from cumulant.variational.regression import NaturalGradient, RegressionELBO, certify_regression


def problems(seed=0, n=40, d=3):
    rng = np.random.default_rng(seed)
    X, z = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1, size=d), rng.normal(size=d)
    scores = X @ z
    scale = 10.0 ** rng.uniform(-1, 1)
    yield RegressionELBO(vi.linear_regression(X, scores + rng.normal(size=n), 0.7, scale))
    yield RegressionELBO(vi.logistic_regression(X, (rng.random(n) < 1 / (1 + np.exp(-scores))).astype(int), scale))
    counts = rng.poisson(np.exp(np.clip(X[:, 0] / np.abs(X[:, 0]).max(), -3, 3)))
    yield RegressionELBO(vi.poisson_regression(X / np.abs(X).max(), counts, scale))


@pytest.mark.parametrize(
    ("mean", "scale"), [(0.3, 0.0), (0.3, 0.01), (1.0, 0.5), (-3.0, 2.0), (10.0, 5.0), (0.0, 30.0)]
)
def test_expectations_are_within_their_error_of_the_truth(mean, scale):
    mp.mp.dps = 30
    found = expectations("bernoulli", np.array([1.0]), 1.0, np.array([mean]), np.array([scale]))

    def truth(g):
        if scale == 0:
            return g(mp.mpf(mean))
        cuts = sorted({-12.0, -6.0, -2.0, 0.0, 2.0, 6.0, 12.0, max(min(-mean / scale, 12.0), -12.0)})
        return mp.quad(lambda u: g(mean + scale * u) * mp.npdf(u), cuts)

    def sigmoid(s):
        return 1 / (1 + mp.exp(-s))

    exact = [
        truth(lambda s: mp.log(1 + mp.exp(-s))),
        truth(lambda s: -sigmoid(-s)),
        truth(lambda s: sigmoid(s) * sigmoid(-s)),
    ]
    for got, value in zip(found[:3], exact, strict=True):
        assert abs(got[0] - value) <= found.error[0]
    assert found.error[0] < 1e-10


def test_scores_too_wide_are_refused():
    with pytest.raises(DomainError, match="standard deviations"):
        expectations("bernoulli", np.array([1.0]), 1.0, np.array([0.0]), np.array([1e9]))


@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_those_of_the_values(seed):
    rng = np.random.default_rng(seed)
    for problem in problems(seed):
        d = problem.target.dim
        A = np.tril(rng.normal(size=(d, d)), -1) * 0.1 + np.diag(rng.uniform(0.2, 0.6, size=d))
        w = problem.gaussian.pack(0.3 * rng.normal(size=d), A)
        value, gradient = problem.value_and_gradient(w)
        for i in range(d):
            for j in range(i + 2):
                step = 1e-5 * np.eye(d * (d + 1))[i * (d + 1) + j].reshape(d, d + 1)
                slope = (problem.value(w + step) - problem.value(w - step)) / 2e-5
                assert_allclose(gradient[i, j], slope, rtol=1e-5, atol=1e-6 * abs(value))


def test_a_linear_regression_is_fitted_exactly_and_the_bound_on_the_evidence_is_the_evidence():
    problem = next(problems(1))
    X, y = problem.target.data[:2]
    scale = problem.target.data[2][0, 0] ** -0.5
    result = optim.run(NaturalGradient(), problem, problem.gaussian.pack(0.0, 1.0), tol=1e-9)
    P = np.eye(3) / scale**2 + X.T @ X / 0.49
    assert_allclose(result.x[:, 0], np.linalg.solve(P, X.T @ y / 0.49), rtol=1e-8)
    assert_allclose(result.x[:, 1:] @ result.x[:, 1:].T, np.linalg.inv(P), rtol=1e-7)
    evidence = multivariate_normal.logpdf(y, cov=0.49 * np.eye(len(y)) + scale**2 * X @ X.T)
    assert_allclose(-result.value, evidence, rtol=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_certificates_bound_the_distance_from_the_best(seed):
    """At the steps of a run and at random points around the best, which a run to rounding finds."""
    rng = np.random.default_rng(seed)
    for problem in problems(seed, n=25):
        start = problem.gaussian.pack(0.0, 0.3)
        best = optim.run(NaturalGradient(), problem, start, tol=1e-15, max_steps=60)
        least, near = best.value, best.x
        assert best.certificate.upper < 1e-6 * max(abs(least), 1)
        points = [start, *(optim.run(NaturalGradient(), problem, start, tol=None, max_steps=k).x for k in (1, 2, 4))]
        points += [near + 10.0**-k * np.tril(rng.normal(size=near.shape), 1) * np.abs(near) for k in range(1, 6)]
        for w in points:
            if not np.all(np.diagonal(w[:, 1:]) > 0):
                continue
            certificate = certify_regression(problem, w)
            assert problem.value(w) - least <= certificate.upper + 1e-12 * abs(least)
            apart = float(np.linalg.norm(w - near))
            assert (
                apart
                <= certificate.details["W2 to the best Gaussian"] + best.certificate.details["W2 to the best Gaussian"]
            )
            certificate.verify(Subject(problem, w))


def test_few_steps_suffice_where_the_data_are_many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 10)) * np.geomspace(1, 0.1, 10)
    y = (rng.random(500) < 1 / (1 + np.exp(-X @ rng.normal(size=10)))).astype(int)
    problem = RegressionELBO(vi.logistic_regression(X, y))
    result = optim.run(NaturalGradient(), problem, problem.gaussian.pack(0.0, 1.0), tol=1e-8)
    assert result.status == "converged"
    assert result.work <= 8


def test_separable_data_and_extreme_columns():
    """Perfectly separated classes and columns of 1e-6 and 1e3: still certified."""
    X = np.array([[1e-6, 1e3], [2e-6, 2e3], [-1e-6, -1e3], [3e-6, -5e2]])
    problem = RegressionELBO(vi.logistic_regression(X, [1, 1, 0, 0], prior_scale=0.1))
    result = optim.run(NaturalGradient(), problem, problem.gaussian.pack(0.0, 1e-3), tol=1e-6, max_steps=300)
    assert result.status == "converged"
    other = optim.run(NaturalGradient(), problem, problem.gaussian.pack(0.0, 1e-2), tol=1e-6, max_steps=300)
    assert abs(other.value - result.value) <= max(result.certificate.upper, other.certificate.upper)


def exact_logistic(sign, mean, scale):
    cuts = [-12, -6, -2, 0, 2, 6, 12]
    loss = mp.quad(lambda u: mp.log(1 + mp.exp(-sign * (mean + scale * u))) * mp.npdf(u), cuts)
    return loss, mp.quad(lambda u: -sign / (1 + mp.exp(sign * (mean + scale * u))) * mp.npdf(u), cuts)


@pytest.mark.parametrize("seed", range(8))
def test_scores_that_cancel_are_counted_in_the_error(seed):
    """Columns of 1e8 that nearly cancel: value and gradient against 50 digits."""
    mp.mp.dps = 50
    rng = np.random.default_rng(seed)
    big = 1e8 * rng.normal(size=6)
    X = np.stack([big, big * (1 + 1e-9 * rng.normal(size=6))], axis=1)
    y = rng.integers(0, 2, size=6)
    for target in (vi.linear_regression(X, y, 1.0, 1.0), vi.logistic_regression(X, y)):
        problem = RegressionELBO(target)
        w = problem.gaussian.pack([0.7, -0.7 + 1e-9], np.array([[1e-9, 0.0], [1e-10, 1e-9]]))
        found = problem.evaluate(w)
        signs, exact_value, slope = target.data[1], mp.mpf(0), [mp.mpf(0), mp.mpf(0)]
        m, C = [mp.mpf(v) for v in w[:, 0]], mp.matrix(w[:, 1:].tolist())
        for i in range(6):
            row = [mp.mpf(v) for v in X[i]]
            mean = row[0] * m[0] + row[1] * m[1]
            spread = [row[0] * C[0, j] + row[1] * C[1, j] for j in range(2)]
            scale = mp.sqrt(spread[0] ** 2 + spread[1] ** 2)
            if target.likelihood == "normal":
                exact_value += ((mean - signs[i]) ** 2 + scale**2) / 2
                first = mean - signs[i]
            else:
                loss, first = exact_logistic(mp.mpf(signs[i]), mean, scale)
                exact_value += loss
            slope = [slope[j] + row[j] * first for j in range(2)]
        apart = mp.sqrt(sum((mp.mpf(found.gradient[j, 0]) - slope[j] - m[j]) ** 2 for j in range(2)))
        assert apart <= found.error
        exact_value += (m[0] ** 2 + m[1] ** 2 + sum(C[i, j] ** 2 for i in range(2) for j in range(2))) / 2
        exact_value -= mp.mpf(target.data[3]) + mp.log(C[0, 0]) + mp.log(C[1, 1]) + 1 + mp.log(2 * mp.pi)
        assert abs(mp.mpf(found.value) - exact_value) <= found.value_error
