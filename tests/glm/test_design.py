import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from cumulant.glm.objective.design import DenseDesign, SparseDesign, design_of, largest_image


def pair(intercept, n=6002, p=40, density=0.1):
    rng = np.random.default_rng(0)
    X = sp.random(n, p, density, format="csr", random_state=1, data_rvs=rng.standard_normal)
    full = np.column_stack([X.toarray(), np.ones(n)]) if intercept else X.toarray()
    return X, full


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_products_are_those_of_the_matrix(kind, intercept):
    X, full = pair(intercept)
    design = design_of(X if kind == "sparse" else X.toarray(), intercept)
    assert isinstance(design, SparseDesign if kind == "sparse" else DenseDesign)
    rng = np.random.default_rng(2)
    n, p = full.shape
    assert design.shape == (n, p)
    v, u, weights = rng.normal(size=p), rng.normal(size=n), rng.random(n)
    V, U = rng.normal(size=(p, 3)), rng.normal(size=(n, 3))
    assert_allclose(design.times(v), full @ v, atol=1e-12)
    assert_allclose(design.times(V), full @ V, atol=1e-12)
    assert_allclose(design.transposed(u), full.T @ u, atol=1e-11)
    assert_allclose(design.transposed(U), full.T @ U, atol=1e-11)
    assert_allclose(design.weighted(weights, v), full.T @ (weights * (full @ v)), atol=1e-10)
    gram = full.T @ (weights[:, None] * full)
    assert_allclose(design.gram(weights), gram, atol=1e-10)
    assert_allclose(design.cross_gram(u), full.T @ (u[:, None] * full), atol=1e-10)
    assert_allclose(design.squares(weights), np.diagonal(gram), atol=1e-10)
    norms = np.sqrt((X.toarray() ** 2).sum(axis=0))
    found = design.column_norms[: len(norms)]
    assert np.all(found >= norms)
    assert_allclose(found, norms, rtol=1e-10)
    matrix = rng.normal(size=(p, p))
    assert_allclose(largest_image(design, matrix), ((full @ matrix.T) ** 2).sum(axis=1).max(), rtol=1e-12)
    assert_allclose(design.by_columns.toarray(), X.toarray())


@pytest.mark.parametrize("intercept", [True, False])
def test_a_little_gram_matrix(intercept):
    X, full = pair(intercept, n=31, p=5, density=0.9)
    weights = np.random.default_rng(0).random(31)
    expected = full.T @ (weights[:, None] * full)
    assert_allclose(DenseDesign(X.toarray(), intercept).gram(weights), expected, atol=1e-13)


def test_the_answer_does_not_depend_on_the_number_of_threads():
    X = sp.random(4000, 300, 0.4, format="csr", random_state=0)
    answers = []
    for jobs in (1, 2, 3):
        design = SparseDesign(X, True, jobs)
        assert len(design.edges) > 2
        v = np.linspace(-1, 1, 301)
        answers.append((design.weighted(np.ones(4000), v), design.transposed(design.times(v))))
    for other in answers[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(answers[0], other, strict=True))


def test_dense_enough_matrices_become_dense():
    assert isinstance(design_of(sp.random(50, 10, 0.5, format="csr", random_state=0), True), DenseDesign)
