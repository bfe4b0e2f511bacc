"""Minimisers and minima: ridge regression in closed form, a softmax by enumeration, certificates against the truth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

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
    with pytest.raises(ValueError, match="must be a scalar"):
        argmin(lambda x, t: x, [0.0, 0.0], 0.0)
    with pytest.raises(TypeError, match="compiled solver"):
        argmin(ridge, [0.0, 0.0], THETA, solver="newton")
