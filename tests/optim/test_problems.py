"""Constants and gradients of the problems, against NumPy and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.optim.problems.base import widen
from tests.optim.cases import A, Y, log_sum_exp

X = np.array([0.3, -0.2, 0.7, 0.1])
C = A.T @ A


def finite_difference(function, x, h=1e-6):
    return np.array([(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(x.size)])


PROBLEMS = {
    "mean": (optim.LeastSquares(A, Y, 0.3), lambda x: np.sum((A @ x - Y) ** 2) / 24 + 0.15 * x @ x),
    "sum": (optim.LeastSquares(A, Y, 0.3, reduction="sum"), lambda x: np.sum((A @ x - Y) ** 2) / 2 + 0.15 * x @ x),
    "quadratic": (optim.Quadratic(C, A.T @ Y), lambda x: x @ C @ x / 2 - Y @ A @ x),
    "objective": (optim.Objective(log_sum_exp, A), lambda x: np.log(np.sum(np.exp(A @ x))) + 0.05 * x @ x),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_values_gradients_and_hessians(name):
    problem, plain = PROBLEMS[name]
    v = np.array([1.0, -1.0, 0.5, 2.0])
    assert problem.value(X) == pytest.approx(plain(X), rel=1e-13)
    np.testing.assert_allclose(problem.gradient(X), finite_difference(plain, X), rtol=1e-7, atol=1e-8)
    value, gradient = problem.value_and_gradient(X)
    assert value == pytest.approx(plain(X), rel=1e-13)
    np.testing.assert_allclose(gradient, problem.gradient(X), rtol=1e-12)
    along = (problem.gradient(X + 1e-6 * v) - problem.gradient(X - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(problem.hessian_apply(X, v), along, rtol=1e-6, atol=1e-7)
    assert isinstance(problem.gradient(X), np.ndarray)
    assert problem.gradient(jnp.asarray(X)).dtype == jnp.float32
    assert jax.jit(lambda p, x: p.value(x))(problem, jnp.asarray(X)) == pytest.approx(plain(X), rel=1e-5)


def test_the_constants_are_the_extreme_eigenvalues_of_the_hessian():
    for problem, hessian in (
        (PROBLEMS["mean"][0], C / 12 + 0.3 * np.eye(4)),
        (PROBLEMS["sum"][0], C + 0.3 * np.eye(4)),
        (PROBLEMS["quadratic"][0], C),
    ):
        eigenvalues = np.linalg.eigvalsh(hessian)
        assert problem.smoothness == pytest.approx(eigenvalues[-1], rel=1e-12)
        assert problem.strong_convexity == pytest.approx(eigenvalues[0], rel=1e-12)


def test_a_published_constant():
    problem = optim.LeastSquares([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], reduction="sum")
    assert problem.smoothness == pytest.approx(90.735494912734, abs=1e-8)


def test_a_rank_that_is_lost_in_rounding_is_not_strong_convexity():
    dependent = np.column_stack([A, A @ np.array([1.0, 2.0, 3.0, 4.0])])
    assert optim.LeastSquares(dependent, Y).strong_convexity == 0.0
    assert optim.LeastSquares(dependent, Y, l2=1e-3).strong_convexity == 1e-3
    assert optim.LeastSquares(A[:2], Y[:2]).strong_convexity == 0.0  # more unknowns than equations
    assert optim.Quadratic(dependent.T @ dependent, np.zeros(5)).strong_convexity == 0.0
    assert optim.Quadratic(dependent.T @ dependent, np.zeros(5)).convex
    saddle = optim.Quadratic(np.diag([-1.0, 2.0]), np.zeros(2))
    assert not saddle.convex
    assert (saddle.smoothness, saddle.strong_convexity) == (2.0, 0.0)


def test_the_rounding_of_a_gradient_is_within_its_bound():
    # The exact gradient in rational arithmetic, on badly scaled data.
    from fractions import Fraction

    rng = np.random.default_rng(3)
    M = rng.normal(size=(30, 5)) * 10.0 ** rng.integers(-6, 6, size=(30, 5))
    y, x = rng.normal(size=30) * 1e3, rng.normal(size=5) * 1e4
    problem = optim.LeastSquares(M, y, l2=0.1, reduction="sum")
    exact = []
    rows = [[Fraction(v) for v in row] for row in M]
    residual = [
        sum((a * Fraction(b) for a, b in zip(row, x, strict=True)), -Fraction(t))
        for row, t in zip(rows, y, strict=True)
    ]
    for j in range(5):
        exact.append(sum((row[j] * r for row, r in zip(rows, residual, strict=True)), Fraction(0.1) * Fraction(x[j])))
    error = np.linalg.norm([float(Fraction(g) - e) for g, e in zip(problem.gradient(x), exact, strict=True)])
    assert 0 < error <= problem.gradient_rounding(x)


def test_problems_are_pytrees_whose_arrays_are_leaves():
    problem = PROBLEMS["mean"][0]
    assert len(jax.tree.leaves(problem)) == 3
    doubled = jax.tree.map(lambda leaf: 2 * leaf, problem)
    np.testing.assert_array_equal(doubled.A, 2 * A)
    narrow = optim.LeastSquares(jnp.asarray(A), jnp.asarray(Y))
    assert widen(narrow).A.dtype == np.float64


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: optim.LeastSquares(A, Y[:3]),
            ValueError,
            r"one row for each entry of y; got shapes \(12, 4\) and \(3,\)",
        ),
        (lambda: optim.LeastSquares(A, Y, l2=-1.0), ValueError, "l2 must be finite and not negative; got -1.0"),
        (lambda: optim.LeastSquares(A * np.nan, Y), ValueError, "A must be finite"),
        (lambda: optim.LeastSquares(np.zeros((0, 2)), []), ValueError, "A must not be empty"),
        (
            lambda: optim.LeastSquares(A, Y, reduction="max"),
            ValueError,
            "reduction must be one of 'mean', 'sum'; got 'max'",
        ),
        (lambda: optim.LeastSquares(["a"], Y), TypeError, "A must be an array of real numbers"),
        (lambda: optim.Quadratic([[1.0, 2.0], [0.0, 1.0]], [0.0, 0.0]), ValueError, "C must be symmetric"),
        (lambda: optim.Quadratic(np.eye(3), [0.0, 0.0]), ValueError, "C must be square, of the size of b"),
        (lambda: optim.Quadratic(np.eye(3), 0.0), ValueError, r"b must have 1 axis; got shape \(\)"),
        (lambda: optim.Objective("f"), TypeError, "function must be a function of"),
        (lambda: optim.Objective(log_sum_exp, A, smoothness=np.nan), ValueError, "smoothness must be finite"),
        (lambda: optim.Objective(log_sum_exp, A, relative_smoothness=1.0), ValueError, "give reference too"),
    ],
)
def test_bad_data_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_problem_that_is_wide_already_keeps_what_it_has_computed():
    problem = optim.LeastSquares(A, Y, 0.3)
    assert widen(problem) is problem
    narrow = optim.LeastSquares(jnp.asarray(A), jnp.asarray(Y), 0.3)
    assert widen(narrow) is not narrow
    assert widen(narrow).strong_convexity == pytest.approx(problem.strong_convexity, rel=1e-5)
