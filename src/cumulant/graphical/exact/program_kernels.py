"""Elimination as a list of steps: which tables each one multiplies, and which variable it sums out."""

import numpy as np

from cumulant.graphical.exact.order_kernels import grown
from cumulant.kernels import kernel

_AT_ONCE = 5  # terms that a step multiplies: of more, some are multiplied before
_SMALL = 64  # factors of one step that have no more entries together are multiplied before


@kernel
def _union(ids, n_ids, begins, ends, pool, rank, seen, stamp, out):
    """The variables of these tables, sorted by rank; returns how many."""
    count = 0
    for i in range(n_ids):
        for k in range(begins[ids[i]], ends[ids[i]]):
            u = pool[k]
            if seen[u] == stamp:
                continue
            seen[u] = stamp
            at = count
            while at > 0 and rank[out[at - 1]] > rank[u]:
                out[at] = out[at - 1]
                at -= 1
            out[at] = u
            count += 1
    return count


@kernel
def build_steps(order, sizes, scope_starts, scopes):
    """The steps of bucket elimination (Dechter 1999).

    Tables are numbered: the factors first, then the result of each step. Returns the variable that each step sums out
    (-1: none, it only multiplies), where the variables of each table begin and end, these (those of a step sorted by
    rank, after the one that it sums out), where the terms of each step begin, and these.
    """
    n, n_factors = order.size, scope_starts.size - 1
    rank = np.empty(n, np.int64)
    for r in range(n):
        rank[order[r]] = r
    most = 2 * n + n_factors + 1
    summed, term_starts = np.empty(most, np.int64), np.zeros(most + 1, np.int64)
    begins, ends = np.zeros(n_factors + most, np.int64), np.zeros(n_factors + most, np.int64)
    terms = np.empty(2 * most, np.int64)
    pool, used = grown(scopes, scopes.size, 16 * n + 64), scopes.size
    n_steps = 0
    head, following = np.full(n, -1, np.int64), np.full(n_factors + most, -1, np.int64)
    for t in range(n_factors - 1, -1, -1):
        begins[t], ends[t] = scope_starts[t], scope_starts[t + 1]
        first = -1
        for k in range(begins[t], ends[t]):
            if first < 0 or rank[scopes[k]] < rank[first]:
                first = scopes[k]
        if first >= 0:
            following[t] = head[first]
            head[first] = t
    seen, stamp = np.full(n, -1, np.int64), 0
    ids, union = np.empty(n_factors + most, np.int64), np.empty(n, np.int64)
    chosen = np.empty(n_factors + most, np.int64)
    for r in range(n):
        v = order[r]
        count, t, n_local = 0, head[v], 0
        while t >= 0:
            ids[count] = t
            count += 1
            if t < n_factors:
                n_local += 1
            t = following[t]
        while True:
            # what to multiply next: small factors, then some of too many, at last all that are left
            n_chosen, last = 0, False
            if n_local > 1 and count > n_local:
                for i in range(count):
                    if ids[i] < n_factors and n_chosen < _AT_ONCE:
                        chosen[n_chosen] = ids[i]
                        n_chosen += 1
                width = _union(chosen, n_chosen, begins, ends, pool, rank, seen, stamp, union)
                stamp += 1
                entries = 1.0
                for k in range(width):
                    entries *= sizes[union[k]]
                if entries > _SMALL:
                    n_chosen = 0
                n_local = n_local - n_chosen if n_chosen else 0
            if n_chosen == 0 and count > _AT_ONCE:
                n_chosen = _AT_ONCE
                for i in range(n_chosen):
                    chosen[i] = ids[i]
                for i in range(n_chosen):
                    if ids[i] < n_factors and n_local > 0:
                        n_local -= 1
            if n_chosen == 0:
                last, n_chosen = True, count
                for i in range(count):
                    chosen[i] = ids[i]
            width = _union(chosen, n_chosen, begins, ends, pool, rank, seen, stamp, union)
            stamp += 1
            if width == 0:  # a variable without any table
                union[0], width = v, 1
            if used + width > pool.size:
                pool = grown(pool, used, n)
            for k in range(width):
                pool[used + k] = union[k]
            s, made = n_steps, n_factors + n_steps
            begins[made], ends[made] = used + (1 if last else 0), used + width
            used += width
            summed[s] = v if last else -1
            for i in range(n_chosen):
                terms[term_starts[s] + i] = chosen[i]
            term_starts[s + 1] = term_starts[s] + n_chosen
            n_steps += 1
            if last:
                if width > 1:
                    following[made] = head[union[1]]
                    head[union[1]] = made
                break
            kept = 0
            for i in range(count):
                taken = False
                for k in range(n_chosen):
                    taken = taken or chosen[k] == ids[i]
                if not taken:
                    ids[kept] = ids[i]
                    kept += 1
            ids[kept] = made
            count = kept + 1
    return (
        summed[:n_steps].copy(),
        begins[: n_factors + n_steps].copy(),
        ends[: n_factors + n_steps].copy(),
        pool[:used].copy(),
        term_starts[: n_steps + 1].copy(),
        terms[: term_starts[n_steps]].copy(),
    )


@kernel
def table_lengths(sizes, summed, begins, ends, pool):
    """Entries of every table, and of all the variables of each step together."""
    n_factors = begins.size - summed.size
    lengths, cliques = np.ones(begins.size, np.int64), np.ones(summed.size, np.int64)
    for t in range(begins.size):
        for k in range(begins[t], ends[t]):
            lengths[t] *= sizes[pool[k]]
    for s in range(summed.size):
        cliques[s] = lengths[n_factors + s] * (sizes[summed[s]] if summed[s] >= 0 else 1)
    return lengths, cliques
