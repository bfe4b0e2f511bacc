"""The routes to a primal-dual direction: a worked example, agreement on random systems, stability near the boundary."""

import numpy as np
import pytest
from scipy import sparse

from cumulant.errors import DomainError
from cumulant.optim.interior_point import inertia, rank_two_determinant, sherman_morrison, solve_primal_dual

W, J = np.array([[2.0, 0.0], [0.0, 0.0]]), np.array([[-1.0, 0.0], [2.0, -1.0]])
C, Z, GRAD = -np.ones(2), np.ones(2), np.ones(2)


@pytest.mark.parametrize("method", ["auto", "cholesky", "sparse_cholesky", "ldl", "full"])
def test_the_step_of_the_worked_example(method):
    dx, dz = solve_primal_dual(W, J, C, Z, GRAD, 0.5, method)
    np.testing.assert_allclose(dx, [-5 / 6, -13 / 6], atol=1e-12)
    np.testing.assert_allclose(dz, [1 / 3, 0.0], atol=1e-12)


def test_the_pieces_of_the_worked_example():
    np.testing.assert_allclose(GRAD - 0.5 * J.T @ (1 / C), [1.5, 0.5], atol=1e-15)
    np.testing.assert_allclose(W - J.T @ np.diag(Z / C) @ J, [[7, -2], [-2, 1]])
    symmetric = np.block([[W, J.T], [J, np.diag(C / Z)]])
    np.testing.assert_allclose(np.linalg.eigvalsh(symmetric), [-2.46386, -1.12046, 0.33437, 3.24995], atol=5e-6)
    assert inertia(symmetric) == (2, 2, 0)


def system(rng, n, m, *, diagonal=False):
    c, z, grad = -rng.exponential(size=m), rng.exponential(size=m), rng.normal(size=n)
    root = rng.normal(size=(n, n))
    return (rng.exponential(size=n) if diagonal else root @ root.T), c, z, grad


def residual(W, J, c, z, grad, mu, step):
    """What is left of the two block rows of the unreduced equations."""
    W = np.diag(np.broadcast_to(W, grad.shape)) if np.ndim(W) < 2 else W
    first = W @ step.dx + J.T @ step.dz + grad + J.T @ z
    second = z * (J @ step.dx) + c * step.dz + c * z + mu
    return max(np.abs(first).max(), np.abs(second).max())


def test_every_route_solves_the_unreduced_equations():
    rng = np.random.default_rng(0)
    for _ in range(5):
        W, c, z, grad = system(rng, 6, 9)
        J = rng.normal(size=(9, 6))
        for method in ("cholesky", "sparse_cholesky", "ldl", "full"):
            assert residual(W, J, c, z, grad, 0.3, solve_primal_dual(W, J, c, z, grad, 0.3, method)) < 1e-8
        W, c, z, grad = system(rng, 6, 9, diagonal=True)
        J = np.vstack([-np.eye(6), np.eye(6)[[0, 2, 5]]])
        assert residual(W, J, c, z, grad, 0.3, solve_primal_dual(W, J, c, z, grad, 0.3, "diag")) < 1e-10
        W, c, z, grad = system(rng, 6, 6, diagonal=True)
        one = np.eye(3)
        J = np.block([[-one, -one], [one, -one]])
        assert residual(W, J, c, z, grad, 0.3, solve_primal_dual(W, J, c, z, grad, 0.3, "auto")) < 1e-9
        blocks = solve_primal_dual(W[:3], J, c, z, grad, 0.3, "block2x2")
        assert residual(np.append(W[:3], np.zeros(3)), J, c, z, grad, 0.3, blocks) < 1e-9


def test_sparse_cholesky_orders_a_scrambled_band():
    rng = np.random.default_rng(1)
    n, order = 300, np.random.default_rng(2).permutation(300)
    chain = sparse.diags_array([np.full(n, 3.0), -np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1, -1]).tocsr()
    W = chain[order][:, order]
    J = -sparse.eye_array(n).tocsr()
    c, z, grad = -rng.exponential(size=n), rng.exponential(size=n), rng.normal(size=n)
    step = solve_primal_dual(W, J, c, z, grad, 0.1)  # sparse input: this route is chosen
    dense = solve_primal_dual(W.toarray(), J.toarray(), c, z, grad, 0.1, "cholesky")
    np.testing.assert_allclose(step.dx, dense.dx, atol=1e-10)
    np.testing.assert_allclose(step.dz, dense.dz, atol=1e-10)


def test_an_indefinite_matrix_is_refused_by_cholesky_and_judged_by_its_inertia():
    W = np.diag([1.0, -0.5])
    J = -np.eye(2)
    args = (J, -np.ones(2), np.ones(2), np.ones(2), 0.1)
    expected = solve_primal_dual(W, *args, "full")  # -0.5 + z/x = 0.5 > 0: still a step of descent
    np.testing.assert_allclose(solve_primal_dual(W, *args, "ldl").dx, expected.dx, atol=1e-12)
    with pytest.raises(DomainError, match="2 positive and 2 negative"):
        solve_primal_dual(np.diag([1.0, -3.0]), *args, "ldl")
    with pytest.raises(DomainError, match="positive definite"):
        solve_primal_dual(np.diag([1.0, -3.0]), *args, "cholesky")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"c": [0.0, -1.0]}, "c must be negative"),
        ({"z": [1.0, 0.0]}, "z must be positive"),
        ({"mu": -1.0}, "mu must be finite"),
        ({"method": "qr"}, "method must be one of"),
        ({"grad": [1.0]}, "grad must be 2 finite numbers"),
        ({"W": np.eye(3)}, "W must be"),
        ({"method": "diag"}, "needs a diagonal W"),
        ({"method": "block2x2"}, "needs J ="),
    ],
)
def test_bad_input_is_refused(change, words):
    arguments = {"W": W, "J": J, "c": C, "z": Z, "grad": GRAD, "mu": 0.5, "method": "auto"} | change
    with pytest.raises(ValueError, match=words):
        solve_primal_dual(**arguments)


def test_noise_in_the_gradient_moves_the_active_direction_only_by_mu():
    """Condition number O(1/mu), yet dx_1 answers to an error of the gradient by O(mu) (section 2.3.2)."""
    for mu, cond, first in (
        (1e-2, 102, 9.7097e-3),
        (1e-4, 1.0002e4, 9.9970e-5),
        (1e-6, 1.000002e6, 1e-6),
        (1e-8, 1e8, 1e-8),
    ):
        x = np.array([-0.5 + np.sqrt(0.25 + mu), 0.5 + np.sqrt(0.25 + mu)])
        z = mu / x
        assert np.linalg.cond(np.diag(1 + z / x)) == pytest.approx(cond, rel=1e-3)
        grad = x - [-1.0, 1.0]
        J = -np.eye(2)
        here = solve_primal_dual(1.0, J, -x, z, grad, mu)
        there = solve_primal_dual(1.0, J, -x, z, grad + 1e-3, mu)
        np.testing.assert_allclose((here.dx - there.dx)[0] / 1e-3, first, rtol=2e-4)
        np.testing.assert_allclose((here.dx - there.dx)[1] / 1e-3, 1.0, rtol=2 * mu)
        np.testing.assert_allclose((there.dz - here.dz)[0] / 1e-3, 1.0, rtol=2 * mu)


def test_updates_of_rank_one_and_two_without_symmetry():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(5, 5)) + 4 * np.eye(5)
    u1, u2, u3, u4 = rng.normal(size=(4, 5))
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(
        sherman_morrison(inverse, u1, u2), np.linalg.inv(A + np.outer(u1, u2)), rtol=1e-12, atol=1e-12
    )
    expected = np.linalg.det(A + np.outer(u1, u2) + np.outer(u3, u4)) / np.linalg.det(A)
    np.testing.assert_allclose(rank_two_determinant(inverse, u1, u2, u3, u4), expected, rtol=1e-12)
