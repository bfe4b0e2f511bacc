"""Learning by sampling without guarantees: contrastive divergence and persistent chains."""

import time
from typing import Any

import numpy as np

from cumulant import randomness
from cumulant.graphical.learning.chains import chains_of
from cumulant.graphical.learning.mcmc import iterations_shown
from cumulant.graphical.learning.planner import Schedule
from cumulant.graphical.learning.problem import Fit, LearningProblem

__all__ = ["fit_without_guarantee"]

_UNCERTIFIED = {
    "contrastive_divergence": "no certificate: contrastive divergence runs chains from the data for a few updates, and "
    "its gradient is biased by an amount that nobody knows",
    "persistent": "no certificate: persistent chains are not started afresh, and the theorem needs independent ones",
}


def fit_without_guarantee(
    problem: LearningProblem,
    method: str,
    *,
    iterations: int,
    sweeps: int,
    chains: int,
    step: float,
    rng: Any,
    n_jobs: int | None,
    progress: bool = False,
) -> Fit:
    """Stochastic gradient with chains that start at data (contrastive divergence) or go on from where they were
    (persistent).

    Steps are ``step / (1 + 5 k / iterations)``; the mean of the second half of the iterates is returned. Hinton (2002);
    Tieleman (2008). Nothing is certified.
    """
    start = time.perf_counter()
    if method == "contrastive_divergence" and problem.data is None:
        raise ValueError("method='contrastive_divergence' needs the data themselves: chains start at them")
    draw, sampler = randomness.generator(rng), chains_of(problem)
    theta, _ = problem.project(np.zeros(problem.free.size))
    x, path = sampler.uniform(draw, chains), [theta]
    for k in iterations_shown(iterations, progress):
        if method == "contrastive_divergence":
            assert problem.data is not None
            x = sampler.at(problem.data[draw.integers(0, len(problem.data), chains)])
        mean = sampler.run(x, theta, sweeps * problem.n, int(draw.integers(2**63)), n_jobs)
        gradient = mean - problem.mean + problem.l2 * theta
        theta, _ = problem.project(theta - step / (1.0 + 5.0 * k / iterations) * gradient)
        path.append(theta)
    steps = np.array(path)
    final, _ = problem.project(steps[len(steps) // 2 :].mean(axis=0))
    schedule = Schedule(iterations, chains, sweeps * problem.n, "no guarantee")
    seconds = time.perf_counter() - start
    return Fit(problem.bind(final), None, method, _UNCERTIFIED[method], schedule, steps, seconds=seconds)
