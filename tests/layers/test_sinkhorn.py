"""Entropic transport: published numbers, the unrolled iteration, linear programming, and a peer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from cumulant.certificates import Subject
from cumulant.errors import CertificateError, DomainError, NotConvergedError
from cumulant.layers import TransportProblem, certify_entropic_transport, certify_transport, round_plan, sinkhorn

COST = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]])
A, B, EPSILON = np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.4]), 0.5


@pytest.fixture(scope="module")
def random():
    rng = np.random.default_rng(0)
    return rng.uniform(size=(4, 6)), rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(6)), 0.1


def plain(cost, a, b, epsilon, steps):
    """Scalings without logarithms, one half after the other."""
    K, v = np.exp(-cost / epsilon), np.ones(len(b))
    for _ in range(steps):
        u = a / (K @ v)
        v = b / (K.T @ u)
    return u[:, None] * K * v


def test_published_plan_values_and_derivative():
    found = sinkhorn(COST, A, B, EPSILON)
    published = [[0.19646347, 0.00353653], [0.36722616, 0.13277384], [0.03631037, 0.26368963]]
    assert_allclose(found.plan, published, atol=6e-9)
    assert_allclose(found.plan, plain(COST, A, B, EPSILON, 200), atol=1e-10)
    assert_allclose(found.transport_cost, 0.509770351152, atol=1e-9)
    assert_allclose(found.value, -0.713986132972, atol=1e-11)
    primal = np.sum(COST * found.plan) + EPSILON * np.sum(found.plan * (np.log(found.plan) - 1))
    assert_allclose(primal, found.value, atol=1e-9)
    assert_allclose(found.f.sum(), found.g.sum(), atol=1e-12)
    with jax.enable_x64(True):
        slopes = jax.jit(jax.grad(lambda a, b: sinkhorn(COST, a, b, EPSILON).value, (0, 1)))
        grad_a, grad_b = map(np.asarray, slopes(*map(jnp.asarray, (A, B))))
        along = grad_a @ np.array([1.0, -2.0, 1.0]) + grad_b @ np.array([1.0, -1.0])
        assert_allclose(along, -0.461022606, atol=1e-9)


def test_both_halves_at_once_never_settle():
    """What is printed splits in two chains, and the mass of the plan alternates for ever."""
    K, u, v = np.exp(-COST / EPSILON), np.ones(3), np.ones(2)
    masses = []
    for _ in range(400):
        u, v = A / (K @ v), B / (K.T @ u)
        masses.append(u @ K @ v)
    assert_allclose(sorted(masses[-2:]), [0.355069, 2.816352], atol=1e-6)


def test_gradients_are_those_of_the_unrolled_iteration(random):
    def unrolled(cost, a, b, epsilon):
        def update(potentials, _):
            g = epsilon * (jnp.log(b) - jax.nn.logsumexp((potentials[0][:, None] - cost) / epsilon, axis=0))
            return (epsilon * (jnp.log(a) - jax.nn.logsumexp((g[None, :] - cost) / epsilon, axis=1)), g), None

        (f, g), _ = jax.lax.scan(update, (jnp.zeros_like(a), jnp.zeros_like(b)), None, length=150)
        shift = (f.sum() - g.sum()) / 10
        plan = jnp.exp((f[:, None] + g[None, :] - cost) / epsilon)
        return jnp.sum(jnp.sin(3 * plan)) + jnp.sum((f - shift) ** 2)

    def layer(*problem):
        found = sinkhorn(*problem, tol=1e-14)
        return jnp.sum(jnp.sin(3 * found.plan)) + jnp.sum(found.f**2)

    with jax.enable_x64(True):
        problem = tuple(map(jnp.asarray, random))
        expected = jax.jit(jax.grad(unrolled, (0, 1, 2, 3)))(*problem)
        found = jax.jit(jax.grad(layer, (0, 1, 2, 3)))(*problem)
        expected, found = ([np.asarray(each) for each in both] for both in (expected, found))
    assert_allclose(found[0], expected[0], atol=1e-10)
    assert_allclose(found[3], expected[3], atol=1e-10)
    # In the histograms only changes that keep the masses equal count: compare along them.
    for k in range(1, 3):
        assert_allclose(found[k] - found[k].mean(), expected[k] - expected[k].mean(), atol=1e-10)
    assert_allclose(found[1][0] + found[2][0], expected[1][0] + expected[2][0], atol=1e-10)


def test_the_value_has_the_envelope_gradient_and_a_right_second_derivative(random):
    cost, a, b, epsilon = random
    with jax.enable_x64(True):
        value = jax.jit(lambda c, e: sinkhorn(c, a, b, e, tol=1e-13).value)
        gradient = jax.jit(jax.grad(value, (0, 1)))
        direction = np.random.default_rng(1).normal(size=cost.shape)
        second = jax.jvp(lambda c: gradient(c, epsilon)[0], (jnp.asarray(cost),), (jnp.asarray(direction),))[1]
        h = 1e-5
        ahead, behind = (gradient(cost + s * h * direction, epsilon)[0] for s in (1, -1))
        assert_allclose(second, (ahead - behind) / (2 * h), atol=1e-7)
        plan = plain(*random, 500)
        of_cost, of_epsilon = gradient(cost, epsilon)
        assert_allclose(of_cost, plan, atol=1e-10)
        assert_allclose(of_epsilon, np.sum(plan * (np.log(plan) - 1)), atol=1e-9)


def test_batches_and_small_epsilon(random):
    cost, a, b, _ = random
    epsilons = np.array([1e-3, 0.1])  # exp(-cost / epsilon) is zero in double precision for the first
    batch = sinkhorn(cost, a, b, epsilons, max_steps=200_000)
    assert batch.plan.shape == (2, 4, 6)
    assert_allclose(batch.value[1], sinkhorn(cost, a, b, 0.1).value, rtol=1e-9)
    rows, columns = np.kron(np.eye(4), np.ones(6)), np.kron(np.ones(4), np.eye(6))
    exact = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([a, b])).fun
    interval = certify_transport(TransportProblem(cost, a, b, 1e-3), (batch.f[0], batch.g[0])).bound
    assert interval.lower <= exact + 1e-12
    assert exact <= interval.upper + 1e-12
    assert interval.width < 1e-3 * np.log(24)
    with pytest.raises(ValueError, match="for one problem"):
        batch.certify()


def test_the_interval_holds_the_value_however_rough_the_potentials(random):
    cost, a, b, epsilon = random
    exact = sinkhorn(cost, a, b, epsilon, tol=1e-14).value
    rng = np.random.default_rng(3)
    for noise in (0.0, 1e-6, 1e-2, 1.0):
        f, g = noise * rng.normal(size=4), noise * rng.normal(size=6)
        if noise < 1:
            best = sinkhorn(cost, a, b, epsilon)
            f, g = best.f + f, best.g + g
        problem = TransportProblem(cost, a, b, epsilon)
        certificate = certify_entropic_transport(problem, (f, g))
        assert exact in certificate.bound
        assert certificate.verify(Subject(problem, (f, g))) == certificate
    found = sinkhorn(cost, a, b, epsilon)
    assert found.certify().verify(found.subject).bound.width < 1e-9


def test_rounding_gives_a_feasible_plan_nearby(random):
    _, a, b, _ = random
    plan = np.random.default_rng(4).dirichlet(np.ones(24)).reshape(4, 6)
    rounded = round_plan(plan, a, b)
    assert np.all(rounded >= 0)
    assert_allclose(rounded.sum(axis=1), a, atol=1e-15)
    assert_allclose(rounded.sum(axis=0), b, atol=1e-15)
    off = np.abs(plan.sum(axis=1) - a).sum() + np.abs(plan.sum(axis=0) - b).sum()
    assert np.abs(rounded - plan).sum() <= 2 * off


def test_single_precision_and_refusals():
    found = sinkhorn(*map(jnp.asarray, (COST, A, B)), EPSILON)
    assert found.value.dtype == jnp.float32
    assert_allclose(found.value, -0.713986132972, atol=1e-5)
    with pytest.raises(DomainError, match="leave out empty bins"):
        sinkhorn(COST, [0.5, 0.5, 0.0], B, EPSILON)
    with pytest.raises(DomainError, match="same sum"):
        sinkhorn(COST, A, 2 * B, EPSILON)
    with pytest.raises(DomainError, match="epsilon must be positive"):
        sinkhorn(COST, A, B, 0.0)
    with pytest.raises(ValueError, match="a row for each entry of a"):
        sinkhorn(COST.T, A, B, EPSILON)
    with pytest.raises(ValueError, match="cost must be finite"):
        sinkhorn(COST * np.nan, A, B, EPSILON)
    with pytest.raises(NotConvergedError, match="row sums are off"):
        sinkhorn(COST, A, B, EPSILON, max_steps=2)
    with pytest.raises(CertificateError, match="same sum"):
        certify_entropic_transport(TransportProblem(COST, A, 2 * B, EPSILON), (np.zeros(3), np.zeros(2)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ott_finds_the_same(random):
    linear = pytest.importorskip("ott.solvers.linear")
    geometry = pytest.importorskip("ott.geometry.geometry")
    cost, a, b, epsilon = random
    with jax.enable_x64(True):

        def peer(cost):
            found = linear.solve(
                geometry.Geometry(cost, epsilon=epsilon), a=jnp.asarray(a), b=jnp.asarray(b), threshold=1e-10
            )
            return jnp.sum(jnp.sin(3 * found.matrix)), found.matrix

        gradient, plan = jax.grad(peer, has_aux=True)(jnp.asarray(cost))
        ours = jax.grad(lambda c: jnp.sum(jnp.sin(3 * sinkhorn(c, a, b, epsilon).plan)))(jnp.asarray(cost))
        assert_allclose(sinkhorn(cost, a, b, epsilon).plan, plan, atol=1e-8)
        assert_allclose(ours, gradient, atol=1e-6)
