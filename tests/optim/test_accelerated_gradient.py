"""Methods with momentum, and Newton's: published numbers, real data, refusals."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import j1
from sklearn.datasets import load_breast_cancer

from cumulant import optim
from tests.optim.cases import RIDGE, A, log_sum_exp

EIGENVALUES = 4 * np.sin(np.arange(1, 1001) * np.pi / 2002) ** 2


def diagonal(x, eigenvalues):
    return jnp.sum(eigenvalues * x**2) / 2


LAPLACIAN = optim.Objective(diagonal, EIGENVALUES, smoothness=4.0, convex=True)


@pytest.mark.parametrize(
    ("solver", "values"),
    [
        (optim.AcceleratedGradient(0.25), [2.0194110384, 0.0042495421, 6.19005e-6]),
        (optim.GradientDescent(0.25), [5.9760027765, 0.1985530909, 0.0063105892]),
    ],
    ids=["Nesterov", "gradient descent"],
)
def test_acceleration_on_a_laplacian(solver, values):
    trace = optim.run(solver, LAPLACIAN, np.ones(1000), max_steps=1000, tol=None, every=10).trace
    np.testing.assert_allclose(trace.value[[1, 10]], values[:2], atol=1e-8)
    assert trace.value[100] == pytest.approx(values[2], abs=1e-10)
    if isinstance(solver, optim.AcceleratedGradient):
        check = optim.compare_with_rate(trace, lambda k: optim.rates.nesterov(0.25, 1000.0, k))
        assert check.holds
        assert check.worst_ratio < 1


@pytest.fixture(scope="module")
def cancer():
    data = load_breast_cancer()
    matrix = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    problem = optim.Logistic(matrix, 2.0 * data.target - 1, l2=0.01)
    return problem, optim.run(optim.Newton(), problem, np.zeros(30), tol=1e-15)


def test_newton_solves_a_real_problem_to_machine_precision(cancer):
    problem, best = cancer
    assert best.status == "converged"
    assert best.work < 12
    assert best.value == pytest.approx(0.1024165658, abs=1e-10)
    assert np.linalg.norm(best.x) == pytest.approx(2.420663, abs=1e-6)
    assert problem.smoothness == pytest.approx(3.330402, abs=1e-6)
    assert np.max(problem.term_smoothness) == pytest.approx(105.54, abs=5e-3)


@pytest.mark.parametrize(
    ("solver", "gaps"),
    [
        (optim.GradientDescent(), [0.0623, 3.84e-3, 3.39e-5]),
        (optim.AcceleratedGradient(), [0.0297, 2.27e-5, 9.9e-9]),
        (optim.AcceleratedGradient(momentum="strongly convex"), [0.0237, 2.5e-6, 0.0]),
    ],
    ids=["gradient descent", "Nesterov", "strongly convex"],
)
def test_momentum_on_a_real_problem(cancer, solver, gaps):
    problem, best = cancer
    run = optim.run(solver, problem, np.zeros(30), max_steps=500, tol=None, every=10)
    found = run.trace.value[[1, 10, 50]] - best.value
    np.testing.assert_allclose(found, gaps, rtol=0.02, atol=1e-15)
    assert np.all(run.trace.value - best.value <= run.trace.bound + 1e-15)
    assert run.certificate.upper >= run.value - best.value


def test_restarts_find_the_linear_rate_without_knowing_it(cancer):
    problem, best = cancer
    plain, restarted = (
        optim.run(optim.AcceleratedGradient(restart=r), problem, np.zeros(30), max_steps=500, tol=None)
        for r in (False, True)
    )
    assert restarted.value - best.value < 1e-3 * (plain.value - best.value)
    assert restarted.trace["restarts"][-1] >= 2
    assert np.all(np.diff(restarted.trace.value) <= 1e-15)  # never up
    assert plain.trace["restarts"][-1] == 0


def test_the_first_steps_of_nesterov_by_hand():
    problem = optim.Quadratic(np.diag([1.0, 4.0]), np.zeros(2))
    x0 = np.array([1.0, 1.0])
    seen = []
    optim.run(optim.AcceleratedGradient(0.25), problem, x0, max_steps=4, tol=None, every=1, callback=seen.append)
    x, y = x0, x0
    for k in range(4):
        new = y - 0.25 * np.array([1.0, 4.0]) * y
        y = new + k / (k + 3) * (new - x)
        x = new
        np.testing.assert_allclose(seen[k].x, x, atol=1e-15)


def test_the_flow_of_nesterov():
    flow = optim.nesterov_flow(optim.Quadratic([[1.0]], [0.0]), [1.0], [0.0, 1e-7, 1.0, 5.0, 20.0])
    np.testing.assert_allclose(flow.x[2:, 0], [0.880101171490, -0.131031655037, 0.006683312418], atol=1e-6)
    np.testing.assert_allclose(flow.x[2:, 0], 2 * j1(flow.times[2:]) / flow.times[2:], atol=1e-8)
    np.testing.assert_allclose(flow.x[:2, 0], 1.0, atol=1e-13)
    two = optim.nesterov_flow(optim.Quadratic(np.diag([1.0, 9.0]), np.zeros(2)), [1.0, 2.0], [0.5, 2.0])
    np.testing.assert_allclose(two.last, [2 * j1(2.0) / 2, 2 * 2 * j1(6.0) / 6], atol=1e-8)
    # Small steps follow it, at t = k sqrt(s).
    s = 1e-4
    run = optim.run(optim.AcceleratedGradient(s), optim.Quadratic([[1.0]], [0.0]), [1.0], max_steps=500, tol=None)
    assert run.x[0] == pytest.approx(2 * j1(5.0) / 5.0, abs=2e-2)


def test_the_flow_refuses_what_it_cannot_do():
    problem = optim.Quadratic([[1.0]], [0.0])
    with pytest.raises(ValueError, match="times must be a list of increasing times"):
        optim.nesterov_flow(problem, [1.0], [1.0, 0.5])
    with pytest.raises(ValueError, match="friction must be positive"):
        optim.nesterov_flow(problem, [1.0], [1.0], friction=0.0)
    with pytest.raises(ValueError, match="singular at zero"):
        optim.nesterov_flow(problem, [1.0], [1.0], start=0.0)


def test_newton_jumps_to_the_minimum_of_a_quadratic_and_falls_back_where_the_hessian_is_indefinite():
    quadratic = optim.Quadratic([[2.0, 1.0], [1.0, 3.0]], [1.0, 2.0])
    result = optim.run(optim.Newton(), quadratic, [5.0, -7.0], max_steps=1, tol=None)
    np.testing.assert_allclose(result.x, [0.2, 0.6], atol=1e-13)

    result = optim.run(optim.Newton(), optim.Objective(double_well), [0.3, 0.1], max_steps=60, tol=None)
    np.testing.assert_allclose(np.abs(result.x), 1.0, atol=1e-8)  # a minimum, from where the Hessian is negative
    assert result.trace["shift"][1] > 0
    assert np.all(np.diff(result.trace.value) <= 1e-15)


def double_well(x, data):
    return jnp.sum((x**2 - 1) ** 2) / 4


def test_newton_is_quadratic_in_the_end_and_its_shift_slows_it():
    problem = optim.Objective(log_sum_exp, A, strong_convexity=0.1)
    norms = optim.run(optim.Newton(), problem, np.ones(4), max_steps=8, tol=None).trace["residual"]
    last = norms[(norms < 1e-2) & (norms > 1e-12)]
    assert norms[-1] < 1e-12
    assert len(last) <= 3  # from two digits to twelve in a few steps
    shifted = optim.run(optim.Newton(shift=5.0), problem, np.ones(4), max_steps=8, tol=None).trace["residual"]
    assert shifted[-1] > 1e-6


def test_a_preconditioner_undoes_the_scales_of_the_coordinates():
    rng = np.random.default_rng(7)
    scales = 10.0 ** np.arange(-2, 2)
    problem = optim.LeastSquares(A * scales, rng.normal(size=12))
    best = np.linalg.lstsq(A * scales, problem.y, rcond=None)[0]
    diagonal = 1 / (np.sum((A * scales) ** 2, axis=0) / 12)
    metric = np.sqrt(diagonal)[:, None] * ((A * scales).T @ (A * scales) / 12) * np.sqrt(diagonal)
    low, high = np.linalg.eigvalsh(metric)[[0, -1]]
    solver = optim.PreconditionedGradient(diagonal, step_size=2 / (low + high))
    run = optim.run(solver, problem, np.zeros(4), max_steps=40, tol=None)
    # The linear rate of gradient descent, in the metric: |x_k - x*| in the norm of 1/H.
    distance = np.linalg.norm((run.x - best) / np.sqrt(diagonal))
    assert distance <= optim.rates.gd_quadratic(
        high, low, 2 / (low + high), 40, np.linalg.norm(best / np.sqrt(diagonal))
    )
    full = optim.PreconditionedGradient(np.linalg.inv((A * scales).T @ (A * scales) / 12))
    np.testing.assert_allclose(optim.run(full, problem, np.zeros(4), max_steps=1, tol=None).x, best, rtol=1e-8)
    for bad, message in (([1.0, -1.0], "positive definite"), ([[1.0, 2.0], [0.0, 1.0]], "a symmetric matrix")):
        with pytest.raises(ValueError, match=message):
            optim.PreconditionedGradient(bad)


def test_conjugate_gradients_against_gradient_descent():
    C = 2 * np.eye(100) - np.eye(100, k=1) - np.eye(100, k=-1)
    problem = optim.Quadratic(C, np.ones(100))
    best = np.linalg.solve(C, np.ones(100))
    assert problem.smoothness / problem.strong_convexity == pytest.approx(4133.64, abs=5e-3)

    def needed(solver, most, every):
        errors = []
        optim.run(
            solver,
            problem,
            np.zeros(100),
            max_steps=most,
            tol=None,
            every=every,
            callback=lambda s: errors.append(np.linalg.norm(s.x - best) / np.linalg.norm(best)),
        )
        return int(np.argmax(np.array(errors) <= 1e-6)) + 1, min(errors)

    steps, reached = needed(optim.ConjugateGradient(), 60, 1)
    assert steps == 50
    assert reached < 1e-10
    # Gradient descent needs 28553: one eigenvalue at a time, the error of step k is (1 - tau lambda)^k.
    fixed = optim.GradientDescent("2/(L+mu)")
    for most, enough in ((28552, False), (28553, True)):
        x = optim.run(fixed, problem, np.zeros(100), max_steps=most, tol=None, every=most).x
        assert (np.linalg.norm(x - best) <= 1e-6 * np.linalg.norm(best)) is np.bool_(enough)


def test_the_steepest_direction_is_minus_the_gradient():
    # argmin over |u| = r of f(x + u), over r, tends to -g / |g|, and at first order in r.
    problem = optim.Quadratic(np.diag([1.0, 10.0]), np.zeros(2))
    g = problem.gradient([1.0, 1.0])
    angles = np.linspace(0, 2 * np.pi, 2_000_001)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    for r, distance in ((0.1, 9.718e-3), (0.01, 8.946e-4), (0.001, 8.872e-5)):
        points = np.array([[1.0], [1.0]]) + r * circle
        best = circle[:, np.argmin(points[0] ** 2 + 10 * points[1] ** 2)]
        assert np.linalg.norm(best + g / np.linalg.norm(g)) == pytest.approx(distance, abs=4e-6)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.AcceleratedGradient("2/L"), ValueError, "step_size must be '1/L', a positive number"),
        (lambda: optim.AcceleratedGradient(-1.0), ValueError, "step_size must be positive and finite"),
        (lambda: optim.AcceleratedGradient(momentum=1.0), ValueError, "momentum must be at least 0 and below 1"),
        (lambda: optim.AcceleratedGradient(momentum="fast"), ValueError, "momentum must be 'nesterov'"),
        (lambda: optim.HeavyBall(step_size=0.0), ValueError, "step_size must be positive"),
        (lambda: optim.HeavyBall(momentum=-0.1), ValueError, "momentum must be at least 0"),
        (lambda: optim.Newton(shift=-1.0), ValueError, "shift must not be negative"),
    ],
)
def test_bad_settings_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


LASSO = optim.Composite(RIDGE, optim.L1(0.1))
FLAT = optim.LeastSquares(A[:2], np.ones(2))


@pytest.mark.parametrize(
    ("solver", "problem", "error", "message"),
    [
        (optim.AcceleratedGradient(), LASSO, TypeError, "use AcceleratedProximalGradient"),
        (optim.HeavyBall(), LASSO, TypeError, "use AcceleratedProximalGradient"),
        (optim.Newton(), LASSO, TypeError, "use AcceleratedProximalGradient"),
        (optim.GradientDescent(), LASSO, TypeError, "does not have"),
        (optim.ConjugateGradient(), optim.Objective(log_sum_exp, A), TypeError, "for convex quadratics"),
        (
            optim.AcceleratedGradient("1/L"),
            optim.Objective(log_sum_exp, A),
            ValueError,
            "needs the smoothness constant",
        ),
        (optim.AcceleratedGradient(momentum="strongly convex"), FLAT, ValueError, "needs a strong convexity"),
        (optim.HeavyBall(), FLAT, ValueError, "needs a strong convexity above zero"),
        (optim.AcceleratedGradient(1e3), RIDGE, ValueError, "must be at most 1/L"),
        (optim.ProximalGradient(1e3), RIDGE, ValueError, "must be at most 2/L"),
    ],
)
def test_what_a_solver_cannot_do_is_refused(solver, problem, error, message):
    with pytest.raises(error, match=message):
        optim.run(solver, problem, np.zeros(4), max_steps=1)
