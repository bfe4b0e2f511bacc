"""The cost of a step in `optim.run`: gradient descent on a quadratic function of 10 variables, a record at every step.

The peer is what one would write by hand: a `fori_loop` that takes the same steps and stores the value after each.
Promised is at most 3 times its time. With the default interval of records, at most 1.5 times.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import Row, race
from cumulant import optim
from cumulant.precision import float64

STEPS = 1_000_000


@functools.partial(jax.jit, static_argnames=("steps",))
def by_hand(C, b, x, tau, steps):
    def body(k, carry):
        x, values = carry
        x = x - tau * (C @ x - b)
        return x, values.at[k].set(jnp.dot(x, C @ x) / 2 - jnp.dot(b, x))

    return jax.lax.fori_loop(0, steps, body, (x, jnp.zeros(steps)))


def run() -> list[Row]:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(10, 10))
    problem = optim.Quadratic(root @ root.T + np.eye(10), rng.normal(size=10))
    tau, x0 = 1.0 / problem.smoothness, np.zeros(10)

    def peer():
        with float64():
            return np.asarray(by_hand(problem.C, problem.b, x0, tau, STEPS)[0])

    def ours(every):
        return optim.run(optim.GradientDescent(), problem, x0, max_steps=STEPS, tol=None, every=every)

    np.testing.assert_allclose(ours(1).x, peer(), rtol=1e-9)
    return [
        race("a million steps, every=1", "fori_loop by hand", lambda: ours(1), peer, bar=1 / 3),
        race("a million steps, default records", "fori_loop by hand", lambda: ours(None), peer, bar=2 / 3),
    ]
