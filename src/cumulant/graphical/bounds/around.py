"""Lower bounds from a possible state: the sum over all states that agree with it on some variables."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cumulant.graphical.exact.elimination import Elimination
from cumulant.graphical.exact.orders import fast_order
from cumulant.graphical.exact.support import reduce
from cumulant.graphical.structure import Structure
from cumulant.randomness import generator


class Around(NamedTuple):
    """``log sum exp <theta, T(x)>`` over the states that have the values `given`, and a draw from them."""

    value: float
    given: dict[int, int]
    drawn: np.ndarray


def sum_around(
    structure: Structure,
    theta: np.ndarray,
    state: np.ndarray,
    max_entries: float,
    max_memory: int,
    seed: int,
    alive: Callable[[], None] = lambda: None,
    n_jobs: int | None = None,
) -> Around:
    """Give variables their values in a possible state until elimination does the others within `max_entries`.

    All terms of ``Z`` are positive, so that a part of the sum is a lower bound. Those with the largest neighbourhoods,
    perturbed at random, are given first. A draw from the states that are summed over is a start for another such sum.
    `alive` is called before each search for an order, and may raise to end it.

    >>> structure = Structure([2, 2], [(0, 1)])
    >>> found = sum_around(structure, np.array([0.0, -np.inf, -np.inf, 1.0]), np.array([0, 0]), 100.0, 2**20, 0)
    >>> round(found.value, 6), found.given                                     # log(1 + e): nothing had to be given
    (1.313262, {})
    """
    draw = generator(seed)
    given, free, found = {}, np.arange(structure.n_variables), reduce(structure, theta, smaller_scopes=True)
    while True:
        if found is None:
            raise ValueError("state must be possible: no state agrees with it")
        part, left = found.structure, free[found.left]
        order = fast_order(part, alive)
        if order.entries <= max_entries:
            break
        edges, logs = part.edges, np.log(part.cardinalities)
        weight = logs.copy()
        np.add.at(weight, edges[:, 0], logs[edges[:, 1]])
        np.add.at(weight, edges[:, 1], logs[edges[:, 0]])
        weight *= draw.uniform(0.5, 1.5, weight.size)
        count = max(math.ceil(0.5 * math.log2(order.entries / max_entries)), part.n_variables // 100)
        given |= {int(left[k]): int(state[left[k]]) for k in np.argsort(-weight, kind="stable")[:count]}
        smaller, tables, free = structure.restrict(theta, given)
        found = reduce(smaller, tables, smaller_scopes=True)
    solver = Elimination(part, found.theta, order, max_memory, n_jobs)
    value, drawn = solver.log_partition(), state.copy()
    drawn[free] = found.configuration(solver.sample(draw.random((1, part.n_variables)))[0])
    return Around(value, given, drawn)
