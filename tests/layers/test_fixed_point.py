"""Fixed points: known roots and derivatives, every solver, and certificates against the true distance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.certificates import Subject
from cumulant.errors import CertificateError, DomainError, NotConvergedError
from cumulant.layers import FixedPointProblem, certify_fixed_point, fixed_point, kantorovich_radius

SOLVERS = ["iteration", "anderson", "newton"]


def cosine(x, theta):
    return jnp.cos(theta * x)


def root(x, theta):
    return (x + theta / x) / 2


def network(x, theta):
    return jnp.tanh(theta["W"] @ x + theta["b"])


def affine(x, theta):
    return theta[0] @ x + theta[1]


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(6, 6))
    return {"W": 0.6 * W / np.linalg.norm(W, 2), "b": rng.normal(size=6)}


def test_published_roots_and_derivatives():
    """cos(theta x), and the square root by Newton's iteration, where the formula for roots would divide by zero."""

    @jax.jit
    def all_solvers(theta, tangent):
        found = []
        for solver in SOLVERS:
            value, slope = jax.value_and_grad(lambda t: fixed_point(cosine, 0.5, t, solver=solver))(theta)  # noqa: B023
            forward = jax.jvp(lambda t: fixed_point(root, 1.0, t, solver=solver), (2.0,), (tangent,))[1]  # noqa: B023
            found.append(jnp.stack([value, slope, forward]))
        return jnp.stack(found)

    with jax.enable_x64(True):
        found = np.asarray(all_solvers(1.0, 1.0))
    assert_allclose(found, [[0.739085133215, -0.297474341510, 0.353553390593]] * 3, atol=1e-9)
    assert_allclose(fixed_point(cosine, 0.5, 1.0), 0.739085133215, atol=1e-9)


@pytest.mark.parametrize("linear_solver", ["dense", "iterative"])
def test_the_gradient_through_a_network_is_that_of_the_unrolled_iteration(weights, linear_solver):
    """The reference differentiates 120 iterations, whose contraction leaves 0.6^120 of the start."""

    def unrolled(theta):
        x = jax.lax.scan(lambda x, _: (network(x, theta), None), jnp.zeros(6), None, length=120)[0]
        return jnp.sum(jnp.sin(x))

    def layer(theta):
        return jnp.sum(jnp.sin(fixed_point(network, jnp.zeros(6), theta, linear_solver=linear_solver)))

    with jax.enable_x64(True):
        theta = jax.tree.map(jnp.asarray, weights)
        expected, found = jax.jit(jax.grad(unrolled))(theta), jax.jit(jax.grad(layer))(theta)
        assert_allclose(found["W"], expected["W"], atol=1e-9)
        assert_allclose(found["b"], expected["b"], atol=1e-9)


def test_second_derivatives_and_batches():
    with jax.enable_x64(True):
        second = jax.jit(jax.vmap(jax.hessian(lambda t: fixed_point(root, 1.0, t))))(jnp.array([1.0, 2.0]))
        assert_allclose(second, [-0.25, -0.25 * 2**-1.5], rtol=1e-9)


@pytest.mark.parametrize("distance", [1e-1, 1e-4, 1e-9])
def test_certificates_bound_the_distance(weights, distance):
    """A contraction and an affine map with known fixed points, looked at from a given distance."""
    rng = np.random.default_rng(1)
    exact = fixed_point(network, np.zeros(6), weights, solver="newton", tol=1e-15)
    for _ in range(5):
        x = exact + distance * (direction := rng.normal(size=6)) / np.linalg.norm(direction)
        problem = FixedPointProblem(network, weights, contraction=0.6)
        by_factor = certify_fixed_point(problem, x)
        assert distance * (1 - 1e-6) <= by_factor.upper <= 5 * distance
        assert by_factor.verify(Subject(problem, x)).bound <= by_factor.upper
        # tanh'' is at most 4 / (3 sqrt 3), and |W| = 0.6.
        lipschitz = 4 / (3 * np.sqrt(3)) * 0.36
        by_newton = certify_fixed_point(FixedPointProblem(network, weights, jacobian_lipschitz=lipschitz), x)
        assert distance * (1 - 1e-6) <= by_newton.upper <= 1.2 * distance
    # No contraction, and yet a bound: the map doubles distances.
    grows = certify_fixed_point(
        FixedPointProblem(affine, (2 * np.eye(2), [-1.0, -2.0]), jacobian_lipschitz=0.0), [1.0 + distance, 2.0]
    )
    assert_allclose(grows.bound, distance, rtol=1e-6)


def test_a_certificate_that_is_not_supported_is_refused(weights):
    x = np.zeros(6)
    with pytest.raises(CertificateError, match="values at one point bound nothing"):
        certify_fixed_point(FixedPointProblem(network, weights), x)
    with pytest.raises(CertificateError, match="no larger than the contraction factor"):
        certify_fixed_point(FixedPointProblem(network, weights, contraction=0.01), x)
    with pytest.raises(CertificateError, match="small enough for the theorem"):
        certify_fixed_point(FixedPointProblem(root, 2.0, jacobian_lipschitz=2000.0), 0.1)
    with pytest.raises(CertificateError, match="change of the Jacobian"):
        certify_fixed_point(FixedPointProblem(cosine, 1.0, jacobian_lipschitz=0.0), 0.5)  # it is not affine
    assert kantorovich_radius(1.0, 1.0, 0.5) == 2.0


def test_what_does_not_converge_is_refused_or_not_a_number():
    with pytest.raises(NotConvergedError, match="residual is"):
        fixed_point(cosine, 0.5, 1.0, max_steps=5)
    assert bool(jnp.isnan(jax.jit(lambda t: fixed_point(cosine, 0.5, t, max_steps=5))(1.0)))
    with pytest.raises(DomainError, match="became non-finite"):
        fixed_point(root, 0.0, 2.0)
    with pytest.raises(ValueError, match="shape of x"):
        fixed_point(affine, [0.0, 0.0], (np.ones((3, 2)), 0.0))
    with pytest.raises(ValueError, match="solver must be one of"):
        fixed_point(cosine, 0.5, 1.0, solver="broyden")
    with pytest.raises(ValueError, match="tol must be positive"):
        fixed_point(cosine, 0.5, 1.0, tol=0.0)


@pytest.mark.slow
def test_optimistix_finds_the_same(weights):
    optimistix = pytest.importorskip("optimistix")
    with jax.enable_x64(True):
        theta = jax.tree.map(jnp.asarray, weights)

        def peer(theta):
            solver = optimistix.FixedPointIteration(rtol=1e-12, atol=1e-12)
            return jnp.sum(jnp.sin(optimistix.fixed_point(network, solver, jnp.zeros(6), theta).value))

        def ours(theta):
            return jnp.sum(jnp.sin(fixed_point(network, jnp.zeros(6), theta)))

        assert_allclose(jax.grad(ours)(theta)["W"], jax.grad(peer)(theta)["W"], atol=1e-9)
