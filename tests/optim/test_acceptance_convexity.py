"""Convexity, smoothness and stationary points (Peyré 2021, sections 2 and 3), on the problems of the package."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.errors import CertificateError, DomainError
from cumulant.geometry import LogDet
from tests.optim.cases import log_sum_exp

RNG = np.random.default_rng(0)
A, Y = RNG.normal(size=(9, 3)), RNG.normal(size=9)
SIGNS, CLASSES = np.sign(Y), RNG.integers(0, 3, size=9)
PROBLEMS = {
    "least squares": optim.LeastSquares(A, Y, l2=0.2),
    "logistic": optim.Logistic(A, SIGNS, l2=0.1, reduction="sum"),
    "squared hinge": optim.MarginLoss(A, SIGNS, optim.SquaredHingeLoss(), l2=0.3),
    "classes": optim.MultinomialLogistic(A, CLASSES, l2=0.05),
    # The Hessian of log-sum-exp is at most |A|^2, and the penalty of the case adds 0.1.
    "log-sum-exp": optim.Objective(log_sum_exp, A, smoothness=np.linalg.norm(A, 2) ** 2 + 0.1, strong_convexity=0.1),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_between_the_two_parabolas_of_its_constants(name):
    """Equation 19 with the gradient at the right point, for pairs near and far; and the chord, and monotone gradients.

    ``f(y) + <grad f(y), x - y> + mu/2 |x - y|^2 <= f(x) <= f(y) + <grad f(y), x - y> + L/2 |x - y|^2``.
    """
    problem, rng = PROBLEMS[name], np.random.default_rng(1)
    shape = problem.shape or (3,)
    x, y = rng.normal(size=(2, 200, *shape)) * 10.0 ** rng.uniform(-3, 1, size=(2, 200, *[1] * len(shape)))
    t = rng.uniform(size=(200, *[1] * len(shape)))
    with jax.enable_x64(True):
        both = jax.jit(jax.vmap(problem.value_and_gradient))
        value, gradient = (np.asarray(each) for each in both(jnp.asarray(np.concatenate([x, y, t * x + (1 - t) * y]))))
    (fx, fy, middle), (gx, gy, _) = np.split(value, 3), np.split(gradient, 3)
    inner = lambda a, b: np.sum((a * b).reshape(200, -1), axis=1)  # noqa: E731
    squared, tangent = inner(x - y, x - y), fy + inner(gy, x - y)
    slack = 1e-12 * (1 + np.abs(fx) + np.abs(fy))
    assert np.all(fx >= tangent + problem.strong_convexity / 2 * squared - slack)
    assert np.all(fx <= tangent + problem.smoothness / 2 * squared + slack)
    t = t.reshape(200)
    assert np.all(middle <= t * fx + (1 - t) * fy + slack)  # the epigraph is convex
    assert np.all(inner(gx - gy, x - y) >= problem.strong_convexity * squared - slack)
    # The constants say something: the bounds come within a factor of fifty of what happens.
    assert np.max((fx - tangent) / squared) > problem.smoothness / 100


def test_a_function_of_rows_obeys_the_chain_rule():
    """``grad (g o B)(x) = B^T grad g(B x)``, and the Jacobian and its transpose are adjoint."""
    B, rng = RNG.normal(size=(4, 3)), np.random.default_rng(2)
    outer = optim.Objective(log_sum_exp, np.eye(4))
    inner = optim.Objective(lambda x, data: log_sum_exp(data @ x, jnp.eye(4)), B)
    x, e, w = rng.normal(size=3), rng.normal(size=3), rng.normal(size=4)
    np.testing.assert_allclose(inner.gradient(x), B.T @ outer.gradient(B @ x), rtol=1e-12)
    with jax.enable_x64(True):
        forward = jax.jvp(lambda x: jnp.tanh(B @ x), (jnp.asarray(x),), (jnp.asarray(e),))[1]
        backward = jax.vjp(lambda x: jnp.tanh(B @ x), jnp.asarray(x))[1](jnp.asarray(w))[0]
        forward, backward = np.asarray(forward), np.asarray(backward)
    assert forward @ w == pytest.approx(backward @ e, rel=1e-12)
    v = rng.normal(size=3)
    assert v @ inner.hessian_apply(x, e) == pytest.approx(e @ inner.hessian_apply(x, v), rel=1e-10)


def fourth(x, data):
    return jnp.sum(x**4)


def cubic(x, data):
    return jnp.sum(x**3)


def capped(x, data):
    return jnp.sum(jnp.minimum(1.0, x**2))


def falling(x, data):
    return jnp.sum(jnp.exp(-x))


def corner(x, data):
    return 2 * x[0] * x[1] * (x[0] + x[1]) / (x[0] ** 2 + x[1] ** 2)


def test_a_gradient_of_zero_is_no_certificate_of_a_minimum():
    """At 0: a strict minimum without curvature, an inflection, a minimum of a function that is not convex, a saddle."""
    for problem in (
        optim.Objective(fourth, convex=True),
        optim.Objective(cubic),
        optim.Objective(capped),
        optim.Quadratic(np.diag([1.0, -1.0]), np.zeros(2)),
    ):
        x = np.zeros(2)
        np.testing.assert_array_equal(problem.gradient(x), 0.0)
        with pytest.raises(CertificateError, match="not shown that the objective is strongly convex"):
            optim.certify_optimality(problem, x)
    result = optim.run(optim.GradientDescent(0.1), problem, x, max_steps=2)
    assert (result.status, result.work) == ("stationary", 0)
    assert result.certificate is None


def test_no_minimum_no_claim():
    """``exp(-x)`` is convex and bounded below, and its infimum is not attained: steps go on, nothing is certified."""
    result = optim.run(
        optim.GradientDescent(1.0), optim.Objective(falling, convex=True), [0.0], max_steps=500, tol=1e-2
    )
    assert result.x[0] > 5
    assert result.certificate is None
    # Least squares is coercive exactly where the columns are independent, which fewer rows than columns never are.
    for rows, known in ((9, True), (2, False)):
        problem = optim.LeastSquares(A[:rows], Y[:rows])
        assert (problem.strong_convexity > 0) is known
    # Logistic regression is not: independent columns, separable classes, no minimiser.
    separable = np.sign(A @ [1.0, -1.0, 0.5])
    assert np.linalg.matrix_rank(A) == 3
    assert optim.is_separable(A, separable)
    with pytest.raises(CertificateError, match="not shown that a minimiser exists"):
        optim.certify_optimality(optim.Logistic(A, separable), np.zeros(3))


def test_partial_derivatives_are_not_differentiability():
    """``2 x y (x + y) / (x^2 + y^2)``: flat along both axes at 0, slope sqrt 2 between them. No gradient is given."""
    step = np.array([1.0, 1.0]) / np.sqrt(2) * 1e-6
    problem = optim.Objective(corner)
    assert (float(problem.value(step)) - 0.0) / 1e-6 == pytest.approx(1.41421356, abs=1e-8)
    assert [float(problem.value(1e-6 * e)) for e in np.eye(2)] == [0.0, 0.0]
    with pytest.raises(DomainError, match="not finite at x0"):
        optim.run(optim.GradientDescent(0.1), problem, [0.0, 0.0])
    # A gradient is orthogonal to the level set through its point: along c(t) in {f = const}, <c'(0), grad f> = 0.
    level = optim.Quadratic(np.diag([1.0, 4.0]), np.zeros(2))
    for angle in (0.3, 1.2, 2.5):  # x = (2 cos, sin) has f = 2
        x, tangent = np.array([2 * np.cos(angle), np.sin(angle)]), np.array([-2 * np.sin(angle), np.cos(angle)])
        assert float(level.value(x)) == pytest.approx(2.0, rel=1e-12)
        assert abs(tangent @ level.gradient(x)) < 1e-12


def test_minus_the_log_determinant_is_self_concordant():
    """The third derivative along a line is at most ``2 f2^(3/2)``, ``f2`` the second; equal in one dimension."""
    rng, h = np.random.default_rng(4), 1e-5
    roots, moves = rng.normal(size=(2, 100, 3, 3))
    X, U = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(3), (moves + moves.transpose(0, 2, 1)) / 2
    U /= np.linalg.norm(np.linalg.solve(X, U), axis=(1, 2), keepdims=True)  # so that the line stays inside for |t| < 1

    def second(t, X=X, U=U):
        return np.sum(U * LogDet().hessian_apply(X + t * U, U), axis=(-2, -1))

    third = (second(h) - second(-h)) / (2 * h)
    assert np.all(np.abs(third) <= 2 * second(0.0) ** 1.5 + 1e-8)
    assert np.max(np.abs(third) / (2 * second(0.0) ** 1.5)) > 0.8
    one = np.array([[2.5]])
    assert second(0.0, one, one) == pytest.approx(1.0, rel=1e-12)
    assert (second(h, one, one) - second(-h, one, one)) / (2 * h) == pytest.approx(-2.0, rel=1e-8)
