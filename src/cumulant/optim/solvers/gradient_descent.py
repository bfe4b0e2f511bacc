"""Gradient descent, with fixed steps or a line search."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp

from cumulant import checks
from cumulant.optim.certify.strong_convexity import certify_strong_convexity
from cumulant.optim.protocol import Solver, require_gradient
from cumulant.optim.solvers.line_search import Armijo, Backtracking, ExactLineSearch, no_progress
from cumulant.pytrees import pytree


class GradientDescentState(NamedTuple):
    """The iterate with the value and gradient there, and the step to try next."""

    x: Any
    value: Any
    gradient: Any
    step_size: Any
    strong_convexity: Any
    stuck: Any  # whether the last line search decreased neither the value nor the gradient
    search: Any = None  # by which the step size is found, where the problem does not know it


class Descent(Solver):
    """Steps along minus the gradient or a direction made of it, with fixed steps or a line search."""

    step_size: Any

    backend: ClassVar[str] = "jax"

    def init(self, problem, x0, rng):
        """The value and gradient at ``x0``, and the step size from the problem's constants."""
        require_gradient(self, problem)
        value, gradient = problem.value_and_gradient(x0)
        mu = float(problem.strong_convexity)
        search = self._backtracking(problem)
        step = self._first_step(problem, mu) if search is None else search.first(problem, x0)
        step, mu = jnp.asarray(step, dtype=value.dtype), jnp.asarray(mu, dtype=value.dtype)
        return GradientDescentState(x0, value, gradient, step, mu, jnp.asarray(False), search)

    def _backtracking(self, problem: Any) -> Backtracking | None:
        """What finds the steps, where it is neither a fixed step nor a line search along the direction."""
        return None

    def _first_step(self, problem: Any, mu: float) -> Any:
        return self.step_size.initial if isinstance(self.step_size, Armijo) else self.step_size

    def _direction(self, gradient: Any) -> Any:
        return -gradient

    def step(self, problem, state):
        """One step along the direction."""
        size, following = state.step_size, state.step_size
        direction = self._direction(state.gradient)
        if state.search is not None:
            x, following = state.search.search(problem, state.x, state.step_size / state.search.beta)
            value, gradient = problem.value_and_gradient(x)
            return state._replace(x=x, value=value, gradient=gradient, step_size=following)
        if isinstance(self.step_size, ExactLineSearch):
            size, _ = self.step_size.search(problem, state.x, state.value, state.gradient, state.step_size)
        elif isinstance(self.step_size, Armijo):
            size, _ = self.step_size.search(problem, state.x, state.value, state.gradient, state.step_size, direction)
            following = self.step_size.first_trial(size)
        x = state.x + size * direction
        value, gradient = problem.value_and_gradient(x)
        stuck = no_progress(state, value, gradient) if isinstance(self.step_size, Armijo) else state.stuck
        return GradientDescentState(x, value, gradient, following, state.strong_convexity, stuck)

    def measure(self, problem, state):
        """The value, the norm of the gradient and, under strong convexity, the distance to the optimum they imply."""
        squared = jnp.vdot(state.gradient, state.gradient)
        mu = state.strong_convexity
        bound = jnp.where(mu > 0, squared / (2 * jnp.where(mu > 0, mu, 1.0)), jnp.inf)
        found = {"value": state.value, "bound": bound, "residual": jnp.sqrt(squared), "step_size": state.step_size}
        return found | ({"stuck": state.stuck} if isinstance(self.step_size, Armijo) else {})


@pytree
@dataclasses.dataclass(frozen=True)
class GradientDescent(Descent):
    """``x_next = x - tau grad f(x)``.

    With ``f`` convex and ``L``-smooth and ``tau = 1/L``: ``f(x_k) - f* <= L |x_0 - x*|^2 / (4 k + 2)``
    (`rates.gd_convex`); if it is also ``mu``-strongly convex, ``|x_k - x*| <= (1 - mu/L)^k |x_0 - x*|``
    (`rates.gd_strongly_convex`).

    The certificate is ``f(x) - f* <= |grad f(x)|^2 / (2 mu)``, which needs ``mu > 0`` and no knowledge of the run.

    Cauchy (1847); the rates are those of Nesterov (2004, section 2.1).

    Parameters
    ----------
    step_size : str, float, line search or None
        ``"1/L"``; ``"2/(L+mu)"``, the best fixed step for quadratics; a number; `ExactLineSearch()`;
        `Armijo(alpha, beta, initial)`; or `Backtracking()`. None: ``"1/L"`` where the problem knows ``L``, else
        `Backtracking()`.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.LeastSquares([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], l2=0.1)
    >>> result = optim.run(GradientDescent(), problem, [0.0, 0.0], tol=1e-8, max_steps=5000)
    >>> result.status
    'converged'
    """

    step_size: Any = None

    def __post_init__(self):
        step = self.step_size
        if isinstance(step, str):
            if step not in ("1/L", "2/(L+mu)"):
                raise ValueError(
                    f"step_size must be '1/L', '2/(L+mu)', a positive number or a line search; got {step!r}"
                )
        elif step is not None and not isinstance(step, ExactLineSearch | Armijo | Backtracking):
            checks.positive("step_size", step)

    def _backtracking(self, problem):
        if self.step_size is None and problem.smoothness is None:
            return Backtracking()
        return self.step_size if isinstance(self.step_size, Backtracking) else None

    def _first_step(self, problem, mu: float):
        if not isinstance(self.step_size, str | ExactLineSearch | None):
            return super()._first_step(problem, mu)
        smoothness = problem.smoothness
        if isinstance(self.step_size, ExactLineSearch):
            return 1.0 if not smoothness else 1.0 / float(smoothness)
        if smoothness is None:
            raise ValueError(
                f"step_size={self.step_size!r} needs the smoothness constant of the problem: give it, or use a number "
                "or Backtracking()"
            )
        if not smoothness > 0:
            return 1.0  # an affine function: any step
        return 1.0 / float(smoothness) if self.step_size in (None, "1/L") else 2.0 / (float(smoothness) + mu)

    def certify(self, problem, state):
        """``f(x) - f* <= |grad f(x)|^2 / (2 mu)``."""
        return certify_strong_convexity(problem, state.x)
