"""A bridge over any discrete model: the tables of several variables are switched on together."""

import dataclasses
import functools
from typing import Any

import numpy as np

from cumulant.errors import DomainError
from cumulant.graphical.bounds.reweighted import Tables
from cumulant.graphical.samplers.annealed_kernels import tempered_sweeps
from cumulant.graphical.samplers.gibbs import TableArrays
from cumulant.particles.bridges import Population, Start, Step, magnitude_of
from cumulant.particles.engine import NO_SPREAD
from cumulant.particles.temperatures import Temperatures, Tempered
from cumulant.threads import in_parts


@dataclasses.dataclass(frozen=True, eq=False)
class TableBridge(Tempered):
    """``f_t(x) = exp(sum_i theta_i(x_i) + t sum_f theta_f(x_f))``: from independent variables with the single-variable
    tables of the model to the model. Moves are Gibbs sweeps over the variables in order.

    Particles are pairs of states and ``sum_f theta_f(x_f)``. A particle whose state is impossible has weight zero as
    soon as ``t > 0``.
    """

    model: Any
    temperatures: Temperatures
    sweeps: int = 1
    n_jobs: int | None = None

    @property
    def exact(self) -> bool:
        """Whether no table of several variables is switched on, so that no weight differs from another."""
        wide = self._tables.theta[: int(self._tables.structure.table_starts[-1])]
        return float(np.abs(wide).sum()) <= NO_SPREAD

    @property
    def magnitude(self) -> float:
        """Of the terms of the model."""
        return magnitude_of(self.model)

    def begin(self, n: int, seed: int) -> Start:
        """Independent variables."""
        states, energies = np.zeros((n, self._arrays.sizes.size), np.int64), np.zeros(n)
        self._sweep(states, energies, 0.0, seed, 0, 1)
        return Start((states, energies), self._log_z, 0.0)

    def advance(self, population: Population) -> Step:
        """The next temperature."""
        t, energies = population.memory, population.x[1]
        following = self.temperatures.after(t, population.step, lambda: energies)
        logs = (following - t) * energies
        return Step(population.x, logs, following >= 1.0, following, {"temperature": following})

    def move(self, population: Population) -> Any:
        """Gibbs sweeps at the current temperature."""
        states, energies = population.x
        begin = 1 + (population.step - 1) * self.sweeps
        self._sweep(states, energies, population.memory, population.seed, begin, self.sweeps)
        return states, energies

    def draws(self, x: Any) -> np.ndarray:
        """Values of all variables, those with evidence too."""
        states = self.model.given_states(len(x[0]))
        states[:, self.model.restricted()[2]] = x[0]
        return self.model.labels.numbers(states)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The names of the variables."""
        return self.model.shapes

    @functools.cached_property
    def _tables(self) -> Tables:
        structure, theta, _ = self.model.restricted()
        return Tables.of(structure, theta)

    @functools.cached_property
    def _arrays(self) -> TableArrays:
        structure = self._tables.structure
        return TableArrays.of(structure, self._tables.theta[: int(structure.table_starts[-1])])

    @functools.cached_property
    def _fields(self) -> np.ndarray:
        return self._tables.theta[int(self._tables.structure.table_starts[-1]) :]

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self._arrays.sizes)])

    @functools.cached_property
    def _log_z(self) -> float:
        """Of the independent variables."""
        total = self._tables.constant
        for v in range(self._arrays.sizes.size):
            total += float(np.logaddexp.reduce(self._fields[self._starts[v] : self._starts[v + 1]]))
        if total == -np.inf:
            raise DomainError("every state is impossible: there is no distribution")
        return total

    def _sweep(self, states, energies, temperature: float, seed: int, begin: int, sweeps: int) -> None:
        flat = (temperature, self._fields, self._starts, self._arrays)
        assert self._log_z > -np.inf

        def work(first, last):
            tempered_sweeps(first, seed, begin, sweeps, *flat, energies[first:last], states[first:last])

        in_parts(work, len(energies), self.n_jobs)
