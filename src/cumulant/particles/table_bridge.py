"""A bridge over any discrete model: the tables of several variables are switched on together."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cumulant.errors import DomainError
from cumulant.graphical.bounds.reweighted import Tables
from cumulant.graphical.samplers.annealed_kernels import add_tables, tempered_sweeps
from cumulant.graphical.samplers.gibbs import TableArrays
from cumulant.particles.bridges import Population, Start, Step, magnitude_of
from cumulant.particles.engine import NO_SPREAD
from cumulant.particles.temperatures import Temperatures, Tempered
from cumulant.threads import in_parts


@dataclasses.dataclass(frozen=True, eq=False)
class TableBridge(Tempered):
    """``f_t(x) = exp(sum_i theta_i(x_i) + t sum_f theta_f(x_f))``: from independent variables with the single-variable
    tables of the model to the model. Moves are Gibbs sweeps over the variables in order.

    An entry -inf of a table is a factor ``(1 - t)^2`` on the way, and zero only at the end: were it zero from the first
    step on, the few particles that happen to satisfy all constraints would be all there are, and Gibbs moves could not
    lead from one to another. With ``exp(-s)`` for each violated constraint, of which there are then about ``m
    exp(-s)``, steps have weights of equal variance where ``exp(-s / 2)`` falls in equal steps, as ``1 - t`` does.
    """

    model: Any
    temperatures: Temperatures
    sweeps: int = 1
    n_jobs: int | None = None

    @property
    def exact(self) -> bool:
        """Whether no table of several variables is switched on, so that no weight differs from another."""
        return not self._barred.any() and float(np.abs(self._arrays.tables).sum()) <= NO_SPREAD

    @property
    def magnitude(self) -> float:
        """Of the terms of the model."""
        return magnitude_of(self.model)

    def begin(self, n: int, seed: int) -> Start:
        """Independent variables."""
        states, log_z = np.zeros((n, self._arrays.sizes.size), np.int64), self._log_z
        self._sweep(states, 0.0, seed, 0, 1)
        return Start(states, log_z, 0.0)

    def advance(self, population: Population) -> Step:
        """The next temperature."""
        t, states = population.memory, population.x
        following = self.temperatures.after(t, population.step, lambda: self._log_weights(states, t))
        logs = self._log_weights(states, t)(following)
        return Step(states, logs, following >= 1.0, following, {"temperature": following})

    def move(self, population: Population) -> Any:
        """Gibbs sweeps at the current temperature."""
        begin = 1 + (population.step - 1) * self.sweeps
        self._sweep(population.x, population.memory, population.seed, begin, self.sweeps)
        return population.x

    def draws(self, x: Any) -> np.ndarray:
        """Values of all variables, those with evidence too."""
        states = self.model.given_states(len(x))
        states[:, self.model.restricted()[2]] = x
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
        """With 0 for -inf."""
        structure = self._tables.structure
        tables = self._tables.theta[: int(structure.table_starts[-1])]
        return TableArrays.of(structure, np.where(tables > -np.inf, tables, 0.0))

    @functools.cached_property
    def _barred(self) -> np.ndarray:
        """Which entries of the tables are -inf."""
        return np.isneginf(self._tables.theta[: self._arrays.tables.size])

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

    def _log_weights(self, states: np.ndarray, t: float) -> Callable[[float], np.ndarray]:
        """``log f_s - log f_t`` of each particle, as a function of ``s``."""
        energies = self._sums(states, self._arrays.tables)
        violations = self._sums(states, self._barred.astype(float)) if self._barred.any() else None

        def at(s: float) -> np.ndarray:
            logs = (s - t) * energies
            if violations is None:
                return logs
            if s == 1.0:
                return np.where(violations > 0, -np.inf, logs)
            return logs + 2.0 * (np.log1p(-s) - np.log1p(-t)) * violations

        return at

    def _sums(self, states: np.ndarray, tables: np.ndarray) -> np.ndarray:
        """``sum_f tables_f(x_f)`` of each particle."""
        arrays, out = self._arrays._replace(tables=tables), np.zeros(len(states))
        in_parts(lambda first, last: add_tables(arrays, states[first:last], out[first:last]), len(states), self.n_jobs)
        return out

    def _sweep(self, states: np.ndarray, t: float, seed: int, begin: int, sweeps: int) -> None:
        arrays = self._arrays
        if t > 0:
            arrays = arrays._replace(tables=np.where(self._barred, 2.0 * np.log1p(-t), t * arrays.tables))
        flat = (float(t > 0), self._fields, self._starts, arrays)
        in_parts(
            lambda first, last: tempered_sweeps(first, seed, begin, sweeps, *flat, states[first:last]),
            len(states),
            self.n_jobs,
        )
