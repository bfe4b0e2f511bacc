"""Conjugates, gaps and duals: closed forms, suprema by brute force, a lasso with a known answer, and a gap of one."""

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError, DomainError, NotConvergedError
from cumulant.geometry import Burg, Euclidean, Shannon, VonNeumann, duality
from cumulant.geometry.conjugate_pairs import Logistic, LogSumExp, Norm, SquaredError

FEW = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
B = np.array([1.0, 2.0, 3.0])
LABELS = np.array([1.0, -1.0])


# Pairs --------------------------------------------------------------------------------------------------------------

GRID = np.stack(np.meshgrid(np.linspace(-12, 12, 481), np.linspace(-12, 12, 481)), axis=-1).reshape(-1, 2)


@pytest.mark.parametrize(
    ("pair", "inside", "outside"),
    [
        (Norm(1, 0.7), [[0.5, -0.7], [0.0, 0.2]], [0.5, 0.8]),
        (Norm(2, 0.7), [[0.4, -0.5], [0.0, 0.2]], [0.6, 0.6]),
        (Norm(np.inf, 0.7), [[0.3, -0.4], [0.0, 0.2]], [0.5, 0.3]),
        (SquaredError([1.0, -2.0], 0.5), [[0.3, -0.4], [1.0, 2.0]], None),
        (Logistic(LABELS, 2.0), [[-0.5, 1.2], [-1.9, 0.1]], [0.5, 1.0]),
        (LogSumExp(), [[0.3, 0.7], [0.999, 0.001]], [0.5, 0.6]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_conjugate_is_the_supremum(pair, inside, outside):
    values = pair.value(GRID)
    for u in inside:
        brute = np.max(GRID @ np.array(u) - values)
        assert_allclose(pair.conjugate(u), brute, atol=4e-3)
        assert pair.conjugate(u) >= brute - 1e-12
    if outside is not None:
        assert pair.conjugate(outside) == np.inf
        u = np.array(outside)
        rays = [
            np.max(GRID[np.abs(GRID).max(axis=1) <= r] @ u - values[np.abs(GRID).max(axis=1) <= r]) for r in (6, 12)
        ]
        assert rays[1] > rays[0] + 0.3  # it grows without end


@FEW
@given(seed=st.integers(0, 2**31))
def test_the_fenchel_gap_is_never_negative_and_vanishes_at_the_gradient(seed):
    rng = np.random.default_rng(seed)
    x, u = rng.standard_normal((2, 20, 2)) * 3
    for pair, dual in (
        (SquaredError(0.5), u),
        (Logistic(LABELS), -LABELS * rng.uniform(0, 1, (20, 2))),
        (LogSumExp(), rng.dirichlet([1, 1], 20)),
    ):
        assert np.all(duality.fenchel_gap(pair, x, dual) >= -1e-13)
    softmax = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    assert_allclose(duality.fenchel_gap(LogSumExp(), x, softmax), 0.0, atol=1e-13)
    assert_allclose(duality.fenchel_gap(SquaredError(0.5), x, x - 0.5), 0.0, atol=1e-12)


def test_the_fenchel_gap_of_an_entropy_is_its_divergence():
    x, u = np.array([0.3, 1.5]), np.array([-0.4, 0.6])
    by_definition = Shannon().value(x) + Shannon().conjugate(u) - x @ u
    assert_allclose(duality.fenchel_gap(Shannon(), x, u), by_definition, rtol=1e-14)
    close = np.log(x) * (1 + 1e-9)  # the definition has no digit left here
    expected = Shannon().divergence(x, np.exp(close))
    assert_allclose(duality.fenchel_gap(Shannon(), x, close), expected, rtol=1e-6)
    assert duality.fenchel_gap(Burg(), x, np.array([2.0, 0.0])) == np.inf
    X = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert_allclose(duality.fenchel_gap(VonNeumann(), X, np.zeros((2, 2))), 3 * np.log(3) - 2, rtol=1e-13)


def test_conjugating_twice_gives_the_function_back():
    assert duality.conjugate(duality.conjugate(Shannon())) == Shannon()
    swapped = duality.conjugate(Norm(1, 2.0))
    assert swapped.value([3.0, 0.0]) == np.inf
    assert swapped.conjugate([3.0, 0.0]) == 6.0


def test_a_numerical_conjugate():
    def f(x):
        return jnp.sum(jnp.exp(x)) + jnp.sum(x**2) / 2 + x[0] * x[1] / 2

    star = duality.conjugate(f, start=[0.0, 0.0])
    u = np.array([[1.0, 0.5], [-3.0, 4.0], [20.0, -20.0]])
    values = star.value(u)
    for each, value in zip(u, values, strict=True):
        x = cp.Variable(2)
        P = np.array([[1.0, 0.5], [0.5, 1.0]])
        problem = cp.Problem(cp.Maximize(each @ x - cp.sum(cp.exp(x)) - cp.quad_form(x, P) / 2))
        assert_allclose(value, problem.solve(solver=cp.CLARABEL), rtol=1e-7)
    with jax.enable_x64(True):
        there_and_back = jax.jit(lambda v: jax.grad(f)(jax.grad(star.value)(v)))
        assert_allclose(np.asarray(there_and_back(jnp.asarray(u[0]))), u[0], atol=1e-12)  # the slope is the maximiser
    back = duality.conjugate(star)
    assert_allclose(back.value([0.3, 0.2]), np.exp([0.3, 0.2]).sum() + 0.045 + 0.02 + 0.03, rtol=1e-14)


def test_a_supremum_that_is_not_attained_is_an_error():
    star = duality.conjugate(lambda x: jnp.sum(jnp.exp(x)), start=[0.0])
    with pytest.raises(NotConvergedError, match="no maximum of <u, x> - f"):
        star.value([-1.0])


def test_bregman_of_any_function():
    x, y = np.random.default_rng(0).standard_normal((2, 5, 3))
    quadratic = duality.bregman(lambda z: jnp.sum(z**2) / 2)
    assert_allclose(quadratic(x, y), Euclidean().divergence(x, y), rtol=1e-12)
    softmax = np.exp(y) / np.exp(y).sum(-1, keepdims=True)
    log_sum_exp = np.log(np.exp(x).sum(-1)) - np.log(np.exp(y).sum(-1))
    assert_allclose(duality.bregman(LogSumExp())(x, y), log_sum_exp - np.sum(softmax * (x - y), axis=-1), atol=1e-14)
    assert duality.bregman(Euclidean())(x[0], x[0] * (1 + 1e-12)) > 0  # an entropy's own: nothing cancels


# Fenchel's dual -----------------------------------------------------------------------------------------------------


def test_the_lasso_with_its_known_answer():
    lasso = duality.fenchel_dual(Norm(1, 1.0), SquaredError(B), A)
    x = np.array([0.0, 0.48214286])
    assert_allclose(lasso.primal(x), 0.491071428571, rtol=1e-11)
    x = np.array([0.0, 27 / 56])
    y = A @ x - B
    assert_allclose(lasso.gap(x, y), 0.0, atol=1e-15)
    # Away from the solution the gap bounds the error of both.
    rng = np.random.default_rng(1)
    for _ in range(5):
        far = x + rng.standard_normal(2)
        r = A @ far - B
        dual = r * min(1.0, (1 - 1e-12) / np.abs(A.T @ r).max())
        assert lasso.gap(far, dual) >= lasso.primal(far) - 55 / 112 >= 0
        assert lasso.dual(dual) <= 55 / 112


def test_weak_duality_for_logistic_regression_against_a_solver():
    rng = np.random.default_rng(2)
    design, labels = rng.standard_normal((8, 2)), rng.choice([-1.0, 1.0], 8)
    problem = duality.fenchel_dual(SquaredError(0.0, 0.3), Logistic(labels), design)
    x = cp.Variable(2)
    objective = 0.15 * cp.sum_squares(x) + cp.sum(cp.logistic(cp.multiply(-labels, design @ x)))
    best = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    points = rng.standard_normal((50, 2))
    duals = -labels * rng.uniform(0, 1, (50, 8))
    assert np.all(problem.primal(points) >= best - 1e-7)
    assert np.all(problem.dual(duals) <= best + 1e-7)
    x = x.value
    y = -labels / (1 + np.exp(labels * (design @ x)))  # the gradient of the loss is dual optimal
    assert 0 <= problem.gap(x, y) < 1e-5
    certificate = problem.certify(x, y)
    assert certificate.upper >= problem.primal(x) - best - 1e-9
    assert certificate.verify(Subject(problem, (x, y))).bound <= certificate.upper
    restored = Certificate.from_json(certificate.to_json())
    assert restored.verify(Subject(problem, (x, y))).bound <= certificate.upper
    with pytest.raises(CertificateError, match=r"does not hold|not shown"):
        certificate.verify(Subject(problem, (x + 1.0, y)))


def test_without_a_qualification_condition_the_gap_can_stay_open():
    # f = exp(-sqrt(x1 x2)) on the quadrant, g the indicator of x1 = 0: the primal value is 1, the dual value 0
    # (after Borwein and Lewis 2006, section 4.3).
    def f(x):
        inside = jnp.all(x >= 0, axis=-1)
        product = jnp.where(inside, x[..., 0] * x[..., 1], 0.0)
        return jnp.where(inside, jnp.exp(-jnp.sqrt(product)), jnp.inf)

    def f_star(u):
        return jnp.where(jnp.all(u <= 0, axis=-1), 0.0, jnp.inf)

    g = duality.Pair(
        lambda z: jnp.where(z[..., 0] == 0, 0.0, jnp.inf),
        lambda y: jnp.where(y[..., 1] == 0, 0.0, jnp.inf),
    )
    problem = duality.fenchel_dual(duality.Pair(f, f_star), g, np.eye(2))
    x = np.stack([np.zeros(40), np.geomspace(1e-3, 1e6, 40)], axis=-1)
    y = np.stack([np.geomspace(1e-6, 1e3, 40), np.zeros(40)], axis=-1)
    assert_allclose(problem.primal(x), 1.0)
    assert_allclose(problem.dual(y), 0.0)
    assert_allclose(problem.gap(x, y), 1.0)
    # f* is what it is said to be: sup <u, x> - f(x) over a wide grid tends to 0 for u <= 0.
    t = np.geomspace(1e-4, 1e8, 60)
    assert max(-1.0 * (a * 1e-4) - np.exp(-np.sqrt(a * b)) for a in t for b in t) < 0
    assert max(-(a * 1e-4) - np.exp(-np.sqrt(a * b)) for a in t for b in t) > -1e-3
    certificate = problem.certify(x[0], y[0])
    assert certificate.bound == 1.0
    assert certificate.assumptions[-1].status == "assumed"


def test_no_certificate_from_an_infeasible_point():
    lasso = duality.fenchel_dual(Norm(1, 1.0), SquaredError(B), A)
    with pytest.raises(CertificateError, match="not shown that y is feasible"):
        lasso.certify([0.0, 0.0], -B)


def test_refusals():
    lasso = duality.fenchel_dual(Norm(1, 1.0), SquaredError(B), A)
    with pytest.raises(ValueError, match=r"x must have 2 entries on its last axis, as A has shape \(3, 2\); got 3"):
        lasso.primal(B)
    with pytest.raises(DomainError, match="y of gap must be a number"):
        lasso.gap([0.0, 0.0], [np.nan, 0.0, 0.0])
    with pytest.raises(TypeError, match="f must be a pair, with value and conjugate; got function"):
        duality.fenchel_dual(lambda x: x, SquaredError(B), A)
    with pytest.raises(ValueError, match="A must be a matrix"):
        duality.fenchel_dual(Norm(1), SquaredError(B), B)
    with pytest.raises(ValueError, match="start must be given for a plain function"):
        duality.conjugate(lambda x: jnp.sum(x**2))
    with pytest.raises(TypeError, match="f must be a pair or a function"):
        duality.conjugate(3.0)
    with pytest.raises(ValueError, match="order of Norm must be 1, 2 or infinity; got 3"):
        Norm(3)
    with pytest.raises(ValueError, match="labels of Logistic must be"):
        Logistic([0.0, 1.0])
    with pytest.raises(ValueError, match="x and u must have equal sizes"):
        duality.fenchel_gap(Norm(1), [1.0], [1.0, 2.0])
