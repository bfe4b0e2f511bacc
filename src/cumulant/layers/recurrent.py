"""Long recursions as layers: back-propagation that keeps few states and does some steps again."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from cumulant import checks
from cumulant.layers._implicit import finite, same_shapes
from cumulant.layers.checkpoints import BACK, schedule
from cumulant.optim.problems.trees import as_floats
from cumulant.precision import precise


def recurrent(
    step: Callable[[Any, Any, Any], Any],
    x0: Any,
    theta: Any,
    n_steps: int,
    *,
    checkpoint: str | None = "bisection",
    slots: int | None = None,
) -> Any:
    """The last state ``x_t`` of ``x_k = h(x_{k-1}, theta, k-1)``, differentiable in `x0` and `theta`.

    The backward pass is ``z_{k-1} = [d_x h]^T z_k`` and ``grad_theta = sum_k [d_theta h]^T z_k``, ``k = t, ..., 1``
    (Peyré 2021, equations 63-65), which needs the states in reverse. Ordinary back-propagation keeps all ``t`` of them.
    Here few are kept and the others are computed again, which changes no bit of the gradient.

    Parameters
    ----------
    step : callable
        ``h(x, theta, k)`` with the shape of ``x``; ``k`` counts from zero.
    x0, theta : array or pytree
        Floating-point numbers.
    n_steps : int
        ``t``.
    checkpoint : str, optional
        ``"bisection"`` keeps ``log2 t + 1`` states and does ``(t/2) log2 t`` steps again; ``"binomial"`` keeps `slots`
        and does the fewest that these allow; None keeps everything. `checkpoint_cost` counts. The first two are for
        reverse mode only.

    Examples
    --------
    >>> def decay(x, theta, k):
    ...     return (1 - theta) * x
    >>> print(recurrent(decay, 1.0, 0.5, 3))
    0.125
    >>> print(jax.jit(jax.grad(lambda theta: recurrent(decay, 1.0, theta, 3)))(0.5))     # -3 (1 - theta)^2
    -0.75
    """
    if checkpoint is not None or slots is not None:
        schedule(n_steps, checkpoint or "none", slots)  # refuses what it does not know
    return finite(_run(step, x0, theta, n_steps, checkpoint, slots), "the recursion")


@precise(static=("step", "n_steps", "checkpoint", "slots"))
def _run(step, x0, theta, n_steps, checkpoint, slots):
    x0, theta = as_floats(x0), as_floats(theta)
    checks.takes("step", step, "x, theta, k")
    same_shapes(lambda x, t: step(x, t, jnp.zeros((), int)), x0, theta)
    if checkpoint is None:
        return _forward_pass(step, n_steps, x0, theta, differentiable=True)
    return _checkpointed(step, n_steps, checkpoint, slots, x0, theta)


def _forward_pass(step, n_steps, x0, theta, differentiable=False):
    if differentiable:
        return jax.lax.scan(lambda x, k: (step(x, theta, k), None), x0, jnp.arange(n_steps))[0]
    return jax.lax.fori_loop(0, n_steps, lambda k, x: step(x, theta, k), x0)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2, 3))
def _checkpointed(step, n_steps, checkpoint, slots, x0, theta):
    return _forward_pass(step, n_steps, x0, theta)


def _forward(step, n_steps, checkpoint, slots, x0, theta):
    return _forward_pass(step, n_steps, x0, theta), (x0, theta)


def _backward(step, n_steps, checkpoint, slots, kept, z):
    x0, theta = kept
    moves = schedule(n_steps, checkpoint, slots)
    places = int(moves[:, 2].max()) + 1 if moves[:, 2].max() != BACK else 1
    states = jax.tree.map(lambda leaf: jnp.zeros((places, *leaf.shape), leaf.dtype).at[0].set(leaf), x0)
    indices = jnp.zeros(places, jnp.int32)

    def move(carry, row):
        states, indices, z, gradient = carry
        source, advance, place = row
        first = indices[source]
        x = jax.tree.map(lambda leaf: leaf[source], states)
        x = jax.lax.fori_loop(first, first + advance, lambda k, at: step(at, theta, k), x)

        def keep(carry):
            states, indices, z, gradient = carry
            states = jax.tree.map(lambda all, one: all.at[place].set(one), states, x)
            return states, indices.at[place].set(first + advance), z, gradient

        def back(carry):
            states, indices, z, gradient = carry
            pulled, more = jax.vjp(lambda x, theta: step(x, theta, first + advance), x, theta)[1](z)
            return states, indices, pulled, jax.tree.map(jnp.add, gradient, more)

        return jax.lax.cond(place == BACK, back, keep, (states, indices, z, gradient)), None

    start = (states, indices, z, jax.tree.map(jnp.zeros_like, theta))
    (_, _, z, gradient), _ = jax.lax.scan(move, start, jnp.asarray(moves))
    return z, gradient


_checkpointed.defvjp(_forward, _backward)
