"""The two directions side by side, on tables drawn from what the counts or rows leave possible."""

from typing import Any, NamedTuple

import numpy as np

from cumulant import checks
from cumulant.causal.trajectories import Trajectories, tune

_HORIZON = 4  # budgets
_NEAR, _FAR = 1e-12, 1e300  # divergences below are rounding


class Comparison(NamedTuple):
    """What `compare_speed` finds: see the attributes of `AdaptationSpeed`. `tuned` says whether step sizes could be
    chosen.
    """

    times: np.ndarray
    kl: np.ndarray
    step_sizes: np.ndarray
    tuned: bool
    advantage: float
    interval: np.ndarray
    distances: np.ndarray
    distance_intervals: np.ndarray
    tables: list[np.ndarray]


def compare_speed(
    pairs: Any, *, budget: int, step_sizes: Any, n_draws: int, n_runs: int, level: float, seed: int, n_jobs: Any
) -> Comparison:
    """Curves of each model on each transfer, the advantage of the first variable as the cause, and its interval: over
    `n_draws` of what the tables may have been.
    """
    steps = np.atleast_1d(checks.real_array("step_sizes", step_sizes))
    times = np.unique(np.append(np.linspace(0, _HORIZON * budget, 41).astype(int), budget))
    generator = np.random.default_rng(seed)
    reference, *transfers = pairs.draw(n_draws, generator)

    def adapt(goal: Any, among: np.ndarray, **options: Any) -> Trajectories:
        stream = int(generator.integers(2**63))
        T = int(options["times"][-1])
        return pairs.adapt(reference, goal, T, among, stream, n_jobs=n_jobs, **options)

    here = [adapt(each, steps, times=times, models=pairs.models) for each in transfers]
    together = Trajectories(
        here[0].models, steps, times, np.concatenate([each.kl for each in here], axis=2), here[0].distances
    )
    chosen, tuned = _choose(together, budget)
    kl = np.stack([each.kl[np.arange(len(chosen)), chosen] for each in here], axis=1)
    spread = np.array([each.distances[:2] for each in here])  # (transfers, 2, draws)

    which, places = np.unique(chosen[:2], return_inverse=True)
    again = [adapt(each, steps[which], times=[budget], models=pairs.models[:2], n_runs=n_runs) for each in transfers]
    at_budget = np.mean([each.kl[np.arange(2), places, :, 0] for each in again], axis=0)
    tails = [(1 - level) / 2, 0.5, (1 + level) / 2]
    low, advantage, high = np.quantile(_advantage(at_budget), tails)
    distances = np.moveaxis(np.quantile(spread, tails, axis=-1), 0, -1)
    return Comparison(
        times,
        kl,
        steps[chosen],
        tuned,
        float(advantage),
        np.array([low, high]) if tuned else np.array([-np.inf, np.inf]),
        distances[..., 1],
        distances[..., [0, 2]],
        pairs.tables([reference, *transfers]),
    )


def _advantage(kl: np.ndarray) -> Any:
    """``log(KL of the second model / KL of the first)``, zero where rounding is all the difference there is; a run that
    blew up counts as one that is very far away.
    """
    first, second = np.log(np.clip(kl, _NEAR, _FAR))
    return np.where(np.abs(second - first) > 1e-9, second - first, 0.0)


def _choose(together: Trajectories, budget: int) -> tuple[np.ndarray, bool]:
    """The step size of each model; the smallest for all where all move away from the transfer."""
    try:
        return tune(together, budget).chosen, True
    except ValueError:
        return np.full(len(together.models), int(np.argmin(together.step_sizes))), False
