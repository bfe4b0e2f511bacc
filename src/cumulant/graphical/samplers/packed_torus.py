"""Sweeps of a uniform torus in JAX with 32 spins in a word: every operation is one of bits, for processors and
accelerators.

A colour of the chequerboard is an array ``(chains, rows, words)``. Bit ``b`` of word ``w`` is the spin of the half
column ``b * words + w``: the neighbour at the side is the word beside, and only at the ends of a row the bits turn by
one. The neighbours of 32 spins are counted by two half adders. A comparison with 24 random digits decides each spin;
the digits of its probability are a polynomial over {0, 1} in those of the count, whose coefficients are words.

Random digits: the word of a chain, a sweep and a colour has a key of its own by Threefry (Salmon et al. 2011), and
xoroshiro64** (Blackman and Vigna 2021) makes the digits of its spins from it. The draws of a chain depend neither on
the number of chains nor on how the program is compiled: there are no sums of floating-point numbers.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.graphical.samplers.multi_spin import bernoulli_digits

WORD = 32
DIGITS = 24
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def can_pack(columns: int) -> bool:
    """Whether half a row fills words."""
    return columns % (2 * WORD) == 0


def can_decide(digits: np.ndarray) -> bool:
    """Whether the rarest decision is at least 2^-20, so that its relative error of rounding is below 2^-5."""
    return bool(digits.min() >= 16 and digits.max() <= 2**DIGITS - 16)


def up_digits(coupling: float, field: float) -> tuple[np.ndarray, float]:
    """The probabilities of +1 with 0, ..., 4 neighbours up as numbers below 2^24, and the largest error of rounding."""
    h = 2.0 * (coupling * np.arange(-4.0, 5.0, 2.0) + field)
    with np.errstate(over="ignore"):
        found = [bernoulli_digits(p) for p in 1.0 / (1.0 + np.exp(-h))]
    return np.array([digits for digits, _ in found], np.uint32), max(error for _, error in found)


def digit_masks(digits: np.ndarray) -> np.ndarray:
    """The digits of five numbers as polynomials over {0, 1} in the binary digits of their index: ``(24, 5)`` words.

    Digit ``p`` of number ``k``, for ``k = ones + 2 twos + 4 fours`` up to four, is
    ``c_0 ^ c_1 ones ^ c_2 twos ^ c_3 ones twos ^ c_4 fours`` with row ``p`` of the answer, each coefficient as a word
    of 32 equal bits. They are a table made beforehand: to turn a digit into a word took more time than to use it.

    >>> masks = digit_masks(np.array([0, 0, 0, 1, 3], np.uint32))
    >>> (masks[:2] & 1).tolist(), masks.shape
    ([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], (24, 5))
    """
    d = np.asarray(digits, np.uint32)
    coefficients = np.array([d[0], d[0] ^ d[1], d[0] ^ d[2], d[0] ^ d[1] ^ d[2] ^ d[3], d[0] ^ d[4]], np.uint32)
    return (coefficients >> np.arange(DIGITS, dtype=np.uint32)[:, None] & np.uint32(1)) * np.uint32(0xFFFFFFFF)


def pack(spins: np.ndarray) -> np.ndarray:
    """Spins -1 and +1 ``(..., half columns)`` as words ``(..., half columns / 32)``.

    >>> spins = np.where(np.arange(64) % 3 == 0, 1, -1).astype(np.int8)
    >>> bool((unpack(pack(spins)) == spins).all()), pack(spins).shape
    (True, (2,))
    """
    words = spins.shape[-1] // WORD
    bits = (spins > 0).reshape(*spins.shape[:-1], WORD, words).swapaxes(-1, -2)
    packed = np.ascontiguousarray(np.packbits(bits, axis=-1, bitorder="little"))
    return packed.view("<u4")[..., 0].astype(np.uint32)


def unpack(words: np.ndarray) -> np.ndarray:
    """The inverse of `pack`."""
    bits = np.unpackbits(np.ascontiguousarray(words, "<u4")[..., None].view(np.uint8), axis=-1, bitorder="little")
    return (2 * bits.astype(np.int8) - 1).swapaxes(-1, -2).reshape(*words.shape[:-1], -1)


def neighbours_up(other: jax.Array, colour: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """How many of the four neighbours of each spin of a colour are up, as binary digits: ones, twos and fours."""
    even_row = (jnp.arange(other.shape[1]) % 2 == 0)[:, None]
    left = jnp.concatenate([_rotate(other[..., -1:], 1), other[..., :-1]], axis=-1)
    right = jnp.concatenate([other[..., 1:], _rotate(other[..., :1], WORD - 1)], axis=-1)
    side = jnp.where(even_row == (colour == 0), left, right)  # the first column of the row is its own or not
    up, down = jnp.roll(other, 1, axis=1), jnp.roll(other, -1, axis=1)
    first, second = other ^ side, up ^ down
    carry_a, carry_b, carry_c = other & side, up & down, first & second
    # The third carry excludes the other two.
    return first ^ second, carry_a ^ carry_b ^ carry_c, carry_a & carry_b


def random_words(key: jax.Array, chains: jax.Array, shape: tuple[int, int], sweep: jax.Array, colour: int):
    """The 24 words of random bits for each word of spins, the least significant digits first."""
    word = jnp.arange(shape[0] * shape[1], dtype=jnp.uint32).reshape(1, *shape)
    # A key for the chain and the sweep, then a state for each word of the lattice.
    k0, k1 = _threefry(key[0], key[1], chains, sweep)
    s0, s1 = _threefry(k0[:, None, None], k1[:, None, None], word, jnp.uint32(colour))
    s1 = s1 | jnp.uint32(s0 == 0)  # the generator may not start at zero
    for _ in range(DIGITS):
        yield _rotate(s0 * jnp.uint32(0x9E3779BB), 5) * jnp.uint32(5)
        s1 = s1 ^ s0
        s0, s1 = _rotate(s0, 26) ^ s1 ^ (s1 << jnp.uint32(9)), _rotate(s1, 13)


def _counts(ones, twos, fours) -> tuple[jax.Array, ...]:
    """Which spins have 0, ..., 4 neighbours up."""
    return ~(ones | twos | fours), ones & ~twos, twos & ~ones, ones & twos, fours


def decide(ones, twos, fours, masks: jax.Array, random) -> jax.Array:
    """+1 where the number made of the random digits is below the one of the probability, for 32 spins at once.

    `masks` are `digit_masks` of the probabilities.
    """
    both, chosen = ones & twos, jnp.zeros_like(ones)
    for c, r in zip(masks, random, strict=True):
        digit = c[0] ^ (ones & c[1]) ^ (twos & c[2]) ^ (both & c[3]) ^ (fours & c[4])
        # A digit that differs from the random one decides, whatever the less significant ones said.
        chosen = (digit & ~r) | (chosen & ~(digit ^ r))
    return chosen


@functools.partial(jax.jit, static_argnames=("colours",))
def draw_colours(x, colours, masks, key, chains, number):
    """`x` after new spins of some colours, in this order; `number` counts the calls, whose random numbers differ.

    `masks` are the `digit_masks` of the probabilities.
    """
    for colour in colours:
        random = random_words(key, chains, x.shape[2:], number, colour)
        x = x.at[:, colour].set(decide(*neighbours_up(x[:, 1 - colour], colour), masks, random))
    return x


@functools.partial(jax.jit, static_argnames=("colour",))
def count_neighbours(x, colour):
    """How many spins of a colour are down, and how many up, with 0, ..., 4 neighbours up: ``(chains, 2, 5)``."""
    counts = jnp.stack(_counts(*neighbours_up(x[:, 1 - colour], colour)), axis=1)
    up = x[:, None, colour]
    both = jnp.stack([counts & ~up, counts & up], axis=1)
    return jax.lax.population_count(both).astype(jnp.int32).sum(axis=(-2, -1))


@functools.partial(jax.jit, static_argnames=("n",))
def packed_sweeps(x, masks, key, chains, begin, burn_in, thin, n):
    """The last state and `n` states with `thin` sweeps before each, after `burn_in` sweeps.

    `x` is ``(chains, 2, rows, words)``, `chains` are their numbers, `key` two words; sweeps are counted from `begin`.
    """

    def sweep(t, x):
        return draw_colours(x, (0, 1), masks, key, chains, t)

    def keep(x, span):
        first, count = span
        x = jax.lax.fori_loop(first, first + count, sweep, x)
        return x, x

    last, found = jax.lax.scan(keep, x, spans(begin, burn_in, thin, n))
    return last, found[:n]


def spans(begin, burn_in, thin, n):
    """The first sweep and the number of sweeps of each of `n` draws, counted from `begin`.

    The burn-in belongs to the first draw, so that the sweep is compiled once; without draws there is only the burn-in.
    """
    draws = jnp.arange(max(n, 1), dtype=jnp.uint32)
    counts = jnp.full_like(draws, thin if n else 0).at[0].add(burn_in)
    return begin + jnp.where(draws > 0, burn_in + draws * thin, 0), counts


def _rotate(x: jax.Array, by: int) -> jax.Array:
    return (x << jnp.uint32(by)) | (x >> jnp.uint32(WORD - by))


def _threefry(k0, k1, x0, x1) -> tuple[jax.Array, jax.Array]:
    """Threefry-2x32 with 20 rounds of the counter ``(x0, x1)`` under the key ``(k0, k1)``."""
    keys = (k0, k1, k0 ^ k1 ^ jnp.uint32(0x1BD11BDA))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for block in range(5):
        for by in _ROTATIONS[block % 2]:
            x0 = x0 + x1
            x1 = _rotate(x1, by) ^ x0
        x0 = x0 + keys[(block + 1) % 3]
        x1 = x1 + keys[(block + 2) % 3] + jnp.uint32(block + 1)
    return x0, x1
