"""Thirty-two spins in a word against sums of spins, comparisons of numbers, Threefry of JAX, Kaufman's torus."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from numpy.testing import assert_array_equal

from cumulant.graphical import LatticeGibbs, UniformTorus
from cumulant.graphical.exact.lattices import torus_log_partition
from cumulant.graphical.samplers import packed_torus as pt
from cumulant.sampling import sample

ROWS, HALF = 6, 96


@pytest.fixture(scope="module")
def spins():
    return np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (3, 2, ROWS, HALF))


def bits(words):
    return (pt.unpack(np.asarray(words)) + 1) // 2


@pytest.mark.parametrize("colour", [0, 1])
def test_neighbours_are_those_of_the_torus(spins, colour):
    """Against the edges of the torus itself, spin by spin."""
    lattice = np.empty((3, ROWS, 2 * HALF), np.int8)
    for c in (0, 1):
        for row in range(ROWS):
            lattice[:, row, (row + c) % 2 :: 2] = spins[:, c, row]
    up = sum(np.roll(lattice, shift, axis) > 0 for axis in (1, 2) for shift in (1, -1))
    expected = np.stack([up[:, row, (row + colour) % 2 :: 2] for row in range(ROWS)], axis=1)
    ones, twos, fours = map(bits, pt.neighbours_up(jnp.asarray(pt.pack(spins[:, 1 - colour])), colour))
    assert_array_equal(ones + 2 * twos + 4 * fours, expected)


def test_decisions_compare_numbers_of_24_digits(spins):
    counts = np.random.default_rng(1).integers(0, 5, (2, ROWS, HALF))
    digits = np.array([17, 2**23, 2**24 - 1, 12_345_678, 2**22 + 1], np.uint32)
    random = list(np.random.default_rng(2).integers(0, 2**32, (24, 2, ROWS, HALF // 32), dtype=np.uint32))
    planes = [jnp.asarray(pt.pack(np.where(counts >> k & 1, 1, -1))) for k in range(3)]
    number = sum(bits(r).astype(np.int64) << place for place, r in enumerate(random))
    number[0, 0, :5], near = digits[counts[0, 0, :5]], slice(0, 5)  # equal numbers are not below
    random = [jnp.asarray(pt.pack(np.where(number >> place & 1, 1, -1).astype(np.int8))) for place in range(pt.DIGITS)]
    found = bits(pt.decide(*planes, jnp.asarray(pt.digit_masks(digits)), random))
    assert_array_equal(found, number < digits[counts])
    assert not found[0, 0, near].any()


def test_the_key_of_a_word_is_threefry():
    key, counter = np.random.default_rng(3).integers(0, 2**32, (2, 2, 5), dtype=np.uint32)
    theirs = [threefry_2x32(jnp.asarray([key[0, i], key[1, i]]), jnp.asarray(counter[:, i])) for i in range(5)]
    assert_array_equal(np.stack(pt._threefry(*map(jnp.asarray, (*key, *counter))), axis=1), theirs)


def test_random_words_are_fair_and_differ_everywhere():
    """Bits of all words, chains, sweeps and colours: means within 5 standard errors, no word twice in a place."""
    chains = jnp.arange(4, dtype=jnp.uint32)
    found = np.stack([
        np.stack(list(pt.random_words(jnp.asarray([1, 2], jnp.uint32), chains, (16, 8), jnp.uint32(t), colour)))
        for t in range(8)
        for colour in (0, 1)
    ])  # fmt: skip
    assert found.shape == (16, 24, 4, 16, 8)
    assert len(np.unique(found)) > found.size * (1 - 2 * found.size / 2**32)
    flat = np.unpackbits(found.astype("<u4").view(np.uint8).reshape(16, 24, 4, 16, 8, 4), axis=-1).astype(float) - 0.5
    assert abs(flat.mean()) < 5 * 0.5 / np.sqrt(flat.size)
    for axis in range(5):  # neighbours along each axis are not correlated
        lagged = 4 * (
            np.take(flat, range(1, flat.shape[axis]), axis) * np.take(flat, range(flat.shape[axis] - 1), axis)
        )
        assert abs(lagged.mean()) < 5 / np.sqrt(lagged.size)


def test_the_energy_is_that_of_the_torus():
    K, step, shape = 0.4, 1e-5, (8, 64)

    def energy(x):
        x = x.reshape(-1, *shape)
        return (x * (np.roll(x, 1, 1) + np.roll(x, 1, 2))).mean(axis=(1, 2), dtype=float) / 2

    draws = sample(LatticeGibbs(), UniformTorus(*shape, K), 40, chains=64, burn_in=100, thin=5, rng=0)
    exact = (torus_log_partition(*shape, K + step) - torus_log_partition(*shape, K - step)) / (4 * step * 8 * 64)
    assert abs(draws.mean(energy) - exact) < 4 * draws.standard_error(energy)
    assert draws.standard_error(energy) < 0.002
    assert 0 < draws.settings["bias"] < 2.0**-25


def test_chains_do_not_depend_on_how_many_there_are_nor_on_pauses():
    torus, sampler = UniformTorus(4, 64, 0.3, 0.1), LatticeGibbs()
    start = np.random.default_rng(0).choice([-1, 1], (3, 256))
    all_of_them = sampler.init(torus, start, 7)
    all_of_them, found = sampler.advance(torus, all_of_them, 2, 3, 2)
    alone = sampler.advance(torus, sampler.init(torus, start[:1], 7), 0, 4, 1)[0]
    assert_array_equal(sampler.advance(torus, alone, 1, 2, 1)[1][0, 0], found[0, 1])  # after seven sweeps


def test_decisions_that_are_too_rare_are_made_in_float32():
    rare = sample(LatticeGibbs(), UniformTorus(4, 64, 2.0), 1, chains=2, rng=0)
    assert "bias" not in rare.settings
