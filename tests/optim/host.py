"""A solver on the host, as a Numba one would be: it consumes its state, and carries a generator in it."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.optim.certify.strong_convexity import certify_strong_convexity
from cumulant.optim.protocol import Solver


class DescentState(NamedTuple):
    x: Any
    residual: Any
    rng: Any
    alive: Any


@dataclasses.dataclass(frozen=True)
class CoordinateDescent(Solver):
    """Random coordinate descent on ridge regression, on the host: ten updates a step, in place, on a consumed state."""

    updates: int = 10
    backend: ClassVar[str] = "host"

    def init(self, problem, x0, rng):
        x = np.array(x0)
        return DescentState(x, problem.A @ x - problem.y, np.random.default_rng(rng), [np.array(True)])

    def step(self, problem, state):
        assert state.alive[0], "a consumed state was used again"
        state.alive[0][...] = False
        scale = problem.weight
        for j in state.rng.integers(0, state.x.size, size=self.updates):
            column = problem.A[:, j]
            slope = scale * column @ state.residual + problem.l2 * state.x[j]
            change = -slope / (scale * column @ column + problem.l2)
            state.x[j] += change
            state.residual[...] += change * column
        return DescentState(state.x, state.residual, state.rng, [np.array(True)])

    def certify(self, problem, state):
        return certify_strong_convexity(problem, state.x)

    def measure(self, problem, state):
        value = problem.weight * state.residual @ state.residual / 2 + problem.l2 * state.x @ state.x / 2
        slope = problem.weight * problem.A.T @ state.residual + problem.l2 * state.x
        return {"value": value, "bound": slope @ slope / (2 * problem.strong_convexity)}
