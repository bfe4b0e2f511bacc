"""Operator norms: exact, and the interval against what it claims."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import random_array
from scipy.sparse.linalg import aslinearoperator, svds

from cumulant.certificates import Subject
from cumulant.errors import DomainError
from cumulant.geometry.norms import PowerMethod, operator_norm, operator_norm_interval


def test_the_exact_norm():
    matrices = np.random.default_rng(0).standard_normal((5, 4, 3))
    assert_allclose(operator_norm(matrices), np.linalg.svd(matrices, compute_uv=False)[:, 0], rtol=1e-13)
    with pytest.raises(DomainError, match="A of operator_norm must be finite"):
        operator_norm([[np.nan]])
    with pytest.raises(ValueError, match="A must be matrices"):
        operator_norm([1.0, 2.0])


@pytest.mark.parametrize(
    "spectrum", [np.ones(30), np.linspace(1, 3, 30), np.r_[5.0, np.ones(29)], np.r_[2.0, np.zeros(29)]]
)
def test_the_interval_contains_the_norm(spectrum):
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.standard_normal((30, 30)))[0] for _ in range(2))
    A = left @ np.diag(spectrum) @ right
    for seed in range(20):
        interval = operator_norm_interval(A, rng=seed)
        assert spectrum.max() in interval
        assert interval.width <= 0.08 * spectrum.max()
    interval.certificate.verify(Subject(A, PowerMethod(seed=seed)))
    assert interval.certificate.kind == "with probability"
    assert interval.certificate.delta == 1e-9


def test_the_failure_probability_is_at_most_delta():
    # With one step and a bold delta the upper end fails now and then; the number of failures is binomial.
    A = np.diag([1.0, 0.2, 0.1])
    runs, delta = 2000, 0.2
    failures = sum(operator_norm_interval(A, steps=1, delta=delta, rng=seed).upper < 1.0 for seed in range(runs))
    assert failures <= runs * delta + 4 * np.sqrt(runs * delta * (1 - delta))
    assert failures >= runs * delta / 3  # the bound is not idle here: only the leading coordinate matters


def test_sparse_matrices_and_operators():
    A = random_array((200, 80), density=0.05, rng=np.random.default_rng(2)).tocsr()
    norm = svds(A, k=1, return_singular_vectors=False)[0]
    for each in (A, aslinearoperator(A)):
        interval = operator_norm_interval(each)
        assert norm in interval
        assert interval.width < 0.08 * norm


@pytest.mark.parametrize("scale", [1e-250, 1e-160, 1e160, 1e250])
def test_the_interval_at_scales_whose_squares_are_not_numbers(scale):
    A = np.random.default_rng(3).standard_normal((7, 5))
    assert scale * np.linalg.norm(A, 2) in operator_norm_interval(scale * A)


def test_corners():
    for tiny in ([[2e-323], [5e-324]], [[-1.5e-323, -1e-323]], [[1.36044620248526e-310], [1.00239827284394e-310]]):
        norm = float(np.hypot(*np.ravel(tiny) * 2.0**1000)) * 2.0**-1000  # products lose digits, and all of them
        interval = operator_norm_interval(np.array(tiny))
        assert interval.lower <= norm <= interval.upper < 1e-290
    assert operator_norm_interval(np.zeros((3, 2))).upper < 1e-290  # products cannot tell zero from what underflows
    for bad in ({"delta": 0.0}, {"steps": 0}):
        with pytest.raises(ValueError, match="must be"):
            operator_norm_interval(np.eye(2), **bad)
    with pytest.raises(ValueError, match="A must be a matrix"):
        operator_norm_interval(np.ones(3))
    with pytest.raises(ValueError, match="A must be finite"):
        operator_norm_interval(np.array([[np.inf, 0.0], [0.0, 1.0]]))
