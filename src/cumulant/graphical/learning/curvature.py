"""The largest curvature of a learning problem over its set, as far as a search finds it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks, randomness
from cumulant.errors import TooWide
from cumulant.graphical.learning.problem import LearningProblem

_MOST = 65_536  # states


@dataclass(frozen=True)
class Curvature:
    """``largest_eigenvalue(Cov T) + l2`` at `theta`: the largest that was found."""

    value: float
    theta: np.ndarray


def largest_curvature(problem: LearningProblem, *, starts: int = 4, steps: int = 20, rng: Any = 0) -> Curvature:
    """The largest ``lambda_max(Cov_theta T) + l2`` that projected ascent finds in the set, by sums over all states.

    It is a lower bound on every Lipschitz constant of the gradient, and the best constant if the search found the
    maximum, which is not proved: `MCMC` with ``smoothness=`` this makes a much shorter run, whose certificate says that
    the constant is assumed. The derivative of the eigenvalue is the third cumulant ``E[(v^T T)^2 T]`` of centred ``T``,
    ``v`` the eigenvector.

    Parameters
    ----------
    problem : LearningProblem
        With a set, of at most 65,536 states.
    starts, steps : int
        Searches from zero and from as many random points, and steps of each.
    rng : int, Generator or None

    Examples
    --------
    >>> from cumulant.graphical import FastMixing, learning_problem
    >>> problem = learning_problem([0.1, 0.2], [(0, 1), (1, 2)], mixing=FastMixing(0.2, "box"), l2=1.0, fields=False)
    >>> round(largest_curvature(problem).value, 6), round(problem.smoothness, 6)  # at zero the edges are independent
    (2.0, 3.0)
    """
    checks.instance("problem", problem, LearningProblem, "a LearningProblem")
    family, free = problem.model.family, problem.free
    if np.prod(family.structure.cardinalities.astype(float)) > _MOST:
        raise TooWide(f"largest_curvature sums over all states and takes at most {_MOST}: see problem.smoothness")
    checks.whole("starts", starts, 0)
    checks.whole("steps", steps, 0)
    states = np.stack(
        [axis.ravel() for axis in np.meshgrid(*(np.arange(q) for q in family.structure.cardinalities), indexing="ij")]
    ).T
    T = family.statistics(family.values(states))[:, free]
    draw, best = randomness.generator(rng), Curvature(-np.inf, np.zeros(free.size))
    for k in range(starts + 1):
        theta, _ = problem.project(np.zeros(free.size) if k == 0 else 10.0 * draw.normal(size=free.size))
        length = 1.0
        value, slope = _curvature(T, theta)
        for _ in range(steps):
            new, _ = problem.project(theta + length * slope)
            found, new_slope = _curvature(T, new)
            if found > value:
                theta, value, slope, length = new, found, new_slope, 2.0 * length
            else:
                length *= 0.25
        if value + problem.l2 > best.value:
            best = Curvature(value + problem.l2, theta)
    return best


def _curvature(T, theta):
    score = T @ theta
    p = np.exp(score - score.max())
    p /= p.sum()
    centred = T - p @ T
    values, vectors = np.linalg.eigh(centred.T @ (p[:, None] * centred))
    along = (centred @ vectors[:, -1]) ** 2
    return float(values[-1]), centred.T @ (p * along)
