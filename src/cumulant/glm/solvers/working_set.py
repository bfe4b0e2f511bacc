"""Proximal Newton steps on the few columns that matter, for an objective with an l1 penalty and many columns."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate
from cumulant.glm.objective.certify import certify_glm_gap
from cumulant.glm.objective.design import dot
from cumulant.glm.objective.losses import NamedLoss
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.column_pool import ColumnPool
from cumulant.glm.solvers.line_search import Point, descended, point_at
from cumulant.glm.solvers.newton_step import SMALL
from cumulant.glm.solvers.proximal_newton import ByDuality, GLMProximalNewton, ProximalState, best_dual
from cumulant.glm.solvers.quadratic_model import minimise_model
from cumulant.threads import one_blas_thread

_LEAST, _PER_ROOT = 40, 4.0  # columns in the first working set: at least, and for the root of the number of all
_NEAR = 0.8  # of the penalty: columns with smaller correlations are left out
_KEPT = 0.75  # of a set: if fewer are still near, the others leave it
_INNER = 20  # proximal Newton steps on one set, at most
NO_COLUMNS = np.empty(0, np.int64)


class WorkingState(NamedTuple):
    """The iterate with its losses' slopes and curvatures; the best lower bound so far, the dual slopes that prove it
    and their ``X^T (p s)``; the correlation ``X_j^T (p s)`` of each column at the iterate; the working set.
    """

    x: np.ndarray
    value: float
    eta: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    lower: float
    dual: np.ndarray
    dual_gradient: np.ndarray
    correlation: np.ndarray
    pool: ColumnPool  # without columns before the first step
    sweeps: int
    stuck: bool


@dataclass(frozen=True)
class GLMWorkingSet(ByDuality):
    """Minimise over a working set of columns and enlarge it, until the duality gap of the whole problem is small.

    New in the set are the columns whose slope ``|X_j^T (p s)|`` is largest, as many as there are weights that differ
    from zero, and at least four times the root of the number of columns: their Gram matrix costs a few passes over
    all columns. On the set the objective is minimised by proximal Newton steps, to a twentieth of the gap that is left;
    for a quadratic loss one step is all, and its Gram matrix grows with the set. Since few weights differ from zero at
    the minimum, nearly all work is on few columns; all are visited once a step, for the gap and the next set (Johnson
    and Guestrin 2015; Massias, Gramfort and Salmon 2018). The bound is that of the whole problem, whatever the set.

    Parameters
    ----------
    tol : float
        The relative gap that is aimed at.

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.glm import GLMProblem, design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), 0.5)
    >>> result = optim.run(GLMWorkingSet(), problem, [0.0], tol=1e-8)
    >>> result.status, result.x.round(6)
    ('converged', array([1.083333]))
    """

    tol: float = 1e-4

    backend: ClassVar[str] = "host"

    def init(self, problem: GLMProblem, x0: Any, rng: Any) -> WorkingState:
        """Losses at `x0`, and a lower bound on the minimum."""
        if not problem.l1 > 0:
            raise ValueError(f"working sets are for l1 > 0; got l1 = {problem.l1}")
        at = point_at(problem, x0)
        pool = ColumnPool(problem.design, NO_COLUMNS)
        return WorkingState(*at, *_bound_of_all_columns(problem, at.slope), pool, 0, False)

    def step(self, problem: GLMProblem, state: WorkingState) -> WorkingState:
        """Minimise over one working set."""
        if problem.loss.outputs > 1:
            grown, pool, columns = False, state.pool, _small_set(problem, state)
            kept = _places(problem, columns)
            found = self._several_outputs(problem, state, columns, kept)
        else:
            pool, grown = _grown(problem, state)
            kept = _places(problem, pool.columns)
            found = self._one_output(problem, state, pool, kept, grown)
        x = np.zeros_like(state.x)
        x[kept] = found.x
        lower, dual, gradient, correlation = _bound_of_all_columns(problem, found.dual)
        if lower <= state.lower:
            lower, dual, gradient = state.lower, state.dual, state.dual_gradient
        stuck = found.value >= state.value and lower <= state.lower and not grown
        return WorkingState(
            x, *found[1:5], lower, dual, gradient, correlation, pool, state.sweeps + found.sweeps, stuck
        )

    def certify(self, problem: GLMProblem, state: WorkingState) -> Certificate:
        """By duality."""
        return certify_glm_gap(*self.subject(problem, state), state.dual_gradient)

    def _enough(self, state: WorkingState) -> float:
        return max(0.2 * self.tol * state.value, 0.05 * (state.value - state.lower))

    def _one_output(self, problem, state, pool, kept, grown) -> ProximalState:
        wanted = 0.2 * self.tol * state.value
        enough = self._enough(state) if grown else wanted  # this may be the last
        at = Point(*state[:5])._replace(x=state.x[kept])
        found = ProximalState(*at, -np.inf, state.slope, 0, False)
        with one_blas_thread():
            for _ in range(_INNER):
                found = _newton(problem, pool, found, enough, 0.5 * wanted)
                if found.stuck or found.value - found.lower <= enough:
                    break
        return found

    def _several_outputs(self, problem, state, columns, kept) -> ProximalState:
        part = replace(problem, design=problem.design.columns(columns))
        inner, enough = GLMProximalNewton(self.tol), self._enough(state)
        found = inner.init(part, state.x[kept], None)
        for _ in range(_INNER):
            if found.stuck or found.value - found.lower <= enough:
                break
            found = inner.step(part, found)
        return found


def _places(problem: GLMProblem, columns: np.ndarray) -> np.ndarray:
    """Where the parameters of some columns, and the intercept last, are among all."""
    return np.append(columns, problem.shape[0] - 1) if problem.design.intercept else columns


def _bound_of_all_columns(problem: GLMProblem, slope: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """The lower bound from slopes, the feasible slopes that give it, their ``X^T (p s)``; the same before shrinking."""
    slope = problem.balanced(problem.loss.clipped(slope))
    correlation = problem.without_intercept(problem.loss_gradient(slope))
    dual, gradient = problem.shrunk(slope, correlation)
    return problem.dual_value(dual, gradient), dual, gradient, correlation


def _grown(problem: GLMProblem, state: WorkingState) -> tuple[ColumnPool, bool]:
    """The working set with the columns of the largest correlations, and whether any is above the penalty."""
    correlation, weights = np.abs(state.correlation), problem.without_intercept(state.x)
    used, pool = np.flatnonzero(weights), state.pool
    count = max(len(used), max(_LEAST, int(_PER_ROOT * np.sqrt(len(weights)))))
    quadratic = isinstance(problem.loss, NamedLoss) and problem.loss.code == 2
    constant = problem.weights * state.curvature if quadratic else None
    if not len(pool.columns):
        correlation[used] = np.inf
        pool = ColumnPool(problem.design, _largest(correlation, count + len(used), _NEAR * problem.l1))
    else:
        near = (weights[pool.columns] != 0) | (correlation[pool.columns] > _NEAR * problem.l1)
        correlation[pool.columns] = 0.0
        if not np.any(correlation > problem.l1):
            return pool, False  # the set is complete, but must be solved more exactly
        if np.count_nonzero(near) < _KEPT * len(near):
            correlation[pool.columns[~near]] = np.abs(state.correlation)[pool.columns[~near]]
            pool = pool.part(np.flatnonzero(near))
        pool = pool.grown(_largest(correlation, count, _NEAR * problem.l1), constant)
    if constant is not None and not pool.kept.size and pool.is_for_gram(True):
        pool = pool.keeping(pool.gram(constant))
    return pool, len(pool.columns) > 0


def _largest(correlation: np.ndarray, count: int, least: float) -> np.ndarray:
    """The columns with the largest `correlation`, at most `count`, of those above `least`."""
    some = np.argpartition(correlation, -count)[-count:] if count < len(correlation) else np.arange(len(correlation))
    return np.sort(some[correlation[some] > least])


def _newton(problem: GLMProblem, pool: ColumnPool, at: ProximalState, enough: float, wanted: float) -> ProximalState:
    """One proximal Newton step with a line search on the columns of a pool, and a lower bound on the minimum there."""
    before = problem.without_intercept(at.x)
    some: Any = slice(None)
    if not pool.kept.size:  # the Gram matrix is for this step only: leave out what the step will not move
        correlation = pool.transposed(problem.weights * at.slope)
        some = np.flatnonzero((before != 0) | (np.abs(correlation) > _NEAR * problem.l1))
    part = pool if pool.kept.size else pool.part(some)
    model = minimise_model(problem, part, before[some], at.slope, at.curvature, 0.5 * enough, wanted)
    after = before.copy()
    after[some] = model.w
    step = after - before
    decline = -dot(problem.weights * at.slope, model.change) - problem.l2 * dot(before, step)
    decline -= problem.l1 * float(np.abs(after).sum() - np.abs(before).sum())
    if problem.design.intercept:
        step = np.append(step, model.shift)
    trial = descended(problem, at, step, model.change, decline)
    moved = trial or Point(*at[:5])
    lower, dual = best_dual(problem, at, moved, model.change, lambda slopes: _bound(problem, pool, slopes))
    return ProximalState(*moved, lower, dual, at.sweeps + model.sweeps, trial is None)


def _bound(problem: GLMProblem, pool: ColumnPool, slope: np.ndarray) -> float:
    """The lower bound on the minimum over the set."""
    slope = problem.balanced(slope)
    return problem.dual_value(*problem.shrunk(slope, pool.transposed(problem.weights * slope)))


def _small_set(problem: GLMProblem, state: WorkingState) -> np.ndarray:
    """The columns in use and those of the largest correlations, few enough for a small Hessian of all outputs."""
    weights = problem.without_intercept(state.x)
    correlation, used = np.abs(state.correlation).max(axis=1), (weights != 0).any(axis=1)
    size = min(max(200, 2 * int(used.sum())), SMALL // problem.loss.outputs - 1)
    if int(used.sum()) >= size and size < len(weights):  # no room for another column
        raise ValueError(
            f"an l1 penalty with {problem.loss.outputs} outputs is for fewer than {size} columns with weights; "
            f"{int(used.sum())} have some and more are needed: use a larger l1"
        )
    if size >= len(weights):
        return np.arange(len(weights))
    return np.sort(np.argpartition(np.where(used, np.inf, correlation), -size)[-size:])
