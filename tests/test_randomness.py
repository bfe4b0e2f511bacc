"""One place for randomness: seeds, keys, and the counter-based generator against its published vectors."""

import threading

import jax
import numpy as np
import pytest
from scipy import stats

from cumulant import randomness, randomness_kernels
from cumulant.kernels import kernel
from tests.compiled import from_python

philox, uniform, uniform_pair = map(
    from_python, (randomness_kernels.philox, randomness_kernels.uniform, randomness_kernels.uniform_pair)
)

# Known answers distributed with the authors' Random123 (counter, key, output).
VECTORS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_philox_gives_the_published_words(counter, key, expected):
    assert tuple(int(w) for w in philox(*map(np.uint64, (*counter, *key)))) == expected


@kernel
def fill(out, seed, chain):
    for sweep in range(out.shape[0]):
        for site in range(out.shape[1]):
            out[sweep, site] = randomness_kernels.uniform(seed, chain, sweep, site)


def test_uniforms_are_uniform_and_uncorrelated_along_every_axis():
    out = np.empty((400, 500))
    fill(out, 11, 0)
    assert out.min() > 0
    assert out.max() < 1
    assert stats.kstest(out.ravel(), "uniform").pvalue > 1e-3
    n = out.size
    for a, b in ((out[1:], out[:-1]), (out[:, 1:], out[:, :-1])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 5 / np.sqrt(n)
    other = np.empty_like(out)
    for seed, chain in ((11, 1), (12, 0)):
        fill(other, seed, chain)
        assert abs(np.corrcoef(out.ravel(), other.ravel())[0, 1]) < 5 / np.sqrt(n)
    first, second = uniform_pair(3, 1, 4, 1)
    assert first != second


def test_the_numbers_do_not_depend_on_threads_or_order():
    whole, pieces = np.empty((64, 32)), np.empty((64, 32))
    fill(whole, 5, 2)

    def work(rows):
        for sweep in reversed(rows):
            for site in range(32):
                pieces[sweep, site] = uniform(5, 2, sweep, site)

    threads = [threading.Thread(target=work, args=(range(i, 64, 3),)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(whole, pieces)


def test_seeds_generators_and_keys():
    assert randomness.seed(3) == 3
    assert randomness.generator(3).integers(1000) == np.random.default_rng(3).integers(1000)
    mine = np.random.default_rng(1)
    assert randomness.generator(mine) is mine
    assert randomness.seed(mine) != randomness.seed(mine), "a generator advances"
    np.testing.assert_array_equal(randomness.key(2**40 + 5), [2**8, 5])
    np.testing.assert_array_equal(randomness.key(7), jax.random.PRNGKey(7))
    typed = jax.random.key(0)
    assert randomness.key(typed) is typed
    assert randomness.seed(None) != randomness.seed(None)


@pytest.mark.parametrize("bad", ["0", 1.5, True, [1]])
def test_what_is_not_an_rng_is_refused(bad):
    with pytest.raises(TypeError, match="rng must be an int"):
        randomness.seed(bad)


def test_a_seed_has_63_bits():
    with pytest.raises(ValueError, match="between 0 and"):
        randomness.seed(-1)
    with pytest.raises(ValueError, match="between 0 and"):
        randomness.seed(2**63)
