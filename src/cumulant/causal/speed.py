"""The two directions side by side, on tables drawn from what the counts or rows leave possible."""

from typing import Any, NamedTuple

import numpy as np

from cumulant import checks
from cumulant.causal.trajectories import Trajectories, tune

_HORIZON = 4  # budgets
_NEAR, _FAR = 1e-12, 1e300  # divergences below are rounding
_CELLS = 4_000_000  # of the models that are adapted at a time


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

    def adapt(start: Any, goal: Any, among: np.ndarray, times: Any, models: tuple[str, ...]) -> Trajectories:
        stream = int(generator.integers(2**63))
        return pairs.adapt(start, goal, int(times[-1]), among, stream, times=times, models=models, n_jobs=n_jobs)

    here = [adapt(reference, each, steps, times, pairs.models) for each in transfers]
    together = Trajectories(
        here[0].models, steps, times, np.concatenate([each.kl for each in here], axis=2), here[0].distances
    )
    chosen, tuned = _choose(together, budget)
    kl = np.stack([each.kl[np.arange(len(chosen)), chosen] for each in here], axis=1)
    spread = np.array([each.distances[:2] for each in here])  # (transfers, 2, draws)

    which, places = np.unique(chosen[:2], return_inverse=True)
    together_at_once = max(1, _CELLS // (n_runs * int(np.prod(reference.sizes))))
    at_budget = np.zeros((2, n_draws))
    for each in transfers:
        for begin in range(0, n_draws, together_at_once):
            part = slice(begin, begin + together_at_once)
            start, goal = (_repeat(one[part], n_runs) for one in (reference, each))
            found = adapt(start, goal, steps[which], [budget], pairs.models[:2])
            runs = found.kl[np.arange(2), places, :, 0].reshape(2, -1, n_runs)
            at_budget[:, part] += runs.mean(axis=-1) / len(transfers)
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


def _repeat(model: Any, n_runs: int) -> Any:
    """Each model of a batch `n_runs` times, one after the other."""
    return model[np.repeat(np.arange(model.shape[0]), n_runs)]
