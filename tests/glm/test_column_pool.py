"""A pool of columns against the dense matrix, grown and cut, and products that leave zeros out."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from cumulant.glm import design_of
from cumulant.glm.solvers.column_pool import ColumnPool

RNG = np.random.default_rng(0)
A = RNG.normal(size=(50, 40)) * (RNG.random((50, 40)) < 0.15)
WEIGHTS = RNG.random(50)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_a_pool_is_its_columns(form):
    design = design_of(form(A), True)
    pool = ColumnPool(design, np.array([3, 1, 30]))
    pool = pool.keeping(pool.gram(WEIGHTS)).grown(np.array([7, 20]), WEIGHTS)
    pool = pool.part(np.array([0, 2, 3, 4]))
    columns = [3, 30, 7, 20]
    assert pool.columns.tolist() == columns
    part = A[:, columns]
    assert_allclose(pool.gram(WEIGHTS), part.T @ (WEIGHTS[:, None] * part), atol=1e-14)
    assert_allclose(pool.squares(WEIGHTS), np.diagonal(pool.gram(WEIGHTS)), atol=1e-14)
    assert_allclose(pool.transposed(WEIGHTS), part.T @ WEIGHTS, atol=1e-14)
    for v in (np.array([0.0, 0.0, 2.0, 0.0]), RNG.normal(size=4)):
        assert_allclose(pool.times(v), part @ v, atol=1e-14)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_products_with_few_weights_and_by_columns(form):
    design, few = design_of(form(A), True), np.zeros(41)
    few[[5, -1]] = 2.0, 0.5
    assert_allclose(design.times(few), A @ few[:-1] + 0.5, atol=1e-14)
    _ = design.by_columns
    assert_allclose(design.transposed(WEIGHTS), np.append(A.T @ WEIGHTS, WEIGHTS.sum()), atol=1e-14)
