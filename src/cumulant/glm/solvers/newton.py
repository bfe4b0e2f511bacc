"""Newton's method for generalised linear models with an l2 penalty, or none."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError
from cumulant.glm.objective.certify import certify_glm_concordance, certify_glm_gap
from cumulant.glm.objective.design import dot
from cumulant.glm.objective.duality_gap import PrimalDual
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.line_search import Point, descended, point_at
from cumulant.glm.solvers.newton_step import (
    NO_FACTOR,
    Direction,
    by_conjugate_gradients,
    by_factorisation,
    common_factor,
    dual_slopes,
    is_small,
    products_of_a_factor,
)
from cumulant.optim.protocol import Solver

_AFFORDABLE = 3.0  # products in the time of a factorisation from which an old factor is tried first
_MANY, _PER_PARAMETER, _SHARE = 20_000, 50, 8  # rows from which a part of them, one in eight, is solved first


class NewtonState(NamedTuple):
    """The iterate with its scores, losses' slopes and curvatures; the best lower bound so far and its dual slopes."""

    x: np.ndarray
    value: float
    eta: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    lower: float
    dual: np.ndarray  # feasible where `lower` is finite
    dual_gradient: np.ndarray  # their X^T (p s)
    decrement: float
    first: float  # the size of the gradient at the start
    passes: int  # over the data: products with the matrix, forming the Hessian
    stuck: bool
    factor: np.ndarray  # Cholesky's, of an earlier Hessian; empty where there is none
    spent: int  # products since it was formed


@dataclass(frozen=True)
class GLMNewton(Solver):
    """Newton's method with a line search; the equation is solved by factorisation, or by conjugate gradients.

    With up to 500 parameters the Hessian is formed and factorised. The factor then is the preconditioner of conjugate
    gradients, which solve the equations of later steps as exactly as the gap needs, unless that takes longer than to
    factorise again. With more parameters the preconditioner is the diagonal, until products with the Hessian have taken
    as long as a factorisation, and then a factor. Times are predicted by counts of operations
    (`products_of_a_factor`). Each step gives a dual point of the accuracy of the step (`dual_slopes`), so that the
    duality gap follows the distance to the minimum instead of the norm of the gradient. Inexact steps as in Dembo,
    Eisenstat and Steihaug (1982).

    Parameters
    ----------
    tol : float
        The relative gap that is aimed at: how exactly equations are solved near the end depends on it.

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.glm import design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), l2=0.5)
    >>> result = optim.run(GLMNewton(), problem, [0.0], tol=1e-8)
    >>> result.status, result.x.round(6)
    ('converged', array([1.066667]))
    """

    tol: float = 1e-4

    backend: ClassVar[str] = "host"

    def init(self, problem: GLMProblem, x0: Any, rng: Any) -> NewtonState:
        """Losses at `x0`."""
        if problem.l1:
            raise ValueError("Newton's method needs a differentiable objective: l1 must be 0")
        at = point_at(problem, x0)
        return NewtonState(*at, -np.inf, at.slope, problem.without_intercept(at.x), np.inf, 0.0, 1, False, NO_FACTOR, 0)

    def step(self, problem: GLMProblem, state: NewtonState) -> NewtonState:
        """One step."""
        gradient = problem.loss_gradient(state.slope) + problem.ridge(state.x)
        size = float(np.abs(gradient).max())
        first = state.first or size
        forcing = min(0.5, np.sqrt(size / first)) if first else 0.5  # superlinear: Dembo, Eisenstat, Steihaug 1982
        found, factor, spent = self._direction(problem, state, gradient, forcing)
        decline = -dot(gradient, found.step)
        trial = descended(problem, state, found.step, found.change, decline)
        moved, passes = trial or Point(*state[:5]), state.passes + 3 + 2 * found.products
        lower, dual, dual_gradient = state.lower, state.dual, state.dual_gradient
        if problem.l2 > 0 and decline <= 0.1 * moved.value:  # before, the bound is too weak to be of use
            slopes, promise = dual_slopes(problem, state, gradient, found)
            # The promised value needs no product with the matrix. It is computed, by one, when it is good enough.
            if promise > lower and (moved.value - promise <= self.tol * moved.value or trial is None):
                slopes, gradient = problem.feasible(slopes)
                promise = problem.dual_value(slopes, gradient)
                passes += 1
                if promise > lower:
                    lower, dual, dual_gradient = promise, slopes, gradient
        decrement = float(np.sqrt(max(decline, 0.0)))
        stuck = trial is None
        if problem.l2 == 0:  # where there is no bound, what a Newton step promises decides
            # and less than a unit in the last place of the objective cannot be gained
            stuck = stuck or decline <= max(min(self.tol, 1e-6) ** 2, 2.0**-53) * abs(moved.value)
        return NewtonState(*moved, lower, dual, dual_gradient, decrement, first, passes, stuck, factor, spent)

    def _direction(self, problem, state, gradient, forcing) -> tuple[Direction, np.ndarray, int]:
        """The direction, the factor that is kept, and the products since it was formed."""
        enough, affordable = self.tol * state.value, products_of_a_factor(problem)
        factor, spent = state.factor, state.spent
        if is_small(problem):
            if factor.size and affordable >= _AFFORDABLE and problem.l2 > 0:
                found = by_conjugate_gradients(problem, state.curvature, gradient, forcing, enough, factor, affordable)
                if found.solved:
                    return found, factor, spent + found.products
            return *by_factorisation(problem, state.curvature, gradient), 0
        if spent >= affordable:
            factor, spent = common_factor(problem, state.curvature), 0
        found = by_conjugate_gradients(problem, state.curvature, gradient, forcing, enough, factor)
        return found, factor, spent + found.products

    def measure(self, problem: GLMProblem, state: NewtonState) -> dict[str, float]:
        """The objective and the bound on its distance to the minimum."""
        return {
            "value": state.value,
            "bound": self._bound(problem, state),
            "decrement": state.decrement,
            "passes": float(state.passes),
            "stuck": float(state.stuck),
        }

    def _bound(self, problem, state):
        if problem.l2 > 0:
            return state.value - state.lower
        small = state.decrement**2 <= max(self.tol * abs(state.value), 1e-14) or state.stuck
        if not (small and is_small(problem)):
            return np.inf
        try:
            return certify_glm_concordance(problem, state.x).upper
        except CertificateError:
            return np.inf

    def certify(self, problem: GLMProblem, state: NewtonState) -> Certificate:
        """By duality where there is a penalty, else by self-concordance."""
        if problem.l2 == 0:
            return certify_glm_concordance(problem, state.x)
        gradient = state.dual_gradient if np.isfinite(state.lower) else None
        return certify_glm_gap(*self.subject(problem, state), gradient)

    def subject(self, problem: GLMProblem, state: NewtonState) -> Subject:
        """The weights, and their dual slopes where the run has computed them."""
        finite = problem.l2 > 0 and np.isfinite(state.lower)
        return Subject(problem, PrimalDual(state.x, state.dual) if finite else state.x)


def starting_point(problem: GLMProblem) -> np.ndarray:
    """Where to begin: no weights and the best intercept; with many rows for each parameter, the minimiser for a part.

    The minimiser for one row in eight is as far from that of all rows as sampling makes it, which Newton's method
    corrects in two steps; its steps cost an eighth.
    """
    x = problem.constant_start()
    n, parameters = problem.n_terms, math.prod(problem.shape)
    if problem.l1 or not is_small(problem) or n < max(_MANY, _PER_PARAMETER * parameters):
        return x
    # Evenly spread, so that data sorted by class are fairly represented.
    part = problem.take(slice(None, None, _SHARE))
    solver = GLMNewton(tol=1e-2)
    state = solver.init(part, x, None)
    for _ in range(12):
        previous, state = state, solver.step(part, state)
        if state.stuck or previous.value - state.value <= 1e-2 * abs(state.value):
            break
    return state.x if np.all(np.isfinite(state.x)) else x
