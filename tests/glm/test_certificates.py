"""A certificate is true: never below the distance to a minimum that was found in another way."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.glm import (
    GLMDualAscent,
    GLMNewton,
    GLMProblem,
    GLMProximalNewton,
    PrimalDual,
    certify_glm_concordance,
    certify_glm_gap,
    design_of,
    loss_of,
)
from cumulant.glm.solvers.newton_step import newton_slopes
from tests.glm.cases import FAMILIES, features, observations
from tests.reference import glm as reference


def problem_of(family, l2, intercept=True, weighted=True, l1=0.0, n=200, seed=0, sparse=False):
    X = features(n=n, seed=seed)
    y = observations(family, X, seed + 1)
    rng = np.random.default_rng(seed + 2)
    weights = rng.random(n) + 0.1 if weighted else np.ones(n)
    offset = 0.3 * rng.normal(size=n) if weighted else np.zeros(n)
    design = design_of(sp.csr_matrix(X * (rng.random(X.shape) < 0.15)) if sparse else X, intercept)
    loss = loss_of(family, y, 3)
    if loss.outputs > 1:
        offset = np.outer(offset, [1.0, -1.0, 0.5])
    return GLMProblem(design, loss, weights / weights.sum(), offset, l1, l2)


def dense(problem):
    X = problem.design.X
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("l2", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_of_newton_has_a_true_bound(family, l2, intercept):
    problem = problem_of(family, l2, intercept)
    _, best = reference.minimum(
        family, dense(problem), problem.loss.y, l2, problem.weights, problem.offset, intercept
    )  # fmt: skip
    solver = GLMNewton(tol=1e-9)
    state = solver.init(problem, np.zeros(problem.shape), None)
    for _ in range(12):
        state = solver.step(problem, state)
        certificate = certify_glm_gap(problem, PrimalDual(state.x, state.dual))
        assert certificate.upper >= state.value - best - 1e-13
        assert problem.lower_bound(state.slope) <= best + 1e-13
        assert problem.lower_bound(newton_slopes(problem, state.x)) <= best + 1e-13
    assert certificate.upper <= 1e-9 * state.value
    assert_allclose(state.value, best, rtol=1e-11)
    certificate.verify(Subject(problem, state.x))


@pytest.mark.parametrize("family", [*FAMILIES, "categorical"])
def test_the_lower_bound_holds_at_points_that_are_nowhere_near(family):
    rng = np.random.default_rng(5)
    problem = problem_of(family, 0.01)
    solver = GLMNewton(tol=1e-10)
    state = solver.init(problem, np.zeros(problem.shape), None)
    for _ in range(25):
        state = solver.step(problem, state)
    assert state.value - state.lower <= 1e-9 * state.value
    for _ in range(200):
        x = rng.normal(size=problem.shape) * rng.choice([0.01, 0.1, 1.0, 3.0])
        slope = problem.loss.terms(problem.scores(x))[1]
        lower = problem.lower_bound(slope)
        assert lower <= state.value + 1e-12
        balanced = problem.balanced(slope)
        assert np.abs(problem.row_weights(balanced) * balanced).sum() < 1e6
        assert_allclose((problem.row_weights(balanced) * balanced).sum(axis=0), 0, atol=1e-12)


def test_balanced_probabilities_are_probabilities():
    problem = problem_of("categorical", 0.01)
    slope = problem.loss.terms(problem.scores(np.random.default_rng(0).normal(size=problem.shape)))[1]
    means = problem.balanced(slope) + np.eye(3)[problem.loss.y]
    assert means.min() >= 0
    assert_allclose(means.sum(axis=1), 1, rtol=1e-13)


def test_the_slopes_of_a_newton_step_say_more_than_the_gradient():
    problem = problem_of("bernoulli", 1e-4)
    solver = GLMNewton(tol=1e-3)
    state = solver.init(problem, np.zeros(problem.shape), None)
    for _ in range(5):
        state = solver.step(problem, state)
    own, newton = (
        certify_glm_gap(problem, PrimalDual(state.x, s)).bound for s in (state.slope, newton_slopes(problem, state.x))
    )
    assert newton < 0.1 * own


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("l2", [0.0, 1e-3])
def test_the_bound_by_self_concordance_is_true_and_tight(family, l2):
    problem = problem_of(family, l2)
    v, best = reference.minimum(family, dense(problem), problem.loss.y, l2, problem.weights, problem.offset)
    rng = np.random.default_rng(0)
    said = 0
    for scale in np.geomspace(1e-4, 1.0, 60):
        x = v + scale * rng.normal(size=v.shape)
        distance = problem.value(x) - best
        try:
            bound = certify_glm_concordance(problem, x).upper
        except CertificateError:
            continue
        said += 1
        assert bound >= distance - 1e-13
        assert scale > 1e-2 or bound <= 1.5 * distance
    assert said > 20
    certify_glm_concordance(problem, v).verify(Subject(problem, v))


def test_without_a_penalty_there_is_no_gap():
    problem = problem_of("bernoulli", 0.0)
    with pytest.raises(CertificateError, match="duality needs a penalty"):
        certify_glm_gap(problem, np.zeros(problem.shape))


@pytest.mark.parametrize("l2", [0.0, 0.05])
@pytest.mark.parametrize("family", [*FAMILIES, "categorical"])
def test_proximal_newton_against_cvxpy(family, l2):
    cp = pytest.importorskip("cvxpy")
    problem = problem_of(family, l2, l1=0.03)
    solver = GLMProximalNewton(tol=1e-8)
    state = solver.init(problem, np.zeros(problem.shape), None)
    X, y, k = dense(problem), problem.loss.y, problem.loss.outputs
    w, b = cp.Variable(X.shape[1] if k == 1 else (X.shape[1], k)), cp.Variable(1 if k == 1 else (1, k))
    eta = X @ w + (b if k == 1 else np.ones((len(y), 1)) @ b) + problem.offset
    losses = {
        "bernoulli": lambda: cp.logistic(eta) - cp.multiply(y, eta),
        "poisson": lambda: cp.exp(eta) - cp.multiply(y, eta) + (problem.loss.constant),
        "normal": lambda: 0.5 * cp.square(eta - y),
        "gamma": lambda: eta + cp.multiply(y, cp.exp(-eta)) + problem.loss.constant,
        "categorical": lambda: cp.log_sum_exp(eta, axis=1) - cp.sum(cp.multiply(np.eye(3)[y], eta), axis=1),
    }[family]()
    penalty = 0.03 * cp.sum(cp.abs(w)) + 0.5 * l2 * cp.sum_squares(w)
    best = cp.Problem(cp.Minimize(problem.weights @ losses + penalty)).solve(solver=cp.CLARABEL)
    for _ in range(30):
        state = solver.step(problem, state)
        assert state.value - state.lower >= -1e-12
        assert certify_glm_gap(problem, PrimalDual(state.x, state.dual)).upper >= state.value - best - 1e-7
    assert_allclose(state.value, best, rtol=1e-6)
    assert state.value - state.lower <= 1e-8 * state.value


@pytest.mark.parametrize("l1", [0.0, 0.02])
@pytest.mark.parametrize("sampling", ["uniform", "importance", "gap", "gap-importance", "max", "residual"])
def test_dual_ascent_converges_with_every_sampling(sampling, l1):
    problem = problem_of("bernoulli", 0.05, l1=l1)
    reference_solver = GLMProximalNewton(1e-10) if l1 else GLMNewton(1e-10)
    exact = reference_solver.init(problem, np.zeros(problem.shape), None)
    for _ in range(15):
        exact = reference_solver.step(problem, exact)
    solver = GLMDualAscent(sampling)
    state = solver.init(problem, np.zeros(problem.shape), 0)
    for _ in range(60):
        state = solver.step(problem, state)
        assert state.lower <= exact.value + 1e-12
    assert (state.value - state.lower) / state.value < (1e-2 if sampling == "max" else 1e-5)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_dual_ascent_on_every_loss(family, intercept):
    problem = problem_of(family, 0.1, intercept, sparse=True)
    _, best = reference.minimum(family, dense(problem), problem.loss.y, 0.1, problem.weights, problem.offset, intercept)
    solver = GLMDualAscent("gap")
    state = solver.init(problem, np.zeros(problem.shape), 0)
    for _ in range(100):
        state = solver.step(problem, state)
    certificate = solver.certify(problem, state)
    assert certificate.upper >= state.value - best - 1e-13
    assert certificate.upper <= 1e-6 * state.value
