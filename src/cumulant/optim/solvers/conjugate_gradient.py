"""Conjugate gradients on a quadratic."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp

from cumulant.optim.certify.optimality import Knowledge, knowledge
from cumulant.optim.certify.strong_convexity import certify_strong_convexity
from cumulant.optim.protocol import Solver
from cumulant.pytrees import pytree


class ConjugateGradientState(NamedTuple):
    """The iterate, minus the gradient there, and the direction to go."""

    x: Any
    residual: Any
    direction: Any
    known: Knowledge


@pytree
@dataclasses.dataclass(frozen=True)
class ConjugateGradient(Solver):
    """Minimise a convex quadratic over ``x_0`` plus the span of ``g, C g, ..., C^{k-1} g`` at step ``k``.

    One product with the Hessian a step, and the matrix is never formed. With ``rho = (sqrt L - sqrt mu) / (sqrt L +
    sqrt mu)``: ``f(x_k) - f* <= 4 rho^(2k) (f(x_0) - f*)`` (`rates.conjugate_gradient`; Hestenes and Stiefel 1952), and
    in exact arithmetic it ends after as many steps as there are distinct eigenvalues.

    The certificate is ``|grad f(x)|^2 / (2 mu)``, from the data and not from the recursion.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[2.0, 1.0], [1.0, 3.0]], [1.0, 2.0])
    >>> result = optim.run(ConjugateGradient(), problem, [0.0, 0.0], tol=1e-12)
    >>> result.work, result.x.round(12)
    (2, array([0.2, 0.6]))
    """

    backend: ClassVar[str] = "jax"

    def init(self, problem, x0, rng):
        """The gradient at ``x0``; a problem that is not a convex quadratic is refused."""
        if not problem.quadratic or not problem.convex:
            raise TypeError(f"ConjugateGradient is for convex quadratics; got {type(problem).__name__}")
        residual = -problem.gradient(x0)
        return ConjugateGradientState(x0, residual, residual, knowledge(problem))

    def step(self, problem, state):
        """The exact step along the direction, and the next conjugate one."""
        squared = jnp.vdot(state.residual, state.residual)
        product = problem.hessian_apply(state.x, state.direction)
        curvature = jnp.vdot(state.direction, product)
        size = jnp.where(curvature > 0, squared / jnp.where(curvature > 0, curvature, 1.0), 0.0)
        residual = state.residual - size * product
        ratio = jnp.where(squared > 0, jnp.vdot(residual, residual) / jnp.where(squared > 0, squared, 1.0), 0.0)
        return state._replace(
            x=state.x + size * state.direction, residual=residual, direction=residual + ratio * state.direction
        )

    def measure(self, problem, state):
        """The value, the norm of the recursion's gradient, and the bound it implies."""
        squared, mu = jnp.vdot(state.residual, state.residual), state.known.strong_convexity.astype(state.x.dtype)
        bound = jnp.where(mu > 0, squared / (2 * jnp.where(mu > 0, mu, 1.0)), jnp.inf)
        return {"value": problem.value(state.x), "bound": bound, "residual": jnp.sqrt(squared)}

    def certify(self, problem, state):
        """``f(x) - f* <= |grad f(x)|^2 / (2 mu)``."""
        return certify_strong_convexity(problem, state.x)
