"""Stochastic gradient descent on the primal objective of chains."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.optim.finite_sums.stochastic_gradient import positive_or_none
from cumulant.sequences.chain.problem import ChainProblem
from cumulant.sequences.chain.radius import feature_radii
from cumulant.sequences.solvers.primal import PrimalSolver, start
from cumulant.sequences.solvers.stochastic_kernels import sgd_epoch


class SGDState(NamedTuple):
    """The weights, and the sum of all weights so far, the ``t``-th ``t`` times."""

    x: np.ndarray
    running: np.ndarray
    first_step: float
    decrease: float
    counters: np.ndarray
    sweep: int
    updates: int
    seed: int


@dataclass(frozen=True)
class SequenceSGD(PrimalSolver):
    """Stochastic gradient descent: ``w <- w - gamma_t (grad phi_i(w) + l2 w)``.

    With ``L`` the smoothness of each term (the largest squared radius of the features, plus ``l2``), ``sigma^2`` the
    mean of ``|grad phi_i(w*) + l2 w*|^2`` and ``gamma <= 1 / (2 L)``, one update has
    ``E |w' - w*|^2 <= (1 - gamma l2) |w - w*|^2 + 2 gamma^2 sigma^2``. Hence

    * constant steps: ``E P(w_t) - P* <= L/2 (1 - gamma l2)^t |w_0 - w*|^2 + gamma sigma^2 L / l2``;
    * decreasing steps ``gamma_t = 2 / (4 L + l2 t)``: ``E |w_t - w*|^2 <= C / (t + 4 L / l2)`` with
      ``C = max(4 L |w_0 - w*|^2, 8 sigma^2 / l2) / l2``.

    Parameters
    ----------
    schedule : str
        ``"decreasing"`` or ``"constant"``.
    step_size : float, optional
        The first step; ``1 / (2 L)`` by default.
    average : bool
        Whether the answer is the mean of the iterates, the ``t``-th weighted by ``t``, rather than the last one.
    """

    schedule: str = "decreasing"
    step_size: float | None = None
    average: bool = False

    def __post_init__(self):
        if self.schedule not in ("decreasing", "constant"):
            raise ValueError(f"schedule must be 'decreasing' or 'constant'; got {self.schedule!r}")
        positive_or_none("step_size", self.step_size)

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> SGDState:
        """The weights `x0`."""
        x = start(problem, x0)
        first = float(self.step_size or 1 / (2 * (feature_radii(problem).max() + problem.l2)))
        decrease = 0.5 * first * problem.l2 if self.schedule == "decreasing" else 0.0
        running = np.zeros(problem.shape if self.average else (1, problem.n_labels))
        return SGDState(x, running, first, decrease, np.zeros(2), 0, 0, randomness.seed(rng))

    def step(self, problem: ChainProblem, state: SGDState) -> SGDState:
        """One epoch."""
        sgd_epoch(
            state.x, state.running, self.average, problem.bias, *problem.tokens, problem.data.offsets, problem.labels,
            state.first_step, state.decrease, problem.l2, problem.n_terms, state.seed, state.sweep, state.counters,
        )  # fmt: skip
        return state._replace(sweep=state.sweep + 1, updates=state.updates + problem.n_terms)

    def solution(self, problem: ChainProblem, state: SGDState) -> np.ndarray:
        """The last weights, or their weighted mean."""
        if not self.average or state.updates == 0:
            return state.x
        return state.running * (2.0 / (state.updates * (state.updates + 1.0)))
