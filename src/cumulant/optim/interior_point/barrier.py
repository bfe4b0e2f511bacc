"""The logarithmic barrier, and the path of its minimisers."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.errors import NotConvergedError
from cumulant.optim.interior_point.linear_algebra import dense_curvature
from cumulant.optim.interior_point.moves import direction, follow
from cumulant.optim.interior_point.problem import ConstrainedProblem, interior, point, require_constrained
from cumulant.optim.problems.base import is_concrete, problem_type
from cumulant.optim.protocol import Problem
from cumulant.precision import precise


@problem_type
class LogBarrier(Problem):
    """``f_mu(x) = f(x) - mu sum_i log(-c_i(x))``, infinite outside the interior (Carbonetto 2009, equation 2.3).

    ``grad f_mu = grad f + mu J^T (1/s)`` and ``hess f_mu = hess f + mu sum_i hess c_i / s_i + mu J^T S^-2 J`` with the
    slacks ``s = -c(x)``. A smooth problem for `Newton`, say. See `log_barrier`.

    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import Bounds
    >>> barrier = LogBarrier(ConstrainedProblem(optim.Quadratic([[1.0]], [0.0]), Bounds(0.0)), 4.0)
    >>> barrier.gradient([2.0])                                    # x - mu / x
    array([0.])
    """

    problem: Any
    mu: Any

    def __post_init__(self):
        if not isinstance(self.problem, ConstrainedProblem):
            raise TypeError(f"problem must be a ConstrainedProblem; got {type(self.problem).__name__}")
        if is_concrete(self.mu) and not (np.isfinite(self.mu) and self.mu > 0):
            raise ValueError(f"mu must be positive and finite; got {self.mu}")

    @property
    def shape(self) -> Any:
        """The shape of ``x``."""
        return self.problem.shape

    @property
    def strong_convexity(self) -> float:
        """At least that of the objective."""
        return self.problem.strong_convexity

    @property
    def convex(self) -> bool:
        """Whether the objective is."""
        return self.problem.convex

    @property
    def constants_are(self) -> str:
        """How the constants of the objective are known; assumed where the constraints are not affine."""
        return self.problem.constants_are if self.problem.constraints.affine else "assumed"

    @precise
    def value(self, x):
        """``f_mu(x)``."""
        slack = -self.problem.constraints.value(x)
        inside = jnp.all(slack > 0)
        value = self.problem.objective.value(x) - self.mu * jnp.sum(jnp.log(jnp.where(inside, slack, 1.0)))
        return jnp.where(inside, value, jnp.inf)

    @precise
    def gradient(self, x):
        """``grad f_mu(x)``."""
        slack = -self.problem.constraints.value(x)
        pull = self.problem.constraints.jacobian_transpose(x, 1 / slack)
        return self.problem.objective.gradient(x) + self.mu * pull

    @precise
    def value_and_gradient(self, x):
        """Both."""
        return self.value(x), self.gradient(x)

    @precise
    def hessian(self, x):
        """``hess f_mu(x)``, dense."""
        constraints = self.problem.constraints
        slack, J = -constraints.value(x), constraints.jacobian(x)
        H = dense_curvature(self.problem.objective.hessian(x), x.size)
        return H + self.mu * (constraints.lagrangian_hessian(x, 1 / slack) + (J.T / slack**2) @ J)

    @precise
    def hessian_apply(self, x, v):
        """``hess f_mu(x) v``."""
        return self.hessian(x) @ v

    def gradient_rounding(self, x) -> float:
        """An allowance for the rounding of the gradient in float64."""
        slack = -np.asarray(self.problem.constraints_at(x))
        return 64 * 2.0**-52 * float(np.linalg.norm(self.gradient(x)) + self.mu * np.sum(1 / slack) * np.linalg.norm(x))


def log_barrier(problem: ConstrainedProblem, mu: float) -> LogBarrier:
    """``f(x) - mu sum_i log(-c_i(x))`` as a problem with value, gradient and Hessian.

    Its minimiser ``x_mu`` is on the central path, and ``f(x_mu) - f* <= m mu`` with ``m`` constraints.

    Fiacco and McCormick (1968); Carbonetto (2009, equation 2.3).

    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import Bounds
    >>> barrier = log_barrier(ConstrainedProblem(optim.Quadratic([[1.0]], [0.0]), Bounds(1.0)), 2.0)
    >>> round(float(barrier.value([1.5])), 6), barrier.value([0.5])
    (2.511294, np.float64(inf))
    """
    require_constrained(problem)
    checks.positive("mu", mu)
    return LogBarrier(problem, mu)


class CentralPath(NamedTuple):
    """Points ``x`` and multipliers ``z`` of the path, a row for each of `mu` (Carbonetto 2009, section 2.2).

    >>> path = CentralPath(np.array([[2.0]]), np.array([[2.0]]), np.array([4.0]))      # of x^2 / 2 under x >= 0
    >>> path.x * path.z == path.mu
    array([[ True]])
    """

    x: np.ndarray
    z: np.ndarray
    mu: np.ndarray


def _residual(problem, x, z, slack, mu, noise):
    lagrangian = problem.objective.gradient(x) + noise + problem.constraints.jacobian_transpose(x, z)
    return jnp.concatenate([lagrangian, slack * z - mu])


@precise
def _to_the_path(problem, x, z, slack, mu, noise, tol, max_steps):
    """Newton's method on the perturbed conditions, with steps halved until their residual falls."""

    def size(x, z, slack):
        r = _residual(problem, x, z, slack, mu, noise)
        return jnp.sqrt(jnp.vdot(r, r))

    def going(carry):
        *_, norm, k, stalled = carry
        return (norm > tol) & (k < max_steps) & ~stalled

    def newton(carry):
        x, z, slack, norm, k, _ = carry
        gradient, hessian = problem.objective.gradient(x) + noise, problem.objective.hessian(x)
        towards = direction(problem.constraints, x, z, slack, gradient, mu, hessian)
        whole = follow(problem.constraints, x, z, slack, towards, jnp.ones((), x.dtype)).primal_step

        def at(a):
            # The step is within the interior, so that following it this far is not cut.
            return follow(problem.constraints, x, z, slack, towards, a)

        def too_long(a):
            move = at(a)
            return ~(size(move.x, move.z, move.slack) <= (1 - 0.01 * a) * norm) & (a > 1e-10)

        a = jax.lax.while_loop(too_long, lambda a: a / 2, whole)
        move = at(a)
        after = size(move.x, move.z, move.slack)
        better = after < norm
        new = (move.x, move.z, move.slack, after)
        kept = jax.tree.map(lambda new, old: jnp.where(better, new, old), new, (x, z, slack, norm))
        return *kept, k + 1, ~better

    start = (x, z, slack, size(x, z, slack), jnp.zeros((), int), jnp.zeros((), bool))
    return jax.lax.while_loop(going, newton, start)[:5]


def central_path(
    problem: ConstrainedProblem, mus: Any, x0: Any, *, z0: Any = 1.0, tol: float = 1e-10, max_steps: int = 200
) -> CentralPath:
    """The minimisers of ``f - mu sum log(-c_i)`` with their multipliers ``z = mu / s``, for each ``mu``.

    Each is found by Newton's method on ``grad f + J^T z = 0``, ``s_i z_i = mu``, started from the one before. On the
    path the duality gap is exactly ``m mu``.

    Parameters
    ----------
    problem : ConstrainedProblem
    mus : array
        Positive; best given largest first.
    x0, z0 : array
        A strictly feasible point, and positive multipliers.
    tol : float
        Largest norm of the residual that is accepted, relative to one plus the size of the gradient.
    max_steps : int
        For each point.

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import Bounds
    >>> problem = ConstrainedProblem(optim.Quadratic(np.eye(2), [-1.0, 1.0]), Bounds(0.0))
    >>> central_path(problem, [1.0, 0.1], [1.0, 1.0]).x.round(6)
    array([[0.618034, 1.618034],
           [0.091608, 1.091608]])
    """
    return noisy_central_path(problem, mus, 0.0, x0, z0=z0, tol=tol, max_steps=max_steps)


def noisy_central_path(
    problem: ConstrainedProblem,
    mus: Any,
    noise: Any,
    x0: Any,
    *,
    z0: Any = 1.0,
    tol: float = 1e-10,
    max_steps: int = 200,
) -> CentralPath:
    """The central path when the gradient is ``grad f + noise``: what a stochastic step aims at (Carbonetto 2009,
    section 2.3.2).

    A primal-dual step taken from a point of this path at ``(mu, noise)`` towards ``(mu', noise')`` is the tangent of
    the path: it misses its end by the square of the displacement. Parameters as for `central_path`; `noise` is a number
    or a vector.

    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import Bounds
    >>> problem = ConstrainedProblem(optim.Quadratic([[1.0]], [0.0]), Bounds(0.0))
    >>> noisy_central_path(problem, [4.0], -3.0, [1.0]).x.round(8)      # x - 3 = 4 / x
    array([[4.]])
    """
    require_constrained(problem)
    checks.positive("tol", tol)
    checks.whole("max_steps", max_steps, 0)
    mus = np.atleast_1d(checks.real_array("mus", mus, finite=False))
    if mus.ndim != 1 or not np.all((mus > 0) & np.isfinite(mus)):
        raise ValueError(f"mus must be positive numbers; got {mus}")
    x = np.array(point(problem, "x0", x0))
    noise = np.broadcast_to(np.asarray(noise, dtype=np.float64), x.shape)
    slack = interior(problem, x)
    z = np.array(np.broadcast_to(np.asarray(z0, dtype=np.float64), slack.shape))
    if not np.all(z > 0):
        raise ValueError(f"z0 must be positive; got {z0}")
    xs, zs = [], []
    for mu in mus:
        scale = 1.0 + float(np.max(np.abs(problem.gradient(x) + noise)))
        x, z, slack, norm, steps = _to_the_path(problem, x, z, slack, mu, noise, tol * scale, max_steps)
        if not norm <= tol * scale:
            raise NotConvergedError(
                f"the point of the central path at mu = {mu:g} was not found: residual {norm:.3g} after {steps} steps"
            )
        xs.append(x)
        zs.append(z)
    return CentralPath(np.array(xs), np.array(zs), mus)
