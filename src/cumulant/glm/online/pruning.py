"""Setting small weights to zero, and fits at several penalties, for the on-line learners."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import validate_data

from cumulant.certificates import Certificate, Subject
from cumulant.glm.batch.penalty_path import PenaltyPath, degrees_of_freedom, penalties_of
from cumulant.glm.online.one_vs_rest import certify_rows, parts_of, with_l1
from cumulant.glm.online.state import OnlineState


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


class PruningAndPaths:
    """`prune` and `regularization_path` for an estimator that has the settings and the passes of `OnlineL1`."""

    classes_: np.ndarray
    n_features_in_: int
    n_iter_: int
    certificate_: Certificate | None
    refusal_: str
    status_: str
    _states: tuple[OnlineState, ...]
    _coef: np.ndarray | None
    _pruned: bool
    _kind: tuple[int, int]

    def prune(self: Any, fraction: float = 0.43, X: Any = None) -> Pruning:
        """Set the given share of the weights, the smallest in absolute value, to exactly zero.

        An interior point has no zeros: what the penalty would remove is only small. The report says what the removal
        does to predictions on `X`. Learning continues from the interior point, and forgets the zeros. A certificate of
        the weights before is dropped; `certify` issues one for the weights after.
        """
        if not (isinstance(fraction, Real) and 0 <= float(fraction) <= 1):
            raise ValueError(f"fraction must be between 0 and 1; got {fraction!r}")
        before = self._weights()
        count = int(float(fraction) * before.size)
        flat = np.abs(before).ravel()
        smallest = np.argpartition(flat, count - 1)[:count] if count else np.empty(0, np.int64)
        threshold = float(flat[smallest].max(initial=0.0))
        pruned = before.copy()
        pruned.flat[smallest] = 0.0
        changes = np.array([np.nan])
        if X is not None:
            rows: Any = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
            shift = self._intercepts()
            old, new = (self._predictions(np.asarray(rows @ w.T) + shift) for w in (before, pruned))
            changes = np.abs(new - old)
        self._coef, self._pruned = pruned, count > 0
        if count:
            self.certificate_ = None
            self.refusal_ = "no certificate: weights were set to zero since; certify(X, y) gives one"
        return Pruning(count, threshold, float(changes.max()), float(changes.mean()))

    def regularization_path(self: Any, X: Any, y: Any, l1s: Any = None, warm_start: bool = True) -> PenaltyPath:
        """Fits at each penalty of `l1s`, by default 20 from the largest useful one to a thousandth of it.

        With `warm_start` each begins where the last ended, slacks and multipliers raised to at least a hundredth of
        their means, so that none stays at the boundary. The estimator itself is left as it was.
        """
        self._check()
        model = type(self)(**self.get_params())
        X, y = model._rows(X, y, reset=True)
        targets, weights = model._first_targets(y), np.ones(len(y))
        problem = model._problem(X, targets, weights, 1.0)
        parts = parts_of(problem)
        penalties = penalties_of(l1s, parts, 20, 1e-3)
        rng, fits = self._rng(), []
        for number, l1 in enumerate(penalties):
            if number and warm_start:
                model._states = tuple(state.restarted() for state in model._states)
            else:
                model._begin(len(parts))
            posed = with_l1(problem, float(l1))
            result = model._passes(posed, weights, model._settings(l1), rng)
            if result.status == "interrupted":
                raise KeyboardInterrupt
            x = np.asarray(result.x)
            w, b = (x[..., :-1], x[..., -1]) if self.fit_intercept else (x, np.zeros(x.shape[:-1]))
            certificate = result.certificate or certify_rows(posed, x)
            freedom = sum(map(degrees_of_freedom, parts_of(posed), np.reshape(x, (len(parts), -1))))
            fits.append((w, b, float(result.value), freedom, certificate, Subject(posed, x)))
        return PenaltyPath.of(penalties, fits)
