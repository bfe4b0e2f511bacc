"""Polyak's heavy ball."""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.optim.certify.optimality import Knowledge, knowledge
from cumulant.optim.protocol import require_gradient
from cumulant.optim.solvers.first_order import FirstOrder
from cumulant.pytrees import pytree


class HeavyBallState(NamedTuple):
    """The last two iterates."""

    x: Any
    before: Any
    step_size: Any
    momentum: Any
    known: Knowledge


@pytree
@dataclasses.dataclass(frozen=True)
class HeavyBall(FirstOrder):
    """``x_{k+1} = x_k - tau grad f(x_k) + beta (x_k - x_{k-1})``, from ``x_{-1} = x_0`` (Polyak 1964).

    The best constants on quadratics with spectrum in ``[mu, L]``, and the default, are
    ``tau = 4 / (sqrt L + sqrt mu)^2`` and ``beta = rho^2``, ``rho = (sqrt L - sqrt mu) / (sqrt L + sqrt mu)``; then
    ``|x_k - x*| <= (1 + k (1 + rho)) rho^k |x_0 - x*|`` (`rates.heavy_ball`). On functions that are not quadratic it
    may cycle for ever (Lessard, Recht and Packard 2016, section 4.6): the certificate tells.

    Parameters
    ----------
    step_size, momentum : float, optional
        The constants above unless given.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[1.0, 0.0], [0.0, 100.0]], [1.0, 100.0])
    >>> result = optim.run(HeavyBall(), problem, [0.0, 0.0], tol=1e-10)
    >>> result.status, result.work < 120, result.x.round(4)
    ('converged', True, array([1., 1.]))
    """

    step_size: Any = None
    momentum: Any = None

    def __post_init__(self):
        if self.step_size is not None:
            checks.positive("step_size", self.step_size)
        if self.momentum is not None and not 0 <= checks.number("momentum", self.momentum) < 1:
            raise ValueError(f"momentum must be at least 0 and below 1; got {self.momentum}")

    def init(self, problem, x0, rng):
        """The point ``x0`` twice, and the constants."""
        require_gradient(self, problem)
        step, momentum = self.step_size, self.momentum
        if step is None or momentum is None:
            if problem.smoothness is None:
                raise ValueError("HeavyBall needs the smoothness of the problem, or a step_size and a momentum")
            high, low = np.sqrt(float(problem.smoothness)), np.sqrt(float(problem.strong_convexity))
            best = (4 / (high + low) ** 2, ((high - low) / (high + low)) ** 2) if high > 0 else (1.0, 0.0)
            step, momentum = (b if given is None else given for given, b in zip((step, momentum), best, strict=True))
            if not momentum < 1:
                raise ValueError("the best momentum of HeavyBall needs a strong convexity above zero: give momentum")
        dtype = x0.dtype
        return HeavyBallState(x0, x0, jnp.asarray(step, dtype), jnp.asarray(momentum, dtype), knowledge(problem))

    def step(self, problem, state):
        """One gradient step, and a share of the last move."""
        x = state.x - state.step_size * problem.gradient(state.x) + state.momentum * (state.x - state.before)
        return state._replace(x=x, before=state.x)
