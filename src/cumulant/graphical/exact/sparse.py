"""Elimination on tables that keep only their possible entries.

A dense table has an entry for each configuration of its variables. Where most are impossible, as in pedigrees, the
possible ones may fit where the dense table does not. Tables are multiplied by joining rows that agree on the variables
they share; how many rows that gives depends on the entries and is known only when it is done.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cumulant.graphical.structure import Structure

_LARGEST_KEY = 2**62
_BYTES = 64  # of a row while tables are joined and summed, besides three times the states of its variables


@dataclass(frozen=True, eq=False)
class _Rows:
    """The possible entries of a table: the states of its variables, one row each, and the logarithms."""

    variables: tuple[int, ...]
    states: np.ndarray  # (rows, variables)
    logs: np.ndarray

    def key(self, variables: tuple[int, ...], sizes: np.ndarray) -> np.ndarray:
        """The states of some of its variables as one number."""
        out = np.zeros(self.logs.size, np.int64)
        for v in variables:
            out *= sizes[v]
            out += self.states[:, self.variables.index(v)]
        return out


class _TooMany(Exception):  # noqa: N818
    """A product has more rows than are allowed."""


def sparse_log_partition(
    structure: Structure,
    theta: np.ndarray,
    order: np.ndarray,
    max_rows: float,
    max_memory: float = math.inf,
    alive: Callable[[], None] = lambda: None,
) -> float | None:
    """``log Z`` by elimination in the given order on possible entries only; None where all joins together would make
    more than `max_rows` rows, or one of them more than `max_memory` bytes. `alive` is called before each variable, and
    may raise to end it.

    >>> structure = Structure([2, 2], [(0, 1), (1,)])
    >>> theta = np.array([0.0, -np.inf, -np.inf, 0.0, 1.0, 2.0])
    >>> round(sparse_log_partition(structure, theta, np.array([0, 1]), 100), 6)     # log(e + e^2)
    2.313262
    """
    sizes, constants, tables = structure.cardinalities, [], []
    for f in range(structure.n_factors):
        table = structure.table(f, theta)
        top = float(table.max()) if table.size else -np.inf
        if top == -np.inf:
            return -np.inf
        constants.append(top)
        if table.ndim:
            states = np.argwhere(table > -np.inf)
            tables.append(_Rows(structure.scope(f), states.astype(np.int32), table[tuple(states.T)] - top))
    left = float(max_rows)
    try:
        for v in order.tolist():
            alive()
            own = sorted((t for t in tables if v in t.variables), key=lambda t: t.logs.size)
            tables = [t for t in tables if v not in t.variables]
            if not own:
                constants.append(math.log(sizes[v]))
                continue
            product = own[0]
            for other in own[1:]:
                width = len({*product.variables, *other.variables})
                product = _join(product, other, sizes, min(left, max_memory / (_BYTES + 12 * width)))
                left -= product.logs.size
            made, shift = _sum_out(product, v, sizes)
            constants.append(shift)
            if made.logs.size == 0:
                return -np.inf
            if made.variables:
                tables.append(made)
    except _TooMany:
        return None
    return math.fsum(constants)


def _join(a: _Rows, b: _Rows, sizes: np.ndarray, limit: float) -> _Rows:
    """The product: rows of both that agree on the variables they share."""
    shared = tuple(v for v in a.variables if v in b.variables)
    new = [k for k, v in enumerate(b.variables) if v not in shared]
    if math.prod(int(sizes[v]) for v in shared) > _LARGEST_KEY:
        raise _TooMany
    order = np.argsort(keys := b.key(shared, sizes), kind="stable")
    keys, mine = keys[order], a.key(shared, sizes)
    begin, end = np.searchsorted(keys, mine, "left"), np.searchsorted(keys, mine, "right")
    count = end - begin
    total = int(count.sum())
    if total > limit:
        raise _TooMany
    first = np.repeat(np.arange(mine.size), count)
    second = order[np.arange(total) + np.repeat(begin - (np.cumsum(count) - count), count)]
    states = np.concatenate([a.states[first], b.states[second][:, new]], axis=1)
    return _Rows((*a.variables, *(b.variables[k] for k in new)), states, a.logs[first] + b.logs[second])


def _sum_out(table: _Rows, v: int, sizes: np.ndarray) -> tuple[_Rows, float]:
    """``log sum_v exp``, relative to its largest entry, and that entry."""
    rest = tuple(u for u in table.variables if u != v)
    if table.logs.size == 0:
        return _Rows(rest, np.zeros((0, len(rest)), np.int32), table.logs), 0.0
    if math.prod(int(sizes[u]) for u in rest) > _LARGEST_KEY:
        raise _TooMany
    order = np.argsort(keys := table.key(rest, sizes), kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    logs = table.logs[order]
    top = np.maximum.reduceat(logs, starts)
    sums = np.add.reduceat(np.exp(logs - np.repeat(top, np.diff(np.append(starts, logs.size)))), starts)
    out = top + np.log(sums)
    shift = float(out.max())
    columns = [k for k, u in enumerate(table.variables) if u != v]
    return _Rows(rest, table.states[order[starts]][:, columns], out - shift), shift
