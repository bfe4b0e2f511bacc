"""Compiled multi-spin coding: 64 spins of a torus in one word, updated by bit operations.

The two colours of the chequerboard are kept apart: the site of row ``r`` and column ``2 q + (r + colour) % 2`` is bit
``q // W`` of word ``q % W`` of its row, with ``W`` words in a row. Neighbours of a word are then whole words, but for a
rotation by one bit at the border.

A word of Bernoulli(p) bits comes from 24 random words, one for each binary digit of ``p``, last digit first: ``r = r |
random`` where the digit is 1 and ``r & random`` where it is 0 makes ``P(r = 1) = 0.b1 b2 ... b24``. The random words
are those of xoshiro256++ (Blackman and Vigna 2021), one stream for each word of a row, begun anew in every sweep from
Philox at (seed, chain, sweep, word).
"""

import numpy as np

from cumulant.graphical.samplers.gibbs_kernels import random_words
from cumulant.kernels import kernel

_0, _1, _17, _19, _23, _32, _41, _45, _63 = (np.uint64(k) for k in (0, 1, 17, 19, 23, 32, 41, 45, 63))


@kernel(called_by="kernels")
def next_word(a, b, c, d):
    """The next word of xoshiro256++ and the new state."""
    total = a + d
    word = ((total << _23) | (total >> _41)) + a
    shifted = b << _17
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << _45) | (d >> _19)
    return word, a, b, c, d


@kernel(called_by="kernels")
def begin_streams(states, seed, chain, sweep):
    """A state for each stream, from the counter (word, sweep, chain)."""
    for w in range(states.shape[1]):
        for half in range(2):
            c0, c1, c2, c3 = random_words(seed, chain, sweep, w, 2 + half)
            states[2 * half, w] = (c0 << _32) | c1
            states[2 * half + 1, w] = (c2 << _32) | c3


@kernel(called_by="kernels")
def _decisions(states, none, one, coin, none_digits, one_digits):
    """Words of Bernoulli bits: `none` and `one` with the probabilities of these 24 digits, `coin` with one half.

    The digits are numbers below 2^24, not arrays, and the loops over them short enough to be unrolled: the loop over
    words then has no other memory in it and becomes vector instructions.
    """
    first, second, third, fourth = states[0], states[1], states[2], states[3]
    for w in range(none.size):
        a, b, c, d = first[w], second[w], third[w], fourth[w]
        p, q, word = _0, _0, _0
        for k in range(12):
            word, a, b, c, d = next_word(a, b, c, d)
            digit = _0 - ((none_digits >> np.uint64(k)) & _1)
            p = (p & word) | (digit & (p | word))
            digit = _0 - ((one_digits >> np.uint64(k)) & _1)
            q = (q & word) | (digit & (q | word))
        for k in range(12, 24):
            word, a, b, c, d = next_word(a, b, c, d)
            digit = _0 - ((none_digits >> np.uint64(k)) & _1)
            p = (p & word) | (digit & (p | word))
            digit = _0 - ((one_digits >> np.uint64(k)) & _1)
            q = (q & word) | (digit & (q | word))
        first[w], second[w], third[w], fourth[w] = a, b, c, d
        none[w], one[w], coin[w] = p, q, word


@kernel(called_by="kernels")
def _half_sweep(mine, other, colour, states, scratch, none_digits, one_digits):
    """New spins for one colour given the other. The digits are those of the probability of +1 with no neighbour up and
    with one up; with four or three up it is one minus that, with two up one half.
    """
    rows, words = mine.shape
    none, one, coin, side = scratch[0], scratch[1], scratch[2], scratch[3]
    for r in range(rows):
        above, below, beside, own = other[(r - 1) % rows], other[(r + 1) % rows], other[r], mine[r]
        if (r + colour) % 2 == 0:
            for w in range(1, words):
                side[w] = beside[w - 1]
            side[0] = (beside[words - 1] << _1) | (beside[words - 1] >> _63)
        else:
            for w in range(words - 1):
                side[w] = beside[w + 1]
            side[words - 1] = (beside[0] >> _1) | (beside[0] << _63)
        _decisions(states, none, one, coin, none_digits, one_digits)
        for w in range(words):
            either_1, both_1 = above[w] ^ below[w], above[w] & below[w]
            either_2, both_2 = beside[w] ^ side[w], beside[w] & side[w]
            odd = either_1 ^ either_2
            many = both_1 | both_2  # with an odd number: three up
            all_up = both_1 & both_2
            all_down = ~(above[w] | below[w] | beside[w] | side[w])
            extreme = (all_up & ~none[w]) | (all_down & none[w])
            own[w] = (odd & (one[w] ^ many)) | (~odd & (extreme | (coin[w] & ~(all_up | all_down))))


@kernel(called_by="kernels")
def pack(spins, rows, columns, colour, words):
    """Put the +1 spins of one colour into `words` (rows, columns / 128)."""
    width = words.shape[1]
    for r in range(rows):
        for w in range(width):
            word = np.uint64(0)
            for b in range(64):
                column = 2 * (b * width + w) + (r + colour) % 2
                if spins[r * columns + column] > 0:
                    word |= _1 << np.uint64(b)
            words[r, w] = word


@kernel(called_by="kernels")
def unpack(words, rows, columns, colour, spins):
    """The inverse of `pack`: -1 and +1."""
    width = words.shape[1]
    for r in range(rows):
        for w in range(width):
            word = words[r, w]
            for b in range(64):
                column = 2 * (b * width + w) + (r + colour) % 2
                spins[r * columns + column] = 1 if (word >> np.uint64(b)) & _1 else -1


@kernel(called_by="python")
def torus_chain(x, out, rows, columns, none_digits, one_digits, begin, burn_in, thin, seed, chain):
    """Chequerboard sweeps of one torus, from the spins `x`, which are changed in place; draws as in `ising_scan`."""
    width = columns // 128
    words = np.empty((2, rows, width), np.uint64)
    states, scratch = np.empty((4, width), np.uint64), np.empty((4, width), np.uint64)
    for colour in range(2):
        pack(x, rows, columns, colour, words[colour])
    for sweep in range(begin, begin + burn_in + thin * out.shape[0]):
        begin_streams(states, seed, chain, sweep)
        for colour in range(2):
            _half_sweep(words[colour], words[1 - colour], colour, states, scratch, none_digits, one_digits)
        done = sweep + 1 - begin - burn_in
        if done > 0 and done % thin == 0:
            for colour in range(2):
                unpack(words[colour], rows, columns, colour, out[done // thin - 1])
    for colour in range(2):
        unpack(words[colour], rows, columns, colour, x)
