"""Proximal Newton steps for an objective with an l1 penalty: a quadratic model, minimised by coordinate descent."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate
from cumulant.glm.certify import gap_certificate
from cumulant.glm.coordinate_kernels import descend_columns, descend_gram
from cumulant.glm.design import dot, unsigned
from cumulant.glm.newton_step import is_small, solve_damped
from cumulant.glm.problem import GLMProblem

__all__ = ["ByDuality", "ProximalNewton", "ProximalState"]

_ARMIJO, _SWEEPS, _ROUNDS = 1e-4, 50, 50
_FLIPS = 500  # weights that may become zero in one polishing
_CHEAP = 4e8  # operations that the Hessian of the columns with weights, and its factor, may take


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


class ByDuality:
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
        return gap_certificate(problem, state.x, state.dual)


@dataclass(frozen=True)
class ProximalNewton(ByDuality):
    """Proximal Newton steps (Lee, Sun and Saunders 2014) with a line search, for ``l1 > 0`` and ``l2 >= 0``.

    The model of a step is minimised by coordinate descent, as glmnet does, on the Hessian where it is small (and then
    exactly, once the signs are found) and else by columns, coordinates at zero being visited rarely. A lower bound
    comes from the slopes, shrunk until they satisfy the constraints of the dual.

    Parameters
    ----------
    tol : float
        The relative gap that is aimed at: how exactly models are minimised depends on it.
    """

    tol: float = 1e-4

    backend: ClassVar[str] = "host"

    def init(self, problem: GLMProblem, x0: Any, rng: Any) -> ProximalState:
        """Losses at `x0`, and what they say of the minimum."""
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


def polish(hessian, gradient, x, l1, free, step) -> bool:
    """Solve the model on the coordinates that are not zero, in place; True if none of them became zero on the way.

    On data of very different scales coordinate descent finds the signs long before the values. With the signs given the
    model is a quadratic: one linear system. Moving towards its minimum lowers the model until a coordinate reaches
    zero; there it stays, and the rest goes on. Where there are more coordinates than the Hessian has rank, the way goes
    along its null space, and ends when enough of them are zero.
    """
    for flips in range(_FLIPS):
        here = x + step
        active = (here != 0) | free
        if not active.any():
            return flips == 0
        slope = gradient + hessian @ step + np.where(free, 0.0, l1 * np.sign(here))
        move = solve_damped(hessian[np.ix_(active, active)], -slope[active])
        if move is None:
            return flips == 0
        flipped = (np.sign(here[active] + move) != np.sign(here[active])) & ~free[active]
        if not flipped.any():
            step[active] += move
            return flips == 0
        reach = -here[active][flipped] / move[flipped]
        step[active] += float(reach.min()) * move
        first = np.flatnonzero(active)[flipped][np.argmin(reach)]
        step[first] = -x[first]  # exactly zero
    return False


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
    columns = problem.design.by_columns()
    change, sweeps = np.zeros(problem.n_terms), 0
    weights, diagonal = problem.weights * state.curvature, problem.diagonal(state.curvature)
    for _ in range(_ROUNDS):
        made = descend_columns(
            *unsigned(columns), weights, diagonal, gradient, state.x, problem.l1, problem.l2, problem.design.intercept,
            _SWEEPS, precision, step, change,
        )  # fmt: skip
        sweeps += made
        if _polish_columns(problem, weights, gradient, state.x, step, change) and made < _SWEEPS:
            break
    return step, change, sweeps


def _polish_columns(problem, weights, gradient, x, step, change) -> bool:
    """`polish` on the columns whose weight is not zero, in place, where their Hessian is cheap; True if none flips."""
    here = x + step
    active = np.flatnonzero(problem.without_intercept(here))
    part = problem.design.columns(active)
    if active.size == 0 or active.size * part.size + active.size**3 / 3 > _CHEAP:
        return True
    where, ridge, free = active, np.full(active.size, problem.l2), np.zeros(active.size, dtype=np.bool_)
    if problem.design.intercept:
        where, ridge, free = np.append(active, len(x) - 1), np.append(ridge, 0.0), np.append(free, True)
    hessian = part.gram(weights) + np.diag(ridge)
    slope = gradient[where] + ridge * step[where] + part.transposed(weights * change)
    moved = np.zeros(len(where))
    settled = polish(hessian, slope, here[where], problem.l1, free, moved)
    step[where] += moved
    change += part.times(moved)
    return settled
