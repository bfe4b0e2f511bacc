"""Stochastic gradient methods on a `FiniteSum`, as compiled programs: the same updates as the kernels for rows."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from cumulant import precision


def in_float64(program):
    """Run a compiled program on NumPy arrays in float64 and hand NumPy back."""

    @functools.wraps(program)
    def call(*args, **settings):
        with precision.float64():
            return precision.to_numpy(program(*args, **settings))

    return call


def _row(data: Any, i: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[i], data)


@in_float64
@jax.jit
def sgd_program(problem, x, total, order, steps):
    """``x <- (1 - tau l2) x - tau mean_b grad f_b(x)`` for each row of `order`; `total` gathers the iterates."""
    data = jax.tree.map(jnp.asarray, problem.data)
    gradient = jax.grad(lambda x, rows: jnp.mean(jax.vmap(problem.term, in_axes=(None, 0))(x, rows)))

    def update(carry, now):
        x, total = carry
        rows, tau = now
        x = (1 - tau * problem.l2) * x - tau * gradient(x, _row(data, rows))
        return (x, total + x), None

    return jax.lax.scan(update, (x, total), (order, steps))[0]


@in_float64
@functools.partial(jax.jit, static_argnames=("method", "plain"))
def reduced_program(problem, x, total, table, seen, steps, order, *, method, plain):
    """SAG (method 0), SAGA (1) and SVRG (2); `table` ``(n, *shape)`` holds stored gradients and `total` their sum."""
    data = jax.tree.map(jnp.asarray, problem.data)
    gradient, n = jax.grad(problem.term), problem.n_terms

    def update(carry, now):
        x, total, table, seen, count = carry
        i, step = now
        new = gradient(x, _row(data, i))
        change = new - table[i]
        count = count + (1 - seen[i])
        seen = seen.at[i].set(1)
        direction = (total + change) / (n if plain else count) if method == 0 else change + total / n
        x = (1 - step * problem.l2) * x - step * direction
        if method != 2:
            total, table = total + change, table.at[i].set(new)
        return (x, total, table, seen, count), None

    count = jnp.sum(seen)
    return jax.lax.scan(update, (x, total, table, seen, count), (order, steps))[0][:4]


@in_float64
@jax.jit
def every_gradient(problem, x):
    """The gradient of each term at `x`, and their sum."""
    table = jax.vmap(jax.grad(problem.term), in_axes=(None, 0))(x, problem.data)
    return table, jnp.sum(table, axis=0)
