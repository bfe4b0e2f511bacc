"""`solve`, the pure form of `run`: for `jit`, `vmap` and derivatives by the implicit function theorem."""

import contextlib
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from cumulant import checks, precision
from cumulant.optim.driver.flattening import flatten
from cumulant.optim.driver.implicit import LINEAR_SOLVERS, root
from cumulant.optim.driver.stepping import Program, healthy, join, measure, one_step, split, typed
from cumulant.optim.driver.window import is_still
from cumulant.optim.problems.base import problem_type
from cumulant.optim.problems.composite import Composite, parts
from cumulant.optim.problems.penalties import NoPenalty
from cumulant.optim.protocol import Problem, Solver


class SolveInfo(NamedTuple):
    """What `solve` knows about its answer: the steps taken, the value, its bound and residual, and whether they do."""

    steps: Any
    value: Any
    bound: Any
    residual: Any
    converged: Any


def solve(
    solver: Any,
    problem: Any,
    x0: Any,
    *,
    max_steps: int = 1000,
    tol: float = 1e-6,
    residual_tol: float | None = None,
    rng: Any = None,
    linear_solver: str = "auto",
) -> tuple[Any, SolveInfo]:
    """Minimise inside a compiled program: no trace, no clock, no certificate, but `jit`, `vmap` and `grad`.

    The answer ``x*(problem)`` is differentiable in the arrays of the problem: ``dx* = -H^-1 d(grad f)`` with the
    Hessian ``H`` at the answer, which must be invertible (for a `Composite`, the same of
    ``x - prox(x - tau grad f(x))``). The derivative in `x0` and in the settings of the solver
    is zero. Nothing of the iteration is stored.

    Parameters
    ----------
    solver : Solver
        With ``backend = "jax"``. Step sizes such as ``"1/L"`` need constants of the problem: while its arrays are
        traced they are unknown, and Newton's method, a line search or a number are to be used.
    problem : Problem
        Its arrays may be traced.
    x0 : array or pytree of arrays
        As for `run`.
    max_steps, tol
        Ended when the bound that the solver measures is at most ``tol * max(|f(x)|, |f(x0)|)``; where it knows no
        bound, when the residual (the norm of the gradient) is at most ``tol`` times the larger of one and its value at
        `x0`. Also where no further step makes progress.
    residual_tol : float, optional
        Also ended when the residual is at most this; as for `run`.
    rng
        For solvers that draw.
    linear_solver : str
        For derivatives: ``"dense"``, ``"iterative"`` (products only) or ``"auto"``, dense up to 1000 unknowns.

    Returns
    -------
    x : array or pytree of arrays
    info : SolveInfo
        ``info.converged`` is False where `tol` was not reached; nothing is raised.

    Examples
    --------
    The derivative of a ridge regression in its targets is ``(A^T A + l I)^-1 A^T``:

    >>> from cumulant import optim
    >>> A = jnp.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
    >>> def weights(y):
    ...     return solve(optim.Newton(), optim.LeastSquares(A, y, l2=0.5, reduction="sum"), jnp.zeros(2))[0]
    >>> with jax.enable_x64(True):
    ...     exact = jnp.linalg.solve(A.T @ A + 0.5 * jnp.eye(2), A.T)
    ...     print(bool(jnp.allclose(jax.jit(jax.jacobian(weights))(jnp.array([1.0, 2.0, 3.0])), exact)))
    True
    """
    if not (isinstance(solver, Solver) and solver.backend == "jax"):
        raise TypeError(f"solver must be a compiled solver (backend 'jax'); got {type(solver).__name__}")
    if not isinstance(problem, Problem) or not (problem.differentiable or isinstance(problem, Composite)):
        raise TypeError(f"problem must have a gradient or be a Composite; got {type(problem).__name__}")
    checks.whole("max_steps", max_steps)
    checks.not_negative("tol", tol)
    if residual_tol is not None:
        checks.not_negative("residual_tol", residual_tol)
    checks.choice("linear_solver", linear_solver, LINEAR_SOLVERS)
    problem, x0, restore = flatten(problem, x0)
    x0 = x0 if isinstance(x0, jax.Array) else checks.real_array("x0", x0)
    if problem.shape is not None and x0.shape != tuple(problem.shape):
        raise ValueError(f"x0 must have shape {problem.shape} for this {type(problem).__name__}; got {x0.shape}")
    wide = not precision.any_jax(solver, problem, x0)
    with precision.float64() if wide else contextlib.nullcontext():
        limits = (tol, -1.0 if residual_tol is None else residual_tol)
        x, info = _solve(solver, problem, x0, int(max_steps), limits, rng, linear_solver)
        if wide:
            x, info = precision.to_numpy(x), SolveInfo(*precision.to_numpy(tuple(info)))
    return restore(x), info


@problem_type
class _Known(Problem):
    """A problem with those of its constants that can be looked at."""

    problem: Any
    smoothness: Any
    strong_convexity: Any
    convex: Any

    quadratic = property(lambda self: self.problem.quadratic)

    def value(self, x):
        """``f(x)``."""
        return self.problem.value(x)

    def value_and_gradient(self, x):
        """Both."""
        return self.problem.value_and_gradient(x)

    def hessian_apply(self, x, v):
        """``hess f(x) v``."""
        return self.problem.hessian_apply(x, v)


def _known(problem: Any) -> dict[str, Any]:
    """The constants of the smooth part that do not depend on what is being traced."""
    smooth, found = parts(problem)[0], {}
    for name, kind in (("smoothness", float), ("strong_convexity", float), ("convex", bool)):
        with contextlib.suppress(jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
            constant = getattr(smooth, name)
            found[name] = None if constant is None else kind(constant)
    return found


def _posed(problem: Any, constants: dict[str, Any]) -> Any:
    smooth, penalty = parts(problem)
    known = _Known(smooth, *({"smoothness": None, "strong_convexity": 0.0, "convex": False} | constants).values())
    return known if isinstance(penalty, NoPenalty) else Composite(known, penalty)


def _solve(solver, problem, x0, max_steps, limits, rng, linear_solver):
    x0 = jnp.asarray(x0, dtype=jnp.result_type(x0, float))
    shape, outside = x0.shape, _known(problem)
    data, program = split(problem)
    settings, method = split(solver)
    data, settings = jax.tree.map(jnp.asarray, (data, settings))

    def equation(x, data):
        smooth, penalty = parts(join(program, data))
        x = x.reshape(shape)
        gradient = smooth.gradient(x)
        if isinstance(penalty, NoPenalty):
            return gradient.reshape(-1)
        tau = 1.0 / (outside.get("smoothness") or 1.0)
        return (x - penalty.prox(x - tau * gradient, tau)).reshape(-1)

    def search(data, start):
        x0, settings, limits = start
        given = join(program, data)
        posed = _posed(given, outside | _known(given))
        chosen = join(method, settings) if precision.any_tracer(solver) else solver
        state = typed(chosen.init(posed, x0.reshape(shape), rng))
        leaves, whole = split((join(method, settings), posed))
        x, info = _iterate(whole, jax.tree.map(jnp.asarray, leaves), state, limits, max_steps)
        return x.reshape(-1), info

    start = (x0.reshape(-1), settings, jnp.stack([jnp.asarray(limit, x0.dtype) for limit in limits]))
    symmetric = isinstance(parts(problem)[1], NoPenalty)
    x, found = root(equation, data, start, search, linear_solver, symmetric)
    steps, value, bound, residual, converged = found
    return x.reshape(shape), SolveInfo(steps.astype(int), value, bound, residual, converged > 0)


@functools.partial(jax.jit, static_argnames=("program", "max_steps"))
def _iterate(program: Program, data: list, state: Any, limits: Any, max_steps: int):
    """Steps until the target is reached, and the five numbers of `SolveInfo` as floats."""
    solver, problem = join(program, data)
    every = solver.every or 1
    tol, small = limits

    def look(state):
        found = measure(solver, problem, state)
        return found | {"residual": found.get("residual", jnp.asarray(jnp.inf)), "still": is_still(found, 0.0)}

    first = look(state)
    scale, least = jnp.abs(first["value"]), jnp.maximum(1.0, first["residual"])

    def reached(found):
        bound, value = found["bound"], found["value"]
        by_bound = bound <= tol * jnp.maximum(jnp.abs(value), scale)
        enough = jnp.where(jnp.isfinite(bound), by_bound, found["residual"] <= tol * least)
        return enough | (found["residual"] <= small)

    def unfinished(carry):
        state, k, found = carry
        return ~reached(found) & ~found["still"] & healthy(state) & (k < max_steps)

    def advance(carry):
        state, k, _ = carry
        many = jnp.minimum(every, max_steps - k)
        state = jax.lax.fori_loop(0, many, lambda _, s: one_step(solver, problem, s), state)
        return state, k + many, look(state)

    state, k, found = jax.lax.while_loop(unfinished, advance, (state, 0, first))
    numbers = (k, found["value"], found["bound"], found["residual"], reached(found))
    return solver.solution(problem, state), tuple(jnp.asarray(number, dtype=float) for number in numbers)
