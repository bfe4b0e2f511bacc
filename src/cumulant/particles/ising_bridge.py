"""Bridges over Ising models whose couplings are switched on, all together or group by group."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.samplers.colouring import Neighbours, colouring
from cumulant.graphical.samplers.gibbs import IsingArrays
from cumulant.particles.annealing_kernels import MOST_NEIGHBOURS, WORDS, add_energies, draw_spins, draw_words
from cumulant.particles.bridges import Population, Start, Step, magnitude_of
from cumulant.particles.engine import NO_SPREAD
from cumulant.particles.temperatures import Temperatures, Tempered
from cumulant.threads import in_parts


@dataclasses.dataclass(frozen=True, eq=False)
class Spins:
    """Particles in blocks of lanes: `values` is (blocks, sites, lanes) of -1 and +1, or (blocks, sites, words) of bits.

    Lanes beyond the number of particles hold copies of the last one, or zeros, and count for nothing. Indexing chooses
    particles, as it does for an array with a row for each.
    """

    values: np.ndarray
    n: int

    LANES: ClassVar[int] = 64

    @classmethod
    def of(cls, rows: np.ndarray, words: bool) -> "Spins":
        """From rows ``(n, sites)`` of -1 and +1."""
        n, sites = rows.shape
        lanes = 64 * WORDS if words else min(cls.LANES, n)
        blocks = -(-n // lanes)
        padded = np.concatenate([rows, np.repeat(rows[-1:], blocks * lanes - n, axis=0)])
        columns = np.ascontiguousarray(padded.reshape(blocks, lanes, sites).transpose(0, 2, 1))
        if not words:
            return cls(columns, n)
        return cls(np.packbits(columns > 0, axis=2, bitorder="little").view(np.uint64), n)

    @property
    def packed(self) -> bool:
        """Whether a spin is one bit."""
        return self.values.dtype == np.uint64

    def rows(self) -> np.ndarray:
        """The particles as rows ``(n, sites)`` of -1 and +1."""
        columns = self.values
        if self.packed:
            bits = np.unpackbits(self.values.view(np.uint8), axis=2, bitorder="little")
            columns = 2 * bits.astype(np.int8) - 1
        return columns.transpose(0, 2, 1).reshape(-1, columns.shape[1])[: self.n]

    def __getitem__(self, chosen: np.ndarray) -> "Spins":
        return Spins.of(self.rows()[chosen], self.packed)

    def join(self, others: Sequence["Spins"]) -> "Spins":
        """These particles, and then those of the others."""
        return Spins.of(np.concatenate([each.rows() for each in (self, *others)]), self.packed)


@dataclasses.dataclass(frozen=True, eq=False)
class IsingBridge(Tempered):
    """``f_t(x) = exp(sum_i h_i x_i + sum_e J_e s_e(t) x_i x_j)`` from ``t = 0`` to ``t = 1``.

    Edge ``e`` belongs to group ``g_e``, and ``s_e(t)`` grows from 0 to 1 while ``t`` goes from ``g_e / G`` to ``(g_e +
    1) / G``; edges of group -1 are there from the start, and must form a forest. Annealing has one group; hot coupling
    has a spanning forest in group -1.

    With Rao-Blackwellised weights the variables have two colours: those of the second are summed out of the weight,
    ``prod_i cosh h_i(t') / cosh h_i(t)``, and drawn anew in the same pass; the move then draws those of the first.
    """

    model: Ising
    group: np.ndarray
    temperatures: Temperatures
    weights: str
    sweeps: int = 1
    n_jobs: int | None = None

    @property
    def exact(self) -> bool:
        """Whether no coupling is switched on, so that no weight differs from another."""
        return float(np.abs(self._arrays.couplings[self.group >= 0]).sum()) <= NO_SPREAD

    @property
    def magnitude(self) -> float:
        """Of the terms of the model."""
        return magnitude_of(self.model)

    def begin(self, n: int, seed: int) -> Start:
        """Draws of the forest of group -1: independent spins where it has no edge."""
        rng, arrays = np.random.default_rng([seed, 0, 0]), self._arrays
        there = self.group < 0
        if there.any():
            forest = Ising(arrays.edges[there], arrays.couplings[there], arrays.fields)
            rows, log_z = forest.sample(n, rng), forest.log_partition()
        else:
            rows = np.where(rng.random((n, arrays.n)) < 0.5 * (1.0 + np.tanh(arrays.fields)), 1, -1)
            log_z = float(np.logaddexp(arrays.fields, -arrays.fields).sum())
        return Start(Spins.of(rows.astype(np.int8), self._by_words), log_z + arrays.constant, 0.0)

    def advance(self, population: Population) -> Step:
        """The next temperature; with two colours the second is drawn anew there."""
        x, t, step = population.x, population.memory, population.step
        following = self.temperatures.after(t, step, lambda: self._energies(x, self._arrays.couplings))
        before, after = self._strengths(t), self._strengths(following)
        if self.weights == "naive":
            logs = self._energies(x, after - before)
        else:
            logs = self._draw(x, self._second, population, 0, (before, after))
        return Step(x, logs, following >= 1.0, following, {"temperature": following})

    def move(self, population: Population) -> Spins:
        """Gibbs sweeps at the current temperature."""
        x, strengths = population.x, self._strengths(population.memory)
        places = [np.arange(self._arrays.n)] * self.sweeps
        if self.weights == "rb":
            # The second colour was drawn with the weights, unless the first has been moved since.
            begin = [self._second] if population.moves else []
            places = [*begin, self._first, *[self._second, self._first] * (self.sweeps - 1)]
        for k, sites in enumerate(places):
            self._draw(x, sites, population, k + 1, (strengths,))
        return x

    def draws(self, x: Spins) -> np.ndarray:
        """Spins of all variables, those with evidence too."""
        spins = self.model.labels.numbers(self.model.given_states(x.n))
        spins[:, self._arrays.free] = x.rows()
        return spins

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The names of the variables."""
        return self.model.shapes

    # What is computed once -------------------------------------------------------------------------------------------

    @functools.cached_property
    def _arrays(self) -> IsingArrays:
        return IsingArrays.of(self.model)

    @functools.cached_property
    def _graph(self) -> Neighbours:
        return Neighbours.of(self._arrays.n, self._arrays.edges)

    @functools.cached_property
    def _colours(self) -> np.ndarray:
        return colouring(self._arrays.n, self._arrays.edges)

    @functools.cached_property
    def _second(self) -> np.ndarray:
        """The larger of the two colours: it is summed out."""
        return np.flatnonzero(self._colours == np.bincount(self._colours).argmax())

    @functools.cached_property
    def _first(self) -> np.ndarray:
        return np.flatnonzero(self._colours != np.bincount(self._colours).argmax())

    @functools.cached_property
    def _by_words(self) -> bool:
        """Whether spins are kept as bits: one strength for all couplings at every temperature, and no fields."""
        size = np.abs(self._arrays.couplings)
        return bool(
            self.weights == "rb"
            and self.fixed
            and size.size
            and np.ptp(size) == 0
            and self._together
            and not np.any(self._arrays.fields)
            and np.diff(self._graph.indptr).max() <= MOST_NEIGHBOURS
        )

    @functools.cached_property
    def _n_groups(self) -> int:
        return int(self.group.max(initial=-1)) + 1

    @functools.cached_property
    def _together(self) -> bool:
        """Whether all couplings grow in proportion."""
        return not self.group.any()

    @functools.cached_property
    def _flips(self) -> np.ndarray:
        negative = self._arrays.couplings[self._graph.edge] < 0
        return np.where(negative, np.uint64(2**64 - 1), np.uint64(0))

    def _strengths(self, t: float) -> np.ndarray:
        """The couplings of the edges at ``t``."""
        return self._arrays.couplings * (t if self._together else np.clip(t * self._n_groups - self.group, 0.0, 1.0))

    # What kernels do -------------------------------------------------------------------------------------------------

    def _energies(self, x: Spins, couplings: np.ndarray) -> np.ndarray:
        """``sum_e couplings_e x_i x_j`` of each particle."""
        on = np.flatnonzero(couplings)
        blocks, _, lanes = x.values.shape
        edges, couplings, out = self._arrays.edges[on], couplings[on], np.zeros((blocks, lanes))

        def work(first, last):
            for b in range(first, last):
                add_energies(x.values[b], edges, couplings, out[b])

        in_parts(work, blocks, self.n_jobs)
        return out.ravel()[: x.n]

    def _draw(
        self, x: Spins, sites: np.ndarray, population: Population, number: int, strengths: Sequence[np.ndarray]
    ) -> np.ndarray:
        """New spins of some sites, in place, under the last of `strengths`. Of two, the log-weights that lead from one
        to the other.
        """
        blocks, lanes = len(x.values), x.values.shape[2] * (64 if x.packed else 1)
        sweep, graph, seed = population.step * 2 * self.sweeps + number, self._graph, population.seed
        out = np.zeros((blocks, lanes)) if len(strengths) > 1 else None
        if x.packed:
            flat = (self._flips, *_decisions(*(abs(float(each[0])) for each in strengths)))
        else:
            flat = (strengths[0][graph.edge], strengths[-1][graph.edge], self._arrays.fields)

        def work(first, last):
            for b in range(first, last):
                at = (x.values[b], sites, graph.indptr, graph.neighbours, *flat, None if out is None else out[b], seed)
                if x.packed:
                    draw_words(*at, b, sweep)
                else:
                    draw_spins(*at, b * lanes, sweep)

        in_parts(work, blocks, self.n_jobs)
        return np.zeros(0) if out is None else out.ravel()[: x.n]


def _decisions(*strengths: float) -> tuple[np.ndarray, np.ndarray]:
    """What `draw_words` needs at the last strength: 52 digits of the probability of agreement for each sum of
    neighbours, and the gain in ``log cosh`` since the first strength.
    """
    first, last = (each * np.arange(MOST_NEIGHBOURS + 1.0) for each in (strengths[0], strengths[-1]))
    digits = np.minimum(np.ldexp(1.0 / (1.0 + np.exp(-2.0 * last)), 52), 2**52 - 1).astype(np.uint64)
    return digits, np.logaddexp(last, -last) - np.logaddexp(first, -first)


def ising_weights(model: Ising, weights: Any) -> str:
    """Which weights a bridge of this model has: ``"rb"`` where two colours do, unless ``"naive"`` is asked for."""
    checks.choice("weights", weights, ("rb", "naive", None))
    if weights == "naive":
        return "naive"
    arrays = IsingArrays.of(model)
    if colouring(arrays.n, arrays.edges).max(initial=0) <= 1:
        return "rb"
    if weights == "rb":
        raise DomainError(
            "weights='rb' needs a graph whose variables have two colours, none beside its own: this one has a cycle "
            "of odd length; use weights='naive' or None"
        )
    return "naive"
