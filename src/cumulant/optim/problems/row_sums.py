"""What losses of the rows of a matrix share."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.optim.problems.base import array, is_concrete, matrix, not_negative, term_number
from cumulant.optim.problems.sparse_matrix import SparseMatrix, singular_values
from cumulant.optim.protocol import Problem
from cumulant.precision import precise

__all__ = ["RowSums"]


class RowSums(Problem):
    """What losses of the rows of a matrix ``A`` share; `reduction` says whether they are averaged or added up."""

    A: Any
    y: Any
    l2: Any
    reduction: str

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
