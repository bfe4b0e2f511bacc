"""The primal-dual method with exact derivatives, and the certificates of constrained problems."""

import cvxpy as cp
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from cumulant import optim
from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.optim.interior_point import (
    Bounds,
    ConstrainedProblem,
    InteriorPoint,
    Intersection,
    LinearConstraints,
    MehrotraSigma,
    SimplexConstraints,
    SmoothConstraints,
    certify_constrained,
    check_licq,
    l1_regularize,
    l1_violation,
    on_simplex,
)
from tests.optim.interior_point.cases import CORNER, FIACCO, PARABOLA, total


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return optim.LeastSquares(X, y - y.mean())


@pytest.mark.parametrize("formulation", ["bound", pytest.param("split", marks=pytest.mark.slow)])
def test_the_lasso_of_the_diabetes_data(diabetes, formulation):
    published = [0, 0, 471.013582, 136.516898, 0, 0, -58.340093, 0, 408.021865, 0]
    problem = l1_regularize(diabetes, 0.5, formulation)
    result = optim.run(InteriorPoint(z0=0.25), problem, problem.start(), tol=1e-12, max_steps=60)
    found = problem.coefficients(result.x)
    assert result.status == "converged"
    np.testing.assert_allclose(found, published, atol=1e-6)
    assert result.value == pytest.approx(2152.12299259, abs=1e-7)
    assert result.work <= (30 if formulation == "bound" else 60)
    w = np.where(np.abs(found) > 1e-3, found, 0.0)
    assert l1_violation(diabetes, w, 0.5) < 1e-6
    gradient = diabetes.gradient(w)
    np.testing.assert_allclose(gradient[w != 0], -0.5 * np.sign(w[w != 0]), atol=1e-6)
    np.testing.assert_allclose(
        gradient[w == 0], [-0.12748, 0.199088, 0.033542, 0.017914, -0.388274, -0.4011], atol=1e-5
    )
    assert optim.lambda_max(diabetes) == pytest.approx(2.14804358, abs=1e-8)
    assert l1_violation(diabetes, np.zeros(10), 2.14804358 + 1e-8) == 0.0
    assert l1_violation(diabetes, np.zeros(10), 2.0) == pytest.approx(0.14804358, abs=1e-8)


def entropy(x, data):
    return jnp.sum(x * jnp.log(x)) + jnp.vdot(data, x)


def disc(x, data):
    return jnp.sum((x - data) ** 2, keepdims=True) - 1.0


RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(3, 3))
Q, b = ROOT @ ROOT.T + 0.1 * np.eye(3), RNG.normal(size=3)
A, h = RNG.normal(size=(5, 3)), np.ones(5)


def by_cvxpy(constraints):
    x = cp.Variable(3)
    objective = cp.Minimize(cp.quad_form(x, cp.psd_wrap(Q)) / 2 - b @ x)
    problem = cp.Problem(objective, constraints(x))
    problem.solve(solver=cp.CLARABEL)
    return problem.value


CASES = {
    "polyhedron": (LinearConstraints(A, h), np.zeros(3), lambda x: [A @ x <= h]),
    "box": (Bounds(-0.1, 0.2), np.zeros(3), lambda x: [x >= -0.1, x <= 0.2]),
    "disc and half-lines": (
        Intersection((SmoothConstraints(disc, np.full(3, 0.5)), Bounds([0.0, -np.inf, 0.3]))),
        np.full(3, 0.5),
        lambda x: [cp.sum_squares(x - 0.5) <= 1, x[0] >= 0, x[2] >= 0.3],
    ),
    "solid simplex": (SimplexConstraints(0.5), np.full(3, 0.1), lambda x: [x >= 0, cp.sum(x) <= 0.5]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_certificate_of_a_quadratic_under_constraints_holds(name):
    constraints, x0, same = CASES[name]
    problem = ConstrainedProblem(optim.Quadratic(Q, b), constraints)
    certificate = certify_constrained(problem, x0)
    assert -1e-7 <= problem.value(x0) - by_cvxpy(same) <= certificate.upper + 1e-7
    assert certificate.verify(Subject(problem, x0)).bound <= certificate.upper


@pytest.mark.slow
@pytest.mark.parametrize("name", ["polyhedron", "disc and half-lines"])
def test_quadratics_under_constraints_are_solved(name):
    constraints, x0, same = CASES[name]
    problem = ConstrainedProblem(optim.Quadratic(Q, b), constraints)
    result = optim.run(InteriorPoint(MehrotraSigma(3.0)), problem, x0, tol=1e-7, max_steps=60)
    assert result.status == "converged"
    assert result.value == pytest.approx(by_cvxpy(same), abs=1e-6)
    assert result.certificate.verify(result.subject).bound <= result.certificate.upper


@pytest.mark.parametrize("curvature", ["bfgs", "bb"])
def test_learnt_curvature_reaches_the_same_solution_in_more_steps(diabetes, curvature):
    problem = l1_regularize(diabetes, 0.5, "bound")
    settings = {"tol": 1e-10, "max_steps": 200}
    exact = optim.run(InteriorPoint(z0=0.25), problem, problem.start(), **settings)
    learnt = optim.run(InteriorPoint(z0=0.25, curvature=curvature), problem, problem.start(), **settings)
    assert learnt.status == "converged"
    assert exact.work < learnt.work <= 100
    np.testing.assert_allclose(problem.coefficients(learnt.x), problem.coefficients(exact.x), atol=1e-3)
    assert -1e-9 <= learnt.value - 2152.1229925 <= learnt.certificate.upper + 1e-7
    if curvature == "bfgs":  # a secant matrix: positive definite, and B dx = dy for the last pair where Powell allows
        assert np.linalg.eigvalsh(learnt.state.curvature)[0] > 0


def test_the_routes_on_the_host_take_the_steps_of_the_compiled_ones():
    constraints = LinearConstraints(np.vstack([A, -np.eye(3)]), np.concatenate([h, np.full(3, 2.0)]))
    problem = ConstrainedProblem(optim.Quadratic(Q, b), constraints)
    runs = {
        route: optim.run(InteriorPoint(route=route), problem, np.zeros(3), tol=1e-9, max_steps=60)
        for route in ("cholesky", "ldl", "sparse_cholesky")
    }
    for route, result in runs.items():
        assert (result.status, result.work) == ("converged", runs["cholesky"].work), route
        np.testing.assert_allclose(result.x, runs["cholesky"].x, atol=1e-9)


def saddle(x, data):
    return (x[0] ** 2 - x[1] ** 2) / 2


def test_ldl_takes_no_step_where_the_inertia_is_wrong():
    """``(x_1^2 - x_2^2) / 2``: near both bounds the barrier makes the reduced matrix positive, in the middle not."""
    problem = ConstrainedProblem(optim.Objective(saddle), Bounds(-1.0, 1.0))
    near, full = (
        optim.run(InteriorPoint(route=route, z0=1.0), problem, [0.5, 0.9], max_steps=1, tol=None).x
        for route in ("ldl", "full")
    )
    assert near[1] < 0.899
    np.testing.assert_allclose(near, full, rtol=1e-12)
    middle = optim.run(InteriorPoint(route="ldl", z0=0.01), problem, [0.5, 0.0], max_steps=1, tol=None)
    np.testing.assert_array_equal(middle.x, [0.5, 0.0])


def test_the_gap_on_the_central_path_is_m_mu_and_needs_a_radius_where_nothing_else_bounds_it():
    with pytest.raises(CertificateError, match="give the problem a radius"):
        certify_constrained(FIACCO, np.array([0.5, 1.25]))
    vouched = ConstrainedProblem(optim.Objective(total, convex=True), PARABOLA, radius=3.0)
    certificate = certify_constrained(vouched, np.array([0.5, 1.25]))  # mu = 1: f = 1.75, q = -0.25
    assert certificate.bound == pytest.approx(2.0, abs=1e-9)
    assert [each.status for each in certificate.assumptions][-1] == "assumed"
    with pytest.raises(CertificateError, match="x is feasible"):
        certify_constrained(vouched, np.array([0.5, 0.1]))
    with pytest.raises(CertificateError, match="convex"):
        certify_constrained(ConstrainedProblem(optim.Objective(total), PARABOLA, radius=3.0), np.array([0.5, 1.25]))
    with pytest.raises(CertificateError, match="stream"):
        certify_constrained(l1_regularize(None, 1.0), np.ones(2))


@pytest.mark.slow
def test_maximum_entropy_on_the_simplex():
    cost = np.array([0.0, 1.0, 2.0, 0.5])
    problem = on_simplex(optim.Objective(entropy, cost, convex=True))
    result = optim.run(InteriorPoint(), problem, problem.start(4), tol=1e-9, max_steps=60)
    np.testing.assert_allclose(problem.coefficients(result.x), np.exp(-cost) / np.exp(-cost).sum(), atol=1e-5)
    assert result.certificate.upper >= result.value + np.log(np.exp(-cost).sum()) >= -1e-12


def test_qualifications():
    report = check_licq(CORNER, [0.0, 1.0], [1.0, 0.0])
    assert report
    assert report.strict_complementarity
    assert report.second_order
    twice = ConstrainedProblem(
        optim.Quadratic(np.eye(2), [-1.0, 1.0]), LinearConstraints([[-1.0, 0.0], [-2.0, 0.0]], [0.0, 0.0])
    )
    report = check_licq(twice, [0.0, 1.0], [1.0, 0.0])
    assert not report
    assert report.rank == 1
    assert not report.strict_complementarity
    assert "FAILS" in str(report)
    assert check_licq(CORNER, [1.0, 1.0]).active.size == 0


def test_bad_settings_are_refused():
    with pytest.raises(TypeError, match="centring must be"):
        InteriorPoint(0.1)
    with pytest.raises(ValueError, match="route"):
        InteriorPoint(route="qr")
    with pytest.raises(ValueError, match="curvature must be one of"):
        InteriorPoint(curvature="newton")
    with pytest.raises(ValueError, match="damping must be"):
        InteriorPoint(damping=0.0)
    with pytest.raises(ValueError, match="least_mu"):
        InteriorPoint(least_mu=-1.0)
    with pytest.raises(TypeError, match="takes a ConstrainedProblem"):
        optim.run(InteriorPoint(), optim.Quadratic(np.eye(1), [1.0]), [1.0])
