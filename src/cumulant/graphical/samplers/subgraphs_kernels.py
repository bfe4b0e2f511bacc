"""Compiled chain over the subgraphs of a graph, and the way back from subgraphs to spins."""

import numpy as np

from cumulant.graphical.samplers.cluster_samplers_kernels import root
from cumulant.graphical.samplers.gibbs_kernels import keep
from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform, uniform_pair


@kernel
def acceptance(e, present, odd, edges, edge_weights, site_weights):
    """``w(X xor {e}) / w(X)``: only the edge and the parities of its two ends change."""
    ratio = 1.0 / edge_weights[e] if present[e] else edge_weights[e]
    for end in range(2):
        i = edges[e, end]
        ratio *= 1.0 / site_weights[i] if odd[i] else site_weights[i]
    return ratio


@kernel(called_by="python")
def subgraph_chain(present, out, edges, edge_weights, site_weights, begin, burn_in, thin, seed, chain):
    """Metropolis moves that turn one edge: with probability 1/2 nothing, else an edge drawn uniformly and accepted with
    ``min(1, w(X') / w(X))``. A sweep is as many moves as there are edges. `present` (0 and 1) is changed in place.
    """
    m = edges.shape[0]
    odd = np.zeros(site_weights.size, np.uint8)
    for e in range(m):
        if present[e]:
            odd[edges[e, 0]] ^= 1
            odd[edges[e, 1]] ^= 1
    for sweep in range(begin, begin + burn_in + thin * out.shape[0]):
        for k in range(m):
            where, u = uniform_pair(seed, chain, sweep, k)
            e = int(where * 2.0 * m)
            if e < m and u < acceptance(e, present, odd, edges, edge_weights, site_weights):
                present[e] ^= 1
                odd[edges[e, 0]] ^= 1
                odd[edges[e, 1]] ^= 1
        keep(out, present, sweep + 1 - begin - burn_in, thin)


@kernel(called_by="python")
def spins_of_subgraphs(subgraphs, out, edges, edge_weights, site_weights, seed, first):
    """A spin configuration for each row: absent edges, those to the ghost too, are switched on with their weights; the
    component of the ghost is +1, the others get fair signs.
    """
    n, m = site_weights.size, edges.shape[0]
    above, odd = np.empty(n + 1, np.int64), np.empty(n, np.uint8)
    for d in range(subgraphs.shape[0]):
        for i in range(n + 1):
            above[i] = i
        for i in range(n):
            odd[i] = 0
        for e in range(m):
            i, j = edges[e, 0], edges[e, 1]
            if subgraphs[d, e]:
                odd[i] ^= 1
                odd[j] ^= 1
            if subgraphs[d, e] or uniform(seed, first + d, 0, e) < edge_weights[e]:
                above[root(above, i)] = root(above, j)
        for i in range(n):
            if odd[i] or uniform(seed, first + d, 1, i) < site_weights[i]:
                above[root(above, i)] = root(above, n)
        for i in range(n):
            r = root(above, i)
            up = r == root(above, n) or uniform(seed, first + d, 2, r) < 0.5
            out[d, i] = 1 if up else -1
