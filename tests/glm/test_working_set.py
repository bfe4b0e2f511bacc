"""Sparse solutions among many columns, against coordinate descent elsewhere and against the problem as a whole."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet

from cumulant import optim
from cumulant.glm import GLM
from cumulant.glm.solvers import working_set
from cumulant.glm.solvers.newton import starting_point
from cumulant.glm.solvers.proximal_newton import GLMProximalNewton
from cumulant.glm.solvers.working_set import GLMWorkingSet
from tests.glm.test_certificates import problem_of


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 900))
    weights = np.zeros(900)
    weights[:10] = rng.normal(size=10)
    return X, X @ weights + 0.5 * rng.normal(size=120)


@pytest.mark.parametrize("l2", [0.0, 0.05], ids=["lasso", "elastic net"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_more_columns_than_rows_as_coordinate_descent_finds(wide, form, l2):
    X, y = wide
    ours = GLM("normal", l1=0.1, l2=l2, tol=1e-10).fit(form(X), y)
    theirs = ElasticNet(alpha=0.1 + l2, l1_ratio=0.1 / (0.1 + l2), tol=1e-12, max_iter=100_000).fit(X, y)
    assert ours.status_ == "converged"
    assert ours.n_iter_ < 20
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert 0 < np.count_nonzero(ours.coef_) < 120


def test_the_first_set_does_not_hold_the_support(wide, monkeypatch):
    """A small penalty: the support is larger than the first set, which has to grow."""
    monkeypatch.setattr(working_set, "_PER_ROOT", 0.0)
    monkeypatch.setattr(working_set, "_LEAST", 30)
    X, y = wide
    model = GLM("normal", l1=0.003, l2=0.0, tol=1e-8).fit(X, y)
    assert model.status_ == "converged"
    assert np.count_nonzero(model.coef_) > 100
    gradient = X.T @ (X @ model.coef_ + model.intercept_ - y) / len(y)
    assert np.abs(gradient).max() <= 0.003 * (1 + 1e-3)


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "gamma"])
def test_every_step_bounds_the_minimum_and_no_objective_rises(family):
    problem = problem_of(family, 0.0, l1=0.03)
    least = optim.run(
        GLMProximalNewton(1e-10), problem, starting_point(problem), max_steps=60, tol=1e-10, progress=False
    ).value
    solver = GLMWorkingSet(1e-8)
    state = solver.init(problem, starting_point(problem), None)
    for _ in range(6):
        before, state = state.value, solver.step(problem, state)
        assert state.lower <= least + 1e-12
        assert least * (1 - 1e-10) <= state.value  # the reference is this far from the minimum itself
        assert state.value <= before + 1e-12
    assert state.value - state.lower <= 1e-8 * abs(least)


def test_several_classes_and_many_columns():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 300))
    y = np.argmax(X[:, :3] + 0.3 * rng.gumbel(size=(90, 3)), axis=1)
    model = GLM("categorical", l1=0.05, l2=0.0, tol=1e-6).fit(X, y)
    assert model.status_ == "converged"
    assert model.score(X, y) > 0.8
    with pytest.raises(ValueError, match="use a larger l1"):
        GLM("categorical", l1=1e-4, l2=0.0, tol=1e-6).fit(X, rng.permutation(np.arange(90) % 10))


def test_correlated_columns_and_a_tiny_penalty():
    """Near interpolation the signs are found by moving along the null space of the Hessian, not by sweeps."""
    rng = np.random.default_rng(2)
    X = 0.1 * rng.normal(size=(150, 520)) + rng.normal(size=(150, 1))
    y = X[:, :3].sum(axis=1) + rng.normal(size=150)
    l1 = 1e-4 * np.abs(X.T @ y).max() / len(y)
    model = GLM("normal", l1=l1, l2=0.0, fit_intercept=False, tol=1e-4, time_limit=60.0).fit(X, y)
    assert model.status_ == "converged"
    gradient = X.T @ (X @ model.coef_ - y) / len(y)
    assert np.abs(gradient).max() <= l1 * 1.1
