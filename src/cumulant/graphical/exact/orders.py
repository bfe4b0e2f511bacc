"""Orders of elimination: several kinds are tried, and the cheapest is kept."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, reverse_cuthill_mckee

from cumulant.graphical.exact.min_fill import min_fill, min_weight
from cumulant.graphical.exact.order_kernels import cost_of_order, frontier_order, greedy_order, random_ties
from cumulant.graphical.structure import Structure
from cumulant.kernels import InterpretedFirst

ORDERS = ("natural", "min-fill", "min-weight", "frontier", "nested-dissection")
_DENSE = 4096  # variables up to which adjacency is kept as bit sets
_CHEAP = 2.0**14  # entries below which the search for a better order costs more than it saves
_WORTH = 2.0**24  # entries from which more starts are tried
_SMALL = 6_000_000  # variables times edges up to which a quick search takes min-fill
_HOPELESS = 30.0  # bits of a clique that no memory holds
_FEW = 64  # variables up to which the kernel of greedy orders need not be compiled
_greedy_order = InterpretedFirst(greedy_order)


@dataclass(frozen=True, eq=False)
class Order:
    """An order of elimination and what it costs.

    Attributes
    ----------
    order : int array
        The variables, first eliminated first.
    kind : str
        How it was found, one of `ORDERS`.
    entries : float
        The entries of all cliques together: the work of one pass.
    log2_largest : float
        The binary logarithm of the entries of the largest clique.
    """

    order: np.ndarray
    kind: str
    entries: float
    log2_largest: float


def elimination_order(structure: Structure, kind: str = "best", restarts: int | None = None) -> Order:
    """An order in which to eliminate the variables of `structure`: the cheapest of several, by its entries.

    Parameters
    ----------
    structure : Structure
    kind : str
        ``"natural"`` (the numbers of the variables), ``"min-fill"`` (each time what adds the fewest edges; Kjaerulff
        1990), ``"min-weight"`` (each time the smallest table), ``"frontier"`` (a sweep through the graph from one end,
        Cuthill and McKee 1969 and a greedy one), ``"nested-dissection"`` (separators last; George 1973), or
        ``"best"``: all of them.
    restarts : int, optional
        How often min-fill, min-weight and the sweeps start again with other ties or from elsewhere; by default more
        often the more there is to gain. The search is deterministic.

    Examples
    --------
    Min-fill is a poor order for a grid, a sweep is the best:

    >>> import numpy as np
    >>> from cumulant.graphical import grid
    >>> edges = grid(12, 12)
    >>> structure = Structure(np.full(144, 2), edges)
    >>> elimination_order(structure, "min-fill").log2_largest > elimination_order(structure).log2_largest
    True
    >>> elimination_order(structure).log2_largest
    13.0
    """
    if kind != "best" and kind not in ORDERS:
        raise ValueError(f"kind must be 'best' or one of {', '.join(map(repr, ORDERS))}; got {kind!r}")
    if restarts is not None and restarts < 0:
        raise ValueError(f"restarts must not be negative; got {restarts}")
    return _Search(structure).run(ORDERS if kind == "best" else (kind,), restarts)


def fast_order(structure: Structure, alive: Callable[[], None] = lambda: None) -> Order:
    """The cheapest of a few sweeps and one greedy order, in a time that does not depend on how wide the model is.

    The greedy order is min-fill on small models and min-weight on large ones; on very large ones it ends where its
    cliques are beyond any memory, and the rest is swept. `alive` is called in between, and may raise to end it. It is
    found once for a structure.
    """
    if "fast" not in structure.plans:
        structure.plans["fast"] = _fast_order(structure, alive)
    return structure.plans["fast"]


def _fast_order(structure: Structure, alive: Callable[[], None]) -> Order:
    search = _Search(structure)
    if search.n == 0:
        return search.run(("frontier",), 0)
    alive()
    search.sweeps(0)
    alive()
    if search.bits is not None:
        search.greedy(search.n * len(structure.edges) > _SMALL, 0)
        return search.best
    first = np.array(min_weight(search.neighbours(), search.logs.tolist(), _HOPELESS), dtype=np.int64)
    alive()
    if first.size == search.n or search.best.log2_largest > _HOPELESS:
        left, swept = np.ones(search.n, bool), search.best.order
        left[first] = False
        search.offer(np.concatenate([first, swept[left[swept]]]), "min-weight")
    return search.best


def cost(structure: Structure, order: np.ndarray, limit: float = np.inf) -> tuple[float, float]:
    """The entries of all cliques of an order, infinitely many where they exceed `limit`, and the binary logarithm of
    the entries of the largest.
    """
    n, logs = structure.n_variables, np.log2(structure.cardinalities)
    room = structure.scopes.size + 32 * n
    while True:
        pool = np.empty(room, np.int64)
        pool[: structure.scopes.size] = structure.scopes
        variables, tables = np.empty((3, n), np.int64), np.empty((3, structure.n_factors + n), np.int64)
        found = cost_of_order(order, logs, structure.scope_starts, structure.scopes, limit, *variables, *tables, pool)
        if found[0] >= 0.0:
            return found
        room *= 2


def _bit_sets(structure: Structure) -> np.ndarray:
    """The neighbours of each variable as bits of whole numbers, 64 in each."""
    n, width = structure.n_variables, np.diff(structure.scope_starts)
    beside = np.zeros((n, -(-n // 64) * 64), bool)
    for k in range(2, int(width.max(initial=0)) + 1):
        begin = structure.scope_starts[:-1][width == k]
        members = structure.scopes[begin[:, None] + np.arange(k)]
        beside[members[:, :, None], members[:, None, :]] = True
    beside[np.arange(n), np.arange(n)] = False
    return np.packbits(beside, axis=1, bitorder="little").view("<u8").astype(np.uint64, copy=False)


class _Search:
    def __init__(self, structure: Structure):
        self.structure = structure
        self.n = structure.n_variables
        self.logs = np.log2(structure.cardinalities)
        self.best = Order(np.zeros(0, np.int64), "", np.inf, np.inf)
        self.bits = None
        if self.n <= _DENSE:
            self.bits = _bit_sets(structure)

    @cached_property
    def adjacency(self) -> tuple[np.ndarray, np.ndarray]:
        """Neighbours as a list for each variable: where it begins, and all lists one after the other."""
        edges = self.structure.edges
        both = np.concatenate([edges, edges[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        return np.searchsorted(both[:, 0], np.arange(self.n + 1)).astype(np.int64), np.ascontiguousarray(both[:, 1])

    def neighbours(self) -> list[set[int]]:
        """The same as sets."""
        starts, every = self.adjacency[0].tolist(), self.adjacency[1].tolist()
        return [set(every[a:b]) for a, b in itertools.pairwise(starts)]

    def run(self, kinds: tuple[str, ...], restarts: int | None) -> Order:
        if self.n == 0:
            return Order(np.zeros(0, np.int64), kinds[0], 0.0, 0.0)
        if "natural" in kinds:
            self.offer(np.arange(self.n), "natural")
        if "min-fill" in kinds:
            self.greedy(False, 0)
        if self.best.entries > _CHEAP or len(kinds) == 1:
            if "min-weight" in kinds:
                self.greedy(True, 0)
            if "frontier" in kinds:
                self.sweeps(0)
        if restarts is None:
            restarts = 0 if self.best.entries < _WORTH else 6
        if "nested-dissection" in kinds and (self.best.entries >= _WORTH or len(kinds) == 1):
            self.offer(self.dissection(), "nested-dissection")
        for seed in range(1, restarts + 1):
            if "min-fill" in kinds:
                self.greedy(False, seed)
            if "min-weight" in kinds:
                self.greedy(True, seed)
            if "frontier" in kinds:
                self.sweeps(seed)
        return self.best

    def offer(self, order: np.ndarray, kind: str) -> None:
        order = np.ascontiguousarray(order, dtype=np.int64)
        entries, largest = cost(self.structure, order, self.best.entries)
        if entries < self.best.entries or self.best.kind == "":
            self.best = Order(order, kind, entries, largest)

    def greedy(self, by_weight: bool, seed: int) -> None:
        kind = "min-weight" if by_weight else "min-fill"
        if self.bits is None:
            if seed == 0 and not by_weight:
                self.offer(np.array([v for v, _ in min_fill(self.neighbours())]), kind)
            return
        ties = np.zeros(self.n)
        if seed > 0:
            random_ties(seed, ties)
        order, stale, around, beyond = np.empty((4, self.n), np.int64)
        weight, fill = np.empty((2, self.n))
        work = weight, fill, stale, around, beyond
        _greedy_order(self.n <= _FEW, self.bits.copy(), self.logs, ties, by_weight, order, *work)
        self.offer(order, kind)

    def sweeps(self, seed: int) -> None:
        graph = self.graph()
        if seed == 0:
            narrow = np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), dtype=np.int64)
            self.offer(narrow, "frontier")
            self.offer(narrow[::-1], "frontier")
            start = int(narrow[-1])
        else:
            start = int(np.random.default_rng(seed).integers(self.n))
        order, entered, waiting = np.empty((3, self.n), np.int64)
        frontier_order(*self.adjacency, self.logs, start, order, entered, waiting)
        self.offer(order, "frontier")

    def graph(self) -> csr_array:
        starts, neighbours = self.adjacency
        return csr_array(
            (np.ones(neighbours.size), neighbours.astype(np.int32), starts.astype(np.int32)), (self.n, self.n)
        )

    def dissection(self) -> np.ndarray:
        """Halves first, each dissected in the same way, and what separates them last."""
        graph, out = self.graph(), []
        waiting: list[Any] = [np.arange(self.n)]
        while waiting:  # from the last variable of the order to the first
            part = waiting.pop()
            if part.size <= 3:
                out.extend(part.tolist())
                continue
            inside = graph[part][:, part]
            count, label = connected_components(inside, directed=False)
            if count > 1:
                waiting += [part[label == c] for c in range(count)]
                continue
            far = breadth_first_order(inside, 0, directed=False)[0][-1]
            sweep, before = breadth_first_order(inside, int(far), directed=False)
            level = np.zeros(part.size, dtype=np.int64)
            for v in sweep[1:]:
                level[v] = level[before[v]] + 1
            half = int(np.median(level))
            separator = level == half
            if separator.all() or half == 0:
                separator = np.zeros(part.size, bool)
                separator[sweep[: part.size // 2]] = True
            out.extend(part[separator].tolist())
            waiting += [part[level < half], part[level > half]] if half else [part[~separator]]
            waiting = [p for p in waiting if p.size]
        return np.array(out[::-1])
