"""Mirror descent: a gradient step taken in the coordinates of an entropy."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.certificates import Subject
from cumulant.errors import DomainError
from cumulant.geometry import Entropy, Shannon
from cumulant.optim.certify.mirror_descent import certify_mirror_descent, relative_constants
from cumulant.optim.protocol import Solver, require_gradient
from cumulant.optim.schedules import as_schedule
from cumulant.optim.solvers.implicit_step import implicit_step
from cumulant.pytrees import pytree


class MirrorDescentState(NamedTuple):
    """The iterate in both coordinates, with what the certificates need."""

    x: Any
    dual: Any
    value: Any
    gradient: Any
    step: Any  # steps taken
    shrink: Any  # by how much the step size was reduced so far to stay inside the domain
    travelled: Any  # the sum of the step sizes
    longest: Any  # the largest of them; the largest number once an implicit step was not solved
    relative_strong_convexity: Any
    radius: Any  # negative where unknown; on the simplex with what implicit steps left of their equations
    convex: Any


@pytree
@dataclasses.dataclass(frozen=True)
class MirrorDescent(Solver):
    """``grad psi(x_next) = grad psi(x) - tau grad f(x)``, iterated in the dual variable ``u = grad psi(x)``.

    If ``f`` is convex and ``L``-smooth relative to ``psi`` and every ``tau <= 1/L``:
    ``f(x_k) - f(x) <= D(x|x_0) / sum tau`` for every ``x`` (`rates.mirror`; Lu, Freund and Nesterov 2018, theorem 3.1).

    Certificates, of which the smallest is given:

    * ``mu D(x | grad psi*(u - grad f(x) / mu))`` where ``f`` is ``mu``-strongly convex relative to ``psi``: for the
      Euclidean entropy ``|grad f|^2 / (2 mu)``, for a likelihood the exact KL divergence;
    * on the simplex, for convex ``f``: ``<grad f(x), x> - min_i grad f(x)_i`` (Frank and Wolfe 1956);
    * the rate above, where `radius` bounds ``D(x*|x_0)`` (on the simplex ``max_i -log x0_i`` does).

    Parameters
    ----------
    entropy : Entropy
        From `cumulant.geometry`, or `CumulantEntropy(family)`.
    step_size : float, schedule or None
        None is one over the relative smoothness of the problem. A step that would leave the domain of ``grad psi*``
        is halved.
    implicit : bool
        Take ``x_next = argmin f(x) + D(x|x_k) / tau`` instead, over the simplex if that is the constraint, by Newton's
        method: any ``tau`` will do (`rates.implicit_mirror`; Chen and Teboulle 1993).
    constraint : None or "simplex"
        With the Shannon entropy, iterates of sum one: ``x_next ~ x exp(-tau grad f)``.
    radius : float, optional
        An upper bound on ``D(x*|x_0)``, if you know one.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Quadratic(np.eye(3), [1.0, 0.5, -1.0])
    >>> result = optim.run(MirrorDescent(Shannon(), constraint="simplex"), problem, np.ones(3) / 3, tol=1e-3)
    >>> result.x.round(2)
    array([0.75, 0.25, 0.  ])
    """

    entropy: Any
    step_size: Any = None
    implicit: bool = dataclasses.field(default=False, metadata={"static": True})
    constraint: str | None = dataclasses.field(default=None, metadata={"static": True})
    radius: float | None = None

    backend: ClassVar[str] = "jax"

    def __post_init__(self):
        if self.constraint not in (None, "simplex"):
            raise ValueError(f"constraint must be None or 'simplex'; got {self.constraint!r}")
        # JAX puts placeholders in while it takes the solver apart.
        concrete = isinstance(self.entropy, Entropy)
        if concrete and self.constraint == "simplex" and not isinstance(self.entropy, Shannon):
            raise ValueError(
                f"the simplex needs the Shannon entropy, whose projection is a rescaling; got {self.entropy}"
            )
        if self.radius is not None:
            checks.not_negative("radius, a bound on D(x*|x0),", self.radius)
        if isinstance(self.step_size, int | float):
            as_schedule(self.step_size)
        elif isinstance(self.step_size, str | list | tuple | dict):
            raise TypeError(f"step_size must be a number or a schedule; got {self.step_size!r:.60}")

    def init(self, problem, x0, rng):
        """Both coordinates of ``x0``, and the constants relative to the entropy."""
        if not isinstance(self.entropy, Entropy):
            raise TypeError(f"entropy must be an Entropy, such as Shannon(); got {type(self.entropy).__name__}")
        require_gradient(self, problem)
        if not bool(jnp.all(self.entropy.in_domain(x0))) or not bool(jnp.all(jnp.isfinite(self.entropy.gradient(x0)))):
            raise DomainError(f"x0 must be inside the domain of {self.entropy}, off its boundary; got {np.asarray(x0)}")
        radius = -1.0 if self.radius is None else float(self.radius)
        if self.constraint == "simplex":
            if abs(float(jnp.sum(x0)) - 1) > 1e-6:
                raise DomainError(
                    f"x0 must be on the simplex (its entries add up to one); got the sum {float(jnp.sum(x0)):.6g}"
                )
            x0 = x0 / jnp.sum(x0)
            if self.radius is None:
                radius = float(jnp.max(-jnp.log(x0)))
        constants = relative_constants(problem, self.entropy, self.constraint)
        if self.step_size is None and constants.smoothness is None:
            raise ValueError(
                f"step_size is needed: the smoothness of {type(problem).__name__} relative to {self.entropy} is unknown"
            )
        value, gradient = problem.value_and_gradient(x0)
        zero, one = jnp.zeros_like(value), jnp.ones_like(value)
        mu = one * (constants.strong_convexity if self.constraint is None else 0.0)
        start = one if self.step_size is not None or constants.smoothness is None else one / constants.smoothness
        dual = self.entropy.gradient(x0)
        convex = bool(problem.convex)
        return MirrorDescentState(x0, dual, value, gradient, 0, start, zero, zero, mu, one * radius, convex)

    def _planned(self, state):
        """The step size the schedule asks for, times what was learnt about the domain."""
        if self.step_size is None:
            return state.shrink
        schedule = self.step_size if callable(self.step_size) else lambda _: self.step_size
        return schedule(state.step) * state.shrink

    def step(self, problem, state):
        """One step in the dual variable."""
        planned, radius, solved = self._planned(state), state.radius, True
        simplex = self.constraint == "simplex"
        if self.implicit:
            dual, left, solved = implicit_step(problem, self.entropy, state.dual, planned, simplex)
            taken = planned
            if simplex:
                # tau (f(x) - f(y)) <= D(y|x_k) - D(y|x) - D(x|x_k) + <r, x - y>, of y = x* and of y = x_k, from where
                # f may have risen by <r, x - y> / tau on all that was travelled.
                radius = jnp.where(radius >= 0, radius + left * (1 + state.travelled / taken), radius)
        else:

            def outside(tau):
                return ~jnp.all(self.entropy.in_conjugate_domain(state.dual - tau * state.gradient)) & (
                    tau > 1e-20 * planned
                )

            taken = jax.lax.while_loop(outside, lambda tau: tau / 2, planned)
            dual = state.dual - taken * state.gradient
        if simplex:
            dual = jax.nn.log_softmax(dual, axis=tuple(range(dual.ndim)))
        x = self.entropy.conjugate_gradient(dual)
        value, gradient = problem.value_and_gradient(x)
        return state._replace(
            x=x,
            dual=dual,
            value=value,
            gradient=gradient,
            step=state.step + 1,
            shrink=state.shrink * (taken / planned),
            travelled=state.travelled + taken,
            longest=jnp.where(solved, jnp.maximum(state.longest, taken), jnp.finfo(value.dtype).max),
            radius=radius,
        )

    def measure(self, problem, state):
        """The value and the smallest of the bounds."""
        if self.constraint == "simplex":
            bound = jnp.where(state.convex, jnp.vdot(state.gradient, state.x) - jnp.min(state.gradient), jnp.inf)
        else:
            bound = _relative_gap(self.entropy, state.x, state.dual, state.gradient, state.relative_strong_convexity)
        found = {"value": state.value, "bound": bound, "travelled": state.travelled}
        free = {"residual": jnp.linalg.norm(state.gradient.reshape(-1))} if self.constraint is None else {}
        return found | free

    def certify(self, problem, state):
        """The smallest of the certificates that can be given."""
        return certify_mirror_descent((problem, self), state)

    def subject(self, problem, state):
        """The problem with the solver, and the state: the rate speaks of the steps taken."""
        return Subject((problem, self), state)


def _relative_gap(entropy, x, dual, gradient, mu):
    """``mu D(x | grad psi*(u - g / mu))``; infinite where ``mu`` is zero or the point does not exist."""
    safe = jnp.where(mu > 0, mu, 1.0)
    target = dual - gradient / safe
    exists = jnp.all(entropy.in_conjugate_domain(target)) & (mu > 0)
    lowest = entropy.conjugate_gradient(jnp.where(exists, target, dual))
    return jnp.where(exists, mu * jnp.sum(entropy.divergence(x, lowest)), jnp.inf)
