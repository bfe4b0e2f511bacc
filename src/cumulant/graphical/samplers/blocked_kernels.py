"""Compiled blocked Gibbs: a forest of variables is drawn at once, given all the others."""

import numpy as np

from cumulant.graphical.samplers.cluster_samplers_kernels import root
from cumulant.graphical.samplers.gibbs_kernels import draw, keep, largest
from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log
from cumulant.randomness_kernels import uniform

OWN, UP, DOWN = 0, 1, 2  # a factor seen from a variable: no other variable of the block in it, the parent, a child


@kernel(called_by="python")
def forests(indptr, neighbours):
    """The block of each variable: the first one in which it closes no cycle, so that every block is a forest."""
    n = indptr.size - 1
    block, above, seen = np.full(n, -1, np.int64), np.arange(n), np.full(n, -1, np.int64)
    for v in range(n):
        b, fits = -1, False
        while not fits:
            b, fits = b + 1, True
            for e in range(indptr[v], indptr[v + 1]):
                if block[neighbours[e]] == b:
                    tree = root(above, neighbours[e])
                    fits &= seen[tree] != v * n + b
                    seen[tree] = v * n + b
        block[v] = b
        for e in range(indptr[v], indptr[v + 1]):
            if block[neighbours[e]] == b:
                above[root(above, neighbours[e])] = v
    return block


@kernel(called_by="kernels")
def _place(x, v, f, t, but):
    """Where the table of ``f`` has the state ``x``, with 0 for the variables `v` and `but`."""
    at = t.origin[f]
    for b in range(t.scope_starts[f], t.scope_starts[f + 1]):
        if t.scopes[b] != v and t.scopes[b] != but:
            at += t.scope_strides[b] * x[t.scopes[b]]
    return at


@kernel(called_by="python")
def forest_chain(x, out, order, block_starts, parents, kinds, parent_strides, t, begin, burn_in, thin, seed, chain):
    """Sweeps over the blocks ``order[block_starts[b] : block_starts[b + 1]]``, parents before children.

    Filter forward, from the leaves: ``log m_v(j) = log sum_k exp(u_v(k) + link(k, j))`` goes to the parent. Then sample
    backward, from the roots, each variable given its parent. Draws as in `ising_scan`.
    """
    n, most = x.size, largest(t.sizes)
    score, pair, weight = np.empty((n, most)), np.empty((most, most)), np.empty(most)
    for sweep in range(begin, begin + burn_in + thin * out.shape[0]):
        for b in range(block_starts.size - 1):
            for p in range(block_starts[b], block_starts[b + 1]):
                for k in range(most):
                    score[order[p], k] = 0.0
            for p in range(block_starts[b + 1] - 1, block_starts[b] - 1, -1):
                v = order[p]
                up, size = parents[v], t.sizes[v]
                for a in range(t.starts[v], t.starts[v + 1]):
                    if kinds[a] == OWN:
                        at = _place(x, v, t.factors[a], t, v)
                        for k in range(size):
                            score[v, k] += t.tables[at + k * t.strides[a]]
                if up < 0:
                    continue
                for k in range(size):
                    for j in range(t.sizes[up]):
                        pair[k, j] = 0.0
                for a in range(t.starts[v], t.starts[v + 1]):
                    if kinds[a] == UP:
                        at = _place(x, v, t.factors[a], t, up)
                        for k in range(size):
                            for j in range(t.sizes[up]):
                                pair[k, j] += t.tables[at + k * t.strides[a] + j * parent_strides[a]]
                for j in range(t.sizes[up]):
                    top = -np.inf
                    for k in range(size):
                        top = max(top, score[v, k] + pair[k, j])
                    total = 0.0
                    for k in range(size):
                        total += fast_exp(score[v, k] + pair[k, j] - top)
                    score[up, j] += top + fast_log(total)
            for p in range(block_starts[b], block_starts[b + 1]):
                v = order[p]
                up, size = parents[v], t.sizes[v]
                for k in range(size):
                    weight[k] = score[v, k]
                if up >= 0:
                    for a in range(t.starts[v], t.starts[v + 1]):
                        if kinds[a] == UP:
                            at = _place(x, v, t.factors[a], t, v)
                            for k in range(size):
                                weight[k] += t.tables[at + k * t.strides[a]]
                x[v] = draw(weight, size, uniform(seed, chain, sweep, v))
        keep(out, x, sweep + 1 - begin - burn_in, thin)
