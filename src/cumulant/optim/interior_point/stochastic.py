"""Interior-point stochastic approximation: primal-dual steps on noisy gradients."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from cumulant import randomness
from cumulant.optim.gradients import ByRows, check_oracle
from cumulant.optim.interior_point.centring import PowerSigma
from cumulant.optim.interior_point.certify import known
from cumulant.optim.interior_point.curvature import damped_bb, damped_bfgs
from cumulant.optim.interior_point.moves import PrimalDual, centre, direction, follow
from cumulant.optim.interior_point.problem import ConstrainedProblem
from cumulant.optim.interior_point.step_sizes import Harmonic
from cumulant.optim.schedules import as_schedule
from cumulant.pytrees import pytree

# Each step may come 0.995 of the way to the boundary, so that after some twenty of them float32 runs out of exponents.
# There, slacks and multipliers are kept above this share of the largest of them, and mu above its own floor.
LEAST_SHARE, LEAST_MU = 1e-6, 1e-5


class InteriorPointSAState(NamedTuple):
    """The iterate with its multipliers and slacks, the curvature learnt, and the sums that tell how the run went."""

    x: Any
    z: Any
    slack: Any
    step: Any
    key: Any
    curvature: Any  # of the loss: a number, a diagonal or a matrix
    last_point: Any  # of the loss, with the gradient there: empty where no curvature is learnt
    last_gradient: Any
    mu: Any
    primal_step: Any
    dual_step: Any
    cuts: Any  # steps shorter than allowed
    stuck: Any  # steps of length zero
    allowed: Any  # sum of the allowed steps
    total: Any  # sum of the realised (primal) steps, of their squares, and of step times bias
    squares: Any
    bias: Any
    known: Any


@pytree
@dataclasses.dataclass(frozen=True)
class InteriorPointSA(PrimalDual):
    """Each step solves the primal-dual equations with one noisy gradient, and never leaves the interior.

    Step ``k`` (Carbonetto 2009, figure 2.1): ``mu = sigma_k <s, z> / m``; a noisy gradient ``g`` at ``x``; the
    direction ``(dx, dz)`` of `solve_primal_dual`; then the longest step that is at most ``a_k``, at most 0.995 of the
    way to the boundary of ``z >= 0``, and keeps ``c(x) < 0``. There is no line search on the objective, whose noise
    would make it meaningless.

    What holds at every step, whatever the gradients: ``c(x) < 0`` and ``z > 0``. For affine constraints the gap obeys
    ``gap_next = (1 - a (1 - sigma)) gap - a^2 <J dx, dz>`` exactly. That ``x`` converges to the minimiser is a
    **conjecture**: Carbonetto (2009, section 2.3.1) proves it up to a gap at boundary points, for a convex problem with
    a bounded set of minimisers, unbiased gradients of bounded variance, ``sum a_k = inf``, ``sum a_k^2 < inf`` and
    ``sum a_k mu_k |J^T (1/c)| < inf``; and the condition on ``sum a_k`` speaks of the realised steps, which cuts may
    shorten: see `rm_budget`.

    In float32 (JAX arrays without the x64 flag) slacks and multipliers are kept above a millionth of the largest of
    them, and ``mu`` above 1e-5, for sets whose points can be moved in closed form (`Bounds`, `AbsoluteBounds`,
    `SimplexConstraints`): else ``z / s`` overflows. The solution is then met to about that, and the equation of the gap
    holds up to it.

    The certificate does not rest on the conjecture: it is the duality gap at the iterate, from the data.

    Parameters
    ----------
    schedule : schedule or float
        The longest steps allowed, `Harmonic(50)` by default.
    centring : ConstantSigma, PowerSigma or MehrotraSigma
        ``sigma_k``, which must tend to zero for the solution to be reached: `PowerSigma(0.9)` by default.
    gradients : oracle of `optim.gradients`
        Where noisy gradients come from: one row of the data a step by default.
    curvature : str, number or array
        What is used for the Hessian of the loss: ``"identity"``, a positive number, a positive diagonal, a matrix, or
        learnt as the run goes, ``"bb"`` (`damped_bb`) or ``"bfgs"`` (`damped_bfgs`; with an l1 penalty use the
        formulation ``"bound"``).
    z0 : number or array
        The multipliers to start from. ``z0 / slack`` is the first curvature of the barrier in each coordinate.
    separate_steps : bool
        A length for ``x`` and another one for ``z``.
    paired : bool
        For learnt curvature: take both gradients of a difference on the same draw, which costs a second gradient.
        Without it, differences are between independent draws, as in Carbonetto (2009, section 3); a displacement then
        goes against the noise that caused it, which looks like a curvature of one over the step and feeds on itself.
        Only gradients with little noise bear that.
    damping : float
        ``gamma`` of `damped_bfgs`.
    route : str
        The linear algebra: ``"auto"``, by the structure of the constraints; ``"cholesky"``; ``"full"``;
        ``"sparse_cholesky"``, for patterns with a narrow band; ``"ldl"``, for an indefinite Hessian, refused (a step of
        length zero) where the inertia is not that of a step of descent. See `solve_primal_dual`; the last two leave the
        compiled program at each step.

    Examples
    --------
    >>> import numpy as np
    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import Bounds
    >>> problem = ConstrainedProblem(optim.Quadratic(np.eye(2), [-1.0, 1.0]), Bounds(0.0))     # solution (0, 1)
    >>> solver = InteriorPointSA(Harmonic(1), gradients=optim.gradients.Noisy(1.0))
    >>> result = optim.run(solver, problem, [1.0, 1.0], max_steps=2000, tol=None, rng=0)
    >>> bool(np.all(np.abs(result.x - [0.0, 1.0]) < 0.1))
    True
    """

    schedule: Any = dataclasses.field(default_factory=Harmonic)
    centring: Any = dataclasses.field(default_factory=PowerSigma)
    gradients: Any = dataclasses.field(default_factory=ByRows)
    curvature: Any = "identity"
    z0: Any = 1.0
    separate_steps: bool = dataclasses.field(default=False, metadata={"static": True})
    paired: bool = dataclasses.field(default=True, metadata={"static": True})
    damping: Any = 0.75
    route: str = dataclasses.field(default="auto", metadata={"static": True})

    every: ClassVar[int] = 100

    def __post_init__(self):
        super().__post_init__()
        if isinstance(self.schedule, bool | int | float):
            object.__setattr__(self, "schedule", as_schedule(self.schedule, "schedule"))
        check_oracle(self.gradients)
        words = ("identity", "bb", "bfgs")
        if isinstance(self.curvature, str) and self.curvature not in words:
            raise ValueError(f"curvature must be one of {', '.join(words)}, or numbers; got {self.curvature!r}")
        if isinstance(self.curvature, int | float) and not self.curvature > 0:
            raise ValueError(f"curvature must be positive; got {self.curvature}")
        if isinstance(self.damping, int | float) and not 0 < self.damping < 1:
            raise ValueError(f"damping must be strictly between 0 and 1; got {self.damping}")

    @property
    def learns(self) -> bool:
        """Whether the curvature is learnt from differences of gradients."""
        return isinstance(self.curvature, str) and self.curvature != "identity"

    def init(self, problem, x0, rng):
        """Slacks and multipliers at a strictly feasible ``x0``."""
        z, slack = self._start(problem, x0)
        w = problem.objective.coefficients(x0)
        curvature = 1.0 if isinstance(self.curvature, str) else self.curvature
        if isinstance(self.curvature, str) and self.curvature == "bfgs":
            curvature = jnp.eye(w.size)
        empty, none = jnp.zeros((0,), x0.dtype), jnp.zeros((), int)
        numbers = ("mu", "primal_step", "dual_step", "allowed", "total", "squares", "bias")
        return InteriorPointSAState(
            x=x0,
            z=z,
            slack=slack,
            step=none,
            key=randomness.key(rng),
            curvature=jnp.asarray(curvature, x0.dtype),
            last_point=jnp.array(w) if self.learns else empty,
            last_gradient=jnp.zeros_like(w) if self.learns else empty,
            cuts=none,
            stuck=none,
            known=known(problem),
            **dict.fromkeys(numbers, jnp.zeros((), x0.dtype)),
        )

    def step(self, problem, state):
        """Draw a gradient and take a step."""
        key, now = jax.random.split(state.key)
        w = problem.objective.coefficients(state.x)
        gradient = self.gradients(problem.loss, w, state.step, now)
        again = self.paired and self.learns
        previous = self.gradients(problem.loss, state.last_point, state.step, now) if again else None
        return ipsa_step(self, problem, state._replace(key=key), gradient, previous=previous)

    def measure(self, problem, state):
        """The value and its distance to the optimum, the surrogate gap ``<s, z>``, and how the steps went."""
        return super().measure(problem, state) | {"mu": state.mu, "cuts": state.cuts}


def ipsa_init(solver: InteriorPointSA, problem: ConstrainedProblem, x0: Any, rng: Any = 0) -> InteriorPointSAState:
    """The state before the first gradient of a stream: for `ipsa_step`, on JAX arrays.

    Carbonetto (2009, figure 2.1).

    >>> from cumulant.optim.interior_point import l1_regularize
    >>> problem = l1_regularize(None, 0.5)
    >>> print(ipsa_init(InteriorPointSA(), problem, problem.start(1)).slack)
    [1. 1.]
    """
    return solver.init(problem, jnp.asarray(x0, dtype=float), rng)


def ipsa_step(
    solver: InteriorPointSA,
    problem: ConstrainedProblem,
    state: InteriorPointSAState,
    gradient: Any,
    *,
    curvature: Any = None,
    previous: Any = None,
) -> InteriorPointSAState:
    """One step with a gradient of your own: pure, for `jit`, `scan` and `vmap`.

    Carbonetto (2009, figure 2.1).

    Parameters
    ----------
    gradient : array
        A noisy gradient of the loss at ``problem.objective.coefficients(state.x)``. For an l1 penalty that is the
        gradient in ``w``; the penalty and the constraints are added here.
    curvature : number, diagonal or matrix, optional
        What is used for the Hessian of the loss in this step; else what the solver says.
    previous : array, optional
        For learnt curvature: the gradient of the same draw at the point before.

    Examples
    --------
    A stream of which only gradients are known:

    >>> from cumulant.optim.interior_point import ConstantSigma, l1_regularize
    >>> problem = l1_regularize(None, 0.5)
    >>> solver = InteriorPointSA(0.5, ConstantSigma(0.5))
    >>> state = ipsa_init(solver, problem, problem.start(1))
    >>> @jax.jit
    ... def learn(state, feature, response):
    ...     error = response - feature @ problem.objective.coefficients(state.x)
    ...     return ipsa_step(solver, problem, state, -feature * error)
    >>> state = learn(state, jnp.array([2.0]), 3.0)
    >>> [f"{float(each):.4f}" for each in (*state.x, *state.z)]
    ['1.8529', '0.1471', '0.0050', '1.7107']
    """
    objective, constraints = problem.objective, problem.constraints
    x, z, slack = state.x, state.z, state.slack
    w = objective.coefficients(x)
    ceiling = jnp.asarray(solver.schedule(state.step), x.dtype)
    learnt = state.curvature
    if solver.learns:
        dy = gradient - (state.last_gradient if previous is None else previous)
        dw = jnp.where(state.step > 0, w - state.last_point, 0.0)
        if solver.curvature == "bb":
            learnt = damped_bb(learnt, dw, dy, ceiling)
        else:
            learnt = damped_bfgs(learnt, dw, dy, solver.damping, ceiling).B
    lifted = objective.lift_curvature(learnt if curvature is None else curvature, w.size)
    full = objective.lift_gradient(gradient)
    mu = centre(solver.centring, constraints, x, z, slack, full, lifted, state.step, solver.route)
    narrow = jnp.finfo(x.dtype).bits < 64
    if narrow:
        mu = jnp.maximum(mu, LEAST_MU)
    towards = direction(constraints, x, z, slack, full, mu, lifted, solver.route)
    move = follow(constraints, x, z, slack, towards, ceiling, solver.separate_steps)
    if narrow:
        x, slack = constraints.lift(move.x, move.slack, LEAST_SHARE * jnp.max(move.slack))
        x = constraints.settle(x)
        inside = jnp.all(constraints.value(x) < -constraints.value_rounding(x))
        x, slack = jnp.where(inside, x, move.x), jnp.where(inside, slack, move.slack)
        move = move._replace(x=x, slack=slack, z=jnp.maximum(move.z, LEAST_SHARE * jnp.max(move.z)))
    a = move.primal_step
    shortest = jnp.minimum(a, move.dual_step)
    pull = constraints.jacobian_transpose(state.x, 1 / state.slack)
    return state._replace(
        x=move.x,
        z=move.z,
        slack=move.slack,
        step=state.step + 1,
        curvature=learnt,
        last_point=w if solver.learns else state.last_point,
        last_gradient=gradient if solver.learns else state.last_gradient,
        mu=mu,
        primal_step=a,
        dual_step=move.dual_step,
        cuts=state.cuts + (shortest < ceiling),
        stuck=state.stuck + (a == 0),
        allowed=state.allowed + ceiling,
        total=state.total + a,
        squares=state.squares + a * a,
        bias=state.bias + a * mu * jnp.sqrt(jnp.vdot(pull, pull)),
    )
