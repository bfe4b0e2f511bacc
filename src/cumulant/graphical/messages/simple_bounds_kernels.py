"""Coordinate ascent on the score of a state."""

import numpy as np

from cumulant.kernels import kernel


@kernel(called_by="python")
def best_states(sizes, table_starts, scope_starts, scopes, factor, link_starts, links, theta, states, sweeps):
    """Each variable in turn takes its best state given the others, in place; returns the entry of each table there.

    `factor` is that of each place in `scopes`, and `links` has the places of each variable. Fewer impossible entries
    are better, and among as many of them the larger score.
    """
    entries = table_starts[:-1].copy()
    strides = np.zeros(scopes.size, np.int64)
    for f in range(scope_starts.size - 1):
        stride = 1
        for k in range(scope_starts[f + 1] - 1, scope_starts[f] - 1, -1):
            strides[k] = stride
            entries[f] += stride * states[scopes[k]]
            stride *= sizes[scopes[k]]
    for _ in range(sweeps):
        for i in range(states.size):
            best, most, fewest = states[i], -np.inf, np.inf
            for x in range(sizes[i]):
                score, impossible = 0.0, 0
                for p in range(link_starts[i], link_starts[i + 1]):
                    k = links[p]
                    value = theta[entries[factor[k]] + (x - states[i]) * strides[k]]
                    if value == -np.inf:
                        impossible += 1
                    else:
                        score += value
                if impossible < fewest or (impossible == fewest and score > most):
                    best, most, fewest = x, score, impossible
            for p in range(link_starts[i], link_starts[i + 1]):
                entries[factor[links[p]]] += (best - states[i]) * strides[links[p]]
            states[i] = best
    return entries
