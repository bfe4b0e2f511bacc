"""Annealed particles of who is independent, from the prior to the posterior."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.particles.bridges import Population, Start, Step
from cumulant.particles.islands import run
from cumulant.particles.result import ParticleResult
from cumulant.particles.temperatures import Temperatures, Tempered
from cumulant.relational.elimination import Eliminated
from cumulant.relational.elimination_kernels import tempered_sweeps
from cumulant.relational.network import Network
from cumulant.threads import in_parts


@dataclasses.dataclass(frozen=True, eq=False)
class IndependenceBridge(Tempered):
    """``f_t(z) = prior(z) (p(attribute, ties | z))^t``, all other latent variables summed out; moves are Gibbs sweeps.

    The deterministic ORs would trap a sampler of all latent variables; here there is none of them. Particles are pairs
    of ``z`` and ``log p(attribute, ties | z)``.
    """

    model: Any
    network: Network
    temperatures: Temperatures
    sweeps: int = 1
    n_jobs: int | None = None

    def begin(self, n: int, seed: int) -> Start:
        """Draws of the prior."""
        states, energies = np.zeros((n, self.network.n_people), np.int64), np.zeros(n)
        self._sweep(states, energies, 0.0, seed, 0, 1)
        return Start((states, energies), 0.0, 0.0)

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
        """Who is independent."""
        return x[0]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """One variable, an entry for each person."""
        return {"independent": (self.network.n_people,)}

    @functools.cached_property
    def _eliminated(self) -> Eliminated:
        return Eliminated.of(self.model, self.network)

    def _sweep(self, states, energies, temperature: float, seed: int, begin: int, sweeps: int) -> None:
        found, layout, n = self._eliminated, tuple(self.network.layout), self.network.n_people

        def work(first, last):
            able, kinds = np.zeros((n, 2), np.int64), np.zeros((2, 2), np.int64)
            tempered_sweeps(
                first, seed, begin, sweeps, temperature, layout, self.model.ordered, *found.numbers, able, kinds,
                energies[first:last], states[first:last],
            )  # fmt: skip

        in_parts(work, len(energies), self.n_jobs)


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
    """Weighted particles of ``z``, and ``log p(attribute, ties)`` with its error; arguments as in
    `particles.anneal`.
    """
    checks.whole("sweeps", sweeps)
    chosen = Temperatures.of(temperatures, share)
    bridge = IndependenceBridge(model, network, chosen, sweeps, n_jobs)
    return run(
        bridge,
        n_particles,
        n_islands=n_islands,
        pilot=pilot,
        delta=delta,
        method="anneal",
        total=chosen.total,
        rng=rng,
        progress=False,
        time_limit=time_limit,
        n_jobs=n_jobs,
    )
