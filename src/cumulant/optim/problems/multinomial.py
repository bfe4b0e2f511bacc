"""Logistic regression with several classes."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, xlogy

from cumulant.optim.problems.base import _UNIT, problem_type, static
from cumulant.optim.problems.row_sums import RowSums
from cumulant.optim.problems.sparse_matrix import host_matrix, row_squares
from cumulant.precision import precise

__all__ = ["MultinomialLogistic"]


@problem_type
class MultinomialLogistic(RowSums):
    """``f(W) = (1/n) sum_i [log sum_k exp(<a_i, w_k>) - <a_i, w_{y_i}>] + l2 |W|^2 / 2``, ``W`` of shape ``(p, K)``.

    The Hessian of log-sum-exp is at most 1/2 (Böhning 1992), so ``L = sigma_max(A)^2 / (2 n) + l2``; ``mu = l2``, since
    adding one vector to every ``w_k`` changes nothing but the penalty.

    Parameters
    ----------
    A : array or SciPy sparse matrix (n, p)
    y : array of int (n,)
        Classes 0 to ``n_classes - 1``.
    n_classes : int, optional
        The largest class plus one, unless given.
    l2, reduction
        As for `Logistic`.

    Examples
    --------
    >>> problem = MultinomialLogistic([[1.0], [0.0], [-1.0]], [0, 1, 2], l2=0.1)
    >>> problem.shape, float(problem.value(np.zeros((1, 3))).round(6))          # log 3
    ((1, 3), 1.098612)
    """

    A: Any
    y: Any
    n_classes: int | None = static(None)
    l2: Any = 0.0
    reduction: str = static("mean")

    quadratic: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    constants_are: ClassVar[str] = "checked"

    def __post_init__(self):
        given = self.y
        if not self._checked():
            return
        y = np.asarray(given)
        if y.dtype.kind not in "iu" or y.min() < 0:
            raise ValueError(f"y must hold class numbers, integers from 0 up; got dtype {y.dtype}, smallest {y.min()}")
        classes = int(y.max()) + 1 if self.n_classes is None else self.n_classes
        if classes < max(2, int(y.max()) + 1):
            raise ValueError(f"n_classes must be at least 2 and above every entry of y; got {classes}, y.max {y.max()}")
        object.__setattr__(self, "y", y.astype(np.int32))
        object.__setattr__(self, "n_classes", classes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``W``."""
        assert self.n_classes is not None
        return (self.A.shape[1], self.n_classes)

    @property
    def smoothness(self) -> float:
        """``L = sigma_max^2 weight / 2 + l2``."""
        return self.weight * float(self.singular_values[0]) ** 2 / 2 + float(self.l2)

    @property
    def strong_convexity(self) -> float:
        """``mu = l2``."""
        return float(self.l2)

    @property
    def term_smoothness(self) -> np.ndarray:
        """``|a_i|^2 / 2`` plus its share of `l2`: the constants of the ``f_i`` in ``f = weight * sum f_i``."""
        return row_squares(self.A) / 2 + float(self.l2) / (self.weight * self.n_terms)

    def _truth(self):
        return jax.nn.one_hot(self.y, self.shape[1])

    @precise
    def value(self, x):
        """``f(W)``."""
        scores = self.A @ x
        chosen = jnp.take_along_axis(scores, self.y[:, None], axis=1)[:, 0]
        return self.weight * jnp.sum(logsumexp(scores, axis=1) - chosen) + self.l2 * jnp.vdot(x, x) / 2

    @precise
    def gradient(self, x):
        """``weight A^T (softmax(A W) - one_hot(y)) + l2 W``."""
        return self.A.T @ (self.weight * (jax.nn.softmax(self.A @ x, axis=1) - self._truth())) + self.l2 * x

    @precise
    def value_and_gradient(self, x):
        """``f(W)`` and its gradient."""
        return self.value(x), self.gradient(x)

    @precise
    def hessian_apply(self, x, v):
        """``hess f(W) v``."""
        chance, moved = jax.nn.softmax(self.A @ x, axis=1), self.A @ v
        bent = chance * (moved - jnp.sum(chance * moved, axis=1, keepdims=True))
        return self.A.T @ (self.weight * bent) + self.l2 * v

    @precise
    def slopes(self, x):
        """``weight (softmax(A W) - one_hot(y))``: the gradient in the scores ``A W``."""
        return self.weight * (jax.nn.softmax(self.A @ x, axis=1) - self._truth())

    @precise
    def conjugate(self, theta):
        """``F*(theta) = weight sum q log q``, ``q = theta / weight + one_hot(y)``, which has to be a law on classes."""
        law = theta / self.weight + self._truth()
        slack = 64 * jnp.finfo(law.dtype).eps
        fine = jnp.all(law >= -slack) & jnp.all(jnp.abs(jnp.sum(law, axis=1) - 1) <= slack * law.shape[1])
        law = jnp.clip(law, 0.0, 1.0)
        return jnp.where(fine, self.weight * jnp.sum(xlogy(law, law)), jnp.inf)

    def gradient_rounding(self, x) -> float:
        """A bound on the rounding error of `gradient` in float64, in Euclidean norm."""
        A, x = abs(host_matrix(self.A)), np.asarray(x, dtype=np.float64)
        predictions = (A.shape[1] + 2) * np.max(A @ np.abs(x), axis=1, keepdims=True)  # softmax moves by at most that
        slopes = (A.shape[0] + x.shape[1] + 8) * np.abs(np.asarray(self.slopes(x))) / self.weight
        size = self.weight * (A.T @ (predictions + slopes)) + 4 * float(self.l2) * np.abs(x)
        return _UNIT * float(np.linalg.norm(size))
