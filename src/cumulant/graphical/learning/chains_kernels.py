"""Compiled random-scan Gibbs sampling of general tables, with the counts of what the chains end in."""

import numpy as np

from cumulant.graphical.samplers.gibbs_kernels import largest, table_conditional
from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform_pair

__all__ = ["table_random_scan"]


@kernel
def table_random_scan(
    states,
    counts,
    sizes,
    starts,
    factors,
    strides,
    scope_starts,
    scopes,
    scope_strides,
    tables,
    origin,
    steps,
    seed,
    first_chain,
):
    """`steps` updates of each row of `states`, in place: a variable drawn uniformly gets a new state given the rest.

    Row ``c`` is the chain ``first_chain + c``, whose update ``t`` is drawn by (seed, chain, t). The entry of each table
    that a chain ends in is added to `counts`.
    """
    n, scores = sizes.size, np.empty(largest(sizes))
    for c in range(states.shape[0]):
        x = states[c]
        for t in range(steps):
            where, u = uniform_pair(seed, first_chain + c, t, 0)
            v = int(where * n)
            size = sizes[v]
            total = table_conditional(
                scores, x, v, size, starts, factors, strides, scope_starts, scopes, scope_strides, tables, origin
            )
            u, k = u * total, 0
            while k < size - 1 and u >= scores[k]:
                u -= scores[k]
                k += 1
            x[v] = k
        for f in range(origin.size):
            at = origin[f]
            for b in range(scope_starts[f], scope_starts[f + 1]):
                at += scope_strides[b] * x[scopes[b]]
            counts[at] += 1
