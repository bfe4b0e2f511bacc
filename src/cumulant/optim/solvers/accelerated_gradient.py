"""Nesterov's acceleration: a (proximal) gradient step from a point extrapolated along the last move."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from cumulant.optim.certify.optimality import Knowledge, knowledge
from cumulant.optim.protocol import require_gradient
from cumulant.optim.solvers.first_order import FirstOrder, check_step_size, forward_backward, start, step_rule
from cumulant.pytrees import pytree


class AcceleratedState(NamedTuple):
    """The iterate, the point the next gradient is taken at, and the count since the last restart."""

    x: Any
    ahead: Any
    value: Any  # of the iterate, kept only where restarts need it
    count: Any
    restarts: Any
    step_size: Any
    momentum: Any  # where it is constant
    known: Knowledge
    search: Any = None  # by which the step size is found, where it is not fixed


@pytree
@dataclasses.dataclass(frozen=True)
class AcceleratedProximalGradient(FirstOrder):
    """``x_{k+1} = prox_{s R}(y_k - s grad f(y_k))``, ``y_{k+1} = x_{k+1} + beta_k (x_{k+1} - x_k)``, ``F = f + R``.

    With ``f`` convex and ``L``-smooth, ``s <= 1/L`` and ``beta_k = k / (k + 3)``:
    ``F(x_k) - F* <= 2 |x_0 - x*|^2 / (s (k + 1)^2)`` (`rates.fista`; Beck and Teboulle 2009, theorem 4.4, whose proof
    asks of ``t_k = (k + 1) / 2`` only that ``t_k^2 - t_k <= t_{k-1}^2``). The value may go up between; `restart` is
    what makes it go down, and fast where the solution is a strict minimum.

    The certificate is the smallest of the bounds in `cumulant.optim.certify.optimality`: on the Lasso the duality gap.

    Parameters
    ----------
    step_size, momentum, restart
        As for `AcceleratedGradient`; ``mu`` is that of the smooth part.

    Examples
    --------
    >>> from cumulant import optim
    >>> smooth = optim.LeastSquares([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], reduction="sum")
    >>> problem = optim.Composite(smooth, optim.L1(1.0))
    >>> result = optim.run(AcceleratedProximalGradient(restart=True), problem, [0.0, 0.0], tol=1e-10, max_steps=10_000)
    >>> result.status, result.x.round(6)
    ('converged', array([0.      , 0.482143]))
    """

    step_size: Any = None
    momentum: Any = "nesterov"
    restart: bool = dataclasses.field(default=False, metadata={"static": True})

    every: ClassVar[int] = 10  # a bound costs as much as a step

    def __post_init__(self):
        check_step_size(self.step_size)
        momentum = self.momentum
        if isinstance(momentum, str) and momentum not in ("nesterov", "strongly convex"):
            raise ValueError(
                f"momentum must be 'nesterov', 'strongly convex' or a number in [0, 1); got {self.momentum!r}"
            )
        if isinstance(momentum, int | float) and not 0 <= momentum < 1:
            raise ValueError(f"momentum must be at least 0 and below 1; got {momentum}")

    def init(self, problem, x0, rng):
        """The point ``x0``, moved into the set if there is one, and the momentum if it is constant."""
        x0 = start(problem, x0)
        tau, search = step_rule(problem, self.step_size, self, x0)
        constant = 0.0 if isinstance(self.momentum, str) else float(self.momentum)
        if isinstance(self.momentum, str) and self.momentum == "strongly convex":
            mu = float(problem.strong_convexity)
            if not mu > 0:
                raise ValueError("momentum='strongly convex' needs a strong convexity above zero; use 'nesterov'")
            if search is not None:
                raise ValueError("momentum='strongly convex' needs the smoothness of the problem; use 'nesterov'")
            root = float(np.sqrt(min(tau * mu, 1.0)))
            constant = (1 - root) / (1 + root)
        dtype = x0.dtype
        value = problem.value(x0) if self.restart else jnp.zeros((), dtype)
        tau, constant = jnp.asarray(tau, dtype), jnp.asarray(constant, dtype)
        return AcceleratedState(x0, x0, value, 0, 0, tau, constant, knowledge(problem), search)

    def step(self, problem, state):
        """A step from the extrapolated point, and the next extrapolation."""
        tau, search = state.step_size, state.search
        if search is None:
            x = forward_backward(problem, state.ahead, tau)
        else:
            x, tau = search.search(problem, state.ahead, tau)
        count, restarts, value = state.count, state.restarts, state.value
        if self.restart:
            fresh = problem.value(x)
            # An increase above rounding: then the momentum is dropped, and the step is taken again without it.
            worse = fresh > value + 4 * jnp.finfo(x.dtype).eps * jnp.abs(value)
            count, restarts = jnp.where(worse, -1, count), restarts + worse  # the next step is step 0 again
            x, value = jnp.where(worse, state.x, x), jnp.where(worse, value, fresh)
            if search is not None:  # without momentum the proof begins again, and steps may grow
                tau = jnp.where(worse, tau / search.beta, tau)
        beta = state.momentum
        if isinstance(self.momentum, str) and self.momentum == "nesterov":
            beta = count / (count + 3.0)
        ahead = x + beta * (x - state.x)
        return state._replace(x=x, ahead=ahead, value=value, count=count + 1, restarts=restarts, step_size=tau)

    def measure(self, problem, state):
        """The value, the smallest bound, and how often the momentum was dropped."""
        return super().measure(problem, state) | {"restarts": state.restarts}


@pytree
@dataclasses.dataclass(frozen=True)
class AcceleratedGradient(AcceleratedProximalGradient):
    """``x_{k+1} = y_k - s grad f(y_k)``, ``y_{k+1} = x_{k+1} + beta_k (x_{k+1} - x_k)``, from ``y_0 = x_0``.

    With ``f`` convex and ``L``-smooth, ``s <= 1/L`` and ``beta_k = k / (k + 3)``:
    ``f(x_k) - f* <= 2 |x_0 - x*|^2 / (s (k + 1)^2)`` (`rates.nesterov`; Nesterov 1983). With ``mu > 0`` and constant
    ``beta = (1 - sqrt(s mu)) / (1 + sqrt(s mu))``: ``f(x_k) - f* <= (1 - sqrt(s mu))^k (f(x_0) - f* + mu/2 |x_0 -
    x*|^2)`` (`rates.nesterov_strongly_convex`; Nesterov 2004, section 2.2). Small steps follow `nesterov_flow`.

    Parameters
    ----------
    step_size : str, float, Backtracking or None
        ``"1/L"``, a number of at most that, or `Backtracking()`. None: ``"1/L"`` where the problem knows ``L``, else
        `Backtracking()`; the bounds then hold with the last accepted step in place of ``s``.
    momentum : str or float
        ``"nesterov"``, ``"strongly convex"``, or a constant in [0, 1). The gradient is taken at the extrapolated
        point; with the gradient at ``x_k`` instead it is `HeavyBall`.
    restart : bool
        Drop the momentum whenever the value would increase, and take that step again (O'Donoghue and Candès 2015).
        One more evaluation a step; linear convergence under strong convexity without knowing ``mu``, in practice.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Logistic([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.0]], [1, -1, 1], l2=0.01)
    >>> result = optim.run(AcceleratedGradient(momentum="strongly convex"), problem, [0.0, 0.0], tol=1e-10)
    >>> result.status, result.x.round(4)
    ('converged', array([ 3.7643, -0.3728]))
    """

    def init(self, problem, x0, rng):
        """The point ``x0``, and the momentum if it is constant."""
        require_gradient(self, problem)
        return super().init(problem, x0, rng)
