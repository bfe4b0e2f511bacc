"""How far a point can be from the minimum of ``F = f + R``, from the point and the data alone.

Three bounds, each for the problems it fits; the smallest is given:

* *strong convexity*: ``f(z) >= f(x) + <g, z - x> + mu/2 |z - x|^2`` for all ``z``, so ``F(x) - F* <= R(x) - min_z [<g,
  z - x> + mu/2 |z - x|^2 + R(z)]``, attained at ``z = prox(x - g / mu, 1 / mu)``. Without a penalty ``|g|^2 / (2 mu)``
  (Polyak 1963), and for ridge regression the duality gap;
* *linearisation*: the same with ``mu = 0``, ``<g, x> + R(x) + R*(-g)``, finite where ``R`` grows faster than any linear
  function or lives on a bounded set (Frank and Wolfe 1956);
* *duality*: where ``f(x) = F(A x)``, weak duality ``F* >= -F*(theta) - R*(-A^T theta)`` (Fenchel-Rockafellar) at
  ``theta = c grad F(A x)``, with the largest ``c <= 1`` that makes it feasible (El Ghaoui, Viallon and Rabbani 2012).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cumulant.certificates import Assumption, Certificate, assume, by_construction, check, recipe_of, rounding, verifier
from cumulant.errors import CertificateError
from cumulant.optim.certify.self_concordance import certify_self_concordance
from cumulant.optim.problems.base import _UNIT, widen
from cumulant.optim.problems.composite import parts
from cumulant.optim.problems.penalties import NoPenalty
from cumulant.optim.problems.sparse_matrix import host_matrix
from cumulant.optim.solvers.gradient_descent import certify_strong_convexity
from cumulant.precision import precise

__all__ = ["Knowledge", "certify_optimality", "knowledge", "optimality_gap", "running_bound"]


_FEW = 1000  # coordinates up to which the Hessian is looked at besides the gradient


class Knowledge(NamedTuple):
    """What a solver keeps of the constants of a problem, to compute bounds as it goes."""

    strong_convexity: Any
    convex: Any


def knowledge(problem: Any) -> Knowledge:
    """The constants, looked up once: inside a compiled program they cannot be."""
    return Knowledge(jnp.asarray(_certain_mu(problem), dtype=float), jnp.asarray(bool(problem.convex)))


def _certain_mu(problem: Any) -> float:
    smooth, _ = parts(problem)
    mu, doubt = float(smooth.strong_convexity), float(getattr(smooth, "constant_rounding", 0.0))
    return max(mu - doubt, 0.0)


def _bounds(problem, x, mu, convex, doubt):
    """The three bounds with what their rounding depends on; infinite where one does not apply."""
    smooth, penalty = parts(problem)
    value, g = smooth.value_and_gradient(x)
    here = penalty.value(x)
    safe = jnp.where(mu > 0, mu, 1.0)
    z = penalty.prox(x - g / safe, 1 / safe)
    move = z - x
    strong = here - penalty.value(z) - jnp.vdot(g, move) - mu * jnp.vdot(move, move) / 2
    if isinstance(penalty, NoPenalty):
        strong = jnp.vdot(g, g) / (2 * safe)
    strong = jnp.where(mu > 0, jnp.maximum(strong, 0.0), jnp.inf)
    scale = penalty.dual_scale(-g, doubt)
    corner = penalty.conjugate_point(-scale * g)
    conjugate = -scale * jnp.vdot(g, corner) - penalty.value(corner)
    linear = jnp.where(convex & (scale == 1), jnp.vdot(g, x) + here + conjugate, jnp.inf)
    dual = jnp.inf
    if hasattr(smooth, "slopes"):
        theta = scale * smooth.slopes(x)
        dual = jnp.where(smooth.l2 == 0, value + here + smooth.conjugate(theta) + conjugate, jnp.inf)
    return jnp.stack([strong, jnp.maximum(linear, 0.0), jnp.maximum(dual, 0.0)]), value + here, g, z, corner, scale


_bounds_in_float64 = precise(_bounds)


def running_bound(problem: Any, x: Any, known: Knowledge) -> tuple[Any, Any]:
    """``F(x)`` and the smallest of the bounds, inside a compiled program; rounding is not allowed for."""
    mu = known.strong_convexity.astype(x.dtype)
    bounds, value, *_ = _bounds(problem, x, mu, known.convex, jnp.zeros((), x.dtype))
    return value, jnp.where(jnp.isnan(bounds), jnp.inf, bounds).min()


def _doubt(smooth: Any, x: np.ndarray) -> Any:
    """How far each entry of the gradient of a function of ``A x`` may be off, in float64."""
    if not hasattr(smooth, "slopes"):
        return np.full(np.shape(x), float(smooth.gradient_rounding(x)))
    A = abs(host_matrix(smooth.A))
    return (A.shape[0] + 4) * _UNIT * np.asarray(A.T @ np.abs(np.asarray(smooth.slopes(x))))


def _found(problem: Any, x: Any) -> tuple:
    wide, x = widen(problem), _into_set(problem, np.asarray(x))
    smooth, _ = parts(wide)
    mu = _certain_mu(wide)
    return wide, x, mu, *_bounds_in_float64(wide, x, mu, bool(wide.convex), _doubt(smooth, x))


def _into_set(problem: Any, x: np.ndarray) -> np.ndarray:
    """The nearest point of the set, if ``x`` is within rounding of it, in float64: what a float32 run meant."""
    _, penalty = parts(widen(problem))
    wide = x.astype(np.float64)
    if not penalty.is_set:
        return wide
    nearest = np.asarray(penalty.prox(wide, 1.0))
    eps = np.finfo(x.dtype).eps if x.dtype.kind == "f" else np.finfo(np.float64).eps
    room = 64 * eps * x.size * max(np.max(np.abs(wide)), np.max(np.abs(nearest)))
    return nearest if np.max(np.abs(wide - nearest)) <= room else wide


@verifier
def optimality_gap(problem: Any, x: Any) -> float:
    """The smallest of the three bounds on ``F(x) - F*``, in float64 from the data."""
    return float(np.min(_found(problem, x)[3]))


def certify_optimality(problem: Any, x: Any) -> Certificate:
    """The smallest bound on ``F(x) - F*`` that the problem allows.

    Refused where none of them says anything, naming what is missing: for logistic regression without a penalty, for
    instance, a minimiser. (Strong convexity: Polyak 1963; duality: Rockafellar 1970; the Newton decrement: Bach 2010.)

    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[1.0, 0.0], [0.0, 10.0]], [0.0, 0.0])
    >>> certify_optimality(problem, [1.0, 0.0]).bound                    # f(x) - f* = 1/2
    0.5
    """
    if isinstance(parts(problem)[1], NoPenalty):
        return _certify_smooth(problem, x)
    wide, x, mu, bounds, value, g, z, corner, scale = _found(problem, x)
    smooth, penalty = parts(wide)
    here = float(value) - float(smooth.value(x))
    check(np.isfinite(here), "x is in the set, up to rounding")
    error = float(smooth.gradient_rounding(x))
    size = np.linalg.norm
    with np.errstate(invalid="ignore"):
        # Errors of g, of the sums, and of z, at which the lower bound is taken instead of at its exact minimiser.
        strong = error * size(z - x) + (error**2 / (2 * mu) if mu > 0 else 0.0)
        strong += rounding(here, g * (z - x), mu * (z - x) ** 2, terms=x.size + 8)
        reach = np.abs(x) + (np.abs(g) / mu if mu > 0 else 0.0)
        strong += rounding((np.abs(g) + mu * np.abs(z - x)) * reach, terms=8.0)
        linear = error * (size(x) + size(corner)) + rounding(here, g * x, g * corner, terms=x.size + 8)
    slacks = [strong, linear, np.inf]
    if np.isfinite(bounds[2]):
        slacks[2] = _dual_slack(smooth, x, float(value), here, float(scale), g, corner)
    totals = np.where(np.isfinite(bounds), bounds + np.where(np.isfinite(bounds), slacks, 0.0), np.inf)
    best = int(np.argmin(totals))
    status = wide.constants_are
    if not np.isfinite(totals[best]):
        raise CertificateError(
            f"no certificate: the objective is strongly convex does not hold (mu = {mu:.6g}), and {penalty} gives no "
            "finite dual bound here",
            assumption="the objective is strongly convex",
        )
    assumptions = [
        Assumption("the smooth part is strongly convex", status, f"mu = {mu:.6g}")
        if best == 0
        else Assumption("the smooth part is convex", "by construction" if status == "checked" else status)
    ]
    if best == 2:
        assumptions.append(check(True, "the dual point is feasible, whatever the rounding", f"scaled by {scale:.6g}"))
    accurate = "the bound is computed from the data in float64"
    assumptions.append(
        by_construction(accurate) if status == "checked" else assume("the rounding is within the slack", accurate)
    )
    return Certificate(
        "f(x) - f*",
        float(bounds[best]),
        (
            "strong convexity at the proximal point, Polyak 1963",
            "linearisation: <g, x> + R(x) + R*(-g), Frank and Wolfe 1956",
            "Fenchel duality gap at the scaled residual, El Ghaoui et al. 2012",
        )[best],
        tuple(assumptions),
        slack=float(slacks[best]),
        recipe=recipe_of(optimality_gap),
        details={"value": float(value)},
    )


def _certify_smooth(problem: Any, x: Any) -> Certificate:
    attempts = [certify_strong_convexity]
    if getattr(getattr(problem, "loss", None), "self_concordance", None) is not None:
        if not float(problem.strong_convexity) > 0:
            return certify_self_concordance(problem, x)
        if np.size(x) <= _FEW:
            attempts.append(certify_self_concordance)
    found = []
    for attempt in attempts:
        try:
            found.append(attempt(problem, x))
        except CertificateError:
            if attempt is certify_strong_convexity:
                raise
    return min(found, key=lambda certificate: certificate.upper)


def _dual_slack(smooth, x, value, here, scale, g, corner) -> float:
    """What rounding may have done to ``F(A x) + R(x) + F*(theta) + R*(-A^T theta)``."""
    A, theta = abs(host_matrix(smooth.A)), scale * np.asarray(smooth.slopes(x))
    n, p = A.shape
    predicted = np.abs(theta / scale if scale > 0 else smooth.slopes(x)) * np.asarray(A @ np.abs(x))
    flatness = 1.0 / getattr(getattr(smooth, "loss", None), "largest_curvature", 1.0)
    conjugate = abs(float(smooth.conjugate(theta))) + flatness * float(np.sum(theta**2)) / smooth.weight
    targets = np.abs(theta) * np.abs(smooth.y) if np.ndim(theta) == 1 else 0.0
    return (
        rounding(value, here, conjugate, targets, terms=n + 8)
        + rounding(predicted, terms=p + 4)
        + rounding(here, scale * g * corner, terms=x.size + n + 8)
    )
