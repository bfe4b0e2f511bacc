"""Min-fill elimination on sets of neighbours: for sparse graphs of any size."""

import heapq
from collections import deque

__all__ = ["min_fill"]


def min_fill(adjacent: list[set[int]]) -> list[tuple[int, set[int]]]:
    """Variables in the order of elimination, each with the neighbours it then has; consumes `adjacent`.

    Each time one is eliminated that adds the fewest edges among its neighbours (Kjaerulff 1990), of these one with the
    fewest neighbours, of these the first.

    >>> min_fill([{1}, {0, 2}, {1}])
    [(0, {1}), (2, {1}), (1, set())]
    """
    order = _peel(adjacent)
    gone = {v for v, _ in order}

    def cost(v):
        around = adjacent[v]
        missing = sum(len(around) - 1 - len(around & adjacent[u]) for u in around)  # each edge twice
        return missing, len(around), v

    current = {v: cost(v) for v in range(len(adjacent)) if v not in gone}
    heap = sorted(current.values())
    while heap:
        key = heapq.heappop(heap)
        v = key[2]
        if current.get(v) != key:
            continue  # gone, or its cost has changed since
        del current[v]
        around = adjacent[v]
        order.append((v, around))
        for u in around:
            adjacent[u].discard(v)
            adjacent[u] |= around
            adjacent[u].discard(u)
        # New edges change the cost of common neighbours of their ends, which are neighbours of neighbours.
        changed = around.union(*(adjacent[u] for u in around)) if key[0] else around
        for u in changed:
            if current[u] != (new := cost(u)):
                current[u] = new
                heapq.heappush(heap, new)
    return order


def _peel(adjacent: list[set[int]]) -> list[tuple[int, set[int]]]:
    """Eliminate variables with one neighbour or none, which add no edges, until there are none: all of a tree."""
    order: list[tuple[int, set[int]]] = []
    waiting = deque(v for v, around in enumerate(adjacent) if len(around) <= 1)
    gone = set()
    while waiting:
        v = waiting.popleft()
        if v in gone:
            continue
        gone.add(v)
        order.append((v, adjacent[v]))
        for u in adjacent[v]:
            adjacent[u].discard(v)
            if len(adjacent[u]) == 1:
                waiting.append(u)
    return order
