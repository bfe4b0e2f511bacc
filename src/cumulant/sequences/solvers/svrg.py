"""The stochastic variance-reduced gradient on the primal objective of chains."""

from dataclasses import dataclass
from typing import Any

from cumulant.sequences.chain.problem import ChainProblem
from cumulant.sequences.chain.radius import feature_radii
from cumulant.sequences.solvers.primal import PrimalSolver, positive_or_none
from cumulant.sequences.solvers.saga import VarianceReducedState, variance_reduced, variance_reduced_epoch
from cumulant.sequences.solvers.stochastic_kernels import refresh

__all__ = ["SequenceSVRG"]


@dataclass(frozen=True)
class SequenceSVRG(PrimalSolver):
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

    step_size: float | None = None
    snapshot_epochs: int = 2

    def __post_init__(self):
        positive_or_none("step_size", self.step_size)
        if self.snapshot_epochs < 1:
            raise ValueError(f"snapshot_epochs must be at least 1; got {self.snapshot_epochs}")

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> VarianceReducedState:
        """The weights `x0`."""
        step = self.step_size or 1 / (10 * (feature_radii(problem).max() + problem.l2))
        return variance_reduced(problem, x0, rng, step)

    def step(self, problem: ChainProblem, state: VarianceReducedState) -> VarianceReducedState:
        """One epoch, before which a snapshot may be due."""
        if state.sweep % self.snapshot_epochs == 0:
            refresh(
                state.x, problem.bias, *problem.tokens, problem.data.offsets, problem.labels, state.nodes, state.counts,
                state.total,
            )  # fmt: skip
            state.counters[0] += problem.n_terms
        return variance_reduced_epoch(problem, state, remember=False)
