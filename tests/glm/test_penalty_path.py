"""Paths of penalties against single fits, against coordinate descent elsewhere, and against finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import enet_path

from cumulant.glm import GLM
from tests.glm.cases import FAMILIES, features, observations

X = features()


def test_a_path_of_lassos_as_coordinate_descent_finds():
    y = observations("normal", X)
    path = GLM("normal", l2=0.0, fit_intercept=False, tol=1e-10).path(X, y)
    _, coefs, _ = enet_path(X, y, l1_ratio=1.0, alphas=path.l1, tol=1e-12, max_iter=100_000)
    assert_allclose(path.coef, coefs.T, atol=1e-6)
    assert path.degrees_of_freedom[0] == 0
    assert np.array_equal(path.degrees_of_freedom, np.count_nonzero(path.coef, axis=1))
    assert np.all(path.gap <= 1e-10 * path.objective)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_fit_of_a_path_is_a_fit_and_the_largest_penalty_is_the_threshold(family):
    y = observations(family, X)
    offset = 0.3 * np.cos(np.arange(len(y)))
    model = GLM(family, l2=0.0, tol=1e-9)
    top = model.largest_l1(X, y, offset=offset)
    path = model.path(X, y, [1.001 * top, 0.99 * top, 0.1 * top], offset=offset)
    assert np.count_nonzero(path.coef[0]) == 0
    assert np.count_nonzero(path.coef[1]) == 1
    single = GLM(family, l1=0.1 * top, l2=0.0, tol=1e-9).fit(X, y, offset=offset)
    assert_allclose(path.coef[2], single.coef_, atol=1e-4)
    assert_allclose(path.objective[2], single.objective_, rtol=2e-9)
    assert model.get_params()["l1"] == 0.0
    assert not hasattr(model, "coef_")


def test_degrees_of_freedom_are_the_divergence_of_the_fit():
    """Stein: the sum over rows of the derivative of a fitted value in its observation."""
    y = observations("normal", X[:60])
    l1, l2, h = 0.05, 0.1, 1e-5

    def fitted(values):
        return GLM("normal", l1=l1, l2=l2, tol=1e-13).fit(X[:60], values).predict(X[:60])

    found = GLM("normal", l2=l2, tol=1e-13).path(X[:60], y, [l1]).degrees_of_freedom[0]
    moved = [(fitted(y + h * e)[i] - fitted(y - h * e)[i]) / (2 * h) for i, e in enumerate(np.eye(60))]
    assert_allclose(found, sum(moved) - 1, rtol=1e-4)  # the intercept has one


def test_what_a_path_refuses():
    y = observations("normal", X)
    for bad in ([], [0.1, -1.0], [[0.1]]):
        with pytest.raises(ValueError, match="l1s must be a sequence of positive numbers"):
            GLM("normal").path(X, y, bad)
    with pytest.raises(ValueError, match="all weights are zero"):
        GLM("normal").path(X, np.ones(len(y)))
