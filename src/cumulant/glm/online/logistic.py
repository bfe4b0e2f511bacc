"""Logistic regression with an l1 penalty on a stream, by interior-point steps."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target

from cumulant.glm.batch.inputs import classes_of
from cumulant.glm.online.base import OnlineL1


@dataclass(eq=False, repr=False)
class OnlineL1Logistic(ClassifierMixin, OnlineL1):
    """Logistic regression with an l1 penalty, learned one row at a time by interior-point steps.

    The weights approach the minimum of ``(1/n) sum_i log(1 + exp(-t_i (x_i . w + b))) + l1 |w|_1``, ``t = +-1``, by the
    steps of `OnlineLasso` with the gradient ``-x (y - d)`` and the curvature ``x^2 d (1 - d)`` of a row, ``d`` its
    probability. The remarks there on convergence, deferral and exact zeros apply.

    Several classes are learned one against the rest: class ``k`` has weights of its own, exactly those of a learner
    that tells ``k`` from all others, and the objective is the sum over the classes. Hence all that is certain for two
    classes holds for several: iterates stay in the interior, and the gap on given rows is the sum of the gaps. The
    probabilities are those of the classes, divided by their sum.

    With the curvature of single rows few probabilities pass 0.98. Unlike the published filter, the defaults take
    implicit steps, and one of its own for each feature.

    Parameters
    ----------
    l1, formulation, curvature, x0, z0, step, step_delay, step_power : see `OnlineLasso`
    centring, centring_power, separate_steps, implicit, deferral : see `OnlineLasso`
    fit_intercept, passes, shuffle, time_limit, random_state, checkpoint, callback, verbose : see `OnlineLasso`

    Attributes
    ----------
    classes_ : array
    coef_ : array (1, features), or (classes, features) for more than two classes
    intercept_ : array (1,) or (classes,)
    certificate_ : Certificate or None
        Of `fit`, on its rows; None after `partial_fit`.
    status_, n_iter_, n_rows_ : see `OnlineLasso`

    References
    ----------
    Carbonetto (2009), thesis, section 2.5.8 and table 2.1 (a spam filter). Rifkin and Klautau (2004), In defense of
    one-vs-all classification, Journal of Machine Learning Research 5.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 5))
    >>> y = np.where(X[:, 0] - X[:, 1] > 0, "spam", "ham")
    >>> model = OnlineL1Logistic()
    >>> early = model.progressive(X[:200], y[:200], classes=["ham", "spam"])
    >>> model.partial_fit(X[200:], y[200:]).score(X, y) > 0.97
    True
    >>> model.certificate_ is None, bool(model.certify(X, y).upper < 0.2)
    (True, True)
    """

    _family, _code = "bernoulli", 0

    l1: float = 1e-5
    z0: float = 0.1
    step_delay: float = 1.0
    separate_steps: bool = True
    implicit: bool = True
    passes: int = 5

    @property
    def coef_(self) -> np.ndarray:
        """The weights: of the second class, or of each of several."""
        return np.atleast_2d(self._weights())

    @property
    def intercept_(self) -> np.ndarray:
        """The intercept of the second class, or of each of several."""
        return np.atleast_1d(self._intercepts())

    # Labels -----------------------------------------------------------------------------------------------------------

    def _first_targets(self, y, classes=None):
        labels = np.unique(y) if classes is None else classes_of(classes)
        if labels.dtype.kind == "f" and classes is None and type_of_target(y, raise_unknown=True) == "continuous":
            raise ValueError("Unknown label type: continuous. y must hold the labels of classes, not real numbers")
        if len(labels) < 2:
            raise ValueError(f"y has one class only, {labels.tolist()[0]!r}: at least two classes are needed")
        self.classes_ = labels
        return self._targets(y)

    def _more_targets(self, y, classes):
        if classes is not None:
            classes_of(classes, self.classes_)
        return self._targets(y)

    def _targets(self, y):
        """The number of each label's class."""
        numbers = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        known = self.classes_[numbers] == y
        if not np.all(known):
            label = np.asarray(y)[np.argmin(known)].tolist()
            raise ValueError(f"y must hold known labels; label {label!r} is not among classes {self.classes_.tolist()}")
        return numbers.astype(np.float64)

    def _by_output(self, targets):
        if len(self.classes_) == 2:
            return [targets]
        return [(targets == k).astype(np.float64) for k in range(len(self.classes_))]

    def _labels(self):
        names = self.classes_
        return {"classes": np.asarray(names.tolist()) if names.dtype.hasobject else names}

    def _predictions(self, scores):
        if scores.ndim == 1:
            return expit(scores)
        # Probabilities against the rest, over their sum: without underflow
        return softmax(-np.logaddexp(0.0, -scores), axis=1)

    # Learning and using -----------------------------------------------------------------------------------------------

    def _absorb(self, X, y, classes=None, sample_weight=None):
        if classes is None and not hasattr(self, "_states"):
            raise ValueError("classes must be given in the first call of partial_fit: all labels that may come")
        return super()._absorb(X, y, classes, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the rows of a batch, in order; the first call needs all `classes`.

        How a stream is cut into batches makes no difference, and the time is that of the entries of the rows, times the
        number of classes if there are more than two. The loss of a row counts `sample_weight` times; a row of weight 0
        changes nothing.
        """
        self._absorb(X, y, classes, sample_weight)
        return self

    def progressive(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """As `partial_fit`; returns the probability of the second class for each row before it was learned, or of each
        class where there are several.
        """
        return self._predictions(self._absorb(X, y, classes, sample_weight))

    def decision_function(self, X: Any) -> np.ndarray:
        """The log odds of the second class, or of each class against the rest."""
        return self._scores(X)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        scores = self._scores(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes_`."""
        scores = self._scores(X)
        return np.column_stack([expit(-scores), expit(scores)]) if scores.ndim == 1 else self._predictions(scores)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithms of `predict_proba`, without underflow."""
        scores = self._scores(X)
        if scores.ndim == 1:
            return -np.column_stack([np.logaddexp(0.0, scores), np.logaddexp(0.0, -scores)])
        return log_softmax(-np.logaddexp(0.0, -scores), axis=1)
