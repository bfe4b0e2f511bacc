"""Maximum likelihood by projected gradient with gradients from Gibbs sampling, and its relatives without guarantees."""

import math
import time
from typing import Any

import numpy as np

from cumulant import randomness
from cumulant.certificates import Assumption, Certificate, assume, by_construction, check
from cumulant.errors import CertificateError
from cumulant.graphical.learning.planner import (
    Schedule,
    bound_convex,
    bound_strongly_convex,
    lipschitz,
    plan_convex,
    plan_strongly_convex,
)
from cumulant.graphical.learning.problem import Fit, LearningProblem
from cumulant.graphical.samplers.gibbs import Neighbours, random_scan

__all__ = ["fit_by_sampling", "fit_without_guarantee"]

_UNCERTIFIED = {
    "contrastive_divergence": "no certificate: contrastive divergence runs chains from the data for a few updates, and "
    "its gradient is biased by an amount that nobody knows",
    "persistent": "no certificate: persistent chains are not started afresh, and the theorem needs independent ones",
}


def fit_by_sampling(
    problem: LearningProblem,
    *,
    eps: float,
    delta: float,
    schedule: Schedule | None,
    smoothness: float | None,
    max_work: float,
    rng: Any,
    n_jobs: int | None,
) -> Fit:
    """``theta_k = project(theta_{k-1} - g_k / L)``, ``g_k`` from fresh chains started uniformly (Domke 2015, figure 1).

    With ``l2 > 0`` the last iterate is returned and ``|theta - theta*|`` certified; without, the mean of the iterates
    and ``f(theta) - f*``.
    """
    start = time.perf_counter()
    if problem.mixing is None:
        raise ValueError(
            "method='mcmc' needs mixing=FastMixing(...): the set in which Gibbs sampling is certain to mix"
        )
    mixing = problem.mixing.mixing(problem.edges, problem.n)
    R, distance = problem.R, problem.distance_from_zero()
    L = lipschitz(R, problem.l2) if smoothness is None else float(smoothness)
    if not math.isfinite(distance):
        raise CertificateError(
            "no certificate: without l2 a bound on |theta*| is needed, and fields are not bounded: give l2 > 0, or "
            "fields=False",
            "a bound on |theta_0 - theta*|",
        )
    known = {"R": R, "L": L, "distance": distance, "mixing": mixing}
    strong = problem.l2 > 0
    if schedule is None:
        schedule = (
            plan_strongly_convex(eps, delta, l2=problem.l2, **known) if strong else plan_convex(eps, delta, **known)
        )
    if schedule.work > max_work:
        raise CertificateError(
            f"eps = {eps:g} and delta = {delta:g} need {schedule.work:.3g} updates, more than "
            f"max_work = {max_work:.3g}: raise eps, l2 or max_work, or give a schedule "
            f"(this one: {schedule.iterations} iterations, "
            f"{schedule.chains} chains, {schedule.updates} updates)",
            "enough work is allowed",
        )
    path, errors = _descend(problem, schedule, L, rng, n_jobs)
    if strong:
        theta = path[-1]
        bound = bound_strongly_convex(schedule, l2=problem.l2, delta=delta, **known)
        bound += float(errors.max(initial=0.0)) * L / problem.l2  # projections are exact but for this
        quantity, by = "|theta - theta*|", "theorem 6, corrected"
    else:
        theta = path[1:].mean(axis=0)
        known["distance"] = distance + 2.0 * float(errors.sum()) + float(np.linalg.norm(errors))
        bound = bound_convex(schedule, delta=delta, **known)
        quantity, by = "f(theta) - f*", "theorem 2"
    certificate = Certificate(
        quantity,
        bound,
        f"projected gradient with Gibbs sampling in a fast-mixing set: Domke 2015, {by}",
        (
            check(mixing.kappa is not None and mixing.kappa < 1, "the set mixes fast", f"kappa = {mixing.kappa:.6g}"),
            by_construction("fresh independent chains in every iteration, one uniformly chosen site a step"),
            _smooth(problem, L, smoothness),
        ),
        kind="with probability",
        delta=delta,
        details={"kappa": mixing.kappa or 0.0, "L": L, "R": R, "distance from start at most": distance},
    )
    seconds = time.perf_counter() - start
    return Fit(problem.bind(theta), certificate, "mcmc", schedule=schedule, path=path, seconds=seconds)


def _smooth(problem: LearningProblem, L: float, given: float | None) -> Assumption:
    proved = lipschitz(problem.R, problem.l2)
    if proved <= L:
        return by_construction("the gradient is L-Lipschitz", f"L = {L:g} >= R^2 + l2 = {proved:g}")
    return assume("the gradient is L-Lipschitz on the set", f"L = {given:g} was given; R^2 + l2 = {proved:g} is proved")


def _descend(problem, schedule, L, rng, n_jobs) -> tuple[np.ndarray, np.ndarray]:
    draw = randomness.generator(rng)
    n, m = problem.n, len(problem.edges)
    graph = Neighbours.of(n, problem.edges)
    with_fields = problem.free.size > m
    theta, first = problem.project(np.zeros(problem.free.size))
    path, errors = [theta], [first]
    for _ in range(schedule.iterations):
        full = problem.full(theta)
        spins = (2 * draw.integers(0, 2, (schedule.chains, n), dtype=np.int8) - 1).astype(np.int8)
        random_scan(spins, graph, full[n:], full[:n], schedule.updates, seed=int(draw.integers(2**63)), n_jobs=n_jobs)
        gradient = _statistics(spins, problem.edges, with_fields) - problem.mean + problem.l2 * theta
        theta, error = problem.project(theta - gradient / L)
        path.append(theta)
        errors.append(error)
    return np.array(path), np.array(errors)


def _statistics(spins: np.ndarray, edges: np.ndarray, with_fields: bool) -> np.ndarray:
    x = np.ascontiguousarray(spins.T)
    pairs = np.array([np.dot(a.astype(np.float32), b) for a, b in ((x[i], x[j]) for i, j in edges)]) / len(spins)
    return np.concatenate([spins.mean(axis=0), pairs]) if with_fields else pairs


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
) -> Fit:
    """Stochastic gradient with chains that start at data (contrastive divergence) or go on from where they were
    (persistent).

    Steps are ``step / (1 + 5 k / iterations)``; the mean of the second half of the iterates is returned. Hinton (2002);
    Tieleman (2008). Nothing is certified.
    """
    start = time.perf_counter()
    if method == "contrastive_divergence" and problem.data is None:
        raise ValueError("method='contrastive_divergence' needs the data themselves: chains start at them")
    draw = randomness.generator(rng)
    n, m = problem.n, len(problem.edges)
    graph, with_fields = Neighbours.of(n, problem.edges), problem.free.size > m
    theta, _ = problem.project(np.zeros(problem.free.size))
    spins = (2 * draw.integers(0, 2, (chains, n), dtype=np.int8) - 1).astype(np.int8)
    path = [theta]
    for k in range(iterations):
        if method == "contrastive_divergence":
            assert problem.data is not None
            spins = np.ascontiguousarray(problem.data[draw.integers(0, len(problem.data), chains)], dtype=np.int8)
        full = problem.full(theta)
        random_scan(spins, graph, full[n:], full[:n], sweeps * n, seed=int(draw.integers(2**63)), n_jobs=n_jobs)
        gradient = _statistics(spins, problem.edges, with_fields) - problem.mean + problem.l2 * theta
        theta, _ = problem.project(theta - step / (1.0 + 5.0 * k / iterations) * gradient)
        path.append(theta)
    steps = np.array(path)
    final, _ = problem.project(steps[len(steps) // 2 :].mean(axis=0))
    schedule = Schedule(iterations, chains, sweeps * n, "no guarantee")
    seconds = time.perf_counter() - start
    return Fit(problem.bind(final), None, method, _UNCERTIFIED[method], schedule, steps, seconds=seconds)
