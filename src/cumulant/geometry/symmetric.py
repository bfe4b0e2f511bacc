"""Symmetric matrices as vectors: half-vectorised, off-diagonals times sqrt 2, so that inner products agree."""

import functools

import jax.numpy as jnp
import numpy as np

from cumulant.precision import precise

__all__ = ["side", "unvech", "vech"]

_SQRT2 = float(np.sqrt(2.0))


@functools.cache
def _layout(size: int):
    """Row and column of each entry, its scale, and for each matrix entry its place in the vector."""
    rows, columns = np.tril_indices(size)
    scale = np.where(rows == columns, 1.0, _SQRT2)
    place = np.zeros((size, size), dtype=np.int32)
    place[rows, columns] = place[columns, rows] = np.arange(rows.size)
    # int32: JAX remembers the type of an index array, and 64 bits mean different things inside and outside x64
    return rows.astype(np.int32), columns.astype(np.int32), scale, place


def side(length: int) -> int:
    """The side ``d`` of the symmetric matrix whose vector has ``length = d (d + 1) / 2`` entries.

    >>> side(6)
    3
    """
    d = int((np.sqrt(8 * length + 1) - 1) / 2)
    if d * (d + 1) // 2 != length:
        raise ValueError(f"vector must have d (d + 1) / 2 of them: no symmetric matrix has {length} distinct entries")
    return d


@precise
def vech(matrix):
    """The lower triangle of ``(..., d, d)`` by rows as ``(..., d (d + 1) / 2)``, off-diagonals times sqrt 2.

    ``<vech(A), vech(B)> = trace(A B)`` for symmetric ``A``, ``B``.

    >>> vech([[1.0, 2.0], [2.0, 3.0]])
    array([1.        , 2.82842712, 3.        ])
    """
    if np.ndim(matrix) < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"matrix must be square on its last two axes; got shape {np.shape(matrix)}")
    rows, columns, scale, _ = _layout(matrix.shape[-1])
    return matrix[..., rows, columns] * scale.astype(matrix.dtype)


@precise
def unvech(vector):
    """The symmetric matrix whose `vech` is `vector`.

    >>> unvech([1.0, 2.8284271247461903, 3.0])
    array([[1., 2.],
           [2., 3.]])
    """
    if np.ndim(vector) < 1:
        raise ValueError(f"vector must have at least one axis; got {vector}")
    _, _, scale, place = _layout(side(vector.shape[-1]))
    return jnp.take(vector / scale.astype(vector.dtype), place, axis=-1)
