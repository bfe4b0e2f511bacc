"""The one engine of sequential Monte Carlo: weights, evidence, effective sizes, resampling, for any bridge."""

import dataclasses
import math
import time
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.optim.driver.display import Display
from cumulant.optim.driver.interruption import Interruption
from cumulant.particles.bridges import Bridge, Population
from cumulant.particles.chains import ChainVariance, move_chains, take
from cumulant.sampling.resampling import RESAMPLING, resample

_RESAMPLING = 2**32  # the stream of random numbers that is kept for resampling
_GROUPS, _MEMBERS = (48, 24, 12, 6), 5  # numbers of groups of lineages, and the members that each must have kept
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
    members at least. Where not even 6 do, the variance is infinite: so few first ancestors are left that they say
    nothing, and only separate islands do. It is infinite too where all values agree to rounding, as those of particles
    in one frozen state do, unless the bridge is `exact`: weights of other states may differ, and no particle says by
    how much.

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
    """Run one population over a bridge to its end, or until the clock or Ctrl-C ends it between two steps."""
    n, began = settings.n_particles, time.perf_counter()
    if seed in getattr(bridge, "designed_by", ()):
        raise ValueError("the path was designed with the random numbers of this rng: run it with another one")
    start = bridge.begin(n, seed)
    if not start.log_z < math.inf:  # or NaN
        raise FloatingPointError(f"log Z of the first distribution must be a number; got {start.log_z}")
    population = Population(start.x, np.full(n, -math.log(n)), float(start.log_z), 0, seed, start.memory)
    length, spread = settings.chain_length, ChainVariance()
    lineages, ancestors = [Lineages.of(n, count) for count in _GROUPS], []
    records: dict[str, list[float]] = {
        "ess": [float(n)], "log_z": [population.log_z], "resampled": [0.0], "weight_variance": [0.0]
    }  # fmt: skip
    status = "converged"
    with Interruption() as interruption, Display(progress, title, total) as display:
        while True:
            population, last, extra, variation = _advance(bridge, population)
            ess = population.ess
            resampled = not last and (length > 1 or ess < settings.ess_threshold * n)
            before = length if population.step > 1 else 1  # the states of a chain that particles now are
            if length > 1 and population.log_z > -math.inf:
                spread.add(population.weights, before)
            records["ess"].append(ess)
            records["log_z"].append(population.log_z)
            records["resampled"].append(float(resampled))
            records["weight_variance"].append(variation)
            for name, value in extra.items():
                records.setdefault(name, [math.nan] * population.step).append(float(value))
            if last or population.log_z == -math.inf:
                break
            chosen = np.arange(n) if settings.ancestry else None
            if resampled:
                generator = population.generator(_RESAMPLING)
                first = resample(population.log_weights, n // length, method=settings.resampling, rng=generator)
                chosen = np.repeat(first, length)
                if length == 1:
                    lineages = [each.after(population.weights, chosen) for each in lineages]
                    x = take(population.x, chosen)
                else:
                    spread.resampled(first, before)
                    x = move_chains(bridge, population, first, length)
                population = dataclasses.replace(population, x=x, log_weights=np.full(n, -math.log(n)))
            if settings.ancestry:
                ancestors.append(chosen)
            if length == 1:
                population = dataclasses.replace(population, x=bridge.move(population))
            elapsed = time.perf_counter() - began
            display.update(population.step, elapsed, population.log_z, math.inf)
            if interruption.requested or (time_limit is not None and elapsed > time_limit):
                status = "interrupted" if interruption.requested else "time_limit"
                break
    variance, freedom = _relative_variance(population.weights, lineages)
    if length > 1:
        variance, freedom = spread.value, spread.freedom
    if variance < NO_SPREAD**2 and not getattr(bridge, "exact", False):
        variance = math.inf
    return Outcome(
        population,
        status,
        {name: np.array(values) for name, values in records.items()},
        variance,
        freedom,
        bridge.kinds(population) if status == "converged" and population.log_z > -math.inf else {},
        settings.ess_threshold == 0 and length == 1,
        np.array(ancestors) if settings.ancestry else None,
    )


def _advance(bridge: Bridge, population: Population) -> tuple[Population, bool, Any, float]:
    """One step: new weights, normalised, the evidence ``log Z_k = log Z_(k-1) + log sum w_s u_s``, and the squared
    coefficient of variation ``sum w_s u_s^2 / (sum w_s u_s)^2 - 1`` of what the weights were multiplied by.
    """
    population = dataclasses.replace(population, step=population.step + 1)
    before = population.log_weights
    step = bridge.advance(population)
    increments = np.asarray(step.log_increments, dtype=np.float64)
    if increments.shape != before.shape:
        raise ValueError(
            f"log_increments of {type(bridge).__name__} must be a number for each of the {before.size} particles; got "
            f"shape {increments.shape}"
        )
    logs = before + increments
    if np.isnan(logs).any() or np.isposinf(logs).any():
        raise FloatingPointError(
            f"the weights of step {population.step} have {int(np.isnan(logs).sum())} NaN and "
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
    return (
        dataclasses.replace(population, x=step.x, log_weights=logs, log_z=population.log_z + gain, memory=step.memory),
        step.last,
        step.record,
        variation,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Lineages:
    """The group that the first ancestor of each particle is in, and what each group says of ``Z``: see `Outcome`.

    `log_scale` of a group is the logarithm of the product of (weight of its members) / (share of its members after
    resampling) over all resamplings, and of one over its first share. `fewest` is the smallest number of members that
    a group had.
    """

    group: np.ndarray
    log_scale: np.ndarray
    fewest: int
    resampled: bool = False

    @classmethod
    def of(cls, n: int, count: int) -> "Lineages":
        """Of particles that have not been resampled: groups of neighbours, as even as can be."""
        group = np.arange(n) * count // n
        sizes = np.bincount(group, minlength=count)
        return cls(group, -np.log(np.maximum(sizes, 1) / n), int(sizes.min()))

    def after(self, weights: np.ndarray, chosen: np.ndarray) -> "Lineages":
        """After a resampling of particles with these weights."""
        group, count = self.group[chosen], self.log_scale.size
        sizes = np.bincount(group, minlength=count)
        fewest = min(self.fewest, int(sizes.min()))
        if fewest < _MEMBERS:
            return dataclasses.replace(self, group=group, fewest=fewest, resampled=True)
        before = np.log(np.bincount(self.group, weights=weights, minlength=count))
        return Lineages(group, self.log_scale + before - np.log(sizes / group.size), fewest, True)

    def estimates(self, weights: np.ndarray) -> np.ndarray:
        """What the groups say of ``Z``, relative to the estimate of all."""
        return np.bincount(self.group, weights=weights, minlength=self.log_scale.size) * np.exp(self.log_scale)


def _relative_variance(weights: np.ndarray, lineages: list[Lineages]) -> tuple[float, int]:
    """Of ``exp(log_z)``, and its degrees of freedom: from the particles where they are independent, else from the
    finest groups that always had enough members.
    """
    values = weights * weights.size
    if lineages[0].resampled:
        values = next((each.estimates(weights) for each in lineages if each.fewest >= _MEMBERS), np.zeros(0))
    if values.size < 2 or values.mean() == 0:
        return math.inf, 1
    counted = float(values.sum() ** 2 / np.sum(values**2))
    return float(values.var(ddof=1) / values.size / values.mean() ** 2), max(1, int(counted) - 1)
