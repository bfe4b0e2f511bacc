"""Random-walk Metropolis."""

import dataclasses
from typing import Any, ClassVar

import jax

from cumulant.pytrees import pytree
from cumulant.sampling.metropolis import Metropolis, MetropolisState, decide, require_positive


@pytree
@dataclasses.dataclass(frozen=True)
class RandomWalk(Metropolis):
    """Metropolis steps ``y = x + scale * N(0, I)``, accepted with probability ``min(1, p(y) / p(x))``.

    On a product of many equal factors the best acceptance rate is 0.234 (Roberts, Gelman and Gilks 1997).

    Metropolis and others (1953).

    >>> from cumulant import sampling
    >>> from cumulant.families import Normal
    >>> target = sampling.Target.of(Normal(), Normal().natural(mean=1.0, variance=4.0))
    >>> draws = sampling.sample(RandomWalk(4.0), target, 2000, rng=0)
    >>> bool(abs(draws.mean()[0] - 1.0) < 4 * draws.standard_error()[0])
    True
    """

    scale: Any
    follows_gradient: ClassVar[bool] = False

    def __post_init__(self):
        require_positive("scale", self.scale)

    def step(self, target: Any, state: MetropolisState) -> MetropolisState:
        """One proposal for every chain."""
        following, move, accept = jax.random.split(state.key, 3)
        proposal = state.x + self.scale * jax.random.normal(move, state.x.shape, state.x.dtype)
        return decide(target, state._replace(key=following), proposal, lambda gradient: 0.0, accept)
