"""Leave-one-out by messages: a changed network is set up next to the messages of the observed one.

See `message_kernels` for the state of a run. A query changes one attribute, ``(x, -1)``, or one tie, ``(x, y)``; its
messages start where those of the observed network ended, except those of gates that are new.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.relational.message_kernels import descend, free_energy, propagate


@kernel(called_by="kernels")
def _change_tie(x, y, layout, gate, starts, others, mirror, new_gate):
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


@kernel(called_by="python")
def changed_free_energies(
    queries, layout, tables, ordered, convergent, damping, max_sweeps, tol, inner_sweeps, inner_tol, state, energies,
    changes,
):  # fmt: skip
    """The Bethe free energy of the network with each query changed, and the last change of its messages; for a double
    loop that did not settle this is infinite.
    """
    attribute, starts, others, mirror, code = layout
    ratios, own, gate, _, silent, belief, log_odds = state
    n, m = attribute.size, others.size
    new_starts, new_others, new_mirror = starts.copy(), np.empty(m + 2, np.int64), np.empty(m + 2, np.int64)
    new_gate, new_none, nothing = np.empty(m + 2), np.empty(m + 2), np.empty(0)
    new_attribute, new_code = attribute.copy(), code.copy()
    for q in range(len(queries)):
        x, y = queries[q, 0], queries[q, 1]
        if y < 0:
            new_attribute[x] = 1 - attribute[x]
            for v in range(n):
                new_code[x, v] = code[x, v] ^ 4
                new_code[v, x] = code[v, x] ^ 2
            for v in range(n + 1):
                new_starts[v] = starts[v]
            for g in range(m):
                new_others[g], new_mirror[g], new_gate[g] = others[g], mirror[g], gate[g]
            size = m
        else:
            new_code[x, y], new_code[y, x] = code[x, y] ^ 1, code[y, x] ^ 1
            size = _change_tie(x, y, layout, gate, new_starts, new_others, new_mirror, new_gate)
        changed = new_attribute, new_starts, new_others[:size], new_mirror[:size], new_code
        begun = (
            ratios.copy(),
            own.copy(),
            new_gate[:size],
            new_none[:size],
            silent.copy(),
            belief.copy(),
            log_odds.copy(),
        )
        if convergent:
            _, changes[q], settled = descend(
                changed, tables, ordered, 0.0, max_sweeps, tol, inner_sweeps, inner_tol, nothing, begun
            )
            if not settled:
                changes[q] = np.inf
        else:
            _, changes[q] = propagate(changed, tables, ordered, damping, max_sweeps, tol, nothing, begun)
        energies[q] = free_energy(changed, tables, ordered, begun)
        if y < 0:
            new_attribute[x] = attribute[x]
            for v in range(n):
                new_code[x, v], new_code[v, x] = code[x, v], code[v, x]
        else:
            new_code[x, y], new_code[y, x] = code[x, y], code[y, x]
