"""Parts that exact inference can do: variables in blocks, so that what lies inside the blocks fits into memory.

A graph is cut along a *direction*: a number for each variable, the difference of its distances from two landmarks. On a
grid the landmarks are corners, and two that share a side give the columns or the rows. Blocks are what lies between two
cuts; as many cuts as the memory asks for, where the factors that they cut are weakest.

Blocks of one shape, such as strips of a grid that are equally wide, share one structure, and with it the order of
elimination and the plan of memory: these are found once.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from cumulant.graphical.exact.elimination import Elimination
from cumulant.graphical.exact.orders import fast_order
from cumulant.graphical.messages.incidence import ranges
from cumulant.graphical.messages.structured_blocks import prices, spans, within
from cumulant.graphical.structure import Structure

_LANDMARKS = 4
_MOST_BLOCKS = 128  # beyond, single variables


@dataclass(frozen=True, eq=False)
class Block:
    """Some variables, the factors inside, and the structure of these, with a table for each variable after them."""

    variables: np.ndarray
    factors: np.ndarray
    part: Structure


@dataclass(frozen=True, eq=False)
class Partition:
    """The block of each variable, and how strong the factors across blocks are together."""

    labels: np.ndarray
    cost: float
    kept: np.ndarray  # the factors inside the blocks
    blocks: tuple[Block, ...]

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return len(self.blocks)

    @property
    def entries(self) -> float:
        """The work of one pass over all blocks."""
        return sum(fast_order(block.part).entries for block in self.blocks)


@dataclass(eq=False)
class Limits:
    """What a partition may cost, who is asked on the way whether to go on, and the structures met so far."""

    memory: int  # bytes for one block
    entries: float = math.inf  # of a pass over all blocks
    report: Callable[[], None] = lambda: None
    known: dict[Structure, Structure] = field(default_factory=dict)

    def shared(self, part: Structure) -> Structure:
        """The first structure met that is equal to this one: it may have an order and a plan already."""
        return self.known.setdefault(part, part)

    def allow(self, partition: Partition) -> bool:
        """Whether each block fits into memory, and all of them into the work."""
        left = self.entries
        for block in sorted(partition.blocks, key=lambda b: -b.variables.size):
            left -= fast_order(block.part).entries
            if left < 0.0 or not fits(block.part, self.memory):
                return False
        return True


def strengths(structure: Structure, theta: np.ndarray) -> np.ndarray:
    """How much each factor ties its variables together: the square of half the range of its finite entries.

    To second order a coupling of ``J`` between two spins is worth ``J^2 / 2`` in ``log Z``; its table has the range
    ``2 J``.
    """
    if structure.n_factors == 0:
        return np.zeros(0)
    starts, own = structure.table_starts[:-1], theta[: int(structure.table_starts[-1])]
    finite = np.isfinite(own)
    low = np.minimum.reduceat(np.where(finite, own, np.inf), starts)
    high = np.maximum.reduceat(np.where(finite, own, -np.inf), starts)
    some = np.isfinite(low) & (np.diff(structure.scope_starts) > 1)
    hard = ~np.logical_and.reduceat(finite, starts)
    return np.where(some, (0.5 * np.where(some, high - low, 0.0)) ** 2 + hard, 0.0)


def with_fields(structure: Structure, kept: np.ndarray) -> Structure:
    """The factors `kept` (their numbers), and after them a table for each single variable."""
    return _block(structure, np.arange(structure.n_variables), kept)


def _block(structure: Structure, variables: np.ndarray, kept: np.ndarray) -> Structure:
    """The factors `kept`, which are about some variables only, and after them a table for each of these."""
    begin, width = structure.scope_starts[:-1][kept], np.diff(structure.scope_starts)[kept]
    ends = np.concatenate([[0], np.cumsum(width)])
    places = ranges(begin, width)
    number = np.zeros(structure.n_variables, np.int64)
    number[variables] = np.arange(variables.size)
    single = np.arange(variables.size)
    return Structure.flat(
        structure.cardinalities[variables],
        np.concatenate([ends, ends[-1] + 1 + single]),
        np.concatenate([number[structure.scopes[places]], single]),
    )


def partitions(structure: Structure, theta: np.ndarray, limits: Limits, most: int) -> list[Partition]:
    """Up to `most` partitions into as few blocks as keep within the `limits`; none where no number of blocks does.

    Along each of the directions whose cuts are cheapest come the cheapest cuts near equal parts, and then the same
    moved to both sides, so that few factors are cut by all of them.
    """
    strength = strengths(structure, theta)
    levels = _directions(structure)
    prices = [_middle_price(structure, level, strength) for level in levels]
    order = np.argsort(prices, kind="stable")
    good = [levels[i] for i in order if prices[i] <= 1.25 * prices[order[0]] + 1e-12][:2]
    starts = [(level, _fewest(structure, level, strength, limits)) for level in good]
    found = [(level, start) for level, start in starts if start is not None]
    if not found:
        return []
    fewest = min(start.n_blocks for _, start in found)
    found = [(level, start) for level, start in found if start.n_blocks == fewest]
    share = -(-most // len(found))
    chosen: list[Partition] = []
    for level, start in found:
        chosen += _moved(structure, level, strength, limits, start, share)
    return sorted(chosen[:most], key=lambda p: p.cost)


def _middle_price(structure, level, strength) -> float:
    """What the cheapest cut in the middle half of the variables costs."""
    count = np.cumsum(np.bincount(level))
    middle = np.flatnonzero((count >= 0.25 * count[-1]) & (count <= 0.75 * count[-1])) + 1
    middle = middle[middle <= level.max()]
    return float(prices(structure, level, strength)[middle].min()) if middle.size else np.inf


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


def _fewest(structure, level, strength, limits) -> Partition | None:
    """The partition along a direction with the fewest blocks that is allowed, by bisection: more blocks are smaller."""
    last = int(level.max())
    count = np.cumsum(np.bincount(level, minlength=last + 1))
    low, high, best = 1, min(last + 1, _MOST_BLOCKS) + 1, None
    while high - low > 1:
        n_blocks = (low + high) // 2
        limits.report()
        ideal = count[-1] * np.arange(1, n_blocks) / n_blocks
        cuts = np.searchsorted(count, ideal - 1e-9) + 1  # a block begins at the level of a cut
        cuts = np.unique(np.clip(_cheapest_near(structure, level, strength, cuts, 1), 1, last))
        found = _made(structure, level, strength, cuts, limits)
        if limits.allow(found):
            high, best = n_blocks, found
        else:
            low = n_blocks
    return best


def _cheapest_near(structure, level, strength, cuts, reach) -> np.ndarray:
    price = prices(structure, level, strength)
    out = []
    for cut in cuts.tolist():
        near = np.arange(max(1, cut - reach), min(int(level.max()), cut + reach) + 1)
        out.append(int(near[np.lexsort((np.abs(near - cut), price[near]))[0]]))
    return np.array(out)


def _made(structure, level, strength, cuts, limits) -> Partition:
    labels = np.searchsorted(cuts, level, side="right")
    labels = np.unique(labels, return_inverse=True)[1].reshape(-1)
    low, high = spans(structure, labels)
    within = low == high
    kept = np.flatnonzero(within)
    owner, blocks = low[kept], []
    for b in range(int(labels.max()) + 1):
        variables, factors = np.flatnonzero(labels == b), kept[owner == b]
        blocks.append(Block(variables, factors, limits.shared(_block(structure, variables, factors))))
    return Partition(labels, float(strength[~within].sum()), kept, tuple(blocks))


def _moved(structure, level, strength, limits, start, most) -> list[Partition]:
    """`start`, and its cuts moved together by one level, two levels, ... to both sides, while the blocks fit."""
    cuts = np.array([level[block.variables].min() for block in start.blocks[1:]])
    out, open_sides = [start], [1, -1]
    for distance in range(1, int(level.max()) + 1):
        for side in tuple(open_sides):
            there = cuts + side * distance
            each = None
            if there.min() >= 1 and there.max() <= level.max() and len(out) < most:
                limits.report()
                each = _made(structure, level, strength, there, limits)
            if each is None or each.n_blocks < start.n_blocks or not limits.allow(each):
                open_sides.remove(side)
            else:
                out.append(each)
    return out


def fits(part: Structure, max_memory: int) -> bool:
    """Whether exact marginals of all tables of a model need at most `max_memory` bytes."""
    return within(part, max_memory - outside(part))


def at_once(part: Structure, max_memory: int) -> bool:
    """Whether all messages and what multiplies them fit at once: no plan of the memory is needed then."""
    order = fast_order(part)
    if 24.0 * 2.0**order.log2_largest > max_memory:
        return False
    program = Elimination(part, np.zeros(0), order, max_memory).program
    fixed = 2 * int(part.table_starts[-1]) + int(part.cardinalities.sum())
    messages = float(program.lengths[program.n_factors :].astype(np.float64).sum())
    return fixed + 2.0 * messages <= (max_memory - outside(part)) // 8


def outside(part: Structure) -> int:
    """Bytes of parameters and beliefs, which a pass does not count as its own."""
    return 16 * int(part.table_starts[-1])
