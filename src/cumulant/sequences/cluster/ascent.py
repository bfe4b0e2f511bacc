"""Dual ascent on sharded sequences, and training a `ChainCRF` by it on a Dask cluster.

Every shard ascends on its own from the same weights, each step taken as many times as heavy as there are shards; then
the residuals are added up and give the next weights (CoCoA+, Ma et al. 2015, with ``gamma = 1`` and ``sigma' = K``:
with exact line searches the dual never falls). In a round one matrix of the size of the weights goes to every worker,
and one comes back from every shard.
"""

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.certificates import Certificate, Subject, issuer
from cumulant.optim import Result, Snapshot
from cumulant.optim.driver.interruption import InterruptedWarning, Interruption
from cumulant.optim.protocol import Solver
from cumulant.sequences.certify import gap_certificate
from cumulant.sequences.chain.problem import ChainProblem
from cumulant.sequences.cluster.shard import Shard
from cumulant.sequences.cluster.workers import ClusterError, ShardedProblem, current_client
from cumulant.sequences.regularised import UNIT
from cumulant.sequences.solvers.dual_ascent import SequenceDualAscent, named
from cumulant.sequences.training import FitMonitor, certified

__all__ = ["ClusterAscent", "fit"]


class ClusterState(NamedTuple):
    """What of a run is on this machine, beside the weights: the dual variables are where the sequences are."""

    sweep: int
    updates: int
    counters: np.ndarray  # oracle calls, evaluations of the line search, sum of the steps


@dataclass(frozen=True)
class ClusterAscent(Solver):
    """Stochastic dual coordinate ascent for a `ShardedProblem`; a step is a round.

    The same seed and number of shards give the same weights, bit for bit, on any number of workers, as long as none is
    lost. When one is, the dual variables of its sequences begin again at the marginals of the current weights, and the
    weights are rebuilt: the dual may fall once, and what is measured and certified after it is as true as before.

    Parameters
    ----------
    ascent : DualAscent
        How a shard ascends: sampling, line search, precision, and `max_epochs`. Its `n_blocks` is not used.
    local_epochs : int
        Epochs of each shard in a round: more of them for fewer messages.
    """

    ascent: SequenceDualAscent = field(default_factory=SequenceDualAscent)
    local_epochs: int = 1

    backend: ClassVar[str] = "host"

    def __post_init__(self):
        if isinstance(self.local_epochs, bool) or self.local_epochs < 1:
            raise ValueError(f"local_epochs must be at least 1; got {self.local_epochs}")
        if not named(self.ascent.start) or self.ascent.refresh is not None:
            raise ValueError("on a cluster marginals start at a 'mixture' or a 'potential', and gaps are not refreshed")

    def init(self, problem: ShardedProblem, x0: Any, rng: Any) -> ClusterState:
        """Send the shards, with marginals next to the labels. The starting weights `x0` are not used."""
        problem.begin(self.ascent, randomness.seed(rng))
        return ClusterState(0, 0, np.zeros(3))

    def step(self, problem: ShardedProblem, state: ClusterState) -> ClusterState:
        """One round."""
        epochs = self.local_epochs
        if self.ascent.max_epochs is not None:
            epochs = max(min(epochs, self.ascent.max_epochs - state.sweep), 1)
        counters = problem.ascend(epochs)
        return ClusterState(state.sweep + epochs, state.updates + epochs * problem.n_terms, state.counters + counters)

    def solution(self, problem: ShardedProblem, state: ClusterState) -> np.ndarray:
        """The weights."""
        assert problem.v is not None
        return problem.weights_of(problem.v)

    def measure(self, problem: ShardedProblem, state: ClusterState) -> dict[str, float]:
        """The two objectives at the weights that belong to the dual variables, and the gap: by the workers."""
        while True:
            if problem.stale:
                problem.rebuild()
            sums = problem.ask(Shard.measure, problem.v)
            if not problem.stale:
                break
        w = self.solution(problem, state)
        loss, entropy, estimate = np.sum(sums, axis=0) / problem.n_terms
        primal, dual = problem.penalty(w) + loss, entropy - 0.5 * problem.l2 * np.vdot(w, w)
        return {
            "value": float(primal),
            "bound": float(max(primal - dual, 0.0)),
            "dual": float(dual),
            "estimate": float(estimate),
            "updates": float(state.updates),
            "oracle_calls": float(state.counters[0]),
            "line_search_evaluations": float(state.counters[1]),
            "lost_shards": float(problem.lost),
        }

    def certify(self, problem: ShardedProblem, state: ClusterState) -> Certificate:
        """``P(w) - P* <= P(w) - D(mu)``, both by the workers in float64: a shard lost meanwhile changes ``mu`` only."""
        return certify_shards(*self.subject(problem, state))

    def subject(self, problem: ShardedProblem, state: ClusterState) -> Subject:
        """The problem, whose shards hold the dual variables, and the residual that gives the weights."""
        return Subject(problem, problem.v)


@issuer
def certify_shards(given: ShardedProblem, answer: np.ndarray) -> Certificate:
    """`certify_gap` of the weights of the residual `answer`, computed by the workers that have the data."""
    shards = given.ask(Shard.certify, answer)
    parts: list[Any] = [given._sum(part) for part in zip(*shards, strict=True)]
    parts[5] += UNIT * len(shards) * given._sum([np.abs(shard[4]) for shard in shards])
    return gap_certificate(given, given.weights_of(answer), *parts)


class ClusterMonitor(FitMonitor):
    """It also counts lost shards, and keeps the best weights for the case that the whole cluster is lost."""

    lowest: tuple[float, Any] = (np.inf, None)
    interruption: Interruption

    def __call__(self, snapshot: Snapshot) -> bool | str:
        """Whether the run is to end."""
        end = super().__call__(snapshot)
        self.crf.history_[-1]["lost_shards"] = int(snapshot.measures["lost_shards"])
        if snapshot.value < self.lowest[0]:
            self.lowest = snapshot.value, np.array(snapshot.x)
        return end or self.interruption.requested

    def finish(self, result: Result) -> None:
        """The fitted attributes."""
        super().finish(result)
        if self.interruption.requested and result.status == "stopped":
            self.crf.status_ = "interrupted"

    def salvage(self) -> bool:
        """The fitted attributes without a cluster: the best weights, if any, and what they certify themselves."""
        weights = self.lowest[1] if self.best_weights is None else self.best_weights
        if weights is None:
            return False
        crf, whole = self.crf, self.whole
        crf.weights_, crf.status_, crf.objective_ = weights, "interrupted", whole.value(weights)
        crf.certificate_ = crf.weights_certificate_ = certified(whole, weights)
        crf.dual_ = None
        return True


def fit(crf: Any, whole: ChainProblem, ascent: SequenceDualAscent, start: float, *watched: Any) -> None:
    """Train `crf` on the cluster of the current Dask client.

    When no worker is left, `ClusterError` is raised, and the estimator has the best weights so far.
    """
    # Around the one of `run`: Ctrl-C on a terminal also ends workers of this machine, which are not to be waited for.
    with (
        Interruption() as interruption,
        ShardedProblem(current_client(), whole, crf.n_blocks, interrupted=lambda: interruption.requested) as problem,
    ):
        monitor = ClusterMonitor(crf, problem, start, *watched)
        monitor.interruption, monitor.whole = interruption, whole
        try:
            crf._run(ClusterAscent(ascent), problem, monitor)
        except ClusterError:
            kept = monitor.salvage()
            if not interruption.requested:
                raise
            if not kept:
                raise KeyboardInterrupt from None
    if crf.status_ == "interrupted":  # here a run on the cluster was only asked to stop
        warnings.warn("ChainCRF was interrupted: its weights are the best so far", InterruptedWarning, stacklevel=2)
