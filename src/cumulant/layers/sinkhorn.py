"""Entropic optimal transport as a layer: value, plan and potentials in the log domain, with their derivatives.

The value is differentiated by the envelope theorem, the plan and the potentials by the implicit function theorem on a
system whose one free direction, a constant added to one potential and taken from the other, is fixed.
"""

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jax.scipy.special import logsumexp

from cumulant import checks
from cumulant.certificates import Certificate, Subject
from cumulant.errors import DomainError, NotConvergedError
from cumulant.layers.transport_bounds import TransportProblem, certify_entropic_transport, certify_transport
from cumulant.precision import any_tracer, precise
from cumulant.pytrees import pytree


@pytree
@dataclass(frozen=True)
class Sinkhorn:
    """What `sinkhorn` found; every field has the leading axes of its input.

    `value` is ``min <C, P> + eps sum P (log P - 1)``; `plan` the matrix ``P = exp((f + g - C) / eps)``; `f` and `g` the
    potentials, of equal sum; `violation` the distance ``|P 1 - a|_1`` of the row sums from `a` (those of the columns
    are exact) and `steps` the number of pairs of updates.

    Cuturi (2013).

    >>> found = sinkhorn([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], [0.5, 0.5], 1.0)
    >>> found.plan.round(4), bool(found.violation < 1e-8)
    (array([[0.3655, 0.1345],
           [0.1345, 0.3655]]), True)
    """

    value: Any
    plan: Any
    f: Any
    g: Any
    violation: Any
    steps: Any
    cost: Any
    a: Any
    b: Any
    epsilon: Any

    @property
    def transport_cost(self) -> Any:
        """``<C, P>``: the cost of the plan without its entropy."""
        return (self.cost * self.plan).sum(axis=(-2, -1))

    @property
    def subject(self) -> Subject:
        """What the certificates speak of: the problem and the potentials."""
        return Subject(TransportProblem(self.cost, self.a, self.b, self.epsilon), (self.f, self.g))

    def certify(self) -> Certificate:
        """An interval around the regularised value (`certify_entropic_transport`); for one problem, not for a batch."""
        return certify_entropic_transport(*self.subject)

    def certify_transport(self) -> Certificate:
        """An interval that contains the cost of optimal transport *without* entropy (`layers.certify_transport`)."""
        return certify_transport(*self.subject)


def sinkhorn(cost: Any, a: Any, b: Any, epsilon: Any, *, tol: float | None = None, max_steps: int = 10_000) -> Sinkhorn:
    """Entropic optimal transport between the histograms `a` and `b`, by Sinkhorn's iterations in the log domain.

    ``value = min_P <C, P> + eps sum P (log P - 1)`` over ``P >= 0`` with row sums ``a`` and column sums ``b``, which is
    ``max_{f, g} <a, f> + <b, g> - eps sum exp((f + g - C) / eps)``. The two halves of an update follow each other,
    ``f <- eps (log a - lse((g - C) / eps))`` and then ``g`` with the new ``f``: done at once, as printed in Peyré 2021
    (section 10.7), they alternate between two states for ever.

    Everything is differentiable in the four arguments, in both modes and to any order. For the value no system is
    solved: its gradients are ``f``, ``g``, ``P`` and ``sum P (log P - 1)`` (envelope theorem; ``f = eps log u``,
    and the ``eps`` is missing in print). For the plan and the potentials one is solved, of the size of the smaller
    histogram. A derivative in `a` or `b` means something only along changes that keep the two masses equal; the gauge
    ``sum f = sum g`` makes it unique.

    Parameters
    ----------
    cost : array of shape (..., n, m)
        ``C``.
    a, b : arrays of shape (..., n) and (..., m)
        Positive, with the same sum; leave out empty bins. Leading axes are batches, and are broadcast.
    epsilon : float or array
        The strength of the entropy. The work grows like ``1 / epsilon``.
    tol : float, optional
        On ``|P 1 - a|_1 / sum(a)``; by default 1e-10 in double and 1e-5 in single precision.
    max_steps : int
        Where it is not enough the answer is refused; under `jit`, `grad` and `vmap` it is NaN.

    Examples
    --------
    >>> found = sinkhorn([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]], [0.2, 0.5, 0.3], [0.6, 0.4], 0.5)
    >>> found.plan.round(8)
    array([[0.19646347, 0.00353653],
           [0.36722616, 0.13277384],
           [0.03631037, 0.26368963]])
    >>> print(found.value.round(9))
    -0.713986133
    """
    if tol is not None:
        checks.positive("tol", tol)
    checks.whole("max_steps", max_steps)
    _shapes(cost, a, b)
    if not any_tracer(cost, a, b, epsilon):
        _values(cost, a, b, epsilon, tol)
    found, allowed = _transport(cost, a, b, epsilon, tol, max_steps)
    if not any_tracer(found.violation) and not np.all(np.asarray(found.violation) <= np.asarray(allowed)):
        raise NotConvergedError(
            f"Sinkhorn's iteration did not converge in {max_steps} steps: the row sums are off by "
            f"{float(np.max(np.asarray(found.violation))):.3g}; give more max_steps, a larger tol or a larger epsilon"
        )
    return found


def _shapes(cost, a, b):
    for name, each in (("cost", cost), ("a", a), ("b", b)):
        if not isinstance(each, jax.Array):
            checks.real_array(name, each, finite=False)
    shapes = [np.shape(each) for each in (cost, a, b)]
    if len(shapes[0]) < 2 or len(shapes[1]) < 1 or len(shapes[2]) < 1:
        raise ValueError(f"cost needs two axes, a and b one each; got shapes {', '.join(map(str, shapes))}")
    if shapes[0][-2:] != (shapes[1][-1], shapes[2][-1]) or 0 in shapes[0][-2:]:
        raise ValueError(
            f"cost must have a row for each entry of a and a column for each of b; got shapes "
            f"{', '.join(map(str, shapes))}"
        )


def _values(cost, a, b, epsilon, tol):
    single = isinstance(cost, jax.Array) and cost.dtype != jnp.float64
    epsilon = checks.real_array("epsilon", epsilon, finite=False)
    cost, a, b = (np.asarray(each, dtype=np.float64) for each in (cost, a, b))
    if not np.all(np.isfinite(cost)):
        raise ValueError("cost must be finite; it holds NaN or infinity")
    for name, value in (("a", a), ("b", b)):
        if not np.all((value > 0) & np.isfinite(value)):
            raise DomainError(f"{name} must be positive and finite: leave out empty bins; got {value.min()}")
    if not np.all((epsilon > 0) & np.isfinite(epsilon)):
        raise DomainError(f"epsilon must be positive and finite; got {epsilon.min()}")
    masses = a.sum(-1), b.sum(-1)
    # Row sums cannot be closer to a than the mass of b is.
    if not np.allclose(*masses, rtol=(1e-5 if single else 1e-10) if tol is None else tol, atol=0):
        raise DomainError(
            f"a and b must have the same sum, to within tol: divide each by its own; got {masses[0]} and {masses[1]}"
        )


@precise(static=("tol", "max_steps"))
def _transport(cost, a, b, epsilon, tol, max_steps):
    given = [jnp.asarray(each, jnp.result_type(each, float)) for each in (cost, a, b, epsilon)]
    limit = (1e-10 if given[0].dtype == jnp.float64 else 1e-5) if tol is None else tol

    def one(cost, a, b, epsilon):
        f, g, steps = _potentials(limit, max_steps, cost, a, b, epsilon)
        plan = jnp.exp((f[:, None] + g[None, :] - cost) / epsilon)
        violation = jnp.sum(jnp.abs(jax.lax.stop_gradient(plan.sum(axis=1) - a)))
        # Measured again on the plan itself, whose rounding may add to what the loop has seen.
        allowed = 2 * limit * jax.lax.stop_gradient(a).sum()
        value = _dual(cost, a, b, epsilon, f, g)
        # A factor, not a choice: the derivative of a constant NaN would be zero.
        fine = jnp.where(violation <= allowed, 1.0, jnp.nan).astype(cost.dtype)
        value, plan, f, g = (fine * each for each in (value, plan, f, g))
        return value, plan, f, g, violation, steps.astype(int), cost, a, b, epsilon, allowed

    shapes = "(n,m),(n),(m),()->(),(n,m),(n),(m),(),(),(n,m),(n),(m),(),()"
    *fields, allowed = jnp.vectorize(one, signature=shapes)(*given)
    return Sinkhorn(*fields), allowed


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _potentials(limit, max_steps, cost, a, b, epsilon):
    """The two potentials in the gauge ``sum f = sum g``, and the number of steps (as a float: it has a tangent)."""
    log_a, log_b, mass = jnp.log(a), jnp.log(b), jnp.sum(a)

    def update(f):
        g = epsilon * (log_b - logsumexp((f[:, None] - cost) / epsilon, axis=0))
        return g, epsilon * (log_a - logsumexp((g[None, :] - cost) / epsilon, axis=1))

    def unfinished(carry):
        f, _, new, k = carry
        # Row i of the plan of (f, g) sums to a_i exp((f_i - new_i) / eps): the next update measures this one.
        violation = jnp.sum(a * jnp.abs(jnp.expm1((f - new) / epsilon)))
        return ~(violation <= limit * mass) & (k < max_steps)

    def advance(carry):
        _, _, f, k = carry
        return (f, *update(f), k + 1)

    start = jnp.zeros_like(a)
    f, g, _, k = jax.lax.while_loop(unfinished, advance, (start, *update(start), 1))
    shift = (f.sum() - g.sum()) / (f.size + g.size)
    return f - shift, g + shift, jnp.asarray(k, cost.dtype)


@_potentials.defjvp
def _(limit, max_steps, primals, tangents):
    cost, _, _, epsilon = primals
    f, g, steps = _potentials(limit, max_steps, *primals)

    def excess(cost, a, b, epsilon):
        plan = jnp.exp((f[:, None] + g[None, :] - cost) / epsilon)
        return plan.sum(axis=1) - a, plan.sum(axis=0) - b

    rows, columns = jax.jvp(excess, primals, tangents)[1]
    plan = jnp.exp((f[:, None] + g[None, :] - cost) / epsilon)
    df, dg = _gauge_fixed_solve(plan, -epsilon * rows, -epsilon * columns)
    return (f, g, steps), (df, dg, jnp.zeros_like(steps))


def _gauge_fixed_solve(plan, rows, columns):
    """``w`` with ``[[diag P1, P], [P^T, diag P^T1]] w = (rows, columns)`` and equal sums.

    The null vector of the matrix is ``(1, -1)``. The larger block is eliminated, and a multiple of the matrix of ones
    fills the null space of what remains: for a right-hand side that can be met it changes nothing.
    """
    if plan.shape[0] < plan.shape[1]:
        second, first = _gauge_fixed_solve(plan.T, columns, rows)
        return first, second
    row_sums, column_sums = plan.sum(axis=1), plan.sum(axis=0)
    scaled = plan / row_sums[:, None]
    ones = jnp.full(plan.shape[1:] * 2, column_sums.mean() / plan.shape[1], plan.dtype)
    schur = cho_factor(jnp.diag(column_sums) - plan.T @ scaled + ones)
    second = cho_solve(schur, columns - scaled.T @ rows)
    first = rows / row_sums - scaled @ second
    shift = (first.sum() - second.sum()) / (first.size + second.size)
    return first - shift, second + shift


def _dual_value(cost, a, b, epsilon, f, g):
    plan = jnp.exp((f[:, None] + g[None, :] - cost) / epsilon)
    return jnp.dot(a, f) + jnp.dot(b, g) - epsilon * jnp.sum(plan)


# At its maximum the dual does not change with the potentials, so that their tangents are left out; those of its
# gradient are not, and second derivatives go through them.
_dual = jax.custom_jvp(_dual_value)


@_dual.defjvp
def _(primals, tangents):
    *problem, f, g = primals
    change = jax.jvp(lambda c, a, b, e: _dual_value(c, a, b, e, f, g), tuple(problem), tuple(tangents[:4]))[1]
    return _dual(*primals), change
