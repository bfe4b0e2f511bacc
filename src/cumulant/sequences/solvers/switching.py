"""Dual ascent, replaced by L-BFGS where that is predicted to be faster.

Dual ascent is faster to any tolerance on most data. Where the penalty is small, or where few sequences are large and
strongly coupled, L-BFGS can be many times as fast. The two are compared during the run, by how fast their gaps fall.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate, Subject
from cumulant.optim.protocol import Solver
from cumulant.sequences.solvers.dual_ascent import DualAscentState, SequenceDualAscent, SequenceProblem
from cumulant.sequences.solvers.lbfgs import LBFGSState, SequenceLBFGS

_FIRST = 15  # epochs before the first look
_SLOW = 60  # epochs that may be left without a look at L-BFGS
_TRIAL = 30  # passes at least that L-BFGS is given


class SwitchingState(NamedTuple):
    """The states of both methods, which of the two is running, and the gaps that each has seen."""

    ascent: DualAscentState
    batch: LBFGSState | None
    batching: bool
    seen: np.ndarray  # (records, 2): epochs of dual ascent, and its running estimate of the gap
    batch_seen: np.ndarray  # passes of L-BFGS, and its bound
    look: int  # epochs, or passes while L-BFGS runs, at which the two are compared next


@dataclass(frozen=True)
class SequenceSwitching(Solver):
    """`SequenceDualAscent`, continued by `SequenceLBFGS` from its weights once that is predicted to be faster.

    After 15 epochs, and again whenever their number has doubled, the remaining epochs are predicted from how fast the
    gap has fallen. If there are more than 60, L-BFGS gets as many passes as dual ascent has had, from its weights. Then
    the method with fewer predicted passes continues, and the other one is kept for the next comparison. Passes are
    compared and not seconds, so that the answer does not depend on the machine.

    Parameters
    ----------
    ascent : DualAscent
    batch : LBFGS
    tol : float
        The relative gap to reach.

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.sequences import ChainProblem, SequenceData
    >>> data = SequenceData([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 2, 3], [0, 1, 0])
    >>> result = optim.run(SequenceSwitching(tol=1e-10), ChainProblem(data, 2), np.zeros((7, 2)), tol=1e-10, rng=0)
    >>> result.status, round(result.value, 6)
    ('converged', 0.578004)
    """

    ascent: SequenceDualAscent = field(default_factory=SequenceDualAscent)
    batch: SequenceLBFGS = field(default_factory=SequenceLBFGS)
    tol: float = 1e-3

    backend: ClassVar[str] = "host"

    def init(self, problem: SequenceProblem, x0: Any, rng: Any) -> SwitchingState:
        """Dual ascent at its start."""
        return SwitchingState(
            self.ascent.init(problem, x0, rng), None, False, np.zeros((0, 2)), np.zeros((0, 2)), _FIRST
        )

    def step(self, problem: SequenceProblem, state: SwitchingState) -> SwitchingState:
        """A step of the method that is running, and a comparison where one is due."""
        if state.batching:
            assert state.batch is not None
            batch = self.batch.step(problem, state.batch)
            row = [batch.evaluations, self.batch.measure(problem, batch)["bound"]]
            state = state._replace(batch=batch, batch_seen=np.vstack([state.batch_seen, row]))
            return self._compared(problem, state) if batch.evaluations >= state.look else state
        ascent = self.ascent.step(problem, state.ascent)
        row = [ascent.sweep, np.mean(ascent.gaps)]
        state = state._replace(ascent=ascent, seen=np.vstack([state.seen, row]))
        return self._considered(problem, state) if ascent.sweep >= state.look else state

    def _considered(self, problem, state):
        """Whether dual ascent is slow: then L-BFGS gets its trial."""
        w = self.ascent.solution(problem, state.ascent)
        epochs = state.ascent.sweep
        if _left(state.seen, self.tol * abs(problem.value(w))) <= _SLOW:
            return state._replace(look=2 * epochs)
        batch = self.batch.init(problem, w, None)
        passes = 0 if state.batch is None else state.batch.evaluations
        batch = batch._replace(evaluations=batch.evaluations + passes)
        return state._replace(batch=batch, batching=True, look=batch.evaluations + max(epochs, _TRIAL))

    def _compared(self, problem, state):
        """The method with fewer passes left continues."""
        goal = self.tol * abs(state.batch.value)
        first = state.look - max(state.ascent.sweep, _TRIAL)
        trial = state.batch_seen[state.batch_seen[:, 0] >= first]
        if _left(trial, goal) <= _left(state.seen, goal):
            return state._replace(look=2 * state.batch.evaluations)
        return state._replace(batching=False, look=2 * state.ascent.sweep)

    def solution(self, problem: SequenceProblem, state: SwitchingState) -> np.ndarray:
        """The weights of the method that is running."""
        solver, own = self._running(state)
        return solver.solution(problem, own)

    def measure(self, problem: SequenceProblem, state: SwitchingState) -> dict[str, float]:
        """What the method that is running measures, with the oracle calls of both."""
        solver, own = self._running(state)
        found, (calls, searches) = solver.measure(problem, own), state.ascent.counters[:, :2].sum(axis=0)
        passes = 0 if state.batch is None else state.batch.evaluations * problem.n_terms
        return {
            "value": found["value"],
            "bound": found["bound"],
            "dual": found["value"] - found["bound"],
            "stuck": found.get("stuck", 0.0),
            "estimate": found.get("estimate", found["bound"]),
            "updates": float(state.ascent.updates),
            "oracle_calls": float(calls) + passes,
            "line_search_evaluations": float(searches),
        }

    def certify(self, problem: SequenceProblem, state: SwitchingState) -> Certificate:
        """The certificate of the method that is running."""
        solver, own = self._running(state)
        return solver.certify(problem, own)

    def subject(self, problem: SequenceProblem, state: SwitchingState) -> Subject | None:
        """What the certificate of the method that is running speaks of."""
        solver, own = self._running(state)
        return solver.subject(problem, own)

    def _running(self, state: SwitchingState) -> tuple[Any, Any]:
        return (self.batch, state.batch) if state.batching else (self.ascent, state.ascent)


def _left(seen: np.ndarray, goal: float) -> float:
    """The passes until the gap is below `goal`, if it continues to fall as it did in the second half of those seen.

    The lowest gap so far counts: that of L-BFGS, a squared gradient, goes up and down.
    """
    passes, gaps = seen[:, 0], np.minimum.accumulate(seen[:, 1])
    if len(seen) < 2 or goal <= 0:
        return np.inf
    if gaps[-1] <= goal:
        return 0.0
    middle = int(np.searchsorted(passes, 0.5 * (passes[0] + passes[-1])))
    middle = min(middle, len(seen) - 2)
    fallen = np.log(gaps[middle] / gaps[-1])
    return float(np.log(gaps[-1] / goal) * (passes[-1] - passes[middle]) / fallen) if fallen > 0 else np.inf
