"""Annealing by Gibbs sweeps with plain loops over all factors, one chain at a time."""

import numpy as np

from cumulant import randomness_kernels
from tests.compiled import from_python

uniform = from_python(randomness_kernels.uniform)


def annealed_log_weight(sizes, fields, factors, temperatures, seed, chain):
    """The log weight of one chain; `fields` and `factors` are log tables, `factors` pairs of a scope and a table."""
    state, total = np.zeros(len(sizes), int), 0.0
    for k, t in enumerate(temperatures):
        energy = sum(table[tuple(state[list(scope)])] for scope, table in factors)
        if k > 0:
            total += (t - temperatures[k - 1]) * energy
        if k == len(temperatures) - 1 or total == -np.inf:
            return total
        for v, size in enumerate(sizes):
            scores = np.array(fields[v], dtype=float)
            for a in range(size):
                state[v], old = a, state[v]
                if k > 0:
                    scores[a] += sum(t * table[tuple(state[list(s)])] for s, table in factors if v in s)
                state[v] = old
            p = np.exp(scores - scores.max())
            state[v] = np.searchsorted(np.cumsum(p), uniform(seed, chain, k, v) * p.sum(), side="right")
    return total
