"""Propagation of what is certain: states that no possible entry of a table has are removed until none is left."""

from cumulant.kernels import kernel


@kernel
def revise_all(
    sizes, first, scope_starts, scopes, table_starts, allowed, link_starts, links, factor,
    possible, counts, trail, removed, queue, queued, waiting, digits, seen,
):  # fmt: skip
    """Revise the tables that wait in `queue`, and those beside what changes, until all states left have support.

    `possible` and `counts`, the states of each variable that are left, are changed in place, and what is removed is
    written to `trail`. Returns the table that left a variable without a state, or -1; how long the trail is; and how
    many entries were looked at.
    """
    work = 0
    while waiting > 0:
        waiting -= 1
        f = queue[waiting]
        queued[f] = False
        begin, width, missing, place = scope_starts[f], scope_starts[f + 1] - scope_starts[f], 0, 0
        for k in range(width):
            v = scopes[begin + k]
            digits[k] = 0
            missing += counts[v]
            for a in range(sizes[v]):
                seen[place + a] = False
            place += sizes[v]
        for entry in range(table_starts[f], table_starts[f + 1]):
            work += 1
            if allowed[entry]:
                good = True
                for k in range(width):
                    if not possible[first[scopes[begin + k]] + digits[k]]:
                        good = False
                        break
                if good:
                    place = 0
                    for k in range(width):
                        if not seen[place + digits[k]]:
                            seen[place + digits[k]] = True
                            missing -= 1
                        place += sizes[scopes[begin + k]]
                    if missing == 0:
                        break
            k = width - 1
            while k >= 0:
                digits[k] += 1
                if digits[k] < sizes[scopes[begin + k]]:
                    break
                digits[k] = 0
                k -= 1
        if missing == 0:
            continue
        place = 0
        for k in range(width):
            v, before = scopes[begin + k], removed
            for a in range(sizes[v]):
                state = first[v] + a
                if possible[state] and not seen[place + a]:
                    possible[state] = False
                    counts[v] -= 1
                    trail[removed] = state
                    removed += 1
            place += sizes[v]
            if counts[v] == 0:
                for q in range(waiting):
                    queued[queue[q]] = False
                return f, removed, work
            if removed > before:
                for p in range(link_starts[v], link_starts[v + 1]):
                    g = factor[links[p]]
                    if g != f and not queued[g]:  # what is left of f has support in f
                        queued[g] = True
                        queue[waiting] = g
                        waiting += 1
    return -1, removed, work
