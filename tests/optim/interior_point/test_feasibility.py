"""Iterates of interior-point methods are strictly feasible, whatever the size of the gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant.optim.interior_point import (
    AbsoluteBounds,
    Bounds,
    ConstrainedProblem,
    Harmonic,
    InteriorPointSA,
    Intersection,
    LinearConstraints,
    QuadraticConstraints,
    SimplexConstraints,
    SmoothConstraints,
    ipsa_init,
    ipsa_step,
)
from cumulant.precision import float64

RNG = np.random.default_rng(3)


def ellipsoid(x, data):
    return jnp.sum(data * x * x, keepdims=True) - 1.0


ROWS = np.vstack([RNG.normal(size=(6, 3)), np.eye(3), -np.eye(3)])
ROUND = np.stack([np.diag([1.0, 3.0, 0.2]), np.eye(3)])
SETS = {
    "bounds at 1": (Bounds(1.0), np.full(3, 2.0)),
    "bounds at 100": (Bounds(100.0), np.full(3, 101.0)),
    "a box": (Bounds([-1e-8, 3.0, -7e5], [1e-8, 3.5, np.inf]), np.array([0.0, 3.2, 1.0])),
    "linear": (LinearConstraints(ROWS, np.full(12, 1.7)), np.zeros(3)),
    "linear, far away": (LinearConstraints(ROWS, np.full(12, 1.7) + ROWS @ np.full(3, 1e6)), np.full(3, 1e6)),
    "simplex": (SimplexConstraints(), np.full(3, 0.2)),
    "simplex of total 0.3": (SimplexConstraints(0.3), np.full(3, 0.05)),
    "absolute": (AbsoluteBounds(), np.array([0.3, -0.2, 0.8, 0.5])),
    "quadratic": (QuadraticConstraints(ROUND, np.zeros((2, 3)), [-1.0, -1.3]), np.zeros(3)),
    "function": (SmoothConstraints(ellipsoid, np.array([1.0, 2.0, 0.1])), np.zeros(3)),
    "intersection": (
        Intersection(
            (Bounds(-0.5), LinearConstraints(ROWS, np.full(12, 1.7)), SmoothConstraints(ellipsoid, np.ones(3)))
        ),
        np.zeros(3),
    ),
}


def violations(name, runs, steps, dtype):
    constraints, x0 = SETS[name]
    problem = ConstrainedProblem(None, constraints)
    solver = InteriorPointSA(Harmonic(1))

    def one(key):
        def step(state, key):
            size, direction = jax.random.split(key)
            wild = 10.0 ** jax.random.uniform(size, x0.shape, minval=-12.0, maxval=12.0)
            state = ipsa_step(solver, problem, state, (wild * jax.random.normal(direction, x0.shape)).astype(dtype))
            return state, (jnp.all(problem.constraints.value(state.x) < 0) & jnp.all(state.z > 0), state.x)

        _, (inside, x) = jax.lax.scan(step, start, jax.random.split(key, steps))
        return jnp.all(inside), x[-1]

    start = ipsa_init(solver, problem, jnp.asarray(x0, dtype))
    inside, last = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), runs))
    # Once more by another program, eagerly, point by point.
    again = [bool(np.all(np.asarray(problem.constraints.value(each)) < 0)) for each in last[:50]]
    moved = np.mean(np.any(np.asarray(last) != np.asarray(start.x), axis=1))
    assert moved > 0.9
    return int(runs - np.sum(np.asarray(inside))), again.count(False)


@pytest.mark.parametrize("name", ["bounds at 1", "simplex", "linear, far away"])  # only the last one needs halvings
def test_no_iterate_reaches_the_boundary(name):
    with float64():
        assert violations(name, 100, 60, jnp.float64) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_no_iterate_of_many_runs_reaches_the_boundary(name):
    with float64():
        assert violations(name, 1000, 60, jnp.float64) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bounds at 100", "simplex", "absolute", "linear", "quadratic"])
def test_no_iterate_reaches_the_boundary_in_float32(name):
    assert violations(name, 1000, 60, jnp.float32) == (0, 0)
