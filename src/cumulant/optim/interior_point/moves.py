"""One primal-dual move: the direction, how far it may be followed, and where it ends. Plain JAX, for all solvers."""

import functools
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy import sparse

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.optim.interior_point.centring import MehrotraSigma, barrier_from_gap
from cumulant.optim.interior_point.certify import certify_constrained, running_gap
from cumulant.optim.interior_point.constraints import Constraints, room
from cumulant.optim.interior_point.linear_algebra import dense_curvature, solve_primal_dual
from cumulant.optim.interior_point.problem import ConstrainedProblem, interior
from cumulant.optim.protocol import Solver
from cumulant.precision import any_tracer, call_on_host

FRACTION = 0.995  # of the way to the boundary
HOST_ROUTES = ("sparse_cholesky", "ldl")
ROUTES = ("auto", "cholesky", "full", *HOST_ROUTES)


class PrimalDual(Solver):
    """What the solvers with a state ``x``, ``z``, ``slack`` share."""

    centring: Any
    z0: Any
    route: str

    backend: ClassVar[str] = "jax"

    def __post_init__(self):
        if not callable(self.centring):
            raise TypeError(f"centring must be ConstantSigma, PowerSigma or MehrotraSigma; got {self.centring!r}")
        checks.choice("route", self.route, ROUTES)

    def _start(self, problem, x0):
        """The multipliers and the slacks at a strictly feasible ``x0``."""
        if not isinstance(problem, ConstrainedProblem):
            raise TypeError(f"{type(self).__name__} takes a ConstrainedProblem; got {type(problem).__name__}")
        slack = interior(problem, x0)
        z = jnp.array(jnp.broadcast_to(jnp.asarray(self.z0, slack.dtype), slack.shape))
        if not any_tracer(z) and not bool(jnp.all((z > 0) & jnp.isfinite(z))):
            raise DomainError(f"z0 must be positive and finite; got {np.asarray(self.z0)}")
        return z, slack

    def measure(self, problem, state):
        """The value, its distance to the optimum, the surrogate gap ``<s, z>`` and the length of the step."""
        value, bound = running_gap(problem, state.x, state.known)
        gap = jnp.vdot(state.slack, state.z)
        return {"value": value, "bound": bound, "gap": gap, "step_size": state.primal_step}

    def certify(self, problem, state):
        """The duality gap at the iterate, from the data: `certify_constrained`."""
        return certify_constrained(problem, state.x)


class Direction(NamedTuple):
    """``(dx, dz)`` and the change ``J dx`` of the linearised constraints."""

    dx: Any
    dz: Any
    dc: Any


class Move(NamedTuple):
    """Where a step ended, and how long it was for ``x`` and for ``z``."""

    x: Any
    z: Any
    slack: Any
    primal_step: Any
    dual_step: Any


def direction(
    constraints: Any, x: Any, z: Any, slack: Any, gradient: Any, mu: Any, curvature: Any, route: str = "auto"
):
    """The direction of `solve_primal_dual`, with ``c = -slack`` carried along instead of computed from ``x``.

    Routes: ``"auto"``, by the structure of the constraints; ``"cholesky"``, dense; ``"full"``, the unsymmetric system;
    ``"sparse_cholesky"`` and ``"ldl"``, by `solve_primal_dual` on the host, outside of the compiled program. A system
    that cannot be solved gives NaN, along which `follow` does not move.
    """
    if route in HOST_ROUTES:
        J = constraints.jacobian(x)
        W = dense_curvature(curvature, x.size) + constraints.lagrangian_hessian(x, z)
        solve = functools.partial(_step_on_the_host, route=route)
        step = call_on_host(solve, (x.size + z.size,), W, J, slack, z, gradient, mu, vmap_method="sequential")
        return Direction(step[: x.size], step[x.size :], J @ step[: x.size])
    if route == "full":
        J = constraints.jacobian(x)
        W = dense_curvature(curvature, x.size) + constraints.lagrangian_hessian(x, z)
        matrix = jnp.block([[W, J.T], [z[:, None] * J, -jnp.diag(slack)]])
        step = jnp.linalg.solve(matrix, -jnp.concatenate([gradient + J.T @ z, mu - slack * z]))
        return Direction(step[: x.size], step[x.size :], J @ step[: x.size])
    weights = z / slack
    right = -(gradient + mu * constraints.jacobian_transpose(x, 1 / slack))
    solve = Constraints.solve if route == "cholesky" else type(constraints).solve
    dx = solve(constraints, x, z, curvature, weights, right)
    dc = constraints.jacobian_apply(x, dx)
    return Direction(dx, mu / slack - z + weights * dc, dc)


def _step_on_the_host(W, J, slack, z, gradient, mu, route):
    if route == "sparse_cholesky":
        W, J = sparse.csr_array(W), sparse.csr_array(J)
    try:
        return np.concatenate(solve_primal_dual(W, J, -slack, z, gradient, float(mu), route))
    except (DomainError, ValueError, np.linalg.LinAlgError):
        return np.full(gradient.size + z.size, np.nan)


def follow(
    constraints: Any, x: Any, z: Any, slack: Any, towards: Direction, ceiling: Any, separate: bool = False
) -> Move:
    """Step as far as `ceiling` and the boundary allow: 0.995 of the way to it, in closed form, or by backtracking where
    the constraints are not affine. One length for ``x`` and ``z`` unless `separate`. A strictly feasible ``x`` stays
    one, and ``z`` positive, whatever the direction and its rounding.
    """
    fine = jnp.all(jnp.isfinite(towards.dx)) & jnp.all(jnp.isfinite(towards.dz)) & jnp.all(jnp.isfinite(towards.dc))
    dx, dz, dc = (jnp.where(fine, each, 0.0) for each in towards)
    dual = jnp.minimum(ceiling, FRACTION * room(z, dz))
    primal = constraints.max_step(x, slack, dx, ceiling if separate else dual, FRACTION)
    # What overflowed is no direction, and a step that rounding takes to the boundary is shortened.
    x, primal = constraints.advance(x, dx, jnp.where(fine, primal, 0.0))
    dual = jnp.where(fine, dual, 0.0) if separate else primal
    tiny = jnp.finfo(x.dtype).tiny
    # Carried along, a slack keeps its relative accuracy however small it is beside x.
    slack = jnp.maximum(slack - primal * dc, tiny) if constraints.affine else -constraints.value(x)
    return Move(x, jnp.maximum(z + dual * dz, tiny), slack, primal, dual)


def centre(
    centring: Any, constraints: Any, x: Any, z: Any, slack: Any, gradient: Any, curvature: Any, k: Any, route: str
):
    """``mu = sigma <s, z> / m``, with ``sigma`` from the rule."""
    sigma = centring(k)
    if isinstance(centring, MehrotraSigma):
        affine = direction(constraints, x, z, slack, gradient, jnp.zeros((), x.dtype), curvature, route)
        a = jnp.minimum(1.0, room(z, affine.dz))
        a = constraints.max_step(x, slack, affine.dx, a, 1.0)
        after = slack - a * affine.dc if constraints.affine else -constraints.value(x + a * affine.dx)
        gap = jnp.vdot(slack, z)
        sigma = jnp.minimum(sigma, centring.sigma(gap, jnp.vdot(after, z + a * affine.dz)))
    return jnp.asarray(barrier_from_gap(sigma, slack, z), x.dtype)
