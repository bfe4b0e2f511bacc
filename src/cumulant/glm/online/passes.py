"""Passes of an on-line learner over rows that are at hand, as a solver for `optim.run`."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.online.one_vs_rest import OneVsRest, certify_rows, parts_of
from cumulant.glm.online.state import OnlineSettings, OnlineState
from cumulant.optim.protocol import Solver
from cumulant.randomness import generator

_CHUNK = 2**18  # entries that are learned in one step, between two looks at the clock


class PassState(NamedTuple):
    """The arrays of the learners, the order of the rows in this pass, and the generator of the orders."""

    arrays: tuple[np.ndarray, ...]
    order: np.ndarray
    rng: np.random.Generator


def rows_of_a_step(problem: GLMProblem | OneVsRest) -> int:
    """As many rows as have the entries of one step, and at least one."""
    n = problem.n_terms
    entries = problem.design.by_rows.nnz * len(parts_of(problem))
    return int(np.clip(_CHUNK * n // max(entries, 1), 1, n))


@dataclass(frozen=True, eq=False)
class OnlinePasses(Solver):
    """Interior-point steps over the rows of a problem, each pass in an order of its own if `shuffle` is set.

    A step learns the next rows (`rows_of_a_step`). There is a learner for each part of the problem; they are changed in
    place: after an interruption they are where the run stopped.

    Carbonetto (2009, section 2.3).
    """

    settings: OnlineSettings
    learners: tuple[OnlineState, ...]
    weights: np.ndarray  # of the rows, with mean one
    shuffle: bool = True

    backend: ClassVar[str] = "host"

    def _arrays(self) -> tuple[np.ndarray, ...]:
        return tuple(array for learner in self.learners for array in learner.arrays().values())

    def init(self, problem: GLMProblem | OneVsRest, x0: Any, rng: Any) -> PassState:
        """Before the first row."""
        return PassState(self._arrays(), np.arange(problem.n_terms), generator(rng))

    def _resume(self, state: PassState) -> None:
        for own, array in zip(self._arrays(), state.arrays, strict=True):
            if own is not array:  # read from a checkpoint
                np.copyto(own, array)

    def step(self, problem: GLMProblem | OneVsRest, state: PassState) -> PassState:
        """Learn some rows."""
        self._resume(state)
        n = problem.n_terms
        first, order = self.learners[0].rows % n, state.order
        if first == 0 and self.shuffle:
            order = state.rng.permutation(n)
        some = order[first : first + rows_of_a_step(problem)]
        for learner, part in zip(self.learners, parts_of(problem), strict=True):
            learner.learn(self.settings, problem.design.by_rows, part.loss.y, self.weights, some)
        return PassState(self._arrays(), order, state.rng)

    def solution(self, problem: GLMProblem | OneVsRest, state: PassState) -> np.ndarray:
        """The weights, and the intercept last where there is one; a row for each class where there are several."""
        self._resume(state)
        found = []
        for learner in self.learners:
            w = learner.weights(self.settings)
            found.append(np.append(w, learner.intercept) if problem.design.intercept else w)
        return np.stack(found) if isinstance(problem, OneVsRest) else found[0]

    def certify(self, problem: GLMProblem | OneVsRest, state: PassState) -> Certificate:
        """By duality."""
        return certify_rows(problem, self.solution(problem, state))

    def measure(self, problem: GLMProblem | OneVsRest, state: PassState) -> dict[str, float]:
        """The objective. A bound is computed at the end only."""
        return {"value": problem.value(self.solution(problem, state)), "rows": float(self.learners[0].rows)}
