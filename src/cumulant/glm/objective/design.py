"""The matrix of features, dense or sparse: products with it, and its weighted Gram matrix.

A column of ones for the intercept, last, is understood where `intercept` is set: it is never stored.
"""

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import get_blas_funcs

from cumulant.glm.objective import design_kernels as kernels
from cumulant.threads import cores, one_blas_thread, side_by_side

_syrk: Any = get_blas_funcs("syrk", dtype=np.float64)
_ROWS = 4096  # of a dense matrix that are weighted at once: they stay in the cache
_LITTLE = 100_000  # products of a Gram matrix that take less time than a call of BLAS with its threads held back
_FEW = 16  # columns of a dense matrix for one that is used: single entries are then read, not all
_DENSE_PART = 1_000_000  # entries of a dense matrix that are worth a thread
_PART = 200_000  # entries of a sparse matrix that are worth a thread


class _Kernels(NamedTuple):
    """Loops over the rows `first` to `last` of a matrix, which its arrays come before."""

    times: Any
    transposed: Any
    weighted: Any
    squares: Any


@dataclass(frozen=True, eq=False)
class _Design:
    """A matrix of features; rows are shared between threads in parts that the data decide, added up in order."""

    X: Any
    intercept: bool
    n_jobs: int | None = None

    _kernels: ClassVar[_Kernels]
    _arrays: ClassVar[Any]  # the matrix as kernels take it
    edges: ClassVar[Any]  # where parts of the rows begin

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns with that of the intercept."""
        return self.X.shape[0], self.X.shape[1] + self.intercept

    def _over_parts(self, work: Callable[[int, int], Any]) -> list:
        """``work(first, last)`` on each part, by several threads; the answers in order."""
        spans = list(itertools.pairwise(self.edges.tolist()))
        if len(spans) == 1 or cores(self.n_jobs) == 1:
            return [work(*span) for span in spans]
        return side_by_side(lambda k: work(*spans[k]), len(spans), self.n_jobs)

    def _summed(self, add: Callable, *arguments: Any) -> np.ndarray:
        """What a kernel adds up over the rows, in order."""

        def part(a, b):
            out = np.zeros(self.X.shape[1])
            add(*self._arrays, *arguments, a, b, out)
            return out

        return _total(self._over_parts(part))

    def times(self, v: np.ndarray) -> np.ndarray:
        """``X v`` for a vector (columns,) or a matrix (columns, outputs)."""
        weights, shift = (v[:-1], v[-1]) if self.intercept else (v, 0.0)
        if v.ndim == 2:
            return self.X @ weights + shift
        out = self._times_vector(np.ascontiguousarray(weights))
        return out + shift if self.intercept else out

    def _times_vector(self, weights: np.ndarray) -> np.ndarray:
        out = np.empty(self.X.shape[0])
        self._over_parts(lambda a, b: self._kernels.times(*self._arrays, weights, a, b, out))
        return out

    def transposed(self, u: np.ndarray) -> np.ndarray:
        """``X^T u`` for a vector (rows,) or a matrix (rows, outputs)."""
        out = self.X.T @ u if u.ndim == 2 else self._transposed_vector(np.ascontiguousarray(u))
        return np.concatenate([out, u.sum(axis=0, keepdims=True)]) if self.intercept else out

    def _transposed_vector(self, u: np.ndarray) -> np.ndarray:
        return self._summed(self._kernels.transposed, u)

    def weighted(self, weights: np.ndarray, v: np.ndarray) -> np.ndarray:
        """``X^T (weights * X v)``, in one pass over the entries."""
        slopes, shift = (v[:-1], float(v[-1])) if self.intercept else (v, 0.0)
        slopes = np.ascontiguousarray(slopes)

        def part(a, b):
            out = np.zeros(self.X.shape[1])
            return out, self._kernels.weighted(*self._arrays, weights, slopes, shift, a, b, out)

        found = self._over_parts(part)
        out = _total([vector for vector, _ in found])
        return np.append(out, sum(total for _, total in found)) if self.intercept else out

    def squares(self, weights: np.ndarray) -> np.ndarray:
        """The diagonal of ``X^T diag(weights) X``."""
        out = self._summed(self._kernels.squares, weights)
        return np.append(out, weights.sum()) if self.intercept else out

    @functools.cached_property
    def column_norms(self) -> np.ndarray:
        """At least the Euclidean norm of each column, that of the intercept included."""
        n = self.X.shape[0]
        squares = self._summed(self._kernels.squares, np.ones(n))
        # Rounding of the sums, and squares that underflow.
        norms = np.sqrt(squares * (1.0 + 2.0**-50 * (n + 4)) + n * 2.3e-308)
        return np.append(norms, np.sqrt(n)) if self.intercept else norms

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """``X^T diag(weights) X`` for weights that are not negative."""
        return self._bordered(self._gram(weights), weights)

    def cross_gram(self, weights: np.ndarray) -> np.ndarray:
        """``X^T diag(weights) X`` for weights of any sign."""
        return self._bordered(self._cross_gram(weights), weights)

    def _gram(self, weights: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _cross_gram(self, weights: np.ndarray) -> np.ndarray:
        return self._gram(weights)

    def _bordered(self, gram: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if not self.intercept:
            return gram
        border = self.transposed(weights)
        out = np.empty((len(gram) + 1, len(gram) + 1))
        out[:-1, :-1], out[-1], out[:, -1] = gram, border, border
        return out

    def take(self, rows: Any) -> Self:
        """Some of the rows."""
        some = self.X[rows]
        some = np.ascontiguousarray(some) if isinstance(some, np.ndarray) else some
        return type(self)(some, self.intercept, self.n_jobs)


class DenseDesign(_Design):
    """Rows of numbers, row after row in memory.

    Products with vectors are compiled loops, limited by memory as BLAS would be but without its threads, whose waking
    takes longer than a product of moderate size; products with matrices are BLAS.

    >>> design = DenseDesign(np.array([[1.0, 2.0], [3.0, 4.0]]), True)
    >>> design.shape, design.times(np.array([1.0, 1.0, 10.0]))     # the last parameter is the intercept
    ((2, 3), array([13., 17.]))
    """

    _kernels = _Kernels(kernels.rows_times, kernels.rows_transposed, kernels.rows_weighted, kernels.rows_squares)

    @functools.cached_property
    def edges(self):
        """Where parts of the rows begin, and the last ends."""
        parts = int(np.clip(self.X.size // _DENSE_PART, 1, 8))
        return np.linspace(0, len(self.X), parts + 1).astype(np.int64)

    @property
    def _arrays(self):
        return (self.X,)

    @property
    def size(self) -> int:
        """Entries that are stored."""
        return self.X.size

    @property
    def longest_row(self) -> int:
        """The number of columns."""
        return self.shape[1]

    def _times_vector(self, weights):
        some = np.flatnonzero(weights)
        if _FEW * len(some) >= len(weights):
            return super()._times_vector(weights)
        if not len(some):
            return np.zeros(len(self.X))
        out, few = np.empty(len(self.X)), weights[some]
        self._over_parts(lambda a, b: kernels.rows_times_some(self.X, some, few, a, b, out))
        return out

    def _gram(self, weights):
        p = self.X.shape[1]
        if self.X.size * p <= _LITTLE:
            out = np.zeros((p, p))
            kernels.rows_gram(self.X, weights, out)
            return out
        roots = np.sqrt(weights)[:, None]

        def part(a, b):
            out, buffer = np.zeros((p, p), order="F"), np.empty((min(_ROWS, b - a), p))
            for i in range(a, b, _ROWS):
                rows = self.X[i : min(i + _ROWS, b)]
                scaled = np.multiply(rows, roots[i : i + len(rows)], out=buffer[: len(rows)])
                out = _syrk(1.0, scaled.T, beta=1.0, c=out, overwrite_c=True)
            return out

        # Threads of our own, so that scaling is shared too; threads of BLAS on top of them would slow them down.
        with one_blas_thread():
            out = np.triu(_total(self._over_parts(part)))
        return out + np.triu(out, 1).T

    def _cross_gram(self, weights):
        with one_blas_thread():
            return self.X.T @ (weights[:, None] * self.X)

    def columns(self, columns: np.ndarray) -> "DenseDesign":
        """Some of the columns; that of the intercept stays."""
        return DenseDesign(np.take(self.X, columns, axis=1), self.intercept, self.n_jobs)

    @functools.cached_property
    def by_rows(self) -> Any:
        """As a sparse matrix by rows, without the intercept."""
        return sp.csr_matrix(self.X)

    @functools.cached_property
    def by_columns(self) -> Any:
        """As a sparse matrix by columns, without the intercept."""
        n, p = self.X.shape  # zeros are kept: finding them takes longer than passing over them
        entries = np.ascontiguousarray(self.X.T).ravel(), np.tile(np.arange(n, dtype=np.int32), p)
        return sp.csc_matrix((*entries, n * np.arange(p + 1)), shape=(n, p))


class SparseDesign(_Design):
    """A CSR matrix.

    >>> design = SparseDesign(sp.csr_matrix(np.array([[1.0, 0.0], [0.0, 4.0]])), False)
    >>> design.times(np.array([1.0, 1.0])), design.transposed(np.array([1.0, 2.0]))
    (array([1., 4.]), array([1., 8.]))
    """

    _kernels = _Kernels(kernels.times, kernels.add_transposed, kernels.add_weighted, kernels.add_squares)

    @functools.cached_property
    def edges(self):
        """Where parts of the rows begin, and the last ends."""
        n, p = self.X.shape
        # Each part adds to a vector of its own, which must be small beside its share of the entries.
        parts = int(np.clip(min(self.X.nnz // _PART, self.X.nnz // (2 * max(p, 1))), 1, 8))
        shares = self.X.nnz * np.arange(1, parts) / parts
        return np.concatenate([[0], np.searchsorted(self.X.indptr, shares), [n]]).astype(np.int64)

    @functools.cached_property
    def _arrays(self):
        return unsigned(self.X)

    @property
    def size(self) -> int:
        """Entries that are stored."""
        return self.X.nnz

    @functools.cached_property
    def longest_row(self) -> int:
        """The largest number of stored entries in a row, that of the intercept included."""
        return int(np.diff(self.X.indptr).max(initial=0)) + self.intercept

    def _transposed_vector(self, u):
        if "by_columns" in self.__dict__:  # by columns, each a sum of its own
            return self._transpose.times(u)
        return super()._transposed_vector(u)

    def _gram(self, weights):
        def part(a, b):
            out = np.zeros((self.X.shape[1], self.X.shape[1]))
            kernels.add_gram(*self._arrays, weights, a, b, out)
            return out

        return _total(self._over_parts(part))

    def columns(self, columns: np.ndarray) -> "Design":
        """Some of the columns; that of the intercept stays."""
        return design_of(self.by_columns[:, columns], self.intercept, self.n_jobs)

    @property
    def by_rows(self) -> Any:
        """As a sparse matrix by rows, without the intercept."""
        return self.X

    @functools.cached_property
    def by_columns(self) -> Any:
        """As a sparse matrix by columns, without the intercept."""
        return sp.csc_matrix(self.X)

    @functools.cached_property
    def _transpose(self) -> "SparseDesign":
        return SparseDesign(self.by_columns.T, False, self.n_jobs)


Design = DenseDesign | SparseDesign


def _total(parts: list[np.ndarray]) -> np.ndarray:
    """The sum of arrays, in order."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def largest_image(design: Design, matrix: np.ndarray) -> float:
    """The largest squared length of ``matrix x`` among the rows ``x`` of the design."""
    largest = 0.0
    for i in range(0, design.shape[0], _ROWS):
        image = design.X[i : i + _ROWS] @ matrix[:, : design.X.shape[1]].T
        image = image + matrix[:, -1] if design.intercept else image
        largest = max(largest, float(np.max(np.einsum("ij,ij->i", image, image))))
    return largest


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """``<a, b>`` on one thread, in a fixed order. BLAS would start all of its threads for vectors of this size, and
    wait for them, which on a busy machine takes longer than the sum.
    """
    return kernels.dot_products(a.ravel(), b.ravel())


def unsigned(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arrays of a sparse matrix for compiled loops: an unsigned index needs no test for counting from the end."""
    kind = np.uint32 if X.indices.dtype == np.int32 else np.uint64
    return X.indptr.astype(np.int64).view(np.uint64), X.indices.view(kind), X.data


def design_of(X: Any, intercept: bool, n_jobs: int | None = None) -> Design:
    """A design of validated data: a float64 array or a sparse matrix.

    A sparse matrix with more than a fifth of its entries is made dense: BLAS is then faster.

    >>> type(design_of(sp.csr_matrix(np.eye(10)), False)).__name__, type(design_of(np.eye(2), False)).__name__
    ('SparseDesign', 'DenseDesign')
    """
    if not sp.issparse(X):
        return DenseDesign(np.ascontiguousarray(X), intercept, n_jobs)
    if X.nnz > 0.2 * X.shape[0] * X.shape[1]:
        return DenseDesign(np.ascontiguousarray(X.toarray()), intercept, n_jobs)
    X = sp.csr_matrix(X)
    if X.indices.dtype != np.int32 and X.nnz < 2**31:
        X = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    return SparseDesign(X, intercept, n_jobs)
