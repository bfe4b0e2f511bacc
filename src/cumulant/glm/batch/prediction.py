"""What a fitted `GLM` is asked: means, classes, probabilities, scores."""

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from cumulant import checks
from cumulant.certificates import Certificate
from cumulant.glm.batch.inputs import weights_of
from cumulant.glm.objective.losses import Loss, loss_of


def _is_classifier(model: Any) -> bool:
    return model._is_classifier()


def _one_each(y: np.ndarray, found: np.ndarray) -> np.ndarray:
    if y.shape != found.shape[:1]:
        raise ValueError(f"y must have an entry for each of the {len(found)} rows of X; got shape {y.shape}")
    return y


class Predictions:
    """Predictions of an estimator with the attributes of a fitted `GLM`."""

    coef_: np.ndarray
    intercept_: Any
    classes_: np.ndarray
    certificate_: Certificate | None
    refusal_: str
    dual_: np.ndarray | None
    objective_: float
    status_: str
    history_: list[dict[str, float]]
    n_iter_: int
    n_features_in_: int
    feature_names_in_: np.ndarray
    _link: Loss

    def _scores(self: Any, X, offset, exposure) -> np.ndarray:
        check_is_fitted(self, "coef_")
        matrix: Any = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, reset=False, accept_large_sparse=True
        )
        outputs = len(self.classes_) if self._is_categorical() else 1
        shift = self._offset(matrix.shape[0], offset, exposure, outputs)
        w = self.coef_.T if self._is_categorical() else self.coef_.ravel()
        b = self.intercept_[0] if self._is_binary() else self.intercept_
        return np.asarray(matrix @ w) + b + shift

    def predict(self: Any, X: Any, offset: Any = None, exposure: Any = None) -> np.ndarray:
        """The mean of an observation, or for classifiers the most probable class."""
        scores = self._scores(X, offset, exposure)
        if self._is_binary():
            return self.classes_[(scores > 0).astype(int)]
        if self._is_categorical():
            return self.classes_[np.argmax(scores, axis=1)]
        return self._link.mean(scores)

    @available_if(_is_classifier)
    def decision_function(self: Any, X: Any, offset: Any = None) -> np.ndarray:
        """The scores: log odds (n,) of the second of two classes, one column for each class for several."""
        scores = self._scores(X, offset, None)
        return scores[:, 1] - scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 2 else scores

    @available_if(_is_classifier)
    def predict_proba(self: Any, X: Any, offset: Any = None) -> np.ndarray:
        """The probability of each class, in the order of `classes_`."""
        scores = self._scores(X, offset, None)
        if self._is_categorical():
            return self._link.mean(scores)
        return np.column_stack([self._link.mean(-scores), self._link.mean(scores)])

    @available_if(_is_classifier)
    def predict_log_proba(self: Any, X: Any, offset: Any = None) -> np.ndarray:
        """The logarithms of `predict_proba`, without underflow."""
        scores = self._scores(X, offset, None)
        if self._is_categorical():
            top = scores.max(axis=1, keepdims=True)
            return scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
        return -np.column_stack([np.logaddexp(0.0, scores), np.logaddexp(0.0, -scores)])

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> float:
        """Accuracy for classifiers; else the share of deviance explained, ``1 - D(y, mean) / D(y, average)``."""
        if self._is_classifier():
            labels = self.predict(X, offset, exposure)
            right = labels == _one_each(column_or_1d(y), labels)
            return float(np.average(right, weights=weights_of(sample_weight, labels)))
        scores = self._scores(X, offset, exposure)
        loss = loss_of(self.family, _one_each(checks.real_array("y", y), scores))
        weights = weights_of(sample_weight, scores)
        weights = weights / weights.sum()
        average = np.full(len(scores), loss.start(weights)[0])
        residual, null = (float(weights @ loss.terms(eta)[0]) for eta in (scores, average))
        return 1.0 - residual / null if null > 0 else float(residual == 0)

    def _shaped(self: Any, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Parameters in the shapes of `coef_` and `intercept_`."""
        w, b = (x[:-1], x[-1]) if self.fit_intercept else (x, np.zeros(x.shape[1:]))
        if self._is_binary():
            return w[None].copy(), np.atleast_1d(np.asarray(b, dtype=np.float64))
        return (np.ascontiguousarray(w.T), np.array(b)) if self._is_categorical() else (w.copy(), float(b))

    def _parameters(self: Any) -> np.ndarray:
        w = self.coef_.T if self._is_categorical() else self.coef_.ravel()
        if not self.fit_intercept:
            return np.array(w)
        return np.concatenate(
            [w, np.atleast_1d(self.intercept_)[None] if w.ndim == 2 else np.atleast_1d(self.intercept_)]
        )

    def get_feature_names_out(self: Any, input_features: Any = None) -> np.ndarray:
        """The names of the columns of `coef_`: those of a data frame, or x0, x1, ..."""
        check_is_fitted(self, "coef_")
        if input_features is not None:
            names = np.asarray(input_features, dtype=object)
            if len(names) != self.n_features_in_:
                raise ValueError(f"input_features must have {self.n_features_in_} names; got {len(names)}")
            return names
        if hasattr(self, "feature_names_in_"):
            return self.feature_names_in_
        return np.asarray([f"x{j}" for j in range(self.n_features_in_)], dtype=object)
