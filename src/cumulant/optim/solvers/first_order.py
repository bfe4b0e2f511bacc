"""What methods for ``F = f + R`` share: the step size, the forward-backward step, what is measured and certified."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from cumulant.certificates import Certificate
from cumulant.optim.certify.optimality import certify_optimality, running_bound
from cumulant.optim.problems.composite import parts
from cumulant.optim.problems.penalties import NoPenalty
from cumulant.optim.protocol import Solver, require_gradient


def check_step_size(step_size: Any) -> None:
    """Refuse a step size that is neither ``"1/L"`` nor a positive number."""
    if isinstance(step_size, str) and step_size != "1/L":
        raise ValueError(f"step_size must be '1/L' or a positive number; got {step_size!r}")
    if isinstance(step_size, int | float) and not (np.isfinite(step_size) and step_size > 0):
        raise ValueError(f"step_size must be positive and finite; got {step_size}")


def step_length(problem: Any, step_size: Any, solver: Solver, most: float = 1.0) -> float:
    """The number meant by `step_size`; refused where it is beyond ``most / L``, at which the guarantee ends."""
    smooth, _ = parts(problem)
    require_gradient(solver, smooth)
    name, L = type(solver).__name__, smooth.smoothness
    if isinstance(step_size, str):
        if L is None:
            raise ValueError(f"step_size='1/L' needs the smoothness constant of the problem: give {name} a number")
        return 1.0 if not L > 0 else 1.0 / float(L)  # an affine function: any step
    if L is not None and float(step_size) * float(L) > most * (1 + 1e-9):
        raise ValueError(f"step_size of {name} must be at most {most:g}/L = {most / float(L):.6g}; got {step_size}")
    return float(step_size)


def start(problem: Any, x0: Any) -> Any:
    """``x0``, or the nearest point of the set."""
    _, penalty = parts(problem)
    return penalty.prox(x0, 1.0) if penalty.is_set else x0


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
        return {"value": value, "bound": bound, "residual": residual(problem, state.x, state.step_size)}

    def certify(self, problem: Any, state: Any) -> Certificate:
        """The smallest of the bounds the problem allows: see `certify_optimality`."""
        return certify_optimality(problem, state.x)
