"""Classification by a linear score: logistic regression and the other losses of the margin, with their constants."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from cumulant.optim.problems.base import _UNIT, problem_type, static
from cumulant.optim.problems.margin_losses import LogisticLoss
from cumulant.optim.problems.row_sums import RowSums
from cumulant.optim.problems.sparse_matrix import host_matrix, row_squares
from cumulant.precision import precise

__all__ = ["Logistic", "MarginLoss"]


class _Margin(RowSums):
    """What the problems of this file share: all of it follows from the matrix, the signs and the loss."""

    A: Any
    y: Any
    loss: Any
    l2: Any
    reduction: str

    quadratic: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    constants_are: ClassVar[str] = "checked"

    def __post_init__(self):
        if self._checked():
            odd = np.asarray(self.y)[np.abs(np.asarray(self.y)) != 1]
            if odd.size:
                raise ValueError(f"y must hold the signs +1 and -1; got {odd[0]:g}: for classes 0 and 1 give 2 * y - 1")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``x``."""
        return (self.A.shape[1],)

    @property
    def smoothness(self) -> float:
        """``L = sigma_max^2 max(phi'') weight + l2``."""
        return self.weight * self.loss.largest_curvature * float(self.singular_values[0]) ** 2 + float(self.l2)

    @property
    def strong_convexity(self) -> float:
        """``mu = l2``: the curvature of the losses themselves has no positive lower bound."""
        return float(self.l2)

    @property
    def self_concordance(self) -> float | None:
        """That of the loss."""
        return self.loss.self_concordance

    @property
    def term_smoothness(self) -> np.ndarray:
        """``max(phi'') |a_i|^2`` plus its share of `l2`: the constants of the ``f_i`` in ``f = weight * sum f_i``."""
        share = float(self.l2) / (self.weight * self.n_terms)
        return self.loss.largest_curvature * row_squares(self.A) + share

    @precise
    def value(self, x):
        """``f(x)``."""
        return self.weight * jnp.sum(self.loss.value(self.y * (self.A @ x))) + self.l2 * jnp.dot(x, x) / 2

    @precise
    def gradient(self, x):
        """``weight A^T (y phi'(y A x)) + l2 x``."""
        return self.A.T @ (self.weight * self.y * self.loss.slope(self.y * (self.A @ x))) + self.l2 * x

    @precise
    def value_and_gradient(self, x):
        """``f(x)`` and its gradient, in one pass."""
        margin = self.y * (self.A @ x)
        value = self.weight * jnp.sum(self.loss.value(margin)) + self.l2 * jnp.dot(x, x) / 2
        return value, self.A.T @ (self.weight * self.y * self.loss.slope(margin)) + self.l2 * x

    @precise
    def hessian_apply(self, x, v):
        """``weight A^T diag(phi''(y A x)) A v + l2 v``."""
        return self.A.T @ (self.weight * self.loss.curvature(self.y * (self.A @ x)) * (self.A @ v)) + self.l2 * v

    @precise
    def slopes(self, x):
        """``weight y phi'(y A x)``: the gradient in the predictions ``A x``."""
        return self.weight * self.y * self.loss.slope(self.y * (self.A @ x))

    @precise
    def conjugate(self, theta):
        """``F*(theta) = weight sum phi*(y theta / weight)`` of the loss ``F`` of the predictions."""
        return self.weight * jnp.sum(self.loss.conjugate(self.y * theta / self.weight))

    def gradient_rounding(self, x) -> float:
        """A bound on the rounding error of `gradient` in float64, in Euclidean norm."""
        A, x = abs(host_matrix(self.A)), np.asarray(x, dtype=np.float64)
        predictions = (A.shape[1] + 2) * self.loss.largest_curvature * (A @ np.abs(x))  # their error, through phi''
        slopes = (A.shape[0] + 8) * np.abs(np.asarray(self.slopes(x))) / self.weight
        size = self.weight * (A.T @ (predictions + slopes)) + 4 * float(self.l2) * np.abs(x)
        return _UNIT * float(np.linalg.norm(size))


@problem_type
class Logistic(_Margin):
    """``f(x) = (1/n) sum_i log(1 + exp(-y_i <a_i, x>)) + l2 |x|^2 / 2``, ``y_i`` = +1 or -1.

    ``L = sigma_max(A)^2 / (4 n) + l2``, ``mu = l2``; term by term ``L_i = |a_i|^2 / 4 + l2``. Without `l2` there may
    be no minimiser, even if the columns are independent: see `is_separable`.

    Parameters
    ----------
    A : array or SciPy sparse matrix (n, p)
    y : array (n,)
        The signs +1 and -1.
    l2 : float
        Strength of the ridge penalty.
    reduction : str
        ``"mean"`` as above; ``"sum"`` leaves the ``1/n`` out. scikit-learn's ``C`` is ``1 / (n l2)`` for the mean and
        ``1 / l2`` for the sum.

    Examples
    --------
    >>> problem = Logistic([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.0]], [1, -1, 1], reduction="sum")
    >>> round(problem.smoothness, 9), problem.gradient([0.3, -0.2]).round(6)
    (1.388193909, array([-1.132983, -0.43592 ]))
    """

    A: Any
    y: Any
    l2: Any = 0.0
    reduction: str = static("mean")

    loss: ClassVar[Any] = LogisticLoss()


@problem_type
class MarginLoss(_Margin):
    """``f(x) = (1/n) sum_i phi(y_i <a_i, x>) + l2 |x|^2 / 2`` for any loss of `margin_losses`.

    ``L = sigma_max(A)^2 max(phi'') / n + l2``, ``mu = l2``.

    Empirical risk of a convex surrogate of the 0-1 loss (Bartlett, Jordan and McAuliffe 2006).

    Parameters
    ----------
    A, y, l2, reduction
        As for `Logistic`.
    loss : object
        `SquaredHingeLoss()`, `SmoothedHingeLoss(width)`, `LogisticLoss()`, or your own with `value`, `slope`,
        `curvature`, `conjugate`, `largest_curvature` and `self_concordance` (None will do). It must be hashable.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = MarginLoss([[1.0], [2.0], [-1.0]], [1, 1, -1], optim.SquaredHingeLoss(), l2=0.1)
    >>> result = optim.run(optim.AcceleratedGradient(), problem, [0.0], tol=1e-10)
    >>> result.status, result.x.round(4)                         # 20 / 23
    ('converged', array([0.8696]))
    """

    A: Any
    y: Any
    loss: Any = static(LogisticLoss())
    l2: Any = 0.0
    reduction: str = static("mean")
