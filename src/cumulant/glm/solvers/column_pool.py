"""Some columns of a design, one after the other in memory, and their Gram matrix where forming it is cheaper."""

import functools
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
import scipy.sparse as sp

from cumulant.glm.objective import design_kernels as kernels
from cumulant.glm.objective.design import DenseDesign, Design, SparseDesign, dot, unsigned
from cumulant.threads import one_blas_thread

NO_GRAM = np.empty((0, 0))

_KEPT, _FORMED = 4000, 1500  # columns up to which a Gram matrix is kept, and formed anew at each step
_ENTRIES = 4  # a row of the Gram matrix may be this many times as long as a column
_SWEEPS = 50  # sweeps over sparse columns that forming the Gram matrix may cost


@dataclass(frozen=True, eq=False)
class ColumnPool:
    """The columns of a design with the numbers `columns`: `rows` is their transpose, a design without intercept.

    `kept` is the Gram matrix for weights that never change, those of a quadratic loss, or empty: `grown` adds to it
    what new columns need and computes nothing twice. As a pytree it consists of `columns` and `kept`, so that a run
    can be saved and resumed: `rows` are made from the design when they are missing.
    """

    design: Design
    columns: np.ndarray
    kept: np.ndarray = field(default_factory=lambda: NO_GRAM)
    given: Design | None = None

    @functools.cached_property
    def rows(self) -> Design:
        """The transpose of the columns."""
        return _transposed(self.design, self.columns) if self.given is None else self.given

    def grown(self, more: np.ndarray, weights: np.ndarray | None) -> "ColumnPool":
        """With more columns; `weights` are those of the Gram matrix that is kept."""
        design = self.design
        new, columns = _transposed(design, more), np.concatenate([self.columns, more])
        if isinstance(self.rows, SparseDesign):
            both: Any = sp.vstack([self.rows.X, new.X], format="csr")
            return ColumnPool(design, columns, given=SparseDesign(both, False, design.n_jobs))
        assert isinstance(new, DenseDesign)
        rows = DenseDesign(np.concatenate([self.rows.X, new.X]), False, design.n_jobs)
        if not self.kept.size or weights is None or len(columns) > _KEPT:
            return ColumnPool(design, columns, given=rows)
        old, kept = len(self.columns), np.empty((len(columns), len(columns)))
        kept[:old, :old] = self.kept
        with one_blas_thread():
            kept[old:] = (new.X * weights) @ rows.X.T
        kept[:old, old:] = kept[old:, :old].T
        return ColumnPool(design, columns, kept, rows)

    def times(self, v: np.ndarray) -> np.ndarray:
        """``X v`` for weights of these columns, of which zeros cost nothing."""
        some = np.flatnonzero(v)
        if isinstance(self.rows, DenseDesign) and 2 * len(some) < len(v):
            out = np.zeros(self.rows.X.shape[1])
            kernels.rows_transposed(self.rows.X[some], v[some], 0, len(some), out)
            return out
        return self.rows.transposed(v)

    def transposed(self, u: np.ndarray) -> np.ndarray:
        """``X^T u``."""
        return self.rows.times(u)

    def squares(self, weights: np.ndarray) -> np.ndarray:
        """The diagonal of the Gram matrix."""
        if isinstance(self.rows, DenseDesign):
            return np.einsum("ij,ij,j->i", self.rows.X, self.rows.X, weights)
        squared = sp.csr_matrix((self.rows.X.data**2, self.rows.X.indices, self.rows.X.indptr), self.rows.X.shape)
        return np.asarray(squared @ weights)

    def is_for_gram(self, constant: bool) -> bool:
        """Whether the Gram matrix is worth its cost: for weights that are `constant` it is needed once only."""
        k, rows = len(self.columns), self.rows
        if k > (_KEPT if constant else _FORMED):
            return False
        if isinstance(rows, DenseDesign):
            return True
        counts = np.bincount(rows.X.indices, minlength=rows.X.shape[1]).astype(np.float64)
        return k * k <= _ENTRIES * rows.X.nnz and dot(counts, counts) <= _SWEEPS * rows.X.nnz

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """``X^T diag(weights) X`` of these columns."""
        if self.kept.size:
            return self.kept
        if isinstance(self.rows, DenseDesign):
            with one_blas_thread():
                return (self.rows.X * weights) @ self.rows.X.T
        by_rows: Any = sp.csr_matrix(self.rows.X.T)
        k = len(self.columns)
        out = np.zeros((k, k))
        kernels.add_gram(*unsigned(by_rows), weights, 0, by_rows.shape[0], out)
        return out

    def keeping(self, gram: np.ndarray) -> "ColumnPool":
        """With this Gram matrix, which stays."""
        return replace(self, kept=gram, given=self.rows)

    def part(self, some: np.ndarray) -> "ColumnPool":
        """Some of the columns of the pool."""
        kept = self.kept[np.ix_(some, some)] if self.kept.size else NO_GRAM
        return ColumnPool(self.design, self.columns[some], kept, self.rows.take(some))


def _transposed(design: Design, columns: np.ndarray) -> Design:
    if isinstance(design, DenseDesign):
        return DenseDesign(np.ascontiguousarray(np.take(design.X, columns, axis=1).T), False, design.n_jobs)
    return SparseDesign(sp.csr_matrix(design.by_columns[:, columns].T), False, design.n_jobs)


jax.tree_util.register_pytree_node(
    ColumnPool,
    lambda pool: ((pool.columns, pool.kept), pool.design),
    lambda design, leaves: ColumnPool(design, *leaves),
)
