"""Passes of an on-line learner over rows that are at hand, as a solver for `optim.run`."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate
from cumulant.glm.objective.certify import certify_glm_gap
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.online.state import OnlineSettings, OnlineState
from cumulant.optim.protocol import Solver
from cumulant.randomness import generator

_CHUNK = 2**18  # entries that are learned in one step, between two looks at the clock


class PassState(NamedTuple):
    """The arrays of the learner, the order of the rows in this pass, and the generator of the orders."""

    arrays: tuple[np.ndarray, ...]
    order: np.ndarray
    rng: np.random.Generator


def rows_of_a_step(problem: GLMProblem) -> int:
    """As many rows as have the entries of one step, and at least one."""
    n = problem.n_terms
    return int(np.clip(_CHUNK * n // max(problem.design.by_rows.nnz, 1), 1, n))


@dataclass(frozen=True, eq=False)
class OnlinePasses(Solver):
    """Interior-point steps over the rows of a problem, each pass in an order of its own if `shuffle` is set.

    A step learns the next rows (`rows_of_a_step`). `learner` is changed in place: after an interruption it is where
    the run stopped.

    Carbonetto (2009, section 2.3).
    """

    settings: OnlineSettings
    learner: OnlineState
    weights: np.ndarray  # of the rows, with mean one
    shuffle: bool = True

    backend: ClassVar[str] = "host"

    def init(self, problem: GLMProblem, x0: Any, rng: Any) -> PassState:
        """Before the first row."""
        return PassState(tuple(self.learner.arrays().values()), np.arange(problem.n_terms), generator(rng))

    def _resume(self, state: PassState) -> OnlineState:
        for own, array in zip(self.learner.arrays().values(), state.arrays, strict=True):
            if own is not array:  # read from a checkpoint
                np.copyto(own, array)
        return self.learner

    def step(self, problem: GLMProblem, state: PassState) -> PassState:
        """Learn some rows."""
        learner, n = self._resume(state), problem.n_terms
        first, order = learner.rows % n, state.order
        if first == 0 and self.shuffle:
            order = state.rng.permutation(n)
        some = order[first : first + rows_of_a_step(problem)]
        learner.learn(self.settings, problem.design.by_rows, problem.loss.y, self.weights, some)
        return PassState(tuple(learner.arrays().values()), order, state.rng)

    def solution(self, problem: GLMProblem, state: PassState) -> np.ndarray:
        """The weights, and the intercept last where there is one."""
        learner = self._resume(state)
        w = learner.weights(self.settings)
        return np.append(w, learner.intercept) if problem.design.intercept else w

    def certify(self, problem: GLMProblem, state: PassState) -> Certificate:
        """By duality."""
        return certify_glm_gap(problem, self.solution(problem, state))

    def measure(self, problem: GLMProblem, state: PassState) -> dict[str, float]:
        """The objective. A bound is computed at the end only."""
        return {"value": problem.value(self.solution(problem, state)), "rows": float(self.learner.rows)}
