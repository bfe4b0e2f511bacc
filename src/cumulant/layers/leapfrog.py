"""The leapfrog scheme as a layer: it can be run backwards, so that its gradient needs no stored state at all."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from cumulant import checks
from cumulant.layers._implicit import finite
from cumulant.optim.problems.trees import as_floats
from cumulant.precision import precise


def leapfrog(F: Callable, G: Callable, r0: Any, s0: Any, theta: Any, tau: Any, n_steps: int) -> tuple[Any, Any]:
    """The state after `n_steps` of ``r' = F(s, theta, t)``, ``s' = G(r, theta, t)``, differentiable.

    ``r_{k+1} = r_k + tau F(s_k, theta, tau k)`` and then ``s_{k+1} = s_k + tau G(r_{k+1}, theta, tau (k + 1/2))``. Each
    step is undone by two subtractions, so that the backward pass recomputes the states from the last one: memory
    does not grow with the number of steps, at the price of one more evaluation and of rounding (Peyré 2021, section
    10.6). Second order if ``r`` is understood half a step earlier than ``s`` (give ``r(-tau/2)`` for `r0`),
    otherwise first order in ``r``. Differentiable in `r0`, `s0`, `theta` and `tau`, in reverse mode.

    Parameters
    ----------
    F, G : callables
        Of ``(s, theta, t)`` and ``(r, theta, t)``.
    r0, s0, theta : arrays
    tau : float
        The step.
    n_steps : int

    Examples
    --------
    >>> def fall(s, theta, t):
    ...     return s
    >>> def pull(r, theta, t):
    ...     return -theta * r
    >>> import numpy as np
    >>> r, s = leapfrog(fall, pull, np.cos(0.05), 0.0, 1.0, 0.1, 10)     # a pendulum, r half a step early
    >>> print(abs(r - np.cos(0.95)).round(6))
    0.000322
    """
    _check(n_steps)
    return finite(_run(F, G, r0, s0, theta, tau, n_steps), "the leapfrog")


def leapfrog_back(F: Callable, G: Callable, r: Any, s: Any, theta: Any, tau: Any, n_steps: int) -> tuple[Any, Any]:
    """The state `n_steps` before ``(r, s)``, where these are step number `n_steps`: the inverse of `leapfrog`.

    >>> def fall(s, theta, t):
    ...     return s
    >>> r, s = leapfrog(fall, fall, 1.0, 2.0, 0.0, 0.1, 5)
    >>> r0, s0 = leapfrog_back(fall, fall, r, s, 0.0, 0.1, 5)
    >>> print(r0.round(12), s0.round(12))
    1.0 2.0
    """
    _check(n_steps)
    return finite(_run_back(F, G, r, s, theta, tau, n_steps), "the leapfrog")


def _check(n_steps):
    checks.whole("n_steps", n_steps)


def _step(F, G, r, s, theta, tau, k):
    r = r + tau * F(s, theta, tau * k)
    return r, s + tau * G(r, theta, tau * (k + 0.5))


def _undo(F, G, r, s, theta, tau, k):
    s = s - tau * G(r, theta, tau * (k + 0.5))
    return r - tau * F(s, theta, tau * k), s


@precise(static=("F", "G", "n_steps"))
def _run(F, G, r0, s0, theta, tau, n_steps):
    return _reversible(F, G, n_steps, *as_floats((r0, s0, theta, tau)))


@precise(static=("F", "G", "n_steps"))
def _run_back(F, G, r, s, theta, tau, n_steps):
    def undo(i, state):
        return _undo(F, G, state[0], state[1], theta, tau, n_steps - 1 - i)

    return jax.lax.fori_loop(0, n_steps, undo, as_floats((r, s)))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _reversible(F, G, n_steps, r0, s0, theta, tau):
    return jax.lax.fori_loop(0, n_steps, lambda k, state: _step(F, G, state[0], state[1], theta, tau, k), (r0, s0))


def _forward(F, G, n_steps, r0, s0, theta, tau):
    last: Any = _reversible(F, G, n_steps, r0, s0, theta, tau)
    return last, (*last, theta, tau)


def _backward(F, G, n_steps, kept, cotangent):
    r, s, theta, tau = kept

    def back(i, carry):
        r, s, z, gradient = carry
        k = n_steps - 1 - i
        r, s = _undo(F, G, r, s, theta, tau, k)
        pull = jax.vjp(lambda r, s, theta, tau: _step(F, G, r, s, theta, tau, k), r, s, theta, tau)[1]
        dr, ds, *more = pull(z)
        return r, s, (dr, ds), jax.tree.map(jnp.add, gradient, tuple(more))

    start = (r, s, cotangent, jax.tree.map(jnp.zeros_like, (theta, tau)))
    _, _, (dr, ds), (dtheta, dtau) = jax.lax.fori_loop(0, n_steps, back, start)
    return dr, ds, dtheta, dtau


_reversible.defvjp(_forward, _backward)
