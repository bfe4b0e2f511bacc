"""What the implicit layers share: flat vectors, tolerances, linear solves, and the implicit function theorem."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.sparse.linalg import cg, gmres

from cumulant.errors import DomainError, NotConvergedError
from cumulant.precision import any_tracer

__all__ = ["as_floats", "finished", "finite", "flat", "root", "same_shapes", "settings", "tolerance"]

_DENSE = 1000  # unknowns up to which the linear system is written down and factorised
LINEAR_SOLVERS = ("auto", "dense", "iterative")


def as_floats(tree: Any) -> Any:
    """Every leaf as a floating-point array: a start at the integers ``[0, 0]`` is a start at the numbers."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf, float)), tree)


def flat(tree: Any) -> tuple[Any, Callable]:
    """The leaves in one vector, and the function that puts them back."""
    return ravel_pytree(tree)


def tolerance(tol: float | None, dtype: Any) -> Any:
    """`tol`, or what double (single) precision can reach on a well-conditioned problem: 3.7e-11 (2.4e-5)."""
    return float(jnp.finfo(dtype).eps) ** (2 / 3) if tol is None else tol


def settings(tol: Any, max_steps: Any, linear_solver: str) -> None:
    """Refuse settings that mean nothing."""
    if tol is not None and not (np.isfinite(tol) and tol > 0):
        raise ValueError(f"tol must be positive and finite, or None for what the precision allows; got {tol}")
    if not isinstance(max_steps, int) or isinstance(max_steps, bool) or max_steps < 1:
        raise ValueError(f"max_steps must be a whole number of at least 1; got {max_steps!r}")
    if linear_solver not in LINEAR_SOLVERS:
        raise ValueError(f"linear_solver must be one of {', '.join(LINEAR_SOLVERS)}; got {linear_solver!r}")


def same_shapes(function: Callable, x: Any, theta: Any) -> None:
    """Refuse a map that does not return what it is given."""
    there = jax.eval_shape(function, x, theta)
    wanted, found = (jax.tree.map(lambda leaf: jnp.shape(leaf), tree) for tree in (x, there))
    if wanted != found:
        raise ValueError(f"function(x, theta) must have the shape of x, {wanted}; it has {found}")


def root(equation: Callable, theta: Any, start: Any, solve: Callable, linear_solver: str, symmetric: bool) -> Any:
    """``x`` with ``F(x, theta) = 0``, found by ``solve(theta, start)``, with the derivative of the implicit function.

    ``dx = -[d_x F]^-1 d_theta F``: both modes, any order. Up to 1000 unknowns the matrix is factorised; beyond,
    conjugate gradients (GMRES where it is not symmetric) use products with it only.
    """
    dense = linear_solver == "dense" or (linear_solver == "auto" and start.size <= _DENSE)

    # The start is an argument, though nothing depends on it: a rule must not close over values that are being traced.
    @jax.custom_jvp
    def found(theta, start):
        return solve(theta, start)

    @found.defjvp
    def _(primals, tangents):
        theta, start = primals
        x = found(theta, start)
        change = -jax.jvp(lambda t: equation(x, t), (theta,), tangents[:1])[1]
        if dense:
            return x, jnp.linalg.solve(jax.jacfwd(equation)(x, theta), change)

        def solver(matvec, b):
            tol = 10 * float(jnp.finfo(b.dtype).eps)
            if symmetric:
                return cg(matvec, b, tol=tol, maxiter=10 * b.size)[0]
            return gmres(matvec, b, tol=tol, restart=min(b.size, 50), maxiter=200)[0]

        # Wrapped once more: the start and the tolerance that `cg` and `gmres` derive from b have no transpose.
        linear = jax.linearize(lambda at: equation(at, theta), x)[1]
        return x, jax.lax.custom_linear_solve(linear, change, solver, solver, symmetric=symmetric)

    return found(theta, start)


def finite(x: Any, what: str) -> Any:
    """`x`, refused where it can be looked at and is not finite."""
    if not any_tracer(x) and not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(x)):
        raise DomainError(f"{what} became non-finite: the last state is not finite; take smaller or fewer steps")
    return x


def finished(x: Any, residual: Any, allowed: Any, what: str, max_steps: int) -> Any:
    """`x` where the residual is small enough. Else a refusal, or, while values cannot be looked at, NaN."""
    allowed = 1.01 * allowed  # the loop measured it in another program, with other rounding
    if any_tracer(x, residual):
        # A factor, not a choice: the derivative of a constant NaN would be zero.
        return jax.tree.map(lambda leaf: leaf * jnp.where(residual <= allowed, 1.0, jnp.nan).astype(leaf.dtype), x)
    if not np.isfinite(residual):
        raise DomainError(f"{what} became non-finite: its residual is {float(residual)}")
    if not residual <= allowed:
        raise NotConvergedError(
            f"{what} did not converge in {max_steps} steps: its residual is {float(residual):.3g} and should be at "
            f"most {float(allowed):.3g}; give more max_steps, another solver or a larger tol"
        )
    return x
