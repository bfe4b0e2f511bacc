"""Scopes as flat arrays: sizes of tables, and who is beside whom."""

import numpy as np

from cumulant.kernels import kernel


@kernel
def starts_of_tables(cardinalities, scope_starts, scopes):
    """Where the table of each factor begins, and where the last one ends; -1 at the end where that is no number."""
    out = np.zeros(scope_starts.size, np.int64)
    for f in range(scope_starts.size - 1):
        size = 1
        for k in range(scope_starts[f], scope_starts[f + 1]):
            size *= cardinalities[scopes[k]]
            if size > 2**40:
                out[-1] = -1
                return out
        out[f + 1] = out[f] + size
    return out


@kernel
def adjacency_bits(n, scope_starts, scopes):
    """The neighbours of each variable, those that share a factor with it, as bit sets."""
    bits = np.zeros((n, (n + 63) // 64), np.uint64)
    for f in range(scope_starts.size - 1):
        for k in range(scope_starts[f], scope_starts[f + 1]):
            for m in range(scope_starts[f], k):
                a, b = scopes[k], scopes[m]
                bits[a, b // 64] |= np.uint64(1) << np.uint64(b % 64)
                bits[b, a // 64] |= np.uint64(1) << np.uint64(a % 64)
    return bits
