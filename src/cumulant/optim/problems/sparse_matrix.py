"""A sparse matrix that compiled programs can multiply with: coordinates and entries as the leaves of a pytree.

JAX's own `BCOO` holds JAX arrays, which outside a float64 context are float32; a problem made from NumPy data has to
stay NumPy until it is run, so this one holds whatever arrays it is given. Certificates are computed on the host, with
SciPy's matrix (`host_matrix`).
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from cumulant.geometry.norms import operator_norm_interval
from cumulant.pytrees import pytree

_DENSE = 1_000_000  # entries of the dense form up to which the singular values are computed exactly


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class SparseMatrix:
    """Entries ``data[k]`` at ``(rows[k], columns[k])``; ``A @ x``, ``A.T`` and `shape` are what the problems use.

    Products cost one pass over the entries. Made by the problems from any SciPy sparse matrix.

    >>> A = SparseMatrix.of(sparse.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]])))
    >>> (A.T.to_scipy() @ np.ones(2)), A.shape
    (array([3., 3.]), (2, 2))
    """

    data: Any
    rows: Any
    columns: Any
    shape: tuple[int, int] = dataclasses.field(metadata={"static": True})

    ndim = 2

    @classmethod
    def of(cls, matrix: Any) -> "SparseMatrix":
        """From a SciPy sparse matrix; entries given twice are added up."""
        rows = sparse.csr_array(matrix)
        rows.sum_duplicates()
        entries = rows.tocoo()
        row, column = entries.coords
        shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        return cls(entries.data.astype(np.float64), row.astype(np.int32), column.astype(np.int32), shape)

    @property
    def size(self) -> int:
        """The number of entries of the dense form."""
        return self.shape[0] * self.shape[1]

    @property
    def T(self) -> "SparseMatrix":
        """The transpose; nothing is copied."""
        return SparseMatrix(self.data, self.columns, self.rows, (self.shape[1], self.shape[0]))

    def __matmul__(self, x: Any) -> Any:
        data = self.data if x.ndim == 1 else jnp.asarray(self.data)[:, None]
        return jax.ops.segment_sum(data * x[self.columns], self.rows, num_segments=self.shape[0])

    def to_scipy(self) -> sparse.csr_array:
        """The same matrix on the host."""
        data = np.asarray(self.data, dtype=np.float64)
        return sparse.coo_array((data, (np.asarray(self.rows), np.asarray(self.columns))), shape=self.shape).tocsr()


def host_matrix(A: Any) -> Any:
    """The matrix in float64 for the host: a NumPy array, or SciPy's sparse one."""
    return A.to_scipy() if isinstance(A, SparseMatrix) else np.asarray(A, dtype=np.float64)


def row_squares(A: Any) -> np.ndarray:
    """The squared Euclidean norm of each row."""
    return np.asarray((host_matrix(A) ** 2).sum(axis=1))


def column_squares(A: Any) -> np.ndarray:
    """The squared Euclidean norm of each column."""
    return np.asarray((host_matrix(A) ** 2).sum(axis=0))


def singular_values(A: Any) -> np.ndarray:
    """Of ``A``, largest first, as many as there are columns.

    A sparse matrix too large to be written out gets an upper bound on the largest (of the power method from a Gaussian
    start, which fails with probability 1e-9; see `geometry.norms.operator_norm_interval`) and zeros for the rest. Step
    sizes come from the largest and strong convexity from the smallest, so both err on the safe side.
    """
    matrix, columns = host_matrix(A), A.shape[1]
    if isinstance(A, SparseMatrix):
        if A.size > _DENSE:
            upper = operator_norm_interval(matrix).upper
            bound = min(upper, float(np.sqrt(abs(matrix).sum(axis=0).max() * abs(matrix).sum(axis=1).max())))
            return np.concatenate([[bound], np.zeros(columns - 1)])
        matrix = matrix.toarray()
    values = np.linalg.svd(matrix, compute_uv=False)
    return np.concatenate([values, np.zeros(max(columns - values.size, 0))])
