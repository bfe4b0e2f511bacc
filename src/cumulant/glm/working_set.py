"""Proximal Newton steps on the few columns that matter, for an objective with an l1 penalty and many columns."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.glm.newton_step import SMALL
from cumulant.glm.problem import GLMProblem
from cumulant.glm.proximal_newton import ByDuality, ProximalNewton

__all__ = ["WorkingSet", "WorkingState"]

_FIRST = 200  # columns in the first working set
_INNER = 20  # proximal Newton steps on one of them, at most


class WorkingState(NamedTuple):
    """The iterate and its slopes; the best lower bound so far and its dual slopes; how hard each column pulls."""

    x: np.ndarray
    value: float
    slope: np.ndarray
    lower: float
    dual: np.ndarray
    pull: np.ndarray
    sweeps: int
    stuck: bool


@dataclass(frozen=True)
class WorkingSet(ByDuality):
    """Minimise over a working set of columns, look at all of them, enlarge it, until the duality gap of all is small.

    The set holds the columns whose weight is not zero and those whose slope ``|X_j^T (p s)|`` is largest, at least
    twice as many as the former. On it the objective is minimised by `ProximalNewton`, to a twentieth of the gap that is
    left. Since few weights differ from zero at the minimum, nearly all work is on a small matrix, whose Hessian can be
    formed; all columns are visited once a step, for the gap and the next set (Johnson and Guestrin 2015; Massias,
    Gramfort and Salmon 2018). The bound is that of the whole problem, whatever the set.

    Parameters
    ----------
    tol : float
        The relative gap that is aimed at.
    """

    tol: float = 1e-4

    backend: ClassVar[str] = "host"

    def init(self, problem: GLMProblem, x0: Any, rng: Any) -> WorkingState:
        """Losses at `x0`, and what they say of the minimum."""
        if not problem.l1 > 0:
            raise ValueError(f"working sets are for l1 > 0; got l1 = {problem.l1}")
        x = np.array(x0, dtype=np.float64)
        slope = problem.loss.terms(problem.scores(x))[1]
        lower, dual, pull = _bound(problem, slope)
        return WorkingState(x, problem.value(x), slope, lower, dual, pull, 0, False)

    def step(self, problem: GLMProblem, state: WorkingState) -> WorkingState:
        """Minimise over one working set."""
        columns = self._columns(problem, state)
        part = replace(problem, design=problem.design.columns(columns))
        kept = np.append(columns, len(state.x) - 1) if problem.design.intercept else columns
        inner = ProximalNewton(self.tol)
        found = inner.init(part, state.x[kept], None)
        enough = max(0.2 * self.tol * state.value, 0.05 * (state.value - state.lower))
        for _ in range(_INNER):
            if found.stuck or found.value - found.lower <= enough:
                break
            found = inner.step(part, found)
        x = np.zeros_like(state.x)
        x[kept] = found.x
        lower, dual, pull = _bound(problem, found.dual)  # by this pull columns come into the next set
        if lower <= state.lower:
            lower, dual = state.lower, state.dual
        stuck = found.value >= state.value and lower <= state.lower
        return WorkingState(x, found.value, found.slope, lower, dual, pull, state.sweeps + found.sweeps, stuck)

    def _columns(self, problem: GLMProblem, state: WorkingState) -> np.ndarray:
        weights = problem.without_intercept(state.x)
        pull, used = np.abs(state.pull), weights != 0
        if weights.ndim == 2:
            pull, used = pull.max(axis=1), used.any(axis=1)
        size = max(_FIRST, 2 * int(used.sum()))
        if problem.loss.outputs > 1:  # the Hessian of several outputs must be small
            size = min(size, SMALL // problem.loss.outputs - 1)
            if int(used.sum()) >= size and size < len(weights):  # no room for another column
                raise ValueError(
                    f"an l1 penalty with {problem.loss.outputs} outputs is for fewer than {size} columns with weights; "
                    f"{int(used.sum())} have some and more are needed: use a larger l1"
                )
        if size >= len(weights):
            return np.arange(len(weights))
        return np.sort(np.argpartition(np.where(used, np.inf, pull), -size)[-size:])


def _bound(problem: GLMProblem, slope: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The lower bound from slopes, the feasible slopes that give it, and their ``X^T (p s)``."""
    feasible, pull = problem.feasible(slope)
    return problem.dual_value(feasible, pull), feasible, pull
