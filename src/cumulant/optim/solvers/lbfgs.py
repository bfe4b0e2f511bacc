"""L-BFGS: SciPy's, in steps of many iterations."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize

from cumulant.certificates import Certificate
from cumulant.optim.certify.optimality import certify_optimality
from cumulant.optim.finite_sums.stochastic_gradient import gradient_bound
from cumulant.optim.protocol import Solver, require_gradient


class LBFGSState(NamedTuple):
    """The point, the value and gradient there, and how often they were computed."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    iterations: int
    evaluations: int
    stuck: bool  # whether the last iterations did not decrease the value


@dataclass(frozen=True)
class LBFGS(Solver):
    """Limited-memory BFGS (Liu and Nocedal 1989), as implemented by SciPy (``L-BFGS-B``), for any smooth problem.

    A step is `iterations` iterations, after which the memory of past gradients starts afresh: the state is then a point
    and nothing else, so that a run can be saved and resumed.

    Parameters
    ----------
    memory : int
        Pairs of differences kept.
    iterations : int
        Iterations in one step of `run`.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Logistic([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.0]], [1, -1, 1], l2=0.1)
    >>> result = optim.run(LBFGS(), problem, [0.0, 0.0], tol=1e-12)
    >>> result.status, result.work
    ('converged', 1)
    """

    memory: int = 20
    iterations: int = 100

    backend: ClassVar[str] = "host"

    def __post_init__(self):
        for name in ("memory", "iterations"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a positive whole number; got {value!r}")

    def init(self, problem: Any, x0: Any, rng: Any) -> LBFGSState:
        """The value and gradient at `x0`."""
        require_gradient(self, problem)
        value, gradient = problem.value_and_gradient(x0)
        return LBFGSState(x0, float(value), np.array(gradient), 0, 1, False)

    def step(self, problem: Any, state: LBFGSState) -> LBFGSState:
        """As many iterations as `iterations`, or fewer where rounding ends them."""
        shape = state.x.shape

        def function(flat):
            value, gradient = problem.value_and_gradient(flat.reshape(shape))
            return float(value), np.asarray(gradient, dtype=np.float64).ravel()

        options = {"maxiter": self.iterations, "maxcor": self.memory, "ftol": 0.0, "gtol": 0.0, "maxfun": 10**9}
        found = minimize(function, state.x.ravel(), jac=True, method="L-BFGS-B", options=options)
        made, computed = state.iterations + int(found.nit), state.evaluations + int(found.nfev)
        stuck = not found.fun < state.value
        return LBFGSState(found.x.reshape(shape), float(found.fun), found.jac.reshape(shape), made, computed, stuck)

    def measure(self, problem: Any, state: LBFGSState) -> dict[str, float]:
        """The value, a bound on its distance to the minimum, and the work so far."""
        return {
            "value": state.value,
            "bound": gradient_bound(problem, state.x, state.gradient),
            "residual": float(np.linalg.norm(state.gradient)),
            "stuck": float(state.stuck),
            "iterations": float(state.iterations),
            "evaluations": float(state.evaluations),
        }

    def certify(self, problem: Any, state: LBFGSState) -> Certificate:
        """The smallest bound on ``f(x) - f*`` that the problem allows: see `certify_optimality`."""
        return certify_optimality(problem, state.x)
