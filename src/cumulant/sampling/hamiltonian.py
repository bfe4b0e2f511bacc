"""Hamiltonian Monte Carlo with a fixed number of leapfrog steps."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from cumulant.pytrees import pytree
from cumulant.sampling.metropolis import Metropolis, MetropolisState, decide, require_positive


@pytree
@dataclasses.dataclass(frozen=True)
class HMC(Metropolis):
    """A momentum from ``N(0, I)``, `n_leapfrog` leapfrog steps of length `step_size`, and a Metropolis decision.

    The number of steps is drawn uniformly from 1 to `n_leapfrog` for all chains together, so that no period of the
    motion can trap a chain. On a product of many equal factors the best acceptance rate is 0.651 (Beskos and others
    2013).

    Duane and others (1987); Neal (2011).

    >>> from cumulant import sampling
    >>> from cumulant.families import Normal
    >>> target = sampling.Target.of(Normal(), Normal().natural(mean=1.0, variance=4.0))
    >>> draws = sampling.sample(HMC(0.6, 10), target, 2000, rng=0)
    >>> bool(abs(draws.mean()[0] - 1.0) < 4 * draws.standard_error()[0])
    True
    """

    step_size: Any
    n_leapfrog: int = 10

    def __post_init__(self):
        require_positive("step_size", self.step_size)
        require_positive("n_leapfrog", self.n_leapfrog)

    def step(self, target: Any, state: MetropolisState) -> MetropolisState:
        """One trajectory for every chain."""
        following, move, length, accept = jax.random.split(state.key, 4)
        count = jax.random.randint(length, (), 1, self.n_leapfrog + 1)
        momentum = jax.random.normal(move, state.x.shape, state.x.dtype)
        gradient = jax.vmap(jax.grad(target.at))
        h = self.step_size

        def leapfrog(_, carried):
            x, p = carried  # p is half a step behind x
            x = x + h * p
            return x, p + h * gradient(x)

        half = momentum + h / 2 * state.gradient
        x, p = jax.lax.fori_loop(0, count - 1, leapfrog, (state.x, half))
        proposal = x + h * p

        def correction(at_end):
            final = p + h / 2 * at_end
            return (jnp.sum(momentum**2, axis=1) - jnp.sum(final**2, axis=1)) / 2.0

        return decide(target, state._replace(key=following), proposal, correction, accept)
