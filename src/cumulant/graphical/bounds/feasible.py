"""A state that is possible, for models that forbid most: local repair of the factors that a state violates."""

from collections.abc import Callable

import numpy as np

from cumulant.graphical.structure import Structure
from cumulant.randomness import generator

_NOISE = 0.4  # how often a repair that violates others is a random one
_AT_ONCE = 64  # repairs between two questions whether to go on


def possible_state(
    structure: Structure, theta: np.ndarray, start: np.ndarray, seed: int, report: Callable[[], None], most: int
) -> np.ndarray | None:
    """A state in which no factor has the value minus infinity, or None where `most` repairs have not found one.

    Each repair takes one of the factors that the state violates and gives one of its variables another value: that
    which violates the fewest others, or, where each of them violates some, now and then a random one (WalkSAT; Selman,
    Kautz and Cohen 1994, here for tables of any kind). `report` is called every so often, and may raise to end the
    search.

    >>> structure = Structure([2, 2], [(0, 1)])
    >>> theta = np.array([-np.inf, 0.0, -np.inf, -np.inf])
    >>> possible_state(structure, theta, np.array([1, 0]), 0, lambda: None, 100)
    array([0, 1])
    """
    starts, sizes = structure.table_starts, structure.cardinalities.tolist()
    hard = [f for f in range(structure.n_factors) if np.isneginf(theta[starts[f] : starts[f + 1]]).any()]
    bad = [np.isneginf(theta[starts[f] : starts[f + 1]]).tolist() for f in hard]
    scopes = [structure.scope(f) for f in hard]
    if any(all(table) for table in bad):
        return None
    beside: list[list[tuple[int, int]]] = [[] for _ in sizes]  # of a variable: (hard factor, stride)
    for f, scope in enumerate(scopes):
        stride = 1
        for v in reversed(scope):
            beside[v].append((f, stride))
            stride *= sizes[v]
    x = start.tolist()
    at = [0] * len(hard)  # the entry of each table at the state
    for v, places in enumerate(beside):
        for f, stride in places:
            at[f] += stride * x[v]
    violated = [f for f in range(len(hard)) if bad[f][at[f]]]
    place = {f: k for k, f in enumerate(violated)}
    draw = generator(seed)
    done, numbers = 0, []
    while violated:
        if done >= most:
            return None
        if done % _AT_ONCE == 0:
            report()
            numbers = draw.random((_AT_ONCE, 3)).tolist()
        pick, noise, choice = numbers[done % _AT_ONCE]
        done += 1
        options = [
            (sum(bad[g][at[g] + (a - x[v]) * stride] > bad[g][at[g]] for g, stride in beside[v]), v, a)
            for v in scopes[violated[int(pick * len(violated))]]
            for a in range(sizes[v])
            if a != x[v]
        ]
        if not options:
            return None  # a factor of variables with one state
        least = min(options)[0]
        if noise >= _NOISE or least == 0:
            options = [option for option in options if option[0] == least]
        _, v, a = options[int(choice * len(options))]
        for g, stride in beside[v]:
            was = bad[g][at[g]]
            at[g] += (a - x[v]) * stride
            if bad[g][at[g]] and not was:
                place[g] = len(violated)
                violated.append(g)
            elif was and not bad[g][at[g]]:
                last, k = violated.pop(), place.pop(g)
                if last != g:
                    violated[k], place[last] = last, k
        x[v] = a
    return np.array(x, dtype=np.int64)
