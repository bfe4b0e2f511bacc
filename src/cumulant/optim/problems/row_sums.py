"""What losses of the rows of a matrix share."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.optim.problems.base import array, is_concrete, matrix, not_negative, point, term_number
from cumulant.optim.problems.enclosures import Enclosure, dot, enclose
from cumulant.optim.problems.sparse_matrix import SparseMatrix, host_matrix, row_squares, singular_values
from cumulant.optim.protocol import Problem
from cumulant.precision import any_jax, precise


class RowSums(Problem):
    """``f(x) = weight sum_i phi_i(<a_i, x>) + l2 r(x)``; `reduction` says whether losses are averaged or added up.

    A loss defines, of all scores ``A x`` at once, the sum of the losses (`_losses`) and where there are closed forms
    their slopes (`_slopes`), for NumPy as for JAX, and their curvature applied to a change of the scores (`_bent`); and
    for certificates, with bounds on the rounding, `enclosed_slopes`, `enclosed_loss` and `enclosed_dual`.
    """

    A: Any
    y: Any
    l2: Any
    reduction: str
    largest_curvature: Any  # the largest eigenvalue of the second derivative of the loss of one row in its scores

    regulariser: Any = None  # r, where it is not |x|^2 / 2
    convex: Any = True

    def _checked(self) -> bool:
        """Put the matrix, the targets and the penalty in order; False for tracers, of which nothing can be asked."""
        checks.choice("reduction", self.reduction, ("mean", "sum"))
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

    @property
    def smoothness(self) -> float:
        """``L = sigma_max^2 max(phi'') weight + l2``."""
        return self.weight * self.largest_curvature * float(self.singular_values[0]) ** 2 + float(self.l2)

    @property
    def strong_convexity(self) -> float:
        """``mu = l2``: the curvature of the losses themselves has no positive lower bound."""
        return float(self.l2)

    @property
    def term_smoothness(self) -> np.ndarray:
        """``max(phi'') |a_i|^2`` plus its share of `l2`: the constants of the ``f_i`` in ``f = weight * sum f_i``."""
        return self.largest_curvature * row_squares(self.A) + float(self.l2) / (self.weight * self.n_terms)

    def _losses(self, scores: Any) -> Any:
        raise NotImplementedError

    def _slopes(self, scores: Any) -> Any:
        return jax.grad(self._losses)(scores)

    def _bent(self, scores: Any, change: Any) -> Any:
        return jax.jvp(self._slopes, (scores,), (change,))[1]

    def _penalty(self, x: Any) -> tuple[Any, Any]:
        """``r(x)`` and its gradient."""
        return ((x * x).sum() / 2, x) if self.regulariser is None else jax.value_and_grad(self.regulariser.value)(x)

    def value(self, x):
        """``f(x)``."""
        return self.value_and_gradient(x)[0]

    def gradient(self, x):
        """``weight A^T phi'(A x) + l2 grad r(x)``."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x):
        """``f(x)`` and its gradient: by NumPy and SciPy where the data and ``x`` are NumPy, else by JAX."""
        if self._on_host and not any_jax(x):
            with np.errstate(all="ignore"):  # as in JAX
                return self._formula(self.host_A, point(self, x))
        return self._compiled(x)

    @precise
    def _compiled(self, x):
        return self._formula(self.A, x)

    def _formula(self, A: Any, x: Any) -> tuple[Any, Any]:
        scores = A @ x
        penalty, pull = self._penalty(x)
        value = self.weight * self._losses(scores) + self.l2 * penalty
        return value, A.T @ (self.weight * self._slopes(scores)) + self.l2 * pull

    @property
    def _on_host(self) -> bool:
        """Whether the data are NumPy and the losses are written for NumPy too."""
        data = self.A.data if isinstance(self.A, SparseMatrix) else self.A
        return isinstance(data, np.ndarray) and not any_jax(self.y, self.l2)

    @precise
    def hessian_apply(self, x, v):
        """``weight A^T phi''(A x) A v + l2 v``."""
        bent = jax.jvp(lambda x: self._penalty(x)[1], (x,), (v,))[1]
        return self.A.T @ (self.weight * self._bent(self.A @ x, self.A @ v)) + self.l2 * bent

    @precise
    def slopes(self, x):
        """``weight phi'(A x)``: the gradient in the scores ``A x``."""
        return self.weight * self._slopes(self.A @ x)

    # For certificates: on the host, in float64 --------------------------------------------------------------------

    @functools.cached_property
    def host_A(self) -> Any:
        """``A`` as a NumPy array or as SciPy's sparse matrix."""
        return host_matrix(self.A)

    @functools.cached_property
    def enclosed_weight(self) -> Enclosure:
        """`weight` with its rounding."""
        return enclose(1.0) / self.A.shape[0] if self.reduction == "mean" else enclose(1.0)

    def enclosed_scores(self, x: Any) -> Enclosure:
        """``A x`` with a bound on its error."""
        return dot(self.host_A, x)

    def pulled_back(self, slopes: Any) -> Enclosure:
        """``weight A^T slopes`` with a bound on its error."""
        return self.enclosed_weight * dot(self.host_A.T, slopes)

    def enclosed_slopes(self, x: Any) -> Enclosure:
        """The slopes of all losses at the scores ``A x``, with bounds on their errors."""
        raise NotImplementedError

    def enclosed_gradient(self, x: Any) -> Enclosure:
        """`gradient` with a bound on its error."""
        x = enclose(x)
        return self.pulled_back(self.enclosed_slopes(x)) + x * float(self.l2)

    def gradient_rounding(self, x: Any) -> float:
        """A bound on the rounding error of `gradient` in float64, in Euclidean norm."""
        return float(np.linalg.norm(self.enclosed_gradient(x).error))

    def enclosed_loss(self, x: Any) -> Enclosure:
        """``weight sum_i phi_i(<a_i, x>)`` with a bound on its error."""
        raise NotImplementedError

    def dual_slopes(self, theta: Any) -> np.ndarray:
        """``theta / weight``, moved into the domain of the conjugate: a slope for each row."""
        return np.asarray(theta, dtype=np.float64) / self.weight

    def shrunk_slopes(self, slopes: np.ndarray, scale: float) -> np.ndarray:
        """The slopes that belong to `scale` times ``theta``, still in the domain of the conjugate."""
        return scale * slopes

    def enclosed_dual(self, slopes: np.ndarray) -> tuple[Enclosure, Enclosure]:
        """The conjugate of the losses at these `dual_slopes`, and ``A^T theta``, with bounds on their errors."""
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
