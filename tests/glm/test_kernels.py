"""Compiled loops against slow and obvious versions of themselves."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from cumulant.glm.objective.design import dot, unsigned
from cumulant.glm.objective.loss_kernels import row_conjugate, row_terms
from cumulant.glm.objective.losses import loss_of
from cumulant.glm.solvers.coordinate_kernels import descend_columns, descend_gram, descend_model
from cumulant.glm.solvers.dual_ascent_kernels import ascend
from cumulant.glm.solvers.quadratic_model import polish
from cumulant.randomness_kernels import uniform_pair
from tests.compiled import from_python
from tests.glm.cases import FAMILIES, features, observations
from tests.reference import glm as reference


@pytest.mark.parametrize("l1", [0.0, 0.01])
@pytest.mark.parametrize("family", FAMILIES)
def test_an_epoch_of_dual_ascent(family, l1):
    X, l2 = features(n=30), 0.05
    y = observations(family, X)
    rng = np.random.default_rng(3)
    weights = rng.random(30)
    weights /= weights.sum()
    offset = 0.1 * rng.normal(size=30)
    uniforms = from_python(uniform_pair)
    rows = [min(int(uniforms(5, 0, 2, u)[1] * 30), 29) for u in range(60)]
    expected = reference.dual_epoch(family, X, y, weights, offset + 0.2, np.zeros(30), l1, l2, rows)
    slopes, v, loss = np.zeros(30), np.zeros(X.shape[1]), loss_of(family, y)
    ascend(
        loss.code, 1.0, *unsigned(sp.csr_matrix(X)), y, offset, weights, 0.2, slopes, v, l1, l2, (X**2).sum(axis=1),
        np.ones(64), np.ones(30), 0, 0.0, 60, 5, 2,
    )  # fmt: skip
    assert_allclose(slopes, expected, atol=1e-8)
    assert_allclose(v, -(X.T @ (weights * slopes)) / l2, atol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_row_is_a_row_of_many(family):
    y = observations(family, features(n=41))
    eta, loss = np.linspace(-5, 5, 41), loss_of(family, y)
    value, slope, curvature = loss.terms(eta)
    conjugates, terms, conjugate = loss.conjugate(slope), from_python(row_terms), from_python(row_conjugate)
    for i in range(41):
        one = terms(loss.code, 1.0, eta[i], y[i])
        assert_allclose(one[1:], (slope[i], curvature[i]), rtol=1e-13, atol=1e-300)
        # without the constant, so that value and conjugate still add up
        gap = one[0] + conjugate(loss.code, 1.0, slope[i], y[i]) - slope[i] * eta[i]
        assert_allclose(gap, value[i] + conjugates[i] - slope[i] * eta[i], atol=1e-11)


def test_coordinate_descent_on_a_quadratic_model():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 12))
    weights = rng.random(40) / 40
    Z = np.column_stack([A, np.ones(40)])
    hessian = Z.T @ (weights[:, None] * Z) + np.diag([0.01] * 12 + [0.0])
    gradient, x = 0.1 * rng.normal(size=13), np.where(rng.random(13) < 0.5, rng.normal(size=13), 0.0)
    penalised = np.array([True] * 12 + [False])
    expected = reference.lasso_model(hessian, gradient, x, 0.05, penalised)
    by_gram, polished = np.zeros(13), np.zeros(13)
    descend_gram(hessian, gradient, x, 0.05, penalised, 10000, 1e-28, by_gram)
    descend_gram(hessian, gradient, x, 0.05, penalised, 20, 0.0, polished)
    while not polish(hessian, gradient, x, 0.05, ~penalised, polished):
        pass
    assert np.count_nonzero(x + expected == 0) > 0
    for found in (by_gram, polished):
        assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_coordinate_descent_with_the_intercept_minimised_over(l2):
    """By the Gram matrix, by dense and by sparse columns; the gap bounds the distance to the minimum throughout."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(40, 12)) + 1.0
    curvature, slope = rng.random(40) / 40, rng.normal(size=40) / 40
    Z = np.column_stack([A, np.ones(40)])
    hessian = Z.T @ (curvature[:, None] * Z) + np.diag([l2] * 12 + [0.0])
    x = np.where(rng.random(12) < 0.5, rng.normal(size=12), 0.0)
    free = np.array([True] * 12 + [False])
    flat = Z.T @ slope + np.append(l2 * x, 0.0)
    best = reference.lasso_model(hessian, flat, np.append(x, 0.0), 0.02, free)

    def objective(w):
        d = np.append(w - x, 0.0)
        d[-1] = -(hessian[-1] @ d + flat[-1]) / hessian[-1, -1]
        return flat @ d + 0.5 * d @ hessian @ d + 0.02 * np.abs(w).sum()

    least = objective(x + best[:-1])
    total, sums = curvature.sum(), A.T @ curvature
    first = -slope.sum() / total
    gradient = A.T @ slope + first * sums
    energy = float(np.sum((slope + curvature * first) ** 2 / curvature))
    gram = A.T @ (curvature[:, None] * A) - np.outer(sums, sums) / total
    for enough in (1e-3, 1e-12):
        found = []
        w, slopes = x.copy(), gradient.copy()
        _, gap, _ = descend_model(gram, slopes, w, 0.02, l2, energy, enough, enough, 0, 100_000)
        found.append((w, gap))
        for columns in ((np.ascontiguousarray(A.T), None, None, None), (None, *unsigned(sp.csc_matrix(A)))):
            w, image, slopes = x.copy(), np.zeros(40), np.zeros(12)
            _, gap = descend_columns(
                *columns, curvature, sums, total, np.diagonal(gram).copy(), gradient, x, 0.02, l2, energy, enough,
                enough, 0, 100_000, w, image, slopes,
            )  # fmt: skip
            assert_allclose(image, A @ (w - x), atol=1e-12)
            found.append((w, gap))
        for w, gap in found:
            assert -1e-13 <= objective(w) - least <= gap + 1e-13
            assert gap <= enough


def test_sums_of_products():
    a, b = np.random.default_rng(0).normal(size=(2, 5000))
    assert_allclose(dot(a, b), a @ b, rtol=1e-12)
    assert dot(a[:0], b[:0]) == 0


def test_the_second_derivative_of_the_multiclass_loss():
    rng = np.random.default_rng(0)
    mean, change = rng.dirichlet(np.ones(5), size=7), rng.normal(size=(7, 5))
    expected = [(np.diag(p) - np.outer(p, p)) @ v for p, v in zip(mean, change, strict=True)]
    assert_allclose(loss_of("categorical", np.zeros(7), 5).apply(mean, change), expected, atol=1e-15)
