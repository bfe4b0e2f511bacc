"""Around a run of `ChainCRF.fit`: its history, when it stops, which weights are kept, what memory is free."""

import time
from typing import Any

import numpy as np

from cumulant.sequences.solvers.dual_ascent import certify_gradient

__all__ = ["Watch", "free_memory"]

_PATIENCE = 3  # records without a better score on the development set


class Watch:
    """Called at each record of a run: keeps the history, decides when to stop, remembers the best weights."""

    def __init__(self, crf, problem, start: float, X_dev: Any, y_dev: Any):
        self.crf, self.problem, self.start = crf, problem, start
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
        weights, certificate = result.x, result.certificate
        if self.best_weights is not None:
            weights, certificate = self.best_weights, None
        crf.weights_ = np.ascontiguousarray(weights).reshape(problem.shape)
        crf.objective_ = problem.value(crf.weights_)
        enough = crf.tol * abs(crf.objective_)
        if problem.l1 == 0 and (certificate is None or certificate.upper > enough):
            # The marginals are gone, since these are not the last weights, or too coarse (float32) to say enough.
            other = certify_gradient(problem, crf.weights_)
            certificate = other if certificate is None or other.upper < certificate.upper else certificate
        crf.certificate_ = certificate
        certified = certificate is None or certificate.upper <= 2 * enough
        if crf.marginals == "float32" and crf.status_ == "converged" and not certified:
            crf.status_ = "rounding"


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
