"""The methods that interior-point stochastic approximation is measured against, one noisy gradient a step each."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks, randomness
from cumulant.errors import NotConvergedError
from cumulant.optim.certify.optimality import certify_optimality
from cumulant.optim.gradients import ByRows, check_oracle
from cumulant.optim.interior_point.certify import certify_constrained
from cumulant.optim.interior_point.problem import ConstrainedProblem
from cumulant.optim.interior_point.step_sizes import Harmonic
from cumulant.optim.problems.composite import Composite
from cumulant.optim.problems.penalties import L1
from cumulant.optim.protocol import Solver
from cumulant.optim.schedules import as_schedule
from cumulant.pytrees import pytree


class NoisyState(NamedTuple):
    """The iterate, and the position in the stream of gradients."""

    x: Any
    z: Any  # multipliers, where the method has them; else empty
    step: Any
    key: Any


@dataclasses.dataclass(frozen=True)
class _Noisy(Solver):
    """What the methods of this file share: a schedule, an oracle, a state."""

    schedule: Any = dataclasses.field(default_factory=Harmonic)
    gradients: Any = dataclasses.field(default_factory=ByRows)

    backend: ClassVar[str] = "jax"
    every: ClassVar[int] = 100
    takes: ClassVar[type] = object

    def __post_init__(self):
        if isinstance(self.schedule, bool | int | float):
            object.__setattr__(self, "schedule", as_schedule(self.schedule, "schedule"))
        check_oracle(self.gradients)

    def _refuse(self, problem):
        if not isinstance(problem, self.takes):
            raise TypeError(f"{type(self).__name__} takes a {self.takes.__name__}; got {type(problem).__name__}")

    def init(self, problem, x0, rng):
        """The state at ``x0``."""
        self._refuse(problem)
        return NoisyState(x0, jnp.zeros((0,), x0.dtype), jnp.zeros((), int), randomness.key(rng))

    def _draw(self, state):
        key, now = jax.random.split(state.key)
        return now, state._replace(key=key, step=state.step + 1), jnp.asarray(self.schedule(state.step), state.x.dtype)


@pytree
@dataclasses.dataclass(frozen=True)
class ProjectedSGD(_Noisy):
    """``P(x - a_k g_k)`` with the Euclidean projection onto the constraints of a `ConstrainedProblem`.

    Goldstein (1964); for noisy gradients, Kushner and Clark (1978).

    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import Bounds
    >>> problem = ConstrainedProblem(optim.Quadratic(np.eye(2), [-1.0, 1.0]), Bounds(0.0))     # solution (0, 1)
    >>> solver = ProjectedSGD(1.0, optim.gradients.Exact())
    >>> optim.run(solver, problem, [1.0, 1.0], max_steps=1, tol=None).x
    array([0., 1.])
    """

    takes: ClassVar[type] = ConstrainedProblem

    def step(self, problem, state):
        """A gradient step and a projection."""
        key, new, a = self._draw(state)
        objective = problem.objective
        g = self.gradients(problem.loss, objective.coefficients(state.x), state.step, key)
        return new._replace(x=problem.constraints.project(state.x - a * objective.lift_gradient(g)))

    def certify(self, problem, state):
        """The duality gap at the iterate."""
        return certify_constrained(problem, state.x)


class _OnL1(_Noisy):
    """Methods on ``loss(w) + weight |w|_1`` in ``w`` itself."""

    takes: ClassVar[type] = Composite

    def _refuse(self, problem):
        super()._refuse(problem)
        if not isinstance(problem.penalty, L1):
            raise TypeError(f"{type(self).__name__} takes an L1 penalty; got {type(problem.penalty).__name__}")

    def certify(self, problem, state):
        """The duality gap at the iterate."""
        return certify_optimality(problem, state.x)


@pytree
@dataclasses.dataclass(frozen=True)
class SubgradientSGD(_OnL1):
    """``w - a_k v`` with the sub-gradient ``v`` of smallest norm: ``g_j + weight sign(w_j)``, and where ``w_j = 0`` the
    part of ``g_j`` beyond ``weight``.

    With `truncate`, a coordinate that would change its sign is set to zero instead.

    Shor (1985).

    >>> from cumulant import optim
    >>> problem = optim.Composite(optim.LeastSquares([[2.0]], [3.0]), optim.L1(1.0))
    >>> optim.run(SubgradientSGD(0.25), problem, [1.0], max_steps=1, tol=None).x     # 1 - (2 (2 - 3) + 1) / 4
    array([1.25])
    """

    truncate: bool = dataclasses.field(default=False, metadata={"static": True})

    def step(self, problem, state):
        """One sub-gradient step."""
        key, new, a = self._draw(state)
        w, weight = state.x, problem.penalty.weight
        g = self.gradients(problem.smooth, w, state.step, key)
        at_zero = jnp.sign(g) * jnp.maximum(jnp.abs(g) - weight, 0.0)
        after = w - a * jnp.where(w != 0, g + weight * jnp.sign(w), at_zero)
        if self.truncate:
            after = jnp.where(w * after < 0, 0.0, after)
        return new._replace(x=after)


@pytree
@dataclasses.dataclass(frozen=True)
class SmoothedL1SGD(_OnL1):
    """``w - a_k (g + weight tanh(sharpness w / 2))``: the gradient of ``|w|`` smoothed to
    ``(log(1 + e^(alpha w)) + log(1 + e^(-alpha w))) / alpha`` (Schmidt, Fung and Rosales 2007).

    >>> from cumulant import optim
    >>> problem = optim.Composite(optim.LeastSquares([[2.0]], [3.0]), optim.L1(1.0))
    >>> optim.run(SmoothedL1SGD(0.25), problem, [0.0], max_steps=1, tol=None).x      # tanh 0 = 0: 6 / 4
    array([1.5])
    """

    sharpness: Any = 10.0

    def step(self, problem, state):
        """One gradient step on the smoothed objective."""
        key, new, a = self._draw(state)
        g = self.gradients(problem.smooth, state.x, state.step, key)
        slope = problem.penalty.weight * jnp.tanh(self.sharpness * state.x / 2)
        return new._replace(x=state.x - a * (g + slope))


@pytree
@dataclasses.dataclass(frozen=True)
class AugmentedLagrangianSGD(_Noisy):
    """A gradient step on the augmented Lagrangian, then a step of the multipliers (Wang and Spall 2003).

    ``q = max(0, z + r_k c(x))``; ``x - a_k (g_k + J^T q)``; ``z = max(0, z + r_k c(x_next))``, from ``z = 0``. The
    penalty is ``r_k = penalty / (k0 + k)^0.1`` (``k = 1, 2, ...``), or one over it where `inverted`: the description
    leaves open which of the two multiplies the constraints.

    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import Bounds
    >>> problem = ConstrainedProblem(optim.Quadratic(np.eye(2), [-1.0, 1.0]), Bounds(0.0))     # solution (0, 1)
    >>> solver = AugmentedLagrangianSGD(0.1, optim.gradients.Exact(), penalty=2.0)
    >>> optim.run(solver, problem, [1.0, 1.0], max_steps=500, tol=None).x.round(3) + 0.0
    array([0., 1.])
    """

    penalty: Any = 50.0
    k0: Any = 50.0
    inverted: bool = dataclasses.field(default=False, metadata={"static": True})

    takes: ClassVar[type] = ConstrainedProblem

    def init(self, problem, x0, rng):
        """No multipliers yet."""
        state = super().init(problem, x0, rng)
        return state._replace(z=jnp.zeros_like(problem.constraints.value(x0)))

    def step(self, problem, state):
        """One step of ``x`` and one of ``z``."""
        key, new, a = self._draw(state)
        objective, constraints = problem.objective, problem.constraints
        r = self.penalty / (self.k0 + state.step + 1.0) ** 0.1
        r = jnp.asarray(1 / r if self.inverted else r, state.x.dtype)
        g = objective.lift_gradient(self.gradients(problem.loss, objective.coefficients(state.x), state.step, key))
        q = jnp.maximum(state.z + r * constraints.value(state.x), 0.0)
        x = state.x - a * (g + constraints.jacobian_transpose(state.x, q))
        return new._replace(x=x, z=jnp.maximum(state.z + r * constraints.value(x), 0.0))

    def certify(self, problem, state):
        """The gap at the iterate, where it is feasible."""
        return certify_constrained(problem, state.x)


def dykstra(
    projections: Sequence[Callable[[Any], Any]], x: Any, *, tol: float = 1e-12, max_sweeps: int = 10_000
) -> np.ndarray:
    """The nearest point of an intersection of convex sets, from the projections onto each (Boyle and Dykstra 1986).

    Stops when a sweep moves neither the point nor the corrections by more than `tol`, relative to the size of `x`.

    >>> halves = (lambda v: np.maximum(v, 0.0), lambda v: v - max(v.sum() - 1.0, 0.0) / v.size)
    >>> dykstra(halves, [2.0, 1.0]).round(8)
    array([1., 0.])
    """
    if not isinstance(projections, Sequence) or not projections:
        raise ValueError("projections must be a list of at least one function")
    for project in projections:
        checks.takes("each of projections", project, "x")
    checks.positive("tol", tol)
    checks.whole("max_sweeps", max_sweeps)
    x = np.array(checks.real_array("x", x))
    if not x.size:
        raise ValueError("x must have at least one entry")
    corrections = [np.zeros_like(x) for _ in projections]
    room = tol * (1.0 + float(np.max(np.abs(x), initial=0.0)))
    moved = np.inf
    for _ in range(max_sweeps):
        moved = 0.0
        for i, project in enumerate(projections):
            point = np.asarray(project(x + corrections[i]), dtype=np.float64)
            correction = x + corrections[i] - point
            moved = max(moved, np.max(np.abs(correction - corrections[i])), np.max(np.abs(point - x)))
            corrections[i], x = correction, point
        if moved <= room:
            return x
    raise NotConvergedError(f"the alternating projections still move by {moved:.3g} after {max_sweeps} sweeps")
