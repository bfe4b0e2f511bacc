"""Newton's equation: by factorisation, by conjugate gradients with an old factor, and when which."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.glm import GLM
from cumulant.glm.objective.design import design_of
from cumulant.glm.objective.losses import loss_of
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.newton import GLMNewton
from cumulant.glm.solvers.newton_step import (
    by_conjugate_gradients,
    by_factorisation,
    common_factor,
    products_of_a_factor,
)
from tests.glm.cases import observations, sparse_features
from tests.reference import glm as reference


def correlated(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = 0.9 * X[:, j - 1] + 0.44 * X[:, j]
    return X


def problem_of(family, X, y, l2=1e-3, intercept=True, classes=0):
    n = X.shape[0]
    offset = np.zeros((n, classes)) if classes else np.zeros(n)
    return GLMProblem(design_of(X, intercept), loss_of(family, y, classes), np.full(n, 1 / n), offset, 0.0, l2)


@pytest.fixture(scope="module")
def wide():
    """Many columns beside the rows, so that an old factor is worth a try."""
    X = correlated(600, 200)
    return problem_of("bernoulli", X, observations("bernoulli", X / 10))


def test_a_factor_of_another_point_solves_the_equation_of_this_one(wide):
    rng = np.random.default_rng(1)
    x = 0.1 * rng.normal(size=wide.shape)
    old = wide.loss.terms(np.zeros(600))[2]
    _, slope, curvature = wide.loss.terms(wide.scores(x))
    gradient = wide.loss_gradient(slope) + wide.ridge(x)
    factor = common_factor(wide, old)
    assert_allclose(np.tril(factor) @ np.tril(factor).T, wide.hessian(old), atol=1e-13)
    expected = np.linalg.solve(wide.hessian(curvature), -gradient)
    exact, _ = by_factorisation(wide, curvature, gradient)
    assert_allclose(exact.step, expected, rtol=1e-8, atol=1e-10)
    found = by_conjugate_gradients(wide, curvature, gradient, 1e-8, np.inf, factor)
    plain = by_conjugate_gradients(wide, curvature, gradient, 1e-8, np.inf)
    assert_allclose(found.step, expected, rtol=1e-5, atol=1e-6)
    assert_allclose(found.residual, -gradient - wide.hessian(curvature) @ found.step, atol=1e-12)
    assert found.solved
    assert found.products < plain.products / 3
    short = by_conjugate_gradients(wide, curvature, gradient, 1e-8, np.inf, factor, most=2)
    assert not short.solved
    assert short.products == 2


def test_the_factor_is_kept_while_it_serves_and_replaced_where_it_does_not(wide):
    _, best = reference.minimum("bernoulli", wide.design.X, wide.loss.y, wide.l2)
    solver = GLMNewton(tol=1e-9)
    state = solver.step(wide, solver.init(wide, np.zeros(wide.shape), None))
    assert state.factor.size
    assert products_of_a_factor(wide) > 3
    kept, later = 0, state
    for _ in range(12):
        previous, state = state, solver.step(wide, state)
        kept += state.factor is previous.factor
        assert state.lower <= best + 1e-13 <= state.value + 2e-13
        later = state if state.value - best > 1e-7 * best else later
    assert kept >= 3
    assert state.value - state.lower <= 1e-9 * best
    assert_allclose(state.value, best, rtol=1e-10)
    useless = np.eye(len(state.factor))  # knows nothing of the data
    again = solver.step(wide, later._replace(factor=useless))
    assert again.factor is not useless
    assert_allclose(again.x, solver.step(wide, later._replace(factor=useless[:0])).x, rtol=1e-12)


def test_several_outputs_share_a_factor():
    X = correlated(400, 60)
    y = np.argmax(X @ np.random.default_rng(1).normal(size=(60, 9)) / 5, axis=1)
    problem = problem_of("categorical", X, y, classes=9)
    curvature = problem.loss.terms(np.zeros((400, 9)))[2]
    # At equal probabilities all diagonal blocks are the same one.
    block = problem.hessian(curvature).reshape(61, 9, 61, 9)[:-1, 4, :-1, 4]
    lower = np.tril(common_factor(problem, curvature))
    assert_allclose((lower @ lower.T)[:-1, :-1], block, atol=1e-13)
    solver = GLMNewton(tol=1e-8)
    state = solver.init(problem, np.zeros(problem.shape), None)
    while state.value - state.lower > 1e-8 * state.value:
        state = solver.step(problem, state)
        assert not state.stuck
    assert state.factor.size
    assert np.linalg.norm(problem.loss_gradient(state.slope) + problem.ridge(state.x)) <= 1e-4
    model = GLM("categorical", l2=1e-3, tol=1e-8).fit(X, y)
    assert abs(model.objective_ - state.value) <= 2e-8 * state.value


def test_a_factor_larger_than_the_data_is_never_formed():
    assert products_of_a_factor(problem_of("bernoulli", sparse_features(), np.tile([0.0, 1.0], 200))) == np.inf
