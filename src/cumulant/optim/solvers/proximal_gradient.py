"""Proximal gradient descent, which on the Lasso is iterative soft thresholding."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp

from cumulant.optim.certify.optimality import Knowledge, knowledge
from cumulant.optim.solvers.first_order import FirstOrder, check_step_size, forward_backward, start, step_rule
from cumulant.pytrees import pytree


class ProximalGradientState(NamedTuple):
    """The iterate and the step size, with the constants the bounds need."""

    x: Any
    step_size: Any
    known: Knowledge
    search: Any = None  # by which the step size is found, where it is not fixed


@pytree
@dataclasses.dataclass(frozen=True)
class ProximalGradient(FirstOrder):
    """``x_next = prox_{tau R}(x - tau grad f(x))`` on ``F = f + R`` (ISTA; on a set, projected gradient descent).

    With ``f`` convex and ``L``-smooth and ``tau <= 1/L``: ``F`` never increases and
    ``F(x_k) - F* <= |x_0 - x*|^2 / (2 tau k)`` (`rates.ista`; Beck and Teboulle 2009, theorem 3.1). It converges for
    every ``tau < 2/L``, but beyond ``1/L`` it need not descend. If ``f`` is ``mu``-strongly convex, ``|x_k - x*| <=
    h(tau)^k |x_0 - x*|`` with `rates.gd_contraction`.

    The certificate is the smallest of the bounds in `cumulant.optim.certify.optimality`: on the Lasso the duality gap.

    Parameters
    ----------
    step_size : str, float, Backtracking or None
        ``"1/L"``, a number below ``2/L``, or `Backtracking()`. None: ``"1/L"`` where the problem knows ``L``, else
        `Backtracking()`, with whose steps ``F(x_k) - F* <= |x_0 - x*|^2 / (2 sum tau_i)`` and ``F`` never increases.

    Examples
    --------
    >>> from cumulant import optim
    >>> smooth = optim.LeastSquares([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], reduction="sum")
    >>> problem = optim.Composite(smooth, optim.L1(1.0))
    >>> optim.run(ProximalGradient(), problem, [0.0, 0.0], max_steps=10, tol=None).x.round(8)
    array([0.21247402, 0.31254233])
    """

    step_size: Any = None

    every: ClassVar[int] = 10  # a bound costs as much as a step

    def __post_init__(self):
        check_step_size(self.step_size)

    def init(self, problem, x0, rng):
        """The point ``x0``, moved into the set if there is one."""
        x0 = start(problem, x0)
        tau, search = step_rule(problem, self.step_size, self, x0, most=2.0)
        return ProximalGradientState(x0, jnp.asarray(tau, dtype=x0.dtype), knowledge(problem), search)

    def step(self, problem, state):
        """One gradient step on ``f`` and one proximal step on ``R``."""
        if state.search is None:
            return state._replace(x=forward_backward(problem, state.x, state.step_size))
        x, tau = state.search.search(problem, state.x, state.step_size / state.search.beta)
        return state._replace(x=x, step_size=tau)
