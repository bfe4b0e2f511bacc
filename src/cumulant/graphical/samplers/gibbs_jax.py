"""Chromatic Gibbs sampling of Ising models in JAX: one program for processors and accelerators.

All spins of one colour are drawn at once. Decisions are made in float32, whatever the setting of JAX: a probability is
off by at most about 2^-22. The draws are not those of the compiled kernels: another generator.
"""

import functools
import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import randomness
from cumulant.errors import DomainError
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.samplers import packed_torus
from cumulant.graphical.samplers.chains import CompiledSampler, DiscreteSampler, Program
from cumulant.graphical.samplers.colouring import Neighbours, colouring
from cumulant.graphical.samplers.gibbs import IsingArrays

_UNROLLED = 32  # neighbours


@dataclass(frozen=True)
class ColouredGibbs(DiscreteSampler):
    """Sweeps of an Ising model on any graph, one colour of a colouring after the other, for many chains at once.

    The spins are sorted by colour, so that a colour is a slice; neighbours are padded to the largest degree of their
    colour. Chains are the last axis: one gather serves them all. Stationary at the model; a sweep over colours in order
    is not reversible.

    Examples
    --------
    >>> from cumulant import sampling
    >>> from cumulant.graphical import grid
    >>> model = Ising(grid(3, 3), 0.3, 0.1).given({4: -1})
    >>> draws = sampling.sample(ColouredGibbs(), model, 50, chains=200, burn_in=50, rng=0)
    >>> bool(np.abs(draws.mean() - model.mean()[:9]).max() < 0.05), bool((draws.values[:, :, 4] == -1).all())
    (True, True)
    """

    def program(self, model: Any, chains: int) -> Program:
        """The sweeps of a model."""
        if not isinstance(model, Ising):
            raise DomainError(f"ColouredGibbs is for Ising models; got {type(model).__name__}")
        arrays = IsingArrays.of(model)
        order, place, classes = coloured_classes(arrays)
        classes = [(others, *map(np.float32, numbers)) for others, *numbers in classes]

        def run(x, out, begin, burn_in, thin, seed, first):
            numbers = map(np.uint32, (begin, burn_in, thin))
            x[:], out[:] = _coloured(classes, x, order, place, randomness.key(seed), *numbers, out.shape[1])

        return Program(run, arrays.free, group=chains)


class ColouredClasses(NamedTuple):
    """Sites sorted by colour: the site at each place, the place of each site, and for each colour the places of the
    neighbours of its sites ``(sites, neighbours)``, their couplings (zero where there is none), and the fields.
    """

    order: np.ndarray
    place: np.ndarray
    classes: list[tuple[np.ndarray, np.ndarray, np.ndarray]]


def coloured_classes(arrays: IsingArrays) -> ColouredClasses:
    """The colours of a model."""
    graph, colours = Neighbours.of(arrays.n, arrays.edges), colouring(arrays.n, arrays.edges)
    order = np.argsort(colours, kind="stable")
    place = np.argsort(order)
    along, degrees = np.append(arrays.couplings[graph.edge], 0.0), np.diff(graph.indptr)
    beside = np.append(place[graph.neighbours], 0)  # the last entries stand for no neighbour
    classes = []
    for first, last in itertools.pairwise([0, *np.cumsum(np.bincount(colours)).tolist()]):
        sites = order[first:last]
        column = np.arange(int(degrees[sites].max()))
        at = np.where(column < degrees[sites][:, None], graph.indptr[sites][:, None] + column, -1)
        classes.append((beside[at].astype(np.int32), along[at], arrays.fields[sites]))
    return ColouredClasses(order, place, classes)


def neighbour_sums(others, weights, x):
    """``sum_j J_ij x_j`` for the sites of a colour and all chains, from spins sorted by colour ``(sites, chains)``."""
    if others.shape[1] > _UNROLLED:
        return (weights[:, :, None] * x[others].astype(weights.dtype)).sum(axis=1)
    # Not a sum over an axis: gathers, random numbers and decisions become one program.
    total = jnp.zeros((len(others), x.shape[1]), weights.dtype)
    for k in range(others.shape[1]):
        total = total + weights[:, k : k + 1] * x[others[:, k]].astype(weights.dtype)
    return total


def draw_class(x, h, key, first):
    """`x` with new spins from place `first` on, whose local fields are `h`."""
    return x.at[first : first + len(h)].set(_spins(h.astype(jnp.float32), key, first))


@functools.partial(jax.jit, static_argnames=("n",))
def _coloured(classes, x, order, place, key, begin, burn_in, thin, n):
    """The last states ``(chains, sites)`` and `n` draws ``(chains, n, sites)``."""

    def sweep(x, key):
        first = 0
        for others, weights, fields in classes:
            x = draw_class(x, fields[:, None] + neighbour_sums(others, weights, x), key, first)
            first += fields.size
        return x

    last, found = _sweeps(sweep, x[:, order].T, key, begin, burn_in, thin, n)
    return last[place].T, found[:, place].transpose(2, 0, 1)


@dataclass(frozen=True)
class UniformTorus:
    """The Ising model on ``torus(rows, columns)`` with one coupling and one field: a target of `LatticeGibbs`.

    Rows and columns must be even, and at least 4. It has no list of edges, so that it may be large.
    """

    rows: int
    columns: int
    coupling: float
    field: float = 0.0

    def __post_init__(self):
        for name, value in (("rows", self.rows), ("columns", self.columns)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 4 or value % 2:
                raise ValueError(f"{name} must be an even number from 4 on; got {value!r}")
        if not (np.isfinite(self.coupling) and np.isfinite(self.field)):
            raise ValueError(f"coupling and field must be finite; got {self.coupling} and {self.field}")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """One vector ``x`` of spins, row after row."""
        return {"x": (self.rows * self.columns,)}

    def sites_by_colour(self) -> np.ndarray:
        """The site of each entry of (colour, row, half of the columns)."""
        row, column = np.arange(self.rows)[:, None], 2 * np.arange(self.columns // 2)
        return np.stack([row * self.columns + column + (row + colour) % 2 for colour in (0, 1)]).ravel()

    def starts(self, chains: int, start: Any, seed: int) -> np.ndarray:
        """Where chains begin: at the spins `start`, one for all or one each, or at uniform ones."""
        n = self.rows * self.columns
        if start is None:
            draws = [np.random.default_rng([seed, c]).integers(0, 2, n, dtype=np.int8) for c in range(chains)]
            return 2 * np.stack(draws) - 1
        start = np.asarray(start)
        if start.shape not in ((n,), (chains, n)) or not np.isin(start, (-1, 1)).all():
            raise ValueError(f"start must be spins -1 and +1 of shape ({n},) or ({chains}, {n}); got {start.shape}")
        return np.broadcast_to(start, (chains, n)).astype(np.int8)


@dataclass(frozen=True)
class LatticeGibbs(CompiledSampler):
    """Sweeps of a `UniformTorus`, one colour of the chequerboard after the other.

    The two colours are kept apart, and neighbours are shifts of the other colour: no gather. Where columns are a
    multiple of 64, 32 spins are kept in a word (`packed_torus`): a decision then has 24 random digits, and the draws'
    ``settings["bias"]`` bounds the error of a probability. Couplings and fields that make decisions rarer than 2^-20
    are decided in float32 as on other tori.

    Examples
    --------
    >>> from cumulant import sampling
    >>> sampling.sample(LatticeGibbs(), UniformTorus(4, 6, 0.2), 50, chains=400, burn_in=50, rng=0).values.shape
    (400, 50, 24)
    """

    def program(self, torus: UniformTorus, chains: int) -> Program:
        """The sweeps of a torus."""
        rows, columns, half = torus.rows, torus.columns, torus.columns // 2
        sites = torus.sites_by_colour()
        place = np.argsort(sites)
        digits, bias = packed_torus.up_digits(torus.coupling, torus.field)
        masks = packed_torus.digit_masks(digits)

        def run_packed(x, out, begin, burn_in, thin, seed, first):
            packed = packed_torus.pack(x[:, sites].reshape(len(x), 2, rows, half))
            numbers = first + np.arange(len(x), dtype=np.uint32)
            last, found = packed_torus.packed_sweeps(
                packed, masks, randomness.key(seed), numbers, *map(np.uint32, (begin, burn_in, thin)), out.shape[1]
            )
            x[:] = packed_torus.unpack(np.asarray(last)).reshape(x.shape)[:, place]
            for k, each in enumerate(found):
                out[:, k] = packed_torus.unpack(np.asarray(each)).reshape(x.shape)[:, place]

        if packed_torus.can_pack(columns) and packed_torus.can_decide(digits):
            return Program(run_packed, np.arange(rows * columns), group=chains, report={"bias": bias})

        def run(x, out, begin, burn_in, thin, seed, first):
            packed = x[:, sites].reshape(len(x), 2, rows, half)
            numbers = (np.float32(torus.coupling), np.float32(torus.field))
            last, found = _lattice(
                packed, *numbers, randomness.key(seed), *map(np.uint32, (begin, burn_in, thin)), out.shape[1]
            )
            x[:] = np.asarray(last).reshape(x.shape)[:, place]
            out[:] = np.asarray(found).swapaxes(0, 1).reshape(out.shape)[:, :, place]

        return Program(run, np.arange(rows * columns), group=chains)


@functools.partial(jax.jit, static_argnames=("n",))
def _lattice(x, coupling, field, key, begin, burn_in, thin, n):
    even_row = (jnp.arange(x.shape[2]) % 2 == 0)[:, None]

    def sweep(x, key):
        for colour in (0, 1):
            other = x[:, 1 - colour]
            left, right = jnp.roll(other, 1, axis=2), jnp.roll(other, -1, axis=2)
            side = jnp.where(even_row == (colour == 0), left, right)  # the first column of the row is its own or not
            total = other + side + jnp.roll(other, 1, axis=1) + jnp.roll(other, -1, axis=1)
            h = coupling * total.astype(jnp.float32) + field
            x = x.at[:, colour].set(_spins(h, jax.random.fold_in(key, colour), 0))
        return x

    return _sweeps(sweep, x, key, begin, burn_in, thin, n)


def _spins(h, key, first):
    """+1 where ``u < 1 / (1 + exp(-2 h))``, else -1. Row ``r`` of ``h`` has the numbers of the key ``first + r``: rows
    are sites or chains, and in both cases the numbers of a chain do not depend on how many chains there are.
    """
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, first + jnp.arange(len(h), dtype=jnp.uint32))
    u = jax.vmap(lambda each: jax.random.uniform(each, h.shape[1:], jnp.float32))(keys)
    return jnp.where(u < jax.nn.sigmoid(2.0 * h), 1, -1).astype(jnp.int8)


def _sweeps(sweep, x, key, begin, burn_in, thin, n):
    """The last state, and `n` states with `thin` sweeps before each after `burn_in` of them."""

    def keep(x, span):
        first, count = span
        x = jax.lax.fori_loop(jnp.uint32(0), count, lambda t, y: sweep(y, jax.random.fold_in(key, first + t)), x)
        return x, x

    last, found = jax.lax.scan(keep, x, packed_torus.spans(begin, burn_in, thin, n))
    return last, found[:n]
