"""The one engine of sequential Monte Carlo: weights, evidence, effective sizes, resampling, for any bridge."""

import dataclasses
import math
import time
from typing import Any

import jax
import numpy as np

from cumulant import checks
from cumulant.optim.driver.display import Display
from cumulant.optim.driver.interruption import Interruption
from cumulant.particles.bridges import Bridge, Population
from cumulant.sampling.resampling import RESAMPLING, resample

_RESAMPLING = 2**32  # the stream of random numbers that is kept for resampling


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a population is run, whatever its bridge.

    `resampling` is a method of `sampling.resample`; it is done where the effective size falls below
    ``ess_threshold * n`` (0: never, 1: at every step). Ancestors are kept where `ancestry` is set.
    """

    n_particles: int
    resampling: str = "stratified"
    ess_threshold: float = 0.5
    ancestry: bool = False

    def __post_init__(self):
        checks.whole("n_particles", self.n_particles)
        checks.choice("resampling", self.resampling, RESAMPLING)
        if not 0 <= checks.number("ess_threshold", self.ess_threshold) <= 1:
            raise ValueError(f"ess_threshold must be between 0 and 1; got {self.ess_threshold}")


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What one population came to.

    `variance` estimates the relative variance of ``exp(log_z)`` from the one run. Particles that descend from the same
    first particle belong together: with ``S_i`` the weight of the descendants of first particle ``i``,
    ``1 - (n / (n - 1))^(r + 1) (1 - sum_i S_i^2)`` is unbiased for it after ``r`` multinomial resamplings (Lee and
    Whiteley 2018); the other methods add less noise than that takes off, so that ``r`` counts as 0 for them and the
    estimate is a little too large. It says nothing where all descend from a single one: then it is infinite.
    """

    population: Population
    status: str
    trace: dict[str, np.ndarray]
    variance: float
    kinds: dict[str, float]
    alone: bool
    ancestors: np.ndarray | None = None

    @property
    def log_z(self) -> float:
        """The estimate of the log-normaliser of the last distribution."""
        return self.population.log_z

    @property
    def independent(self) -> np.ndarray:
        """Logarithms of independent unbiased estimates of ``Z``: of each particle where none was ever resampled and
        none could be, else the one of the population.
        """
        if self.alone:
            return self.population.log_weights + (self.log_z + math.log(self.population.size))
        return np.array([self.log_z])


def run_population(
    bridge: Bridge,
    settings: Settings,
    seed: int,
    *,
    progress: Any = False,
    title: str = "particles",
    total: int | None = None,
    time_limit: float | None = None,
) -> Outcome:
    """Run one population over a bridge to its end, or until the clock or Ctrl-C ends it between two steps."""
    n, began = settings.n_particles, time.perf_counter()
    start = bridge.begin(n, seed)
    population = Population(start.x, np.full(n, -math.log(n)), float(start.log_z), 0, seed, start.memory)
    first, ancestors = np.arange(n), []
    records: dict[str, list[float]] = {"ess": [float(n)], "log_z": [population.log_z], "resampled": [0.0]}
    status = "converged"
    with Interruption() as interruption, Display(progress, title, total) as display:
        while True:
            population, last, extra = _advance(bridge, population)
            resampled = not last and population.ess < settings.ess_threshold * n
            records["ess"].append(population.ess)
            records["log_z"].append(population.log_z)
            records["resampled"].append(float(resampled))
            for name, value in extra.items():
                records.setdefault(name, [math.nan] * population.step).append(float(value))
            chosen = np.arange(n)
            if resampled:
                generator = population.generator(_RESAMPLING)
                chosen = resample(population.log_weights, method=settings.resampling, rng=generator)
                first = first[chosen]
                population = dataclasses.replace(
                    population, x=take(population.x, chosen), log_weights=np.full(n, -math.log(n))
                )
            if settings.ancestry:
                ancestors.append(chosen)
            if last or population.log_z == -math.inf:
                break
            population = dataclasses.replace(population, x=bridge.move(population))
            elapsed = time.perf_counter() - began
            display.update(population.step, elapsed, population.log_z, math.inf)
            if interruption.requested or (time_limit is not None and elapsed > time_limit):
                status = "interrupted" if interruption.requested else "time_limit"
                break
    counted = int(sum(records["resampled"])) if settings.resampling == "multinomial" else 0
    kinds = bridge.kinds(population) if status == "converged" and population.log_z > -math.inf else {}
    return Outcome(
        population,
        status,
        {name: np.array(values) for name, values in records.items()},
        _relative_variance(population.weights, first, counted),
        kinds,
        settings.ess_threshold == 0 and population.log_z > -math.inf,
        np.array(ancestors) if settings.ancestry else None,
    )


def _advance(bridge: Bridge, population: Population) -> tuple[Population, bool, Any]:
    """One step: new weights, normalised, and the evidence ``log Z_k = log Z_(k-1) + log sum w_s u_s``."""
    population = dataclasses.replace(population, step=population.step + 1)
    step = bridge.advance(population)
    logs = population.log_weights + np.asarray(step.log_increments, dtype=np.float64)
    if np.isnan(logs).any() or np.isposinf(logs).any():
        raise FloatingPointError(
            f"the weights of step {population.step} have {int(np.isnan(logs).sum())} NaN and "
            f"{int(np.isposinf(logs).sum())} infinite entries: the density is not finite at some particles"
        )
    top = logs.max()
    if top == -math.inf:  # no particle is possible: the estimate of Z is zero
        logs, gain = np.full(logs.size, -math.log(logs.size)), -math.inf
    else:
        gain = float(top + np.log(np.exp(logs - top).sum()))
        logs = logs - gain
    return (
        dataclasses.replace(population, x=step.x, log_weights=logs, log_z=population.log_z + gain, memory=step.memory),
        step.last,
        step.record,
    )


def take(x: Any, chosen: np.ndarray) -> Any:
    """The chosen particles of a pytree of arrays."""
    return jax.tree.map(lambda leaf: leaf[chosen], x)


def _relative_variance(weights: np.ndarray, first: np.ndarray, resamplings: int) -> float:
    """Of ``exp(log_z)``, from the weights, the first ancestors and the number of multinomial resamplings."""
    n = weights.size
    if np.unique(first).size == 1:
        return math.inf
    together = float(np.sum(np.bincount(first, weights=weights) ** 2))
    return max(0.0, 1.0 - (n / (n - 1)) ** (resamplings + 1) * (1.0 - together))
