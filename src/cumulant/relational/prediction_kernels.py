"""Leave-one-out by messages: the ties of a changed network, next to the messages of the observed one."""

from cumulant.kernels import kernel


@kernel(called_by="python")
def change_tie(x, y, layout, gate, starts, others, mirror, new_gate):
    """The lists of ties with the pair ``(x, y)`` added, or removed where it is there; the number of entries."""
    _, old_starts, old_others, _, _ = layout
    n, at = old_starts.size - 1, 0
    for v in range(n):
        starts[v] = at
        extra = y if v == x else (x if v == y else -1)
        pending = extra >= 0
        for g in range(old_starts[v], old_starts[v + 1]):
            if pending and old_others[g] >= extra:
                pending = False
                if old_others[g] == extra:
                    continue
                others[at], new_gate[at] = extra, 1.0
                at += 1
            others[at], new_gate[at] = old_others[g], gate[g]
            at += 1
        if pending:
            others[at], new_gate[at] = extra, 1.0
            at += 1
    starts[n] = at
    for v in range(n):
        for g in range(starts[v], starts[v + 1]):
            u = others[g]
            for e in range(starts[u], starts[u + 1]):
                if others[e] == v:
                    mirror[g] = e
    return at
