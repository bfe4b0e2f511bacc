"""The cost of a step in `optim.run`: gradient descent on a quadratic function of 10 variables, a record at every step.

The peer is what one would write by hand: a `fori_loop` that takes the same steps and stores the value after each. Promised
is at most 3 times its time a step.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import seconds
from cumulant import optim
from cumulant.precision import float64

STEPS = 1_000_000


@functools.partial(jax.jit, static_argnames=("steps",))
def by_hand(C, b, x, tau, steps):
    def body(k, carry):
        x, values = carry
        product = C @ x
        x = x - tau * (product - b)
        return x, values.at[k].set(jnp.dot(x, C @ x) / 2 - jnp.dot(b, x))

    return jax.lax.fori_loop(0, steps, body, (x, jnp.zeros(steps)))


def run() -> list:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(10, 10))
    problem = optim.Quadratic(root @ root.T + np.eye(10), rng.normal(size=10))
    tau, x0 = 1.0 / problem.smoothness, np.zeros(10)

    def peer():
        with float64():
            return np.asarray(by_hand(problem.C, problem.b, x0, tau, STEPS)[0])

    def ours(every=1):
        return optim.run(optim.GradientDescent(), problem, x0, max_work=STEPS, every=every)

    np.testing.assert_allclose(ours().x, peer(), rtol=1e-9)
    ours(None)
    theirs = min(seconds(peer) for _ in range(5))
    dense = min(seconds(ours) for _ in range(5))
    default = min(seconds(lambda: ours(None)) for _ in range(5))
    for name, took in (("every=1", dense), ("default", default)):
        print(
            f"{name}: {1e6 * took / STEPS:.3f} us a step, {took / theirs:.2f} times the loop by hand "
            f"({1e6 * theirs / STEPS:.3f} us); bar 3: {'reached' if took <= 3 * theirs else 'MISSED'}"
        )
    return []
