"""Gradient descent on the primal objective of chains."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cumulant.sequences.chain.problem import ChainProblem
from cumulant.sequences.chain.radius import feature_radii
from cumulant.sequences.solvers.primal import PrimalSolver, measured, start


class GradientDescentState(NamedTuple):
    """The iterate with the value and gradient there, and the constant to try next."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    constant: float
    counters: np.ndarray
    updates: int


@dataclass(frozen=True)
class SequenceGradientDescent(PrimalSolver):
    """Gradient descent on a `ChainProblem`: ``w <- w - grad P(w) / L``, the relaxed fixed-point iteration of (3.8).

    ``|w_t - w*| <= (1 - l2 / L)^t |w_0 - w*|`` for ``L`` at least the smoothness of ``P``. Here a step is one update,
    of ``n`` oracle calls.

    Parameters
    ----------
    step_size : str
        ``"1/L"``: ``L = l2 + mean R_i``, ``R_i`` the squared radii of the features. ``"backtracking"``: ``L`` is
        doubled while ``P(w - g / L) > P(w) - |g|^2 / (2 L)``, and halved before the next step.
    """

    step_size: str = "1/L"

    def __post_init__(self):
        if self.step_size not in ("1/L", "backtracking"):
            raise ValueError(f"step_size must be '1/L' or 'backtracking'; got {self.step_size!r}")

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> GradientDescentState:
        """The value and gradient at `x0`."""
        x = start(problem, x0)
        value, gradient = problem.value_and_gradient(x)
        constant = problem.l2 + float(np.mean(feature_radii(problem)))
        return GradientDescentState(x, value, gradient, constant, np.array([float(problem.n_terms), 0.0]), 0)

    def step(self, problem: ChainProblem, state: GradientDescentState) -> GradientDescentState:
        """One update."""
        backtracking = self.step_size == "backtracking"
        largest = state.constant
        constant = max(0.5 * largest, problem.l2) if backtracking else largest
        squared = float(np.vdot(state.gradient, state.gradient))
        fuzz = 4e-16 * abs(state.value)  # next to the minimum the promised decrease is below the rounding of the value
        counters = state.counters.copy()
        while True:
            x = state.x - state.gradient / constant
            value, gradient = problem.value_and_gradient(x)
            counters[0] += problem.n_terms
            counters[1] += problem.n_terms * backtracking
            if not backtracking or value <= state.value - squared / (2 * constant) + fuzz or constant > 1e6 * largest:
                break
            constant *= 2.0
        return GradientDescentState(x, value, gradient, constant, counters, state.updates + 1)

    def measure(self, problem: ChainProblem, state: GradientDescentState) -> dict[str, float]:
        """The objective, the bound on its distance to the minimum, and the work so far."""
        return measured(problem, state.value, state.gradient, state)
