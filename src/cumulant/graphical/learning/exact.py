"""Solvers of learning problems whose gradient can be computed, and the certificate from strong convexity."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.certificates import Certificate, by_construction, check, issuer, rounding
from cumulant.graphical.learning.problem import Fit, LearningProblem
from cumulant.graphical.mixing.projected_gradient import SpectralProjectedGradient, proximal_bound
from cumulant.optim.solvers.lbfgs import LBFGS

__all__ = ["ProjectedGradient", "QuasiNewton", "certify_gap"]


@issuer
def certify_gap(problem: LearningProblem, answer: Any) -> Certificate:
    """``f(theta) - min f`` over the set, from the gradient at ``theta`` and strong convexity.

    The bound is that of `proximal_bound`, without a set ``|g|^2 / (2 l2)``. The slack is the rounding of the gradient
    and of the sums. `answer` is a `Fit`, or the free parameters.
    """
    theta = problem.unbind(answer.model) if isinstance(answer, Fit) else np.asarray(answer)
    l2 = problem.l2
    convex = check(l2 > 0, "the objective is strongly convex", f"l2 = {l2:g}")
    value, g = problem.value_and_gradient(theta)
    target, z, bound = proximal_bound(problem, theta, g)
    move, outside = theta - z, l2 * float(np.linalg.norm(target - z))
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


@dataclass(frozen=True)
class ProjectedGradient(SpectralProjectedGradient):
    """Spectral projected gradient on a learning problem in a set."""

    def certify(self, problem: LearningProblem, state: Any) -> Certificate:
        """See `certify_gap`."""
        return certify_gap(problem, state.x)
