"""Maximum likelihood with exact gradients, and of conditional likelihoods, each with a gap from strong convexity."""

import time
from typing import Any

import numpy as np
from scipy.optimize import minimize

from cumulant.certificates import Certificate, by_construction, check, recipe_of, rounding, verifier
from cumulant.errors import NotConvergedError
from cumulant.graphical.learning.conditional_likelihood import block_likelihood
from cumulant.graphical.learning.planner import lipschitz
from cumulant.graphical.learning.problem import Fit, LearningProblem
from cumulant.graphical.learning.pseudo_likelihood import Objective, composite_likelihood, pseudo_likelihood
from cumulant.graphical.pairwise import Ising

__all__ = ["fit_conditional", "fit_exact"]

_NO_L2 = (
    "no certificate: without l2 the objective is not strongly convex; the largest difference between the statistics of "
    "the model and of the data is {:.3g}"
)


def fit_exact(problem: LearningProblem, *, tol: float, max_steps: int, **options: Any) -> Fit:
    """Minimise ``f`` with its gradient by elimination: L-BFGS, or in a set accelerated projected gradient.

    With ``l2 > 0``: ``f(theta) - f* <= |grad f|^2 / (2 l2)``; in a set, with ``G = L (x - theta)`` and ``theta`` one
    projected step of length ``1 / L`` from ``x``: ``f(theta) - f* <= |G|^2 (1 / (2 l2) - 1 / (2 L))`` (Nesterov 2018,
    theorem 2.2.13). A projection whose own duality gap is ``g`` adds ``L g``, and ``sqrt(2 g)`` to the
    length of the step.
    """
    start = time.perf_counter()
    if problem.mixing is None:
        objective = lambda theta: problem.value_and_gradient(theta, **options)  # noqa: E731
        return _timed(_free(objective, problem, "exact", tol, max_steps, "f", recipe_of(gap_by_gradient)), start)
    theta, value, bound, steps = _accelerated(problem, tol, max_steps, options)
    certificate, refusal = None, _NO_L2.format(float(np.abs(problem.value_and_gradient(theta, **options)[1]).max()))
    if problem.l2 > 0:
        certificate = _certificate("f", bound, problem.l2, value, steps, recipe_of(gap_by_gradient))
        refusal = ""
    return _timed(Fit(problem.bind(theta), certificate, "exact", refusal, value=value), start)


def fit_conditional(problem: LearningProblem, method: str, *, tol: float, max_steps: int) -> Fit:
    """Maximise the pseudo-likelihood or the composite likelihood of joined pairs, minus ``l2/2 |theta|^2``.

    What is certified is the gap in that objective: it says nothing about the likelihood.
    """
    start = time.perf_counter()
    objective = _conditional(problem, method)
    name, recipe = {
        "pseudo_likelihood": ("-pseudo-likelihood", recipe_of(gap_of_pseudo_likelihood)),
        "composite": ("-composite likelihood", recipe_of(gap_of_composite_likelihood)),
    }[method]
    return _timed(_free(objective, problem, method, tol, max_steps, name, recipe), start)


def _conditional(problem: LearningProblem, method: str) -> Objective:
    """The penalised objective of `fit_conditional`; spins have formulas of their own, all else goes by tables."""
    x, model = problem.data, problem.model
    if x is None:
        raise ValueError(f"method={method!r} needs the data themselves, not their mean statistics")
    if isinstance(model, Ising):
        make = pseudo_likelihood if method == "pseudo_likelihood" else composite_likelihood
        objective = make(x, problem.edges)
    else:
        singles = [[v] for v in range(problem.n)]
        blocks = singles if method == "pseudo_likelihood" else model.structure.edges.tolist()
        objective = block_likelihood(model.family, x, blocks)

    def value_and_gradient(theta):
        value, gradient = objective(problem.full(theta))
        return value + 0.5 * problem.l2 * float(theta @ theta), gradient[problem.free] + problem.l2 * theta

    return value_and_gradient


def _free(
    value_and_gradient: Objective, problem: LearningProblem, method: str, tol: float, max_steps: int, what, recipe
) -> Fit:
    theta, steps = np.zeros(problem.free.size), 0
    value, gradient = value_and_gradient(theta)
    for _ in range(5):  # L-BFGS stops at the rounding of f; started again it goes on
        found = minimize(
            value_and_gradient,
            theta,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_steps, "maxfun": 2 * max_steps, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 20},
        )
        theta, steps = found.x, steps + int(found.nit)
        value, gradient = value_and_gradient(theta)
        small = problem.l2 > 0 and gradient @ gradient <= 2.0 * problem.l2 * tol * max(abs(value), 1.0)
        if small or found.nit == 0:
            break
    model = problem.bind(theta)
    if problem.l2 == 0:
        return Fit(model, None, method, _NO_L2.format(float(np.abs(gradient).max())), value=value)
    bound = float(gradient @ gradient) / (2.0 * problem.l2)
    return Fit(model, _certificate(what, bound, problem.l2, value, steps, recipe), method, value=value)


def _accelerated(problem: LearningProblem, tol: float, max_steps: int, options: dict):
    """Nesterov's method with restarts; each step is followed by its own certificate."""
    l2, L = problem.l2, lipschitz(problem.R, problem.l2)
    x, _ = problem.project(np.zeros(problem.free.size))
    y, new, momentum, bound, size = x, x, 1.0, np.inf, np.inf
    for step in range(1, max_steps + 1):
        value, gradient = problem.value_and_gradient(y, **options)
        new, error = problem.project(y - gradient / L)
        size = L * float(np.linalg.norm(y - new)) + L * error
        if l2 > 0:
            bound = size**2 * (0.5 / l2 - 0.5 / L) + 0.5 * L * error**2
        if bound <= tol * max(abs(value), 1.0) or size <= 1e-10:
            return _finished(problem, new, step, options)
        if (y - new) @ (new - x) > 0:  # the momentum points uphill: O'Donoghue and Candes 2015
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        y = new + (momentum - 1.0) / following * (new - x)
        x, momentum = new, following
    if l2 > 0:
        return _finished(problem, new, max_steps, options)
    raise NotConvergedError(
        f"exact learning took {max_steps} steps and still moves by {size / L:.2g}: raise max_steps or l2"
    )


def _finished(problem: LearningProblem, theta: np.ndarray, steps: int, options: dict):
    value = problem.value_and_gradient(theta, **options)[0]
    return theta, value, gap_by_gradient(problem, theta) if problem.l2 > 0 else np.inf, steps


def _certificate(what: str, bound: float, l2: float, value: float, steps: int, recipe: str) -> Certificate:
    return Certificate(
        f"{what}(theta) - min",
        bound,
        "strong convexity: |gradient|^2 / (2 l2) (Nesterov 2018, theorem 2.1.10; in a set, theorem 2.2.13)",
        (
            check(l2 > 0, "the objective is strongly convex", f"l2 = {l2:g}"),
            by_construction("gradients are exact but for rounding"),
        ),
        slack=rounding(value, terms=64.0),
        recipe=recipe,
        details={"value": value, "steps": steps},
    )


@verifier
def gap_by_gradient(problem: LearningProblem, theta: np.ndarray | Fit) -> float:
    """The bound of `fit_exact`, computed again from the problem; `theta` are the learnt parameters, or the fit."""
    if isinstance(theta, Fit):
        theta = np.asarray(theta.model.theta)[problem.free]
    value, gradient = problem.value_and_gradient(theta)
    if problem.mixing is None:
        return float(gradient @ gradient) / (2.0 * problem.l2)
    L = lipschitz(problem.R, problem.l2)
    new, error = problem.project(theta - gradient / L)
    drop = max(value - problem.value_and_gradient(new)[0], 0.0)  # the theorem is about the point one step on
    size = L * (float(np.linalg.norm(theta - new)) + error)
    return drop + size**2 * (0.5 / problem.l2 - 0.5 / L) + 0.5 * L * error**2


@verifier
def gap_of_pseudo_likelihood(problem: LearningProblem, theta: np.ndarray | Fit) -> float:
    """``|gradient|^2 / (2 l2)`` of the penalised pseudo-likelihood, from the data.

    `theta` are all parameters, or the fit.
    """
    theta = np.asarray(theta.model.theta if isinstance(theta, Fit) else theta)
    gradient = _conditional(problem, "pseudo_likelihood")(theta[problem.free])[1]
    return float(gradient @ gradient) / (2.0 * problem.l2)


@verifier
def gap_of_composite_likelihood(problem: LearningProblem, theta: np.ndarray | Fit) -> float:
    """``|gradient|^2 / (2 l2)`` of the penalised composite likelihood, from the data.

    `theta` are all parameters, or the fit.
    """
    theta = np.asarray(theta.model.theta if isinstance(theta, Fit) else theta)
    gradient = _conditional(problem, "composite")(theta[problem.free])[1]
    return float(gradient @ gradient) / (2.0 * problem.l2)


def _timed(fit: Fit, start: float) -> Fit:
    return Fit(**{**fit.__dict__, "seconds": time.perf_counter() - start})
