"""The linear system of a primal-dual step, by six routes.

A step ``(dx, dz)`` from ``(x, z)`` towards the point of the central path at ``mu`` solves (Carbonetto 2009, equation
2.16)

    [ W    J^T ] [dx]     [ grad + J^T z ]
    [ Z J   C  ] [dz] = - [ C z + mu 1   ],        C = diag(c) < 0,  Z = diag(z) > 0.

With ``Sigma = C^-1 Z``, negative, this reduces to ``(W - J^T Sigma J) dx = -(grad - mu J^T (1/c))`` and ``dz = -(z +
mu/c + Sigma J dx)`` (2.20, 2.21), positive definite for convex problems; or to the symmetric quasi-definite matrix
``[[W, J^T], [J, Sigma^-1]]`` (2.22).
"""

from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, get_args

import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.scipy.linalg import cho_factor, cho_solve
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.precision import precise

Route = Literal["auto", "diag", "cholesky", "sparse_cholesky", "ldl", "full", "block2x2"]


# Inside compiled programs ---------------------------------------------------------------------------------------------


def dense_curvature(curvature: Any, n: int) -> Any:
    """A number, a diagonal or a matrix, as a matrix; a smaller matrix is the leading block, the rest being zero."""
    if jnp.ndim(curvature) == 2:
        missing = n - curvature.shape[0]
        return jnp.pad(curvature, (0, missing)) if missing else curvature
    return jnp.diag(jnp.broadcast_to(curvature, (n,)))


def spd_solve(matrix: Any, right: Any) -> Any:
    """``matrix^-1 right`` by Cholesky, with unit diagonal: the slacks span many orders of magnitude, and so do the
    entries.
    """
    scale = 1 / jnp.sqrt(jnp.diagonal(matrix))
    return scale * cho_solve(cho_factor(matrix * scale[:, None] * scale[None, :], lower=True), scale * right)


def solve_quasi_definite(W: Any, J: Any, weights: Any, right: Any) -> Any:
    """``(W + J^T diag(weights) J)^-1 right`` by way of ``[[W, J^T], [J, -1 / weights]]``, which huge weights do not
    harm.
    """
    n = right.size
    matrix = jnp.block([[W, J.T], [J, -jnp.diag(1 / weights)]])
    return jnp.linalg.solve(matrix, jnp.pad(right, (0, weights.size)))[:n]


def diagonal_plus_rank_one(diagonal, weight, right):
    """``(diag(d) + weight 1 1^T)^-1 right``, for positive ``d`` and ``weight``, in linear time."""
    inverse = jnp.broadcast_to(1 / diagonal, right.shape)
    scaled = inverse * right
    return scaled - inverse * (weight * jnp.sum(scaled) / (1 + weight * jnp.sum(inverse)))


@precise
def sherman_morrison(inverse, u, v):
    """``(A + u v^T)^-1`` from ``A^-1``: ``A^-1 - A^-1 u v^T A^-1 / (1 + v^T A^-1 u)`` (Sherman and Morrison 1950).

    The division is missing from equation 2.48 of Carbonetto (2009).

    >>> sherman_morrison([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0], [1.0, 0.0]).tolist()
    [[0.5, 0.0], [0.0, 1.0]]
    """
    left, right = inverse @ u, v @ inverse
    return inverse - jnp.outer(left, right) / (1 + v @ left)


@precise
def rank_two_determinant(inverse, u1, u2, u3, u4):
    """``det(A + u1 u2^T + u3 u4^T) / det A`` from ``A^-1``, which need not be symmetric:
    ``(1 + u2^T A^-1 u1)(1 + u4^T A^-1 u3) - (u2^T A^-1 u3)(u4^T A^-1 u1)``.

    Equation 2.49 of Carbonetto (2009) is the special case of a symmetric ``A``.

    >>> rank_two_determinant([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0])
    np.float64(6.0)
    """
    first, second = inverse @ u1, inverse @ u3
    return (1 + u2 @ first) * (1 + u4 @ second) - (u2 @ second) * (u4 @ first)


# On the host ----------------------------------------------------------------------------------------------------------


class PrimalDualStep(NamedTuple):
    """The direction of a primal-dual step.

    Carbonetto (2009, equation 2.16).

    >>> PrimalDualStep(np.array([1.0]), np.array([0.5])).dx
    array([1.])
    """

    dx: np.ndarray
    dz: np.ndarray


def solve_primal_dual(W: Any, J: Any, c: Any, z: Any, grad: Any, mu: float, method: Route = "auto") -> PrimalDualStep:
    """The primal-dual direction at a strictly feasible point, on the host in float64.

    Carbonetto (2009, equation 2.16).

    Parameters
    ----------
    W : number, array (n,), array (n, n) or sparse matrix
        Hessian of the Lagrangian or its stand-in.
    J : array or sparse matrix (m, n)
        Jacobian of the constraints.
    c, z : array (m,)
        Constraints, all negative, and multipliers, all positive.
    grad : array (n,)
        Gradient of the objective, exact or noisy.
    mu : float
        Barrier parameter, not negative.
    method : str
        ``"full"``: the unsymmetric system (2.16) by LU. ``"cholesky"``: (2.20), dense. ``"sparse_cholesky"``: (2.20),
        ordered by reverse Cuthill-McKee and factorised within the band that leaves. ``"ldl"``: (2.22) by the symmetric
        indefinite factorisation of Bunch and Kaufman, which also copes with an indefinite ``W`` as long as there are n
        positive and m negative pivots. ``"diag"``: one entry in each row of ``J`` and diagonal ``W``. ``"block2x2"``:
        ``|w| <= u`` with diagonal curvature, of ``(w, u)`` or, given as p entries, of ``w`` alone. ``"auto"``:
        the first that fits of diag, block2x2, sparse_cholesky (for sparse input) and cholesky.

    Examples
    --------
    ``min x_1 + x_2`` over ``x_1 >= 0``, ``x_2 >= x_1^2``, at ``(1, 2)``:

    >>> step = solve_primal_dual([[2, 0], [0, 0]], [[-1, 0], [2, -1]], [-1, -1], [1, 1], [1, 1], 0.5)
    >>> step.dx.round(6), step.dz[0].round(6)
    (array([-0.833333, -2.166667]), np.float64(0.333333))
    """
    checks.choice("method", method, get_args(Route))
    J = sparse.csr_array(J).astype(np.float64) if sparse.issparse(J) else checks.real_array("J", J)
    if J.ndim != 2:
        raise ValueError(f"J must be a matrix; got shape {J.shape}")
    m, n = J.shape
    c, z, grad = (_vector(each, name, size) for each, name, size in ((c, "c", m), (z, "z", m), (grad, "grad", n)))
    if np.any(c >= 0):
        raise DomainError(f"c must be negative, at a strictly feasible point; got {c.max():g} at index {c.argmax()}")
    if np.any(z <= 0):
        raise DomainError(f"z must be positive; got {z.min():g} at index {z.argmin()}")
    checks.not_negative("mu", mu)
    W = sparse.csr_array(W).astype(np.float64) if sparse.issparse(W) else checks.real_array("W", W)
    if method == "auto":
        method = _choose(W, J)
    if method == "block2x2":
        dx = _blocks(W, J, c, z, grad, mu)
    else:
        if W.shape not in ((), (n,), (n, n)):
            raise ValueError(f"W must be a number, {n} numbers or a matrix of shape ({n}, {n}); got shape {W.shape}")
        if method in ("full", "ldl"):
            return _unreduced(_dense(W, n), _array(J), c, z, grad, mu, method)
        dx = _reduced(W, J, c, z, grad, mu, method)
    return PrimalDualStep(dx, -(z + mu / c + (z / c) * (J @ dx)))


def inertia(matrix: Any) -> tuple[int, int, int]:
    """How many eigenvalues of a symmetric matrix are positive, negative and zero, from its LDL^T factorisation.

    Nocedal and Wright (2006, chapter 16).

    >>> inertia([[0.0, 1.0], [1.0, 0.0]])
    (1, 1, 0)
    """
    matrix = checks.real_array("matrix", matrix, ndim=2)
    if matrix.shape[0] != matrix.shape[1] or not np.array_equal(matrix, matrix.T):
        raise ValueError(f"matrix must be square and symmetric; got shape {matrix.shape}")
    _, blocks, _ = scipy.linalg.ldl(matrix)
    values = np.linalg.eigvalsh(blocks)  # of blocks of one or two rows; Sylvester's law of inertia
    return int(np.sum(values > 0)), int(np.sum(values < 0)), int(np.sum(values == 0))


def _vector(value: Any, name: str, size: int) -> np.ndarray:
    value = checks.real_array(name, value, finite=False)
    if value.shape != (size,) or not np.all(np.isfinite(value)):
        raise ValueError(f"{name} must be {size} finite numbers; got shape {value.shape}")
    return value


def _array(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def _dense(W: Any, n: int) -> np.ndarray:
    return _array(W) if W.ndim == 2 else np.diag(np.broadcast_to(W, (n,)))


def _one_entry_a_row(J: Any) -> bool:
    return bool(np.all((J != 0).sum(axis=1) <= 1))


def _are_absolute_bounds(J: Any) -> bool:
    m, n = J.shape
    if m != n or n % 2:
        return False
    one = sparse.identity(n // 2)
    return abs(sparse.csr_array(J) - sparse.bmat([[-one, -one], [one, -one]])).sum() == 0


def _choose(W: Any, J: Any) -> Route:
    if W.ndim < 2 and _one_entry_a_row(J):
        return "diag"
    if W.ndim < 2 and _are_absolute_bounds(J):
        return "block2x2"
    return "sparse_cholesky" if sparse.issparse(J) or sparse.issparse(W) else "cholesky"


def _reduced(W, J, c, z, grad, mu, method):
    """(2.20): positive definite for convex problems, since Sigma is negative."""
    n = J.shape[1]
    weights, right = -z / c, -(grad - mu * (J.T @ (1 / c)))
    if method == "diag":
        if W.ndim == 2 or not _one_entry_a_row(J):
            raise ValueError("method 'diag' needs a diagonal W and at most one entry in each row of J")
        return right / (W + (J**2).T @ weights)
    if method == "sparse_cholesky":
        W = sparse.csr_array(W) if W.ndim == 2 else sparse.diags_array(np.broadcast_to(W, (n,)))
        J = sparse.csr_array(J)
        return _banded(sparse.csr_array(W + J.T @ sparse.diags_array(weights) @ J), right)
    J = _array(J)
    with _positive_definite():
        return scipy.linalg.cho_solve(scipy.linalg.cho_factor(_dense(W, n) + (J.T * weights) @ J, lower=True), right)


@contextmanager
def _positive_definite():
    try:
        yield
    except np.linalg.LinAlgError as problem:
        raise DomainError(
            "W - J^T Sigma J must be positive definite, as it is for convex problems: use method='ldl', or a positive "
            "definite W"
        ) from problem


def _banded(matrix, right):
    """Cholesky within the band that reverse Cuthill-McKee leaves."""
    order = reverse_cuthill_mckee(sparse.csr_matrix(matrix), symmetric_mode=True)
    permuted = matrix[order][:, order].tocoo()
    rows, columns = permuted.coords
    keep = rows >= columns
    width = int(np.max(rows - columns, initial=0))
    band = np.zeros((width + 1, right.size))
    band[(rows - columns)[keep], columns[keep]] = permuted.data[keep]
    dx = np.empty_like(right)
    with _positive_definite():
        dx[order] = scipy.linalg.solveh_banded(band, right[order], lower=True)
    return dx


def _unreduced(W, J, c, z, grad, mu, method):
    m, n = J.shape
    if method == "full":
        matrix = np.block([[W, J.T], [z[:, None] * J, np.diag(c)]])
        step = np.linalg.solve(matrix, -np.concatenate([grad + J.T @ z, c * z + mu]))
    else:
        matrix = np.block([[W, J.T], [J, np.diag(c / z)]])
        found = inertia(matrix)
        if found != (n, m, 0):
            raise DomainError(
                f"[[W, J^T], [J, Sigma^-1]] must have {n} positive and {m} negative eigenvalues for a step of descent; "
                f"it has {found[0]} and {found[1]}: add a multiple of the identity to W"
            )
        right = -np.concatenate([grad + J.T @ z, c + mu / z])
        step = scipy.linalg.solve(matrix, right, assume_a="sym")
    return PrimalDualStep(step[:n], step[n:])


def _blocks(W, J, c, z, grad, mu):
    """(2.65) to (2.67): a two-by-two system for each pair ``(w_j, u_j)``."""
    if W.ndim == 2 or not _are_absolute_bounds(J):
        raise ValueError("method 'block2x2' needs J = [[-I, -I], [I, -I]] and a diagonal W")
    p = J.shape[1] // 2
    h, k = (W, 0.0) if W.shape == (p,) else np.split(np.broadcast_to(W, (2 * p,)), 2)
    low, high = np.split(-z / c, 2)
    right = -(grad - mu * (J.T @ (1 / c)))
    total, tilt = low + high, low - high
    det = h * k + (h + k) * total + 4 * low * high
    first, second = np.split(right, 2)
    return np.concatenate([(k + total) * first - tilt * second, (h + total) * second - tilt * first]) / np.tile(det, 2)
