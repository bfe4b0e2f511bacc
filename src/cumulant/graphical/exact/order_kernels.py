"""Elimination orders: greedy ones on bit sets, sweeps of a frontier, and what an order costs.

Work space is made by the caller: it need not be filled unless said so.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform


@kernel(called_by="python")
def random_ties(seed, ties):
    """A uniform number for each variable, by which `greedy_order` breaks ties."""
    for v in range(ties.size):
        ties[v] = uniform(seed, 0, 0, v)


@kernel(called_by="kernels")
def _ones(word):
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel(called_by="kernels")
def _members(bits, v, out):
    """The neighbours of `v`; returns how many."""
    count = 0
    for w in range(bits.shape[1]):
        word = bits[v, w]
        while word != np.uint64(0):
            low = word & (~word + np.uint64(1))
            out[count] = 64 * w + _ones(low - np.uint64(1))
            count += 1
            word ^= low
    return count


@kernel(called_by="python")
def greedy_order(bits, logs, ties, by_weight, order, weight, fill, stale, around, beyond):
    """Eliminate, each time, what adds the fewest edges (min-fill), or makes the smallest table where `by_weight`.

    `bits` is the adjacency as bit sets, and is consumed. Ties go to the smaller table, then to the smaller entry of
    `ties`, then to the first. Filled in is `order`; the rest is work space of a number for each variable.
    """
    n, n_words = bits.shape
    for v in range(n):
        stale[v] = 1  # -1: eliminated
    for position in range(n):
        best = np.int64(-1)  # not a literal: `_members` would be compiled for that as well
        for v in range(n):
            if stale[v] < 0:
                continue
            if stale[v] == 1:
                count = _members(bits, v, around)
                weight[v] = logs[v]
                missing = 0
                for k in range(count):
                    u = around[k]
                    weight[v] += logs[u]
                    if not by_weight:  # twice the edges that are missing among the neighbours
                        common = 0
                        for w in range(n_words):
                            common += _ones(bits[v, w] & bits[u, w])
                        missing += count - 1 - common
                fill[v] = missing
                stale[v] = 0
            if (
                best < 0
                or fill[v] < fill[best]
                or (fill[v] == fill[best] and weight[v] < weight[best])
                or (fill[v] == fill[best] and weight[v] == weight[best] and ties[v] < ties[best])
            ):
                best = v
        v = best
        order[position] = v
        stale[v] = -1
        count = _members(bits, v, around)
        added = fill[v] > 0.0 or by_weight
        for k in range(count):
            u = around[k]
            bits[u, v // 64] &= ~(np.uint64(1) << np.uint64(v % 64))
            if added:
                for w in range(n_words):
                    bits[u, w] |= bits[v, w]
                bits[u, u // 64] &= ~(np.uint64(1) << np.uint64(u % 64))
                bits[u, v // 64] &= ~(np.uint64(1) << np.uint64(v % 64))
            stale[u] = 1
        if added and not by_weight:  # new edges count for whoever is beside both ends
            for k in range(count):
                for j in range(_members(bits, around[k], beyond)):
                    stale[beyond[j]] = 1


@kernel(called_by="python")
def frontier_order(indptr, neighbours, logs, start, order, entered, waiting):
    """Sweep the graph from `start`: next comes who brings the least into the frontier; among those, who waited longest.

    Where a part is finished the sweep goes on at a variable with the fewest neighbours. Filled in is `order`; the rest
    is work space of a number for each variable.
    """
    n = indptr.size - 1
    for v in range(n):
        entered[v] = -1  # when it came into the frontier; -2 - that when it has left
    n_waiting, clock = 0, 0
    for position in range(n):
        v = -1
        if n_waiting == 0:
            v = start
            if entered[v] < -1:
                for u in range(n):
                    if entered[u] >= -1 and (entered[v] < -1 or indptr[u + 1] - indptr[u] < indptr[v + 1] - indptr[v]):
                        v = u
            entered[v] = clock
            clock += 1
        else:
            best, where = np.inf, 0
            for k in range(n_waiting):
                u = waiting[k]
                brings = -logs[u]
                for e in range(indptr[u], indptr[u + 1]):
                    if entered[neighbours[e]] == -1:
                        brings += logs[neighbours[e]]
                if brings < best or (brings == best and entered[u] < entered[v]):
                    best, v, where = brings, u, k
            n_waiting -= 1
            waiting[where] = waiting[n_waiting]
        order[position] = v
        entered[v] = -2 - entered[v]
        for e in range(indptr[v], indptr[v + 1]):
            u = neighbours[e]
            if entered[u] == -1:
                entered[u] = clock
                clock += 1
                waiting[n_waiting] = u
                n_waiting += 1


@kernel(called_by="python")
def cost_of_order(order, logs, scope_starts, scopes, limit, rank, head, seen, following, starts, ends, pool):
    """Entries of all tables met on the way, and the binary logarithm of the largest; infinitely many entries where they
    exceed `limit`, and -1 where `pool` is too small.

    `logs` are binary logarithms of the cardinalities. Work space: `rank`, `head` and `seen` have a number for each
    variable, `following`, `starts` and `ends` for each scope and each variable; `pool` begins with `scopes`.
    """
    n, n_tables, used = order.size, scope_starts.size - 1, scopes.size
    for r in range(n):
        rank[order[r]] = r
        head[r], seen[r] = -1, -1
    # the tables that wait for a variable: linked lists, of given scopes first and of messages after them
    for t in range(n_tables):
        starts[t], ends[t] = scope_starts[t], scope_starts[t + 1]
        first = -1
        for k in range(starts[t], ends[t]):
            if first < 0 or rank[scopes[k]] < rank[first]:
                first = scopes[k]
        if first >= 0:
            following[t] = head[first]
            head[first] = t
    total, largest = 0.0, 0.0
    for r in range(n):
        v = order[r]
        begin, weight, first = used, logs[v], -1
        seen[v] = r
        t = head[v]
        while t >= 0:
            if used + ends[t] - starts[t] > pool.size:
                return -1.0, largest
            for k in range(starts[t], ends[t]):
                u = pool[k]
                if seen[u] != r:
                    seen[u] = r
                    pool[used] = u
                    used += 1
                    weight += logs[u]
                    if first < 0 or rank[u] < rank[first]:
                        first = u
            t = following[t]
        largest = max(largest, weight)
        total += 2.0**weight
        if total > limit:
            return np.inf, largest
        if first >= 0:
            m = n_tables + r
            starts[m], ends[m] = begin, used
            following[m] = head[first]
            head[first] = m
    return total, largest
