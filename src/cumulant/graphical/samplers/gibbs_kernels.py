"""Compiled single-site Gibbs updates: Ising models one chain at a time or many side by side, and general tables.

Every decision is drawn by counter from (seed, chain, sweep, position in the scan), so that an answer does not depend on
how chains are spread over threads or vector lanes.

A spin is drawn by comparing its local field with logistic noise: ``x_i = 1`` where ``h > log(u / (1 - u)) / 2``, which
has probability ``1 / (1 + exp(-2 h))``. The noise depends on no spin, so that the compiler turns its logarithms into
vector instructions, and what is left in the sequential loop is a sum and a comparison. There ``u`` has 32 random bits:
a probability is off by at most 2^-33 (``|h|`` above 11.4 decides for certain). The other kernels have 52 bits.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log
from cumulant.randomness_kernels import philox, uniform, uniform_pair

_LARGEST = 700.0  # exp of more is not finite, and the probability is already 1 or 0 to the last bit
_BLOCK = 512  # decisions whose noise is drawn at once: 4 KiB
_MASK, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
_TO_UNIT = 1.0 / 8589934592.0  # 2**-33
_TO_FINE_UNIT = 2.0**-53


@kernel(called_by="kernels")
def random_words(seed, chain, sweep, block, stream):
    """Four words of 32 random bits for (seed, chain, sweep, block); those of `uniform_pair` have the stream 0."""
    s, c, t, b = np.uint64(seed), np.uint64(chain), np.uint64(sweep), np.uint64(block)
    return philox(b & _MASK, t & _MASK, c & _MASK, np.uint64(stream), s & _MASK, s >> _SHIFT)


@kernel(called_by="kernels")
def logistic(word):
    """``log(u / (1 - u)) / 2`` at ``u = (word + 1/2) / 2^32``."""
    u = (2.0 * np.float64(word) + 1.0) * _TO_UNIT
    return 0.5 * fast_log(u / (1.0 - u))


@kernel(called_by="kernels")
def fine_logistic(high, low):
    """The same at a ``u`` of the 52 bits of one word and most of another."""
    bits = (high << np.uint64(20)) ^ (low >> np.uint64(12))
    u = (2.0 * np.float64(bits) + 1.0) * _TO_FINE_UNIT
    return 0.5 * fast_log(u / (1.0 - u))


@kernel(called_by="kernels")
def keep(out, x, done, thin):
    """Put ``x`` into the next row of `out` where `done`, the sweeps since the burn-in, is a multiple of `thin`.

    (Assignment to a slice compiles a message for wrong shapes, which takes a second.)
    """
    if done > 0 and done % thin == 0:
        for i in range(x.size):
            out[done // thin - 1, i] = x[i]


@kernel(called_by="kernels")
def largest(values):
    """The largest of some whole numbers, at least 1."""
    most = 1
    for value in values:
        most = max(most, value)
    return most


@kernel(called_by="kernels")
def logistic_noise(out, first, size, seed, chain, sweep):
    """``out[k] = log(u / (1 - u)) / 2`` for the positions ``first + k`` of a scan; `first` is a multiple of four, and
    `out` has room for `size` rounded up to one.

    Four positions share one call of the generator: position ``p`` has word ``p % 4`` of the block ``p // 4``.
    """
    for k in range((size + 3) // 4):
        w0, w1, w2, w3 = random_words(seed, chain, sweep, first // 4 + k, 1)
        out[4 * k] = logistic(w0)
        out[4 * k + 1] = logistic(w1)
        out[4 * k + 2] = logistic(w2)
        out[4 * k + 3] = logistic(w3)


@kernel(called_by="python")
def ising_scan(x, out, order, indptr, neighbours, couplings, fields, begin, burn_in, thin, seed, chain):
    """Sweeps over the sites of `order`, in order: `burn_in` of them, then `thin` before each row of `out` is written.

    `x` (int8, -1 and +1) is the start and is changed in place; `couplings` has an entry for each of `neighbours`.
    Sweeps are numbered from `begin` on, so that several calls continue one run.
    """
    n, noise = order.size, np.empty(_BLOCK)
    for sweep in range(begin, begin + burn_in + thin * out.shape[0]):
        for first in range(0, n, _BLOCK):
            size = min(_BLOCK, n - first)
            logistic_noise(noise, first, size, seed, chain, sweep)
            for k in range(size):
                i = order[first + k]
                h = fields[i]
                for e in range(indptr[i], indptr[i + 1]):
                    h += couplings[e] * x[neighbours[e]]
                x[i] = 1 if h > noise[k] else -1
        keep(out, x, sweep + 1 - begin - burn_in, thin)


@kernel(called_by="python")
def ising_scan_lanes(x, out, order, indptr, neighbours, couplings, fields, begin, burn_in, thin, seed, first_chain):
    """The same for many chains at once, bit for bit: `x` is (sites, chains), so that one instruction serves several
    chains; `out` is (chains, draws, sites).
    """
    n, lanes = order.size, x.shape[1]
    noise, h = np.empty((4, lanes)), np.empty(lanes)
    for sweep in range(begin, begin + burn_in + thin * out.shape[1]):
        for p in range(n):
            if p % 4 == 0:
                for c in range(lanes):
                    w0, w1, w2, w3 = random_words(seed, first_chain + c, sweep, p // 4, 1)
                    noise[0, c] = logistic(w0)
                    noise[1, c] = logistic(w1)
                    noise[2, c] = logistic(w2)
                    noise[3, c] = logistic(w3)
            i = order[p]
            for c in range(lanes):
                h[c] = fields[i]
            for e in range(indptr[i], indptr[i + 1]):
                j, coupling = neighbours[e], couplings[e]
                for c in range(lanes):
                    h[c] += coupling * x[j, c]
            for c in range(lanes):
                x[i, c] = 1 if h[c] > noise[p % 4, c] else -1
        done = sweep + 1 - begin - burn_in
        if done > 0 and done % thin == 0:
            for i in range(x.shape[0]):
                for c in range(lanes):
                    out[c, done // thin - 1, i] = x[i, c]


@kernel
def ising_random_scan(spins, indptr, neighbours, couplings, fields, steps, seed, first_chain, first_step):
    """`steps` updates of each row of `spins` (int8, -1 and +1), in place: a site drawn uniformly gets a new value
    from its conditional distribution, ``P(x_i = 1 | rest) = 1 / (1 + exp(-2 h))``, ``h = h_i + sum J_ij x_j``.

    Row ``c`` is the chain ``first_chain + c``; its updates are those numbered from `first_step` on, so that several
    calls continue one run.
    """
    n = fields.size
    for c in range(spins.shape[0]):
        x = spins[c]
        for t in range(steps):
            where, u = uniform_pair(seed, first_chain + c, first_step + t, 0)
            i = int(where * n)
            h = fields[i]
            for e in range(indptr[i], indptr[i + 1]):
                h += couplings[e] * x[neighbours[e]]
            x[i] = 1 if u * (1.0 + fast_exp(min(-2.0 * h, _LARGEST))) < 1.0 else -1


@kernel(called_by="python")
def ising_random_chain(x, out, indptr, neighbours, couplings, fields, begin, burn_in, thin, seed, chain):
    """One chain of `ising_random_scan`, a sweep being as many updates as there are sites; draws as in `ising_scan`."""
    n, one = x.size, x.reshape(1, x.size)
    done = begin * n
    for k in range(-1, out.shape[0]):
        steps = (burn_in if k < 0 else thin) * n
        ising_random_scan(one, indptr, neighbours, couplings, fields, steps, seed, chain, done)
        done += steps
        keep(out, x, k + 1, 1)


@kernel(called_by="kernels")
def draw(scores, size, u):
    """The state that the uniform number `u` picks, with probability in proportion to ``exp(scores[:size])``, which are
    overwritten. A score of -inf is a state that is never picked.
    """
    top = scores[0]
    for k in range(1, size):
        top = max(top, scores[k])
    total = 0.0
    for k in range(size):
        scores[k] = fast_exp(scores[k] - top)
        total += scores[k]
    u, k = u * total, 0
    while k < size - 1 and u >= scores[k]:
        u -= scores[k]
        k += 1
    while scores[k] == 0.0:  # rounding at the far end: the last state that is possible
        k -= 1
    return k


@kernel(called_by="kernels")
def table_update(x, v, u, scores, t):
    """Draw ``x[v]`` given the rest at the uniform number `u`; `t` are `TableArrays`, `scores` is scratch."""
    size = t.sizes[v]
    for k in range(size):
        scores[k] = 0.0
    for a in range(t.starts[v], t.starts[v + 1]):
        f, stride = t.factors[a], t.strides[a]
        at = t.origin[f] - x[v] * stride
        for b in range(t.scope_starts[f], t.scope_starts[f + 1]):
            at += t.scope_strides[b] * x[t.scopes[b]]
        for k in range(size):
            scores[k] += t.tables[at + k * stride]
    x[v] = draw(scores, size, u)


@kernel(called_by="python")
def table_chain(x, out, order, at_random, t, begin, burn_in, thin, seed, chain):
    """Gibbs sweeps over variables with any number of states: over `order` in order, or each time one of it at random.

    `x` holds states 0, 1, 2, ...; draws as in `ising_scan`.
    """
    n, scores = order.size, np.empty(largest(t.sizes))
    for sweep in range(begin, begin + burn_in + thin * out.shape[0]):
        for p in range(n):
            if at_random:
                where, u = uniform_pair(seed, chain, sweep, p)
                v = order[int(where * n)]
            else:
                v, u = order[p], uniform(seed, chain, sweep, p)
            table_update(x, v, u, scores, t)
        keep(out, x, sweep + 1 - begin - burn_in, thin)


@kernel(called_by="python")
def table_random_scan(states, counts, t, steps, seed, first_chain):
    """`steps` updates of each row of `states`, in place: a variable drawn uniformly gets a new state given the rest.

    Row ``c`` is the chain ``first_chain + c``, whose update ``k`` is drawn by (seed, chain, k). The entry of each table
    that a chain ends in is added to `counts`.
    """
    n, scores = t.sizes.size, np.empty(largest(t.sizes))
    for c in range(states.shape[0]):
        x = states[c]
        for k in range(steps):
            where, u = uniform_pair(seed, first_chain + c, k, 0)
            table_update(x, int(where * n), u, scores, t)
        for f in range(t.origin.size):
            at = t.origin[f]
            for b in range(t.scope_starts[f], t.scope_starts[f + 1]):
                at += t.scope_strides[b] * x[t.scopes[b]]
            counts[at] += 1
