"""Minimisers and minima as layers: implicit differentiation of the first, the envelope theorem for the second."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.certificates import Certificate, assume, check, recipe_of, verifier
from cumulant.layers import _implicit
from cumulant.layers.kantorovich import with_rounding
from cumulant.optim.driver.solve import solve
from cumulant.optim.problems.smooth import Objective, widen
from cumulant.optim.protocol import Solver
from cumulant.optim.solvers.newton import Newton
from cumulant.precision import precise, to_jax

__all__ = ["argmin", "argmin_bound", "certify_argmin", "envelope"]

_UNIT = 2.0 * 2.0**-53


def argmin(
    objective: Callable[[Any, Any], Any],
    x0: Any,
    theta: Any,
    *,
    solver: Any = None,
    tol: float | None = None,
    max_steps: int = 200,
    linear_solver: str = "auto",
) -> Any:
    """The ``x*`` that minimises ``E(x, theta)`` over ``x``, differentiable in `theta`.

    The derivative is implicit: ``dx* = -[d_xx E]^-1 d_xtheta E``. It needs a positive definite Hessian at the minimum
    and the backward pass one solve with it: factorised, or by conjugate gradients on Hessian-vector products (Peyré
    2021, section 10.7).

    Parameters
    ----------
    objective : callable
        ``E(x, theta)``, a scalar; compiled once, so not a fresh lambda at every call.
    x0 : array or pytree
        Where to start.
    theta : array or pytree
        What the minimiser depends on.
    solver : optional
        A compiled solver of `cumulant.optim` for `optim.solve`: `Newton()` by default, which stores a dense
        Hessian; ``GradientDescent(step)`` for many unknowns (a line search by values stalls above the default `tol`).
    tol : float, optional
        On ``|grad E|``, relative to the larger of one and its norm at `x0`.
    max_steps, linear_solver
        As for `fixed_point`; the iterative solver is that of conjugate gradients.

    Examples
    --------
    >>> def ridge(x, theta):
    ...     B = jnp.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
    ...     return jnp.sum((B @ x - theta) ** 2) / 2 + jnp.sum(x**2) / 4
    >>> argmin(ridge, [0.0, 0.0], [1.0, 2.0, 3.0]).round(8)
    array([0.68965517, 0.75862069])
    """
    solver = _check(objective, solver, tol, max_steps, linear_solver)
    x, residual, allowed = _solve(objective, x0, theta, solver, tol, max_steps, linear_solver)
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
    if not callable(objective):
        raise TypeError(f"objective must be a function of (x, theta); got {type(objective).__name__}")
    solver = Newton() if solver is None else solver
    if not (isinstance(solver, Solver) and solver.backend == "jax"):
        raise TypeError(f"solver must be a compiled solver of cumulant.optim, such as Newton(); got {solver!r}")
    return solver


_STATIC = ("objective", "solver", "tol", "max_steps", "linear_solver")


@precise(static=_STATIC)
def _solve(objective, x0, theta, solver, tol, max_steps, linear_solver):
    x0 = _implicit.as_floats(x0)
    shape = jax.eval_shape(objective, x0, theta).shape
    if shape != ():
        raise ValueError(f"objective(x, theta) must be a scalar; it has shape {shape}")
    start, unflat = _implicit.flat(x0)

    def energy(x, data):
        return objective(unflat(x), data)

    problem, limit = Objective(energy, theta), _implicit.tolerance(tol, start.dtype)
    allowed = limit * jnp.maximum(1.0, jnp.linalg.norm(jax.lax.stop_gradient(problem.gradient(start))))
    x, info = solve(solver, problem, start, tol=limit, max_steps=max_steps, linear_solver=linear_solver)
    return unflat(x), info.residual, allowed


@precise(static=_STATIC)
def _value(objective, x0, theta, solver, tol, max_steps, linear_solver):
    x, residual, allowed = _solve(objective, x0, theta, solver, tol, max_steps, linear_solver)

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


def certify_argmin(
    objective: Callable[[Any, Any], Any],
    x: Any,
    theta: Any,
    *,
    strong_convexity: float | None = None,
    hessian_lipschitz: float | None = None,
) -> Certificate:
    """How far `x` can be from the minimiser: ``|x - x*|``, from the gradient at `x` in float64.

    With `strong_convexity`, a ``mu > 0`` that holds everywhere: ``|grad E(x)| / mu``; your word is taken for it and
    checked at `x`, where no eigenvalue of the Hessian may be smaller. The value is then within
    ``|grad E(x)|^2 / (2 mu)`` of the minimum (among the `details`).

    With `hessian_lipschitz`, a constant ``l`` such that ``|hess E(x) - hess E(y)| <= l |x - y|`` around `x` (0 for a
    quadratic function): the theorem of Newton and Kantorovich at `x`; the Hessian there must be positive definite, and
    ``x*`` is then a strict local minimiser.

    Raises `CertificateError` where neither is given or what it needs does not hold. ``certificate.verify`` takes
    ``(objective, theta, {"strong_convexity": mu})`` (or ``"hessian_lipschitz"``) as the problem.

    Examples
    --------
    >>> def nearest(x, theta):
    ...     return jnp.sum((x - theta) ** 2)
    >>> certificate = certify_argmin(nearest, [1.1, 2.0], [1.0, 2.0], hessian_lipschitz=0.0)
    >>> round(certificate.bound, 12)
    0.1
    """
    given = {"strong_convexity": strong_convexity, "hessian_lipschitz": hessian_lipschitz}
    constants = {name: value for name, value in given.items() if value is not None}
    check(
        len(constants) == 1,
        "a bound on the Hessian away from x is known",
        "give either strong_convexity or hessian_lipschitz: values at one point bound nothing",
    )
    x, theta = widen(to_jax(x, "x")), widen(to_jax(theta, "theta"))
    norm, step, spectrum, size = _measure(objective, x, theta)
    smallest, largest = float(spectrum[0]), float(np.max(np.abs(spectrum)))
    doubt = spectrum.size * _UNIT * largest
    rounding = 64 * _UNIT * (norm + largest * size) + (doubt * step if np.isfinite(step) else 0.0)
    details = {"gradient norm": norm, "smallest eigenvalue at x": smallest}
    trusted = assume("the rounding of the gradient is within the slack", "the function is yours")
    if strong_convexity is not None:
        mu = float(strong_convexity)
        check(mu > 0, "the objective is strongly convex", f"mu = {mu:g}")
        local = check(
            smallest >= mu - doubt - 1e-12 * mu,
            "no eigenvalue of the Hessian at x is below mu",
            f"smallest {smallest:.6g}, mu = {mu:g}",
        )
        bound, slack = norm / mu, rounding / mu
        theorem = "strong convexity: |grad E(x)| / mu, Polyak 1963"
        basis = assume("the objective is strongly convex everywhere", f"mu = {mu:g}")
        details["bound on E(x) - min E"] = norm**2 / (2 * mu)
    else:
        lipschitz = float(np.asarray(hessian_lipschitz))
        local = check(smallest > doubt, "the Hessian at x is positive definite", f"smallest {smallest:.6g}")
        inverse = 1 / (smallest - doubt)
        bound, slack = with_rounding(step, inverse, lipschitz, rounding, "gradient")
        theorem = "the theorem of Newton and Kantorovich on grad E, Kantorovich 1948"
        basis = assume("the Hessian is Lipschitz around x", f"l = {lipschitz:g}")
    return Certificate(
        "|x - x*|",
        bound,
        theorem,
        (basis, local, trusted),
        slack=slack,
        recipe=recipe_of(argmin_bound),
        details=details,
    )


@verifier
def argmin_bound(problem: Any, x: Any) -> float:
    """The bound of `certify_argmin`, for ``problem = (objective, theta, constants)``."""
    objective, theta, constants = problem
    bound = certify_argmin(objective, x, theta, **constants).bound
    assert isinstance(bound, float)
    return bound


def _measure(objective, x, theta):
    """The norm of the gradient, the Newton step, the eigenvalues of the Hessian and the size of `x`."""
    vector, gradient, hessian = _derivatives(objective, x, theta)
    check(np.all(np.isfinite(gradient)) and np.all(np.isfinite(hessian)), "the derivatives are finite at x")
    spectrum = np.linalg.eigvalsh((hessian + hessian.T) / 2)
    norm = float(np.linalg.norm(gradient))
    step = norm / spectrum[0] if spectrum[0] > 0 else np.inf
    if np.isfinite(step):
        step = min(step, float(np.linalg.norm(np.linalg.solve(hessian, gradient))))
    return norm, step, spectrum, float(np.linalg.norm(vector))


@precise(static=("objective",))
def _derivatives(objective, x, theta):
    vector, unflat = _implicit.flat(_implicit.as_floats(x))

    def energy(v):
        return objective(unflat(v), theta)

    return vector, jax.grad(energy)(vector), jax.hessian(energy)(vector)
