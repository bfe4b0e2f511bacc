"""What the solvers of generalised linear models share: an iterate, its line search, slopes for the dual."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from cumulant.glm.objective.design import dot
from cumulant.glm.objective.problem import GLMProblem

_ARMIJO = 1e-4

Trial = TypeVar("Trial", bound=tuple)


class Point(NamedTuple):
    """An iterate with its objective and scores, and the losses' slopes and curvatures. States of solvers begin so."""

    x: np.ndarray
    value: float
    eta: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


def point_at(problem: GLMProblem, x0: Any) -> Point:
    """The iterate `x0`."""
    x = np.array(x0, dtype=np.float64)
    return _point(problem, x, problem.scores(x))


def _point(problem: GLMProblem, x: np.ndarray, eta: np.ndarray) -> Point:
    losses, slope, curvature = problem.loss.terms(eta)
    return Point(x, dot(problem.weights, losses) + problem.penalty(x), eta, slope, curvature)


def first_lower(value: float, decline: float, trial: Callable[[float], Trial]) -> Trial | None:
    """The first of ``trial(1), trial(1/2), ...``, pairs of a point and its value or longer, to fall by enough (Armijo).

    None where `decline`, the decrease that a step promises, is not positive, or no step is low enough.
    """
    length = 1.0
    while decline > 0 and length > 1e-10:
        found = trial(length)
        if found[1] <= value - _ARMIJO * length * decline:
            return found
        length *= 0.5
    return None


def descended(problem: GLMProblem, at: Any, step: np.ndarray, change: np.ndarray, decline: float) -> Point | None:
    """`first_lower` along a `step`, which changes the scores by `change`, from a `Point` or a state."""
    return first_lower(
        at.value, decline, lambda length: _point(problem, at.x + length * step, at.eta + length * change)
    )


def linear_slopes(problem: GLMProblem, at: Any, change: np.ndarray) -> tuple[np.ndarray, float]:
    """The linear model of the losses' slopes after a `change` of scores, as far as the dual allows; and that share."""
    bends = problem.loss.apply(at.curvature, change)
    share = problem.loss.reach(at.slope, bends)
    return at.slope + share * bends, share
