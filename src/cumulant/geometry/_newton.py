"""Newton's method with backtracking for a smooth convex function, compiled."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

__all__ = ["damped_newton"]

_ARMIJO = 1e-4
_SMALLEST_STEP = 2.0**-60


def damped_newton(evaluate: Callable, hessian: Callable, start, max_steps: int):
    """A minimiser of a convex function of one vector, and the number of steps taken.

    ``evaluate(x)`` gives the value (``+inf`` outside the domain), the gradient, and the size of the terms that cancel
    in the gradient at the solution. A step is accepted by Armijo's rule, or when it halves the gradient: near the
    solution the values agree to rounding while the gradient still says which point is better. The search ends when
    the gradient is below the rounding of that size, when what is left to gain is below the rounding of the value, or
    when no step is accepted.
    """
    eps = jnp.finfo(start.dtype).eps

    def unfinished(state):
        _, (_, g, size), steps, stuck = state
        return (steps < max_steps) & ~stuck & ~(jnp.linalg.norm(g) <= eps * size)

    def advance(state):
        x, here, steps, _ = state
        value, g, _ = here
        step = -jnp.linalg.solve(hessian(x), g)
        slope, norm = g @ step, jnp.linalg.norm(g)

        def refused(trial):
            t, (new_value, new_g, _), first = trial
            fine = (new_value <= value + _ARMIJO * t * slope) | (jnp.linalg.norm(new_g) <= norm / 2)
            return first | (~fine & (t > _SMALLEST_STEP))

        def shorten(trial):
            t = trial[0] / 2
            return t, evaluate(x + t * step), jnp.zeros((), bool)

        t, there, _ = jax.lax.while_loop(refused, shorten, (jnp.asarray(2.0, x.dtype), here, jnp.ones((), bool)))
        failed = ~(t > _SMALLEST_STEP) | ~jnp.all(jnp.isfinite(step))
        settled = (-slope <= eps * jnp.abs(value)) & ~(jnp.linalg.norm(there[1]) <= norm / 2)
        keep = jax.tree.map(lambda old, new: jnp.where(failed, old, new), (x, here), (x + t * step, there))
        return (*keep, steps + 1, failed | settled)

    state = (start, evaluate(start), jnp.zeros((), jnp.int32), jnp.zeros((), bool))
    x, _, steps, _ = jax.lax.while_loop(unfinished, advance, state)
    return x, steps
