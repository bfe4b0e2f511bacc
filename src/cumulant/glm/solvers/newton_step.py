"""Newton's direction for a generalised linear model, and the dual slopes that come with it."""

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from cumulant.glm.objective.design import DenseDesign, dot
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.line_search import linear_slopes, point_at
from cumulant.threads import one_blas_thread

SMALL = 500  # parameters: up to here the Hessian is formed and factorised
_ITERATIONS = 500
_potrf: Any
_potrs: Any
_potrf, _potrs = get_lapack_funcs(("potrf", "potrs"), dtype=np.float64)
_BLAS = 5.0  # operations of a product of matrices in the time of one of a product with a vector
_ALONE = 64  # rows of a matrix that LAPACK factorises on one thread anyway
NO_FACTOR = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class Direction:
    """A direction `d` in parameters, the change of scores `X d`, and ``residual = -gradient - H d``."""

    step: np.ndarray
    change: np.ndarray
    residual: np.ndarray
    products: int  # with the Hessian
    solved: bool = True  # as exactly as was asked for


def is_small(problem: GLMProblem) -> bool:
    """Whether forming the Hessian is cheaper than some dozens of products with it."""
    return math.prod(problem.shape) <= SMALL


def products_of_a_factor(problem: GLMProblem) -> float:
    """How many products with the Hessian take as long as forming ``X^T W X`` and factorising it, by operations.

    Infinite where that matrix would take more memory than the data.
    """
    (n, columns), k = problem.design.shape, problem.loss.outputs
    size = problem.design.size
    if columns**2 > size:
        return np.inf
    formed, solved, product = size * size / n, columns**3 / 3, 4.0 * size * k
    if not isinstance(problem.design, DenseDesign):
        return (formed + solved / _BLAS) / product
    # With several outputs both are products of matrices.
    return (formed + solved) / product / (_BLAS if k == 1 else 1.0)


def common_factor(problem: GLMProblem, curvature: np.ndarray) -> np.ndarray:
    """Cholesky's factor of the Hessian, or for several outputs of the mean of its diagonal blocks; else empty.

    As a preconditioner it knows how columns are correlated, which the diagonal does not. It keeps being one while the
    curvatures of the rows change: for one output the condition number is at most the ratio of the largest factor by
    which one changes to the smallest.
    """
    own = curvature if curvature.ndim == 1 else np.mean(curvature * (1.0 - curvature), axis=1)
    matrix = problem.design.gram(problem.weights * own)
    matrix.flat[:: len(matrix) + 1] += problem.ridge(np.ones(len(matrix)))
    with _alone(len(matrix)):
        factor = _factor(matrix, 0.0)
    return NO_FACTOR if factor is None else factor


def by_factorisation(problem: GLMProblem, curvature: np.ndarray, gradient: np.ndarray) -> tuple[Direction, np.ndarray]:
    """Solve Newton's equation by Cholesky's factorisation; the shortest solution where it has many.

    The factor comes with it, empty for the latter and for several outputs.
    """
    matrix = problem.hessian(curvature)
    step, factor = _solved(matrix, -gradient.ravel())
    step = step.reshape(gradient.shape)
    found = Direction(step, problem.design.times(step), np.zeros_like(step), 0)
    return found, NO_FACTOR if factor is None or gradient.ndim > 1 else factor


def one_thread_if_small(problem: GLMProblem) -> Any:
    """A context in which BLAS stays on one thread, where products of the data with a vector for each output take less
    time than waking the others.
    """
    few = problem.loss.outputs > 1 and len(problem.design.edges) == 2
    return one_blas_thread() if few else nullcontext()


def _alone(rows: int) -> Any:
    return nullcontext() if rows <= _ALONE else one_blas_thread()


def solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The shortest solution of a symmetric system, positive semi-definite up to rounding."""
    return _solved(matrix, right)[0]


def _solved(matrix: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    with _alone(len(matrix)):
        factor = _factor(matrix, 0.0)
        if factor is not None:
            return _potrs(factor, right, lower=1)[0], factor
        values, vectors = np.linalg.eigh(matrix)
    kept = values > len(values) * 2.0**-50 * max(values[-1], 0.0)
    return vectors[:, kept] @ ((vectors[:, kept].T @ right) / values[kept]), None


def solve_damped(matrix: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """The same, but where the matrix is singular the solution with a little added to its diagonal: long in the
    directions in which the system has none. None where even that fails.
    """
    with _alone(len(matrix)):
        factor = _factor(matrix, 0.0)
        factor = _factor(matrix, 1e-10) if factor is None else factor
        return None if factor is None else _potrs(factor, right, lower=1)[0]


def _factor(matrix: np.ndarray, damping: float) -> np.ndarray | None:
    """The lower triangle ``L`` with ``L L^T = matrix``; what is above the diagonal means nothing."""
    # Columns of very different scales make a matrix look singular that is not: give it a diagonal of ones first.
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
    scaled = matrix * scale[:, None] * scale
    if damping:
        scaled.flat[:: len(scaled) + 1] += damping
    factor, failed = _potrf(scaled.T, lower=1, clean=0, overwrite_a=1)  # in the order of LAPACK, which costs no copy
    if failed:
        return None
    pivots = np.diagonal(factor)
    if pivots.min() <= 1e-6 * pivots.max() and not damping:
        return None
    factor *= 1.0 / scale[:, None]
    return factor


def by_conjugate_gradients(
    problem: GLMProblem,
    curvature: np.ndarray,
    gradient: np.ndarray,
    forcing: float,
    enough: float,
    factor: np.ndarray = NO_FACTOR,
    most: float = _ITERATIONS,
) -> Direction:
    """Solve it by conjugate gradients, until the residual has fallen by `forcing` or after `most` products.

    The preconditioner is a factor of an earlier Hessian, or where there is none the diagonal of this one. Where the
    direction promises a decrease of `enough` or less, the solution is near: then continue until the residual costs
    the duality gap less than a quarter of `enough`.
    """
    with one_blas_thread() if factor.size and gradient.ndim == 1 else one_thread_if_small(problem):
        return _conjugate_gradients(problem, curvature, gradient, forcing, enough, factor, most)


def _conjugate_gradients(problem, curvature, gradient, forcing, enough, factor, most):
    inverse = np.ones(())
    if not factor.size:
        diagonal = problem.diagonal(curvature)
        inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)

    def precondition(r):
        return _potrs(factor, r, lower=1)[0] if factor.size else inverse * r

    step, residual = np.zeros_like(gradient), -gradient
    direction = z = precondition(residual)
    product = first = dot(residual, z)
    promised = 0.0
    count, solved = 0, True
    while product > 1e-30 * first:
        if count >= most:
            solved = False
            break
        image = problem.hessian_product(curvature, direction)
        bend = dot(direction, image)
        if not bend > 0:
            break
        length = product / bend
        step = step + length * direction
        residual = residual - length * image
        count += 1
        promised += 0.5 * length * product
        z = precondition(residual)
        product, previous = dot(residual, z), product
        if product <= forcing**2 * first:
            if promised > enough or problem.l2 == 0:
                break
            weights = problem.without_intercept(residual)
            if dot(weights, weights) <= 0.5 * problem.l2 * enough:
                break
        direction = z + (product / previous) * direction
    return Direction(step, problem.design.times(step), residual, count, solved)


def dual_slopes(problem: GLMProblem, at: Any, gradient: np.ndarray, found: Direction) -> tuple[np.ndarray, float]:
    """Dual slopes from the linear model of a Newton step at a `Point`, and their dual value as the step promises it.

    At ``x + d`` the linear model of the slopes is ``s + phi'' X d``, and Newton's equation says that its ``X^T (p s)``
    is ``-l2 (w + d)``, the optimality condition, up to the residual. So these slopes are optimal to second order in
    ``d`` where those of ``x + d`` itself would leave the gap ``|gradient|^2 / (2 l2)``.
    """
    moved, t = linear_slopes(problem, at, found.change)
    # (1 - t) X^T (p s) + t (-l2 (w + d) - residual)
    target = -t * (problem.ridge(at.x + found.step) + found.residual)
    if t < 1:
        target = target + (1 - t) * (gradient - problem.ridge(at.x))
    return moved, problem.dual_value(moved, problem.without_intercept(target))


def newton_slopes(problem: GLMProblem, x: Any) -> np.ndarray:
    """Dual slopes from one Newton step at `x`, solved as exactly as can be."""
    at = point_at(problem, x)
    gradient = problem.loss_gradient(at.slope) + problem.ridge(at.x)
    if is_small(problem):
        found, _ = by_factorisation(problem, at.curvature, gradient)
    else:
        found = by_conjugate_gradients(problem, at.curvature, gradient, 1e-10, 0.0)
    return dual_slopes(problem, at, gradient, found)[0]
