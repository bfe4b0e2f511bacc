"""Proximal Newton steps for an objective with an l1 penalty: a quadratic model, minimised by coordinate descent."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate, Subject
from cumulant.glm.objective.certify import certify_glm_gap
from cumulant.glm.objective.design import dot
from cumulant.glm.objective.duality_gap import PrimalDual
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.coordinate_kernels import descend_gram
from cumulant.glm.solvers.line_search import Point, descended, linear_slopes, point_at
from cumulant.glm.solvers.newton_step import SMALL, is_small
from cumulant.glm.solvers.quadratic_model import polish
from cumulant.optim.protocol import Solver

_SWEEPS, _ROUNDS = 50, 50


class ProximalState(NamedTuple):
    """The iterate with its scores, losses' slopes and curvatures; the best lower bound so far and its dual slopes."""

    x: np.ndarray
    value: float
    eta: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    lower: float
    dual: np.ndarray
    sweeps: int
    stuck: bool


class ByDuality(Solver):
    """What solvers share whose states have a value, a lower bound and the dual slopes that prove it."""

    def measure(self, problem: GLMProblem, state: Any) -> dict[str, float]:
        """The objective and the bound on its distance to the minimum."""
        return {
            "value": state.value,
            "bound": state.value - state.lower,
            "passes": float(state.sweeps),
            "nonzeros": float(np.count_nonzero(problem.without_intercept(state.x))),
            "stuck": float(state.stuck),
        }

    def certify(self, problem: GLMProblem, state: Any) -> Certificate:
        """By duality."""
        return certify_glm_gap(*self.subject(problem, state))

    def subject(self, problem: GLMProblem, state: Any) -> Subject:
        """The weights and the dual slopes."""
        return Subject(problem, PrimalDual(state.x, state.dual))


@dataclass(frozen=True)
class GLMProximalNewton(ByDuality):
    """Proximal Newton steps (Lee, Sun and Saunders 2014) with a line search, for ``l1 > 0`` and ``l2 >= 0``.

    For at most 500 columns times outputs. The model of a step is minimised by coordinate descent on the Hessian, as
    glmnet does, and exactly once the signs are found. A lower bound comes from the slopes, shrunk until they satisfy
    the constraints of the dual.

    Parameters
    ----------
    tol : float
        The relative gap that is aimed at: how exactly models are minimised depends on it.

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.glm import GLMProblem, design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), 0.5)
    >>> result = optim.run(GLMProximalNewton(), problem, [0.0], tol=1e-8)
    >>> result.status, result.x.round(6)
    ('converged', array([1.083333]))
    """

    tol: float = 1e-4

    backend: ClassVar[str] = "host"

    def init(self, problem: GLMProblem, x0: Any, rng: Any) -> ProximalState:
        """Losses at `x0`, and a lower bound on the minimum."""
        if not problem.l1 > 0:
            raise ValueError(f"proximal Newton steps are for l1 > 0; got l1 = {problem.l1}")
        if not is_small(problem):
            raise ValueError(
                f"proximal Newton steps are for small models, of at most {SMALL} columns times outputs: use "
                f"GLMWorkingSet; got {math.prod(problem.shape)}"
            )
        at = point_at(problem, x0)
        return ProximalState(*at, problem.lower_bound(at.slope), at.slope, 0, False)

    def step(self, problem: GLMProblem, state: ProximalState) -> ProximalState:
        """One step."""
        gradient = problem.loss_gradient(state.slope) + problem.ridge(state.x)
        gap = state.value - state.lower
        precision = min(1e-3 * gap, 1e-2 * self.tol * state.value) / problem.shape[0]
        step, sweeps = _minimise_model(problem, state, gradient, max(precision, 1e-30))
        change = problem.design.times(step)
        before, after = (float(np.abs(problem.without_intercept(at)).sum()) for at in (state.x, state.x + step))
        decline = -dot(gradient, step) - problem.l1 * (after - before)
        trial = descended(problem, state, step, change, decline)
        moved = trial or Point(*state[:5])
        lower, dual = best_dual(problem, state, moved, change, problem.lower_bound)
        return ProximalState(*moved, lower, dual, state.sweeps + sweeps, trial is None)


def best_dual(
    problem: GLMProblem, state: Any, moved: Point, change: np.ndarray, bound: Callable[[np.ndarray], float]
) -> tuple[float, np.ndarray]:
    """The best lower bound after a step, and its slopes: those of the state, of the new iterate, or their linear model.

    The linear model is the better one once steps are short.
    """
    candidates = [(bound(slopes), slopes) for slopes in (moved.slope, linear_slopes(problem, state, change)[0])]
    return max([(state.lower, state.dual), *candidates], key=lambda pair: pair[0])


def _minimise_model(problem, state, gradient, precision) -> tuple[np.ndarray, int]:
    step, sweeps = np.zeros(gradient.size), 0
    penalised = np.ones(problem.shape, dtype=np.bool_)
    if problem.design.intercept:
        penalised[-1] = False
    hessian = problem.hessian(state.curvature)
    flat, x, free = gradient.ravel(), state.x.ravel(), ~penalised.ravel()
    for _ in range(_ROUNDS):
        made = descend_gram(hessian, flat, x, problem.l1, penalised.ravel(), _SWEEPS, precision, step)
        sweeps += made
        settled = polish(hessian, flat, x, problem.l1, free, step)
        if made < _SWEEPS and settled:
            break
    return step.reshape(problem.shape), sweeps
