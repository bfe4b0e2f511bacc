"""Minimisers and minima: ridge regression in closed form, a softmax by enumeration, certificates against the truth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import optim
from cumulant.certificates import Subject
from cumulant.errors import CertificateError, NotConvergedError
from cumulant.layers import ArgminProblem, argmin, certify_argmin, envelope
from cumulant.optim import GradientDescent

B = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
THETA = np.array([1.0, 2.0, 3.0])
HESSIAN = B.T @ B + np.eye(2) / 2


def ridge(x, theta):
    return jnp.sum((B @ x - theta) ** 2) / 2 + jnp.sum(x**2) / 4


def soft(x, theta):
    """Strongly convex with constant 1 and a Hessian that is Lipschitz: |d^3 log-sum-exp| <= 2."""
    return jax.nn.logsumexp(theta * x) + jnp.sum((x - theta) ** 2) / 2


def test_published_gradients():
    """Through the minimiser, with both linear solvers, and of the minimum, which factorises no matrix."""

    def loss(theta, linear_solver):
        x = argmin(ridge, jnp.zeros(2), theta, linear_solver=linear_solver)
        return jnp.sum((x - jnp.array([1.0, -1.0])) ** 2) / 2

    with jax.enable_x64(True):
        theta = jnp.asarray(THETA)
        for linear_solver in ("dense", "iterative"):
            found = jax.jit(jax.grad(loss), static_argnums=1)(theta, linear_solver)
            assert_allclose(found, [0.46373365, 0.73483948, -0.27110583], atol=6e-9)
        slope = jax.jit(jax.grad(lambda t: envelope(ridge, jnp.zeros(2), t))).lower(theta).compile()
        assert_allclose(slope(theta), [-1.20689655, 1.24137931, 1.55172414], atol=6e-9)
        assert "getrf" not in slope.as_text()


def test_the_second_derivative_of_the_envelope():
    """``min_x E`` is a quadratic form in theta here, with Hessian ``I - B (B^T B + 1/2)^-1 B^T``."""
    with jax.enable_x64(True):
        compiled = jax.jit(jax.hessian(lambda s: envelope(ridge, jnp.zeros(2), s))).lower(jnp.asarray(THETA)).compile()
        curvature = np.asarray(compiled(jnp.asarray(THETA)))
        assert "getrf" in compiled.as_text()  # here the minimiser is differentiated
    assert_allclose(curvature, np.eye(3) - B @ np.linalg.solve(HESSIAN, B.T), atol=1e-12)
    assert_allclose(envelope(ridge, [0, 0], THETA), THETA @ curvature @ THETA / 2, rtol=1e-12)


def test_solvers_agree_with_finite_differences():
    rng = np.random.default_rng(0)
    theta, direction = rng.normal(size=4), rng.normal(size=4)
    h = 1e-5
    ahead, behind = (argmin(soft, np.zeros(4), theta + sign * h * direction) for sign in (1, -1))
    descent = jax.jit(lambda t: argmin(soft, jnp.zeros(4), t, solver=GradientDescent(0.3), max_steps=500))
    with jax.enable_x64(True):
        moved = jax.jvp(descent, (jnp.asarray(theta),), (jnp.asarray(direction),))[1]
    assert_allclose(moved, (ahead - behind) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("distance", [1e-2, 1e-6])
def test_certificates_bound_the_distance(distance):
    rng = np.random.default_rng(2)
    theta = rng.normal(size=4)
    # Known to 4e-11, which is what the comparisons allow for.
    exact = argmin(soft, np.zeros(4), theta)
    lipschitz = 2 * np.max(np.abs(theta)) ** 3
    for _ in range(5):
        direction = rng.normal(size=4)
        x = exact + distance * direction / np.linalg.norm(direction)
        strong = certify_argmin(ArgminProblem(soft, theta, strong_convexity=1.0), x)
        assert distance * (1 - 1e-4) <= strong.upper
        assert float(soft(x, theta) - soft(exact, theta)) <= strong.details["bound on E(x) - min E"] + 1e-6
        problem = ArgminProblem(soft, theta, hessian_lipschitz=lipschitz)
        local = certify_argmin(problem, x)
        assert distance * (1 - 1e-4) <= local.upper <= 1.3 * distance
        assert local.verify(Subject(problem, x)).bound <= local.upper


def test_refusals():
    with pytest.raises(CertificateError, match="values at one point bound nothing"):
        certify_argmin(ArgminProblem(ridge, THETA), [0.0, 0.0])
    with pytest.raises(CertificateError, match="below mu"):
        certify_argmin(ArgminProblem(ridge, THETA, strong_convexity=2.0), [0.0, 0.0])
    with pytest.raises(CertificateError, match="positive definite"):
        certify_argmin(ArgminProblem(lambda x, t: -jnp.sum(x**2), 0.0, hessian_lipschitz=0.0), [0.0])
    with pytest.raises(NotConvergedError, match="did not converge in 3 steps"):
        argmin(soft, np.zeros(4), np.ones(4), solver=GradientDescent(0.1), max_steps=3)
    short = jax.jit(jax.grad(lambda t: jnp.sum(argmin(soft, jnp.zeros(4), t, max_steps=1))))
    assert np.all(np.isnan(short(jnp.arange(4.0))))  # not zero, which would look like an answer
    with pytest.raises(ValueError, match="objective must return a number"):
        argmin(lambda x, t: x, [0.0, 0.0], 0.0)
    with pytest.raises(TypeError, match="compiled solver"):
        argmin(ridge, [0.0, 0.0], THETA, solver="newton")


# With a penalty -------------------------------------------------------------------------------------------------------

DESIGN = np.random.default_rng(4).normal(size=(12, 5))
TARGETS = DESIGN @ [2.0, 0.0, -1.0, 0.0, 0.3] + 0.1 * np.random.default_rng(6).normal(size=12)


def least_squares(x, y):
    return jnp.sum((DESIGN @ x - y) ** 2) / 2


def nearest(x, theta):
    return jnp.sum((x - theta) ** 2) / 2


def lasso(y, weight):
    return argmin(least_squares, jnp.zeros(5), y, penalty=optim.L1(weight))


def test_the_derivative_of_the_lasso_in_closed_form():
    """On the support ``S``: ``dx/dy = (A_S^T A_S)^-1 A_S^T`` and ``dx/dweight = -(A_S^T A_S)^-1 sign(x_S)``; else 0."""
    with jax.enable_x64(True):
        both = jax.jit(jax.jacobian(lasso, argnums=(0, 1)))
        in_y, in_weight = both(jnp.asarray(TARGETS), 2.0)
        x = np.asarray(lasso(jnp.asarray(TARGETS), 2.0))
    support = np.flatnonzero(x)
    assert 0 < support.size < 5
    gram = DESIGN[:, support].T @ DESIGN[:, support]
    expected = np.zeros((5, 12))
    expected[support] = np.linalg.solve(gram, DESIGN[:, support].T)
    assert_allclose(in_y, expected, atol=1e-9)
    slopes = np.zeros(5)
    slopes[support] = -np.linalg.solve(gram, np.sign(x[support]))
    assert_allclose(in_weight, slopes, atol=1e-9)
    ours = optim.lasso(DESIGN, TARGETS, 2.0, tol=1e-14)
    assert_allclose(x, ours.x, atol=1e-7)
    h = 1e-4  # the solution is linear in the weight near here: differences are exact up to the accuracy of the layer
    up, down = (argmin(least_squares, np.zeros(5), TARGETS, penalty=optim.L1(2.0 + s * h)) for s in (1, -1))
    assert_allclose(in_weight, (up - down) / (2 * h), atol=1e-6)


@pytest.mark.parametrize("linear_solver", ["dense", "iterative"])
def test_derivatives_of_projections(linear_solver):
    """Soft thresholding; onto a box; onto the simplex, where it is the projection off the mean of the support."""
    theta = np.array([1.7, 0.9, -0.4, 0.1])
    simplex = np.zeros((4, 4))
    simplex[:2, :2] = np.eye(2) - 0.5
    cases = [
        (optim.L1(0.5), np.diag([1.0, 1.0, 0.0, 0.0])),
        (optim.Box(0.0, 1.0), np.diag([0.0, 1.0, 0.0, 1.0])),
        (optim.Simplex(), simplex),
        (optim.ElasticNet(0.5, 1.0), np.diag([0.5, 0.5, 0.0, 0.0])),
    ]
    for penalty, expected in cases:

        def layer(t, penalty=penalty):
            return argmin(nearest, jnp.zeros(4), t, penalty=penalty, linear_solver=linear_solver)

        with jax.enable_x64(True):
            assert_allclose(jax.jit(jax.jacobian(layer))(jnp.asarray(theta)), expected, atol=1e-8)


def in_parts(x, theta):
    return jnp.sum((x["free"] - theta) ** 2) / 2 + jnp.sum((x["shrunk"] - 2 * theta) ** 2) / 2


def test_trees_of_penalties_and_proximal_maps_of_your_own():
    def layer(theta, weight):
        penalty = {"free": None, "shrunk": optim.ProximalMap(prox_ridge, value_ridge, weight)}
        start = {"free": jnp.zeros(2), "shrunk": jnp.zeros(2)}
        return argmin(in_parts, start, theta, penalty=penalty)

    with jax.enable_x64(True):
        theta = jnp.array([1.0, -2.0])
        x = layer(theta, 3.0)
        slopes = jax.jit(jax.jacobian(layer, argnums=1))(theta, 3.0)
    assert_allclose(x["free"], [1.0, -2.0], atol=1e-9)
    assert_allclose(x["shrunk"], np.array([2.0, -4.0]) / 4, atol=1e-9)
    assert_allclose(slopes["shrunk"], -np.array([2.0, -4.0]) / 16, atol=1e-9)
    assert_allclose(slopes["free"], 0.0, atol=1e-12)


def prox_ridge(v, step, weight):
    return v / (1 + step * weight)


def value_ridge(x, weight):
    return weight * jnp.sum(x**2) / 2


def test_mistakes_in_the_objective_and_the_penalty():
    with pytest.raises(TypeError, match="penalty must have the methods prox and value"):
        argmin(nearest, [0.0], [1.0], penalty=0.1)
    with pytest.raises(TypeError, match=r"objective must be a function of \(x, theta\); it takes \(x\)"):
        argmin(lambda x: x, [0.0], [1.0])
    with pytest.raises(TypeError, match="objective must be a JAX function"):
        argmin(lambda x, theta: np.sum(np.asarray(x) ** 2), [0.0], [1.0])
    with pytest.raises(ValueError, match=r"objective must return a number; it returns an array of shape \(1,\)"):
        argmin(lambda x, theta: x, [0.0], [1.0])
