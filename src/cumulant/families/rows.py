"""Work on a few rows of a large batch at a time, so that the matrices built from them stay in the cache.

A million parameters in ten dimensions are 800 megabytes for every matrix that a method builds on the way; sixty-four
of them at a time are 50 kilobytes, and several times faster.
"""

import functools
import math

import jax
import jax.numpy as jnp

from cumulant.families.base import ExponentialFamily

_ROWS = 64
_BLOCK = 8
_METHODS = (
    "log_partition",
    "usual",
    "to_mean",
    "to_natural",
    "conjugate",
    "expected_log_base",
    "entropy",
    "kl",
    "in_domain",
    "in_mean_domain",
)


def in_chunks(function, *arrays, most=_ROWS):
    """``function(*arrays)``, a few rows at a time; each array has its rows on the first axis, and so has the answer."""
    n = arrays[0].shape[0]
    if n <= 2 * most:
        return function(*arrays)
    chunks = -(-n // most)
    rows = -(-n // chunks)
    missing = chunks * rows - n

    def stacked(array):
        filled = jnp.concatenate([array, array[n - missing :]]) if missing else array
        return filled.reshape(chunks, rows, *array.shape[1:])

    answer = jax.lax.map(lambda part: function(*part), tuple(map(stacked, arrays)))
    return jax.tree.map(lambda leaf: leaf.reshape(chunks * rows, *leaf.shape[2:])[:n], answer)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def divergence(quick, accurate, theta, other):
    """``accurate(theta, other)``, a divergence of members ``(*batch, dim)``, in the time of `quick` for large batches.

    ``quick(theta, other)`` gives the divergence and the size of the terms it is the sum of, as their rounding sees it.
    Where it is below 1e-5 of them, cancellation has cost five digits or more: such points are computed accurately, and
    they alone where they are few. Derivatives are those of `accurate`.
    """
    theta, other = jnp.broadcast_arrays(theta, other)
    n = math.prod(theta.shape[:-1])
    if n < 1024:
        return accurate(theta, other)
    value, size = quick(theta, other)
    # One array, kept: the compiler would compute the terms again for each of its uses.
    value = jax.lax.optimization_barrier(jnp.where((value > 1e-5 * size) & jnp.isfinite(size), value, jnp.nan))
    doubtful = jnp.isnan(value)
    # Found in blocks, of which the last may overlap: to find single points costs as much as the quick formula.
    blocks = jnp.any(jnp.pad(doubtful.ravel(), (0, -n % _BLOCK)).reshape(-1, _BLOCK), axis=-1)
    room, count = n // (128 * _BLOCK), jnp.sum(blocks)

    def few():
        starts = jnp.minimum(_BLOCK * jnp.nonzero(blocks, size=room, fill_value=0)[0], n - _BLOCK)
        index = (starts[:, None] + jnp.arange(_BLOCK)).ravel()
        rows = (each.reshape(n, each.shape[-1])[index] for each in (theta, other))
        return value.ravel().at[index].set(accurate(*rows)).reshape(value.shape)

    def many():
        return jnp.where(doubtful, accurate(theta, other), value)

    return jax.lax.switch((count > 0).astype(int) + (count > room), (lambda: value, few, many))


@divergence.defjvp
def _divergence_jvp(quick, accurate, primals, tangents):
    return divergence(quick, accurate, *primals), jax.jvp(accurate, primals, tangents)[1]


def _by_rows(method):
    """A method of parameters ``(*batch, dim)`` that works on a few of them at a time."""

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        names = list(kwargs)
        vectors = jnp.broadcast_arrays(*args, *kwargs.values())
        batch = vectors[0].shape[:-1]
        n = math.prod(batch)

        def rows(*parts):
            return method(self, *parts[: len(args)], **dict(zip(names, parts[len(args) :], strict=True)))

        if n <= 2 * _ROWS:
            return rows(*vectors)
        answer = in_chunks(rows, *(vector.reshape(n, vector.shape[-1]) for vector in vectors))
        return jax.tree.map(lambda leaf: leaf.reshape(*batch, *leaf.shape[1:]), answer)

    return call


class ByRows(ExponentialFamily):
    """A family whose parameters hold matrices: its closed forms work on a few rows of a batch at a time."""

    def __init_subclass__(cls, **kwargs):
        for name in _METHODS:
            if name in cls.__dict__:
                setattr(cls, name, _by_rows(cls.__dict__[name]))
        super().__init_subclass__(**kwargs)

    @_by_rows
    def to_natural(self, mu):
        return self._central_to_natural(self._from_mean(mu))
