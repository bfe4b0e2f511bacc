"""Gradient descent in a fixed metric."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.optim.certify.optimality import certify_optimality
from cumulant.optim.solvers.gradient_descent import Descent
from cumulant.optim.solvers.line_search import Armijo
from cumulant.pytrees import pytree


@pytree
@dataclasses.dataclass(frozen=True)
class PreconditionedGradient(Descent):
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

    def __post_init__(self):
        if isinstance(self.preconditioner, list | tuple | np.ndarray):
            H = np.asarray(self.preconditioner, dtype=np.float64)
            if H.ndim not in (1, 2) or (H.ndim == 2 and (H.shape[0] != H.shape[1] or not np.allclose(H, H.T))):
                raise ValueError(f"preconditioner must be a vector or a symmetric matrix; got shape {H.shape}")
            positive = np.all(H > 0) if H.ndim == 1 else np.linalg.eigvalsh(H)[0] > 0
            if not (np.all(np.isfinite(H)) and positive):
                raise ValueError("preconditioner must be positive definite, or else a step may go up")
            object.__setattr__(self, "preconditioner", H)
        if not isinstance(self.step_size, Armijo):
            checks.positive("step_size", self.step_size)

    def _direction(self, gradient):
        H = jnp.asarray(self.preconditioner)
        return -(H * gradient if H.ndim == 1 else H @ gradient)

    def certify(self, problem, state):
        """The smallest of the bounds the problem allows."""
        return certify_optimality(problem, state.x)
