"""Each projection by what defines it: feasible, idempotent, and no feasible point is on the side of the residual."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cumulant.errors import DomainError
from cumulant.geometry import projections as onto

FEW = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
A = np.array([[1.0, 2.0, -1.0, 0.5, 0.0], [0.0, 1.0, 1.0, -1.0, 2.0], [1.0, 3.0, 0.0, -0.5, 2.0]])  # of rank two
B = A @ np.array([1.0, -1.0, 2.0, 0.5, 0.3])
BATCH, SIZE = 8, 5


def simplex_points(rng, shape, radius):
    return radius * rng.dirichlet(np.full(shape[-1], 0.5), shape[:-1])


def in_ball(order):
    def draw(rng, shape, radius):
        z = rng.standard_normal(shape)
        return radius * z / np.linalg.norm(z, ord=order, axis=-1, keepdims=True) * rng.uniform(0, 1, (*shape[:-1], 1))

    return draw


def affine_points(rng, shape, _):
    null = np.linalg.svd(A)[2][2:]
    return np.linalg.lstsq(A, B, rcond=None)[0] + rng.standard_normal((*shape[:-1], 3)) @ null * 3


# name: the projection, points of the set, and how far a point is from the set (by its definition)
VECTOR_SETS = {
    "box": (
        lambda x: onto.box(x, -0.5, np.arange(5.0) / 2),
        lambda rng, shape, _: rng.uniform(-0.5, np.arange(5.0) / 2, shape),
        lambda p: np.maximum(np.maximum(-0.5 - p, p - np.arange(5.0) / 2), 0).max(),
    ),
    "non_negative": (
        onto.non_negative,
        lambda rng, shape, _: rng.gamma(0.5, 3.0, shape),
        lambda p: np.maximum(-p, 0).max(),
    ),
    "simplex": (
        lambda x: onto.simplex(x, 1.5),
        lambda rng, shape, _: simplex_points(rng, shape, 1.5),
        lambda p: max(np.abs(p.sum(-1) - 1.5).max(), np.maximum(-p, 0).max()),
    ),
    "l1_ball": (
        lambda x: onto.l1_ball(x, 1.5),
        lambda rng, shape, _: in_ball(1)(rng, shape, 1.5),
        lambda p: np.maximum(np.abs(p).sum(-1) - 1.5, 0).max(),
    ),
    "l2_ball": (
        lambda x: onto.l2_ball(x, 1.5),
        lambda rng, shape, _: in_ball(2)(rng, shape, 1.5),
        lambda p: np.maximum(np.linalg.norm(p, axis=-1) - 1.5, 0).max(),
    ),
    "linf_ball": (
        lambda x: onto.linf_ball(x, 1.5),
        lambda rng, shape, _: in_ball(np.inf)(rng, shape, 1.5),
        lambda p: np.maximum(np.abs(p).max(-1) - 1.5, 0).max(),
    ),
    "affine": (
        lambda x: onto.affine(x, A, B),
        affine_points,
        lambda p: np.abs(p @ A.T - B).max() / 10,
    ),
}


@pytest.mark.parametrize("name", VECTOR_SETS)
@FEW
@given(seed=st.integers(0, 2**31), scale=st.sampled_from([0.1, 1.0, 30.0, 1e4]))
def test_a_projection_is_feasible_idempotent_and_nearest(name, seed, scale):
    project, draw, violation = VECTOR_SETS[name]
    rng = np.random.default_rng(seed)
    x = scale * rng.standard_normal((BATCH, SIZE))
    x[0] = np.round(x[0])  # ties
    p = project(x)
    assert violation(p) <= 1e-14 * max(1.0, np.abs(p).max())
    assert_allclose(project(p), p, rtol=0, atol=1e-14 * max(1.0, np.abs(p).max()))
    # The variational inequality <x - p, z - p> <= 0 for every z of the set says that p is the nearest point.
    z = draw(rng, (200, 1, SIZE), None)
    angle = np.sum((x - p) * (z - p), axis=-1)
    assert np.all(angle <= 1e-13 * (1 + np.abs(x).max()) * (1 + np.abs(p).max() + np.abs(z).max()))
    # and firm non-expansiveness follows
    moved = np.sum((p[1:] - p[:-1]) ** 2, axis=-1)
    assert np.all(moved <= np.sum((p[1:] - p[:-1]) * (x[1:] - x[:-1]), axis=-1) + 1e-12 * (1 + scale) ** 2)


def test_points_of_the_set_are_left_alone():
    rng = np.random.default_rng(0)
    for name, (project, draw, _) in VECTOR_SETS.items():
        z = draw(rng, (BATCH, SIZE), None)
        if name in ("simplex", "affine"):
            assert_allclose(project(z), z, rtol=0, atol=2e-15 * max(1, np.abs(z).max()) * SIZE)
        else:
            assert_array_equal(project(z * (1 - 1e-15)), z * (1 - 1e-15))


def test_known_projections():
    assert_allclose(onto.simplex([0.4, 0.3, 0.3]), [0.4, 0.3, 0.3], rtol=1e-15)
    assert_allclose(onto.simplex([5.0, 5.0, 0.0]), [0.5, 0.5, 0.0])
    assert_allclose(onto.simplex(np.full(7, -3.0)), np.full(7, 1 / 7), rtol=1e-15)
    assert_array_equal(onto.simplex([1e300, -1e300, 0.0]), [1.0, 0.0, 0.0])
    assert_allclose(onto.simplex([1e16, 1e16, 0.0]), [0.5, 0.5, 0.0])  # the sum is kept although the entries are huge
    assert_allclose(onto.affine([0.0, 0.0], [[1.0, 2.0]], [2.0]), [0.4, 0.8], rtol=1e-15)
    assert_allclose(onto.l2_ball([3e200, 4e200], 1.0), [0.6, 0.8], rtol=1e-15)
    assert_allclose(onto.l2_ball([3e-200, 4e-200], 1e-200), [0.6e-200, 0.8e-200], rtol=1e-15)
    assert_allclose(onto.kl_simplex([1.0, 3.0, 0.0], 2.0), [0.5, 1.5, 0.0], rtol=1e-15)


def test_a_radius_may_differ_over_the_batch():
    x, radius = np.random.default_rng(1).standard_normal((4, 3)) * 3, np.array([0.5, 1.0, 2.0, 20.0])
    for project in (onto.simplex, onto.l1_ball, onto.l2_ball, onto.linf_ball):
        one_by_one = [project(each, r) for each, r in zip(x, radius, strict=True)]
        assert_allclose(project(x, radius), one_by_one, rtol=1e-14)
    X = np.random.default_rng(2).standard_normal((4, 3, 3))
    S = X + X.swapaxes(-2, -1)
    one_by_one = [onto.spectral_norm_ball(each, r) for each, r in zip(X, radius, strict=True)]
    assert_allclose(onto.spectral_norm_ball(X, radius), one_by_one, atol=1e-13)
    one_by_one = [onto.positive_semidefinite(each, r) for each, r in zip(S, radius, strict=True)]
    assert_allclose(onto.positive_semidefinite(S, radius), one_by_one, atol=1e-13)


# Matrices -----------------------------------------------------------------------------------------------------------


@FEW
@given(seed=st.integers(0, 2**31), scale=st.sampled_from([0.3, 1.0, 100.0]))
def test_nearest_positive_semidefinite_matrix(seed, scale):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((BATCH, 4, 4))
    X = X + X.swapaxes(-2, -1)
    floor = 0.3
    P = onto.positive_semidefinite(X, floor)
    assert np.linalg.eigvalsh(P).min() >= floor - 1e-13 * scale
    assert_array_equal(P, P.swapaxes(-2, -1))
    assert_allclose(onto.positive_semidefinite(P, floor), P, atol=1e-13 * scale)
    G = rng.standard_normal((100, 1, 4, 2))
    Z = G @ G.swapaxes(-2, -1) + floor * np.eye(4)
    angle = np.sum((X - P) * (Z - P), axis=(-2, -1))
    assert np.all(angle <= 1e-12 * (scale + 1) ** 2 * 50)


@FEW
@given(seed=st.integers(0, 2**31), scale=st.sampled_from([0.3, 1.0, 100.0]))
def test_nearest_matrix_of_bounded_spectral_norm(seed, scale):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((BATCH, 5, 3))
    P = onto.spectral_norm_ball(X, 1.2)
    assert np.linalg.norm(P, ord=2, axis=(-2, -1)).max() <= 1.2 + 1e-13 * scale
    assert_allclose(onto.spectral_norm_ball(P, 1.2), P, atol=1e-13 * scale)
    Z = rng.standard_normal((100, 1, 5, 3))
    Z = 1.2 * Z / np.linalg.norm(Z, ord=2, axis=(-2, -1), keepdims=True)
    assert np.all(np.sum((X - P) * (Z - P), axis=(-2, -1)) <= 1e-12 * (scale + 1) ** 2 * 50)
    assert_allclose(onto.spectral_norm_ball(X.swapaxes(-2, -1), 1.2), P.swapaxes(-2, -1), atol=1e-12 * scale)


# Derivatives --------------------------------------------------------------------------------------------------------


def central(f, x, v, h=1e-6):
    return (np.asarray(f(x + h * v)) - np.asarray(f(x - h * v))) / (2 * h)


def derivative(f, x, v):
    with jax.enable_x64(True):
        return np.asarray(jax.jit(lambda a, b: jax.jvp(f, (a,), (b,))[1])(jnp.asarray(x), jnp.asarray(v)))


@pytest.mark.parametrize("name", VECTOR_SETS)
def test_derivatives_of_vector_projections(name):
    project = VECTOR_SETS[name][0]
    rng = np.random.default_rng(5)
    x, v = 2 * rng.standard_normal((BATCH, SIZE)), rng.standard_normal((BATCH, SIZE))
    assert_allclose(derivative(project, x, v), central(project, x, v), atol=1e-8)
    # At zero and on ties the derivative may be one-sided, but it is a number.
    assert np.all(np.isfinite(derivative(project, np.zeros((BATCH, SIZE)), v)))
    assert np.all(np.isfinite(derivative(project, np.ones((BATCH, SIZE)), v)))


def test_derivatives_of_matrix_projections_at_simple_and_repeated_eigenvalues():
    rng = np.random.default_rng(6)
    S, V = rng.standard_normal((2, BATCH, 4, 4))
    S, V = S + S.swapaxes(-2, -1), V + V.swapaxes(-2, -1)
    S[0] = np.diag([2.0, 2.0, -1.0, -1.0])  # ties on both sides of the floor
    S[1] = np.eye(4)
    assert_allclose(derivative(onto.positive_semidefinite, S, V), central(onto.positive_semidefinite, S, V), atol=1e-8)
    for shape in ((5, 3), (3, 5)):
        X, W = rng.standard_normal((2, BATCH, *shape))
        X[0] = 2 * np.eye(*shape)  # ties above the radius
        X[1] = 0.5 * np.eye(*shape)  # and below
        X[2] = 0.0
        assert_allclose(derivative(onto.spectral_norm_ball, X, W), central(onto.spectral_norm_ball, X, W), atol=1e-8)

    def in_floor(floor):
        return onto.positive_semidefinite(jnp.asarray(S), floor)

    def in_radius(radius):
        return onto.spectral_norm_ball(jnp.asarray(X), radius)

    with jax.enable_x64(True):
        for f, at in ((in_floor, 0.37), (in_radius, 0.81)):
            slope = jax.jit(lambda t, f=f: jax.jvp(f, (t,), (1.0,))[1])(at)
            assert_allclose(slope, (f(at + 1e-6) - f(at - 1e-6)) / 2e-6, atol=1e-7)


def test_float32_and_jit_and_vmap():
    x = jnp.asarray(np.random.default_rng(7).standard_normal((BATCH, SIZE)), jnp.float32)
    for name, (project, _, violation) in VECTOR_SETS.items():
        p = jax.jit(jax.vmap(project))(x)
        assert p.dtype == jnp.float32, name
        assert violation(np.asarray(p, dtype=np.float64)) <= 2e-6
        assert_allclose(p, project(np.asarray(x, dtype=np.float64)), atol=2e-5)


# Bad input ----------------------------------------------------------------------------------------------------------


def test_refusals():
    with pytest.raises(DomainError, match="x of simplex must be finite; got nan at index 1"):
        onto.simplex([1.0, np.nan])
    with pytest.raises(DomainError, match=r"radius of simplex must be positive and finite; got -1\."):
        onto.simplex([1.0, 2.0], -1.0)
    with pytest.raises(DomainError, match="upper of box must be at least the lower bound"):
        onto.box([1.0], 2.0, 1.0)
    with pytest.raises(DomainError, match="b of affine must be in the range of A: the nearest point has"):
        onto.affine([0.0, 0.0], [[1.0, 2.0], [1.0, 2.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"A must have shape \(len\(b\), len\(x\)\); got A of shape \(1, 3\)"):
        onto.affine([0.0, 0.0], [[1.0, 2.0, 3.0]], [1.0])
    with pytest.raises(DomainError, match="X of positive_semidefinite must be symmetric"):
        onto.positive_semidefinite([[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="X must be square matrices on the last two axes"):
        onto.positive_semidefinite([[1.0, 2.0]])
    with pytest.raises(ValueError, match="X must be matrices on the last two axes"):
        onto.spectral_norm_ball([1.0, 2.0])
    with pytest.raises(DomainError, match="x of kl_simplex must be of positive and finite sum"):
        onto.kl_simplex([0.0, 0.0])
    with pytest.raises(DomainError, match=r"x of kl_simplex must be non-negative and finite; got -1\. at index 1"):
        onto.kl_simplex([1.0, -1.0])
    with pytest.raises(ValueError, match="x must be vectors on the last axis, with at least one entry"):
        onto.simplex([])
