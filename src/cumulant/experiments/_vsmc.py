"""What the experiments on variational sequential Monte Carlo share: repeated runs and what is read off them."""

import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from cumulant import particles
from cumulant.graphical import Ising


class Trials(NamedTuple):
    """Repeated runs of one method: an entry for each trial."""

    smc: np.ndarray  # log Z of the last distribution
    bound: np.ndarray  # NaN for paths that are given
    jump: np.ndarray
    up: np.ndarray  # the share of particles with most spins up
    resamplings: np.ndarray
    least_ess: np.ndarray
    seconds: float  # of CPU for each trial
    result: Any

    @property
    def both(self) -> float:
        """The share of trials with both modes present."""
        return float(np.mean((self.up > 0.05) & (self.up < 0.95)))


def trials(bridge_or_model: Any, n_trials: int, rng: int, n_particles: int = 100, **settings: Any) -> Trials:
    """`n_trials` independent runs: of a bridge, or of `variational_smc` on a model."""
    began = time.process_time()
    if isinstance(bridge_or_model, particles.Bridge):
        result = particles.run(bridge_or_model, n_particles, n_islands=n_trials, rng=rng, **settings)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # step sizes of the source that break a condition
            result = particles.variational_smc(
                bridge_or_model, n_particles, n_islands=n_trials, rng=rng, **settings
            )
    spent = time.process_time() - began
    ended = result.outcomes
    return Trials(
        np.array([each.log_z for each in ended]),
        np.array([each.kinds.get("bound", np.nan) for each in ended]),
        np.array([each.kinds.get("jump", np.nan) for each in ended]),
        np.array([particles.up_share(spins(result, i), each.population.weights) for i, each in enumerate(ended)]),
        np.array([each.trace["resampled"].sum() for each in ended]),
        np.array([each.trace["ess"].min() for each in ended]),
        spent / n_trials,
        result,
    )


def tempered(model: Ising, n_steps: int, weights: str = "rb") -> particles.ParameterPath:
    """Annealed importance sampling: couplings from zero to those of the model in equal steps."""
    return particles.ParameterPath.tempered(particles.IsingFamily(model), n_steps, weights)


def spins(result: Any, i: int) -> np.ndarray:
    """The last particles of one trial, ``(n, spins)``."""
    return result.bridge.draws(result.outcomes[i].population.x)


def right_and_down(side: int) -> np.ndarray:
    """The bonds of a torus site by site: the one to the right, then the one below."""
    site = np.arange(side * side).reshape(side, side)
    right, down = np.roll(site, -1, axis=1), np.roll(site, -1, axis=0)
    return np.stack([np.stack([site, right], -1), np.stack([site, down], -1)], axis=2).reshape(-1, 2)


def span(values: Any, form: str = ".1f") -> str:
    """The median and the range."""
    values = np.asarray(values, dtype=float)
    return f"{np.median(values):{form}} ({values.min():{form}} to {values.max():{form}})"
