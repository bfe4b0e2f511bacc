"""Accelerated steps: a proximal gradient step from a point extrapolated along the last move."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from cumulant.optim.certify.optimality import Knowledge, certify_optimality, knowledge, running_bound
from cumulant.optim.protocol import Solver
from cumulant.optim.solvers.forward_backward import check_step_size, forward_backward, residual, start, step_length
from cumulant.pytrees import pytree

__all__ = ["Accelerated", "AcceleratedState"]


class AcceleratedState(NamedTuple):
    """The iterate, the point the next gradient is taken at, and the count since the last restart."""

    x: Any
    ahead: Any
    value: Any  # of the iterate, kept only where restarts need it
    count: Any
    restarts: Any
    step_size: Any
    momentum: Any  # where it is constant
    known: Knowledge


@pytree
@dataclasses.dataclass(frozen=True)
class Accelerated(Solver):
    """The recursion behind `AcceleratedGradient` and `AcceleratedProximalGradient`, which say what it guarantees."""

    step_size: Any = "1/L"
    momentum: Any = "nesterov"
    restart: bool = dataclasses.field(default=False, metadata={"static": True})

    backend: ClassVar[str] = "jax"
    every: ClassVar[int] = 10  # a bound costs as much as a step

    def __post_init__(self):
        check_step_size(self.step_size)
        momentum = self.momentum
        if isinstance(momentum, str) and momentum not in ("nesterov", "strongly convex"):
            raise ValueError(
                f"momentum must be 'nesterov', 'strongly convex' or a number in [0, 1); got {self.momentum!r}"
            )
        if isinstance(momentum, int | float) and not 0 <= momentum < 1:
            raise ValueError(f"momentum must be at least 0 and below 1; got {momentum}")

    def init(self, problem, x0, rng):
        """The point ``x0``, moved into the set if there is one, and the momentum if it is constant."""
        tau = step_length(problem, self.step_size, self)
        x0 = start(problem, x0)
        constant = 0.0 if isinstance(self.momentum, str) else float(self.momentum)
        if isinstance(self.momentum, str) and self.momentum == "strongly convex":
            mu = float(problem.strong_convexity)
            if not mu > 0:
                raise ValueError("momentum='strongly convex' needs a strong convexity above zero; use 'nesterov'")
            root = float(np.sqrt(min(tau * mu, 1.0)))
            constant = (1 - root) / (1 + root)
        dtype = x0.dtype
        value = problem.value(x0) if self.restart else jnp.zeros((), dtype)
        return AcceleratedState(
            x0, x0, value, 0, 0, jnp.asarray(tau, dtype), jnp.asarray(constant, dtype), knowledge(problem)
        )

    def step(self, problem, state):
        """A step from the extrapolated point, and the next extrapolation."""
        x = forward_backward(problem, state.ahead, state.step_size)
        count, restarts, value = state.count, state.restarts, state.value
        if self.restart:
            fresh = problem.value(x)
            # An increase above rounding: then the momentum is dropped, and the step is taken again without it.
            worse = fresh > value + 4 * jnp.finfo(x.dtype).eps * jnp.abs(value)
            count, restarts = jnp.where(worse, -1, count), restarts + worse  # the next step is step 0 again
            x, value = jnp.where(worse, state.x, x), jnp.where(worse, value, fresh)
        beta = state.momentum
        if isinstance(self.momentum, str) and self.momentum == "nesterov":
            beta = count / (count + 3.0)
        ahead = x + beta * (x - state.x)
        return state._replace(x=x, ahead=ahead, value=value, count=count + 1, restarts=restarts)

    def measure(self, problem, state):
        """The value, the smallest bound, and how often the momentum was dropped."""
        value, bound = running_bound(problem, state.x, state.known)
        left = residual(problem, state.x, state.step_size)
        return {"value": value, "bound": bound, "residual": left, "restarts": state.restarts}

    def certify(self, problem, state):
        """The smallest of the bounds the problem allows."""
        return certify_optimality(problem, state.x)
