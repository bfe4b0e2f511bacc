"""Bregman projections onto affine sets: published limits of mirror descent, optimality, and a conic solver."""

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, NotConvergedError
from cumulant.geometry import Burg, Hypentropy, LogDet, Power, Shannon, VonNeumann
from cumulant.geometry.projections import bregman_affine, kl_affine

ROW = np.array([[1.0, 2.0]])
FEW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))


# Limits of mirror descent on an under-determined problem, Peyré 2021, section 6.4 -----------------------------------


@pytest.mark.parametrize(
    ("entropy", "starts", "limits"),
    [
        (
            Shannon(),
            [1e-1, 1e-2, 1e-4, 1e-8],
            [(0.29221444, 0.85389278), (0.09753125, 0.95123438), (0.00997503, 0.99501248), (9.99975e-5, 0.99995)],
        ),
        (Burg(), [1e-1, 1e-2], [(0.18019610, 0.90990195), (0.01980002, 0.99009999)]),
        (Power(0.5), [1e-1], [(0.22423681, 0.88788159)]),
    ],
    ids=str,
)
def test_limits_of_mirror_descent(entropy, starts, limits):
    x0 = np.repeat(np.array(starts)[:, None], 2, axis=1)
    answer = bregman_affine(entropy, x0, ROW, [2.0])
    assert_allclose(answer.point, limits, rtol=1e-5, atol=5e-9)
    assert np.all(answer.residual < 1e-14)
    assert np.all(answer.dual_residual < 1e-14)
    assert np.all(answer.steps <= 20)


def test_from_a_tiny_start_the_point_is_still_in_the_set():
    # Burg from (1, 1) / K: with t = K - 2 nu, t^2 + (K - 2) t = K, and x = (2 / (K + t), 1 / t).
    K = np.array([1e1, 1e6])
    t = 2 * K / ((K - 2) + np.sqrt((K - 2) ** 2 + 4 * K))
    answer = bregman_affine(Burg(), np.stack([1 / K, 1 / K], axis=-1), ROW, [2.0])
    assert_allclose(answer.point, np.stack([2 / (K + t), 1 / t], axis=-1), rtol=1e-9)
    assert np.all(answer.residual < 1e-15)  # although the dual coordinates are rounded at 1e6 eps


def test_limit_of_the_signed_flow():
    answer = bregman_affine(Hypentropy(2e-6), np.zeros(3), [[1.0, -2.0, 0.5]], [1.0])
    assert_allclose(answer.point, (7.06850718e-4, -0.499639937, 2.65490781e-5), rtol=1e-8)


def test_the_limit_is_where_mirror_descent_goes():
    x = np.array([0.3, 0.4, 0.2, 0.6])
    A, b = np.array([[1.0, 2.0, -1.0, 0.4], [0.5, 0.0, 1.0, -0.2]]), np.array([1.5, 1.0])
    target = kl_affine(x, A, b).point
    for _ in range(20000):
        x = x * np.exp(-0.05 * A.T @ (A @ x - b))
    assert_allclose(x, target, rtol=1e-9)


# Optimality ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entropy", [Burg(), Power(1.5), Hypentropy(0.3)], ids=str)
@FEW
@given(seed=st.integers(0, 2**31))
def test_the_pythagorean_identity_holds_on_the_set(entropy, seed):
    rng = np.random.default_rng(seed)
    inside, x0 = np.exp(rng.standard_normal((2, 4, 6)))
    A = rng.standard_normal((3, 6))
    A[2] = A[0] - 2 * A[1]  # of rank two
    b = inside @ A.T  # so that the set meets the domain
    answer = bregman_affine(entropy, x0, A, b)
    assert_allclose(answer.point @ A.T, b, rtol=0, atol=1e-10 * (1 + np.abs(b).max() + np.abs(answer.point).max()))
    assert np.all(entropy.in_domain(answer.point))
    # D(z|x0) = D(z|p) + D(p|x0) for every z of the set: p is the projection, and the only one.
    total = entropy.divergence(inside, x0)
    parts = entropy.divergence(inside, answer.point) + entropy.divergence(answer.point, x0)
    assert_allclose(total, parts, rtol=1e-8)
    assert np.all(answer.dual_residual < 1e-11)
    # The multiplier is the one that explains the move.
    move = entropy.gradient(answer.point) - entropy.gradient(x0)
    assert_allclose(answer.multiplier @ A, move, atol=1e-9 * (1 + np.abs(move).max()))


def test_against_a_conic_solver():
    rng = np.random.default_rng(4)
    x0, A = rng.uniform(0.2, 2.0, 4), rng.standard_normal((2, 4))
    b = A @ rng.uniform(0.2, 2.0, 4)
    x = cp.Variable(4)
    tight = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-12}
    cp.Problem(cp.Minimize(cp.sum(cp.kl_div(x, x0))), [A @ x == b]).solve(solver=cp.CLARABEL, **tight)
    assert_allclose(kl_affine(x0, A, b).point, x.value, atol=3e-6)


@pytest.mark.parametrize("entropy", [VonNeumann(), LogDet()], ids=str)
def test_matrices_the_nearest_one_with_a_given_diagonal(entropy):
    M = np.array([[2.0, 1.0, 0.3], [1.0, 3.0, -0.5], [0.3, -0.5, 1.5]])
    A = np.zeros((3, 3, 3))
    A[range(3), range(3), range(3)] = 1.0
    answer = bregman_affine(entropy, M, A, np.ones(3))
    P = answer.point
    assert_allclose(np.diag(P), 1.0, rtol=1e-13)
    # The dual coordinates have moved along the constraints only: on the diagonal.
    move = entropy.gradient(P) - entropy.gradient(M)
    assert_allclose(move, np.diag(answer.multiplier), atol=1e-12)
    Z = np.array([[1.0, 0.2, 0.1], [0.2, 1.0, 0.0], [0.1, 0.0, 1.0]])
    D = entropy.divergence
    assert_allclose(D(Z, M), D(Z, P) + D(P, M), rtol=1e-11)


def test_a_step_that_would_leave_the_domain_of_the_dual_is_shortened():
    # From here a full Newton step would halve the residual at a point with negative coordinates.
    rng = np.random.default_rng(307974985)
    inside, x0 = np.exp(rng.standard_normal((2, 4, 6)))
    A = rng.standard_normal((3, 6))
    A[2] = A[0] - 2 * A[1]
    assert np.all(bregman_affine(Burg(), x0, A, inside @ A.T).point > 0)


def test_coordinates_that_start_on_the_boundary_stay_there():
    answer = kl_affine([0.0, 0.5, 0.5], [[1.0, 1.0, 1.0]], [3.0])
    assert_allclose(answer.point, [0.0, 1.5, 1.5], rtol=1e-14)
    assert answer.dual_residual < 1e-14


def test_derivatives_by_the_implicit_function_theorem():
    rng = np.random.default_rng(5)
    x0, inside = np.exp(rng.standard_normal((2, 4)))
    A = rng.standard_normal((2, 4))
    b = A @ inside
    tangents = [rng.standard_normal(each.shape) for each in (x0, A, b)]

    def f(x0, A, b):
        return bregman_affine(Shannon(), x0, A, b).point

    h = 1e-6
    up = f(*(p + h * d for p, d in zip((x0, A, b), tangents, strict=True)))
    down = f(*(p - h * d for p, d in zip((x0, A, b), tangents, strict=True)))
    with jax.enable_x64(True):
        args, dots = (tuple(map(jnp.asarray, each)) for each in ((x0, A, b), tangents))
        forward = jax.jit(lambda a, d: jax.jvp(f, a, d)[1])(args, dots)
        cotangent = jnp.asarray(rng.standard_normal(4))
        reverse = jax.jit(lambda a, c: jax.vjp(f, *a)[1](c))(args, cotangent)
        assert_allclose(forward, (up - down) / (2 * h), rtol=1e-6, atol=1e-8)
        assert_allclose(sum(jnp.vdot(r, d) for r, d in zip(reverse, dots, strict=True)), cotangent @ forward, rtol=1e-9)


def test_single_precision():
    x = jnp.full(2, 0.1, jnp.float32)
    answer = bregman_affine(Shannon(), x, jnp.asarray(ROW, jnp.float32), jnp.array([2.0], jnp.float32))
    assert answer.point.dtype == jnp.float32
    assert_allclose(answer.point, (0.29221444, 0.85389278), rtol=2e-6)


def test_an_empty_set_is_an_error_not_an_answer():
    with pytest.raises(
        NotConvergedError, match=r"no point of the domain of Shannon\(\) with A x = b: relative residual"
    ):
        kl_affine([1.0, 1.0, 1.0], [[1.0, 1.0, 0.5]], [-1.0])
    with pytest.raises(NotConvergedError):  # contradictory
        kl_affine(np.ones(4), [[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]], [1.0, 2.0])
    with pytest.raises(NotConvergedError):  # only what is on the boundary could help
        kl_affine([0.0, 1.0, 1.0], [[1.0, 0.0, 0.0]], [1.0])


def test_bad_input():
    with pytest.raises(DomainError, match=r"x0 of bregman_affine must be non-negative and finite; got -1\. at index 1"):
        kl_affine([1.0, -1.0, 1.0], [[1.0, 1.0, 1.0]], [1.0])
    with pytest.raises(ValueError, match=r"A must have shape \(len\(b\), len\(x0\)\); got A of shape \(1, 2\)"):
        kl_affine([1.0, 1.0, 1.0], ROW, [1.0])
    with pytest.raises(DomainError, match="b of bregman_affine must be finite"):
        kl_affine([1.0, 1.0, 1.0], [[1.0, 1.0, 1.0]], [np.nan])
    with pytest.raises(TypeError, match="entropy must be an Entropy"):
        bregman_affine("shannon", [1.0, 1.0], ROW, [1.0])
