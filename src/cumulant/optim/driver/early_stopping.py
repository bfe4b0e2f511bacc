"""Early stopping on a score that the objective does not see, such as the accuracy on held-out data."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.optim.driver.result import Snapshot


class EarlyStopping:
    """A callback for `run`: ends it once `score` has not improved for `patience` records, and keeps the best answer.

    Prechelt (1998). The answer with the best score is `best_x`; the result of the run is the last iterate.

    Parameters
    ----------
    score : callable
        A function of ``x``; larger is better.
    patience : int
        Records without a better score after which the run ends.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[1.0]], [1.0])
    >>> stopping = EarlyStopping(lambda x: -abs(x[0] - 0.5), patience=2)
    >>> optim.run(optim.GradientDescent(0.1), problem, [0.0], callback=stopping).status
    'stopped'
    >>> stopping.best_x.round(3), len(stopping.scores)
    (array([0.522]), 9)
    """

    def __init__(self, score: Callable[[Any], float], patience: int = 3):
        checks.whole("patience", patience)
        self.score, self.patience = score, patience
        self.scores: list[float] = []
        self.best_x: Any = None
        self.best_score = -np.inf
        self.since_best = 0

    def __call__(self, snapshot: Snapshot) -> bool:
        """Whether to end the run."""
        score = float(self.score(snapshot.x))
        self.scores.append(score)
        self.since_best += 1
        if score > self.best_score:
            # a copy: host solvers change their iterate in place
            self.best_x, self.best_score, self.since_best = copy.deepcopy(snapshot.x), score, 0
        return self.since_best >= self.patience
