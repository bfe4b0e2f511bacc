"""Around a run of `ChainCRF.fit`: its history, when it stops, which weights are kept, what memory is free."""

import time
from typing import Any

import numpy as np

from cumulant.certificates import Certificate, recipe_of
from cumulant.errors import CertificateError
from cumulant.sequences.certify import certify_gap, certify_weights

__all__ = ["Watch", "certified", "free_memory"]

_PATIENCE = 3  # records without a better score on the development set


class Watch:
    """Called at each record of a run: keeps the history, decides when to stop, remembers the best weights."""

    def __init__(self, crf, problem, start: float, X_dev: Any, y_dev: Any):
        self.crf, self.problem, self.start = crf, problem, start
        self.whole = problem  # on this machine
        self.dev = None if X_dev is None else crf._labelled(X_dev, y_dev)
        self.best, self.best_weights, self.since_best = -np.inf, None, 0
        self.why = ""
        crf.history_ = []

    def __call__(self, snapshot) -> bool:
        """Whether the run has done enough."""
        measures, value, gap = snapshot.measures, snapshot.value, snapshot.bound
        epochs = measures["oracle_calls"] / self.problem.n_terms
        row = {
            "epoch": epochs,
            "oracle_calls": int(measures["oracle_calls"]),
            "line_search_evaluations": int(measures["line_search_evaluations"]),
            "seconds": time.perf_counter() - self.start,
            "primal": value,
            "dual": value - gap,
            "gap": gap,
        }
        self.crf.history_.append(row)
        if self.dev is not None and self._worse_on(self.dev, snapshot.x, row):
            self.why = "stopped"
        elif gap <= self.crf.tol * abs(value):
            self.why = "converged"
        elif epochs >= self.crf.max_epochs:
            self.why = "max_epochs"
        return bool(self.why)

    def _worse_on(self, dev, weights, row) -> bool:
        """Whether the development set has not been labelled better for a while."""
        self.crf.weights_ = weights
        score = float(np.mean(self.crf.classes_[self.crf._decode(dev)] == dev.labels))
        row["dev_accuracy"] = score
        if score > self.best:
            self.best, self.best_weights, self.since_best = score, weights.copy(), 0
        else:
            self.since_best += 1
        return self.since_best >= _PATIENCE

    def finish(self, result) -> None:
        """The fitted attributes, with a certificate of the weights that are kept."""
        crf, problem = self.crf, self.problem
        crf.status_ = self.why or {"max_steps": "max_epochs"}.get(result.status, result.status)
        best = self.best_weights is not None
        weights = self.best_weights if best else result.x
        crf.weights_ = np.ascontiguousarray(weights).reshape(problem.shape)
        crf.objective_ = problem.value(crf.weights_) if best else result.value
        crf.weights_certificate_ = other = certified(self.whole, crf.weights_)
        own = None if best else result.certificate  # that of the last weights
        use_own = own is not None and (other is None or own.upper <= other.upper)
        crf.certificate_ = own if use_own else other
        crf.dual_ = result.subject.answer[1] if use_own and own.recipe == recipe_of(certify_gap) else None
        enough = crf.certificate_ is not None and crf.certificate_.upper <= 2 * crf.tol * abs(crf.objective_)
        if crf.marginals == "float32" and crf.status_ == "converged" and not enough:
            crf.status_ = "rounding"


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
