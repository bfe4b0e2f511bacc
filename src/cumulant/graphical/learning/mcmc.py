"""Maximum likelihood by projected gradient with gradients from Gibbs sampling, and what a run of it proves."""

import math
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from cumulant import randomness
from cumulant.certificates import Assumption, Certificate, assume, by_construction, check, recipe_of, verifier
from cumulant.errors import CertificateError
from cumulant.graphical.learning.chains import chains_of
from cumulant.graphical.learning.planner import (
    Schedule,
    bound_convex,
    bound_strongly_convex,
    lipschitz,
    plan_convex,
    plan_strongly_convex,
)
from cumulant.graphical.learning.problem import Fit, LearningProblem, Run
from cumulant.graphical.mixing.certificates import Mixing

__all__ = ["bound_of_run", "fit_by_sampling", "iterations_shown", "replay"]


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
    progress: bool = False,
) -> Fit:
    """``theta_k = project(theta_{k-1} - g_k / L)``, ``g_k`` from fresh chains started uniformly (Domke 2015, figure 1).

    With ``l2 > 0`` the last iterate is returned and ``|theta - theta*|`` certified; without, the mean of the iterates
    and ``f(theta) - f*``.
    """
    start = time.perf_counter()
    known = _constants(problem, smoothness)
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
    seed = randomness.seed(rng)
    path, errors = _descend(problem, schedule, known["L"], seed, n_jobs, progress)
    run = Run(seed, delta, None if smoothness is None else float(smoothness), errors)
    theta = _answer(problem, path)
    certificate = Certificate(
        "|theta - theta*|" if strong else "f(theta) - f*",
        _bound(problem, schedule, run, known),
        "projected gradient with Gibbs sampling in a fast-mixing set: Domke 2015, "
        + ("theorem 6, corrected" if strong else "theorem 2"),
        (
            check(known["mixing"].kappa < 1, "the set mixes fast", f"kappa = {known['mixing'].kappa:.6g}"),
            by_construction("fresh independent chains in every iteration, one uniformly chosen site a step"),
            _smooth(problem, known["L"], smoothness),
        ),
        kind="with probability",
        delta=delta,
        recipe=recipe_of(bound_of_run),
        details={
            "kappa": known["mixing"].kappa,
            "L": known["L"],
            "R": known["R"],
            "distance from start at most": known["distance"],
        },
    )
    seconds = time.perf_counter() - start
    return Fit(problem.bind(theta), certificate, "mcmc", schedule=schedule, path=path, run=run, seconds=seconds)


@verifier
def bound_of_run(problem: LearningProblem, fit: Fit) -> float:
    """What a fit by ``"mcmc"`` proves, computed again: ``fit.certificate.verify(problem, fit)`` calls it.

    The constants (``R``, ``L``, the distance to the optimum, the rate of mixing) and the bound of the schedule come
    from the problem. Every iterate must lie in the set, the first be the projection of zero, and the answer be the last
    of them (with ``l2 > 0``) or their mean: `CertificateError` where that is not so. That the steps in between are what
    the chains gave is not seen from here; `replay` does them again.
    """
    schedule, run, path = fit.schedule, fit.run, fit.path
    if schedule is None or run is None or path is None:
        raise CertificateError(f"this is no fit by sampling with a guarantee: its method is {fit.method!r}")
    known = _constants(problem, run.smoothness)
    if path.shape != (schedule.iterations + 1, problem.free.size) or run.errors.shape != (len(path),):
        raise CertificateError("the certificate does not hold: the path is not as long as the schedule says")
    assert problem.fast_set is not None
    assert problem.mixing is not None
    largest = max(problem.fast_set.size(theta) for theta in path)
    check(
        largest <= problem.mixing.radius * (1.0 + 1e-9),
        "every iterate lies in the set",
        f"the largest norm is {largest:.9g}, the radius {problem.mixing.radius:g}",
    )
    check((path[0] == problem.project(np.zeros(problem.free.size))[0]).all(), "the run starts at zero")
    answer = np.array_equal(problem.full(_answer(problem, path)), fit.model.theta)
    check(answer, "the model is what the path ends in")
    return _bound(problem, schedule, run, known)


def replay(problem: LearningProblem, fit: Fit, *, n_jobs: int | None = None) -> Fit:
    """Do a fit by ``"mcmc"`` again from its seed; `CertificateError` where anything comes out differently.

    The chains are the same bit for bit, whatever `n_jobs`; projections pass through BLAS, and the path may differ by
    1e-9 of its length on another machine. Returns the new fit with its own certificate, which is then computed from
    nothing but the problem, the seed and the schedule.

    Examples
    --------
    >>> from cumulant.graphical import FastMixing, Schedule, fit, learning_problem
    >>> settings = {"mixing": FastMixing(0.5, "box"), "l2": 1.0, "fields": False}
    >>> found = fit([0.3], [(0, 1)], schedule=Schedule(5, 20, 10), rng=7, **settings)
    >>> again = replay(learning_problem([0.3], [(0, 1)], **settings), found)
    >>> again.certificate == found.certificate
    True
    """
    if fit.schedule is None or fit.run is None or fit.path is None:
        raise ValueError(f"fit must be one by method='mcmc'; got {fit.method!r}")
    again = fit_by_sampling(
        problem,
        eps=math.inf,  # the schedule is given
        delta=fit.run.delta,
        schedule=fit.schedule,
        smoothness=fit.run.smoothness,
        max_work=math.inf,
        rng=fit.run.seed,
        n_jobs=n_jobs,
    )
    assert again.path is not None
    same = again.path.shape == fit.path.shape and np.allclose(again.path, fit.path, rtol=0.0, atol=1e-9)
    if not (same and np.allclose(again.model.theta, fit.model.theta, rtol=0.0, atol=1e-9)):
        raise CertificateError(
            f"the run cannot be repeated: seed {fit.run.seed} gives another path", "the run is what its seed gives"
        )
    return again


def _constants(problem: LearningProblem, smoothness: float | None) -> dict[str, Any]:
    """``R``, ``L``, a bound on ``|theta*|`` and the mixing of the set: what the theorems are about."""
    if problem.fast_set is None:
        raise ValueError(
            "method='mcmc' needs mixing=FastMixing(...): the set in which Gibbs sampling is certain to mix"
        )
    mixing: Mixing = problem.fast_set.mixing()
    distance = problem.distance_from_zero()
    if not math.isfinite(distance):
        raise CertificateError(
            "no certificate: without l2 a bound on |theta*| is needed, and fields are not bounded: give l2 > 0, or "
            "fields=False",
            "a bound on |theta_0 - theta*|",
        )
    L = lipschitz(problem.R, problem.l2) if smoothness is None else float(smoothness)
    return {"R": problem.R, "L": L, "distance": distance, "mixing": mixing}


def _bound(problem: LearningProblem, schedule: Schedule, run: Run, known: dict[str, Any]) -> float:
    """The bound of the schedule, with what inexact projections add."""
    errors = run.errors
    if problem.l2 > 0:
        bound = bound_strongly_convex(schedule, l2=problem.l2, delta=run.delta, **known)
        return bound + float(errors.max(initial=0.0)) * known["L"] / problem.l2
    farther = known["distance"] + 2.0 * float(errors.sum()) + float(np.linalg.norm(errors))
    return bound_convex(schedule, delta=run.delta, **{**known, "distance": farther})


def _answer(problem: LearningProblem, path: np.ndarray) -> np.ndarray:
    return path[-1] if problem.l2 > 0 else path[1:].mean(axis=0)


def _smooth(problem: LearningProblem, L: float, given: float | None) -> Assumption:
    proved = lipschitz(problem.R, problem.l2)
    if proved <= L:
        return by_construction("the gradient is L-Lipschitz", f"L = {L:g} >= R^2 + l2 = {proved:g}")
    return assume("the gradient is L-Lipschitz on the set", f"L = {given:g} was given; R^2 + l2 = {proved:g} is proved")


def _descend(problem, schedule, L, seed, n_jobs, progress) -> tuple[np.ndarray, np.ndarray]:
    draw, chains = randomness.generator(seed), chains_of(problem)
    theta, first = problem.project(np.zeros(problem.free.size))
    path, errors = [theta], [first]
    for _ in iterations_shown(schedule.iterations, progress):
        x = chains.uniform(draw, schedule.chains)
        mean = chains.run(x, theta, schedule.updates, int(draw.integers(2**63)), n_jobs)
        gradient = mean - problem.mean + problem.l2 * theta
        theta, error = problem.project(theta - gradient / L)
        path.append(theta)
        errors.append(error)
    return np.array(path), np.array(errors)


def iterations_shown(n: int, progress: bool) -> Iterable[int]:
    """``range(n)``, with a bar on standard error where that is a terminal and `progress` is asked for."""
    if not progress:
        return range(n)
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if not console.is_terminal:
        return range(n)
    return track(range(n), description="learning", console=console, transient=True)
