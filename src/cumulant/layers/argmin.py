"""Minimisers and minima as layers: implicit differentiation of the first, the envelope theorem for the second."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.certificates import Certificate, assume, check, issuer
from cumulant.layers import _implicit
from cumulant.layers.kantorovich import consistent_lipschitz, euclidean_norm, with_rounding
from cumulant.optim.driver.solve import solve
from cumulant.optim.problems.base import widen
from cumulant.optim.problems.composite import Composite
from cumulant.optim.problems.objective import Objective, call_scalar
from cumulant.optim.problems.proximal_map import check_penalty, for_vector
from cumulant.optim.problems.trees import as_floats
from cumulant.optim.protocol import Solver
from cumulant.optim.solvers.accelerated_gradient import AcceleratedProximalGradient
from cumulant.optim.solvers.newton import Newton
from cumulant.precision import precise, to_jax

_UNIT = 2.0 * 2.0**-53
_TINY = 2.0**-1000  # more than underflow can lose


def argmin(
    objective: Callable[[Any, Any], Any],
    x0: Any,
    theta: Any,
    *,
    penalty: Any = None,
    solver: Any = None,
    tol: float | None = None,
    max_steps: int | None = None,
    linear_solver: str = "auto",
) -> Any:
    """The ``x*`` that minimises ``E(x, theta) + R(x)`` over ``x``, differentiable in `theta` and in ``R``.

    The derivative is implicit: ``dx* = -[d_xx E]^-1 d_xtheta E``. It needs a positive definite Hessian at the minimum
    and the backward pass one solve with it: factorised, or by conjugate gradients on Hessian-vector products (Peyré
    2021, section 10.7).

    With a penalty ``R`` it is that of ``x = prox_{tau R}(x - tau d_x E)``: the same on the coordinates that are free to
    move, while those at zero or at a bound stay there (Bertrand et al. 2022). At a ``theta`` where a coordinate is
    about to become free there is no derivative, and what comes back is that of one side.

    Parameters
    ----------
    objective : callable
        ``E(x, theta)``, a scalar; compiled once, so not a fresh lambda at every call.
    x0 : array or pytree
        Where to start.
    theta : array or pytree
        What the minimiser depends on.
    penalty : optional
        ``R``: a penalty or a set of `cumulant.optim`, such as ``L1(0.1)`` or ``Simplex()``, or a tree of them that
        begins as `x0` does. Its numbers may be traced: the answer is differentiable in them.
    solver : optional
        A compiled solver of `cumulant.optim` for `optim.solve`: `Newton()` by default, which stores a dense
        Hessian; `GradientDescent()` for many unknowns; with a penalty, `AcceleratedProximalGradient` with restarts.
    tol : float, optional
        On ``|grad E|``, or the norm of the proximal gradient map where there is a penalty, relative to the larger of
        one and its norm at `x0`.
    max_steps : int, optional
        200, or 20 000 with a penalty; where it is not enough, as for `fixed_point`.
    linear_solver
        As for `fixed_point`; the iterative solver is that of conjugate gradients, or GMRES with a penalty.

    Examples
    --------
    >>> def ridge(x, theta):
    ...     B = jnp.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
    ...     return jnp.sum((B @ x - theta) ** 2) / 2 + jnp.sum(x**2) / 4
    >>> argmin(ridge, [0.0, 0.0], [1.0, 2.0, 3.0]).round(8)
    array([0.68965517, 0.75862069])

    The derivative of soft thresholding is zero or one:

    >>> from cumulant import optim
    >>> def nearest(x, theta):
    ...     return jnp.sum((x - theta) ** 2) / 2
    >>> with jax.enable_x64(True):
    ...     shrunk = lambda t: argmin(nearest, jnp.zeros(2), t, penalty=optim.L1(1.0))
    ...     print(jax.jit(jax.jacobian(shrunk))(jnp.array([3.0, 0.5])))
    [[1. 0.]
     [0. 0.]]
    """
    if max_steps is None:
        max_steps = 200 if penalty is None else 20_000
    if penalty is not None:
        check_penalty(penalty)
        solver = AcceleratedProximalGradient(restart=True) if solver is None else solver
    solver = _check(objective, solver, tol, max_steps, linear_solver)
    x, residual, allowed = _solve(objective, x0, theta, penalty, solver, tol, max_steps, linear_solver)
    return _implicit.finished(x, residual, allowed, "the minimisation", max_steps)


def envelope(
    objective: Callable[[Any, Any], Any],
    x0: Any,
    theta: Any,
    *,
    solver: Any = None,
    tol: float | None = None,
    max_steps: int = 200,
    linear_solver: str = "auto",
) -> Any:
    """The minimum ``f(theta) = min_x E(x, theta)``, differentiable in `theta`.

    The gradient is ``grad f(theta) = grad_theta E(x*, theta)`` (Danskin 1967; Peyré 2021, equation 68): the minimiser
    counts as a constant, and no linear system is solved. Second derivatives differentiate the minimiser, as they must,
    and solve one.

    The arguments are those of `argmin`.

    Examples
    --------
    >>> def nearest(x, theta):
    ...     return (x - theta) ** 2 / 2 + jnp.log1p(x**2)
    >>> with jax.enable_x64(True):
    ...     print(jax.jit(jax.grad(lambda t: envelope(nearest, 0.0, t)))(1.0).round(9))     # theta - x*
    0.638896919
    """
    solver = _check(objective, solver, tol, max_steps, linear_solver)
    value, residual, allowed = _value(objective, x0, theta, solver, tol, max_steps, linear_solver)
    return _implicit.finished(value, residual, allowed, "the minimisation", max_steps)


def _check(objective, solver, tol, max_steps, linear_solver):
    _implicit.settings(tol, max_steps, linear_solver)
    checks.takes("objective", objective, "x, theta")
    solver = Newton() if solver is None else solver
    if not (isinstance(solver, Solver) and solver.backend == "jax"):
        raise TypeError(f"solver must be a compiled solver of cumulant.optim, such as Newton(); got {solver!r}")
    return solver


_STATIC = ("objective", "solver", "tol", "max_steps", "linear_solver")


@precise(static=_STATIC)
def _solve(objective, x0, theta, penalty, solver, tol, max_steps, linear_solver):
    x0 = as_floats(x0)
    jax.eval_shape(lambda x, theta: call_scalar("objective", objective, x, theta, "x0 and theta"), x0, theta)
    start, unflat = _implicit.flat(x0)

    def energy(x, data):
        return objective(unflat(x), data)

    problem, limit = Objective(energy, theta), _implicit.tolerance(tol, start.dtype)
    if penalty is not None:
        problem = Composite(problem, for_vector(penalty, x0))
        start = problem.penalty.feasible(start)
    x, info = solve(solver, problem, start, tol=limit, max_steps=max_steps, linear_solver=linear_solver)
    # The rule of `solve`, of which the residual at the start is not known here.
    allowed = jnp.where(info.converged, jnp.maximum(limit, info.residual), limit)
    return unflat(x), info.residual, allowed


@precise(static=_STATIC)
def _value(objective, x0, theta, solver, tol, max_steps, linear_solver):
    x, residual, allowed = _solve(objective, x0, theta, None, solver, tol, max_steps, linear_solver)

    # The point is an argument with a tangent of its own, which the first derivative leaves out because it is multiplied
    # by zero; the second derivative goes through it.
    @jax.custom_jvp
    def at_minimum(theta, x):
        return objective(x, theta)

    @at_minimum.defjvp
    def _(primals, tangents):
        theta, x = primals
        return at_minimum(theta, x), jax.jvp(lambda t: objective(x, t), (theta,), (tangents[0],))[1]

    return at_minimum(theta, x), residual, allowed


# The certificate ------------------------------------------------------------------------------------------------------


class ArgminProblem(NamedTuple):
    """The objective ``E(x, theta)`` with one of the constants that `certify_argmin` needs."""

    objective: Callable[[Any, Any], Any]
    theta: Any
    strong_convexity: float | None = None
    hessian_lipschitz: float | None = None


@issuer
def certify_argmin(given: ArgminProblem, answer: Any) -> Certificate:
    """How far ``x = answer`` can be from the minimiser: ``|x - x*|``, from the gradient at ``x`` in float64.

    With `strong_convexity`, a ``mu > 0`` that holds everywhere: ``|grad E(x)| / mu``. The value is then within
    ``|grad E(x)|^2 / (2 mu)`` of the minimum (among the `details`).

    With `hessian_lipschitz`, a constant ``l`` such that ``|hess E(x) - hess E(y)| <= l |x - y|`` around ``x`` (0 for a
    quadratic function): the theorem of Newton and Kantorovich at ``x``; the Hessian there must be positive definite,
    and ``x*`` is then a strict local minimiser.

    Your word is taken for the constant, and refused where the Hessians at ``x`` and at the next Newton iterate
    contradict it. Raises `CertificateError` where no constant is given or what it needs does not hold.

    Examples
    --------
    >>> def nearest(x, theta):
    ...     return jnp.sum((x - theta) ** 2)
    >>> certificate = certify_argmin(ArgminProblem(nearest, [1.0, 2.0], hessian_lipschitz=0.0), [1.1, 2.0])
    >>> round(certificate.bound, 12)
    0.1
    """
    objective, theta, strong_convexity, lipschitz = given
    check(
        (strong_convexity is None) != (lipschitz is None),
        "a bound on the Hessian away from x is known",
        "give either strong_convexity or hessian_lipschitz: values at one point bound nothing",
    )
    x, theta = widen(to_jax(answer, "x")), widen(to_jax(theta, "theta"))
    still = np.zeros(sum(map(np.size, jax.tree.leaves(x))))
    vector, gradient, hessian = _derivatives(objective, x, theta, still)
    check(np.all(np.isfinite(gradient)) and np.all(np.isfinite(hessian)), "the derivatives are finite at x")
    spectrum = np.linalg.eigvalsh((hessian + hessian.T) / 2)
    norm, smallest, largest = euclidean_norm(gradient), float(spectrum[0]), float(np.max(np.abs(spectrum)))
    doubt = spectrum.size * _UNIT * largest
    newton = -np.linalg.solve(hessian, gradient) if smallest > doubt else still
    step = min(norm / smallest, euclidean_norm(newton)) if smallest > doubt else np.inf
    rounding = 64 * _UNIT * (norm + largest * euclidean_norm(vector)) + (doubt * step if np.isfinite(step) else 0.0)
    rounding += _TINY
    details = {"gradient norm": norm, "smallest eigenvalue at x": smallest}
    trusted = assume("the rounding of the gradient is within the slack", "the function is yours")
    elsewhere = _derivatives(objective, x, theta, newton)[2]
    if strong_convexity is not None:
        mu = float(strong_convexity)
        check(mu > 0 and np.isfinite(mu), "the objective is strongly convex", f"mu = {mu:g}")
        finite = np.all(np.isfinite(elsewhere))
        next_smallest = float(np.linalg.eigvalsh((elsewhere + elsewhere.T) / 2)[0]) if finite else smallest
        local = check(
            min(smallest, next_smallest) >= mu - doubt - 1e-9 * mu,
            "no eigenvalue of the Hessian at x, or at the next Newton iterate, is below mu",
            f"smallest {smallest:.6g} and {next_smallest:.6g}, mu = {mu:g}",
        )
        bound, slack = norm / mu, rounding / mu
        theorem = "strong convexity: |grad E(x)| / mu, Polyak 1963"
        basis = assume("the objective is strongly convex everywhere", f"mu = {mu:g}")
        details["bound on E(x) - min E"] = (norm + rounding) * (norm + rounding) / (2 * mu)
    else:
        lipschitz = float(np.asarray(lipschitz))
        check(smallest > doubt, "the Hessian at x is positive definite", f"smallest {smallest:.6g}")
        bound, slack = with_rounding(step, 1 / (smallest - doubt), lipschitz, rounding, "gradient")
        local = consistent_lipschitz(elsewhere - hessian, euclidean_norm(newton), lipschitz, largest, "Hessian")
        theorem = "the theorem of Newton and Kantorovich on grad E, Kantorovich 1948"
        basis = assume("the Hessian is Lipschitz around x", f"l = {lipschitz:g}")
    return Certificate("|x - x*|", bound, theorem, (basis, local, trusted), slack=slack, details=details)


@precise(static=("objective",))
def _derivatives(objective, x, theta, displacement):
    vector, unflat = _implicit.flat(as_floats(x))
    vector = vector + displacement

    def energy(v):
        return objective(unflat(v), theta)

    return vector, jax.grad(energy)(vector), jax.hessian(energy)(vector)
