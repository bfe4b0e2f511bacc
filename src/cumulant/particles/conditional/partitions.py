"""Partitions of the spins of a graph into blocks, and sequences of partitions that end in single spins."""

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, shortest_path

from cumulant import checks
from cumulant.graphical import lattice
from cumulant.graphical.pairwise import edge_array

Blocks = tuple[np.ndarray, ...]
Splitter = Callable[[Blocks, np.ndarray], Sequence[Any]]


def halve(blocks: Any, edges: Any) -> Blocks:
    """Split every block of more than one spin into two of about the same size, both connected where the block is.

    On a grid or torus numbered along its rows a rectangle is cut across its longer side. Elsewhere the first half of a
    breadth-first order from a spin far out is one part; of what is left only the largest connected piece is the other,
    and the rest joins the first.

    >>> from cumulant.graphical import grid
    >>> [block.tolist() for block in halve([range(6)], grid(2, 3))]
    [[0, 1, 3, 4], [2, 5]]
    """
    blocks, cut = blocks_of("blocks", blocks), _Cut(edges)
    return tuple(itertools.chain.from_iterable(cut(block) if block.size > 1 else (block,) for block in blocks))


def split_largest(blocks: Any, edges: Any) -> Blocks:
    """Split the largest block, the first of several, as `halve` does; the others stay.

    >>> [block.tolist() for block in split_largest([[0, 1], [2], [3]], [(0, 1), (1, 2), (2, 3)])]
    [[0], [1], [2], [3]]
    """
    blocks = blocks_of("blocks", blocks)
    k = int(np.argmax([block.size for block in blocks]))
    return (*blocks[:k], *_Cut(edges)(blocks[k]), *blocks[k + 1 :])


def peel(blocks: Any, edges: Any) -> Blocks:
    """Take one spin off the largest block, the last of a breadth-first order, so that the rest stays connected.

    >>> [block.tolist() for block in peel([[0, 1, 2]], [(0, 1), (1, 2)])]
    [[0, 1], [2]]
    """
    blocks = blocks_of("blocks", blocks)
    k = int(np.argmax([block.size for block in blocks]))
    order = _Cut(edges).breadth_first(blocks[k])
    return (*blocks[:k], np.sort(order[:-1]), order[-1:], *blocks[k + 1 :])


SPLITTERS: dict[str, Splitter] = {"halve": halve, "split_largest": split_largest, "peel": peel}


def check_refinement(old: Any, new: Any) -> None:
    """Refuse a partition `new` that is not one of the same spins, or has a block that is not within a block of `old`.

    >>> check_refinement([[0, 1], [2, 3]], [[0], [1, 2], [3]])
    Traceback (most recent call last):
    ...
    ValueError: the new partition must refine the old one, but its block 1, [1, 2], has spins of 2 old blocks
    """
    old, new = blocks_of("old", old), blocks_of("new", new)
    before, after = (np.sort(np.concatenate(blocks)) for blocks in (old, new))
    if before.size != after.size or (before != after).any() or np.unique(after).size != after.size:
        raise ValueError(
            f"the blocks of new must have each of the {before.size} spins of old exactly once; got {after.size} "
            f"entries, {np.unique(after).size} of them different"
        )
    place = np.empty(int(before.max()) + 1, np.int64)
    for k, block in enumerate(old):
        place[block] = k
    for k, block in enumerate(new):
        found = np.unique(place[block]).size
        if found > 1:
            raise ValueError(
                f"the new partition must refine the old one, but its block {k}, {block.tolist()[:8]}, has spins of "
                f"{found} old blocks"
            )


def refinements(partition: str | Splitter, n: int, edges: np.ndarray) -> tuple[Blocks, ...]:
    """The partitions from one block of `n` spins to single spins, each a checked refinement of the one before."""
    split = partition if callable(partition) else SPLITTERS[checks.choice("partition", partition, SPLITTERS)]
    out: list[Blocks] = [(np.arange(n),)]
    while len(out[-1]) < n:
        new = blocks_of("what partition gives", split(out[-1], edges))
        check_refinement(out[-1], new)
        if len(new) == len(out[-1]):
            raise ValueError(f"partition must split a block at every step; it left the {len(new)} blocks as they were")
        if callable(partition):
            _warn_of_pieces(new, edges)
        out.append(new)
    return tuple(out[1:]) if n > 1 else tuple(out)


def blocks_of(name: str, blocks: Any) -> Blocks:
    """Blocks of spins as sorted arrays."""
    try:
        found = tuple(np.sort(np.asarray(list(block))) for block in blocks)
    except (TypeError, ValueError):
        found = ()
    if not found or any(
        block.ndim != 1 or block.size == 0 or block.dtype.kind not in "iu" or block[0] < 0 for block in found
    ):
        raise ValueError(
            f"{name} must be blocks, lists of the numbers of spins, none of them empty; got {blocks!r:.80}"
        )
    return tuple(block.astype(np.int64) for block in found)


def _warn_of_pieces(blocks: Blocks, edges: np.ndarray) -> None:
    cut = _Cut(edges)
    loose = [k for k, block in enumerate(blocks) if block.size > 1 and cut.pieces(block)[0] > 1]
    if loose:
        warnings.warn(
            f"block {loose[0]}, {blocks[loose[0]].tolist()[:8]}, is not connected in the graph: the estimates are "
            "valid, but mean field is made for spins that interact",
            stacklevel=2,
        )


class _Cut:
    """How a block is cut in two, on one graph."""

    def __init__(self, edges: Any):
        self.edges = edge_array(edges)

    def __call__(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.rectangle(block) or self.by_distance(block)

    def rectangle(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Two rectangles, where the block is one in a grid."""
        columns = _grid_columns(self.edges)
        if columns is None:
            return None
        row, column = np.divmod(block, columns)
        heights, widths = np.unique(row), np.unique(column)
        if heights.size * widths.size != block.size or np.ptp(heights) >= heights.size or np.ptp(widths) >= widths.size:
            return None
        along, lines = (row, heights) if heights.size >= widths.size else (column, widths)
        first = along < lines[(lines.size + 1) // 2]
        return block[first], block[~first]

    def by_distance(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first half of a breadth-first order, and the largest piece of the rest; whole pieces of a block that is
        not connected.
        """
        count, piece = self.pieces(block)
        if count > 1:
            ends = np.cumsum(np.bincount(piece))[:-1]
            first = piece <= np.argmin(np.abs(ends - block.size / 2))
            return block[first], block[~first]
        order = self.breadth_first(block, far=True)
        rest = np.sort(order[(block.size + 1) // 2 :])
        _, piece = self.pieces(rest)
        second = rest[piece == np.argmax(np.bincount(piece))]
        return np.setdiff1d(block, second), second

    def breadth_first(self, block: np.ndarray, far: bool = False) -> np.ndarray:
        """The spins of a block piece by piece, each breadth first from its first spin, or from the one farthest off."""
        graph, (count, piece) = self.graph(block), self.pieces(block)
        out = []
        for k in range(count):
            start = int(np.flatnonzero(piece == k)[0])
            if far:
                away = shortest_path(graph, unweighted=True, indices=start)
                start = int(np.argmax(np.where(np.isfinite(away), away, -1)))
            out.append(breadth_first_order(graph, start, return_predecessors=False))
        return block[np.concatenate(out)]

    def pieces(self, block: np.ndarray) -> tuple[int, np.ndarray]:
        """The number of connected pieces, and that of each spin, counted in the order of first spins."""
        count, label = connected_components(self.graph(block), directed=False)
        _, first = np.unique(label, return_index=True)
        return int(count), np.argsort(np.argsort(first))[label]

    def graph(self, block: np.ndarray) -> csr_array:
        """The edges within a block, its spins numbered from 0."""
        place = np.full(max(int(self.edges.max(initial=-1)), int(block.max())) + 1, -1)
        place[block] = np.arange(block.size)
        kept = place[self.edges]
        kept = kept[(kept >= 0).all(axis=1)]
        both = np.concatenate([kept, kept[:, ::-1]])
        graph = csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), (block.size, block.size))
        graph.sum_duplicates()
        graph.sort_indices()
        return graph


def _grid_columns(edges: np.ndarray) -> int | None:
    """The number of columns of a grid, periodic or not, that has exactly these edges; None where there is none."""
    if not len(edges):
        return None
    low, high, n = edges.min(axis=1), edges.max(axis=1), int(edges.max()) + 1
    given = np.unique(low * n + high)
    for columns in (c for c in {n, *(high - low).tolist()} if c > 0 and n % c == 0):
        shape = (n // columns, columns)
        for periodic in itertools.product((False, True), repeat=2):
            if any(wrapped and size < 3 for wrapped, size in zip(periodic, shape, strict=True)):
                continue
            pairs = lattice(shape, periodic)
            if np.array_equal(given, np.unique(pairs.min(axis=1) * n + pairs.max(axis=1))):
                return columns
    return None
