"""SAGA and the stochastic variance-reduced gradient on the primal objective of chains."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.optim.finite_sums.stochastic_gradient import positive_or_none
from cumulant.sequences.chain.problem import ChainProblem
from cumulant.sequences.chain.radius import feature_radii
from cumulant.sequences.solvers.primal import PrimalSolver, memory_of_labels, start
from cumulant.sequences.solvers.stochastic_kernels import refresh, saga_epoch


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

    _remember: ClassVar[bool] = True  # whether an update replaces the stored gradient of its sequence
    _divisor: ClassVar[float] = 3.0  # of the default step

    def __post_init__(self):
        positive_or_none("step_size", self.step_size)

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> VarianceReducedState:
        """The weights `x0`, and stored gradients of zero."""
        x, (nodes, counts) = start(problem, x0), memory_of_labels(problem)
        step = self.step_size or 1 / (self._divisor * (feature_radii(problem).max() + problem.l2))
        seed = randomness.seed(rng)
        return VarianceReducedState(x, np.zeros_like(x), nodes, counts, float(step), np.zeros(2), 0, 0, seed)

    def step(self, problem: ChainProblem, state: VarianceReducedState) -> VarianceReducedState:
        """One epoch."""
        starts, rows, _ = problem.attributes_of_sequences
        saga_epoch(
            state.x, state.total, problem.bias, *problem.tokens, problem.data.offsets, starts, rows, state.nodes,
            state.counts, self._remember, state.step_size, problem.l2, problem.n_terms, state.seed, state.sweep,
            state.counters,
        )  # fmt: skip
        return state._replace(sweep=state.sweep + 1, updates=state.updates + problem.n_terms)


@dataclass(frozen=True)
class SequenceSVRG(SequenceSAGA):
    """Stochastic variance-reduced gradient (Johnson, Zhang 2013).

    ``w <- w - gamma (grad phi_i(w) - grad phi_i(s) + mean grad phi(s) + l2 w)``, with a snapshot ``s`` of the weights
    taken every `snapshot_epochs` epochs by a pass over the data. The marginals of the snapshot are kept, as in
    `SequenceSAG`, so that an update takes one oracle call, not two.

    Parameters
    ----------
    step_size : float, optional
        ``1 / (10 (L + l2))`` by default, ``L`` the largest squared radius of the features.
    snapshot_epochs : int
    """

    snapshot_epochs: int = 2

    _remember: ClassVar[bool] = False
    _divisor: ClassVar[float] = 10.0

    def __post_init__(self):
        super().__post_init__()
        if self.snapshot_epochs < 1:
            raise ValueError(f"snapshot_epochs must be at least 1; got {self.snapshot_epochs}")

    def step(self, problem: ChainProblem, state: VarianceReducedState) -> VarianceReducedState:
        """One epoch, before which a snapshot may be due."""
        if state.sweep % self.snapshot_epochs == 0:
            refresh(
                state.x, problem.bias, *problem.tokens, problem.data.offsets, problem.labels, state.nodes, state.counts,
                state.total,
            )  # fmt: skip
            state.counters[0] += problem.n_terms
        return super().step(problem, state)
