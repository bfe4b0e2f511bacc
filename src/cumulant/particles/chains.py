"""Waste-free moves: chains from a few resampled particles, all of whose states are kept (Dau and Chopin 2022)."""

import dataclasses
import math
from typing import Any

import jax
import numpy as np

from cumulant.particles.bridges import Bridge, Population

_CHAINS = 2**33  # the stream of seeds of second and later moves
LAGS = 50  # steps after which chains should have forgotten the particle that they began with


def take(x: Any, chosen: np.ndarray) -> Any:
    """The chosen particles of a pytree of arrays."""
    return jax.tree.map(lambda leaf: leaf[chosen], x)


def move_chains(bridge: Bridge, population: Population, ancestors: np.ndarray, length: int) -> Any:
    """The `ancestors` and all states of chains of `length` states that begin with them, chain after chain."""
    n, everyone = ancestors.size, np.arange(ancestors.size)
    chain = dataclasses.replace(
        population, x=take(population.x, ancestors), log_weights=np.full(n, -math.log(n)), moves=0
    )
    states = [take(chain.x, everyone)]  # a copy: moves may be in place
    for moves in range(1, length):
        states.append(take(bridge.move(chain), everyone))
        seed = int(np.random.default_rng([population.seed, moves, _CHAINS]).integers(2**63))
        chain = dataclasses.replace(chain, x=take(states[-1], everyone), moves=moves, seed=seed)
    by_chain = np.arange(length * n).reshape(length, n).T.ravel()
    return take(jax.tree.map(_join, *states), by_chain)


def _join(first: Any, *others: Any) -> Any:
    return first.join(others) if hasattr(first, "join") else np.concatenate([first, *others])


@dataclasses.dataclass(eq=False)
class ChainVariance:
    """The relative variance of ``exp(log_z)`` from the chains of one run.

    With ``v_m`` the mean weight of chain ``m`` at a step over that of all ``M`` chains, the factor that a step adds to
    ``Z`` has the relative variance ``var(v_m) / M`` (Dau and Chopin 2022, section 4, sum this over the steps, which is
    right where chains forget the particle that they began with). Where they do not, the factors of different steps are
    correlated: a chain is compared with the chain that its ancestor was in, `lag` steps ago. Covariances are added up
    over steps, and then over lags until one is not positive. Where one still is at the largest lag, or where the
    variance is above one, nothing is known and the variance is infinite.
    """

    sums: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(LAGS + 1))
    squares: float = 0.0
    carried: list[np.ndarray] = dataclasses.field(default_factory=list)

    def add(self, weights: np.ndarray, length: int) -> None:
        """A step whose normalised `weights` are those of chains of this length."""
        means = weights.reshape(-1, length).sum(axis=1)
        off = means * means.size - 1.0
        for lag, before in enumerate([off / off.size, *self.carried]):
            self.sums[lag] += np.mean(off * (before - before.mean()))
        effective = 1.0 / np.sum(means**2)  # of the chains: a few with most of the weight say little of the variance
        self.squares += np.mean(off**2) ** 2 / off.size**2 / max(1.0, effective - 1.0)
        self.carried = [off / off.size, *self.carried][:LAGS]

    def resampled(self, ancestors: np.ndarray, length: int) -> None:
        """After a resampling: `ancestors` are the first particles of the new chains, `length` that of the old."""
        self.carried = [each[ancestors // length] for each in self.carried]

    @property
    def value(self) -> float:
        """The relative variance."""
        positive = np.flatnonzero(self.sums[1:] <= 0)
        last = positive[0] if positive.size else LAGS
        total = float(self.sums[0] + 2 * self.sums[1 : 1 + last].sum())
        return total if last < LAGS and total < 1 else math.inf

    @property
    def freedom(self) -> int:
        """Degrees of freedom, by Satterthwaite's rule."""
        return max(1, int(self.sums[0] ** 2 / self.squares)) if self.squares > 0 else 1
