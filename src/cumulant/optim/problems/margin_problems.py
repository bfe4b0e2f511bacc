"""Classification by a linear score: logistic regression and the other losses of the margin, with their constants."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from cumulant.optim.problems.base import problem_type, static
from cumulant.optim.problems.enclosures import TINY, UNIT, Enclosure, enclose
from cumulant.optim.problems.margin_losses import LogisticLoss, SmoothedHingeLoss, SquaredHingeLoss
from cumulant.optim.problems.row_sums import RowSums
from cumulant.precision import float64, precise

_OURS = (LogisticLoss, SquaredHingeLoss, SmoothedHingeLoss)
_FEW_UNITS = 32 * UNIT  # the relative error of a computed loss, slope or conjugate


class _Margin(RowSums):
    """What the problems of this file share: all of it follows from the matrix, the signs and the loss."""

    A: Any
    y: Any
    loss: Any
    l2: Any
    reduction: str

    @property
    def constants_are(self) -> str:
        """``"checked"`` for the losses of this package; of a loss of your own, its constants are your word."""
        return "checked" if type(self.loss) in _OURS else "assumed"

    def __post_init__(self):
        if self._checked():
            odd = np.asarray(self.y)[np.abs(np.asarray(self.y)) != 1]
            if odd.size:
                raise ValueError(f"y must hold the signs +1 and -1; got {odd[0]:g}: for classes 0 and 1 give 2 * y - 1")

    @property
    def _on_host(self) -> bool:
        return type(self.loss) in _OURS and super()._on_host

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``x``."""
        return (self.A.shape[1],)

    @property
    def largest_curvature(self) -> float:
        """That of the loss."""
        return self.loss.largest_curvature

    @property
    def self_concordance(self) -> float | None:
        """That of the loss."""
        return self.loss.self_concordance

    def _losses(self, scores):
        return self.loss.value(self.y * scores).sum()

    def _slopes(self, scores):
        return self.y * self.loss.slope(self.y * scores)

    def _bent(self, scores, change):
        return self.loss.curvature(self.y * scores) * change

    @precise
    def conjugate(self, theta):
        """``F*(theta) = weight sum phi*(y theta / weight)`` of the loss ``F`` of the predictions."""
        return self.weight * jnp.sum(self.loss.conjugate(self.y * theta / self.weight))

    def _of_loss(self, name: str, numbers: Any) -> np.ndarray:
        """A method of the loss on the host; one of your own may be plain JAX."""
        with float64():
            return np.asarray(getattr(self.loss, name)(numbers), dtype=np.float64)

    def enclosed_margins(self, x: Any) -> Enclosure:
        """``y A x`` with a bound on its error."""
        return self.enclosed_scores(x) * np.asarray(self.y, dtype=np.float64)

    def enclosed_slopes(self, x: Any) -> Enclosure:
        """``y phi'(y A x)`` with a bound on its error."""
        margin = self.enclosed_margins(x)
        slope = self._of_loss("slope", margin.value)
        moved = self.loss.largest_curvature * margin.error  # the error of the margin, through phi''
        return enclose(slope, _FEW_UNITS * np.abs(slope) + moved + TINY) * np.asarray(self.y, dtype=np.float64)

    def enclosed_curvature(self, margin: Enclosure) -> Enclosure:
        """``phi''`` at these margins: its logarithm moves no faster than they do, times the self-concordance."""
        computed = self._of_loss("curvature", margin.value)
        with np.errstate(over="ignore"):
            moved = np.expm1(float(self.loss.self_concordance) * margin.error)
        return enclose(computed, computed * moved + _FEW_UNITS * computed + TINY)

    def enclosed_loss(self, x: Any) -> Enclosure:
        """``weight sum_i phi(y_i <a_i, x>)`` with a bound on its error."""
        margin = self.enclosed_margins(x)
        value = self._of_loss("value", margin.value)
        slope = np.abs(self._of_loss("slope", margin.value)) * (1 + _FEW_UNITS)
        moved = (slope + self.loss.largest_curvature * margin.error / 2) * margin.error
        return self.enclosed_weight * enclose(value, _FEW_UNITS * np.abs(value) + moved + TINY).sum()

    def dual_slopes(self, theta: Any) -> np.ndarray:
        """``y theta / weight``: a slope ``phi'`` for each row, in the domain of the conjugate."""
        slopes = np.asarray(self.y, dtype=np.float64) * np.asarray(theta, dtype=np.float64) / self.weight
        return np.clip(slopes, *self.loss.slope_range) if type(self.loss) in _OURS else slopes

    def enclosed_dual(self, slopes: np.ndarray) -> tuple[Enclosure, Enclosure]:
        """The conjugate of the loss at these slopes, and ``weight A^T (y slopes)``, with bounds on their errors."""
        each = self._of_loss("conjugate", slopes)
        error = np.where(np.isfinite(each), _FEW_UNITS * (np.abs(each) + 2 * np.abs(slopes)) + TINY, 0.0)
        conjugate = self.enclosed_weight * enclose(each, np.where(slopes == 0, 0.0, error)).sum()
        return conjugate, self.pulled_back(slopes * np.asarray(self.y, dtype=np.float64))


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
