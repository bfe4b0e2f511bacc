"""Greedy elimination on sets of neighbours: for sparse graphs of any size."""

import heapq
import math
from collections import deque
from collections.abc import Sequence


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


def eliminate(adjacent: list[set[int]], order: Sequence[int]) -> list[tuple[int, set[int]]]:
    """The variables in this order, each with the neighbours it has when it is eliminated; consumes `adjacent`.

    >>> eliminate([{1}, {0, 2}, {1}], [1, 0, 2])
    [(1, {0, 2}), (0, {2}), (2, set())]
    """
    for v in order:
        around = adjacent[v]
        for u in around:
            adjacent[u] |= around
            adjacent[u] -= {u, v}
    return [(v, adjacent[v]) for v in order]


def min_weight(adjacent: list[set[int]], sizes: Sequence[float], limit: float = math.inf) -> list[int]:
    """Variables in the order of elimination, each time one that makes the smallest clique; consumes `adjacent`.

    The size of a clique is the sum of those of its members, binary logarithms of their states. It ends early where the
    smallest is above the `limit`: what is left is too wide for whoever asks. Far faster than min-fill, whose costs
    change for neighbours of neighbours as well.

    >>> min_weight([{1, 2, 3}, {0}, {0, 3}, {0, 2}], [1.0, 1.0, 1.0, 1.0])
    [1, 0, 2, 3]
    >>> min_weight([{1, 2, 3}, {0}, {0, 3}, {0, 2}], [1.0, 1.0, 1.0, 1.0], limit=2.0)
    [1]
    """
    current = [sizes[v] + sum(sizes[u] for u in around) for v, around in enumerate(adjacent)]
    heap = [(weight, v) for v, weight in enumerate(current)]
    heapq.heapify(heap)
    order: list[int] = []
    gone = [False] * len(adjacent)
    while heap:
        weight, v = heapq.heappop(heap)
        if gone[v] or weight != current[v]:
            continue  # its cost has changed since
        if weight > limit:
            break
        gone[v] = True
        order.append(v)
        around = adjacent[v]
        for u in around:
            beside = adjacent[u]
            beside.discard(v)
            beside |= around
            beside.discard(u)
            current[u] = sizes[u] + sum(map(sizes.__getitem__, beside))
            heapq.heappush(heap, (current[u], u))
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
