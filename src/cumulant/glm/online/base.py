"""What the on-line l1 learners share: passes, streams, certificates, pruning, paths, files."""

import os
import time
import warnings
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from cumulant import files
from cumulant.certificates import Certificate
from cumulant.errors import FileFormatError
from cumulant.glm.batch.design import design_of
from cumulant.glm.batch.losses import loss_of
from cumulant.glm.batch.problem import GLMProblem
from cumulant.glm.online.state import CURVATURES, FORMULATIONS, OnlineSettings, OnlineState
from cumulant.randomness import generator

_POSITIVE = ("l1", "x0", "z0", "step", "centring")
_CHUNK = 2**18  # entries that are learned between two looks at the clock
_STREAMED = "no certificate: the rows of a stream are gone; certify(X, y) gives one on rows that you hold"

__all__ = ["OnlineL1", "Pruning", "RegularizationPath"]


class Pruning(NamedTuple):
    """What setting the smallest weights to zero does.

    `threshold` is the largest weight removed in absolute value, `removed` their number; `largest_change` and
    `mean_change` are of the predictions (probabilities for a classifier) on the rows given, NaN without rows.

    Carbonetto (2009) sets 43 % of the weights of a spam filter to zero.

    >>> Pruning(3, 0.01, 0.02, 0.005).removed
    3
    """

    removed: int
    threshold: float
    largest_change: float
    mean_change: float


class RegularizationPath(NamedTuple):
    """Fits at several penalties, in the order given: weights (penalties, features), intercepts, certificates.

    Carbonetto (2009, section 2.5) draws such paths.

    >>> RegularizationPath(np.array([0.1]), np.zeros((1, 3)), np.zeros(1), ()).coef.shape
    (1, 3)
    """

    l1: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    certificates: tuple[Certificate, ...]


class OnlineL1(BaseEstimator):
    """What both learners share. The subclass says what a target is, and which loss."""

    _family: str
    _code: int
    classes_: np.ndarray
    n_features_in_: int
    n_iter_: int
    certificate_: Certificate | None
    refusal_: str
    status_: str
    _state: OnlineState
    _coef: np.ndarray | None
    _kind: tuple[int, int]

    def __init__(
        self, l1, formulation, curvature, x0, z0, step, step_delay, step_power, centring, centring_power,
        separate_steps, implicit, deferral, fit_intercept, passes, shuffle, time_limit, random_state,
    ):  # fmt: skip
        self.l1 = l1
        self.formulation = formulation
        self.curvature = curvature
        self.x0 = x0
        self.z0 = z0
        self.step = step
        self.step_delay = step_delay
        self.step_power = step_power
        self.centring = centring
        self.centring_power = centring_power
        self.separate_steps = separate_steps
        self.implicit = implicit
        self.deferral = deferral
        self.fit_intercept = fit_intercept
        self.passes = passes
        self.shuffle = shuffle
        self.time_limit = time_limit
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    # Settings ---------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        for name in (*_POSITIVE, "step_power"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf):
                raise ValueError(f"{name} must be a positive number; got {value!r}")
        for name in ("step_delay", "centring_power"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf):
                raise ValueError(f"{name} must be a number, at least 0; got {value!r}")
        if not (isinstance(self.deferral, Real) and 0 <= float(self.deferral) <= 0.5):
            raise ValueError(f"deferral must be between 0 (every feature at every row) and 0.5; got {self.deferral!r}")
        if self.formulation not in FORMULATIONS:
            raise ValueError(f"formulation must be one of {', '.join(FORMULATIONS)}; got {self.formulation!r}")
        if self.curvature not in CURVATURES:
            raise ValueError(f"curvature must be one of {', '.join(CURVATURES)}; got {self.curvature!r}")
        if isinstance(self.passes, bool) or not (isinstance(self.passes, int | np.integer) and self.passes >= 1):
            raise ValueError(f"passes must be a positive whole number; got {self.passes!r}")
        limit = self.time_limit
        if not (limit is None or (isinstance(limit, Real) and not isinstance(limit, bool) and float(limit) > 0)):
            raise ValueError(f"time_limit must be a positive number of seconds or None; got {limit!r}")

    def _settings(self, l1: float | None = None) -> OnlineSettings:
        return OnlineSettings(
            self._code, FORMULATIONS.index(self.formulation), CURVATURES.index(self.curvature),
            not self.separate_steps, bool(self.fit_intercept), bool(self.implicit),
            float(self.l1 if l1 is None else l1),
            float(self.step), float(self.step_delay), float(self.step_power),
            float(self.centring), float(self.centring_power), float(self.deferral),
        )  # fmt: skip

    # Learning ---------------------------------------------------------------------------------------------------------

    def _rows(self, X: Any, y: Any, reset: bool) -> tuple[Any, np.ndarray]:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, reset=reset, y_numeric=self._family == "normal"
        )
        return _canonical(X), np.asarray(y)

    def _targets(self, y: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _begin(self) -> None:
        self._state = OnlineState.start(self.n_features_in_, float(self.x0), float(self.z0))
        self._coef = None
        self._kind = self._settings()[1:3]

    def _passes(
        self, X: Any, targets: np.ndarray, weights: np.ndarray, settings: OnlineSettings, rng: np.random.Generator
    ) -> str:
        """All passes, or as many rows as the time allows; the status."""
        n, end = len(targets), np.inf if self.time_limit is None else time.perf_counter() + float(self.time_limit)
        chunk = int(np.clip(_CHUNK * n // max(X.nnz, 1), 1, n))
        weights = weights * (n / weights.sum())
        try:
            for _ in range(self.passes):
                order = rng.permutation(n) if self.shuffle else np.arange(n)
                for first in range(0, n, chunk):
                    self._state.learn(settings, X, targets, weights, order[first : first + chunk])
                    if time.perf_counter() > end:
                        return "time_limit"
        except KeyboardInterrupt:
            return "interrupted"
        return "completed"

    def _warn_if_stalled(self, before: int = 0) -> None:
        if self._state.stalls > before:
            warnings.warn(
                f"steps have stalled: up to row {self._state.rows} the boundary let through only "
                f"{self._state.diagnostics()['share_of_allowed_steps']:.2g} of the steps allowed, and the weights "
                "hardly move; use separate_steps=True, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _rng(self) -> np.random.Generator:
        if isinstance(self.random_state, np.random.RandomState):
            return generator(int(self.random_state.randint(2**31 - 1)))
        return generator(self.random_state)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Start afresh and go over the rows `passes` times, in a random order each time unless ``shuffle=False``.

        `certificate_` bounds how far the objective on these rows is above its minimum, also where the clock or Ctrl-C
        ended the fit early. With `sample_weight` the mean loss is the weighted mean; a row of weight 0 is left out.
        """
        self._check()
        X, y = self._rows(X, y, reset=True)
        X, targets, weights = _kept(X, self._first_targets(y), sample_weight, self._code == 0)
        self._begin()
        self.status_ = self._passes(X, targets, weights, self._settings(), self._rng())
        self.n_iter_ = max(-(-self._state.rows // len(targets)), 1)
        self.certificate_, self.refusal_ = self._certificate(X, targets, weights, float(self.l1)), ""
        self._warn_if_stalled()
        return self

    def _absorb(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn from a batch; the score of each row before it was learned."""
        self._check()
        first = not hasattr(self, "_state")
        X, y = self._rows(X, y, reset=first)
        targets = self._first_targets(y, classes) if first else self._more_targets(y, classes)
        weights = _checked_weights(sample_weight, X)
        if first:
            self._begin()
        settings = self._settings()
        if settings[1:3] != self._kind:
            raise ValueError("formulation and curvature cannot change while a stream is being learned: use fit")
        stalls = self._state.stalls
        scores = self._state.learn(settings, X, targets, weights, np.arange(len(targets)))
        self._coef = None
        self.n_iter_, self.status_ = 1, "streamed"
        self.certificate_, self.refusal_ = None, _STREAMED
        self._warn_if_stalled(stalls)
        return scores

    def _first_targets(self, y: np.ndarray, classes: Any = None) -> np.ndarray:
        return self._targets(y)

    def _more_targets(self, y: np.ndarray, classes: Any) -> np.ndarray:
        return self._targets(y)

    # Looking ----------------------------------------------------------------------------------------------------------

    def _weights(self) -> np.ndarray:
        check_is_fitted(self, "_state")
        if self._coef is None:
            self._coef = self._state.weights(self._settings())
        return self._coef

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "_state")
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if sp.issparse(X) and self._coef is None:
            return self._state.scores(self._settings(), _canonical(X))
        return np.asarray(X @ self._weights()).ravel() + self._state.intercept

    def _predictions(self, scores: np.ndarray) -> np.ndarray:
        """What a score stands for: a mean."""
        raise NotImplementedError

    @property
    def n_rows_(self) -> int:
        """Rows learned so far."""
        return self._state.rows

    def diagnostics(self) -> dict[str, float]:
        """How the steps went.

        `surrogate_gap` is the sum of slacks times multipliers, which is a duality gap only where the mean gradient
        vanishes, and never a certificate; `barrier` is it over the number of constraints. `sum_of_steps` must grow
        without bound for the convergence that Carbonetto (2009, section 2.3) conjectures: `cut_steps` and
        `share_of_allowed_steps` say how much of the schedule the fraction-to-the-boundary rule let through, and
        `stalled_doublings` in how many doublings of the rows it was less than a hundredth (each comes with a warning).
        `sweeps` and `clipped_deferrals` count, for deferred features, the blocks and the deferred steps that would
        have left the interior.
        """
        check_is_fitted(self, "_state")
        return self._state.diagnostics()

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """How far the objective on these rows is above its minimum, at the weights as they are now.

        The objective is ``(1/n) sum_i loss_i + l1 |w|_1`` over the rows given: the dual point is the slopes of the
        losses at their scores, scaled until feasible. Nothing is claimed about rows that are not given.
        """
        check_is_fitted(self, "_state")
        X, y = self._rows(X, y, reset=False)
        X, targets, weights = _kept(X, self._targets(y), sample_weight, False)
        return self._certificate(X, targets, weights, float(self.l1))

    def _certificate(self, X: Any, targets: np.ndarray, weights: np.ndarray, l1: float) -> Certificate:
        problem = self._problem(X, targets, weights, l1)
        w = self._weights()
        x = np.append(w, self._state.intercept) if self.fit_intercept else w
        return certify_glm_gap(problem, x)

    def _problem(self, X: Any, targets: np.ndarray, weights: np.ndarray, l1: float) -> GLMProblem:
        design, loss = design_of(X, bool(self.fit_intercept), 1), loss_of(self._family, targets)
        return GLMProblem(design, loss, weights / weights.sum(), np.zeros(len(targets)), l1, 0.0)

    def prune(self, fraction: float = 0.43, X: Any = None) -> Pruning:
        """Set the given share of the weights, the smallest in absolute value, to exactly zero.

        An interior point has no zeros: what the penalty would remove is only small. The report says what the removal
        does to predictions on `X`. Learning on goes on from the interior point, and forgets the zeros.
        """
        if not (isinstance(fraction, Real) and 0 <= float(fraction) <= 1):
            raise ValueError(f"fraction must be between 0 and 1; got {fraction!r}")
        before = self._weights()
        count = int(float(fraction) * len(before))
        smallest = np.argpartition(np.abs(before), count - 1)[:count] if count else np.empty(0, np.int64)
        threshold = float(np.abs(before[smallest]).max(initial=0.0))
        pruned = before.copy()
        pruned[smallest] = 0.0
        changes = np.array([np.nan])
        if X is not None:
            rows: Any = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
            shift = self._state.intercept
            old, new = (self._predictions(np.asarray(rows @ w).ravel() + shift) for w in (before, pruned))
            changes = np.abs(new - old)
        self._coef = pruned
        return Pruning(count, threshold, float(changes.max()), float(changes.mean()))

    def regularization_path(self, X: Any, y: Any, l1s: Any = None, warm_start: bool = True) -> RegularizationPath:
        """Fits at each penalty of `l1s`, by default 20 from the largest useful one to a thousandth of it.

        With `warm_start` each begins where the last ended, slacks and multipliers raised to at least a hundredth of
        their means, so that nothing is stuck at the boundary. The estimator itself is left as it was.
        """
        self._check()
        model = type(self)(**self.get_params())
        X, y = model._rows(X, y, reset=True)
        targets, weights = model._first_targets(y), np.ones(len(y))
        if l1s is None:
            null = model._problem(X, targets, weights, 1.0)
            start = null.loss.start(null.weights)[0] if self.fit_intercept else 0.0
            slope = null.loss.terms(np.full(len(targets), start))[1]
            top = float(np.max(np.abs(null.without_intercept(null.loss_gradient(slope)))))
            l1s = np.geomspace(top, 1e-3 * top, 20)
        penalties = np.asarray(l1s, dtype=np.float64)
        if penalties.ndim != 1 or not len(penalties) or not np.all((penalties > 0) & np.isfinite(penalties)):
            raise ValueError(f"l1s must be a sequence of positive numbers; got {l1s!r}")
        rng, coefs, intercepts, certificates = self._rng(), [], [], []
        for number, l1 in enumerate(penalties):
            if number and warm_start:
                model._state = model._state.restarted()
            else:
                model._begin()
            settings = model._settings(l1)
            if model._passes(X, targets, weights, settings, rng) == "interrupted":
                raise KeyboardInterrupt
            model._coef = model._state.weights(settings)
            coefs.append(model._coef)
            intercepts.append(model._state.intercept)
            certificates.append(model._certificate(X, targets, weights, l1))
        return RegularizationPath(penalties, np.array(coefs), np.array(intercepts), tuple(certificates))

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike):
        """Write the model to a file, from which `load` goes on learning as if nothing had happened."""
        check_is_fitted(self, "_state")
        settings = self.get_params()
        if not (settings["random_state"] is None or isinstance(settings["random_state"], int)):
            settings["random_state"] = None
        settings = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}
        return files.save(path, type(self).__name__, self._state.arrays() | self._labels(), settings)

    def _labels(self) -> dict[str, np.ndarray]:
        return {}

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read a model that `save` wrote."""
        saved = files.load(path, cls.__name__)
        arrays = dict(saved.arrays)
        try:
            model = cls(**saved.settings)
            if "classes" in arrays:
                model.classes_ = arrays.pop("classes")
            model._state = OnlineState(**arrays)
            model._check()
        except (TypeError, ValueError) as problem:
            raise FileFormatError(f"{path} does not hold a {cls.__name__} of this version: {problem}") from problem
        model._coef, model._kind = None, model._settings()[1:3]
        model.n_features_in_, model.n_iter_, model.status_ = len(model._state.s0), 1, "streamed"
        model.certificate_, model.refusal_ = None, _STREAMED
        return model


def _canonical(X: Any) -> Any:
    """As CSR without duplicates: the loops take every entry of a row to be another feature."""
    X = sp.csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _checked_weights(sample_weight: Any, X: Any) -> np.ndarray:
    if sample_weight is None:
        return np.ones(X.shape[0])
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def _kept(X: Any, targets: np.ndarray, sample_weight: Any, both: bool) -> tuple[Any, np.ndarray, np.ndarray]:
    """The rows of positive weight; with `both`, they must have targets of two classes."""
    weights = _checked_weights(sample_weight, X)
    kept = weights > 0
    if not kept.any():
        raise ValueError("sample_weight must have a positive sum; all weights are zero")
    if not kept.all():
        X, targets, weights = X[kept], targets[kept], weights[kept]
        if both and len(np.unique(targets)) < 2:
            raise ValueError("y has one class only among the rows of positive weight: two are needed")
    return X, targets, weights
