"""Projections by ascent in their dual, as problems and a solver of `optim.run`: a gap that shrinks from both sides."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate, by_construction
from cumulant.errors import NotConvergedError
from cumulant.optim.driver.run import run
from cumulant.optim.protocol import Problem, Solver

_IN_VAIN = 5  # certified steps, one after the other, that leave the gap as it is: rounding is all that is left


class Nearest(NamedTuple):
    """A feasible point, its objective ``value``, a lower bound on every feasible value, and the multipliers that prove
    it.
    """

    point: np.ndarray
    value: float
    lower: float
    multipliers: np.ndarray
    iterations: int = 0

    @property
    def gap(self) -> float:
        """How far `value` can be above the optimum; half the squared distance to the projection is no larger."""
        return max(self.value - self.lower, 0.0)


class ProjectionProblem(Problem):
    """Half the squared distance to a set, as a concave function of multipliers.

    `floor` is a gap that rounding alone makes: always small enough.
    """

    floor: Any = 0.0

    def improve(self, multipliers: np.ndarray) -> tuple[np.ndarray, float]:
        """Better multipliers, and the increase of the dual that was promised."""
        raise NotImplementedError

    def certified(self, multipliers: np.ndarray) -> Nearest:
        """The point of these multipliers, made feasible, and the dual there."""
        raise NotImplementedError


class ProjectionState(NamedTuple):
    """The multipliers, the best feasible point so far, and how often in a row it was not improved."""

    x: np.ndarray
    best: Nearest
    in_vain: int


@dataclass(frozen=True)
class DualProjection(Solver):
    """Improve the multipliers; once little is promised, certify, and keep the point of the smallest duality gap.

    Steps are those of the problem: Newton's, or many of L-BFGS. `tol` is the gap that is aimed at, relative to the
    value: a step that promises more than a tenth of that is not certified.
    """

    tol: float

    backend: ClassVar[str] = "host"

    def init(self, problem: ProjectionProblem, x0: np.ndarray, rng: Any) -> ProjectionState:
        """At the multipliers `x0`."""
        return ProjectionState(x0, problem.certified(x0), 0)

    def step(self, problem: ProjectionProblem, state: ProjectionState) -> ProjectionState:
        """One improvement."""
        best = state.best
        x, promised = problem.improve(state.x)
        if promised > 0.1 * max(self.tol * max(best.lower, 0.0), problem.floor):
            return state._replace(x=x)
        found = problem.certified(x)
        in_vain = state.in_vain + 1 if found.gap > 0.9 * best.gap else 0
        return ProjectionState(x, found if found.gap < best.gap else best, in_vain)

    def solution(self, problem: ProjectionProblem, state: ProjectionState) -> np.ndarray:
        """The best feasible point."""
        return state.best.point

    def measure(self, problem: ProjectionProblem, state: ProjectionState) -> dict[str, float]:
        """The dual, to which `floor / tol` is added, and the duality gap: the rule of `run` is then
        ``gap <= tol * dual + floor``.
        """
        return {
            "value": max(state.best.lower, 0.0) + problem.floor / self.tol,
            "bound": state.best.gap,
            "stuck": float(state.in_vain >= _IN_VAIN),
        }

    def certify(self, problem: ProjectionProblem, state: ProjectionState) -> Certificate:
        """The duality gap. `certify_projection` issues the certificate of a model."""
        return Certificate(
            "1/2 |point - given|^2 - min over the set",
            state.best.gap,
            "Lagrangian duality",
            (by_construction("the point is feasible"),),
        )


def nearest_point(
    problem: ProjectionProblem, multipliers: np.ndarray, *, tol: float, enough: float, max_steps: int
) -> Nearest:
    """Run `DualProjection`; `NotConvergedError` where the relative gap stays above `enough` and the floor."""
    result = run(DualProjection(tol), problem, multipliers, max_steps=max_steps, tol=tol, progress=False)
    if result.status == "interrupted":
        raise KeyboardInterrupt
    found = result.state.best._replace(iterations=result.work)
    if not found.gap <= max(enough * found.value, problem.floor):
        relative = found.gap / found.value if found.value > 0 else math.inf
        raise NotConvergedError(
            f"the projection stopped after {result.work} steps at a relative gap of {relative:.2g}, above tol = "
            f"{enough:g}: raise max_steps or tol"
        )
    return found
