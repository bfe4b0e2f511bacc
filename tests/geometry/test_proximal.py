"""Each proximal map by its optimality condition, ``(v - x) / step`` in the subdifferential, and against a solver."""

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import wrightomega

from cumulant.errors import DomainError
from cumulant.geometry import projections, proximal

FEW = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**31)
STEPS = st.sampled_from([1e-3, 0.3, 1.0, 50.0])
BATCH, SIZE = 6, 5
LABELS = np.array([0, 0, 1, 2, 2])
WEIGHTS = np.array([0.5, 0.0, 1.0, 2.0, 1.0])


def points(seed, *shape):
    v = 2 * np.random.default_rng(seed).standard_normal((BATCH, *shape))
    v[0] = 0.0
    return v


def is_subgradient_of_l1(g, x, weight, tolerance):
    """``g = weight sign(x)`` where ``x`` is not zero, and ``|g| <= weight`` where it is."""
    return np.all(np.where(x != 0, np.abs(g - weight * np.sign(x)), np.maximum(np.abs(g) - weight, 0)) <= tolerance)


@FEW
@given(seed=SEEDS, step=STEPS)
def test_l1(seed, step):
    v = points(seed, SIZE)
    x = proximal.l1(v, step, weight=WEIGHTS)
    assert is_subgradient_of_l1((v - x) / step, x, WEIGHTS, 1e-13 / step)
    assert_array_equal(x[:, 1], v[:, 1])  # a weight of zero leaves the coordinate alone


@FEW
@given(seed=SEEDS, step=STEPS)
def test_ridge_and_elastic_net(seed, step):
    v = points(seed, SIZE)
    assert_allclose(
        (v - proximal.ridge(v, step, weight=3.0)) / step, 3.0 * proximal.ridge(v, step, weight=3.0), atol=1e-12 / step
    )
    x = proximal.elastic_net(v, step, l1=0.7, l2=1.3)
    assert is_subgradient_of_l1((v - x) / step - 1.3 * x, x, 0.7, 1e-13 * (1 + 1 / step) * 10)


@FEW
@given(seed=SEEDS, step=STEPS)
def test_group(seed, step):
    v = points(seed, SIZE)
    weight = np.array([1.0, 0.5, 2.0])
    x = proximal.group(v, step, LABELS, weight)
    g = (v - x) / step
    for k, w in enumerate(weight):
        of_group, slopes = x[:, k == LABELS], g[:, k == LABELS]
        norm = np.linalg.norm(of_group, axis=-1, keepdims=True)
        zero = norm[:, 0] == 0
        assert np.all(np.linalg.norm(slopes[zero], axis=-1) <= w * (1 + 1e-13))
        assert_allclose(
            slopes[~zero], w * (of_group / np.where(norm > 0, norm, 1))[~zero], atol=1e-13 * (1 + 1 / step) * 10
        )
    assert_allclose(proximal.group(v, step)[1], proximal.group(v, step, np.zeros(SIZE, dtype=int))[1], rtol=1e-14)


@FEW
@given(seed=SEEDS, step=STEPS)
def test_nuclear(seed, step):
    V = points(seed, 4, 3)
    X = proximal.nuclear(V, step, weight=0.8)
    G = (V - X) / (0.8 * step)
    # A subgradient of the nuclear norm: spectral norm at most one, and <G, X> = |X|_*.
    assert np.linalg.norm(G, ord=2, axis=(-2, -1)).max() <= 1 + 1e-12 / step
    size = np.linalg.norm(X, ord="nuc", axis=(-2, -1))
    assert_allclose(np.sum(G * X, axis=(-2, -1)), size, rtol=1e-10, atol=1e-12 / step)


@FEW
@given(seed=SEEDS, step=STEPS)
def test_negative_log_and_its_determinants(seed, step):
    v = points(seed, SIZE) * 10.0 ** np.random.default_rng(seed).integers(-3, 4, (BATCH, 1))
    x = proximal.negative_log(v, step, weight=0.6)
    assert np.all(x > 0)
    assert_allclose(x - v, 0.6 * step / x, rtol=1e-12, atol=1e-13 * np.abs(v).max())
    assert_array_equal(proximal.negative_log_det(v, step, 0.6, "diagonal"), x)

    V = points(seed, 3, 3)
    S = V + V.swapaxes(-2, -1)
    X = proximal.negative_log_det(S, step, 0.6)
    assert np.linalg.eigvalsh(X).min() > 0
    # X - S = s X^-1, multiplied by X so that nothing is inverted
    assert_allclose(
        X @ (X - S), 0.6 * step * np.broadcast_to(np.eye(3), S.shape), atol=1e-12 * (1 + np.abs(X).max() ** 2)
    )

    L = np.tril(V)
    T = proximal.negative_log_det(L, step, 0.6, "triangular")
    diagonal = np.diagonal(T, axis1=-2, axis2=-1)
    assert_array_equal(T * (1 - np.eye(3)), L * (1 - np.eye(3)))
    assert_allclose(diagonal - np.diagonal(L, axis1=-2, axis2=-1), 0.6 * step / diagonal, rtol=1e-12, atol=1e-12)


def test_published_values_of_the_log_determinant():
    # The entropy step of black-box variational inference (Domke, Garrigos and Gower 2023).
    expected = [0.1401754, 0.5, 0.5477226, 0.8520797, 3.0968719]
    assert_allclose(proximal.negative_log([-2.0, -0.1, 0.0, 0.5, 3.0], 0.3), expected, atol=5e-8)
    T = proximal.negative_log_det([[1.0, 0.0], [-0.7, -0.5]], 0.25, structure="triangular")
    assert_allclose(T, [[1.2071068, 0.0], [-0.7, 0.3090170]], atol=5e-8)


@FEW
@given(seed=SEEDS, step=STEPS)
def test_entropy(seed, step):
    v = points(seed, SIZE)
    x = proximal.entropy(v, step, weight=0.6)
    s = 0.6 * step
    # x + s (log x + 1) = v, where x has not underflowed
    kept = x > 1e-300
    assert_allclose((x + s * (np.log(np.where(kept, x, 1.0)) + 1))[kept], v[kept], rtol=1e-12, atol=1e-12 * (1 + s))
    assert np.all(v[~kept] < 0)


def test_entropy_for_huge_and_tiny_arguments():
    z = np.concatenate([np.linspace(-60, 60, 400), np.geomspace(1, 1e300, 100), -np.geomspace(1e-10, 700, 100)])
    with jax.enable_x64(True):
        both = jax.jit(lambda z: jax.jvp(proximal._wright_omega, (z,), (jnp.ones_like(z),)))
        omega, slope = map(np.asarray, both(z))
    assert_allclose(omega, wrightomega(z), rtol=5e-15)
    assert_allclose(slope, wrightomega(z) / (1 + wrightomega(z)), rtol=5e-15)
    assert_allclose(proximal.entropy(np.array([1e200, 1e-200, -1e6]), 1.0), [1e200, wrightomega(-1.0), 0.0], rtol=1e-14)
    assert_allclose(proximal.entropy(np.array([1e8]), 1e-12), [1e8], rtol=1e-14)  # exp(v / step) would overflow


# Against a solver ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "penalty", "shape"),
    [
        (lambda v: proximal.l1(v, 0.4, 0.9), lambda x: 0.9 * cp.norm1(x), (4,)),
        (
            lambda v: proximal.elastic_net(v, 0.4, 0.9, 0.5),
            lambda x: 0.9 * cp.norm1(x) + 0.25 * cp.sum_squares(x),
            (4,),
        ),
        (lambda v: proximal.group(v, 0.4, weight=1.5), lambda x: 1.5 * cp.norm2(x), (4,)),
        (lambda v: proximal.entropy(v, 0.4), lambda x: -cp.sum(cp.entr(x)), (4,)),
        (lambda v: proximal.negative_log(v, 0.4), lambda x: -cp.sum(cp.log(x)), (4,)),
        (lambda v: proximal.nuclear(v, 0.4, 0.7), lambda x: 0.7 * cp.normNuc(x), (3, 2)),
        (lambda v: proximal.negative_log_det(v + v.T, 0.4), lambda x: -cp.log_det(x), (3, 3)),
    ],
    ids=["l1", "elastic_net", "group", "entropy", "negative_log", "nuclear", "negative_log_det"],
)
def test_against_a_conic_solver(ours, penalty, shape):
    v = np.random.default_rng(8).standard_normal(shape)
    square = len(shape) == 2 and shape[0] == shape[1]
    x = cp.Variable(shape, symmetric=True) if square else cp.Variable(shape)
    target = v + v.T if square else v
    objective = penalty(x) + cp.sum_squares(x - target) / 0.8
    cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert_allclose(ours(v), x.value, atol=1e-5)  # the objective is 2.5-strongly convex: |x - x*|^2 <= gap / 1.25


# Indicators and conjugates ------------------------------------------------------------------------------------------


def test_the_prox_of_an_indicator_is_the_projection():
    v = points(0, SIZE)
    for step in (0.1, 10.0):
        assert_array_equal(proximal.indicator(projections.simplex, radius=2.0)(v, step), projections.simplex(v, 2.0))


def test_moreau():
    v = points(1, SIZE)
    # The conjugate of a norm is the indicator of the dual ball; that of weight/2 |x|^2 is |u|^2 / (2 weight).
    assert_allclose(proximal.conjugate(proximal.l1, weight=0.7)(v, 2.0), projections.linf_ball(v, 0.7), atol=1e-15)
    assert_allclose(proximal.conjugate(proximal.group, weight=0.7)(v, 2.0), projections.l2_ball(v, 0.7), atol=1e-15)
    assert_allclose(proximal.conjugate(proximal.ridge, weight=4.0)(v, 2.0), v / (1 + 2.0 / 4.0), atol=1e-15)
    steps = np.linspace(0.5, 3.0, BATCH)
    assert_allclose(proximal.conjugate(proximal.l1, weight=0.7)(v, steps), projections.linf_ball(v, 0.7), atol=1e-15)


# Derivatives, batches, precision ------------------------------------------------------------------------------------


MAPS = {
    "l1": (proximal.l1, (SIZE,)),
    "group": (lambda v, s: proximal.group(v, s, LABELS), (SIZE,)),
    "entropy": (proximal.entropy, (SIZE,)),
    "negative_log": (proximal.negative_log, (SIZE,)),
    "nuclear": (proximal.nuclear, (3, 2)),
    "negative_log_det": (lambda v, s: proximal.negative_log_det((v + jnp.swapaxes(v, -2, -1)) / 2, s), (3, 3)),
}


@pytest.mark.parametrize("name", MAPS)
def test_derivatives_in_the_point_and_the_step(name):
    prox, shape = MAPS[name]
    v, d = np.random.default_rng(9).standard_normal((2, BATCH, *shape))
    if name in ("nuclear", "negative_log_det"):
        v[0] = 2.0 * np.eye(*shape)  # repeated singular values and eigenvalues
    h, step = 1e-6, 0.31
    with jax.enable_x64(True):
        args = jnp.asarray(v), jnp.asarray(step)

        @jax.jit
        def both(v, s):
            tangent = jax.jvp(prox, (v, s), (jnp.asarray(d), jnp.ones(())))[1]
            difference = prox(v + h * d, s + h) - prox(v - h * d, s - h)
            return tangent, difference / (2 * h), jax.grad(lambda z: jnp.sum(prox(z, s)))(jnp.zeros_like(v))

        tangent, numeric, at_zero = both(*args)
    assert_allclose(tangent, numeric, atol=2e-8)
    assert np.all(np.isfinite(at_zero))


def test_batches_steps_and_single_precision():
    v, steps = points(2, SIZE), np.linspace(0.1, 2.0, BATCH)
    for prox in (proximal.l1, proximal.ridge, proximal.group, proximal.entropy, proximal.negative_log):
        together = prox(v, steps)
        with jax.enable_x64(True):
            one_by_one = np.asarray(jax.jit(jax.vmap(prox))(v, steps))
        assert_allclose(together, one_by_one, rtol=1e-14)
        single = prox(jnp.asarray(v, jnp.float32), jnp.asarray(steps, jnp.float32))
        assert single.dtype == jnp.float32
        assert_allclose(single, together, rtol=1e-5, atol=1e-5)


# Bad input ----------------------------------------------------------------------------------------------------------


def test_refusals():
    with pytest.raises(DomainError, match=r"step of l1 must be positive and finite; got 0\."):
        proximal.l1([1.0], 0.0)
    with pytest.raises(DomainError, match=r"weight of l1 must be non-negative and finite; got -1\."):
        proximal.l1([1.0], 1.0, -1.0)
    with pytest.raises(DomainError, match="v of entropy must be finite; got inf at index 0"):
        proximal.entropy([np.inf])
    with pytest.raises(ValueError, match=r"labels must have one entry for each of v's last axis, \(3,\); got \(2,\)"):
        proximal.group([1.0, 2.0, 3.0], 1.0, [0, 1])
    with pytest.raises(TypeError, match="labels must be integers"):
        proximal.group([1.0, 2.0], 1.0, [0.0, 1.0])
    with pytest.raises(DomainError, match="labels of group must be group numbers from 0 up"):
        proximal.group([1.0, 2.0], 1.0, [0, 7])
    with pytest.raises(ValueError, match="weight must be a number where v is one group"):
        proximal.group([1.0, 2.0], 1.0, weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="structure must be one of 'symmetric', 'diagonal', 'triangular'; got 'dense'"):
        proximal.negative_log_det([[1.0]], structure="dense")
    with pytest.raises(DomainError, match="V of negative_log_det must be symmetric"):
        proximal.negative_log_det([[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(DomainError, match=r"V of negative_log_det must be lower triangular; got 2\. at index 0, 1"):
        proximal.negative_log_det([[1.0, 2.0], [0.0, 1.0]], structure="triangular")
