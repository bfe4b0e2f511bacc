"""Newton's method with backtracking for a smooth convex function, compiled."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

_ARMIJO = 1e-4
_SMALLEST_STEP = 2.0**-60
_PATIENCE = 8


def damped_newton(evaluate: Callable, hessian: Callable, start, max_steps: int):
    """A minimiser of a convex function of one vector, and the number of steps taken.

    ``evaluate(x)`` gives the value (``+inf`` outside the domain), the gradient, and the size of the terms that cancel
    in the gradient at the solution. A step is accepted by Armijo's rule, or when it halves the gradient: near the
    solution the values agree to rounding while the gradient still says which point is better. The search ends when the
    gradient is below the rounding of that size, when it has not fallen for a while and what is left to gain is below
    the rounding of the value, or when no step is accepted.
    """
    eps = jnp.finfo(start.dtype).eps

    def unfinished(state):
        _, (_, g, size), _, _, steps, stuck = state
        return (steps < max_steps) & ~stuck & ~(jnp.linalg.norm(g) <= eps * size)

    def advance(state):
        x, here, best, waited, steps, _ = state
        value, g, _ = here
        step = -jnp.linalg.solve(hessian(x), g)
        slope, norm = g @ step, jnp.linalg.norm(g)

        def refused(trial):
            t, (new_value, new_g, _), first = trial
            fine = (new_value <= value + _ARMIJO * t * slope) | (jnp.linalg.norm(new_g) <= norm / 2)
            return first | (~(fine & (new_value < jnp.inf)) & (t > _SMALLEST_STEP))

        def shorten(trial):
            t = trial[0] / 2
            return t, evaluate(x + t * step), np.zeros((), bool)

        t, there, _ = jax.lax.while_loop(refused, shorten, (np.asarray(2.0, x.dtype), here, np.ones((), bool)))
        failed = ~(t > _SMALLEST_STEP) | ~jnp.all(jnp.isfinite(step))
        x, here = jax.tree.map(lambda old, new: jnp.where(failed, old, new), (x, here), (x + t * step, there))
        reached = jnp.linalg.norm(here[1])
        fell = reached <= 0.9 * best
        waited = jnp.where(fell, 0, waited + 1)
        settled = (waited >= _PATIENCE) & (-slope <= eps * jnp.abs(value))
        return x, here, jnp.where(fell, reached, best), waited, steps + 1, failed | settled

    zero = np.zeros((), np.int32)
    here = evaluate(start)
    state = (start, here, jnp.linalg.norm(here[1]), zero, zero, np.zeros((), bool))
    x, _, _, _, steps, _ = jax.lax.while_loop(unfinished, advance, state)
    return x, steps
