"""Where descent ends on ``A x = y``: against published points, the algorithms themselves, and linear programmes."""

import cvxpy
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import optim
from cumulant.certificates import Subject
from cumulant.errors import CertificateError, DomainError, NotConvergedError
from cumulant.geometry import Burg, Euclidean, Hypentropy, Power, Shannon, VonNeumann

ROW, TWO = np.array([[1.0, 2.0]]), np.array([2.0])


@pytest.mark.parametrize(
    ("entropy", "start", "expected"),
    [
        (Euclidean(), 0.0, (0.4, 0.8)),
        (Shannon(), 1e-1, (0.29221444, 0.85389278)),
        (Shannon(), 1e-2, (0.09753125, 0.95123438)),
        (Shannon(), 1e-4, (0.00997503, 0.99501248)),
        (Shannon(), 1e-8, (9.99975e-5, 0.99995)),
        (Burg(), 1e-1, (0.18019610, 0.90990195)),
        (Burg(), 1e-2, (0.01980002, 0.99009999)),
        (Power(0.5), 1e-1, (0.22423681, 0.88788159)),
    ],
    ids=str,
)
def test_published_limits(entropy, start, expected):
    bias = optim.implicit_bias(ROW, TWO, np.full(2, start), entropy)
    assert_allclose(bias.x, expected, atol=5e-9)
    assert bias.residual < 1e-12
    assert bias.certificate.upper < 1e-11
    bias.certificate.verify(bias.subject)
    # The two conditions of optimality, from scratch.
    moved = np.asarray(entropy.gradient(bias.x)) - np.asarray(entropy.gradient(np.full(2, start)))
    assert_allclose(moved, ROW.T @ bias.multiplier, atol=1e-9 * max(1.0, np.max(np.abs(moved))))


def test_the_limit_with_signs():
    bias = optim.implicit_bias([[1.0, -2.0, 0.5]], [1.0], np.zeros(3), Hypentropy(2e-6))
    assert_allclose(bias.x, (7.06850718e-4, -0.499639937, 2.65490781e-5), atol=1e-9)


def test_gradient_descent_and_mirror_descent_do_end_there():
    problem = optim.LeastSquares(ROW, TWO, reduction="sum")
    x0 = np.array([0.3, 0.4])
    for solver, entropy in ((optim.GradientDescent(), Euclidean()), (optim.MirrorDescent(Shannon(), 0.1), Shannon())):
        run = optim.run(solver, problem, x0, max_steps=2000, tol=None, every=2000)
        assert_allclose(run.x, optim.implicit_bias(ROW, TWO, x0, entropy).x, atol=1e-10)


def test_the_limit_is_the_nearest_point_by_a_cone_solver():
    rng = np.random.default_rng(1)
    A = rng.uniform(size=(2, 4))
    x0 = rng.uniform(0.1, 1, size=4)
    y = A @ rng.uniform(0.1, 1, size=4)
    x = cvxpy.Variable(4)
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(cvxpy.kl_div(x, x0))), [A @ x == y]).solve(
        solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    assert_allclose(optim.implicit_bias(A, y, x0, Shannon()).x, x.value, atol=1e-5)


def test_the_certificate_bounds_the_excess_of_any_point():
    rng = np.random.default_rng(2)
    A = rng.uniform(size=(2, 4))
    x0 = np.full(4, 0.5)
    y = A @ rng.uniform(0.2, 1, size=4)
    bias = optim.implicit_bias(A, y, x0, Shannon())
    lowest = float(Shannon().divergence(bias.x, x0))
    kernel = np.linalg.svd(A)[2][2:]
    from cumulant.optim.analysis.implicit_bias import certify_projection

    for _ in range(20):
        x = bias.x + kernel.T @ rng.normal(size=2) * 0.02  # feasible, not nearest
        excess = float(Shannon().divergence(x, x0)) - lowest
        gap = certify_projection(bias.problem, x).bound
        assert excess <= gap + 1e-13
        assert gap <= 4 * excess  # and not absurdly loose
        with pytest.raises(CertificateError, match=r"does not hold|not shown"):
            bias.certificate.verify(Subject(bias.problem, x))


@pytest.mark.parametrize(
    ("entropy", "expected"),
    [
        (Shannon(), (0.0, 1.0)),
        (Burg(), (0.0, 1.0)),
        (Power(0.5), (0.0, 1.0)),
        (Power(1.5), (2 / 9, 8 / 9)),
        (Euclidean(), (0.4, 0.8)),
    ],
    ids=str,
)
def test_small_starts(entropy, expected):
    limit = optim.small_start_limit(ROW, TWO, entropy)
    assert_allclose(limit.x, expected, atol=1e-7)
    small = np.full(2, 1e-12 if isinstance(entropy, Shannon) else 1e-8)
    assert_allclose(optim.implicit_bias(ROW, TWO, small, entropy).x, limit.x, atol=2e-3)


def test_the_bias_is_l1_for_b_at_least_two_only():
    # x = z^(4/3): alpha = 3/2, and the limit is that of the l^1.5 norm, not of the l1 norm.
    from cumulant.optim import flows

    problem = optim.LeastSquares(ROW, TWO, reduction="sum")
    power = flows.PowerMap(4 / 3)
    flow = flows.reparametrised_flow(problem, power, power.start(np.full(2, 1e-7)), [200.0])
    assert_allclose(flow.last, (2 / 9, 8 / 9), atol=1e-3)
    assert_allclose(flow.last, optim.small_start_limit(ROW, TWO, flows.equivalent_entropy(power).entropy).x, atol=1e-3)


def test_signed_limits_are_basis_pursuit():
    A, y = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 1.0]]), np.array([1.0, 1.0])
    limit = optim.small_start_limit(A, y, Hypentropy(1e-6))
    assert_allclose(limit.x, (0.0, 1 / 3, 2 / 3), atol=1e-9)
    assert_allclose(optim.implicit_bias(A, y, np.zeros(3), Hypentropy(1e-12)).x, limit.x, atol=2e-2)
    assert_allclose(
        optim.implicit_bias(A, y, np.zeros(3), Euclidean()).x, (-0.11764706, 0.41176471, 0.58823529), atol=5e-9
    )


def test_unequal_starts_weigh_the_norm():
    # min x_1 |log s_1| + x_2 |log s_2| on x_1 + 2 x_2 = 2: the second is worth twice, unless its start is much smaller.
    for start, expected in (([1e-5, 1e-5], (0.0, 1.0)), ([1e-5, 1e-12], (2.0, 0.0))):
        limit = optim.small_start_limit(ROW, TWO, Shannon(), start)
        assert_allclose(limit.x, expected, atol=1e-12)
        assert_allclose(limit.weights, np.abs(np.log(start)))


def test_power_limits_solve_their_problem():
    rng = np.random.default_rng(3)
    A, y = rng.normal(size=(2, 5)), rng.normal(size=2)
    for alpha in (1.2, 1.5, 1.9):
        x = cvxpy.Variable(5)
        cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(cvxpy.power(cvxpy.abs(x), alpha, approx=False))), [A @ x == y]).solve(
            solver="CLARABEL"
        )
        found = optim.small_start_limit(A, y, Power(alpha)).x
        assert_allclose(A @ found, y, atol=1e-9)
        assert np.sum(np.abs(found) ** alpha) <= np.sum(np.abs(x.value) ** alpha) + 1e-7
        assert_allclose(found, x.value, atol=1e-3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: optim.implicit_bias([[1.0, 1.0], [1.0, 1.0]], [1.0, 2.0], [0.0, 0.0], Euclidean()),
            NotConvergedError,
            "no solution",
        ),
        (lambda: optim.implicit_bias(ROW, -TWO, [0.1, 0.1], Shannon()), NotConvergedError, "no point of the domain"),
        (lambda: optim.implicit_bias(ROW, TWO, [0.1, 0.1, 0.1], Shannon()), ValueError, "A must have shape"),
        (lambda: optim.small_start_limit(ROW, -TWO, Shannon()), DomainError, "no non-negative solution"),
        (lambda: optim.small_start_limit(ROW, TWO, Shannon(), [1.0, 2.0]), ValueError, "strictly between 0 and 1"),
        (lambda: optim.small_start_limit(ROW, TWO, Hypentropy(2.0)), ValueError, "below one"),
        (lambda: optim.small_start_limit(ROW, TWO, VonNeumann()), TypeError, "the small limit is known for"),
        (lambda: optim.small_start_limit([[1.0, 1.0], [1.0, 1.0]], [1.0, 2.0], Power(1.5)), DomainError, "no solution"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
