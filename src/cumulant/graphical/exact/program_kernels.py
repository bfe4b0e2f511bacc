"""Elimination as a list of steps: which tables each one multiplies, and which variable it sums out."""

import numpy as np

from cumulant.graphical.exact.order_kernels import grown
from cumulant.kernels import kernel

__all__ = ["build_steps", "table_lengths"]

_AT_ONCE = 5  # terms that a step multiplies: of more, some are multiplied before
_SMALL = 64  # factors of one step that have no more entries together are multiplied before


@kernel
def _union(ids, n_ids, n_factors, scope_starts, scopes, starts, pool, summed, rank, seen, stamp, out):
    """The variables of these tables, sorted by rank; returns how many."""
    count = 0
    for i in range(n_ids):
        t = ids[i]
        if t < n_factors:
            begin, end = scope_starts[t], scope_starts[t + 1]
        else:
            s = t - n_factors
            begin, end = starts[s] + (1 if summed[s] >= 0 else 0), starts[s + 1]
        for k in range(begin, end):
            u = scopes[k] if t < n_factors else pool[k]
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
    (-1: none, it only multiplies), where its variables begin, these (sorted by rank, the one summed out first), where
    its terms begin, and these.
    """
    n, n_factors = order.size, scope_starts.size - 1
    rank = np.empty(n, np.int64)
    for r in range(n):
        rank[order[r]] = r
    most = 2 * n + n_factors + 1
    summed, starts, term_starts = np.empty(most, np.int64), np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    terms = np.empty(2 * most, np.int64)
    pool = np.empty(scopes.size + 16 * n + 64, np.int64)
    n_steps = 0
    head, following = np.full(n, -1, np.int64), np.full(n_factors + most, -1, np.int64)
    for t in range(n_factors - 1, -1, -1):
        first = -1
        for k in range(scope_starts[t], scope_starts[t + 1]):
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
                width = _union(
                    chosen, n_chosen, n_factors, scope_starts, scopes, starts, pool, summed, rank, seen, stamp, union
                )
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
            width = _union(
                chosen, n_chosen, n_factors, scope_starts, scopes, starts, pool, summed, rank, seen, stamp, union
            )
            stamp += 1
            s = n_steps
            if width == 0:  # a variable without any table
                union[0], width = v, 1
            if starts[s] + width + n > pool.size:
                pool = grown(pool, starts[s], n)
            for k in range(width):
                pool[starts[s] + k] = union[k]
            starts[s + 1] = starts[s] + width
            summed[s] = v if last else -1
            for i in range(n_chosen):
                terms[term_starts[s] + i] = chosen[i]
            term_starts[s + 1] = term_starts[s] + n_chosen
            n_steps += 1
            made = n_factors + s
            if last:
                if width > 1:
                    following[made] = head[union[1]]
                    head[union[1]] = made
                break
            kept = 0
            for i in range(count):
                used = False
                for k in range(n_chosen):
                    if chosen[k] == ids[i]:
                        used = True
                if not used:
                    ids[kept] = ids[i]
                    kept += 1
            ids[kept] = made
            count = kept + 1
    return (
        summed[:n_steps].copy(),
        starts[: n_steps + 1].copy(),
        pool[: starts[n_steps]].copy(),
        term_starts[: n_steps + 1].copy(),
        terms[: term_starts[n_steps]].copy(),
    )


@kernel
def table_lengths(sizes, scope_starts, scopes, summed, starts, pool):
    """Entries of every table, and of all the variables of each step together."""
    n_factors, n_steps = scope_starts.size - 1, summed.size
    lengths, cliques = np.ones(n_factors + n_steps, np.int64), np.ones(n_steps, np.int64)
    for t in range(n_factors):
        for k in range(scope_starts[t], scope_starts[t + 1]):
            lengths[t] *= sizes[scopes[k]]
    for s in range(n_steps):
        for k in range(starts[s], starts[s + 1]):
            cliques[s] *= sizes[pool[k]]
        lengths[n_factors + s] = cliques[s] // sizes[summed[s]] if summed[s] >= 0 else cliques[s]
    return lengths, cliques
