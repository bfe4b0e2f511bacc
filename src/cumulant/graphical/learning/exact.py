"""Solvers of learning problems whose gradient can be computed, and the certificate from strong convexity."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate, by_construction, check, issuer, rounding
from cumulant.graphical.learning.problem import Fit, LearningProblem
from cumulant.optim.protocol import Solver
from cumulant.optim.solvers.lbfgs import LBFGS

__all__ = ["AcceleratedProjectedGradient", "QuasiNewton", "certify_gap"]

_STATIONARY = 1e-10


@issuer
def certify_gap(problem: LearningProblem, answer: Any) -> Certificate:
    """``f(theta) - min f`` over the set, from the gradient at ``theta`` and strong convexity.

    For all ``z``, ``f(z) >= f(theta) + <g, z - theta> + l2/2 |z - theta|^2``, whose minimum over the set is at the
    projection ``z`` of ``theta - g / l2``: ``f(theta) - f* <= <g, theta - z> - l2/2 |theta - z|^2``, without a set
    ``|g|^2 / (2 l2)`` (Polyak 1963). A projection whose half squared distance may be ``e^2 / 2`` too large adds
    ``l2 e^2 / 2``. The slack is the rounding of the gradient and of the sums. `answer` is a `Fit`, or the free
    parameters.
    """
    theta = problem.unbind(answer.model) if isinstance(answer, Fit) else np.asarray(answer)
    l2 = problem.l2
    convex = check(l2 > 0, "the objective is strongly convex", f"l2 = {l2:g}")
    value, g = problem.value_and_gradient(theta)
    target = theta - g / l2
    z, error = problem.project(target)
    move, outside = theta - z, l2 * float(np.linalg.norm(target - z))
    bound = max(float(g @ move - 0.5 * l2 * (move @ move)), 0.0) + 0.5 * l2 * error**2
    doubt = problem.gradient_rounding(theta)
    slack = doubt * float(np.linalg.norm(move)) + doubt**2 / (2.0 * l2)
    slack += rounding(g * move, l2 * move**2, outside * target, terms=theta.size + 8.0)
    assumptions = [convex, by_construction("gradients are exact but for rounding")]
    if problem.fast_set is not None and problem.mixing is not None:
        size, radius = problem.fast_set.size(theta), problem.mixing.radius
        inside = check(size <= radius * (1.0 + 1e-9), "theta lies in the set", f"norm {size:.9g}, radius {radius:g}")
        assumptions.append(inside)
    return Certificate(
        f"{problem.objective}(theta) - min",
        bound,
        "strong convexity at the projected gradient step of length 1 / l2 (Polyak 1963)",
        tuple(assumptions),
        slack=slack,
        details={"value": value},
    )


@dataclass(frozen=True)
class QuasiNewton(LBFGS):
    """L-BFGS on a learning problem without a set."""

    def certify(self, problem: LearningProblem, state: Any) -> Certificate:
        """See `certify_gap`."""
        return certify_gap(problem, state.x)


class AcceleratedState(NamedTuple):
    """The iterate, the point of the next gradient, the momentum, and what the last step showed."""

    x: np.ndarray
    ahead: np.ndarray
    momentum: float
    value: float
    bound: float
    residual: float


@dataclass(frozen=True)
class AcceleratedProjectedGradient(Solver):
    """Nesterov's method in a set, ``x_next = project(y - grad f(y) / L)``, restarted where the momentum points uphill.

    With ``G = L (y - x_next)`` and ``l2 > 0``: ``f(x_next) - f* <= |G|^2 (1 / (2 l2) - 1 / (2 L))`` (Nesterov 2018,
    theorem 2.2.13), to which a projection that is off by ``e`` adds ``L e^2 / 2``, and ``L e`` to ``|G|``. The recorded
    value is the upper bound ``f(y) + <g, x - y> + L/2 |x - y|^2`` on ``f(x)``. Restarts: O'Donoghue and Candes (2015).
    """

    backend: ClassVar[str] = "host"

    def init(self, problem: LearningProblem, x0: np.ndarray, rng: Any) -> AcceleratedState:
        """At the projection of `x0`."""
        x, _ = problem.project(x0)
        value, gradient = problem.value_and_gradient(x)
        return AcceleratedState(x, x, 1.0, value, np.inf, float(np.linalg.norm(gradient)))

    def step(self, problem: LearningProblem, state: AcceleratedState) -> AcceleratedState:
        """A projected gradient step from the extrapolated point, and the next extrapolation."""
        L, y = problem.smoothness, state.ahead
        value, gradient = problem.value_and_gradient(y)
        x, error = problem.project(y - gradient / L)
        back = y - x
        size = L * (float(np.linalg.norm(back)) + error)
        bound = np.inf
        if problem.l2 > 0:
            bound = size**2 * (0.5 / problem.l2 - 0.5 / L) + 0.5 * L * error**2
        momentum = 1.0 if back @ (x - state.x) > 0 else state.momentum
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = x + (momentum - 1.0) / following * (x - state.x)
        value = value - float(gradient @ back) + 0.5 * L * float(back @ back)
        return AcceleratedState(x, ahead, float(following), value, bound, size)

    def measure(self, problem: LearningProblem, state: AcceleratedState) -> dict[str, float]:
        """The value, the bound of the last step, and the norm of its gradient mapping.

        Statistics are of the order of one, and so are their differences: below `_STATIONARY` no step makes progress.
        """
        stuck = float(state.residual <= _STATIONARY)
        return {"value": state.value, "bound": state.bound, "residual": state.residual, "stuck": stuck}

    def certify(self, problem: LearningProblem, state: AcceleratedState) -> Certificate:
        """See `certify_gap`."""
        return certify_gap(problem, state.x)
