"""Around the run of an estimator: its history, early stopping, which weights are kept, what memory is free."""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cumulant.certificates import Certificate, recipe_of
from cumulant.errors import CertificateError
from cumulant.optim import EarlyStopping, Result, Snapshot
from cumulant.sequences.certify import certify_gap, certify_weights


class FitMonitor:
    """The callback of a fit: keeps the history, and asks the development set and the user's callback for an end."""

    def __init__(
        self, crf: Any, problem: Any, start: float, X_dev: Any, y_dev: Any, X_test: Any = None, y_test: Any = None
    ):
        self.crf, self.problem, self.start = crf, problem, start
        self.whole = problem  # on this machine
        self.stopping = None
        if X_dev is not None:
            dev = crf._labelled(X_dev, y_dev)
            self.stopping = EarlyStopping(lambda w: crf._accuracy(w, dev))
        self.test = None if X_test is None else crf._labelled(X_test, y_test)
        crf.history_ = []

    def __call__(self, snapshot: Snapshot) -> bool | str:
        """Whether the run is to end: by the user's callback or the development set, or after `max_epochs` passes."""
        measures = snapshot.measures
        row = {
            "epoch": measures["oracle_calls"] / self.problem.n_terms,
            "oracle_calls": int(measures["oracle_calls"]),
            "line_search_evaluations": int(measures["line_search_evaluations"]),
            "seconds": time.perf_counter() - self.start,
            "primal": snapshot.value,
            "dual": snapshot.value - snapshot.bound,
            "gap": snapshot.bound,
        }
        if "updates" in measures:
            row["updates"] = int(measures["updates"])
        if "estimate" in measures:
            row["estimate"] = float(measures["estimate"])
        if self.test is not None:
            row["test_error"], row["test_sequence_error"] = self.crf._errors(snapshot.x, self.test)
        self.crf.history_.append(row)
        end = self.crf.callback is not None and self.crf.callback(snapshot) is True
        if self.stopping is not None:
            end = self.stopping(snapshot) or end
            row["dev_accuracy"] = self.stopping.scores[-1]
        spent = measures["oracle_calls"] >= float(self.crf.max_epochs) * self.problem.n_terms
        return "max_steps" if spent and not end else end

    @property
    def best_weights(self) -> np.ndarray | None:
        """Those that label the development set best."""
        return None if self.stopping is None else self.stopping.best_x

    def finish(self, result: Result) -> None:
        """The fitted attributes, with a certificate of the weights that are kept."""
        crf, problem, best = self.crf, self.problem, self.best_weights
        crf.status_ = result.status
        crf.weights_ = np.ascontiguousarray(result.x if best is None else best).reshape(problem.shape)
        crf.objective_ = result.value if best is None else problem.value(crf.weights_)
        crf.weights_certificate_ = other = certified(self.whole, crf.weights_)
        own = result.certificate if best is None else None  # that of the last weights
        use_own = own is not None and (other is None or own.upper <= other.upper)
        crf.certificate_ = own if use_own else other
        dual = use_own and own is not None and own.recipe == recipe_of(certify_gap)
        crf.dual_ = result.subject.answer[1] if dual and result.subject is not None else None
        self._warn_if_far(result)

    def _warn_if_far(self, result: Result) -> None:
        crf = self.crf
        gap = np.inf if crf.certificate_ is None else crf.certificate_.upper / max(abs(crf.objective_), 1e-300)
        if result.status in ("max_steps", "diverged") and not gap <= 10 * crf.tol:
            epochs = crf.history_[-1]["epoch"] if crf.history_ else 0
            warnings.warn(
                f"{type(crf).__name__} stopped after {epochs:.0f} epochs ({result.status}) with a relative gap of "
                f"{gap:.2g}, and tol is {crf.tol:.2g}: raise max_epochs or tol",
                ConvergenceWarning,
                stacklevel=2,
            )


def certified(problem: Any, weights: np.ndarray) -> Certificate | None:
    """`certify_weights`, or None where the objective overflows."""
    try:
        return certify_weights(problem, weights)
    except CertificateError:
        return None


def free_memory() -> int | None:
    """Bytes that can be used without swapping, where the system says."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return None
