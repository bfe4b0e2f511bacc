"""Elimination as a list of steps: which tables each one multiplies, and which variable it sums out."""

import numpy as np

from cumulant.kernels import kernel

_AT_ONCE = 5  # terms that a step multiplies: of more, some are multiplied before
_SMALL = 64  # factors of one step that have no more entries together are multiplied before


@kernel(called_by="kernels")
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


@kernel(called_by="python")
def build_steps(
    order, sizes, scope_starts, summed, begins, ends, pool, term_starts, terms, lengths, cliques,
    rank, head, seen, union, following, ids, chosen,
):  # fmt: skip
    """The steps of bucket elimination (Dechter 1999).

    Tables are numbered: the factors first, then the result of each step. Filled in are the variable that each step sums
    out (-1: none, it only multiplies), where the variables of each table begin and end in `pool` (those of a step
    sorted by rank, after the one that it sums out), which begins with the scopes, where the terms of each step begin,
    and these; the entries of every table, and of all the variables of each step together. The last seven are work
    space, the first four of a number for each variable. Returns how many steps there are, and what is used of `pool`:
    -1 where that is too small.
    """
    n, n_factors, used, n_steps = order.size, scope_starts.size - 1, scope_starts[-1], 0
    for r in range(n):
        rank[order[r]] = r
        head[r], seen[r] = -1, -1
    for t in range(n_factors - 1, -1, -1):
        begins[t], ends[t] = scope_starts[t], scope_starts[t + 1]
        first = -1
        for k in range(begins[t], ends[t]):
            if first < 0 or rank[pool[k]] < rank[first]:
                first = pool[k]
        if first >= 0:
            following[t] = head[first]
            head[first] = t
    stamp, term_starts[0] = np.int64(0), 0  # not a literal: `_union` would be compiled for that as well
    for r in range(n):
        v = order[r]
        count, t, n_local = 0, head[v], 0
        while t >= 0:
            ids[count] = t
            count += 1
            if t < n_factors:
                n_local += 1
            t = following[t]
        last = False
        while not last:
            # what to multiply next: small factors, then some of too many, at last all that are left
            n_chosen, width = np.int64(0), 0
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
            if n_chosen == 0:
                last = count <= _AT_ONCE
                n_chosen = count if last else _AT_ONCE
                for i in range(n_chosen):
                    chosen[i] = ids[i]
                    if not last and ids[i] < n_factors and n_local > 0:
                        n_local -= 1
                width = _union(chosen, n_chosen, begins, ends, pool, rank, seen, stamp, union)
                stamp += 1
            if width == 0:  # a variable without any table
                union[0], width = v, 1
            if used + width > pool.size:
                return n_steps, -1
            made = n_factors + n_steps
            begins[made], ends[made] = used + (1 if last else 0), used + width
            for k in range(width):
                pool[used + k] = union[k]
            used += width
            summed[n_steps] = v if last else -1
            for i in range(n_chosen):
                terms[term_starts[n_steps] + i] = chosen[i]
            term_starts[n_steps + 1] = term_starts[n_steps] + n_chosen
            n_steps += 1
            if last:
                if width > 1:
                    following[made] = head[union[1]]
                    head[union[1]] = made
            else:
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
    for t in range(n_factors + n_steps):
        lengths[t] = 1
        for k in range(begins[t], ends[t]):
            lengths[t] *= sizes[pool[k]]
        if t >= n_factors:
            s = t - n_factors
            cliques[s] = lengths[t] * (sizes[summed[s]] if summed[s] >= 0 else 1)
    return n_steps, used
