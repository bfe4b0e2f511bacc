"""What Metropolis samplers share: the state of a batch of chains, and the decision to accept."""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import randomness
from cumulant.errors import DomainError


class MetropolisState(NamedTuple):
    """Chains, their log-densities and gradients, the key of the next step, and the share of proposals accepted."""

    x: Any
    log_density: Any
    gradient: Any
    key: Any
    acceptance: Any
    steps: Any


class Metropolis:
    """What the samplers below share: their states begin alike, and report the share of accepted proposals."""

    backend: ClassVar[str] = "jax"
    follows_gradient: ClassVar[bool] = True

    def init(self, target: Any, x0: Any, rng: Any) -> MetropolisState:
        """The chains at ``x0``, shape ``(chains, dim)``; refused where a log-density, or a gradient that is followed,
        is not finite.
        """
        x = jnp.asarray(x0)
        value, gradient = jax.vmap(jax.value_and_grad(target.at))(x)
        fine = jnp.isfinite(value)
        if self.follows_gradient:
            fine &= jnp.isfinite(gradient).all(axis=1)
        if not fine.all():
            raise DomainError(
                f"the log-density or its gradient is not finite at the start of chain {int(np.argmin(fine))}"
            )
        return MetropolisState(x, value, gradient, randomness.key(rng), jnp.zeros_like(value), jnp.zeros((), jnp.int32))

    def report(self, state: MetropolisState) -> dict[str, np.ndarray]:
        """The share of accepted proposals of each chain."""
        return {"acceptance": np.asarray(state.acceptance)}


def decide(target: Any, state: MetropolisState, proposal: Any, correction: Any, key: Any) -> MetropolisState:
    """Accept each proposal with probability ``min(1, p(y) exp(correction) / p(x))``; `correction(gradient at y)` is
    ``log q(x | y) - log q(y | x)``. A proposal where the density is zero or not a number is refused, and one where the
    correction is not a number. A gradient that the proposal does not follow may be anything: states without one are
    left as well as entered, else chains would not keep the distribution.
    """
    value, gradient = jax.vmap(jax.value_and_grad(target.at))(proposal)
    ratio = value - state.log_density + correction(gradient)
    uniform = jax.random.uniform(key, value.shape, value.dtype)
    taken = jnp.isfinite(value) & (jnp.log(uniform) < ratio)
    chosen = taken[:, None]
    share = state.acceptance + (taken - state.acceptance) / (state.steps + 1)
    return state._replace(
        x=jnp.where(chosen, proposal, state.x),
        log_density=jnp.where(taken, value, state.log_density),
        gradient=jnp.where(chosen, gradient, state.gradient),
        acceptance=share,
        steps=state.steps + 1,
    )


def require_positive(name: str, value: Any) -> None:
    """Refuse a setting that is a number and not positive and finite."""
    if isinstance(value, int | float) and not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite; got {value}")
