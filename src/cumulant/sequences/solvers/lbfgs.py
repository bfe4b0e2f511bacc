"""Batch methods on the primal objective: L-BFGS with the certificate that strong convexity gives."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cumulant.sequences.solvers.dual_ascent import SequenceProblem
from cumulant.sequences.solvers.primal import PrimalSolver, start

_SHRINK, _ARMIJO = 0.5, 1e-4


class LBFGSState(NamedTuple):
    """The iterate, its value and gradient, and the last pairs of steps and changes of the gradient, oldest first."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    steps: np.ndarray  # (pairs, d)
    changes: np.ndarray
    products: np.ndarray  # steps . changes
    squares: np.ndarray  # changes . changes
    evaluations: int
    failures: int = 0  # line searches that found no lower value, one after the other


@dataclass(frozen=True)
class SequenceLBFGS(PrimalSolver):
    """Limited-memory BFGS on a `ChainProblem` or `TreeProblem` without an l1 penalty.

    The inverse Hessian is the compact form of Byrd, Nocedal and Schnabel (1994), so that a direction costs two products
    with each of the two histories. The objective is strongly convex: every pair has positive curvature, and steps need
    only decrease the objective enough (Armijo).

    Parameters
    ----------
    history : int
        Pairs remembered.
    """

    history: int = 8

    def init(self, problem: SequenceProblem, x0: Any, rng: Any) -> LBFGSState:
        """The value and gradient at `x0`."""
        x = start(problem, x0).ravel()
        value, gradient = problem.value_and_gradient(x)
        empty = np.zeros((0, x.size))
        return LBFGSState(x, value, gradient.ravel(), empty, empty, np.zeros((0, 0)), np.zeros((0, 0)), 1)

    def step(self, problem: SequenceProblem, state: LBFGSState) -> LBFGSState:
        """One quasi-Newton step."""
        direction, slope = self._direction(state)
        if slope == 0:
            return state._replace(failures=2)  # the minimum itself
        length = 1.0 if len(state.steps) else min(1.0, 1.0 / np.sqrt(-slope))
        evaluations = state.evaluations
        while True:
            x = state.x + length * direction
            value, gradient = problem.value_and_gradient(x)
            evaluations += 1
            if value <= state.value + _ARMIJO * length * slope:
                break
            if length < 1e-12:  # rounding: nothing lower can be found along this direction
                return state._replace(
                    evaluations=evaluations, steps=state.steps[:0], changes=state.changes[:0],
                    products=np.zeros((0, 0)), squares=np.zeros((0, 0)), failures=state.failures + 1,
                )  # fmt: skip
            # The minimum of the parabola through the value, the slope and the new value; at least a tenth.
            parabola = -slope * length**2 / (2 * (value - state.value - slope * length))
            length = max(min(parabola, _SHRINK * length), 0.1 * length)
        gradient = gradient.ravel()
        return self._with_pair(state, x, value, gradient, x - state.x, gradient - state.gradient, evaluations)

    def _direction(self, state):
        gradient, m = state.gradient, len(state.steps)
        if m == 0:
            return -gradient, -float(np.vdot(gradient, gradient))
        scale = state.products[-1, -1] / state.squares[-1, -1]
        from_steps, from_changes = state.steps @ gradient, state.changes @ gradient
        upper = np.triu(state.products)
        inner = np.linalg.solve(upper, from_steps)
        middle = np.diag(np.diag(state.products)) + scale * state.squares
        first = np.linalg.solve(upper.T, middle @ inner - scale * from_changes)
        direction = -scale * gradient - first @ state.steps + (scale * inner) @ state.changes
        return direction, float(np.vdot(direction, gradient))

    def _with_pair(self, state, x, value, gradient, step, change, evaluations):
        if not np.vdot(step, change) > 0:  # a step so small that rounding hides its curvature
            return state._replace(x=x, value=value, gradient=gradient, evaluations=evaluations, failures=0)
        keep = slice(max(len(state.steps) + 1 - self.history, 0), None)
        steps, changes = np.vstack([state.steps[keep], step]), np.vstack([state.changes[keep], change])
        column, row, squares = steps @ change, changes @ step, changes @ change
        m = len(steps)
        products, all_squares = np.empty((m, m)), np.empty((m, m))
        products[:-1, :-1], all_squares[:-1, :-1] = state.products[keep, keep], state.squares[keep, keep]
        products[:, -1], products[-1, :] = column, row
        all_squares[:, -1], all_squares[-1, :] = squares, squares
        return LBFGSState(x, value, gradient, steps, changes, products, all_squares, evaluations)

    def solution(self, problem: SequenceProblem, state: LBFGSState) -> np.ndarray:
        """The weights."""
        return state.x.reshape(problem.shape)

    def measure(self, problem: SequenceProblem, state: LBFGSState) -> dict[str, float]:
        """The objective and the bound on its distance to the minimum."""
        return {
            "value": state.value,
            "bound": float(np.vdot(state.gradient, state.gradient)) / (2 * problem.strong_convexity),
            "stuck": float(state.failures > 1),  # the second along the gradient itself
            "oracle_calls": float(state.evaluations * problem.n_terms),
            "line_search_evaluations": 0.0,
        }
