"""`GLM` on streams: batches that are learnt from and forgotten."""

from typing import Any

import numpy as np

from cumulant.glm.batch.inputs import weights_of
from cumulant.glm.batch.streaming import QuadraticSummary
from cumulant.glm.objective.design import design_of
from cumulant.glm.objective.losses import loss_of

__all__ = ["PartialFits"]


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
        self._keep(self._stream.x)
        self.certificate_, self.dual_ = None, None
        self.refusal_ = "no certificate: the rows of earlier batches are gone"
        self.status_, self.n_iter_ = "max_steps", self._stream.batches
        return self

    def _known_classes(self: Any, y, classes, first):
        if first:
            classes = getattr(self, "classes_", None) if classes is None else classes
            if classes is None:
                raise ValueError("classes must be given in the first call of partial_fit: all labels that may come")
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2 or (self._is_binary() and len(self.classes_) > 2):
                raise ValueError(f"classes must have {'two' if self._is_binary() else 'at least two'} labels")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError("classes must be the same in every call of partial_fit")
        return self._numbers(y)
