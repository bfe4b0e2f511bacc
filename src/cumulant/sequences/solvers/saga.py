"""SAGA on the primal objective of chains, and what it shares with SVRG."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.sequences.chain.problem import ChainProblem
from cumulant.sequences.chain.radius import feature_radii
from cumulant.sequences.solvers.primal import PrimalSolver, memory_of_labels, positive_or_none, start
from cumulant.sequences.solvers.stochastic_kernels import saga_epoch

__all__ = ["SequenceSAGA", "VarianceReducedState", "variance_reduced", "variance_reduced_epoch"]


class VarianceReducedState(NamedTuple):
    """The weights, the sum of the stored gradients and what they are made of."""

    x: np.ndarray
    total: np.ndarray
    nodes: np.ndarray
    counts: np.ndarray
    step_size: float
    counters: np.ndarray
    sweep: int
    updates: int
    seed: int


def variance_reduced(problem: ChainProblem, x0: Any, rng: Any, step_size: float) -> VarianceReducedState:
    """The weights `x0`, and stored gradients of zero."""
    x = start(problem, x0)
    nodes, counts = memory_of_labels(problem)
    return VarianceReducedState(
        x, np.zeros_like(x), nodes, counts, float(step_size), np.zeros(2), 0, 0, randomness.seed(rng)
    )


def variance_reduced_epoch(problem: ChainProblem, state: VarianceReducedState, remember: bool) -> VarianceReducedState:
    """One epoch; `remember`: each update replaces the stored gradient of its sequence."""
    starts, rows, _ = problem.attributes_of_sequences
    saga_epoch(
        state.x, state.total, problem.bias, *problem.tokens, problem.data.offsets, starts, rows, state.nodes,
        state.counts, remember, state.step_size, problem.l2, problem.n_terms, state.seed, state.sweep, state.counters,
    )  # fmt: skip
    return state._replace(sweep=state.sweep + 1, updates=state.updates + problem.n_terms)


@dataclass(frozen=True)
class SequenceSAGA(PrimalSolver):
    """SAGA (Defazio, Bach, Lacoste-Julien 2014): ``w <- w - gamma (g_i - stored_i + mean stored + l2 w)``.

    The direction is the gradient on average, unlike that of `SequenceSAG`. The memory is the same.

    Parameters
    ----------
    step_size : float, optional
        ``1 / (3 (L + l2))`` by default, ``L`` the largest squared radius of the features.
    """

    step_size: float | None = None

    def __post_init__(self):
        positive_or_none("step_size", self.step_size)

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> VarianceReducedState:
        """The weights `x0`, and stored gradients of zero."""
        step = self.step_size or 1 / (3 * (feature_radii(problem).max() + problem.l2))
        return variance_reduced(problem, x0, rng, step)

    def step(self, problem: ChainProblem, state: VarianceReducedState) -> VarianceReducedState:
        """One epoch."""
        return variance_reduced_epoch(problem, state, remember=True)
