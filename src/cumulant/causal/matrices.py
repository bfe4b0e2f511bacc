"""Batches of small matrices: the algebra of normal models, and the refusals of what is not positive definite."""

from typing import Any

import numpy as np

from cumulant import checks
from cumulant.errors import DomainError


def transposed(matrix: np.ndarray) -> np.ndarray:
    """The last two axes exchanged."""
    return np.swapaxes(matrix, -1, -2)


def matvec(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Matrices times vectors."""
    return (matrix @ vector[..., None])[..., 0]


def solve(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Inverses of matrices times vectors."""
    return np.linalg.solve(matrix, vector[..., None])[..., 0]


def check_trailing(name: str, value: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse an array whose last axes are not `shape`."""
    if value.ndim < len(shape) or value.shape[value.ndim - len(shape) :] != shape:
        raise ValueError(f"{name} must have shape (..., {', '.join(map(str, shape))}); got {value.shape}")


def check_batches(name: str, mine: tuple[int, ...], its: tuple[int, ...]) -> None:
    """Refuse a batch of models that cannot be paired with another, one by one or with a single one."""
    try:
        np.broadcast_shapes(mine, its)
    except ValueError:
        raise ValueError(f"{name} must be one model or a batch of shape {mine}; got a batch of shape {its}") from None


def check_positive_definite(name: str, matrix: np.ndarray) -> None:
    """Refuse matrices that are not symmetric, or not positive definite."""
    size = np.max(np.abs(matrix), axis=(-2, -1), keepdims=True)
    if not np.all(np.abs(matrix - transposed(matrix)) <= 1e-8 * size):
        raise DomainError(f"{name} must be symmetric")
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise DomainError(f"{name} must be positive definite") from None


def inverse(name: str, matrix: Any) -> np.ndarray:
    """The inverse of a covariance matrix that a user gave."""
    found = checks.real_array(name, matrix)
    if found.ndim < 2 or found.shape[-1] != found.shape[-2] or found.shape[-1] == 0:
        raise ValueError(f"{name} must be a square matrix, or a batch of them; got shape {found.shape}")
    check_positive_definite(name, found)
    inverted = np.linalg.inv(found)
    return 0.5 * (inverted + transposed(inverted))


def check_triangular(name: str, matrix: Any) -> np.ndarray:
    """Factors that a user gave: lower triangular, with a positive diagonal."""
    found = checks.real_array(name, matrix)
    if found.ndim < 2 or found.shape[-1] != found.shape[-2] or found.shape[-1] == 0:
        raise ValueError(f"{name} must be a square matrix, or a batch of them; got shape {found.shape}")
    if np.any(np.triu(found, 1)) or not np.all(np.diagonal(found, axis1=-2, axis2=-1) > 0):
        raise DomainError(f"{name} must be lower triangular with a positive diagonal")
    return found
