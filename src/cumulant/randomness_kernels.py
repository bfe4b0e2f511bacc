"""A counter-based generator for compiled loops: Philox-4x32 with ten rounds.

A random number here is a function, not a state: `uniform(seed, chain, sweep, site)` gives the same number whenever it
is asked, on any thread and in any order. That is what makes a sampler's answer independent of the number of cores.

Reference: Salmon, Moraes, Dror, Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3", SC11.
"""

import numpy as np

from cumulant.kernels import kernel

__all__ = ["philox", "uniform", "uniform_pair"]

_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_MULTIPLY_0, _MULTIPLY_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53


@kernel(called_by="kernels")
def philox(c0, c1, c2, c3, k0, k1):
    """Four 32-bit words from a 128-bit counter and a 64-bit key, all given and returned as uint64 below 2**32."""
    for _ in range(10):
        p0, p1 = _MULTIPLY_0 * c0, _MULTIPLY_1 * c2
        c0, c1, c2, c3 = (p1 >> _SHIFT) ^ c1 ^ k0, p1 & _MASK, (p0 >> _SHIFT) ^ c3 ^ k1, p0 & _MASK
        k0, k1 = (k0 + _WEYL_0) & _MASK, (k1 + _WEYL_1) & _MASK
    return c0, c1, c2, c3


@kernel(called_by="kernels")
def uniform_pair(seed, chain, sweep, site):
    """Two independent uniforms in (0, 1), never 0 and never 1, for this (seed, chain, sweep, site).

    `seed` below 2**63; `chain`, `sweep` and `site` below 2**32 each.
    """
    s = np.uint64(seed)
    w0, w1, w2, w3 = philox(
        np.uint64(site) & _MASK,
        np.uint64(sweep) & _MASK,
        np.uint64(chain) & _MASK,
        np.uint64(0),
        s & _MASK,
        s >> _SHIFT,
    )
    first = (w0 << np.uint64(20)) ^ (w1 >> np.uint64(12))  # 52 bits, then the half keeps away from 0 and 1
    second = (w2 << np.uint64(20)) ^ (w3 >> np.uint64(12))
    return (2.0 * np.float64(first) + 1.0) * _TO_UNIT, (2.0 * np.float64(second) + 1.0) * _TO_UNIT


@kernel(called_by="kernels")
def uniform(seed, chain, sweep, site):
    """One uniform in (0, 1) for this (seed, chain, sweep, site): the first of `uniform_pair`."""
    return uniform_pair(seed, chain, sweep, site)[0]
