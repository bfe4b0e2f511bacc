"""Exact values in less memory: a sum over the states of some variables of what elimination gives for the others."""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from cumulant.certificates import rounding
from cumulant.graphical.exact.elimination import Elimination, slack_of_elimination
from cumulant.graphical.exact.orders import Order, fast_order
from cumulant.graphical.exact.program import Program
from cumulant.graphical.exact.schedule import plan
from cumulant.graphical.structure import Structure


def cutset(
    structure: Structure, max_memory: int, max_entries: float, alive: Callable[[], None] = lambda: None
) -> tuple[list[int], Order] | None:
    """Variables whose values, once given, leave a model that elimination does within `max_memory` bytes, and the order
    for it; None where the work for all their states together is above `max_entries`.

    Greedy: each time the variable whose neighbours have the most states. (Pearl 1986; Dechter 1990.) `alive` is called
    before each, and may raise to end the search.
    """
    left, part, chosen, states = np.arange(structure.n_variables), structure, [], 1.0
    while True:
        order = fast_order(part, alive)
        if states * order.entries > max_entries:
            return None
        if 8.0 * 2.0**order.log2_largest <= 2.0 * max_memory:
            program = Program.of(part, order.order)
            if 8 * plan(program, False, False, max_memory // 8).entries <= max_memory:
                return chosen, order
        weight, edges = np.zeros(part.n_variables), part.edges
        logs = np.log(part.cardinalities)
        np.add.at(weight, edges[:, 0], logs[edges[:, 1]])
        np.add.at(weight, edges[:, 1], logs[edges[:, 0]])
        if not weight.any():
            return None
        alive()
        v = int(left[np.argmax(weight)])
        chosen.append(v)
        states *= float(structure.cardinalities[v])
        part, _, left = structure.restrict(np.zeros(int(structure.table_starts[-1])), dict.fromkeys(chosen, 0))


def conditioned(
    structure: Structure,
    theta: np.ndarray,
    variables: list[int],
    order: Order,
    max_memory: int,
    report: Callable[[], None],
    n_jobs: int | None = None,
) -> Iterator[tuple[float, float]]:
    """``log sum_c Z(c)`` over the states ``c`` of `variables`, one after the other: the sum so far, which is a lower
    bound until all of them are in it, and what rounding may do. `report` is called before each state.
    """
    slack = slack_of_elimination(structure, theta)  # with values given, there is less to add up
    top, scaled, part = -np.inf, 0.0, None  # the sum is exp(top) * scaled, so that an error stays relative
    for done, state in enumerate(itertools.product(*(range(int(structure.cardinalities[v])) for v in variables)), 1):
        report()
        given = structure.restrict(theta, dict(zip(variables, state, strict=True)))
        part = given[0] if part is None else part  # the same structure each time: its plans are kept
        value = Elimination(part, given[1], order, max_memory, n_jobs).log_partition()
        if value > top:
            top, scaled = value, scaled * math.exp(top - value) + 1.0
        elif value > -np.inf:
            scaled += math.exp(value - top)
        total = top + math.log(scaled) if scaled > 0.0 else -np.inf
        yield total, slack + rounding(total if scaled > 0.0 else 0.0, terms=4.0) + rounding(done, terms=4.0)
