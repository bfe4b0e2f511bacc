"""Standard errors of a generalised linear model: roots of the inverse Fisher information."""

import numpy as np

from cumulant.errors import NoEstimateError
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.newton_step import solve

__all__ = ["standard_errors"]


def standard_errors(
    problem: GLMProblem, x: np.ndarray, total: float, dispersed: bool, expected: bool
) -> tuple[np.ndarray, float]:
    """The standard errors of `x`, in its shape, and the dispersion.

    The information is ``total (H + l2 I)``, `total` the number of observations. With `dispersed` the dispersion is
    Pearson's statistic over what degrees of freedom are left, else one. With `expected` the curvature of a loss is
    taken as one: the expected information of a gamma observation under the log link, where the observed is
    ``y / mean``.
    """
    _, slope, curvature = problem.loss.terms(problem.scores(x))
    information = total * problem.hessian(np.ones_like(curvature) if expected else curvature)
    if not float(np.linalg.eigvalsh(_unit(information))[0]) > 1e-13 * len(information):
        raise NoEstimateError("no standard errors: columns of X are linearly dependent; drop some or use l2 > 0")
    dispersion = 1.0
    if dispersed:
        spare = total - len(information)
        if not spare > 0:
            raise NoEstimateError(f"no standard errors: {total:g} observations for {len(information)} parameters")
        # The slope is Pearson's residual: mean - y, and 1 - y / mean for gamma observations.
        dispersion = total * float(problem.weights @ slope**2) / spare
    inverse = np.stack([solve(information, row) for row in np.eye(len(information))])
    return np.sqrt(dispersion * np.diagonal(inverse)).reshape(x.shape), dispersion


def _unit(matrix: np.ndarray) -> np.ndarray:
    """A symmetric matrix scaled to a diagonal of ones (zero where it was zero)."""
    scale = 1.0 / np.sqrt(np.where(np.diagonal(matrix) > 0, np.diagonal(matrix), np.inf))
    return matrix * scale[:, None] * scale
