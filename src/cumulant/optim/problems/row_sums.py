"""What losses of the rows of a matrix share."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.optim.problems.base import array, is_concrete, matrix, not_negative, term_number
from cumulant.optim.problems.enclosures import Enclosure, dot, enclose
from cumulant.optim.problems.sparse_matrix import SparseMatrix, host_matrix, singular_values
from cumulant.optim.protocol import Problem
from cumulant.precision import precise

__all__ = ["RowSums"]


class RowSums(Problem):
    """What losses of the rows of a matrix ``A`` share; `reduction` says whether they are averaged or added up."""

    A: Any
    y: Any
    l2: Any
    reduction: str

    constants_are: Any = "assumed"
    constant_rounding: Any = 0.0  # how far the computed strong convexity may be from the exact one

    def _checked(self) -> bool:
        """Put the matrix, the targets and the penalty in order; False for tracers, of which nothing can be asked."""
        if self.reduction not in ("mean", "sum"):
            raise ValueError(f"reduction must be 'mean' or 'sum'; got {self.reduction!r}")
        if not is_concrete(self.A, self.y, self.l2):
            return False
        A, y = matrix(self.A, "A"), array(self.y, "y", 1)
        if A.shape[0] != y.size:
            raise ValueError(f"A must have one row for each entry of y; got shapes {A.shape} and {y.shape}")
        not_negative(self.l2, "l2")
        squares_are_finite(A)
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "y", y)
        return True

    @property
    def n_terms(self) -> int:
        """The number of observations."""
        return self.A.shape[0]

    @property
    def weight(self) -> float:
        """What multiplies the sum of the losses: ``1 / n`` or 1."""
        return 1.0 / self.A.shape[0] if self.reduction == "mean" else 1.0

    @functools.cached_property
    def singular_values(self) -> np.ndarray:
        """Of ``A``, largest first, in float64; as many as there are columns."""
        return singular_values(self.A)

    def enclosed_weight(self) -> Enclosure:
        """`weight` with its rounding."""
        return enclose(1.0) / self.A.shape[0] if self.reduction == "mean" else enclose(1.0)

    def enclosed_scores(self, x: Any) -> Enclosure:
        """``A x`` with a bound on its error."""
        return dot(host_matrix(self.A), x)

    def pulled_back(self, slopes: Any) -> Enclosure:
        """``weight A^T slopes`` with a bound on its error."""
        return self.enclosed_weight() * dot(host_matrix(self.A).T, slopes)

    def gradient_rounding(self, x: Any) -> float:
        """A bound on the rounding error of `gradient` in float64, in Euclidean norm."""
        return float(np.linalg.norm(self.enclosed_gradient(x).error))

    def enclosed_gradient(self, x: Any) -> Enclosure:
        """`gradient` in float64 on the host, with a bound on its error."""
        raise NotImplementedError

    def term_gradient(self, x: Any, i: Any) -> Any:
        """``grad f_i(x)`` of the terms in ``f = weight * sum_i f_i``: the loss of row ``i`` and its share of `l2`.

        So ``weight`` times the sum over all ``i`` is `gradient`, and ``weight n`` times one of them, drawn at random,
        is an unbiased estimate of it. `i` is a number from 0 to ``n - 1``, or a vector of them, with a gradient for
        each on the first axis. A row of a sparse matrix costs a pass over its entries.

        >>> from cumulant import optim
        >>> optim.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 3.0]).term_gradient([0.0, 0.0], [0, 1])
        array([[-1.,  0.],
               [ 0., -6.]])
        """
        term_number(i, self.n_terms)
        return self._term_gradients(x, i)

    @precise
    def _term_gradients(self, x, i):
        def one(i):
            if isinstance(self.A, SparseMatrix):
                here = jnp.where(self.A.rows == i, self.A.data, 0.0)
                row = jax.ops.segment_sum(here, self.A.columns, num_segments=self.A.shape[1])
            else:
                row = jnp.asarray(self.A)[i]
            alone: Any = dataclasses.replace(self, A=row[None], y=jnp.asarray(self.y)[i][None], l2=0.0)  # pyright: ignore
            return alone.gradient(x) + self.l2 / (self.weight * self.n_terms) * x

        return jax.vmap(one)(i) if jnp.ndim(i) else one(i)


def squares_are_finite(A: Any) -> None:
    """Refuse a matrix whose constants would overflow."""
    data = np.asarray(A.data if isinstance(A, SparseMatrix) else A, dtype=np.float64)
    largest = float(np.max(np.abs(data), initial=0.0))
    if not largest * np.sqrt(data.size + 1.0) < 1e150:
        raise ValueError(
            f"A must have entries whose squares add up to less than 1e300; the largest is {largest:.3g}: divide A (and "
            "multiply x) by a constant"
        )
