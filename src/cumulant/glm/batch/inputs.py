"""What `GLM` takes: its settings, features, observations, weights and offsets, checked and turned into a problem."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from cumulant import checks, families
from cumulant.families import ExponentialFamily
from cumulant.glm.objective.design import design_of
from cumulant.glm.objective.losses import loss_of
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.dual_ascent import SAMPLINGS

_NAMES = ("bernoulli", "binomial", "poisson", "normal", "gamma", "categorical")
_SOLVERS = ("auto", "newton", "prox-newton", "sdca")


class Inputs(BaseEstimator):
    """The checks of an estimator with the settings of `GLM`."""

    # What kind of estimator this is -----------------------------------------------------------------------------------

    def _is_binary(self: Any) -> bool:
        return self.family == "bernoulli" or isinstance(self.family, families.Bernoulli)

    def _is_categorical(self: Any) -> bool:
        return self.family == "categorical" or isinstance(self.family, families.Categorical)

    def _is_classifier(self: Any) -> bool:
        return self._is_binary() or self._is_categorical()

    def __sklearn_tags__(self: Any):
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = BaseEstimator.__sklearn_tags__(self)
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        if self._is_classifier():
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=not self._is_binary())
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
            tags.target_tags.positive_only = self.family in ("poisson", "gamma") or isinstance(
                self.family, ExponentialFamily
            )
        return tags

    # Checks -----------------------------------------------------------------------------------------------------------

    def _rng(self: Any):
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31 - 1))
        return self.random_state

    def _check_settings(self: Any) -> None:
        if not isinstance(self.family, ExponentialFamily) and (
            not isinstance(self.family, str) or self.family not in _NAMES
        ):
            raise ValueError(f"family must be one of {', '.join(_NAMES)} or a family object; got {self.family!r}")
        if self.family == "binomial":
            raise ValueError("family='binomial' needs the number of trials: use family=families.Binomial(trials)")
        for name in ("l1", "l2"):
            value = getattr(self, name)
            if not (value is None and name == "l2") and not (isinstance(value, Real) and 0 <= float(value) < np.inf):
                raise ValueError(f"{name} must be a number, at least 0; got {value!r}")
        if not (isinstance(self.tol, Real) and 0 < float(self.tol) < np.inf):
            raise ValueError(f"tol must be positive; got {self.tol!r}")
        checks.choice("solver", self.solver, _SOLVERS)
        checks.choice("sampling", self.sampling, SAMPLINGS)
        if self.solver == "newton" and self.l1:
            raise ValueError("solver='newton' does not take an l1 penalty: use solver='prox-newton' or 'sdca'")
        if self.solver == "prox-newton" and not self.l1:
            raise ValueError("solver='prox-newton' is for l1 > 0: use solver='newton'")
        if self.max_iter is not None and (isinstance(self.max_iter, bool) or not self.max_iter >= 1):
            raise ValueError(f"max_iter must be a positive whole number or None; got {self.max_iter!r}")

    def _validated(self: Any, X, y, reset=True, finite=True):
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=not self._is_classifier(), reset=reset,
            accept_large_sparse=True, ensure_all_finite=finite,
        )  # fmt: skip
        return X, y

    def _targets(self: Any, y: np.ndarray) -> np.ndarray:
        """Observations as the loss takes them; sets `classes_` for classifiers."""
        if not self._is_classifier():
            return np.asarray(y, dtype=np.float64)
        self.classes_ = _labels(y)
        if len(self.classes_) > 2 or self.classes_.dtype.kind not in "biuUS":
            check_classification_targets(y)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"y has one class only, {only!r}: a classifier needs at least two")
        if self._is_binary() and len(self.classes_) > 2:
            n = len(self.classes_)
            raise ValueError(
                f"Only binary classification is supported. y must have two classes for this family; got {n}"
            )
        if isinstance(self.family, families.Categorical) and len(self.classes_) > self.family.categories:
            raise ValueError(
                f"y has {len(self.classes_)} classes, more than the {self.family.categories} of the family"
            )
        if self._is_binary():
            return (y == self.classes_[1]).astype(np.float64)
        return np.searchsorted(self.classes_, y)

    def _offset(self: Any, n: int, offset: Any, exposure: Any, outputs: int) -> np.ndarray:
        if exposure is not None:
            if self.family not in ("poisson", "gamma") and not isinstance(self.family, families.Poisson):
                raise ValueError(f"exposure needs a log link (poisson or gamma); got family={self.family!r}")
            if offset is not None:
                raise ValueError("give offset or exposure, not both")
            exposure = checks.real_array("exposure", exposure)
            if not np.all(exposure > 0):
                raise ValueError(f"exposure must be positive; its least entry is {exposure.min()}")
            offset = np.log(exposure)
        shape = (n,) if outputs == 1 else (n, outputs)
        if offset is None:
            return np.zeros(shape)
        offset = checks.real_array("offset", offset)
        if offset.shape != shape:
            raise ValueError(f"offset or exposure must have shape {shape}; got {offset.shape}")
        return np.ascontiguousarray(offset)

    def _problem(self: Any, X, targets, sample_weight, offset, exposure) -> GLMProblem:
        weights = weights_of(sample_weight, X)
        total = float(weights.sum())
        if not total > 0:
            raise ValueError("sample_weight must have a positive sum; all weights are zero")
        classes = len(self.classes_) if self._is_categorical() else 0
        offset = self._offset(X.shape[0], offset, exposure, max(classes, 1))
        design = design_of(X, bool(self.fit_intercept), self.n_jobs)
        if not np.isfinite(design.column_norms).all():  # which certificates need anyway: one pass over the data less
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        kept = weights > 0
        if not kept.all():
            design, targets, weights, offset = design.take(kept), targets[kept], weights[kept], offset[kept]
            if self._is_classifier() and len(np.unique(targets)) < 2:
                raise ValueError("y has one class only among the rows of positive weight: at least two are needed")
        loss = loss_of(self.family, targets, classes)
        l2 = 1.0 / total if self.l2 is None else float(self.l2)
        return GLMProblem(design, loss, weights / total, offset, float(self.l1), l2)

    def _posed(self: Any, X, y, sample_weight, offset, exposure) -> GLMProblem:
        """The problem of a fitted model on data: labels must be known."""
        X, y = self._validated(X, y, reset=False)
        return self._problem(X, self._numbers(y) if self._is_classifier() else y, sample_weight, offset, exposure)

    def _numbers(self: Any, y):
        numbers = np.searchsorted(self.classes_, y)
        numbers = np.minimum(numbers, len(self.classes_) - 1)
        known = self.classes_[numbers] == y
        if not np.all(known):
            label = np.asarray(y)[np.argmin(known)].tolist()
            raise ValueError(f"y must hold known labels; label {label!r} is not among classes {self.classes_.tolist()}")
        return numbers.astype(np.float64 if self._is_binary() else np.int64)


def weights_of(sample_weight: Any, X: Any) -> np.ndarray:
    """The weights of the rows: ones where none are given."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def classes_of(classes: Any, before: np.ndarray | None = None) -> np.ndarray:
    """The labels that may come, sorted: at least two, and the same as `before`."""
    try:
        found = np.unique(np.asarray(classes))
    except (TypeError, ValueError):  # rows of several lengths, or labels that cannot be sorted
        found = np.empty(0)
    if len(found) < 2:
        raise ValueError(f"classes must be at least two labels, all numbers or all strings; got {classes!r:.80}")
    if before is not None and not np.array_equal(found, before):
        raise ValueError(f"classes must be the same in every call: {before.tolist()}; got {found.tolist()}")
    return found


def _labels(y: np.ndarray) -> np.ndarray:
    """The different values of `y`, sorted; where they are two whole numbers, without sorting."""
    if y.dtype.kind in "iu":
        ends = np.array([y.min(), y.max()])
        if ends[0] != ends[1] and np.all((y == ends[0]) | (y == ends[1])):
            return ends
    return np.unique(y)
