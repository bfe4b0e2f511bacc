"""Elimination orders: greedy ones on bit sets, sweeps of a frontier, and what an order costs."""

import numpy as np

from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform


@kernel
def _ones(word):
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def _members(words, n_words, out):
    """The numbers in a bit set; returns how many."""
    count = 0
    for w in range(n_words):
        word = words[w]
        while word != np.uint64(0):
            low = word & (~word + np.uint64(1))
            out[count] = 64 * w + _ones(low - np.uint64(1))
            count += 1
            word ^= low
    return count


@kernel
def _fill(bits, n_words, v, around, count):
    """Twice the edges that are missing among the neighbours of `v`."""
    missing = 0
    for k in range(count):
        u = around[k]
        common = 0
        for w in range(n_words):
            common += _ones(bits[v, w] & bits[u, w])
        missing += count - 1 - common
    return missing


@kernel
def greedy_order(bits, logs, by_weight, seed):
    """Eliminate, each time, what adds the fewest edges (min-fill), or makes the smallest table where `by_weight`.

    `bits` is the adjacency as bit sets, and is consumed. Ties go to the smaller table, then to the first where `seed`
    is 0, and to a random one otherwise.
    """
    n, n_words = bits.shape
    order = np.empty(n, np.int64)
    weight, fill, tie = np.empty(n), np.empty(n), np.zeros(n)
    stale, gone = np.ones(n, np.bool_), np.zeros(n, np.bool_)
    around, beyond = np.empty(n, np.int64), np.empty(n, np.int64)
    if seed > 0:
        for v in range(n):
            tie[v] = uniform(seed, 0, 0, v)
    for position in range(n):
        best = -1
        for v in range(n):
            if gone[v]:
                continue
            if stale[v]:
                count = _members(bits[v], n_words, around)
                weight[v] = logs[v]
                for k in range(count):
                    weight[v] += logs[around[k]]
                fill[v] = 0.0 if by_weight else _fill(bits, n_words, v, around, count)
                stale[v] = False
            if (
                best < 0
                or fill[v] < fill[best]
                or (fill[v] == fill[best] and weight[v] < weight[best])
                or (fill[v] == fill[best] and weight[v] == weight[best] and tie[v] < tie[best])
            ):
                best = v
        v = best
        order[position] = v
        gone[v] = True
        count = _members(bits[v], n_words, around)
        added = fill[v] > 0.0 or by_weight
        for k in range(count):
            u = around[k]
            bits[u, v // 64] &= ~(np.uint64(1) << np.uint64(v % 64))
            if added:
                for w in range(n_words):
                    bits[u, w] |= bits[v, w]
                bits[u, u // 64] &= ~(np.uint64(1) << np.uint64(u % 64))
                bits[u, v // 64] &= ~(np.uint64(1) << np.uint64(v % 64))
            stale[u] = True
        if added and not by_weight:  # new edges count for whoever is beside both ends
            for k in range(count):
                for j in range(_members(bits[around[k]], n_words, beyond)):
                    stale[beyond[j]] = True
    return order


@kernel
def frontier_order(indptr, neighbours, logs, start):
    """Sweep the graph from `start`: next comes who brings the least into the frontier; among those, who waited longest.

    Where a part is finished the sweep goes on at a variable with the fewest neighbours.
    """
    n = indptr.size - 1
    order = np.empty(n, np.int64)
    entered = np.full(n, -1, np.int64)  # when it came into the frontier
    gone = np.zeros(n, np.bool_)
    waiting, n_waiting = np.empty(n, np.int64), 0
    clock = 0
    for position in range(n):
        v = -1
        if n_waiting == 0:
            v = start
            if gone[v]:
                for u in range(n):
                    if not gone[u] and (gone[v] or indptr[u + 1] - indptr[u] < indptr[v + 1] - indptr[v]):
                        v = u
            entered[v] = clock
            clock += 1
        else:
            best, where = np.inf, 0
            for k in range(n_waiting):
                u = waiting[k]
                brings = -logs[u]
                for e in range(indptr[u], indptr[u + 1]):
                    if entered[neighbours[e]] < 0:
                        brings += logs[neighbours[e]]
                if brings < best or (brings == best and entered[u] < entered[v]):
                    best, v, where = brings, u, k
            n_waiting -= 1
            waiting[where] = waiting[n_waiting]
        order[position] = v
        gone[v] = True
        for e in range(indptr[v], indptr[v + 1]):
            u = neighbours[e]
            if entered[u] < 0:
                entered[u] = clock
                clock += 1
                waiting[n_waiting] = u
                n_waiting += 1
    return order


@kernel
def grown(pool, used, more):
    """`pool` with room for as many again and `more`, its first `used` entries kept."""
    out = np.empty(2 * pool.size + more, np.int64)
    for k in range(used):  # a slice would bring code for shapes that do not agree: seconds of compiling
        out[k] = pool[k]
    return out


@kernel
def cost_of_order(order, logs, scope_starts, scopes, limit):
    """Entries of all tables met on the way, and the binary logarithm of the largest; stops where they exceed `limit`.

    `logs` are binary logarithms of the cardinalities.
    """
    n = order.size
    rank = np.empty(n, np.int64)
    for r in range(n):
        rank[order[r]] = r
    n_tables = scope_starts.size - 1
    # the tables that wait for a variable: linked lists, of given scopes first and of messages after them
    head, following = np.full(n, -1, np.int64), np.full(n_tables + n, -1, np.int64)
    starts, ends = np.zeros(n_tables + n, np.int64), np.zeros(n_tables + n, np.int64)
    pool = np.empty(scopes.size + 16 * n, np.int64)
    used = scopes.size
    for k in range(used):
        pool[k] = scopes[k]
    for t in range(n_tables):
        starts[t], ends[t] = scope_starts[t], scope_starts[t + 1]
        first = -1
        for k in range(starts[t], ends[t]):
            if first < 0 or rank[scopes[k]] < rank[first]:
                first = scopes[k]
        if first >= 0:
            following[t] = head[first]
            head[first] = t
    seen = np.full(n, -1, np.int64)
    total, largest = 0.0, 0.0
    for r in range(n):
        v = order[r]
        if used + n > pool.size:
            pool = grown(pool, used, n)
        begin, weight, first = used, logs[v], -1
        seen[v] = r
        t = head[v]
        while t >= 0:
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
