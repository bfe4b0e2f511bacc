"""`GLM` on streams: batches that are learnt from and forgotten, but for a quadratic model of all of them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cumulant.glm.batch.inputs import classes_of, weights_of
from cumulant.glm.objective.design import Design, design_of
from cumulant.glm.objective.losses import Loss, loss_of
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.line_search import first_lower
from cumulant.glm.solvers.newton_step import solve

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


class PartialFits:
    """`partial_fit` for an estimator that has the settings and the checks of `GLM`."""

    def partial_fit(
        self: Any,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        exposure: Any = None,
    ) -> Any:
        """Learn from a batch and forget its rows: exact for ``"normal"``, a Laplace approximation for other families.

        Classifiers need all `classes` in the first call, unless `fit` has seen them; `fit` starts a new
        stream. There is no certificate: the rows of earlier batches are gone.
        """
        self._check_settings()
        if self.l1:
            raise ValueError("partial_fit does not take an l1 penalty: l1 must be 0")
        first = not hasattr(self, "_stream")
        X, y = self._validated(X, y, reset=first)
        if self._is_classifier():
            y = self._known_classes(y, classes, first)
        weights = weights_of(sample_weight, X)
        k = len(self.classes_) if self._is_categorical() else 0
        loss = loss_of(self.family, y, k)
        self._link = loss.take(slice(0, 0))
        design = design_of(X, bool(self.fit_intercept), self.n_jobs)
        if first:
            self._stream = QuadraticSummary.empty(design.shape[1], max(k, 1))
        offsets = self._offset(X.shape[0], offset, exposure, max(k, 1))
        self._stream = self._stream.absorb(design, loss, weights, offsets, self.l2)
        self.coef_, self.intercept_ = self._shaped(self._stream.x)
        self.certificate_, self.dual_ = None, None
        self.refusal_ = "no certificate: the rows of earlier batches are gone"
        self.status_, self.n_iter_ = "max_steps", self._stream.batches
        return self

    def _known_classes(self: Any, y, classes, first):
        if first:
            classes = getattr(self, "classes_", None) if classes is None else classes
            if classes is None:
                raise ValueError("classes must be given in the first call of partial_fit: all labels that may come")
            self.classes_ = classes_of(classes)
            if self._is_binary() and len(self.classes_) > 2:
                raise ValueError(f"classes must be two labels for this family; got {self.classes_.tolist()}")
        elif classes is not None:
            classes_of(classes, self.classes_)
        return self._numbers(y)
