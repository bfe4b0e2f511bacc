"""Learning from batches that are then forgotten: a quadratic model of everything seen so far."""

from dataclasses import dataclass, replace

import numpy as np

from cumulant.glm.objective.design import Design
from cumulant.glm.objective.losses import Loss
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.line_search import first_lower
from cumulant.glm.solvers.newton_step import solve

__all__ = ["QuadraticSummary"]

_LARGEST = 5000  # parameters: their square is kept


@dataclass(frozen=True, eq=False)
class QuadraticSummary:
    """The sum of losses so far as a quadratic: ``<x - x0, precision (x - x0)> / 2`` around the last minimiser.

    A batch of weight ``B`` adds its losses and ``l2 B/2 |w|^2``; Newton's method minimises the sum, and the quadratic
    takes the Hessian of the batch there. For the normal family that is the ridge regression on all rows so far,
    exactly; for others each batch is summarised by its Laplace approximation (on-line Bayesian learning, Opper 1998).
    """

    x: np.ndarray
    precision: np.ndarray
    batches: int = 0

    @classmethod
    def empty(cls, columns: int, outputs: int) -> "QuadraticSummary":
        """Before the first batch."""
        size = columns * outputs
        if size > _LARGEST:
            raise ValueError(
                f"partial_fit keeps a matrix of parameters times parameters, at most {_LARGEST}; got {size}: use fit"
            )
        return cls(np.zeros(columns if outputs == 1 else (columns, outputs)), np.zeros((size, size)))

    def absorb(
        self, design: Design, loss: Loss, weights: np.ndarray, offset: np.ndarray, l2: float | None
    ) -> "QuadraticSummary":
        """The state after a batch; ``l2=None`` adds the penalty of one row, once."""
        total = float(weights.sum())
        if not total > 0:
            return self
        ridge = (1.0 / total if self.batches == 0 else 0.0) if l2 is None else float(l2)
        problem = GLMProblem(design, loss, weights / total, offset, 0.0, ridge)
        x, value = self._at(problem, total, self.x if self.batches else problem.constant_start())
        for _ in range(100):
            _, slope, curvature = loss.terms(problem.scores(x))
            gradient = total * (problem.loss_gradient(slope) + problem.ridge(x)).ravel()
            gradient = gradient + self.precision @ (x - self.x).ravel()
            hessian = total * problem.hessian(curvature) + self.precision
            step = -solve(hessian, gradient).reshape(x.shape)
            decline = -float(gradient @ step.ravel())
            moved = first_lower(
                value, decline, lambda length, x=x, step=step: self._at(problem, total, x + length * step)
            )
            if moved is None:
                break
            x, value = moved
            if decline <= 1e-14 * max(abs(value), 1e-300):
                break
        curvature = loss.terms(problem.scores(x))[2]
        precision = self.precision + total * problem.hessian(curvature)
        return replace(self, x=x, precision=precision, batches=self.batches + 1)

    def _at(self, problem, total, x) -> tuple[np.ndarray, float]:
        """Parameters and the sum of losses there."""
        moved = (x - self.x).ravel()
        return x, total * problem.value(x) + 0.5 * float(moved @ self.precision @ moved)
