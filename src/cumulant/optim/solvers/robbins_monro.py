"""Stochastic gradient descent with any gradient oracle, compiled: projected or proximal steps, and averages."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from cumulant import randomness
from cumulant.optim.certify.optimality import certify_optimality
from cumulant.optim.gradients import ByRows, check_oracle
from cumulant.optim.problems.composite import parts
from cumulant.optim.protocol import Solver, require_gradient
from cumulant.optim.schedules import InverseCount, as_schedule
from cumulant.optim.solvers.first_order import start
from cumulant.pytrees import pytree


class RobbinsMonroState(NamedTuple):
    """The iterate, the mean of the iterates, and the position in the stream of gradients."""

    x: Any
    mean: Any
    step: Any
    key: Any


@pytree
@dataclasses.dataclass(frozen=True)
class RobbinsMonro(Solver):
    """``x <- prox_{a_k R}(x - a_k g_k)`` with an estimate ``g_k`` of the gradient (Robbins and Monro 1951).

    On a set (a `Composite` with `Box`, `Simplex`, `L2Ball` and so on) the proximal map is the projection. With
    unbiased gradients of noise ``(a, b)`` (`optim.gradients`) and a ``mu``-strongly convex, ``L``-smooth ``f``:
    ``E |x_{k+1} - x*|^2 <= (1 - 2 a_k mu + a_k^2 (L^2 + a)) E |x_k - x*|^2 + a_k^2 b``
    (`rates.noisy_gradient`). On `LeastSquares` row by row it is the delta rule (Widrow and Hoff 1960). `SGD` and `SGA`
    are the same by compiled loops over the rows of a (sparse) matrix.

    Parameters
    ----------
    schedule : float or schedule
        ``a_k``; ``1 / k`` by default.
    gradients : oracle
        Of `optim.gradients`; rows at random by default.
    average : bool
        Answer with the mean of the iterates from `burn_in` on (Polyak and Juditsky 1992).
    burn_in : int
        Iterates left out of the mean.
    discount : float
        Iterate ``t`` weighs ``discount^t`` in the mean: `rates.average_discount` for the guarantees without strong
        convexity.
    leading : bool
        The mean of ``x_0 .. x_{k-1}``, the points at which gradients were taken, instead of ``x_1 .. x_k``.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Composite(optim.Quadratic([[1.0, 0.0], [0.0, 1.0]], [-1.0, 1.0]), optim.NonNegative())
    >>> solver = RobbinsMonro(0.5, optim.gradients.Noisy(0.1), average=True)
    >>> optim.run(solver, problem, [1.0, 1.0], max_steps=4000, tol=None, rng=0).x.round(1)
    array([0., 1.])
    """

    schedule: Any = dataclasses.field(default_factory=InverseCount)
    gradients: Any = dataclasses.field(default_factory=lambda: ByRows("random"))
    average: bool = dataclasses.field(default=False, metadata={"static": True})
    burn_in: Any = 0
    discount: Any = 1.0
    leading: bool = dataclasses.field(default=False, metadata={"static": True})

    backend: ClassVar[str] = "jax"
    every: ClassVar[int] = 100

    def __post_init__(self):
        if isinstance(self.schedule, bool | int | float):
            object.__setattr__(self, "schedule", as_schedule(self.schedule, "schedule"))
        check_oracle(self.gradients)
        if isinstance(self.discount, int | float) and not 0 < self.discount <= 1:
            raise ValueError(f"discount must be above 0 and at most 1; got {self.discount}")

    def init(self, problem, x0, rng):
        """The point ``x0``, moved into the set if there is one."""
        require_gradient(self, parts(problem)[0])
        x0 = start(problem, x0)
        return RobbinsMonroState(x0, x0, jnp.zeros((), int), randomness.key(rng))

    def step(self, problem, state):
        """One step along an estimate of the gradient."""
        smooth, penalty = parts(problem)
        key, now = jax.random.split(state.key)
        size = jnp.asarray(self.schedule(state.step), state.x.dtype)
        x = penalty.prox(state.x - size * self.gradients(smooth, state.x, state.step, now), size)
        step = state.step + 1
        share = _last_share(self.discount, jnp.maximum(step - self.burn_in, 1), state.x.dtype)
        mean = state.mean + ((state.x if self.leading else x) - state.mean) * share if self.average else x
        return RobbinsMonroState(x, mean, step, key)

    def solution(self, problem, state):
        """The mean of the iterates, or the last one."""
        return state.mean

    def certify(self, problem, state):
        """What the problem allows."""
        return certify_optimality(problem, state.mean)


def _last_share(discount, n, dtype):
    """The weight of the last of ``n`` terms whose weights are ``discount^t``: ``(1 - q) q^(n-1) / (1 - q^n)``."""
    n = jnp.asarray(n, dtype)
    log = jnp.log(jnp.asarray(discount, dtype))
    falling = log < 0
    log = jnp.where(falling, log, -1.0)
    return jnp.where(falling, jnp.exp((n - 1) * log) * jnp.expm1(log) / jnp.expm1(n * log), 1 / n)
