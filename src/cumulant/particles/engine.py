"""The one engine of sequential Monte Carlo: weights, evidence, effective sizes, resampling, for any bridge."""

import copy
import dataclasses
import math
import time
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.optim.driver.display import Display
from cumulant.optim.driver.interruption import Interruption
from cumulant.particles.bridges import Bridge, Population, SeveralSteps, Step
from cumulant.particles.chains import ChainVariance, move_chains, take
from cumulant.particles.lineages import GROUPS, Lineages, relative_variance
from cumulant.sampling.resampling import POINTS, RESAMPLING, resample

_RESAMPLING = 2**32  # the stream of random numbers that is kept for resampling
_AT_ONCE = 1.0  # seconds of several steps at once, between two looks at the clock
NO_SPREAD = 1e-10  # a relative standard error below this is rounding, and no spread was seen


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a population is run, whatever its bridge.

    `resampling` is a method of `sampling.resample`; it is done where the effective size falls below
    ``ess_threshold * n`` (0: never, 1: at every step). Ancestors are kept where `ancestry` is set.

    With a `chain_length` above one, particles are resampled to ``n / chain_length`` ancestors at every step, whatever
    `ess_threshold` is, and all states of the chains that begin with them are kept. Resampling where weights are uneven
    would let the moves depend on the particles, and the estimate would be biased.
    """

    n_particles: int
    resampling: str = "stratified"
    ess_threshold: float = 0.5
    ancestry: bool = False
    chain_length: int = 1

    def __post_init__(self):
        checks.whole("n_particles", self.n_particles)
        checks.choice("resampling", self.resampling, RESAMPLING)
        length = checks.whole("chain_length", self.chain_length)
        if length > 1 and (self.n_particles % length or self.n_particles < 2 * length):
            raise ValueError(
                f"n_particles must be a multiple of chain_length = {length}, with two chains or more; got "
                f"{self.n_particles}"
            )
        if not 0 <= checks.number("ess_threshold", self.ess_threshold) <= 1:
            raise ValueError(f"ess_threshold must be between 0 and 1; got {self.ess_threshold}")


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What one population came to.

    `variance` estimates the relative variance of ``exp(log_z)`` from the one run. Where particles were never resampled
    it is that of a mean of independent weights. Else the first particles are put into groups of neighbours. Descendants
    stay in the group of their ancestor, and resampling keeps their order, so that a group is nearly an independent
    population: the product of the mean weights of its members over the stretches between resamplings is an estimate of
    ``Z`` of its own, whatever number of members resampling left it. The variance of the mean of these estimates is that
    of the population (the idea of Chan and Lai 2013 and Lee and Whiteley 2018 to follow ancestors, for groups of them,
    and valid for every method of resampling). There are 48, 24, 12 or 6 groups, the most of which each kept five
    effective members at least. Where not even 6 do, the variance is infinite: so few first ancestors are left that they
    say nothing, and only separate islands do. It is infinite too where all values agree to rounding, as those of
    particles in one frozen state do, unless the bridge is `exact`: weights of other states may differ, and no particle
    says by how much.

    `freedom`, the degrees of freedom of the variance, is one less than the effective number of values (weights or
    estimates of groups): a few that hold most of the sum tell no more of its spread than their number.
    """

    population: Population
    status: str
    trace: dict[str, np.ndarray]
    variance: float
    freedom: int
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
        none could be, else the one of the population. How many there are does not depend on what they are: leaving out
        some that are zero would bias the rest.
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
    """Run one population over a bridge to its end, or until the clock or Ctrl-C ends it between two steps.

    Where the bridge has a program for several steps at once (`SeveralSteps`), these are as many as take about a second.
    """
    began = time.perf_counter()
    if seed in getattr(bridge, "designed_by", ()):
        raise ValueError("the path was designed with the random numbers of this rng: run it with another one")
    run, pace = Run(bridge, settings, seed), math.inf
    status = "converged"
    with Interruption() as interruption, Display(progress, title, total) as display:
        while True:
            since, count = time.perf_counter(), run.possible_at_once()
            if count:
                count = min(count, max(1, int(_AT_ONCE / pace)))
                run.several_steps(count)
                pace = (time.perf_counter() - since) / count
            else:
                run.one_step()
            if run.ended:
                break
            elapsed = time.perf_counter() - began
            display.update(run.population.step, elapsed, run.population.log_z, math.inf)
            if interruption.requested or (time_limit is not None and elapsed > time_limit):
                status = "interrupted" if interruption.requested else "time_limit"
                break
    return run.outcome(status)


class Run:
    """A population on its way, and what is kept of it."""

    def __init__(self, bridge: Bridge, settings: Settings, seed: int):
        n = settings.n_particles
        start = bridge.begin(n, seed)
        if not start.log_z < math.inf:  # or NaN
            raise FloatingPointError(f"log Z of the first distribution must be a number; got {start.log_z}")
        self.bridge, self.settings = bridge, settings
        self.population = Population(start.x, _equal(n), float(start.log_z), 0, seed, start.memory)
        self.lineages = [Lineages.of(n, count) for count in GROUPS]
        self.spread, self.ancestors, self.ended = ChainVariance(), [], False
        self.records: dict[str, list[float]] = {
            "ess": [float(n)], "log_z": [self.population.log_z], "resampled": [0.0], "weight_variance": [0.0]
        }  # fmt: skip

    def ahead(self, count: int) -> "Run":
        """After `count` steps, or fewer at the end."""
        while count and not self.ended:
            together = min(count, self.possible_at_once())
            self.several_steps(together) if together else self.one_step()
            count -= max(together, 1)
        return self

    def copy(self, seed: int, log_z: float) -> "Run":
        """The same particles with random numbers of their own from here on, and with another estimate of ``log Z``."""
        run = copy.copy(self)
        run.records, run.ancestors = {name: [*each] for name, each in self.records.items()}, [*self.ancestors]
        x = take(self.population.x, np.arange(self.settings.n_particles))
        memory = copy.deepcopy(self.population.memory)
        run.population = dataclasses.replace(self.population, x=x, seed=seed, log_z=log_z, memory=memory)
        return run

    def one_step(self) -> None:
        """Weigh, resample where it is due, move."""
        n, length = self.settings.n_particles, self.settings.chain_length
        last = self._weigh(self.bridge.advance(dataclasses.replace(self.population, step=self.population.step + 1)))
        population = self.population
        due = not last and (length > 1 or population.ess < self.settings.ess_threshold * n)
        self.records["resampled"].append(float(due))
        before = length if population.step > 1 else 1  # the states of a chain that particles now are
        if length > 1 and population.log_z > -math.inf:
            self.spread.add(population.weights, before)
        if last or population.log_z == -math.inf:
            self.ended = True
            return
        x = population.x
        if due:
            generator = population.generator(_RESAMPLING)
            first = resample(population.log_weights, n // length, method=self.settings.resampling, rng=generator)
            if length == 1:
                x = take(x, first)
            else:
                self.spread.resampled(first, before)
                x = move_chains(self.bridge, population, first, length)
            self._resampled(np.repeat(first, length))
        elif self.settings.ancestry:
            self.ancestors.append(np.arange(n))
        self.population = dataclasses.replace(self.population, x=x)
        if length == 1:
            self.population = dataclasses.replace(self.population, x=self.bridge.move(self.population))

    def possible_at_once(self) -> int:
        """How many steps, none of them the last, the bridge can take in one program."""
        if self.settings.chain_length > 1 or self.settings.resampling not in POINTS:
            return 0
        if not isinstance(self.bridge, SeveralSteps):
            return 0
        return self.bridge.possible_at_once(self.population)

    def several_steps(self, count: int) -> None:
        """The same as `one_step` so often: the same random numbers, and the same answers up to rounding."""
        assert isinstance(self.bridge, SeveralSteps)
        n, method = self.settings.n_particles, self.settings.resampling
        begin = [dataclasses.replace(self.population, step=self.population.step + k + 1) for k in range(count)]
        points = np.stack([POINTS[method](n, each.generator(_RESAMPLING)) for each in begin])
        x, steps = self.bridge.several_steps(self.population, points, self.settings.ess_threshold * n)
        for step, due, chosen in steps:
            self._weigh(step)
            self.records["resampled"].append(float(due))
            if due:
                self._resampled(chosen)
            elif self.settings.ancestry:
                self.ancestors.append(np.arange(n))
        self.population = dataclasses.replace(self.population, x=x)

    def _weigh(self, step: Step) -> bool:
        """New weights and the evidence after a step; whether it is the last."""
        self.population, variation = _weighted(self.bridge, self.population, step)
        for name, value in (
            ("ess", self.population.ess), ("log_z", self.population.log_z), ("weight_variance", variation)
        ):  # fmt: skip
            self.records[name].append(value)
        for name, value in step.record.items():
            self.records.setdefault(name, [math.nan] * self.population.step).append(float(value))
        return step.last

    def _resampled(self, chosen: np.ndarray) -> None:
        """Equal weights after a resampling."""
        if self.settings.chain_length == 1:
            self.lineages = [each.after(self.population.weights, chosen) for each in self.lineages]
        if self.settings.ancestry:
            self.ancestors.append(chosen)
        self.population = dataclasses.replace(self.population, log_weights=_equal(chosen.size))

    def outcome(self, status: str) -> Outcome:
        """What the population has come to."""
        population, settings = self.population, self.settings
        variance, freedom = relative_variance(population.weights, self.lineages)
        if settings.chain_length > 1:
            variance, freedom = self.spread.value, self.spread.freedom
        if variance < NO_SPREAD**2 and not getattr(self.bridge, "exact", False):
            variance = math.inf
        ended = status == "converged" and population.log_z > -math.inf
        return Outcome(
            population,
            status,
            {name: np.array(values) for name, values in self.records.items()},
            variance,
            freedom,
            self.bridge.kinds(population) if ended else {},
            settings.ess_threshold == 0 and settings.chain_length == 1,
            np.array(self.ancestors) if settings.ancestry else None,
        )


def _equal(n: int) -> np.ndarray:
    return np.full(n, -math.log(n))


def _weighted(bridge: Bridge, population: Population, step: Step) -> tuple[Population, float]:
    """After a step: new weights, normalised, the evidence ``log Z_k = log Z_(k-1) + log sum w_s u_s``, and the squared
    coefficient of variation ``sum w_s u_s^2 / (sum w_s u_s)^2 - 1`` of what the weights were multiplied by.
    """
    number, before = population.step + 1, population.log_weights
    increments = np.asarray(step.log_increments, dtype=np.float64)
    if increments.shape != before.shape:
        raise ValueError(
            f"log_increments of {type(bridge).__name__} must be a number for each of the {before.size} particles; got "
            f"shape {increments.shape}"
        )
    logs = before + increments
    if np.isnan(logs).any() or np.isposinf(logs).any():
        raise FloatingPointError(
            f"the weights of step {number} have {int(np.isnan(logs).sum())} NaN and "
            f"{int(np.isposinf(logs).sum())} infinite entries: the density is not finite at some particles"
        )
    top = logs.max()
    if top == -math.inf:  # no particle is possible: the estimate of Z is zero
        logs, gain, variation = np.full(logs.size, -math.log(logs.size)), -math.inf, math.nan
    else:
        logs = logs - top  # first: where the increments are large, `gain` has lost digits that the weights need
        total = np.log(np.exp(logs).sum())
        gain, logs = float(top + total), logs - total
        squares = logs + (increments - gain)
        top = squares.max()  # w u^2 / (sum w u)^2: beyond the range of numbers where one particle is all
        with np.errstate(over="ignore"):
            variation = max(float(np.exp(top) * np.exp(squares - top).sum()) - 1.0, 0.0)
    log_z = population.log_z + gain
    weighted = Population(step.x, logs, log_z, number, population.seed, step.memory)
    return weighted, variation
