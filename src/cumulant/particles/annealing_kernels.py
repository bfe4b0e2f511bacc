"""Compiled moves of many particles at once over one Ising model whose couplings change from step to step.

All particles of a step see the same couplings, so that a site of many particles is drawn together. Particles lie in
blocks: spins as bytes, one vector lane each (`draw_spins`), or, where couplings have one strength and there are no
fields, as bits of words (`draw_words`). Random numbers depend on (seed, place of the particle, sweep, place in the
scan), or in words on the block in place of the particle, and never on threads. Decisions have 52 random bits: what a
certificate claims with probability ``1 - delta`` then fails with that of another ``2^-53`` for each at most. With 32
bits, a run of 10^9 decisions might have failed with probability 0.1 more.
"""

import numpy as np

from cumulant.graphical.samplers.gibbs_kernels import fine_logistic, random_words
from cumulant.graphical.samplers.multi_spin_kernels import begin_streams, next_word
from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log

MOST_NEIGHBOURS = 7  # of a site of `draw_words`: its counts of neighbours have three bits
WORDS = 16  # in a block of `draw_words`
# Rows of its scratch: after four for the random streams, the digits of a count, the sign of the sum, what is being
# added up, the decisions, the lanes that have none yet, and four masks of lanes by the size of the sum.
_ONE, _TWO, _FOUR, _SIGN, _CARRY, _AGREE, _OPEN, _MASKS = (WORDS * k for k in (4, 5, 6, 7, 8, 9, 10, 11))
_0, _1, _ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel(called_by="kernels")
def log_cosh(h):
    """``log(2 cosh h)`` without overflow."""
    size = abs(h)
    return size + fast_log(1.0 + fast_exp(-2.0 * size))


@kernel(called_by="python")
def draw_spins(x, sites, indptr, neighbours, old, new, fields, log_weights, seed, first, sweep):
    """New spins of the `sites`, in order, given the others, under the couplings `new`; `x` is (sites, lanes), of -1 and
    +1, and is changed in place. The lanes are the particles numbered from `first` on.

    Where `log_weights` is not None and no two of the sites are neighbours, ``sum_i log cosh h_i - log cosh h'_i`` is
    added to it, ``h'`` the local fields under `old`: the logarithm of the ratio of the two marginals of the others.
    """
    lanes = x.shape[1]
    noise, h, before = np.empty((2, lanes)), np.empty(lanes), np.empty(lanes)
    for p in range(sites.size):
        if p % 2 == 0:
            for c in range(lanes):
                w0, w1, w2, w3 = random_words(seed, first + c, sweep, p // 2, 1)
                noise[0, c] = fine_logistic(w0, w1)
                noise[1, c] = fine_logistic(w2, w3)
        i = sites[p]
        for c in range(lanes):
            h[c] = fields[i]
        for e in range(indptr[i], indptr[i + 1]):
            j, coupling = neighbours[e], new[e]
            for c in range(lanes):
                h[c] += coupling * x[j, c]
        if log_weights is not None:
            for c in range(lanes):
                before[c] = fields[i]
            for e in range(indptr[i], indptr[i + 1]):
                j, coupling = neighbours[e], old[e]
                for c in range(lanes):
                    before[c] += coupling * x[j, c]
            for c in range(lanes):
                log_weights[c] += log_cosh(h[c]) - log_cosh(before[c])
        for c in range(lanes):
            x[i, c] = 1 if h[c] > noise[p % 2, c] else -1


@kernel(called_by="python")
def add_energies(x, edges, couplings, out):
    """Add ``sum_e couplings_e x_i x_j`` of each particle to `out`; `x` is (sites, lanes)."""
    for e in range(edges.shape[0]):
        i, j, coupling = edges[e, 0], edges[e, 1], couplings[e]
        for c in range(x.shape[1]):
            out[c] += coupling * (x[i, c] * x[j, c])


@kernel(called_by="python")
def draw_words(x, sites, indptr, neighbours, flips, digits, gains, log_weights, seed, block, sweep):
    """New spins of the `sites`, no two of them neighbours, given the others: `x` is (sites, `WORDS`), a bit for each
    particle, and is changed in place.

    With ``m`` the sum of the neighbours' spins, each turned where its bond is negative (`flips` are all ones there),
    the spin takes the sign of ``m`` with probability ``digits[|m|] / 2^52``. Each lane compares one random bit after
    the other with the digits of its probability until they differ; a site is done when all lanes are.

    Where `log_weights` is not None, ``sum_i gains[|m_i|]`` is added to it for each lane, word after word.
    """
    depth = 1  # binary digits of a count of sites
    while (1 << depth) <= sites.size:
        depth += 1
    # All scratch is one array with rows at constant places, so that the compiler sees that rows do not overlap.
    streams, s = np.empty((4, WORDS), np.uint64), np.zeros(15 * WORDS, np.uint64)
    totals = np.zeros(8 * depth * WORDS, np.uint64)
    begin_streams(streams, seed, block, sweep)
    for k in range(4):
        for w in range(WORDS):
            s[k * WORDS + w] = streams[k, w]
    for p in range(sites.size):
        i = sites[p]
        degree = indptr[i + 1] - indptr[i]
        odd = degree % 2
        for w in range(WORDS):
            s[_ONE + w], s[_TWO + w], s[_FOUR + w], s[_SIGN + w] = _0, _0, _0, _0
        for e in range(indptr[i], indptr[i + 1]):
            j, flip = neighbours[e], flips[e]
            for w in range(WORDS):
                up = x[j, w] ^ flip
                two = s[_ONE + w] & up
                s[_ONE + w] ^= up
                s[_FOUR + w] ^= s[_TWO + w] & two
                s[_TWO + w] ^= two
        for q in range(degree // 2 + 1):
            high = (degree + 2 * q + odd) // 2
            low = degree - high
            h0, h1, h2 = _unless(high, 0), _unless(high, 1), _unless(high, 2)
            l0, l1, l2 = _unless(low, 0), _unless(low, 1), _unless(low, 2)
            for w in range(WORDS):
                a, b, c = s[_ONE + w], s[_TWO + w], s[_FOUR + w]
                positive = (a ^ h0) & (b ^ h1) & (c ^ h2)
                s[_CARRY + w] = positive | ((a ^ l0) & (b ^ l1) & (c ^ l2))
                s[_SIGN + w] |= positive
            for w in range(WORDS):
                s[_MASKS + q * WORDS + w] = s[_CARRY + w]
            if log_weights is not None and q + odd > 0:
                row = (2 * q + odd) * depth * WORDS
                for _ in range(depth):
                    left = _0
                    for w in range(WORDS):
                        both = totals[row + w] & s[_CARRY + w]
                        totals[row + w] ^= s[_CARRY + w]
                        s[_CARRY + w] = both
                        left |= both
                    if left == _0:
                        break
                    row += WORDS
        p0, p1 = _at(digits, odd, degree), _at(digits, odd + 2, degree)
        p2, p3 = _at(digits, odd + 4, degree), _at(digits, odd + 6, degree)
        for w in range(WORDS):
            s[_AGREE + w], s[_OPEN + w] = _0, _ALL
        for k in range(48, -1, -4):
            left = _0
            for w in range(WORDS):
                a, b, c, d = s[w], s[WORDS + w], s[2 * WORDS + w], s[3 * WORDS + w]
                agree, undecided = s[_AGREE + w], s[_OPEN + w]
                for step in range(4):
                    shift = np.uint64(k + 3 - step)
                    digit = s[_MASKS + w] & (_0 - ((p0 >> shift) & _1))
                    digit |= s[_MASKS + WORDS + w] & (_0 - ((p1 >> shift) & _1))
                    digit |= s[_MASKS + 2 * WORDS + w] & (_0 - ((p2 >> shift) & _1))
                    digit |= s[_MASKS + 3 * WORDS + w] & (_0 - ((p3 >> shift) & _1))
                    random, a, b, c, d = next_word(a, b, c, d)
                    agree |= undecided & digit & ~random
                    undecided &= ~(digit ^ random)
                s[w], s[WORDS + w], s[2 * WORDS + w], s[3 * WORDS + w] = a, b, c, d
                s[_AGREE + w], s[_OPEN + w] = agree, undecided
                left |= undecided
            if left == _0:
                break
        for w in range(WORDS):
            x[i, w] = ~(s[_AGREE + w] ^ s[_SIGN + w])
    if log_weights is not None:
        for m in range(1, MOST_NEIGHBOURS + 1):
            for d in range(depth):
                gain = gains[m] * (1 << d)
                for w in range(WORDS):
                    word = totals[(m * depth + d) * WORDS + w]
                    if word != _0:
                        for b in range(64):
                            log_weights[64 * w + b] += gain * np.float64((word >> np.uint64(b)) & _1)


@kernel(called_by="kernels")
def _unless(number, digit):
    """All ones where a binary digit of the number is 0, all zeros where it is 1."""
    return _0 - (_1 - ((np.uint64(number) >> np.uint64(digit)) & _1))


@kernel(called_by="kernels")
def _at(digits, m, degree):
    """The probability of agreement at ``|m|``, 0 where no site of this degree has it: its mask may be an old one."""
    return digits[m] if m <= degree else _0
