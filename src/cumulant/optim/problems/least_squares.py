"""Least squares, with or without a ridge penalty."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from cumulant.optim.problems.base import problem_type, static
from cumulant.optim.problems.enclosures import UNIT, Enclosure, enclose
from cumulant.optim.problems.row_sums import RowSums
from cumulant.optim.problems.sparse_matrix import column_squares
from cumulant.precision import precise


@problem_type
class LeastSquares(RowSums):
    """``f(x) = |A x - y|^2 / (2 n) + l2 |x|^2 / 2``, ``A`` of shape ``(n, p)``.

    ``L`` and ``mu`` are the extreme squared singular values of ``A`` over ``n``, plus `l2`.

    Legendre (1805); Peyré (2021, section 3).

    Parameters
    ----------
    A, y : array
        Design (dense, or SciPy sparse) and targets.
    l2 : float
        Strength of the ridge penalty.
    reduction : str
        ``"mean"`` as above, or ``"sum"`` for ``|A x - y|^2 / 2 + l2 |x|^2 / 2``.

    Examples
    --------
    >>> problem = LeastSquares([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], reduction="sum")
    >>> round(problem.smoothness, 9), problem.gradient([0.0, 0.5])
    (90.735494913, array([0., 0.]))
    """

    A: Any
    y: Any
    l2: Any = 0.0
    reduction: str = static("mean")

    quadratic: ClassVar[bool] = True
    largest_curvature: ClassVar[float] = 1.0
    constants_are: ClassVar[str] = "checked"

    def __post_init__(self):
        self._checked()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``x``."""
        return (self.A.shape[1],)

    @property
    def _uncertainty(self) -> float:
        """How far a computed singular value may be from the exact one: the backward error of the decomposition."""
        return 8 * sum(self.A.shape) * UNIT * float(self.singular_values[0])

    @property
    def constant_rounding(self) -> float:
        """How far the computed ``mu`` may be from the exact one."""
        smallest = float(self.singular_values[-1]) if self.singular_values[-1] > self._uncertainty else 0.0
        return self.weight * 2 * self._uncertainty * smallest + 8 * UNIT * self.strong_convexity

    @property
    def largest_entry(self) -> float:
        """The largest entry of the Hessian, which is on its diagonal: the smoothness in the l1 norm."""
        return self.weight * float(np.max(column_squares(self.A))) + float(self.l2)

    @property
    def strong_convexity(self) -> float:
        """``mu = sigma_min^2 weight + l2``, with a singular value that cannot be told from 0 counted as 0."""
        smallest = float(self.singular_values[-1])
        return (self.weight * smallest**2 if smallest > self._uncertainty else 0.0) + float(self.l2)

    def _losses(self, scores):
        residual = scores - self.y
        return residual @ residual / 2

    def _slopes(self, scores):
        return scores - self.y

    def _bent(self, scores, change):
        return change

    @precise
    def conjugate(self, theta):
        """``F*(theta) = |theta|^2 / (2 weight) + <theta, y>`` of the loss ``F`` of the predictions."""
        return jnp.dot(theta, theta) / (2 * self.weight) + jnp.dot(theta, self.y)

    def enclosed_slopes(self, x: Any) -> Enclosure:
        """``A x - y`` with a bound on its error."""
        return self.enclosed_scores(x) - self.y

    def enclosed_loss(self, x: Any) -> Enclosure:
        """``|A x - y|^2 weight / 2`` with a bound on its error."""
        return self.enclosed_weight * self.enclosed_slopes(x).square().sum() * 0.5

    def enclosed_dual(self, slopes: np.ndarray) -> tuple[Enclosure, Enclosure]:
        """The conjugate of the loss at these slopes, and ``weight A^T slopes``, with bounds on their errors."""
        u = enclose(slopes)
        conjugate = self.enclosed_weight * (u.square() * 0.5 + u * self.y).sum()
        return conjugate, self.pulled_back(u)
