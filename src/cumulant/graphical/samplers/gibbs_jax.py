"""Chromatic Gibbs sampling of Ising models in JAX: one program for processors and accelerators.

All spins of one colour are drawn at once. Decisions are made in float32, whatever the setting of JAX: a probability is
off by at most about 2^-22. The draws are not those of the compiled kernels: another generator.
"""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import randomness
from cumulant.errors import DomainError
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.samplers.colouring import Neighbours, colouring
from cumulant.graphical.samplers.gibbs import IsingArrays
from cumulant.sampling.chains import require_counts
from cumulant.sampling.draws import Draws

__all__ = ["coloured_gibbs", "lattice_gibbs"]


def coloured_gibbs(
    model: Ising, n: int, *, chains: int = 64, burn_in: int = 1000, thin: int = 1, rng: Any = None
) -> Draws:
    """`n` draws of each of many chains of an Ising model on any graph, one colour of a colouring at a time.

    The spins are sorted by colour, so that a colour is a slice; neighbours are padded to the largest degree of their
    colour. Chains are the last axis: one gather serves them all. Stationary at the model; a sweep over colours in order
    is not reversible.

    Examples
    --------
    >>> from cumulant.graphical import grid
    >>> model = Ising(grid(3, 3), 0.3, 0.1).given({4: -1})
    >>> draws = coloured_gibbs(model, 50, chains=200, burn_in=50, rng=0)
    >>> bool(np.abs(draws.mean() - model.mean()[:9]).max() < 0.05), bool((draws.values[:, :, 4] == -1).all())
    (True, True)
    """
    if not isinstance(model, Ising):
        raise DomainError(f"coloured_gibbs is for Ising models; got {type(model).__name__}")
    n, chains, burn_in, thin = _sizes(n, chains, burn_in, thin)
    arrays, number = IsingArrays.of(model), randomness.seed(rng)
    graph, colours = Neighbours.of(arrays.n, arrays.edges), colouring(arrays.n, arrays.edges)
    order = np.argsort(colours, kind="stable")
    place = np.argsort(order)
    along, degrees = arrays.couplings[graph.edge], np.diff(graph.indptr)
    classes, ends = [], np.concatenate([[0], np.cumsum(np.bincount(colours))]).tolist()
    for first, last in itertools.pairwise(ends):
        sites = order[first:last]
        width = int(degrees[sites].max(initial=0))
        column = np.arange(width)
        at = np.minimum(graph.indptr[sites][:, None] + column, max(len(along) - 1, 0))
        there = column < degrees[sites][:, None]
        if width:
            others = np.where(there, place[graph.neighbours[at]], 0).astype(np.int32)
            weights = np.where(there, along[at], 0.0).astype(np.float32)
        else:
            others, weights = np.zeros((last - first, 0), np.int32), np.zeros((last - first, 0), np.float32)
        classes.append((others, weights, arrays.fields[sites].astype(np.float32)))
    evidence = model.evidence
    found = _run_coloured(classes, randomness.key(number), chains, n, burn_in, thin)
    values = np.empty((chains, n, model.n_variables), np.int8)
    values[:, :, arrays.free] = np.asarray(found).transpose(2, 0, 1)[:, :, place]
    for v, x in evidence.items():
        values[:, :, v] = x
    return Draws(values, "coloured_jax", {"seed": number, "burn_in": burn_in, "thin": thin})


@functools.partial(jax.jit, static_argnames=("chains", "n"))
def _run_coloured(classes, key, chains, n, burn_in, thin):
    total = sum(fields.shape[0] for _, _, fields in classes)

    def sweep(x, key):
        first = 0
        for colour, (others, weights, fields) in enumerate(classes):
            h = fields[:, None] + (weights[:, :, None] * x[others].astype(jnp.float32)).sum(axis=1)
            drawn = _spins(h, jax.random.fold_in(key, colour))
            x = x.at[first : first + fields.shape[0]].set(drawn)
            first += fields.shape[0]
        return x

    return _draws(sweep, (total, chains), key, n, burn_in, thin)


def lattice_gibbs(
    rows: int,
    columns: int,
    coupling: float,
    field: float = 0.0,
    n: int = 1,
    *,
    chains: int = 1,
    burn_in: int = 1000,
    thin: int = 1,
    rng: Any = None,
) -> Draws:
    """`n` draws of each chain of the Ising model on ``torus(rows, columns)`` with one coupling and one field.

    The two colours of the chequerboard are kept apart, and neighbours are shifts of the other colour: no gather. Rows
    and columns must be even, and at least 4. Draws are ``(chains, n, rows * columns)``.

    Examples
    --------
    >>> lattice_gibbs(4, 6, 0.2, n=50, chains=400, burn_in=50, rng=0).values.shape
    (400, 50, 24)
    """
    for name, value in (("rows", rows), ("columns", columns)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 4 or value % 2:
            raise ValueError(f"{name} must be an even number from 4 on; got {value!r}")
    if not (np.isfinite(coupling) and np.isfinite(field)):
        raise ValueError(f"coupling and field must be finite; got {coupling} and {field}")
    n, chains, burn_in, thin = _sizes(n, chains, burn_in, thin)
    number = randomness.seed(rng)
    found = np.asarray(
        _run_lattice(
            np.float32(coupling), np.float32(field), randomness.key(number), rows, columns, chains, n, burn_in, thin
        )
    )  # (draws, colour, rows, columns / 2, chains)
    values = np.empty((chains, n, rows, columns), np.int8)
    for colour in (0, 1):
        for parity in (0, 1):  # of the row
            some = found[:, colour, parity::2].transpose(3, 0, 1, 2)
            values[:, :, parity::2, (parity + colour) % 2 :: 2] = some
    settings = {"seed": number, "burn_in": burn_in, "thin": thin}
    return Draws(values.reshape(chains, n, rows * columns), "lattice_jax", settings)


@functools.partial(jax.jit, static_argnames=("rows", "columns", "chains", "n"))
def _run_lattice(coupling, field, key, rows, columns, chains, n, burn_in, thin):
    even_row = (jnp.arange(rows) % 2 == 0)[:, None, None]

    def sweep(x, key):
        for colour in (0, 1):
            other = x[1 - colour]
            left, right = jnp.roll(other, 1, axis=1), jnp.roll(other, -1, axis=1)
            side = jnp.where(even_row == (colour == 0), left, right)  # the first column of the row is its own or not
            total = other + side + jnp.roll(other, 1, axis=0) + jnp.roll(other, -1, axis=0)
            h = coupling * total.astype(jnp.float32) + field
            x = x.at[colour].set(_spins(h, jax.random.fold_in(key, colour)))
        return x

    return _draws(sweep, (2, rows, columns // 2, chains), key, n, burn_in, thin)


def _spins(h, key):
    """+1 where ``u < 1 / (1 + exp(-2 h))``, else -1."""
    u = jax.random.uniform(key, h.shape, jnp.float32)
    return jnp.where(u < jax.nn.sigmoid(2.0 * h), 1, -1).astype(jnp.int8)


def _draws(sweep, shape, key, n, burn_in, thin):
    """From uniform spins: `burn_in` sweeps, then `n` states with `thin` sweeps before each."""
    start, key = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
    x = jnp.where(jax.random.bernoulli(start, shape=shape), 1, -1).astype(jnp.int8)

    def several(x, first, count):
        return jax.lax.fori_loop(0, count, lambda t, y: sweep(y, jax.random.fold_in(key, first + t)), x)

    x = several(x, 0, burn_in)

    def keep(x, k):
        x = several(x, burn_in + k * thin, thin)
        return x, x

    return jax.lax.scan(keep, x, jnp.arange(n, dtype=jnp.int32))[1]


def _sizes(n, chains, burn_in, thin) -> tuple[int, int, int, int]:
    require_counts(n=(n, 1), chains=(chains, 1), burn_in=(burn_in, 0), thin=(thin, 1))
    if burn_in + n * thin >= 2**31:
        raise ValueError(f"burn_in + n * thin must be below 2**31 sweeps; got {burn_in + n * thin}")
    return int(n), int(chains), int(burn_in), int(thin)
