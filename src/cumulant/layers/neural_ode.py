"""Differential equations as layers: the exact gradient of the discretised flow, or the continuous adjoint."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from cumulant import checks
from cumulant.layers._implicit import finite, same_shapes
from cumulant.layers.recurrent import recurrent
from cumulant.optim.problems.trees import as_floats
from cumulant.precision import precise

METHODS = ("rk4", "euler")
GRADIENTS = ("checkpointed", "stored", "continuous")


def neural_ode(
    field: Callable[[Any, Any, Any], Any],
    x0: Any,
    theta: Any,
    horizon: Any,
    n_steps: int,
    *,
    method: str = "rk4",
    gradient: str = "checkpointed",
) -> Any:
    """The state ``x(T)`` of ``x' = u(x, theta, t)``, ``x(0) = x0``, differentiable in `x0`, `theta` and `horizon`.

    Fixed steps: of Euler's method (order 1) or the classical one of Runge and Kutta (order 4). The gradient is one of

    * ``"checkpointed"``: the exact gradient of the discretised flow, keeping ``log2 n_steps + 1`` states (`recurrent`);
    * ``"stored"``: the same, keeping all of them; both modes of differentiation;
    * ``"continuous"``: the adjoint equation ``z' = -[d_x u]^T z``, ``z(T) = grad L(x(T))``, ``grad_theta = int_0^T
      [d_theta u]^T z dt`` (Peyré 2021, equation 65, which prints ``z(0)``), integrated backwards together with
      the state by the same method. It keeps nothing, but is the gradient of the discretised flow only up to the error
      of the method, and the state it goes back along drifts away where the flow contracts: ``x' = -l x`` run backwards
      multiplies errors by ``exp(l T)``.

    Examples
    --------
    >>> def decay(x, theta, t):
    ...     return -theta * x
    >>> print(neural_ode(decay, 1.5, 0.7, 2.0, 100).round(9))           # 1.5 exp(-1.4)
    0.369895446
    """
    checks.takes("field", field, "x, theta, t")
    checks.choice("method", method, METHODS)
    checks.choice("gradient", gradient, GRADIENTS)
    checks.whole("n_steps", n_steps)
    return finite(_flow(field, x0, theta, horizon, n_steps, method, gradient), "the flow")


@precise(static=("field", "n_steps", "method", "gradient"))
def _flow(field, x0, theta, horizon, n_steps, method, gradient):
    x0, theta, horizon = as_floats(x0), as_floats(theta), as_floats(horizon)
    same_shapes(lambda x, t: field(x, t, jnp.zeros_like(horizon)), x0, theta)
    if gradient == "continuous":
        return _continuous(field, n_steps, method, x0, theta, horizon)
    return _discrete(field, n_steps, method, x0, theta, horizon, "bisection" if gradient == "checkpointed" else None)


def _add(x, scale, slope):
    return jax.tree.map(lambda a, b: a + scale * b, x, slope)


def _one_step(field, method, x, theta, t, tau):
    first = field(x, theta, t)
    if method == "euler":
        return _add(x, tau, first)
    second = field(_add(x, tau / 2, first), theta, t + tau / 2)
    third = field(_add(x, tau / 2, second), theta, t + tau / 2)
    fourth = field(_add(x, tau, third), theta, t + tau)
    mean = jax.tree.map(lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, first, second, third, fourth)
    return _add(x, tau, mean)


def _discrete(field, n_steps, method, x0, theta, horizon, checkpoint):
    def step(x, parameters, k):
        theta, tau = parameters
        return _one_step(field, method, x, theta, k * tau, tau)

    return recurrent(step, x0, (theta, horizon / n_steps), n_steps, checkpoint=checkpoint)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _continuous(field, n_steps, method, x0, theta, horizon):
    return _discrete(field, n_steps, method, x0, theta, horizon, None)


def _forward(field, n_steps, method, x0, theta, horizon):
    x = _continuous(field, n_steps, method, x0, theta, horizon)
    return x, (x, theta, horizon)


def _backward(field, n_steps, method, kept, z):
    x, theta, horizon = kept

    def augmented(state, theta, t):
        x, z, _ = state
        slope, pull = jax.vjp(lambda x, theta: field(x, theta, t), x, theta)
        along, more = pull(z)
        return slope, jax.tree.map(jnp.negative, along), jax.tree.map(jnp.negative, more)

    last = field(x, theta, horizon)
    of_horizon = sum(jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(z), jax.tree.leaves(last), strict=True))
    tau = -horizon / n_steps

    def step(state, k):
        return _one_step(augmented, method, state, theta, horizon + k * tau, tau), None

    start = (x, z, jax.tree.map(jnp.zeros_like, theta))
    (_, z, gradient), _ = jax.lax.scan(step, start, jnp.arange(n_steps))
    return z, gradient, of_horizon


_continuous.defvjp(_forward, _backward)
