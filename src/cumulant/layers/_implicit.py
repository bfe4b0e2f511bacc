"""What the implicit layers share: flat vectors, tolerances, refusals."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from cumulant import checks
from cumulant.errors import DomainError, NotConvergedError
from cumulant.optim.driver.implicit import LINEAR_SOLVERS
from cumulant.optim.problems.objective import call_traced
from cumulant.precision import any_tracer


def flat(tree: Any) -> tuple[Any, Callable]:
    """The leaves in one vector, and the function that puts them back."""
    return ravel_pytree(tree)


def tolerance(tol: float | None, dtype: Any) -> Any:
    """`tol`, or what double (single) precision can reach on a well-conditioned problem: 3.7e-11 (2.4e-5)."""
    return float(jnp.finfo(dtype).eps) ** (2 / 3) if tol is None else tol


def settings(tol: Any, max_steps: Any, linear_solver: str) -> None:
    """Refuse settings that mean nothing."""
    if tol is not None:
        checks.positive("tol", tol)
    checks.whole("max_steps", max_steps)
    checks.choice("linear_solver", linear_solver, LINEAR_SOLVERS)


def same_shapes(function: Callable, x: Any, theta: Any) -> None:
    """Refuse a map that does not return what it is given."""
    there = jax.eval_shape(lambda x, theta: call_traced("function", function, x, theta, "x0 and theta"), x, theta)
    wanted, found = (jax.tree.map(lambda leaf: jnp.shape(leaf), tree) for tree in (x, there))
    if wanted != found:
        raise ValueError(f"function(x, theta) must have the shape of x0, {wanted}; it has {found}")


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
        raise DomainError(f"{what} became non-finite from this x0 and theta: its residual is {float(residual)}")
    if not residual <= allowed:
        raise NotConvergedError(
            f"{what} did not converge in {max_steps} steps from this x0 and theta: its residual is "
            f"{float(residual):.3g} and should be at most {float(allowed):.3g}; give more max_steps, another solver or "
            "a larger tol"
        )
    return x
