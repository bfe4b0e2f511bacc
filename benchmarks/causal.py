"""Adaptation of cause-effect models against NumPy, on one thread: problems with 20 values, seven step sizes, 400 steps.

Two programs in NumPy do the same work (`tests/reference/causal.py`): one that takes a problem and a step size at a
time, as the algorithm is written, and one that moves all problems at once in whole arrays, for one step size after the
other, which is faster than for all of them together. Observations are the same, drawn before the clock starts on
their side and inside of the time on ours; divergences, kept every ten observations, must agree to ten digits. A third
row is the published study: four settings, 100 problems, three models, against five minutes. Times are of the processor.
"""

import time
from collections.abc import Callable

import numpy as np
from tests.reference import causal as slow

from benchmarks.timing import Row
from cumulant.causal import adapt_categorical, sample_reference

_STEPS = (0.03, 0.1, 0.3, 1.0, 3.0, 9.0, 30.0)
_K, _PROBLEMS, _FEW, _T, _EVERY = 20, 100, 3, 400, 10
_REPEATS = 5
_LIMIT = 300.0  # seconds, of the study


def run() -> list[Row]:
    reference = sample_reference(_K, _PROBLEMS, "dense", rng=0)
    transfer = reference.intervene("cause", rng=1)
    P, Q = reference.to_joint(), transfer.to_joint()
    seen = np.array([slow.observations(goal, i, _T, 2) for i, goal in enumerate(Q)])

    def ours(n=_PROBLEMS):
        return adapt_categorical(reference[:n], transfer[:n], _T, _STEPS, rng=2, log_every=_EVERY, n_jobs=1).kl

    def one_by_one():
        found = np.empty((3, len(_STEPS), _FEW, _T // _EVERY))
        for i in range(_FEW):
            forward = [tuple(each) for each in seen[i].tolist()]
            backward = [(y, x) for x, y in forward]
            for j, step in enumerate(_STEPS):
                found[0, j, i] = slow.adapt_pair(P[i], Q[i], forward, step, _EVERY)[0]
                found[1, j, i] = slow.adapt_pair(P[i].T, Q[i].T, backward, step, _EVERY)[0]
                found[2, j, i] = slow.adapt_table(P[i], Q[i], forward, step, _EVERY)[0]
        return found

    times = list(range(0, _T + 1, _EVERY))

    def whole_arrays():
        return np.concatenate([slow.adapt_batch(P, Q, seen, (step,), times) for step in _STEPS], axis=1)

    agree(ours(_FEW)[..., 1:], one_by_one(), "one problem at a time")
    agree(ours(), whole_arrays(), "whole arrays")
    return [
        compare(
            f"adaptation, {_FEW} problems of 20 values", "NumPy, one at a time", lambda: ours(_FEW), one_by_one, 20.0
        ),
        compare(f"adaptation, {_PROBLEMS} problems of 20 values", "NumPy, whole arrays", ours, whole_arrays, 3.0),
        study(),
    ]


def agree(ours: np.ndarray, theirs: np.ndarray, name: str) -> None:
    """Divergences of all models, step sizes, problems and times."""
    apart = float(np.max(np.abs(ours - theirs) / (1e-3 + theirs)))
    print(f"  divergences agree with NumPy, {name}, to {apart:.1e}")
    if not apart < 1e-10:
        raise AssertionError(f"divergences differ from those of NumPy, {name}, by {apart:.2g}")


def compare(name: str, peer: str, ours: Callable, theirs: Callable, bar: float) -> Row:
    """Processor seconds on both sides, alternating; both have been called before."""
    times = np.array([[seconds(side) for side in (ours, theirs)] for _ in range(_REPEATS)])
    ratios = times[:, 1] / times[:, 0]
    mine, its = np.median(times, axis=0)
    row = Row(name, peer, float(mine), float(its), float(np.median(ratios)), (ratios.min(), ratios.max()), bar)
    print(row, flush=True)
    return row


def study() -> Row:
    """Both priors, both interventions, with the draws of the problems; a ratio to the time that it may take."""
    begun = time.process_time()
    for prior in ("dense", "sparse"):
        reference = sample_reference(_K, _PROBLEMS, prior, rng=0)
        for target in ("cause", "effect"):
            adapt_categorical(reference, reference.intervene(target, rng=1), _T, _STEPS, rng=2)
    taken = time.process_time() - begun
    ratio = _LIMIT / taken
    row = Row("study of four settings", "five minutes", taken, _LIMIT, ratio, (ratio, ratio), 1.0)
    print(row, flush=True)
    return row


def seconds(work: Callable) -> float:
    """Of the processor, for one call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


if __name__ == "__main__":
    run()
