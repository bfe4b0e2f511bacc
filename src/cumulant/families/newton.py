"""The inverse of the mean map by Newton's method, for families without a closed form."""

import jax
import jax.numpy as jnp

_MAX_STEPS = 100
_MAX_HALVINGS = 60


def solve_mean_equation(family, mu):
    """The ``theta`` with ``grad A(theta) = mu``, minimising the convex ``A(theta) - <theta, mu>`` by damped Newton
    steps.

    A step is halved until it stays in the domain and does not increase the objective (beyond rounding). It starts from
    `family._start(mu)` and ends when the Newton decrement is at rounding level. Where it does not get there, NaN.
    """
    flat = mu.reshape(-1, mu.shape[-1])
    return jax.vmap(lambda m: _solve(family, m))(flat).reshape(mu.shape)


def _solve(family, mu):
    epsilon = jnp.finfo(mu.dtype).eps

    def objective(theta):
        return family.log_partition(theta) - jnp.sum(theta * mu)

    def newton(theta):
        gradient = jax.grad(objective)(theta)
        direction = -jnp.linalg.solve(jax.hessian(objective)(theta), gradient)
        return direction, -jnp.sum(gradient * direction)

    def step(carry):
        theta, direction, decrement, count = carry
        value = objective(theta)
        allowance = 8 * epsilon * (1 + jnp.abs(value))

        def fails(search):
            size, halvings = search
            trial = theta + size * direction
            worse = ~(objective(trial) <= value - 1e-4 * size * decrement + allowance)  # a NaN fails too
            return (halvings < _MAX_HALVINGS) & (~family.in_domain(trial) | worse)

        size, _ = jax.lax.while_loop(fails, lambda search: (search[0] / 2, search[1] + 1), (jnp.ones_like(value), 0))
        theta = theta + size * direction
        return (theta, *newton(theta), count + 1)

    def unfinished(carry):
        theta, _, decrement, count = carry
        return (count < _MAX_STEPS) & (decrement > epsilon**2 * (1 + jnp.sum(theta**2)))

    start = family._start(mu)
    theta, direction, decrement, _ = jax.lax.while_loop(unfinished, step, (start, *newton(start), 0))
    settled = decrement <= jnp.sqrt(epsilon)  # converged, or as far as rounding lets the objective go down
    polished = theta + jnp.where(family.in_domain(theta + direction), direction, 0.0)
    return jnp.where(settled, polished, jnp.nan)
