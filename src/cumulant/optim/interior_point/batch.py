"""The primal-dual interior-point method with exact derivatives: the reference for its stochastic sibling."""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp

from cumulant.optim.interior_point.centring import ConstantSigma
from cumulant.optim.interior_point.certify import known
from cumulant.optim.interior_point.moves import PrimalDual, centre, direction, follow
from cumulant.optim.protocol import require_gradient
from cumulant.pytrees import pytree


class InteriorPointState(NamedTuple):
    """The iterate with its multipliers and slacks."""

    x: Any
    z: Any
    slack: Any
    step: Any
    mu: Any
    primal_step: Any
    dual_step: Any
    known: Any


@pytree
@dataclasses.dataclass(frozen=True)
class InteriorPoint(PrimalDual):
    """Newton steps on the perturbed optimality conditions ``grad f + J^T z = 0``, ``-c_i z_i = mu``, with ``mu =
    sigma <s, z> / m`` from step to step, each at most 0.995 of the way to the boundary.

    The Hessian is exact and dense: a step costs a factorisation (for an l1 penalty in the formulation ``"bound"``, of
    the size of ``w``). The certificate is a true duality gap, from ``x`` and the data: see `certify_constrained`.

    There is no merit function: steps are those of Carbonetto (2009, figure 2.1) with ``a = 1``, for convex problems.

    Parameters
    ----------
    centring : ConstantSigma, PowerSigma or MehrotraSigma
        ``sigma``, a tenth by default.
    z0 : number or array
        The multipliers to start from.
    separate_steps : bool
        A length for ``x`` and another one for ``z``.
    least_mu : float
        ``mu`` is not let fall below this.
    route : str
        ``"auto"``, ``"cholesky"`` or ``"full"``: the linear algebra.

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import l1_regularize
    >>> loss = optim.LeastSquares([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], reduction="sum")
    >>> problem = l1_regularize(loss, 1.0, formulation="bound")
    >>> result = optim.run(InteriorPoint(), problem, problem.start(), tol=1e-9)
    >>> result.status, problem.coefficients(result.x).round(6)
    ('converged', array([0.      , 0.482143]))
    """

    centring: Any = dataclasses.field(default_factory=lambda: ConstantSigma(0.1))
    z0: Any = 1.0
    separate_steps: bool = dataclasses.field(default=False, metadata={"static": True})
    least_mu: Any = 0.0
    route: str = dataclasses.field(default="auto", metadata={"static": True})

    def __post_init__(self):
        super().__post_init__()
        if isinstance(self.least_mu, int | float) and not self.least_mu >= 0:
            raise ValueError(f"least_mu must not be negative; got {self.least_mu}")

    def init(self, problem, x0, rng):
        """Slacks and multipliers at a strictly feasible ``x0``."""
        z, slack = self._start(problem, x0)
        require_gradient(self, problem.loss)
        zero = jnp.zeros((), x0.dtype)
        return InteriorPointState(x0, z, slack, jnp.zeros((), int), zero, zero, zero, known(problem))

    def step(self, problem, state):
        """One primal-dual step."""
        constraints, x, z, slack = problem.constraints, state.x, state.z, state.slack
        gradient, hessian = problem.objective.gradient(x), problem.objective.hessian(x)
        mu = centre(self.centring, constraints, x, z, slack, gradient, hessian, state.step, self.route)
        mu = jnp.maximum(mu, self.least_mu)
        towards = direction(constraints, x, z, slack, gradient, mu, hessian, self.route)
        move = follow(constraints, x, z, slack, towards, jnp.ones((), x.dtype), self.separate_steps)
        return state._replace(**move._asdict(), step=state.step + 1, mu=mu)

    def measure(self, problem, state):
        """The value, its distance to the optimum, the surrogate gap ``<s, z>`` and the residual of the Lagrangian."""
        residual = problem.objective.gradient(state.x) + problem.constraints.jacobian_transpose(state.x, state.z)
        return super().measure(problem, state) | {"lagrangian_residual": jnp.max(jnp.abs(residual))}
