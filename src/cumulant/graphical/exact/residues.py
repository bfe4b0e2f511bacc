"""Sums over the states of square lattices modulo primes, and whole numbers from their residues."""

from functools import cache

import numpy as np

from cumulant.errors import TooWide
from cumulant.graphical.exact.pfaffian_kernels import even_subgraph_sums
from cumulant.graphical.exact.square_lattice import SquareLattice

BITS = 30  # of every prime, at least
_MOST = 1 << 17  # primes: whole numbers of 4 million bits
_BATCH = 1 << 20  # residues at a time: memory, and how long an interrupt waits


def primes_below(count: int) -> np.ndarray:
    """The `count` largest primes below 2^31.

    >>> primes_below(3).tolist()
    [2147483647, 2147483629, 2147483587]
    """
    if count > _MOST:
        raise TooWide(
            f"whole numbers of {count * BITS:,} bits are too long: couplings are too large, or there are too many of "
            "them; ask bound_log_partition for an interval"
        )
    return _primes(1 << max(count - 1, 1).bit_length())[:count]


@cache
def _primes(count: int) -> np.ndarray:
    width = 1 << max((40 * count).bit_length(), 12)
    low, sieve = (1 << 31) - width, np.ones(width, dtype=bool)
    small = np.ones(46342, dtype=bool)
    small[:2] = False
    for k in range(2, 216):
        if small[k]:
            small[k * k :: k] = False
    for k in np.flatnonzero(small).tolist():
        sieve[-low % k :: k] = False
    return (low + np.flatnonzero(sieve)[::-1])[:count].astype(np.int64)


def sums_over_states(lattice: SquareLattice, kept: np.ndarray, broken: np.ndarray, primes: np.ndarray) -> np.ndarray:
    """``sum_x prod_(bonds) (kept where the bond is satisfied, broken where it is not)`` for each prime.

    `kept` and `broken` are residues, shape (primes, 2, rows, columns), of the bonds right and down; those of bonds
    that are missing count for nothing. A prime that divides some ``kept + broken`` gives -1.

    The sum is ``2^(sites - bonds)`` times that over even subgraphs with ``kept - broken``, or its negative where the
    coupling is, for a bond in the subgraph and ``kept + broken`` for any other (van der Waerden 1941).
    """
    couplings = np.stack([lattice.right, lattice.down])
    there = couplings != 0
    p = primes[:, None, None, None]
    inside = np.where(there, np.where(couplings < 0, broken - kept, kept - broken) % p, 0).astype(np.uint32)
    outside = np.where(there, (kept + broken) % p, 1).astype(np.uint32)
    good = outside.reshape(len(primes), -1).all(axis=1)
    out = np.zeros(len(primes), dtype=np.int64)
    rows, columns = lattice.shape
    size = lattice.front + 12
    done = False
    while not done:
        work = [np.zeros((size, size), dtype=np.uint32) for _ in range(2)]
        done = even_subgraph_sums(
            inside[:, 0], inside[:, 1], outside[:, 0], outside[:, 1], lattice.joined_right, lattice.joined_down,
            np.where(good, primes, 2147483647), *work, np.zeros(size, dtype=bool), np.zeros(2 * size, dtype=np.int64),
            np.zeros(4 * rows * columns, dtype=np.int64), np.zeros((2, rows, columns), dtype=np.uint32), out,
        )  # fmt: skip
        size *= 2
    exponent = rows * columns - int(there.sum())
    scale = [pow(2, exponent, prime) for prime in primes.tolist()]
    return np.where(good, out * np.array(scale, dtype=np.int64) % primes, -1)


def batches(lattice: SquareLattice, primes: np.ndarray) -> list[np.ndarray]:
    """Parts of the primes whose residues for all bonds fit into some megabytes."""
    each = max(_BATCH // (2 * lattice.right.size), 1)
    return [primes[k : k + each] for k in range(0, len(primes), each)]


def whole_numbers(residues: np.ndarray, primes: list[int]) -> tuple[list[int], int]:
    """The numbers from 0 up to the product of the primes with these residues, (primes, numbers), and that product.

    >>> whole_numbers(np.array([[2, 1], [3, 0]]), [5, 7])
    ([17, 21], 35)
    """
    values, modulus = [0] * residues.shape[1], 1
    for row, p in zip(residues.tolist(), primes, strict=True):
        inverse = pow(modulus, -1, p) if p > 1 else 0
        values = [value + modulus * ((r - value) * inverse % p) for value, r in zip(values, row, strict=True)]
        modulus *= p
    return values, modulus
