"""The sets: derivatives against differences, fast solves against dense ones, steps, projections, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant.optim.interior_point import (
    AbsoluteBounds,
    Bounds,
    Intersection,
    LinearConstraints,
    QuadraticConstraints,
    SimplexConstraints,
    SmoothConstraints,
)
from cumulant.precision import float64


def log_sum(x, data):
    return jnp.stack([jnp.log(jnp.sum(jnp.exp(x))) - data, jnp.vdot(x, x) - 4.0])


RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(2, 4, 4))
SETS = {
    "both, some infinite": (Bounds([0.0, -np.inf, 0.0, -1.0], [np.inf, 2.0, 1.0, np.inf]), RNG.uniform(0.1, 0.9, 4)),
    "linear": (LinearConstraints(RNG.normal(size=(6, 4)), np.full(6, 5.0)), RNG.uniform(0.1, 0.5, 4)),
    "quadratic": (
        QuadraticConstraints(ROOT @ ROOT.transpose(0, 2, 1), RNG.normal(size=(2, 4)), [-9.0, -9.0]),
        np.full(4, 0.1),
    ),
    "absolute": (AbsoluteBounds(), np.array([0.3, -0.2, 0.8, 0.5])),
    "simplex": (SimplexConstraints(), np.array([0.1, 0.2, 0.3, 0.2])),
    "intersection": (Intersection((Bounds(0.0), SmoothConstraints(log_sum, 3.0))), RNG.uniform(0.1, 0.5, 4)),
}


@pytest.mark.parametrize("name", SETS)
def test_derivatives_products_solves_and_steps(name):
    constraints, x = SETS[name]
    rng = np.random.default_rng(1)
    h, v = 1e-6, rng.normal(size=4)
    curvatures = (rng.uniform(1, 2, size=4), np.diag([1.0, 2.0, 3.0, 4.0]) + 0.1)

    @jax.jit
    def everything(x, z, v):
        c = constraints.value(x)
        up, down = x + h * jnp.eye(4), x - h * jnp.eye(4)
        turned = jax.vmap(constraints.jacobian_transpose, (0, None))
        a = constraints.max_step(x, -c, 50 * v, 1.0)
        return {
            "c": c,
            "J": constraints.jacobian(x),
            "differences": (jax.vmap(constraints.value)(up) - jax.vmap(constraints.value)(down)).T / (2 * h),
            "Jv": constraints.jacobian_apply(x, v),
            "JTz": constraints.jacobian_transpose(x, z),
            "curved": constraints.lagrangian_hessian(x, z) + jnp.zeros((4, 4)),
            "turned": (turned(up, z) - turned(down, z)) / (2 * h),
            "solutions": [constraints.solve(x, z, jnp.asarray(W), z / -c, v) for W in curvatures],
            "a": a,
            "there": constraints.value(x + a * 50 * v),
            "beyond": constraints.value(x + a / 0.994 * 50 * v),
        }

    with float64():
        count = jax.eval_shape(constraints.value, jnp.asarray(x)).size
        z = rng.uniform(0.5, 2, size=count)
        got = jax.tree.map(np.asarray, everything(jnp.asarray(x), jnp.asarray(z), jnp.asarray(v)))
    J = got["J"]
    assert np.all(got["c"] < 0)
    np.testing.assert_allclose(J, got["differences"], atol=1e-8)
    np.testing.assert_allclose(got["Jv"], J @ v, atol=1e-12)
    np.testing.assert_allclose(got["JTz"], J.T @ z, atol=1e-12)
    np.testing.assert_allclose(got["curved"], got["turned"], atol=1e-7)
    for W, found in zip(curvatures, got["solutions"], strict=True):
        full = np.diag(np.broadcast_to(W, 4)) if np.ndim(W) < 2 else W
        matrix = full + got["curved"] + (J.T * (z / -got["c"])) @ J
        np.testing.assert_allclose(found, np.linalg.solve(matrix, v), rtol=1e-9, atol=1e-12)
    assert 0 < got["a"] <= 1
    assert np.all(got["there"] < 0)
    if name != "intersection":  # closed forms: 0.995 of the way, so a little more is outside
        assert got["a"] == 1 or np.any(got["beyond"] > 0)


def test_the_curvature_of_the_coefficients_alone_may_be_a_matrix():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(3, 3))
    H, weights, v = root @ root.T, rng.uniform(0.5, 2, size=6), rng.normal(size=6)
    x, W = np.array([0.1, -0.2, 0.3, 1.0, 1.0, 1.0]), np.zeros((6, 6))
    W[:3, :3] = H
    with float64():
        found = np.asarray(jax.jit(AbsoluteBounds().solve)(x, weights, H, weights, v))
        J = np.block([[-np.eye(3), -np.eye(3)], [np.eye(3), -np.eye(3)]])
        np.testing.assert_allclose(found, np.linalg.solve(W + (J.T * weights) @ J, v), rtol=1e-10)


def test_projections():
    points = np.array([(3, 1), (-3, 1), (1, -2), (0.5, 1)])
    others = np.random.default_rng(3).normal(size=(20, 3))

    @jax.jit
    def project(points, others):
        return (
            jax.vmap(AbsoluteBounds().project)(points),
            Bounds(0.0).project(others),
            jax.vmap(SimplexConstraints().project)(others),
        )

    with float64():
        absolute, positive, simplex = (np.asarray(each) for each in project(points, others))
    np.testing.assert_allclose(absolute, [(2, 2), (-2, 2), (0, 0), (0.5, 1)])
    np.testing.assert_allclose(positive, np.maximum(others, 0))
    corners = np.vstack([np.zeros(3), np.eye(3)])
    for point, nearest in zip(others, simplex, strict=True):
        assert nearest.min() >= 0
        assert nearest.sum() <= 1 + 1e-12
        assert np.max((corners - nearest) @ (point - nearest)) < 1e-12  # the obtuse-angle property, at the corners


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Bounds(None, None), "must not both be None"),
        (lambda: Bounds([0.0, 1.0], [1.0, 1.0]), "lower must be below upper"),
        (lambda: Bounds(np.nan), "must not be NaN"),
        (lambda: Bounds(-np.inf), "at least one bound"),
        (lambda: LinearConstraints([[1.0, 2.0]], [1.0, 2.0]), "one row for each entry"),
        (lambda: QuadraticConstraints([[[1.0, 0.0], [0.0, -1.0]]], [[0.0, 0.0]], [0.0]), "positive semi-definite"),
        (lambda: QuadraticConstraints([[[1.0, 1.0], [0.0, 1.0]]], [[0.0, 0.0]], [0.0]), "symmetric"),
        (lambda: QuadraticConstraints([[1.0]], [[0.0]], [0.0]), "P must have 3 axes"),
        (lambda: SimplexConstraints(-1.0), "total of Simplex"),
        (lambda: Intersection(()), "at least one entry"),
    ],
)
def test_bad_sets_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
    with pytest.raises(TypeError, match="function must be"):
        SmoothConstraints(3)
