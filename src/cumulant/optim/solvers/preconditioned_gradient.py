"""Gradient descent in a fixed metric."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from cumulant.optim.certify.optimality import Knowledge, certify_optimality, knowledge, running_bound
from cumulant.optim.problems.composite import Composite
from cumulant.optim.protocol import Solver
from cumulant.optim.solvers.line_search import Armijo, no_progress
from cumulant.pytrees import pytree

__all__ = ["PreconditionedGradient"]


class PreconditionedGradientState(NamedTuple):
    """The iterate with the value and gradient there, and the step to try next."""

    x: Any
    value: Any
    gradient: Any
    step_size: Any
    known: Knowledge
    stuck: Any  # whether the last line search decreased neither the value nor the gradient


@pytree
@dataclasses.dataclass(frozen=True)
class PreconditionedGradient(Solver):
    """``x_next = x - tau H grad f(x)`` with a fixed positive definite ``H``, ``tau`` by Armijo's rule or given.

    It is gradient descent on ``z -> f(H^{1/2} z)``, so the rates of gradient descent hold with the extreme eigenvalues
    of ``H^{1/2} hess f H^{1/2}`` for ``L`` and ``mu``: one over the diagonal of the Hessian undoes the scales of the
    coordinates, and the inverse Hessian of a quadratic takes one step (Peyré 2021, remark 7).

    Parameters
    ----------
    preconditioner : array (p,) or (p, p)
        ``H``, or its diagonal.
    step_size : Armijo or float
        The line search, or a fixed step.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[1.0, 0.0], [0.0, 1e6]], [1.0, 1e6])
    >>> result = optim.run(PreconditionedGradient([1.0, 1e-6]), problem, [0.0, 0.0], tol=1e-12)
    >>> result.work, result.x
    (1, array([1., 1.]))
    """

    preconditioner: Any
    step_size: Any = dataclasses.field(default_factory=Armijo)

    backend: ClassVar[str] = "jax"

    def __post_init__(self):
        if isinstance(self.preconditioner, list | tuple | np.ndarray):
            H = np.asarray(self.preconditioner, dtype=np.float64)
            if H.ndim not in (1, 2) or (H.ndim == 2 and (H.shape[0] != H.shape[1] or not np.allclose(H, H.T))):
                raise ValueError(f"preconditioner must be a vector or a symmetric matrix; got shape {H.shape}")
            positive = np.all(H > 0) if H.ndim == 1 else np.linalg.eigvalsh(H)[0] > 0
            if not (np.all(np.isfinite(H)) and positive):
                raise ValueError("preconditioner must be positive definite, or else a step may go up")
            object.__setattr__(self, "preconditioner", H)
        if isinstance(self.step_size, int | float) and not (np.isfinite(self.step_size) and self.step_size > 0):
            raise ValueError(f"step_size must be positive and finite; got {self.step_size}")

    def init(self, problem, x0, rng):
        """The value and gradient at ``x0``."""
        if isinstance(problem, Composite):
            raise TypeError("PreconditionedGradient is for smooth problems: use AcceleratedProximalGradient instead")
        value, gradient = problem.value_and_gradient(x0)
        first = self.step_size.initial if isinstance(self.step_size, Armijo) else self.step_size
        return PreconditionedGradientState(
            x0, value, gradient, jnp.asarray(first, value.dtype), knowledge(problem), jnp.asarray(False)
        )

    def step(self, problem, state):
        """One step along ``-H grad f``."""
        H, g = jnp.asarray(self.preconditioner), state.gradient
        direction = -(H * g if H.ndim == 1 else H @ g)
        size, following = state.step_size, state.step_size
        if isinstance(self.step_size, Armijo):
            size, _ = self.step_size.search(problem, state.x, state.value, g, state.step_size, direction)
            following = self.step_size.first_trial(size)
        x = state.x + size * direction
        value, gradient = problem.value_and_gradient(x)
        stuck = no_progress(state, value, gradient) if isinstance(self.step_size, Armijo) else state.stuck
        return state._replace(x=x, value=value, gradient=gradient, step_size=following, stuck=stuck)

    def measure(self, problem, state):
        """The value and the smallest bound."""
        value, bound = running_bound(problem, state.x, state.known)
        norm = jnp.linalg.norm(state.gradient.reshape(-1))
        found = {"value": value, "bound": bound, "residual": norm, "step_size": state.step_size}
        return found | ({"stuck": state.stuck} if isinstance(self.step_size, Armijo) else {})

    def certify(self, problem, state):
        """The smallest of the bounds the problem allows."""
        return certify_optimality(problem, state.x)
