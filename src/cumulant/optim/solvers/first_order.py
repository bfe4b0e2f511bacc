"""What methods for ``F = f + R`` share: the step size, the forward-backward step, what is measured and certified."""

from typing import Any, ClassVar

import jax.numpy as jnp

from cumulant import checks
from cumulant.certificates import Certificate
from cumulant.optim.certify.optimality import certify_optimality, running_bound
from cumulant.optim.problems.composite import parts
from cumulant.optim.problems.penalties import NoPenalty
from cumulant.optim.protocol import Solver, require_gradient
from cumulant.optim.solvers.line_search import Backtracking


def check_step_size(step_size: Any) -> None:
    """Refuse a step size that is neither None, ``"1/L"``, a positive number nor a `Backtracking`."""
    if isinstance(step_size, str):
        if step_size != "1/L":
            raise ValueError(f"step_size must be '1/L', a positive number or Backtracking(); got {step_size!r}")
    elif step_size is not None and not isinstance(step_size, Backtracking):
        checks.positive("step_size", step_size)


def step_rule(problem: Any, step_size: Any, solver: Solver, x0: Any, most: float = 1.0) -> tuple[Any, Any]:
    """The first step, and the `Backtracking` by which later ones are found, or None where they are all the same.

    A number is refused where it is beyond ``most / L``, at which the guarantee ends.
    """
    smooth, _ = parts(problem)
    require_gradient(solver, smooth)
    name, L = type(solver).__name__, smooth.smoothness
    if step_size is None:
        step_size = Backtracking() if L is None else "1/L"
    if isinstance(step_size, Backtracking):
        return step_size.first(problem, x0), step_size
    if isinstance(step_size, str):
        if L is None:
            raise ValueError(
                f"step_size='1/L' needs the smoothness constant of the problem: give {name} a number or Backtracking()"
            )
        return 1.0 if not L > 0 else 1.0 / float(L), None  # an affine function: any step
    if L is not None and float(step_size) * float(L) > most * (1 + 1e-9):
        raise ValueError(f"step_size of {name} must be at most {most:g}/L = {most / float(L):.6g}; got {step_size}")
    return float(step_size), None


def start(problem: Any, x0: Any) -> Any:
    """``x0``, or the nearest point of the set."""
    _, penalty = parts(problem)
    return penalty.feasible(x0)


def forward_backward(problem: Any, x: Any, tau: Any) -> Any:
    """``prox_{tau R}(x - tau grad f(x))``: a gradient step on ``f``, then a proximal step on ``R``."""
    smooth, penalty = parts(problem)
    return penalty.prox(x - tau * smooth.gradient(x), tau)


def residual(problem: Any, x: Any, tau: Any) -> Any:
    """``|x - prox_{tau R}(x - tau grad f(x))| / tau``, zero at the solutions; ``|grad f(x)|`` where ``R`` is zero."""
    smooth, penalty = parts(problem)
    gradient = smooth.gradient(x)
    move = gradient if isinstance(penalty, NoPenalty) else (x - penalty.prox(x - tau * gradient, tau)) / tau
    return jnp.linalg.norm(move.reshape(-1))


class FirstOrder(Solver):
    """Compiled steps along gradients, from states with an iterate ``x``, a `step_size` and what is `known`."""

    backend: ClassVar[str] = "jax"

    def measure(self, problem: Any, state: Any) -> dict[str, Any]:
        """The value, the smallest bound, and a residual that is zero at the solutions."""
        value, bound = running_bound(problem, state.x, state.known)
        found = {"value": value, "bound": bound, "residual": residual(problem, state.x, state.step_size)}
        return found if getattr(state, "search", None) is None else found | {"step_size": state.step_size}

    def certify(self, problem: Any, state: Any) -> Certificate:
        """The smallest of the bounds the problem allows: see `certify_optimality`."""
        return certify_optimality(problem, state.x)
