"""Annealed particles of who is independent and of the probabilities, from the prior to the posterior."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from cumulant import checks
from cumulant.particles.bridges import Population, Start, Step
from cumulant.particles.islands import run
from cumulant.particles.result import ParticleResult
from cumulant.particles.temperatures import Temperatures, Tempered
from cumulant.relational.elimination import habit_numbers
from cumulant.relational.elimination_kernels import sweep_particles
from cumulant.relational.network import Network, networks_of
from cumulant.relational.parameters import (
    N_PARAMETERS,
    PAIR_RULES,
    SMALLEST,
    Settings,
    checked_fixed,
    checked_prior,
    tables_of,
)
from cumulant.threads import in_parts

_LARGEST = 1.0 - 2.0**-53


@dataclasses.dataclass(frozen=True, eq=False)
class NetworkBridge(Tempered):
    """``f_t(theta, z) = p(theta) p(z | theta_0) p(networks | theta, z)^t``, all other latent variables summed out: the
    deterministic ORs would trap a sampler of all of them.

    Moves are Gibbs sweeps over ``z``, exact draws of ``theta_0, ..., theta_7``, whose conditionals are Beta
    distributions at every temperature, and Metropolis steps of the others, which sums over gates tie together.

    Particles are ``(theta, log p(networks | theta, z), z)``, the last an array for each network.
    """

    nets: tuple[Network, ...]
    settings: Settings
    temperatures: Temperatures
    sweeps: int = 1
    n_jobs: int | None = None

    def begin(self, n: int, seed: int) -> Start:
        """Draws of the prior."""
        generator = np.random.default_rng([seed, 0, 0])
        theta = generator.beta(self.settings.alpha, self.settings.beta, (n, N_PARAMETERS))
        theta = self._hold(theta)
        states = tuple((generator.random((n, net.n_people)) < theta[:, :1]).astype(np.int64) for net in self.nets)
        return Start((theta, self._energies(theta, self._sweep(theta, states, 0.0, seed, -1)), states), 0.0, 0.0)

    def advance(self, population: Population) -> Step:
        """The next temperature."""
        t, energies = population.memory, population.x[1]
        following = self.temperatures.after(t, population.step, lambda: energies)
        logs = (following - t) * energies
        return Step(population.x, logs, following >= 1.0, following, {"temperature": following})

    def move(self, population: Population) -> Any:
        """At the current temperature: ``z``, then the probabilities in turn."""
        theta, energies, states = population.x
        for sweep in range(self.sweeps):
            number = ((population.step - 1) * self.sweeps + sweep) * 2 + 1
            used = self._sweep(theta, states, population.memory, population.seed, number)
            theta = self._draw(theta, used, population.memory, population.generator(1 + sweep))
            energies = self._energies(theta, used)
        return theta, energies, states

    def draws(self, x: Any) -> np.ndarray:
        """The probabilities, and who is independent."""
        return np.concatenate([x[0], *x[2]], axis=1)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Two variables; people of several networks one after the other."""
        return {"theta": (N_PARAMETERS,), "independent": (sum(net.n_people for net in self.nets),)}

    @functools.cached_property
    def _numbers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [habit_numbers(net) for net in self.nets]

    def _sweep(self, theta: np.ndarray, states: Any, t: float, seed: int, sweep: int) -> Used:
        """``z`` of all particles, in place, and what it makes of them; with a negative number without a sweep."""
        m = len(theta)
        successes, trials = np.zeros((m, N_PARAMETERS)), np.zeros((m, N_PARAMETERS))
        tables, able = tuple(tables_of(theta)), [np.empty((m, net.n_people, 2), np.int64) for net in self.nets]

        def work(first, last):
            mine = slice(first, last)
            for k, net in enumerate(self.nets):
                sweep_particles(
                    k * m + first, seed, sweep, t, tuple(net.layout), self.settings.influence == "ordered",
                    *self._numbers[k], tuple(part[mine] for part in tables), PAIR_RULES, states[k][mine],
                    able[k][mine], successes[mine], trials[mine],
                )  # fmt: skip

        in_parts(work, m, self.n_jobs)
        return Used(
            successes[:, :8],
            trials[:, :8],
            np.concatenate(able, axis=1),
            np.concatenate(states, axis=1) == 0,
            np.concatenate([net.attribute for net in self.nets]),
        )

    def _energies(self, theta: np.ndarray, used: Used) -> np.ndarray:
        """``log p(networks | theta, z)``."""
        free, successes = theta[:, 1:8], used.successes[:, 1:]
        pairs = xlogy(successes, free) + xlog1py(used.trials[:, 1:] - successes, -free)
        return pairs.sum(axis=1) + used.habits(theta)

    def _draw(self, theta: np.ndarray, used: Used, t: float, generator: np.random.Generator) -> np.ndarray:
        """A Gibbs step of the first eight probabilities and a Metropolis step of each of the others."""
        alpha, beta = self.settings.alpha, self.settings.beta
        weight = np.concatenate([[1.0], np.full(7, t)])  # the prior of z is there at every temperature
        theta = theta.copy()
        failures = used.trials - used.successes
        theta[:, :8] = generator.beta(alpha[:8] + weight * used.successes, beta[:8] + weight * failures)
        theta = self._hold(theta)
        value = used.habits(theta)
        for k in range(8, N_PARAMETERS):
            step, chance = generator.normal(size=len(theta)), generator.random(len(theta))
            if k in self.settings.fixed:
                continue
            proposed = theta.copy()
            odds = np.log(theta[:, k]) - np.log1p(-theta[:, k]) + step
            proposed[:, k] = np.clip(expit(odds), SMALLEST, _LARGEST)
            new = used.habits(proposed)
            # densities of the log-odds: that of theta times theta (1 - theta)
            prior = alpha[k] * (np.log(proposed[:, k]) - np.log(theta[:, k]))
            prior += beta[k] * (np.log1p(-proposed[:, k]) - np.log1p(-theta[:, k]))
            accepted = np.log(chance) < t * (new - value) + prior
            theta[accepted], value = proposed[accepted], np.where(accepted, new, value)
        return theta

    def _hold(self, theta: np.ndarray) -> np.ndarray:
        """Away from 0 and 1 by what rounding leaves, with the fixed probabilities in their places."""
        theta = np.clip(theta, SMALLEST, _LARGEST)
        for k, value in self.settings.fixed.items():
            theta[:, k] = value
        return theta


@dataclasses.dataclass(frozen=True, eq=False)
class Used:
    """What the ``z`` of particles make of their rules: uses of rules 0 to 7, and for each person the numbers of friends
    who are able to sway, whether the person depends on friends, and the attribute.
    """

    successes: np.ndarray
    trials: np.ndarray
    able: np.ndarray
    dependent: np.ndarray
    attribute: np.ndarray

    def habits(self, theta: np.ndarray) -> np.ndarray:
        """The log-probability of the attributes of dependent people."""
        no_with, no_without = (self.able[..., i] * np.log1p(-theta[:, k, None]) for i, k in ((1, 8), (0, 9)))
        own = np.where(self.attribute[:, None], theta[:, None, 10:], 1.0 - theta[:, None, 10:])
        none, some = np.exp(no_without), -np.expm1(no_without)
        alone = none * own[..., 0] + some * own[..., 1]
        swayed = none * own[..., 2] + some * own[..., 3]
        logs = np.log(np.exp(no_with) * alone - np.expm1(no_with) * swayed)
        return np.where(self.dependent, logs, 0.0).sum(axis=1)


def sample_parameters(
    nets: Any,
    n_particles: int = 500,
    temperatures: Any = None,
    *,
    share: float | None = None,
    sweeps: int = 2,
    alpha: Any = 4.0,
    beta: Any = 4.0,
    fixed: Mapping[Any, float] | None = None,
    influence: str = "independent",
    pilot: bool = False,
    n_islands: int = 1,
    delta: float = 0.05,
    rng: Any = None,
    progress: Any = False,
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> ParticleResult:
    """Draws of the fourteen probabilities from their posterior given networks, and ``log p(networks)``.

    On a small network the posterior has several modes, of which the one that `fit_em` finds may hold little of the
    probability. Predictions averaged over draws do not depend on which it is. `log_partition` of the result, the
    evidence ``log int p(networks | theta) p(theta) d theta``, compares models: other priors, other `fixed`
    probabilities, the two readings of `influence`.

    Parameters
    ----------
    nets : Network or sequence of them
    n_particles, temperatures, share, pilot, n_islands, delta
        As in `particles.anneal`. By default temperatures are chosen so that every step keeps an effective share of 0.9;
        with given ones, or a `pilot`, the evidence has a certified lower bound.
    sweeps : int
        Moves at each temperature.
    alpha, beta, fixed, influence
        As in `fit_em`; `alpha` and `beta` at least 1.

    Returns
    -------
    ParticleResult
        ``draws["theta"]`` (islands, particles, 14) and ``draws["independent"]`` (islands, particles, people), weighted:
        ``draws.mean("theta")`` is the mean of the posterior.

    Examples
    --------
    >>> from cumulant.relational import SmokersModel
    >>> found = sample_parameters(SmokersModel().sample(20, 0), 200, rng=0)
    >>> found.draws.mean("theta").shape, found.draws.mean("independent").shape
    ((14,), (20,))
    """
    checks.choice("influence", influence, ("independent", "ordered"))
    settings = Settings(*checked_prior(alpha, beta, interior=False), checked_fixed(fixed), influence)
    return _anneal(
        networks_of(nets), settings, n_particles, temperatures, share=share, sweeps=sweeps, pilot=pilot,
        n_islands=n_islands, delta=delta, rng=rng, progress=progress, time_limit=time_limit, n_jobs=n_jobs,
    )  # fmt: skip


def anneal_independence(
    model: Any,
    network: Network,
    n_particles: int = 500,
    temperatures: Any = 100,
    *,
    share: float | None = None,
    sweeps: int = 1,
    pilot: bool = False,
    n_islands: int = 1,
    delta: float = 0.05,
    rng: Any = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> ParticleResult:
    """The same where all probabilities are known: ``log p(attribute, ties)`` with its error."""
    nothing = np.ones(N_PARAMETERS)
    settings = Settings(nothing, nothing, dict(enumerate(model.theta.tolist())), model.influence)
    return _anneal(
        [network], settings, n_particles, temperatures, share=share, sweeps=sweeps, pilot=pilot,
        n_islands=n_islands, delta=delta, rng=rng, progress=False, time_limit=time_limit, n_jobs=n_jobs,
    )  # fmt: skip


def _anneal(
    nets: list[Network], settings: Settings, n_particles: int, temperatures: Any, *, share: float | None, sweeps: int,
    n_jobs: int | None, **options: Any,
) -> ParticleResult:  # fmt: skip
    checks.whole("sweeps", sweeps)
    chosen = Temperatures.of(temperatures, share)
    bridge = NetworkBridge(tuple(nets), settings, chosen, sweeps, n_jobs)
    return run(bridge, n_particles, method="anneal", total=chosen.total, n_jobs=n_jobs, **options)
