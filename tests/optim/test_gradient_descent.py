"""Gradient descent: published numbers, step rules, certificates."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.optim.certify.strong_convexity import certify_strong_convexity
from tests.optim.cases import RIDGE, A, Y, log_sum_exp

TWO = optim.Quadratic(np.diag([1.0, 10.0]), np.zeros(2))


def iterates(solver, problem, x0, steps):
    """Every iterate, by asking the callback."""
    found = [np.asarray(x0, dtype=float)]
    optim.run(solver, problem, x0, max_steps=steps, tol=None, callback=lambda s: found.append(s.x))
    return np.array(found)


def test_the_best_fixed_step_on_a_quadratic():
    result = optim.run(optim.GradientDescent("2/(L+mu)"), TWO, [1.0, 1.0], max_steps=10, tol=None)
    assert np.linalg.norm(result.x) == pytest.approx(0.190113624032, abs=1e-12)
    assert np.linalg.norm(result.x) == pytest.approx((9 / 11) ** 10 * np.sqrt(2), abs=1e-14)


def test_exact_line_search_zigzags():
    xs = iterates(optim.GradientDescent(optim.ExactLineSearch()), TWO, [10.0, 1.0], 8)
    gradients = xs * [1.0, 10.0]
    moved = np.diff(xs, axis=0)
    np.testing.assert_allclose(-moved / gradients[:-1], 2 / 11, rtol=1e-10)  # every step is 2/11
    values = np.array([TWO.value(x) for x in xs])
    np.testing.assert_allclose(values[1:] / values[:-1], 0.669421487603, rtol=1e-10)
    products = np.sum(gradients[1:] * gradients[:-1], axis=1) / (
        np.linalg.norm(gradients[1:], axis=1) * np.linalg.norm(gradients[:-1], axis=1)
    )
    np.testing.assert_allclose(products, 0, atol=1e-12)


def test_exact_line_search_finds_the_minimiser_of_a_function_that_is_not_quadratic():
    from scipy.optimize import minimize_scalar

    problem = optim.Objective(log_sum_exp, A, strong_convexity=0.1)
    xs = iterates(optim.GradientDescent(optim.ExactLineSearch()), problem, np.ones(4), 6)
    for before, after in itertools.pairwise(xs):
        g = problem.gradient(before)
        best = minimize_scalar(
            lambda t, x=before, g=g: problem.value(x - t * g), bracket=(0, 0.1), options={"xtol": 1e-12}
        )
        assert problem.value(after) <= best.fun + 1e-13
        assert abs(problem.gradient(after) @ g) <= 1e-9 * (g @ g)


def test_armijo_by_hand():
    solver = optim.GradientDescent(optim.Armijo(alpha=0.3, beta=0.5, initial=1.0, warm=False))
    xs = iterates(solver, TWO, [1.0, 1.0], 1)
    np.testing.assert_allclose(xs[1], np.array([1.0, 1.0]) - 0.125 * np.array([1.0, 10.0]), rtol=1e-14)
    assert TWO.value(xs[0]) == 5.5
    assert TWO.value(xs[1]) == 0.6953125


@pytest.mark.parametrize("warm", [True, False])
def test_armijo_decreases_enough_at_every_step_and_converges(warm):
    problem = optim.Objective(log_sum_exp, A, strong_convexity=0.1)
    xs = iterates(optim.GradientDescent(optim.Armijo(initial=100.0, warm=warm)), problem, np.ones(4), 30)
    for before, after in itertools.pairwise(xs):
        g = problem.gradient(before)
        step = np.linalg.norm(after - before) / np.linalg.norm(g)
        assert problem.value(after) <= problem.value(before) - 0.3 * step * (g @ g) + 1e-14
    # It gets to the end: near the minimum the decrease is below the rounding of the value, and it must not get stuck
    # before.
    result = optim.run(optim.GradientDescent(optim.Armijo(warm=warm)), problem, np.ones(4), tol=1e-13, max_steps=5000)
    assert result.status == "converged"


def test_armijo_backs_away_from_where_the_function_is_not_defined():
    def barrier(x, data):
        return jnp.sum(x - jnp.log(x))

    result = optim.run(optim.GradientDescent(optim.Armijo(initial=64.0)), optim.Objective(barrier), [3.0], max_steps=60)
    assert result.x[0] == pytest.approx(1.0, abs=1e-6)


def test_the_certificate_is_above_the_true_gap_on_random_problems():
    rng = np.random.default_rng(8)
    for _ in range(20):
        M = rng.normal(size=(12, 4)) * 10.0 ** rng.uniform(-2, 2, size=4)
        y = rng.normal(size=12)
        problem = optim.LeastSquares(M, y, l2=10.0 ** rng.uniform(-3, 0))
        best = np.linalg.solve(M.T @ M / 12 + problem.l2 * np.eye(4), M.T @ y / 12)
        x = best + rng.normal(size=4) * 10.0 ** rng.uniform(-8, 1)
        # The gap without cancellation: half the squared distance in the norm of the Hessian.
        d = x - best
        gap = (np.sum((M @ d) ** 2) / 12 + problem.l2 * d @ d) / 2
        certificate = certify_strong_convexity(problem, x)
        assert gap <= certificate.upper * (1 + 1e-6)
        assert certificate.verify(Subject(problem, x)).bound == pytest.approx(certificate.bound, rel=1e-12)


def test_the_certificate_is_tight_where_only_the_flattest_direction_is_left():
    certificate = certify_strong_convexity(TWO, np.array([1.0, 0.0]))
    assert certificate.bound == pytest.approx(0.5, rel=1e-14)  # f(x) - f* = 1/2


def test_rounding_does_not_make_the_certificate_lie():
    # At the computed solution the true gradient is rounding error: the slack has to cover it.
    M = np.vander(np.linspace(0, 1, 12), 6)
    y = np.linspace(-1, 2, 12) ** 3
    problem = optim.LeastSquares(M, y, l2=1e-12)
    x = np.linalg.solve(M.T @ M / 12 + 1e-12 * np.eye(6), M.T @ y / 12)
    import fractions

    F = fractions.Fraction
    rows = [[F(v) for v in row] for row in M]
    residual = [sum((a * F(b) for a, b in zip(row, x, strict=True)), -F(t)) for row, t in zip(rows, y, strict=True)]
    exact = [
        sum((r[j] * e for r, e in zip(rows, residual, strict=True)), F(0)) / 12 + F(1e-12) * F(x[j]) for j in range(6)
    ]
    true_bound = sum(float(g) ** 2 for g in exact) / (2 * problem.strong_convexity)
    assert true_bound <= certify_strong_convexity(problem, x).upper


def test_it_is_refused_without_strong_convexity_and_names_the_assumption():
    flat = optim.LeastSquares(A[:2], Y[:2])
    with pytest.raises(CertificateError, match="not shown that the objective is strongly convex") as refusal:
        certify_strong_convexity(flat, np.zeros(4))
    assert refusal.value.assumption == "the objective is strongly convex"


def test_a_constant_that_came_with_the_problem_is_marked_as_assumed():
    problem = optim.Objective(log_sum_exp, A, strong_convexity=0.1)
    certificate = certify_strong_convexity(problem, np.zeros(4))
    assert certificate.assumptions[0].status == "assumed"
    assert certify_strong_convexity(RIDGE, np.zeros(4)).assumptions[0].status == "checked"


def test_a_certificate_survives_a_file_and_fails_for_a_worse_point():
    from cumulant.certificates import Certificate

    result = optim.run(optim.GradientDescent(), RIDGE, np.zeros(4), tol=1e-8)
    again = Certificate.from_json(result.certificate.to_json())
    again.verify(result.subject)
    with pytest.raises(CertificateError, match="does not hold"):
        again.verify(Subject(RIDGE, result.x + 0.1))


@pytest.mark.parametrize("step", ["1/M", -1.0, 0.0, np.inf])
def test_bad_steps_are_refused(step):
    with pytest.raises(ValueError, match="step_size must be"):
        optim.GradientDescent(step)


@pytest.mark.parametrize("settings", [{"alpha": 0.5}, {"alpha": 0.0}, {"beta": 1.0}, {"beta": 0.0}, {"initial": 0.0}])
def test_bad_line_searches_are_refused(settings):
    with pytest.raises(ValueError, match="of Armijo"):
        optim.Armijo(**settings)


def test_a_step_from_a_constant_the_problem_does_not_have_is_refused():
    with pytest.raises(ValueError, match="needs the smoothness constant"):
        optim.run(optim.GradientDescent("1/L"), optim.Objective(log_sum_exp, A), np.zeros(4))
    with pytest.raises(ValueError, match=r"x0 must have shape \(4,\) for this LeastSquares; got \(4, 2\)"):
        optim.run(optim.GradientDescent(0.1), optim.LeastSquares(A, Y), np.zeros((4, 2)))
