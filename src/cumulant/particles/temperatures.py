"""Where a bridge is on its way from 0 to 1: numbers that were given, or chosen so that weights stay even."""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from cumulant import checks
from cumulant.particles.bridges import Population
from cumulant.particles.engine import Outcome
from cumulant.sampling.annealing import next_temperature, temperature_schedule

_SHARE = 0.9  # of the particles that a step keeps, where temperatures are to be chosen and no share is given


@dataclasses.dataclass(frozen=True, eq=False)
class Temperatures:
    """Increasing numbers from 0 to 1, or None and the effective share of the particles that every step keeps.

    `designed_by` are the seeds of the particles that chose the numbers.
    """

    values: np.ndarray | None
    share: float | None = None
    designed_by: tuple[int, ...] = ()

    @classmethod
    def of(cls, temperatures: Any, share: float | None) -> "Temperatures":
        """From what users give: a number of equal steps, increasing numbers, or None; a share takes their place."""
        if share is None and temperatures is not None:
            return cls(temperature_schedule(temperatures))
        return cls(None, float(checks.fraction("share", _SHARE if share is None else share)))

    @classmethod
    def used(cls, outcome: Outcome) -> "Temperatures":
        """Those that a population has been through."""
        values = np.concatenate([[0.0], outcome.trace["temperature"][1:]])
        return cls(values, designed_by=(outcome.population.seed,))

    @property
    def total(self) -> int | None:
        """The number of steps, where it is known."""
        return None if self.values is None else self.values.size - 1

    def after(self, t: float, step: int, log_ratio: Callable[[], Any]) -> float:
        """The temperature of a step. `log_ratio` gives the derivative of the log-weights by the temperature, or the
        log-weights as a function of it, which is asked only where temperatures are chosen; particles whose derivative
        is -inf are impossible and do not count.
        """
        if self.values is not None:
            return float(self.values[step])
        assert self.share is not None
        ratio = log_ratio()
        if not callable(ratio):
            ratio = ratio[ratio > -np.inf]
            if not ratio.size:
                return 1.0
        return next_temperature(ratio, t, self.share)


class Tempered:
    """What bridges along temperatures share: the path is fixed where its temperatures were given."""

    temperatures: Temperatures

    @property
    def fixed(self) -> bool:
        """Whether the temperatures were given."""
        return self.temperatures.share is None

    @property
    def designed_by(self) -> tuple[int, ...]:
        """The seeds of the particles that chose the temperatures."""
        return self.temperatures.designed_by

    def frozen(self, outcome: Outcome) -> Self:
        """The same path at the temperatures that a run has chosen."""
        return dataclasses.replace(self, temperatures=Temperatures.used(outcome))  # type: ignore[type-var]

    def kinds(self, population: Population) -> dict[str, float]:
        """None."""
        return {}
