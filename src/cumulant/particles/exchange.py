"""Islands that communicate: from time to time whole islands are resampled by their estimates of ``Z``."""

import functools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from cumulant.optim.driver.interruption import Interruption
from cumulant.particles.bridges import Bridge
from cumulant.particles.cluster import run_on_cluster
from cumulant.particles.engine import Outcome, Run, Settings
from cumulant.sampling.diagnostics import log_mean_exp, weighted_sample_size
from cumulant.sampling.resampling import resample
from cumulant.threads import side_by_side

_EXCHANGE = 2**34  # the stream of random numbers that is kept for the resampling of islands


def run_exchanging(
    bridge: Bridge,
    settings: Settings,
    seeds: Sequence[int],
    every: int,
    *,
    n_jobs: int | None = None,
    client: Any = None,
    time_limit: float | None = None,
) -> tuple[list[Outcome], tuple[int, ...]]:
    """Run islands `every` steps at a time. Where their effective number, with their estimates of ``Z`` as weights, is
    below half of them, they are resampled, and each then has the mean of all as its estimate. What they have in the
    mean stays unbiased, as in any resampling (Vergé, Dubarry, Del Moral and Moulines 2015). The islands that came back,
    and their seeds.
    """
    began, status = time.perf_counter(), "converged"
    islands = side_by_side(lambda i: Run(bridge, settings, seeds[i]), len(seeds), n_jobs)
    kept = tuple(seeds)
    with Interruption() as interruption:
        while True:
            if client is None:
                found = side_by_side(lambda i: islands[i].ahead(every), len(islands), n_jobs)  # noqa: B023
            else:
                found = run_on_cluster(client, functools.partial(_ahead, every), islands)
            there = [i for i, island in enumerate(found) if island is not None]
            islands, kept = [found[i] for i in there], tuple(kept[i] for i in there)
            logs = np.array([island.population.log_z for island in islands])
            if all(island.ended for island in islands):
                break
            if interruption.requested or (time_limit is not None and time.perf_counter() - began > time_limit):
                status = "interrupted" if interruption.requested else "time_limit"
                break
            if weighted_sample_size(logs) < len(islands) / 2:
                mean = log_mean_exp(logs)[0]
                step = max(island.population.step for island in islands)
                rng = np.random.default_rng([seeds[0], step, _EXCHANGE])
                chosen = resample(logs, method=settings.resampling, rng=rng)
                islands = [islands[j].copy(seed, mean) for j, seed in zip(chosen, kept, strict=True)]
    return [island.outcome(status) for island in islands], kept


def _ahead(count: int, island: Run) -> Run:
    return island.ahead(count)
