"""Bridges whose particles are moved by the programs of JAX, on an accelerator where there is one.

Decisions have 23 or 24 random digits there, so that a move leaves its distribution as it is only up to their rounding.
A small error of each decision may add up over all of them, and nothing proves that it does not: these bridges are not
`fixed`, whatever their temperatures, and their runs have no certificate.

With temperatures that are given, all steps but the last are one program on an accelerator, with their weights and their
resampling: what is done between two temperatures on the host takes longer there than the sweeps themselves. On a
processor it does not, and the smaller programs of single steps compile sooner. The answers are the same.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import randomness
from cumulant.errors import DomainError
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.samplers import packed_torus
from cumulant.graphical.samplers.gibbs import IsingArrays
from cumulant.graphical.samplers.gibbs_jax import (
    ColouredClasses,
    UniformTorus,
    coloured_classes,
    draw_class,
    neighbour_sums,
)
from cumulant.particles.bridges import Population, Start, Step, magnitude_of
from cumulant.particles.temperatures import Temperatures, Tempered
from cumulant.precision import float64

_ENTRIES = 2**22  # of the largest array of weights of several steps


def _on_accelerator() -> bool:
    return jax.default_backend() != "cpu"


class Accelerated(Tempered):
    """Several steps at once (`SeveralSteps`), where temperatures are given."""

    def possible_at_once(self, population: Population) -> int:
        """All but the last step, as far as there is room for their weights."""
        values = self.temperatures.values
        if values is None or not _on_accelerator():
            return 0
        return max(0, min(values.size - 2 - population.step, self._room(population.size)))

    def several_steps(
        self, population: Population, points: np.ndarray, threshold: float
    ) -> tuple[Any, Iterable[tuple[Step, bool, np.ndarray]]]:
        """All in one program, which is compiled once: where there are fewer steps than room, the rest is padding."""
        count, room, begin = len(points), self._room(population.size), population.step
        assert self.temperatures.values is not None
        t = self.temperatures.values[begin : begin + count + 1]
        with float64():
            x, *found = self._program(population, t, _padded(points, room), threshold)
            logs, due, chosen = (np.asarray(each)[:count] for each in found)
        steps = (
            (Step(None, logs[k], False, float(t[k + 1]), {"temperature": float(t[k + 1])}), bool(due[k]), chosen[k])
            for k in range(count)
        )
        return x, steps

    def _room(self, n: int) -> int:
        return max(1, min(256, _ENTRIES // n))

    def _program(self, population, t, points, threshold) -> tuple[Any, ...]:
        """Particles, and what the logarithms of their weights grew by, whether they were resampled, and their
        ancestors.
        """
        raise NotImplementedError


def _padded(values: np.ndarray, rows: int) -> np.ndarray:
    """With zeros behind."""
    return np.concatenate([values, np.zeros((rows - len(values), *values.shape[1:]), values.dtype)])


def _steps(weigh, move, x, log_weights, points, threshold, begin, count):
    """Steps numbered from `begin`, from functions of the particles and the number of the step: `weigh` gives what the
    logarithms of weights grow by and the particles after it, `move` the particles after the moves.
    """
    room, n = points.shape
    everyone = jnp.arange(n)

    def step(k, carry):
        x, before, logs, due, chosen = carry
        gained, x = weigh(x, k, begin + k)
        after = before + gained
        after = after - jax.scipy.special.logsumexp(after)
        weights = jnp.exp(after)
        resampled = 1.0 / jnp.sum(weights**2) < threshold
        ends = jnp.cumsum(weights)
        last = jnp.max(jnp.where(weights > 0, everyone, 0))
        drawn = jnp.minimum(jnp.searchsorted(ends, points[k] * ends[-1], side="right"), last)
        ancestors = jnp.where(resampled, drawn, everyone)
        x = move(_chosen(x, ancestors), k, begin + k)
        after = jnp.where(resampled, -jnp.log(n), after)
        return x, after, logs.at[k].set(gained), due.at[k].set(resampled), chosen.at[k].set(ancestors)

    empty = jnp.zeros((room, n)), jnp.zeros(room, bool), jnp.zeros((room, n), everyone.dtype)
    x, _, *found = jax.lax.fori_loop(0, count, step, (x, log_weights, *empty))
    return x, *found


def _chosen(x, ancestors):
    """Particles are the rows of words, and the columns of spins."""
    return x[ancestors] if x.ndim > 2 else x[:, ancestors]


@dataclasses.dataclass(frozen=True, eq=False)
class TorusBridge(Accelerated):
    """``f_t(x) = exp(h sum_i x_i + t K sum_e x_i x_j)`` on a `UniformTorus`, with 32 spins in a word.

    The second colour of the chequerboard is summed out of the weights, ``prod_i cosh h_i(t') / cosh h_i(t)``: they need
    only how many of its spins have 0, ..., 4 neighbours up. It is then drawn anew, and the move draws the first colour.
    """

    torus: UniformTorus
    temperatures: Temperatures
    sweeps: int = 1

    def __post_init__(self):
        if not packed_torus.can_pack(self.torus.columns):
            raise DomainError(
                f"particles on a UniformTorus need a number of columns that is a multiple of 64; got "
                f"{self.torus.columns}: anneal Ising(torus(rows, columns), coupling, field) instead"
            )
        if not packed_torus.can_decide(self._digits(1.0)):
            raise DomainError(
                f"coupling {self.torus.coupling:g} and field {self.torus.field:g} make decisions rarer than 2^-20, "
                "too rare for 24 random digits: anneal Ising(torus(rows, columns), coupling, field) instead"
            )

    @property
    def fixed(self) -> bool:
        """Never: see the head of this module."""
        return False

    def begin(self, n: int, seed: int) -> Start:
        """Independent spins."""
        torus = self.torus
        sites = torus.rows * torus.columns
        zeros = jnp.zeros((n, 2, torus.rows, torus.columns // (2 * packed_torus.WORD)), jnp.uint32)
        x = self._draw(zeros, (0, 1), 0.0, seed, 0)
        return Start(x, sites * float(np.logaddexp(torus.field, -torus.field)), 0.0)

    def advance(self, population: Population) -> Step:
        """The next temperature, and the second colour drawn anew there."""
        x, t, step = population.x, population.memory, population.step
        counts = np.asarray(packed_torus.count_neighbours(x, 1), dtype=np.float64)
        energies = self.torus.coupling * ((counts[:, 1] - counts[:, 0]) @ _SUMS)
        following = self.temperatures.after(t, step, lambda: energies)
        logs = counts.sum(axis=1) @ self._gains(t, following)
        x = self._draw(x, (1,), following, population.seed, step * (self.sweeps + 1))
        return Step(x, logs, following >= 1.0, following, {"temperature": following})

    def move(self, population: Population) -> jax.Array:
        """Sweeps at the current temperature."""
        x, t, step = population.x, population.memory, population.step
        for k in range(self.sweeps):
            number = step * (self.sweeps + 1) + k + 1
            x = self._draw(x, (1, 0) if k else (0,), t, population.seed, number)
        return x

    def draws(self, x: jax.Array) -> np.ndarray:
        """Spins of all sites, row after row."""
        place = np.argsort(self.torus.sites_by_colour())
        return packed_torus.unpack(np.asarray(x)).reshape(len(x), -1)[:, place]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The name of the variable."""
        return self.torus.shapes

    def _gains(self, t: float, following: float) -> np.ndarray:
        """What the logarithm of a weight grows by for a spin of the second colour with 0, ..., 4 neighbours up."""
        before, after = (self.torus.field + each * self.torus.coupling * _SUMS for each in (t, following))
        return np.logaddexp(after, -after) - np.logaddexp(before, -before)

    def _program(self, population, t, points, threshold):
        gains = np.array([self._gains(*each) for each in itertools.pairwise(t)])
        masks = np.array([packed_torus.digit_masks(self._digits(each)) for each in t[1:]])
        key, lanes = randomness.key(population.seed), np.arange(population.size, dtype=np.uint32)
        flat = (population.x, population.log_weights, points, threshold, np.uint32(population.step + 1), len(gains))
        tables = (_padded(each, len(points)) for each in (gains, masks))
        return _torus_steps(*flat, *tables, key, lanes, sweeps=self.sweeps)

    def _digits(self, t: float) -> np.ndarray:
        return packed_torus.up_digits(t * self.torus.coupling, self.torus.field)[0]

    def _draw(self, x: jax.Array, colours: tuple[int, ...], t: float, seed: int, number: int) -> jax.Array:
        key, lanes = randomness.key(seed), np.arange(len(x), dtype=np.uint32)
        masks = packed_torus.digit_masks(self._digits(t))
        return packed_torus.draw_colours(x, colours, masks, key, lanes, np.uint32(number))


_SUMS = np.arange(-4.0, 5.0, 2.0)  # of 0, ..., 4 neighbours up


@functools.partial(jax.jit, static_argnames=("sweeps",))
def _torus_steps(x, log_weights, points, threshold, begin, count, gains, masks, key, lanes, *, sweeps):
    def draw(x, colours, k, step, number):
        return packed_torus.draw_colours(x, colours, masks[k], key, lanes, step * np.uint32(sweeps + 1) + number)

    def weigh(x, k, step):
        gained = packed_torus.count_neighbours(x, 1).sum(axis=1) @ gains[k]
        return gained, draw(x, (1,), k, step, np.uint32(0))

    def move(x, k, step):
        for number in range(sweeps):
            x = draw(x, (1, 0) if number else (0,), k, step, np.uint32(number + 1))
        return x

    return _steps(weigh, move, x, log_weights, points, threshold, begin, count)


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Particles as columns ``(sites, particles)``, chosen as the rows of an array are."""

    values: Any

    def __getitem__(self, chosen: np.ndarray) -> "Columns":
        return Columns(self.values[:, chosen])

    def join(self, others: Sequence["Columns"]) -> "Columns":
        """These particles and others behind them."""
        return Columns(jnp.concatenate([self.values, *(each.values for each in others)], axis=1))


@dataclasses.dataclass(frozen=True, eq=False)
class ColouredBridge(Accelerated):
    """``f_t(x) = exp(sum_i h_i x_i + t sum_e J_e x_i x_j)`` on any graph, one colour of a colouring after the other.

    Weights are computed in float64. With ``weights="rb"`` the larger of two colours is summed out of them and drawn
    anew, and the move then draws the other; else the move is a sweep over all colours.
    """

    model: Ising
    temperatures: Temperatures
    weights: str
    sweeps: int = 1

    @property
    def fixed(self) -> bool:
        """Never: see the head of this module."""
        return False

    @property
    def magnitude(self) -> float:
        """Of the terms of the model."""
        return magnitude_of(self.model)

    def begin(self, n: int, seed: int) -> Start:
        """Independent spins."""
        fields = self._arrays.fields[self._classes.order]
        up = np.random.default_rng([seed, 0, 0]).random((fields.size, n)) < 0.5 * (1.0 + np.tanh(fields))[:, None]
        log_z = math.fsum(np.logaddexp(fields, -fields)) + self._arrays.constant
        return Start(Columns(jnp.asarray(np.where(up, 1, -1), jnp.int8)), log_z, 0.0)

    def advance(self, population: Population) -> Step:
        """The next temperature; with two colours the larger is drawn anew there."""
        x, t, step = population.x.values, population.memory, population.step
        classes = self._classes.classes
        with float64():
            following = self.temperatures.after(t, step, lambda: np.asarray(_energies(classes, x)))
            if self.weights == "naive":
                logs = (following - t) * np.asarray(_energies(classes, x))
            else:
                logs = np.asarray(_summed_out(classes, x, self._second, t, following))
                x = self._draw(x, (self._second,), population, 0, following)
        return Step(Columns(x), logs, following >= 1.0, following, {"temperature": following})

    def move(self, population: Population) -> Columns:
        """Sweeps at the current temperature."""
        x = population.x.values
        with float64():
            for k in range(self.sweeps):
                x = self._draw(x, self._order(k), population, k + 1, population.memory)
        return Columns(x)

    def _order(self, sweep: int) -> tuple[int, ...]:
        """The colours of a sweep, in order; with two, the second has been drawn with the weights."""
        if self.weights == "naive":
            return tuple(range(len(self._classes.classes)))
        return (self._second, 1 - self._second) if sweep else (1 - self._second,)

    def draws(self, x: Columns) -> np.ndarray:
        """Spins of all variables, those with evidence too."""
        rows = np.asarray(x.values)[self._classes.place].T
        spins = self.model.labels.numbers(self.model.given_states(len(rows)))
        spins[:, self._arrays.free] = rows
        return spins

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The names of the variables."""
        return self.model.shapes

    @functools.cached_property
    def _arrays(self) -> IsingArrays:
        return IsingArrays.of(self.model)

    @functools.cached_property
    def _classes(self) -> ColouredClasses:
        return coloured_classes(self._arrays)

    @functools.cached_property
    def _second(self) -> int:
        """The largest colour."""
        return int(np.argmax([fields.size for *_, fields in self._classes.classes]))

    def _program(self, population, t, points, threshold):
        orders = tuple(self._order(k) for k in range(self.sweeps))
        summed_out = None if self.weights == "naive" else self._second
        key, begin, count = randomness.key(population.seed), np.uint32(population.step + 1), len(t) - 1
        flat = (population.x.values, population.log_weights, points, threshold, begin, count)
        padded = _padded(t, len(points) + 1)
        x, *found = _coloured_steps(self._classes.classes, *flat, padded, key, orders=orders, summed_out=summed_out)
        return Columns(x), *found

    def _draw(self, x: Any, colours: tuple[int, ...], population: Population, number: int, t: float) -> Any:
        key = jax.random.fold_in(randomness.key(population.seed), population.step * (self.sweeps + 1) + number)
        return _draw_classes(self._classes.classes, x, colours, key, t)


@jax.jit
def _energies(classes, x):
    """``sum_e J_e x_i x_j`` of each particle."""
    total, first = 0.0, 0
    for others, weights, _ in classes:
        spins = x[first : first + len(others)].astype(weights.dtype)
        total = total + (spins * neighbour_sums(others, weights, x)).sum(axis=0)
        first += len(others)
    return total / 2


@functools.partial(jax.jit, static_argnames=("colour",))
def _summed_out(classes, x, colour, t, following):
    """``sum_i log cosh h_i(t') - log cosh h_i(t)`` over the sites of a colour."""
    others, weights, fields = classes[colour]
    sums = neighbour_sums(others, weights, x)
    before, after = (fields[:, None] + each * sums for each in (t, following))
    return (jnp.logaddexp(after, -after) - jnp.logaddexp(before, -before)).sum(axis=0)


@functools.partial(jax.jit, static_argnames=("colours",))
def _draw_classes(classes, x, colours, key, t):
    """`x` after new spins of some colours, in this order."""
    starts = np.cumsum([0, *(fields.size for *_, fields in classes)])
    for k, colour in enumerate(colours):
        others, weights, fields = classes[colour]
        h = fields[:, None] + t * neighbour_sums(others, weights, x)
        x = draw_class(x, h, jax.random.fold_in(key, k), int(starts[colour]))
    return x


@functools.partial(jax.jit, static_argnames=("orders", "summed_out"))
def _coloured_steps(classes, x, log_weights, points, threshold, begin, count, t, key, *, orders, summed_out):
    def draw(x, colours, k, step, number):
        this = jax.random.fold_in(key, step * np.uint32(len(orders) + 1) + number)
        return _draw_classes(classes, x, colours, this, t[k + 1])

    def weigh(x, k, step):
        if summed_out is None:
            return (t[k + 1] - t[k]) * _energies(classes, x), x
        gained = _summed_out(classes, x, summed_out, t[k], t[k + 1])
        return gained, draw(x, (summed_out,), k, step, np.uint32(0))

    def move(x, k, step):
        for number, colours in enumerate(orders, start=1):
            x = draw(x, colours, k, step, np.uint32(number))
        return x

    return _steps(weigh, move, x, log_weights, points, threshold, begin, count)
