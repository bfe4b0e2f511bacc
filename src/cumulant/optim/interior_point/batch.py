"""The primal-dual interior-point method with exact gradients: the reference for its stochastic sibling."""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp

from cumulant import checks
from cumulant.optim.interior_point.centring import ConstantSigma
from cumulant.optim.interior_point.certify import known
from cumulant.optim.interior_point.curvature import damped_bb, damped_bfgs
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
    curvature: Any  # of the loss, where it is learnt, with the last point and the gradient there: empty else
    last_point: Any
    last_gradient: Any


@pytree
@dataclasses.dataclass(frozen=True)
class InteriorPoint(PrimalDual):
    """Newton steps on the perturbed optimality conditions ``grad f + J^T z = 0``, ``-c_i z_i = mu``, with ``mu =
    sigma <s, z> / m`` from step to step, each at most 0.995 of the way to the boundary.

    The Hessian is exact and dense, or learnt from the gradients: a step costs a factorisation (for an l1 penalty in the
    formulation ``"bound"``, of the size of ``w``). The certificate is a true duality gap, from ``x`` and the data,
    whatever the Hessian: see `certify_constrained`.

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
    curvature : str
        ``"exact"``; or learnt from differences of gradients of the loss, ``"bfgs"`` (`damped_bfgs`; with an l1 penalty
        use the formulation ``"bound"``) or ``"bb"`` (`damped_bb`). Learnt curvature starts from the identity, or for
        BFGS from a multiple of it set by the first difference. No theorem says that these steps converge.
    damping : float
        ``gamma`` of `damped_bfgs`: 0.2, Powell's value for exact gradients.
    route : str
        The linear algebra: ``"auto"``, by the structure of the constraints; ``"cholesky"``; ``"full"``;
        ``"sparse_cholesky"``, for patterns with a narrow band; ``"ldl"``, for an indefinite Hessian, refused (a step of
        length zero) where the inertia is not that of a step of descent. See `solve_primal_dual`; the last two leave the
        compiled program at each step.

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
    curvature: str = dataclasses.field(default="exact", metadata={"static": True})
    damping: Any = 0.2

    def __post_init__(self):
        super().__post_init__()
        checks.choice("curvature", self.curvature, ("exact", "bfgs", "bb"))
        if isinstance(self.damping, int | float) and not 0 < self.damping < 1:
            raise ValueError(f"damping must be strictly between 0 and 1; got {self.damping}")
        if isinstance(self.least_mu, int | float) and not self.least_mu >= 0:
            raise ValueError(f"least_mu must not be negative; got {self.least_mu}")

    def init(self, problem, x0, rng):
        """Slacks and multipliers at a strictly feasible ``x0``."""
        z, slack = self._start(problem, x0)
        require_gradient(self, problem.loss)
        zero, empty = jnp.zeros((), x0.dtype), jnp.zeros((0,), x0.dtype)
        learnt = (empty, empty, empty)
        if self.curvature != "exact":
            w = problem.objective.coefficients(x0)
            start = jnp.eye(w.size, dtype=x0.dtype) if self.curvature == "bfgs" else jnp.ones((), x0.dtype)
            learnt = (start, jnp.array(w), jnp.zeros_like(w))
        return InteriorPointState(x0, z, slack, jnp.zeros((), int), zero, zero, zero, known(problem), *learnt)

    def _curvature(self, problem, state):
        """The Hessian in ``x``, and what of the state changes with it."""
        objective = problem.objective
        if self.curvature == "exact":
            return objective.gradient(state.x), objective.hessian(state.x), {}
        w = objective.coefficients(state.x)
        gradient = problem.loss.gradient(w)
        dw, dg = jnp.where(state.step > 0, w - state.last_point, 0.0), gradient - state.last_gradient
        if self.curvature == "bb":
            learnt = damped_bb(state.curvature, dw, dg, jnp.where(state.step > 1, 0.5, 1.0))
        else:
            scale = jnp.vdot(dg, dg) / jnp.where(state.step == 1, jnp.vdot(dw, dg), 1.0)  # Nocedal and Wright, (6.20)
            scale = jnp.where((state.step == 1) & (scale > 0) & jnp.isfinite(scale), scale, 1.0)
            learnt = damped_bfgs(scale * state.curvature, dw, dg, self.damping).B
        changed = {"curvature": learnt, "last_point": w, "last_gradient": gradient}
        return objective.lift_gradient(gradient), objective.lift_curvature(learnt, w.size), changed

    def step(self, problem, state):
        """One primal-dual step."""
        constraints, x, z, slack = problem.constraints, state.x, state.z, state.slack
        gradient, hessian, changed = self._curvature(problem, state)
        mu = centre(self.centring, constraints, x, z, slack, gradient, hessian, state.step, self.route)
        mu = jnp.maximum(mu, self.least_mu)
        towards = direction(constraints, x, z, slack, gradient, mu, hessian, self.route)
        move = follow(constraints, x, z, slack, towards, jnp.ones((), x.dtype), self.separate_steps)
        return state._replace(**move._asdict(), step=state.step + 1, mu=mu, **changed)

    def measure(self, problem, state):
        """The value, its distance to the optimum, the surrogate gap ``<s, z>`` and the residual of the Lagrangian."""
        residual = problem.objective.gradient(state.x) + problem.constraints.jacobian_transpose(state.x, state.z)
        return super().measure(problem, state) | {"lagrangian_residual": jnp.max(jnp.abs(residual))}
