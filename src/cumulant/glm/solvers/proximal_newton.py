"""Proximal Newton steps for an objective with an l1 penalty: a quadratic model, minimised by coordinate descent."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate, Subject
from cumulant.glm.objective.certify import certify_glm_gap
from cumulant.glm.objective.design import dot
from cumulant.glm.objective.duality_gap import PrimalDual
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.column_pool import ColumnPool
from cumulant.glm.solvers.coordinate_kernels import descend_gram
from cumulant.glm.solvers.newton_step import is_small
from cumulant.glm.solvers.quadratic_model import minimise_model, polish
from cumulant.optim.protocol import Solver

__all__ = ["ByDuality", "GLMProximalNewton", "ProximalState"]

_ARMIJO, _SWEEPS, _ROUNDS = 1e-4, 50, 50


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

    The model of a step is minimised by coordinate descent, as glmnet does, on the Hessian where it is small (and then
    exactly, once the signs are found) and else by columns, coordinates at zero being visited rarely. A lower bound
    comes from the slopes, shrunk until they satisfy the constraints of the dual.

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
        if problem.loss.outputs > 1 and not is_small(problem):
            raise ValueError(
                f"an l1 penalty with several outputs is for small models: columns times classes must be at most 500; "
                f"got {int(np.prod(problem.shape))}"
            )
        x = np.array(x0, dtype=np.float64)
        eta = problem.scores(x)
        losses, slope, curvature = problem.loss.terms(eta)
        value = dot(problem.weights, losses) + problem.penalty(x)
        return ProximalState(x, value, eta, slope, curvature, problem.lower_bound(slope), slope, 0, False)

    def step(self, problem: GLMProblem, state: ProximalState) -> ProximalState:
        """One step."""
        gradient = problem.loss_gradient(state.slope) + problem.ridge(state.x)
        gap = state.value - state.lower
        precision = min(1e-3 * gap, 1e-2 * self.tol * state.value) / problem.shape[0]
        step, change, sweeps = _minimise_model(problem, state, gradient, max(precision, 1e-30))
        before, after = (float(np.abs(problem.without_intercept(at)).sum()) for at in (state.x, state.x + step))
        decline = -dot(gradient, step) - problem.l1 * (after - before)
        length, trial = 1.0, None
        while decline > 0 and length > 1e-10:
            x = state.x + length * step
            eta = state.eta + length * change
            losses, slope, curvature = problem.loss.terms(eta)
            value = dot(problem.weights, losses) + problem.penalty(x)
            if value <= state.value - _ARMIJO * length * decline:
                trial = (x, value, eta, slope, curvature)
                break
            length *= 0.5
        moved = (state.x, state.value, state.eta, state.slope, state.curvature) if trial is None else trial
        bends = problem.loss.apply(state.curvature, change)
        linear = state.slope + problem.loss.reach(state.slope, bends) * bends
        candidates = [(state.lower, state.dual)]
        candidates += [(problem.lower_bound(slopes), slopes) for slopes in (moved[3], linear)]
        lower, dual = max(candidates, key=lambda pair: pair[0])
        return ProximalState(*moved, lower, dual, state.sweeps + sweeps, trial is None)


def _minimise_model(problem, state, gradient, precision):
    step = np.zeros(gradient.size)
    if is_small(problem):
        penalised = np.ones(problem.shape, dtype=np.bool_)
        if problem.design.intercept:
            penalised[-1] = False
        hessian = problem.hessian(state.curvature)
        flat, x, free = gradient.ravel(), state.x.ravel(), ~penalised.ravel()
        sweeps = 0
        for _ in range(_ROUNDS):
            made = descend_gram(hessian, flat, x, problem.l1, penalised.ravel(), _SWEEPS, precision, step)
            sweeps += made
            settled = polish(hessian, flat, x, problem.l1, free, step)
            if made < _SWEEPS and settled:
                break
        step = step.reshape(problem.shape)
        return step, problem.design.times(step), sweeps
    pool = ColumnPool(problem.design, np.arange(len(problem.without_intercept(state.x))))
    x = problem.without_intercept(state.x)
    enough = max(problem.shape[0] * precision, 1e-30)
    found = minimise_model(problem, pool, x, state.slope, state.curvature, enough, enough)
    step = found.w - x
    return np.append(step, found.shift) if problem.design.intercept else step, found.change, found.sweeps
