"""Fixed points as layers: found by iteration, differentiated by the implicit function theorem, with a certificate."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.certificates import Certificate, assume, check, issuer
from cumulant.layers import _implicit
from cumulant.layers.kantorovich import consistent_lipschitz, euclidean_norm, with_rounding
from cumulant.optim.driver.implicit import root
from cumulant.optim.problems.base import widen
from cumulant.optim.problems.trees import as_floats
from cumulant.precision import precise, to_jax

SOLVERS = ("iteration", "anderson", "newton")
_MEMORY = 5  # residuals that Anderson's method combines
_UNIT = 2.0 * 2.0**-53
_TINY = 2.0**-1000  # more than underflow can lose
_DOUBT = 1e-9  # relative: a Jacobian beyond its bound by more contradicts it


def fixed_point(
    function: Callable[[Any, Any], Any],
    x0: Any,
    theta: Any,
    *,
    solver: str = "iteration",
    tol: float | None = None,
    max_steps: int = 1000,
    linear_solver: str = "auto",
) -> Any:
    """The ``x*`` with ``x* = f(x*, theta)``, differentiable in `theta`.

    The derivative is that of the implicit function theorem, ``dx* = (I - d_x f)^-1 d_theta f``: nothing of the
    iteration is stored, and a backward pass costs one linear solve ``(I - d_x f)^T w = dL/dx``. (In print the identity
    is missing: Peyré 2021, equation 66, has the formula for roots.) The iterate is used in place of ``x*``, so that the
    derivative is off by as much as the iterate is: `certify_fixed_point` says by how much that can be.

    Parameters
    ----------
    function : callable
        A map ``f(x, theta)`` with the shape of ``x``; compiled once, so not a fresh lambda at every call.
    x0 : array or pytree
        Where to start. The answer does not depend on it if there is one fixed point, and has no derivative in it.
    theta : array or pytree
        What the fixed point depends on.
    solver : str
        ``"iteration"`` is ``x <- f(x)``, which needs a contraction; ``"anderson"`` combines the last five steps
        (Anderson 1965); ``"newton"`` solves ``x - f(x) = 0`` by Newton steps, and needs no contraction.
    tol : float, optional
        On the residual ``|f(x) - x|``, relative to ``1 + |x|``; by default what the precision allows (4e-11 in double).
    max_steps : int
        Of the iteration. Where it is not enough the answer is refused (`NotConvergedError`); under `jit`, `grad` and
        `vmap`, where nothing can be looked at, it is NaN.
    linear_solver : str
        ``"dense"``, ``"iterative"`` (GMRES, products only) or ``"auto"``: dense up to 1000 unknowns.

    Examples
    --------
    >>> def cosine(x, theta):
    ...     return jnp.cos(theta * x)
    >>> print(fixed_point(cosine, 0.5, 1.0).round(9))
    0.739085133
    >>> with jax.enable_x64(True):
    ...     print(jax.jit(jax.grad(lambda t: fixed_point(cosine, 0.5, t)))(1.0).round(9))
    -0.297474342
    """
    checks.takes("function", function, "x, theta")
    checks.choice("solver", solver, SOLVERS)
    _implicit.settings(tol, max_steps, linear_solver)
    x, residual, allowed = _solve(function, x0, theta, solver, tol, max_steps, linear_solver)
    return _implicit.finished(x, residual, allowed, "the fixed-point iteration", max_steps)


@precise(static=("function", "solver", "tol", "max_steps", "linear_solver"))
def _solve(function, x0, theta, solver, tol, max_steps, linear_solver):
    x0 = as_floats(x0)
    _implicit.same_shapes(function, x0, theta)
    start, unflat = _implicit.flat(x0)

    def apply(x, theta):
        return _implicit.flat(function(unflat(x), theta))[0].astype(start.dtype)

    limit = _implicit.tolerance(tol, start.dtype)
    iterate = {"iteration": _iterate, "anderson": _anderson, "newton": _newton}[solver]

    def solve(theta, x):
        return iterate(lambda at: apply(at, theta), x, limit, max_steps), ()

    x, _ = root(lambda x, theta: x - apply(x, theta), theta, start, solve, linear_solver, symmetric=False)
    at = jax.lax.stop_gradient(x)
    residual = jnp.linalg.norm(jax.lax.stop_gradient(apply(at, theta)) - at)
    return unflat(x), residual, limit * (1 + jnp.linalg.norm(at))


def _while(step, start, x_and_value, limit, max_steps):
    """Repeat `step` until ``|f(x) - x|`` is small."""

    def unfinished(carry):
        state, k = carry
        x, value = x_and_value(state)
        return (jnp.linalg.norm(value - x) > limit * (1 + jnp.linalg.norm(x))) & (k < max_steps)

    return jax.lax.while_loop(unfinished, lambda carry: (step(carry[0], carry[1]), carry[1] + 1), (start, 0))[0]


def _iterate(apply, x, limit, max_steps):
    # The residual of x is the next step, so that a test costs nothing.
    return _while(lambda s, _: (s[1], apply(s[1])), (x, apply(x)), lambda s: s, limit, max_steps)[0]


def _anderson(apply, x, limit, max_steps):
    """``x <- sum_i alpha_i f(x_i)`` with weights that add up to one and make ``sum alpha_i (f(x_i) - x_i)`` small."""
    xs = jnp.broadcast_to(x, (_MEMORY, x.size))
    values = jnp.broadcast_to(apply(x), xs.shape)

    def step(state, k):
        xs, values, _ = state
        residuals = values - xs
        gram = residuals @ residuals.T
        # Equal rows at the start make the matrix singular; the shift lets them share the weight.
        shift = 1e-10 if gram.dtype == jnp.float64 else 1e-5
        gram = gram + (shift * jnp.trace(gram) + jnp.finfo(gram.dtype).tiny) * jnp.eye(_MEMORY, dtype=gram.dtype)
        weights = jnp.linalg.solve(gram, jnp.ones(_MEMORY, gram.dtype))
        new = (weights / jnp.sum(weights)) @ values
        place = k % _MEMORY
        return xs.at[place].set(new), values.at[place].set(apply(new)), place

    def latest(state):
        return state[0][state[2]], state[1][state[2]]

    return latest(_while(step, (xs, values, 0), latest, limit, max_steps))[0]


def _newton(apply, x, limit, max_steps):
    identity = jnp.eye(x.size, dtype=x.dtype)

    def step(state, _):
        x, value = state
        new = x + jnp.linalg.solve(identity - jax.jacfwd(apply)(x), value - x)
        return new, apply(new)

    return _while(step, (x, apply(x)), lambda s: s, limit, max_steps)[0]


# The certificate ------------------------------------------------------------------------------------------------------


class FixedPointProblem(NamedTuple):
    """The map ``f(x, theta)`` with one of the constants that `certify_fixed_point` needs."""

    function: Callable[[Any, Any], Any]
    theta: Any
    contraction: float | None = None
    jacobian_lipschitz: float | None = None


@issuer
def certify_fixed_point(given: FixedPointProblem, answer: Any) -> Certificate:
    """How far ``x = answer`` can be from a fixed point: ``|x - x*|``, from the residual ``r = |f(x) - x|`` in float64.

    With `contraction`, a ``q < 1`` such that ``|f(x) - f(y)| <= q |x - y|`` everywhere: ``r / (1 - q)`` (Banach 1922).

    With `jacobian_lipschitz`, a constant ``l`` such that ``|d_x f(x) - d_x f(y)| <= l |x - y|`` (0 for an affine map):
    the theorem of Newton and Kantorovich at ``x``, which needs no contraction and is refused where the residual is too
    large for it.

    Your word is taken for the constant, and refused where the Jacobians at ``x`` and at the next iterate (``f(x)``, or
    the Newton step) contradict it. Raises `CertificateError` where no constant is given or what it needs does not hold.

    Examples
    --------
    >>> def cosine(x, theta):
    ...     return jnp.cos(theta * x)
    >>> certificate = certify_fixed_point(FixedPointProblem(cosine, 1.0, jacobian_lipschitz=1.0), 0.74)
    >>> round(certificate.bound, 9)
    0.000914932
    >>> bool(abs(0.74 - 0.7390851332151607) <= certificate.upper)
    True
    """
    function, theta, contraction, lipschitz = given
    check(
        (contraction is None) != (lipschitz is None),
        "a bound on the map away from x is known",
        "give either contraction or jacobian_lipschitz: values at one point bound nothing",
    )
    x, theta = widen(to_jax(answer, "x")), widen(to_jax(theta, "theta"))
    vector, value, jacobian = _derivatives(function, x, theta, np.zeros(sum(map(np.size, jax.tree.leaves(x)))))
    check(np.all(np.isfinite(value)) and np.all(np.isfinite(jacobian)), "the map and its Jacobian are finite at x")
    residual, norm = euclidean_norm(value - vector), float(np.linalg.norm(jacobian, 2))
    inverse, newton = _newton_step(vector, value, jacobian, norm)
    step = min(inverse * residual, euclidean_norm(newton))
    solving = vector.size * (1 + norm) * step if np.isfinite(step) else 0.0
    rounding = _UNIT * (64 * (euclidean_norm(value) + euclidean_norm(vector)) + solving) + _TINY
    trusted = assume("the rounding of the map is within the slack", "the function is yours")
    if contraction is not None:
        check(0 <= contraction < 1, "the contraction factor is in [0, 1)", f"q = {contraction:g}")
        elsewhere = float(np.linalg.norm(_derivatives(function, x, theta, value - vector)[2], 2))
        local = check(
            max(norm, elsewhere) <= contraction + _DOUBT * (1 + norm),  # NaN at f(x) counts against it
            "the Jacobians at x and at f(x) are no larger than the contraction factor",
            f"|d_x f| = {norm:.6g} and {elsewhere:.6g}, q = {contraction:g}",
        )
        bound, slack = residual / (1 - contraction), rounding / (1 - contraction)
        theorem = "Banach's fixed-point theorem: |f(x) - x| / (1 - q), Banach 1922"
        basis = assume("f contracts everywhere", f"q = {contraction:g}; at x the Jacobian has norm {norm:.6g}")
    else:
        lipschitz = float(np.asarray(lipschitz))
        bound, slack = with_rounding(step, inverse, lipschitz, rounding, "residual")
        change = _derivatives(function, x, theta, newton)[2] - jacobian
        local = consistent_lipschitz(change, euclidean_norm(newton), lipschitz, norm, "Jacobian")
        theorem = "the theorem of Newton and Kantorovich on x - f(x), Kantorovich 1948"
        basis = assume("the Jacobian is Lipschitz around x", f"l = {lipschitz:g}")
    return Certificate(
        "|x - x*|",
        bound,
        theorem,
        (basis, local, trusted),
        slack=slack,
        details={"residual": residual, "norm of the Jacobian": norm, "norm of (I - d_x f)^-1": inverse},
    )


def _newton_step(vector, value, jacobian, norm):
    """A bound on the norm of ``(I - d_x f)^-1``, infinite where it may be singular, and the Newton step."""
    system = np.eye(vector.size) - jacobian
    singular = np.linalg.svd(system, compute_uv=False)[-1]
    singular -= vector.size * _UNIT * (1 + norm)  # what the computed one may be too large by
    if not singular > 0:
        return np.inf, np.full(vector.size, np.inf)
    return float(1 / singular), np.linalg.solve(system, value - vector)


@precise(static=("function",))
def _derivatives(function, x, theta, displacement):
    x = as_floats(x)
    _implicit.same_shapes(function, x, theta)
    vector, unflat = _implicit.flat(x)
    vector = vector + displacement

    def apply(v):
        return _implicit.flat(function(unflat(v), theta))[0]

    return vector, apply(vector), jax.jacfwd(apply)(vector)
