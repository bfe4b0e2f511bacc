"""When an unpenalised likelihood has no maximum: separated data."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from cumulant import optim
from cumulant.errors import NotConvergedError
from cumulant.glm.objective.losses import NamedLoss, SoftmaxLoss
from cumulant.glm.objective.problem import GLMProblem

_LARGEST = 5_000_000  # entries of the linear programme


def separating_direction(problem: GLMProblem) -> np.ndarray | None:
    """A direction along which no loss increases and some decrease without end; None if there is none.

    None also where the linear programme would be too large or is not solved.

    Along ``t d`` the loss of a success ends by not rising if ``x . d >= 0``, that of a failure or of a count of zero
    if ``x . d <= 0``, that of anything between only if ``x . d = 0``. Such a direction with a non-zero score exists if
    and only if there is no minimiser (Albert and Anderson 1984): a linear programme decides.
    """
    if isinstance(problem.loss, NamedLoss) and problem.loss.code < 2:
        signs = _signs(problem.loss)
        matrix = _with_ones(problem)
    elif isinstance(problem.loss, SoftmaxLoss):
        matrix, signs = _differences(problem)
    else:
        return None
    if matrix.shape[0] * matrix.shape[1] > _LARGEST:
        return None
    try:
        return optim.separating_direction(matrix, signs)
    except NotConvergedError:
        return None


def _signs(loss: NamedLoss) -> np.ndarray:
    signs = np.where(loss.y == 0, -1.0, 0.0)
    return np.where(loss.y == loss.scale, 1.0, signs) if loss.code == 0 else signs


def _with_ones(problem: GLMProblem) -> Any:
    rows = problem.design.by_rows
    return sp.csr_matrix(sp.hstack([rows, np.ones((rows.shape[0], 1))])) if problem.design.intercept else rows


def _differences(problem: GLMProblem) -> tuple[Any, np.ndarray]:
    """One row for each observation and other class: the score of its own class less that of the other."""
    loss, rows = problem.loss, _with_ones(problem)
    blocks = []
    for other in range(loss.outputs):
        for own in range(loss.outputs):
            if own != other:
                pick = np.zeros((1, loss.outputs))
                pick[0, own], pick[0, other] = 1.0, -1.0
                blocks.append(sp.kron(rows[loss.y == own], pick))
    matrix: Any = sp.csr_matrix(sp.vstack(blocks))
    return matrix, np.ones(matrix.shape[0])
