"""Compiled cluster samplers: Swendsen-Wang and Wolff for Ising and Potts models.

An Ising field is a coupling to a ghost spin that is always +1: a cluster which holds the ghost is not flipped.
"""

import numpy as np

from cumulant.graphical.samplers.gibbs_kernels import draw, keep
from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform, uniform_pair


@kernel(called_by="kernels")
def root(above, i):
    """The representative of the set of ``i``, with the paths halved on the way."""
    while above[i] != i:
        above[i] = above[above[i]]
        i = above[i]
    return i


@kernel(called_by="kernels")
def _join(x, above, edges, bonds, positive, seed, chain, sweep):
    """Put the ends of each bond into one set; all sites are alone before.

    An edge gets a bond with probability `bonds` where its ends are equal, or, if it is not `positive`, where they
    differ.
    """
    for i in range(above.size):
        above[i] = i
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        if (x[i] == x[j]) == positive[e] and uniform(seed, chain, sweep, e) < bonds[e]:
            above[root(above, i)] = root(above, j)


@kernel(called_by="kernels")
def _grow(x, start, stack, stamp, indptr, neighbours, bonds, positive, seed, chain, sweep):
    """Put the cluster of `start` by the same bonds into `stack`; its size, and the number of the next random number.

    The bond of an edge is asked for at most once, as its other end is then in the cluster.
    """
    stamp[start], stack[0] = sweep, start
    head, tail, drawn = 0, 1, 1
    while head < tail:
        i = stack[head]
        head += 1
        for e in range(indptr[i], indptr[i + 1]):
            j = neighbours[e]
            if stamp[j] != sweep and (x[i] == x[j]) == positive[e]:
                if uniform(seed, chain, sweep, drawn) < bonds[e]:
                    stamp[j], stack[tail] = sweep, j
                    tail += 1
                drawn += 1
    return tail, drawn


@kernel(called_by="python")
def swendsen_wang_chain(x, out, edges, bonds, positive, fields, ghosts, begin, burn_in, thin, seed, chain):
    """Spins -1 and +1, with ``bonds = 1 - exp(-2 |J|)``. A spin along its field gets a bond with the ghost with
    probability ``ghosts = 1 - exp(-2 |h|)``; each cluster without the ghost gets a fair sign.
    """
    n, m = x.size, edges.shape[0]
    above = np.empty(n + 1, np.int64)
    for sweep in range(begin, begin + burn_in + thin * out.shape[0]):
        _join(x, above, edges, bonds, positive, seed, chain, sweep)
        for i in range(n):
            if x[i] * fields[i] > 0.0 and uniform(seed, chain, sweep, m + i) < ghosts[i]:
                above[root(above, i)] = root(above, n)
        ghost = root(above, n)
        for i in range(n):
            r = root(above, i)
            if r != ghost and uniform_pair(seed, chain, sweep, m + r)[1] < 0.5:
                x[i] = -x[i]
        keep(out, x, sweep + 1 - begin - burn_in, thin)


@kernel(called_by="python")
def wolff_chain(x, out, indptr, neighbours, bonds, positive, fields, ghosts, begin, burn_in, thin, seed, chain):
    """One cluster at a time, grown from a spin drawn uniformly; flipped unless it meets the ghost."""
    n = x.size
    stamp, stack = np.full(n, -1, np.int64), np.empty(n, np.int64)
    for sweep in range(begin, begin + burn_in + thin * out.shape[0]):
        start = int(uniform(seed, chain, sweep, 0) * n)
        size, drawn = _grow(x, start, stack, stamp, indptr, neighbours, bonds, positive, seed, chain, sweep)
        free = True
        for k in range(size):
            i = stack[k]
            if x[i] * fields[i] > 0.0:
                free &= uniform(seed, chain, sweep, drawn) >= ghosts[i]
                drawn += 1
        if free:
            for k in range(size):
                x[stack[k]] = -x[stack[k]]
        keep(out, x, sweep + 1 - begin - burn_in, thin)


@kernel(called_by="python")
def swendsen_wang_potts(x, out, edges, bonds, positive, fields, begin, burn_in, thin, seed, chain):
    """Colours 0, 1, 2, ..., with ``bonds = 1 - exp(-J)``; each cluster gets a colour with probability in proportion to
    ``exp`` of the sum of its `fields` (variables, colours).
    """
    n, m, q = x.size, edges.shape[0], fields.shape[1]
    above, score = np.empty(n, np.int64), np.empty((n, q))
    colour = np.empty(n, np.int64)
    for sweep in range(begin, begin + burn_in + thin * out.shape[0]):
        _join(x, above, edges, bonds, positive, seed, chain, sweep)
        for i in range(n):
            for k in range(q):
                score[i, k] = 0.0
        for i in range(n):
            r = root(above, i)
            for k in range(q):
                score[r, k] += fields[i, k]
        for i in range(n):
            if above[i] == i:
                colour[i] = draw(score[i], q, uniform(seed, chain, sweep, m + i))
        for i in range(n):
            x[i] = colour[root(above, i)]
        keep(out, x, sweep + 1 - begin - burn_in, thin)


@kernel(called_by="python")
def wolff_potts(x, out, indptr, neighbours, bonds, positive, q, begin, burn_in, thin, seed, chain):
    """One cluster at a time, without fields: it gets another colour, drawn uniformly from the ``q - 1`` others."""
    n = x.size
    stamp, stack = np.full(n, -1, np.int64), np.empty(n, np.int64)
    for sweep in range(begin, begin + burn_in + thin * out.shape[0]):
        where, which = uniform_pair(seed, chain, sweep, 0)
        start = int(where * n)
        new = (x[start] + 1 + int(which * (q - 1))) % q
        size, _ = _grow(x, start, stack, stamp, indptr, neighbours, bonds, positive, seed, chain, sweep)
        for k in range(size):
            x[stack[k]] = new
        keep(out, x, sweep + 1 - begin - burn_in, thin)
