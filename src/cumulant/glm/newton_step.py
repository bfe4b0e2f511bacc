"""Newton's direction for a generalised linear model, and the dual slopes that come with it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cumulant.glm.design import dot
from cumulant.glm.problem import GLMProblem
from cumulant.threads import one_blas_thread

__all__ = ["SMALL", "Direction", "by_conjugate_gradients", "by_factorisation", "dual_slopes", "is_small"]

SMALL = 500  # parameters: up to here the Hessian is formed and factorised
_ITERATIONS = 500


@dataclass(frozen=True, eq=False)
class Direction:
    """A direction `d` in parameters, the change of scores `X d`, and ``residual = -gradient - H d``."""

    step: np.ndarray
    change: np.ndarray
    residual: np.ndarray
    products: int  # with the Hessian


def is_small(problem: GLMProblem) -> bool:
    """Whether forming the Hessian is cheaper than some dozens of products with it."""
    return int(np.prod(problem.shape)) <= SMALL


def by_factorisation(problem: GLMProblem, curvature: np.ndarray, gradient: np.ndarray) -> Direction:
    """Solve Newton's equation by Cholesky's factorisation; the shortest solution where it has many."""
    step = -solve(problem.hessian(curvature), gradient.ravel()).reshape(gradient.shape)
    return Direction(step, problem.design.times(step), np.zeros_like(step), 0)


def solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The shortest solution of a symmetric system, positive semi-definite up to rounding."""
    with one_blas_thread():
        found = _by_cholesky(matrix, right, 0.0)
        if found is not None:
            return found
        values, vectors = np.linalg.eigh(matrix)
    kept = values > len(values) * 2.0**-50 * max(values[-1], 0.0)
    return vectors[:, kept] @ ((vectors[:, kept].T @ right) / values[kept])


def solve_damped(matrix: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """The same, but where the matrix is singular the solution with a little added to its diagonal: long in the
    directions in which the system has none. None where even that fails.
    """
    with one_blas_thread():
        found = _by_cholesky(matrix, right, 0.0)
        return _by_cholesky(matrix, right, 1e-10) if found is None else found


def _by_cholesky(matrix: np.ndarray, right: np.ndarray, damping: float) -> np.ndarray | None:
    # Columns of very different scales make a matrix look singular that is not: give it a diagonal of ones first.
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
    scaled = matrix * scale[:, None] * scale
    if damping:
        scaled[np.diag_indices_from(scaled)] += damping
    try:
        factor = cho_factor(scaled, lower=True, check_finite=False)
    except LinAlgError:
        return None
    pivots = np.diagonal(factor[0])
    if pivots.min() <= 1e-6 * pivots.max() and not damping:
        return None
    return scale * cho_solve(factor, scale * right, check_finite=False)


def by_conjugate_gradients(
    problem: GLMProblem, curvature: np.ndarray, gradient: np.ndarray, forcing: float, enough: float
) -> Direction:
    """Solve it by conjugate gradients with the diagonal as preconditioner, until the residual has fallen by `forcing`.

    Where the direction promises a decrease of `enough` or less, the end is near: then go on until the residual costs
    the duality gap less than a quarter of `enough`.
    """
    diagonal = problem.diagonal(curvature)
    inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
    step, residual = np.zeros_like(gradient), -gradient
    direction = z = inverse * residual
    product = first = dot(residual, z)
    promised = 0.0
    count = 0
    while count < _ITERATIONS and product > 1e-30 * first:
        image = problem.hessian_product(curvature, direction)
        bend = dot(direction, image)
        if not bend > 0:
            break
        length = product / bend
        step = step + length * direction
        residual = residual - length * image
        count += 1
        promised += 0.5 * length * product
        z = inverse * residual
        product, previous = dot(residual, z), product
        if product <= forcing**2 * first:
            if promised > enough or problem.l2 == 0:
                break
            weights = problem.without_intercept(residual)
            if dot(weights, weights) <= 0.5 * problem.l2 * enough:
                break
        direction = z + (product / previous) * direction
    return Direction(step, problem.design.times(step), residual, count)


def dual_slopes(
    problem: GLMProblem,
    x: np.ndarray,
    slope: np.ndarray,
    curvature: np.ndarray,
    gradient: np.ndarray,
    found: Direction,
) -> tuple[np.ndarray, float]:
    """Dual slopes from the linear model of a Newton step, and their dual value as the step promises it.

    At ``x + d`` the linear model of the slopes is ``s + phi'' X d``, and Newton's equation says that its ``X^T (p s)``
    is ``-l2 (w + d)``, the optimality condition, up to the residual. So these slopes are optimal to second order in
    ``d`` where those of ``x + d`` itself would leave the gap ``|gradient|^2 / (2 l2)``.
    """
    change = problem.loss.apply(curvature, found.change)
    t = problem.loss.reach(slope, change)
    moved = slope + t * change
    # (1 - t) X^T (p s) + t (-l2 (w + d) - residual)
    target = -t * (problem.ridge(x + found.step) + found.residual)
    if t < 1:
        target = target + (1 - t) * (gradient - problem.ridge(x))
    return moved, problem.dual_value(moved, problem.without_intercept(target))


def newton_slopes(problem: GLMProblem, x: Any) -> np.ndarray:
    """Dual slopes from one Newton step at `x`, solved as exactly as can be."""
    x = np.asarray(x, dtype=np.float64)
    _, slope, curvature = problem.loss.terms(problem.scores(x))
    gradient = problem.loss_gradient(slope) + problem.ridge(x)
    if is_small(problem):
        found = by_factorisation(problem, curvature, gradient)
    else:
        found = by_conjugate_gradients(problem, curvature, gradient, 1e-10, 0.0)
    return dual_slopes(problem, x, slope, curvature, gradient, found)[0]
