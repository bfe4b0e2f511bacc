"""A bridge over densities of vectors: from a family's distribution along a geometric path, by Metropolis moves."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cumulant import randomness
from cumulant.certificates import Assumption
from cumulant.particles.bridges import Population, Start, Step, on_the_word_of
from cumulant.particles.engine import Outcome
from cumulant.particles.temperatures import Temperatures
from cumulant.precision import float64
from cumulant.sampling.annealing import GeometricPath, move_at
from cumulant.sampling.target import Target
from cumulant.sampling.transforms import ConstrainedTarget

_ACCEPTED = 0.7  # of the proposals of Hamiltonian moves is near the best share


class Coordinates(NamedTuple):
    """``x = centre + factor z``: coordinates in which moves are made."""

    centre: np.ndarray
    factor: np.ndarray


@dataclasses.dataclass
class Pace:
    """How far moves go, in units of the deviations of the particles, and the share of the last ones accepted.

    Where there are several modes, deviations are mostly the distance between them, and moves must be shorter to be
    accepted: after each temperature their length is multiplied by ``4^(accepted - 0.7)``, and by 1.15 at most.
    """

    scale: float = 1.0
    accepted: float = math.nan

    def adapt(self) -> float:
        """The length for the next temperature."""
        if math.isfinite(self.accepted):
            self.scale *= 4.0 ** min(self.accepted - _ACCEPTED, 0.1)
        return self.scale


@dataclasses.dataclass(frozen=True, eq=False)
class TargetBridge:
    """``log f_t = (1 - t) log q + t log p``, with `sweeps` moves of `sampler` at each temperature.

    Where ``log p`` is NaN the density counts as zero; `undefined` in the trace says of how many particles.

    Where `scaled`, the sampler works in coordinates in which the particles have mean zero and a multiple of the unit
    covariance such that proposals are accepted often enough (`coordinates`, one for each step, or those of the
    particles where there are none yet).
    """

    path: GeometricPath
    sampler: Any
    temperatures: Temperatures
    scaled: bool
    sweeps: int = 1
    coordinates: tuple[Coordinates, ...] | None = None
    n_jobs: int | None = None

    @property
    def fixed(self) -> bool:
        """Whether temperatures and coordinates were given."""
        return self.temperatures.share is None and (not self.scaled or self.coordinates is not None)

    def begin(self, n: int, seed: int) -> Start:
        """Draws of the family."""
        first = int(np.random.default_rng([seed, 0, 0]).integers(2**63))
        drawn = np.asarray(self.path.family.sample(self.path.theta, n, rng=first), dtype=np.float64)
        return Start(drawn.reshape(n, self.path.target.dim), 0.0, (0.0, (), Pace()))

    def advance(self, population: Population) -> Step:
        """The next temperature, and the coordinates of its moves."""
        t, used, pace = population.memory
        ratio = np.asarray(self.path.log_ratio(population.x))
        undefined = np.isnan(ratio)
        ratio = np.where(undefined, -np.inf, ratio)
        following = self.temperatures.after(t, population.step, lambda: ratio)
        logs = (following - t) * ratio
        if self.scaled and following < 1.0:
            if self.coordinates is not None:
                used = (self.coordinates[population.step - 1],)
            elif logs.max() > -np.inf:
                used = (*used, _coordinates(population.x, population.log_weights + logs, pace.adapt()))
        record = {"temperature": following, "undefined": float(undefined.sum()), "accepted": pace.accepted}
        return Step(population.x, logs, following >= 1.0, (following, used, pace), record)

    def move(self, population: Population) -> np.ndarray:
        """Transitions of the sampler."""
        t, used, pace = population.memory
        seed = int(population.generator(1).integers(2**63))
        centre, factor = used[-1] if used else (0.0, None)
        with float64():
            target = self.path.at(t)
            z = population.x
            if factor is not None:
                z = np.linalg.solve(factor, (z - centre).T).T
                target = Target(_in_coordinates, target.dim, (target, jnp.asarray(centre), jnp.asarray(factor)))
            state = move_at(self.sampler, target, jnp.asarray(z), randomness.key(seed), self.sweeps)
            z, pace.accepted = np.asarray(state.x), float(np.mean(state.acceptance))
        if np.isnan(z).any():
            raise FloatingPointError(f"steps of {type(self.sampler).__name__} made particles NaN")
        return z if factor is None else centre + z @ factor.T

    def kinds(self, population: Population) -> dict[str, float]:
        """None."""
        return {}

    def draws(self, x: np.ndarray) -> np.ndarray:
        """The variables in their own spaces, one after the other."""
        target = self.path.target
        if not isinstance(target, ConstrainedTarget):
            return x
        return np.concatenate([each.reshape(len(x), -1) for each in target.constrain(x).values()], axis=1)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The names of the variables."""
        target = self.path.target
        return target.constrained_shapes if isinstance(target, ConstrainedTarget) else target.shapes

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What a certificate rests on besides the engine, where the sampler or the start is not of this package."""
        sampler, family = (type(each).__name__ for each in (self.sampler, self.path.family))
        return (
            *on_the_word_of(self.sampler, f"steps of {sampler} leave the distributions of the path as they are"),
            *on_the_word_of(self.path.family, f"draws and densities of {family} are those of one distribution"),
        )

    @property
    def designed_by(self) -> tuple[int, ...]:
        """The seeds of the particles that chose the temperatures."""
        return self.temperatures.designed_by

    def frozen(self, outcome: Outcome) -> "TargetBridge":
        """The same path at the temperatures, and in the coordinates, that a run has chosen."""
        used = outcome.population.memory[1] if self.scaled else None
        return dataclasses.replace(self, temperatures=Temperatures.used(outcome), coordinates=used)


def _in_coordinates(z, data):
    target, centre, factor = data
    return target.at(centre + factor @ z)


def _coordinates(x: np.ndarray, log_weights: np.ndarray, scale: float) -> Coordinates:
    """Mean and `scale` times the Cholesky factor of the covariance of weighted particles, which is kept away from being
    singular.
    """
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    centre = weights @ x
    off = x - centre
    covariance = (weights[:, None] * off).T @ off
    covariance[np.diag_indices(len(centre))] *= 1.0 + 1e-6
    covariance[np.diag_indices(len(centre))] += 1e-12
    return Coordinates(centre, scale * np.linalg.cholesky(covariance))
