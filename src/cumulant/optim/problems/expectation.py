"""Expectations of a random loss as problems, for stochastic gradients with fresh draws."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from cumulant import checks
from cumulant.optim.problems.base import is_concrete, ordered_constants, problem_type, static
from cumulant.optim.problems.objective import call_scalar
from cumulant.optim.protocol import Problem
from cumulant.precision import precise


@problem_type
class Expectation(Problem):
    """``f(x) = E_z loss(x, z)``, where ``z`` can be drawn and the expectation is not known.

    ``grad_x loss(x, z)`` at a fresh ``z`` is an unbiased gradient: `RobbinsMonro` with `gradients.Fresh`. `value` and
    `gradient` are means over a fixed sample of `sample` draws, for the trace; they are estimates, and no certificate is
    issued from them. With ``f`` ``mu``-strongly convex on a convex set, ``E |grad loss(x, z)|^2 <= C^2`` there, and
    projected steps ``1 / (mu (k + 1))``: ``E |x_k - x*|^2 <= C^2 / (mu^2 k)`` (`rates.sgd`).

    Peyré (2021, equation 43); Robbins and Monro (1951).

    Parameters
    ----------
    loss : callable
        A module-level function of ``(x, z)`` that returns a number.
    draw : callable
        A function of a JAX random key that returns one ``z``: an array or a pytree.
    sample : int
        How many draws `value` and `gradient` are averaged over.
    seed : int
        Of that sample.
    smoothness, strong_convexity, convex
        Of ``f``: your word is taken.

    Examples
    --------
    The mean of an exponential variable in the interval [0, 0.8]:

    >>> from cumulant import optim
    >>> problem = Expectation(lambda x, z: jnp.sum((x - z) ** 2) / 2, jax.random.exponential, strong_convexity=1.0)
    >>> solver = optim.RobbinsMonro(optim.InverseTime(1.0), optim.gradients.Fresh(), average=True)
    >>> bounded = optim.Composite(problem, optim.Box(0.0, 0.8))
    >>> result = optim.run(solver, bounded, [0.0], max_steps=4000, tol=None, rng=0)
    >>> result.x.round(1), result.certificate
    (array([0.8]), None)
    """

    loss: Callable[[Any, Any], Any] = static()
    draw: Callable[[Any], Any] = static()
    sample: int = static(1000)
    seed: int = static(0)
    smoothness: float | None = None
    strong_convexity: float = 0.0
    convex: bool = static(False)

    estimated: ClassVar[bool] = True

    def __post_init__(self):
        checks.takes("loss", self.loss, "x, z")
        checks.takes("draw", self.draw, "key")
        checks.whole("sample", self.sample)
        for name in ("smoothness", "strong_convexity"):
            constant = getattr(self, name)
            if constant is not None and is_concrete(constant):
                checks.not_negative(name, constant)
        ordered_constants(self.smoothness, self.strong_convexity)
        if is_concrete(self.strong_convexity) and self.strong_convexity > 0:
            object.__setattr__(self, "convex", True)

    @precise
    def value(self, x):
        """The mean of the loss over the fixed sample."""
        return self.mean_loss(x, jax.random.key(self.seed), self.sample)

    def mean_loss(self, x: Any, key: Any, count: int) -> Any:
        """The mean of the loss over `count` draws."""
        draws = jax.vmap(self.draw)(jax.random.split(key, count))
        return jnp.mean(jax.vmap(lambda z: call_scalar("loss", self.loss, x, z, "x and z"))(draws))
