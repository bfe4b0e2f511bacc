"""The quadratic model of a Newton step with an l1 penalty, minimised over the columns of a pool."""

from typing import Any, NamedTuple

import numpy as np

from cumulant.glm.objective.design import DenseDesign, dot, unsigned
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.column_pool import ColumnPool
from cumulant.glm.solvers.coordinate_kernels import descend_columns, descend_model
from cumulant.glm.solvers.newton_step import solve_damped

_BY_GRAM, _BY_COLUMNS, _ROUNDS = 15, 50, 50  # sweeps before signs are first looked at; how often they are
_PATIENCE, _FEW, _FLIPS = 4, 3, 500  # weights that may become zero in one polishing: few, after some rounds many
_CHEAP = 4e8  # operations that the Hessian of the columns with weights, and its factor, may take


class ModelStep(NamedTuple):
    """The minimiser of a model: weights of the pool, what is added to the intercept, and the change of all scores."""

    w: np.ndarray
    shift: float
    change: np.ndarray
    sweeps: int


def minimise_model(
    problem: GLMProblem,
    pool: ColumnPool,
    x: np.ndarray,
    slope: np.ndarray,
    curvature: np.ndarray,
    enough: float,
    wanted: float,
) -> ModelStep:
    """Minimise the model of the losses around weights `x`, plus the penalties, until its duality gap is `enough`; as
    long as sweeps cost less than one product with the design, continue until it is `wanted`.

    By coordinate descent, on the Gram matrix where forming it is cheaper, and else by columns. Where sweeps are
    slow, the signs that they found give a linear system: see `polish`. The intercept is minimised over throughout.
    """
    weights, sloped = problem.weights * curvature, problem.weights * slope
    gradient, first, sums, total = pool.transposed(sloped), 0.0, np.zeros(len(x)), 1.0
    if problem.design.intercept and float(weights.sum()) > 0:
        total, sums = float(weights.sum()), pool.transposed(weights)
        first = -float(sloped.sum()) / total
        gradient = gradient + first * sums
    residual = slope + curvature * first
    energy = dot(problem.weights, residual**2 / np.maximum(curvature, 1e-300))
    w = x.copy()
    if pool.is_for_gram(bool(pool.kept.size)):
        gram = pool.gram(weights)
        if problem.design.intercept:
            gram = gram - np.outer(sums, sums / total)
        sweeps = _by_gram(problem, gram, gradient, w, energy, enough, wanted)
        change = pool.times(w - x)
    else:
        model = (weights, sums, total, gradient, energy)
        sweeps, change = _by_columns(problem, pool, model, x, w, enough, wanted)
    shift = first - dot(sums, w - x) / total
    return ModelStep(w, shift, change + shift, sweeps)


def _by_gram(problem, gram, gradient, w, energy, enough, wanted) -> int:
    slopes, sweeps = gradient.copy(), 0
    spare = 1 + problem.design.size // (1 + len(w) * max(20, np.count_nonzero(w)))
    for number in range(_ROUNDS):
        sought = _BY_GRAM << min(number, _PATIENCE)
        made, gap, energy = descend_model(
            gram, slopes, w, problem.l1, problem.l2, energy, enough, wanted, spare - sweeps, sought
        )
        sweeps += made
        if gap <= enough:
            break
        active, step = np.flatnonzero(w), np.zeros(len(w))
        if len(active) ** 3 > 3 * _CHEAP:
            continue
        flips = _FEW if number < _PATIENCE else _FLIPS
        step[active], settled = _polished(problem, gram[np.ix_(active, active)], slopes[active], w[active], flips)
        energy += dot(step, 2.0 * slopes + (bent := gram @ step))
        slopes += bent
        w += step
        if made < sought and settled:
            break
    return sweeps


def _by_columns(problem, pool, model, x, w, enough, wanted) -> tuple[int, np.ndarray]:
    weights, sums, total, gradient, energy = model
    diagonal = np.maximum(pool.squares(weights) - sums**2 / total, 0.0)
    image, slopes, sweeps = np.zeros(problem.n_terms), np.zeros(len(w)), 0
    spare = problem.design.size // (1 + pool.rows.size)
    dense = isinstance(pool.rows, DenseDesign)
    columns = (pool.rows.X, None, None, None) if dense else (None, *unsigned(pool.rows.X))
    for _ in range(_ROUNDS):
        made, gap = descend_columns(
            *columns, weights, sums, total, diagonal, gradient, x, problem.l1, problem.l2, energy, enough, wanted,
            spare - sweeps, _BY_COLUMNS, w, image, slopes,
        )  # fmt: skip
        sweeps += made
        if gap <= enough:
            break
        settled = _polish_columns(problem, pool, weights, sums, total, slopes, w, image)
        if made < _BY_COLUMNS and settled:
            break
    return sweeps, image


def _polish_columns(problem, pool, weights, sums, total, slopes, w, image) -> bool:
    """`polish` on the columns whose weight is not zero, in place, where their Hessian is cheap; True if none flips."""
    active = np.flatnonzero(w)
    part = pool.part(active)
    if active.size == 0 or active.size * part.rows.size + active.size**3 / 3 > _CHEAP:
        return True
    gram = part.gram(weights) - np.outer(sums[active], sums[active] / total)
    moved, settled = _polished(problem, gram, slopes[active], w[active], _FLIPS)
    w[active] += moved
    image += part.times(moved)
    return settled


def _polished(problem, gram, slopes, w, flips) -> tuple[np.ndarray, bool]:
    """The step of `polish` from weights of which none is zero, and whether none becomes it."""
    step = np.zeros(len(w))
    hessian, gradient = gram + problem.l2 * np.eye(len(w)), slopes + problem.l2 * w
    settled = polish(hessian, gradient, w, problem.l1, np.zeros(len(w), bool), step, flips)
    return step, settled


def polish(hessian: Any, gradient: Any, x: Any, l1: float, free: Any, step: np.ndarray, flips: int = _FLIPS) -> bool:
    """Solve the model on the coordinates that are not zero, in place; True if none of them became zero on the way.

    On data of very different scales coordinate descent finds the signs long before the values. With the signs given the
    model is a quadratic: one linear system. Moving towards its minimum lowers the model until a coordinate reaches
    zero; there it stays, and the rest continues, `flips` times at most. Where there are more coordinates than the
    rank of the Hessian, the path follows its null space, and ends when enough of them are zero.
    """
    for count in range(flips):
        here = x + step
        active = (here != 0) | free
        if not active.any():
            return count == 0
        slope = gradient + hessian @ step + np.where(free, 0.0, l1 * np.sign(here))
        move = solve_damped(hessian[np.ix_(active, active)], -slope[active])
        if move is None:
            return count == 0
        flipped = (np.sign(here[active] + move) != np.sign(here[active])) & ~free[active]
        if not flipped.any():
            step[active] += move
            return count == 0
        reach = -here[active][flipped] / move[flipped]
        step[active] += float(reach.min()) * move
        first = np.flatnonzero(active)[flipped][np.argmin(reach)]
        step[first] = -x[first]  # exactly zero
    return False
