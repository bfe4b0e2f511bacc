"""How far to go: the exact minimiser along a direction, Armijo's rule, or backtracking to a quadratic upper bound."""

import dataclasses

import jax
import jax.numpy as jnp

from cumulant import checks
from cumulant.optim.problems.composite import parts
from cumulant.pytrees import pytree

_MOST = 1000  # reductions before a search gives up
_GROWTHS = 40  # enlargements of a first step: a linear function would take any


@pytree
@dataclasses.dataclass(frozen=True)
class ExactLineSearch:
    """The step that minimises ``h(t) = f(x - t g)`` (Peyré 2021, remark 4): successive gradients are orthogonal.

    In closed form on quadratics, ``|g|^2 / <hess f g, g>``. Otherwise a root of ``h'`` is bracketed by doubling and
    found by Newton steps kept inside the bracket; for convex ``f`` that is the minimiser.

    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[1.0, 0.0], [0.0, 10.0]], [0.0, 0.0])
    >>> x, g = jnp.array([10.0, 1.0]), jnp.array([10.0, 10.0])
    >>> print(ExactLineSearch().search(problem, x, problem.value(x), g, 1.0)[0].round(6))         # 2 / (L + mu)
    0.181818
    """

    def search(self, problem, x, value, gradient, previous):
        """The step size and the number of trials."""
        squared = jnp.vdot(gradient, gradient)
        if problem.quadratic:
            curvature = jnp.vdot(gradient, problem.hessian_apply(x, gradient))
            return jnp.where(squared > 0, squared / jnp.where(curvature > 0, curvature, 1.0), 0.0), 1

        def slope(t):  # h'(t), which starts at -|g|^2
            return -jnp.vdot(problem.gradient(x - t * gradient), gradient)

        def falling(carry):
            t, trials = carry
            return (slope(t) < 0) & (trials < 60)

        high, trials = jax.lax.while_loop(falling, lambda c: (2 * c[0], c[1] + 1), (previous, 1))

        def bend(carry):
            low, high, t, k = carry
            at, curvature = jax.jvp(slope, (t,), (jnp.ones_like(t),))
            low, high = jnp.where(at < 0, t, low), jnp.where(at < 0, high, t)
            newton = t - at / jnp.where(curvature > 0, curvature, 1.0)
            inside = (curvature > 0) & (newton > low) & (newton < high)
            return low, high, jnp.where(inside, newton, (low + high) / 2), k + 1

        def wide(carry):
            low, high, _, k = carry
            return (high - low > 4 * jnp.finfo(high.dtype).eps * high) & (k < 100)

        _, _, t, k = jax.lax.while_loop(wide, bend, (jnp.zeros_like(high), high, high / 2, 0))
        return jnp.where(squared > 0, t, 0.0), trials + k


@pytree
@dataclasses.dataclass(frozen=True)
class Armijo:
    """Backtracking: shrink ``t`` by ``beta`` until ``f(x - t g) <= f(x) - alpha t |g|^2`` (Armijo 1966).

    Along another direction ``d`` of descent, until ``f(x + t d) <= f(x) + alpha t <g, d>``.

    On an ``L``-smooth function the accepted step is at least ``min(initial, 2 beta (1 - alpha) / L)``; see
    `rates.armijo_step` and `rates.armijo_reductions`. A trial value that is not finite counts as a failure.

    Parameters
    ----------
    alpha : float
        The share of the promised decrease that is asked for, strictly between 0 and 1/2.
    beta : float
        The factor of each reduction, strictly between 0 and 1.
    initial : float
        The first trial of the first step.
    warm : bool
        Start each later search from the last accepted step over ``beta``, rather than from `initial`.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[1.0, 0.0], [0.0, 10.0]], [0.0, 0.0])
    >>> x, g = jnp.array([1.0, 1.0]), jnp.array([1.0, 10.0])
    >>> step, reductions = Armijo(0.3, 0.5).search(problem, x, problem.value(x), g, 1.0)
    >>> print(step, reductions)
    0.125 3
    """

    alpha: float = 0.3
    beta: float = 0.5
    initial: float = 1.0
    warm: bool = dataclasses.field(default=True, metadata={"static": True})

    def __post_init__(self):
        for name, top in (("alpha", 0.5), ("beta", 1.0)):
            number = checks.number(f"{name} of Armijo", getattr(self, name))
            if isinstance(number, int | float) and not 0 < number < top:
                raise ValueError(f"{name} of Armijo must be strictly between 0 and {top:g}; got {number}")
        checks.positive("initial of Armijo, the first trial step,", self.initial)

    def search(self, problem, x, value, gradient, previous, direction=None):
        """The accepted step size, or 0, and the number of reductions; along ``-gradient`` by default."""
        direction = -gradient if direction is None else direction
        slope = jnp.vdot(gradient, direction)
        # Near the minimum the promised decrease is below the rounding of the value itself, and no step could pass the
        # test.
        fuzz = 4 * jnp.finfo(value.dtype).eps * jnp.abs(value)

        def refused(carry):
            t, reductions = carry
            trial = problem.value(x + t * direction)
            # Negated, so that a trial that is not a number is refused.
            return ~(trial <= value + self.alpha * t * slope + fuzz) & (reductions < _MOST)

        t, reductions = jax.lax.while_loop(refused, lambda c: (c[0] * self.beta, c[1] + 1), (previous, 0))
        return jnp.where(reductions < _MOST, t, 0.0), reductions

    def first_trial(self, accepted):
        """Where the next search starts."""
        return accepted / self.beta if self.warm else jnp.full_like(accepted, self.initial)


@pytree
@dataclasses.dataclass(frozen=True)
class Backtracking:
    """Step sizes where the smoothness is unknown: shrink ``tau`` until a quadratic upper bound holds at the new point.

    A step from ``y`` to ``x = prox_{tau R}(y - tau grad f(y))`` is accepted when::

        f(x) <= f(y) + <grad f(y), x - y> + |x - y|^2 / (2 tau)

    (Beck and Teboulle 2009, sections 3 and 4), which holds whenever ``tau <= 1/L``. It is all that the proofs of the
    rates use of ``L``: they hold with the accepted steps in place of ``1/L``, at least `rates.backtracking_step`. Where
    the values differ by no more than rounding, the test is ``<grad f(x) - grad f(y), x - y> <= |x - y|^2 / (2 tau)``,
    which for convex ``f`` implies it. A trial value that is not finite counts as a failure.

    The first search also enlarges `initial` while the bound holds. Later steps of gradient descent are tried a little
    larger than the last; those of accelerated methods never grow, as their proof needs, except at a restart.

    Parameters
    ----------
    beta : float
        The factor of each reduction, strictly between 0 and 1.
    initial : float
        The first trial.

    Examples
    --------
    >>> from cumulant import optim
    >>> def bowl(x, data):
    ...     return jnp.sum(jnp.cosh(x - data))
    >>> result = optim.run(
    ...     optim.ProximalGradient(Backtracking()), optim.Objective(bowl, 3.0), [0.0], tol=None, residual_tol=1e-8
    ... )
    >>> result.status, result.x.round(6)
    ('stationary', array([3.]))
    """

    beta: float = 0.5
    initial: float = 1.0

    def __post_init__(self):
        checks.fraction("beta of Backtracking", self.beta)
        checks.positive("initial of Backtracking", self.initial)

    def search(self, problem, y, tau):
        """The new point and the accepted step, of at most `tau`."""
        trial, beta = self._trial(problem, y), jnp.asarray(self.beta, y.dtype)

        def refused(carry):
            _, _, fine, reductions = carry
            return ~fine & (reductions < _MOST)

        def shrink(carry):
            tau, _, _, reductions = carry
            return beta * tau, *trial(beta * tau), reductions + 1

        tau = jnp.asarray(tau, y.dtype)
        tau, x, _, _ = jax.lax.while_loop(refused, shrink, (tau, *trial(tau), 0))
        return x, tau

    def first(self, problem, y):
        """A step beyond which the bound fails at `y`, for the first search."""
        trial = self._trial(problem, y)

        def holds(carry):
            tau, growths = carry
            return trial(tau)[1] & (growths < _GROWTHS)

        beta = jnp.asarray(self.beta, y.dtype)
        start = (jnp.asarray(self.initial, y.dtype), 0)
        return jax.lax.while_loop(holds, lambda c: (c[0] / beta, c[1] + 1), start)[0]

    def _trial(self, problem, y):
        smooth, penalty = parts(problem)
        value, gradient = smooth.value_and_gradient(y)

        def trial(tau):
            x = penalty.prox(y - tau * gradient, tau)
            there, slope = smooth.value_and_gradient(x)
            move = x - y
            allowed = jnp.vdot(move, move) / (2 * tau)
            by_values = there - value - jnp.vdot(gradient, move) <= allowed
            by_slopes = jnp.vdot(slope - gradient, move) <= allowed
            resolved = allowed > 2**10 * jnp.finfo(y.dtype).eps * jnp.maximum(jnp.abs(value), jnp.abs(there))
            return x, jnp.isfinite(there) & jnp.where(resolved, by_values, by_slopes)

        return trial


def no_progress(before, value, gradient):
    """Whether a step decreased neither the value nor the norm of the gradient of the state before."""
    return (value >= before.value) & (jnp.vdot(gradient, gradient) >= jnp.vdot(before.gradient, before.gradient))
