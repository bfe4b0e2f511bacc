"""Parts that exact inference can do: variables in blocks, so that what lies inside the blocks fits into memory.

A graph is cut along a *direction*: a number for each variable, the difference of its distances from two landmarks. On a
grid the landmarks are corners, and two that share a side give the columns or the rows. Blocks are what lies between two
cuts; as many cuts as the memory asks for, where the factors that they cut are weakest.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from cumulant.graphical.exact.elimination import Elimination
from cumulant.graphical.exact.orders import Order, elimination_order
from cumulant.graphical.exact.schedule import plan
from cumulant.graphical.structure import Structure

__all__ = ["Partition", "fits", "good_order", "inside", "partitions", "strengths", "with_fields"]

_LANDMARKS = 4
_MOST_BLOCKS = 64  # beyond, single variables


@dataclass(frozen=True, eq=False)
class Partition:
    """The block of each variable, and how strong the factors across blocks are together."""

    labels: np.ndarray
    cost: float
    kept: np.ndarray  # the factors inside the blocks
    part: Structure  # these, and a table for each variable

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return int(self.labels.max(initial=-1)) + 1


def strengths(structure: Structure, theta: np.ndarray) -> np.ndarray:
    """How much each factor ties its variables together: the square of half the range of its finite entries.

    To second order a coupling of ``J`` between two spins is worth ``J^2 / 2`` in ``log Z``; its table has the range
    ``2 J``.
    """
    starts = structure.table_starts
    out = np.zeros(structure.n_factors)
    for f in range(structure.n_factors):
        table = theta[starts[f] : starts[f + 1]]
        finite = table[np.isfinite(table)]
        if structure.scope_starts[f + 1] - structure.scope_starts[f] > 1 and finite.size:
            out[f] = (0.5 * np.ptp(finite)) ** 2 + (1.0 if finite.size < table.size else 0.0)
    return out


def inside(structure: Structure, labels: np.ndarray) -> np.ndarray:
    """Which factors have all their variables in one block."""
    low, high = _spans(structure, labels.astype(np.float64))
    return low == high


def with_fields(structure: Structure, kept: np.ndarray) -> Structure:
    """The factors `kept` (their numbers), and after them a table for each single variable."""
    starts = structure.scope_starts
    scopes = [structure.scopes[starts[f] : starts[f + 1]] for f in kept.tolist()]
    single = np.arange(structure.n_variables)
    ends = np.cumsum([0, *map(len, scopes), *([1] * single.size)])
    return Structure.flat(structure.cardinalities, ends, np.concatenate([*scopes, single]))


def partitions(structure: Structure, theta: np.ndarray, max_memory: int, most: int) -> list[Partition]:
    """Up to `most` partitions into as few blocks as fit into `max_memory`; none where no number of blocks does.

    Along each of the directions whose cuts are cheapest come the cheapest cuts near equal parts, and then the same
    moved to both sides, so that few factors are cut by all of them.
    """
    strength = strengths(structure, theta)
    levels = _directions(structure)
    prices = [_middle_price(structure, level, strength) for level in levels]
    order = np.argsort(prices, kind="stable")
    good = [levels[i] for i in order if prices[i] <= 1.25 * prices[order[0]] + 1e-12][:2]
    starts = [(level, next(_fitting(structure, level, strength, max_memory), None)) for level in good]
    found = [(level, start) for level, start in starts if start is not None]
    if not found:
        return []
    fewest = min(start.n_blocks for _, start in found)
    found = [(level, start) for level, start in found if start.n_blocks == fewest]
    share = -(-most // len(found))
    chosen: list[Partition] = []
    for level, start in found:
        chosen += _moved(structure, level, strength, max_memory, start, share)
    return sorted(chosen[:most], key=lambda p: p.cost)


def _middle_price(structure, level, strength) -> float:
    """What the cheapest cut in the middle half of the variables costs."""
    count = np.cumsum(np.bincount(level))
    middle = np.flatnonzero((count >= 0.25 * count[-1]) & (count <= 0.75 * count[-1])) + 1
    middle = middle[middle <= level.max()]
    return float(_prices(structure, level, strength)[middle].min()) if middle.size else np.inf


def _directions(structure: Structure) -> list[np.ndarray]:
    """Levels 0, 1, 2, ... of all variables, one array for each pair of landmarks."""
    n, edges = structure.n_variables, structure.edges
    graph = csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (n, n))

    def distances(v):
        found = dijkstra(graph, directed=False, indices=v, unweighted=True)
        return np.where(np.isfinite(found), found, n)  # another component is further than anything

    first = int(np.argmax(distances(0)))
    far = [distances(first)]
    while len(far) < min(_LANDMARKS, n):
        far.append(distances(int(np.argmax(np.min(far, axis=0)))))
    levels = [a - b for a, b in itertools.combinations(far, 2)] + far
    out: list[np.ndarray] = []
    for level in levels:
        ranks = np.unique(level, return_inverse=True)[1].reshape(-1)
        if ranks.max(initial=0) > 0:
            out.append(ranks)
    return out


def _fitting(structure, level, strength, max_memory) -> Iterator[Partition]:
    """Partitions along a direction that fit, those with fewest blocks first."""
    last = int(level.max())
    count = np.cumsum(np.bincount(level, minlength=last + 1))
    for n_blocks in range(2, min(last + 1, _MOST_BLOCKS) + 1):
        ideal = count[-1] * np.arange(1, n_blocks) / n_blocks
        cuts = np.searchsorted(count, ideal - 1e-9) + 1  # a block begins at the level of a cut
        cuts = np.unique(np.clip(_cheapest_near(structure, level, strength, cuts, 1), 1, last))
        found = _made(structure, level, strength, cuts)
        if fits(found.part, max_memory):
            yield found


def _cheapest_near(structure, level, strength, cuts, reach) -> np.ndarray:
    price = _prices(structure, level, strength)
    out = []
    for cut in cuts.tolist():
        near = np.arange(max(1, cut - reach), min(int(level.max()), cut + reach) + 1)
        out.append(int(near[np.lexsort((np.abs(near - cut), price[near]))[0]]))
    return np.array(out)


def _prices(structure, level, strength) -> np.ndarray:
    """The strength of the factors that a cut before each level cuts."""
    low, high = _spans(structure, level.astype(np.float64))
    price = np.zeros(int(level.max()) + 2)
    np.add.at(price, low.astype(np.int64) + 1, strength)
    np.subtract.at(price, high.astype(np.int64) + 1, strength)
    return np.maximum(np.cumsum(price), 0.0)


def _spans(structure: Structure, level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest level in each factor; 0 for one without variables."""
    low, high = np.zeros(structure.n_factors), np.zeros(structure.n_factors)
    some = np.flatnonzero(np.diff(structure.scope_starts) > 0)
    if some.size:
        values = level[structure.scopes]
        low[some] = np.minimum.reduceat(values, structure.scope_starts[:-1][some])
        high[some] = np.maximum.reduceat(values, structure.scope_starts[:-1][some])
    return low, high


def _made(structure, level, strength, cuts) -> Partition:
    labels = np.searchsorted(cuts, level, side="right")
    labels = np.unique(labels, return_inverse=True)[1].reshape(-1)
    within = inside(structure, labels)
    kept = np.flatnonzero(within)
    return Partition(labels, float(strength[~within].sum()), kept, with_fields(structure, kept))


def _moved(structure, level, strength, max_memory, start, most) -> list[Partition]:
    """`start`, and its cuts moved together by one level, two levels, ... to both sides, while the blocks fit."""
    cuts = np.array([level[start.labels == b].min() for b in range(1, start.n_blocks)])
    out, open_sides = [start], [1, -1]
    for distance in range(1, int(level.max()) + 1):
        for side in tuple(open_sides):
            there = cuts + side * distance
            each = None
            if there.min() >= 1 and there.max() <= level.max() and len(out) < most:
                each = _made(structure, level, strength, there)
            if each is None or each.n_blocks < start.n_blocks or not fits(each.part, max_memory):
                open_sides.remove(side)
            else:
                out.append(each)
    return out


def good_order(structure: Structure) -> Order:
    """A cheap order, found fast: without the repeated searches that pay where one pass is all that is asked for."""
    if "fast" not in structure.plans:
        kinds = ("min-fill", "frontier")
        structure.plans["fast"] = min(
            (elimination_order(structure, kind, restarts=0) for kind in kinds), key=lambda o: o.entries
        )
    return structure.plans["fast"]


def fits(part: Structure, max_memory: int) -> bool:
    """Whether exact marginals of all tables of a model need at most `max_memory` bytes."""
    order = good_order(part)
    if 24.0 * 2.0**order.log2_largest > max_memory:
        return False
    program = Elimination(part, np.zeros(0), order, max_memory).program
    limit = max_memory // 8
    tables = 2 * int(part.table_starts[-1])  # parameters and beliefs, outside the pass
    if 2 * int(program.lengths.sum()) + 3 * tables <= limit:
        return True  # all messages and what multiplies them at once
    return plan(program, True, True, limit - tables).entries + tables <= limit
