"""The one place that turns `rng` into generators and keys.

Public functions take `rng`: an int, a `numpy.random.Generator` or None (fresh entropy); a JAX key is taken as it is, so
that sampling works under `jit`. The same int gives the same answer. Compiled loops use the counter-based generator of
`randomness_kernels` instead: its numbers depend on (seed, chain, sweep, site) and on nothing else.
"""

from typing import Any

import jax
import numpy as np

__all__ = ["generator", "is_key", "key", "seed"]


def is_key(rng: Any) -> bool:
    """Whether `rng` is a JAX key, typed (`jax.random.key`) or raw (`jax.random.PRNGKey`), possibly traced."""
    if not isinstance(rng, jax.Array):
        return False
    return jax.numpy.issubdtype(rng.dtype, jax.dtypes.prng_key) or (rng.dtype == np.uint32 and rng.shape[-1:] == (2,))


def seed(rng: Any) -> int:
    """A 63-bit seed: the int itself where `rng` is one, else drawn from the generator (which advances it).

    >>> seed(7)
    7
    """
    if isinstance(rng, bool) or not (rng is None or isinstance(rng, int | np.integer | np.random.Generator)):
        raise TypeError(f"rng must be an int, a numpy.random.Generator or None; got {type(rng).__name__}")
    if isinstance(rng, int | np.integer):
        if not 0 <= rng < 2**63:
            raise ValueError(f"rng must be between 0 and 2**63 - 1; got {rng}")
        return int(rng)
    return int(generator(rng).integers(2**63))


def generator(rng: Any) -> np.random.Generator:
    """A NumPy generator: `rng` itself if it is one, else seeded by the int, else from fresh entropy.

    >>> int(generator(0).integers(10))
    8
    """
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(None if rng is None else seed(rng))


def key(rng: Any) -> jax.Array:
    """A raw JAX key. Draw with it inside the context it is used in: with x64 on, a key gives other numbers.

    The key is the same two words whether the flag is on or off, so a seed names one stream everywhere.
    """
    if is_key(rng):
        return rng
    number = seed(rng)
    return jax.numpy.asarray(np.array([number >> 32, number & 0xFFFFFFFF], dtype=np.uint32))
