"""How far a feasible point can be from the constrained minimum, from the point and the data alone.

For any multipliers ``z >= 0`` the minimum is at least ``inf_y f(y) + <z, c(y)>`` (weak duality). With ``r = grad f(x) +
J(x)^T z``, convexity bounds that infimum from below by ``f(x) + <z, c(x)>`` minus

* ``|r|^2 / (2 mu)`` where ``f`` is ``mu``-strongly convex;
* the maximum of ``<r, x - y>`` over the set, where it is bounded;
* ``|r|`` times a distance to the minimiser that the user vouches for.

So ``f(x) - f* <= -<z, c(x)>`` plus the smallest of these: the duality gap where ``r = 0``. An l1 penalty has a gap of
its own, from `cumulant.optim.certify.optimality`.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.certificates import Assumption, Certificate, assume, by_construction, check, issuer
from cumulant.errors import CertificateError
from cumulant.optim.certify.optimality import Knowledge, certify_optimality, running_bound
from cumulant.optim.certify.strong_convexity import accuracy, certain_strong_convexity, convexity, enclosed_gradient
from cumulant.optim.interior_point.lifted import LiftedL1, OnSimplex, Plain, SplitL1
from cumulant.optim.interior_point.problem import ConstrainedProblem, point, require_constrained
from cumulant.optim.problems.base import widen
from cumulant.optim.problems.composite import Composite
from cumulant.optim.problems.enclosures import Enclosure, dot, enclose
from cumulant.optim.problems.penalties import L1
from cumulant.precision import any_tracer


def known(problem: ConstrainedProblem) -> Knowledge:
    """The constants of the loss, looked up once; nothing is known of a problem that is being traced."""
    loss = problem.loss
    if loss is None or any_tracer(problem):
        return Knowledge(jnp.zeros(()), jnp.asarray(loss is not None and bool(loss.convex)))
    return Knowledge(jnp.asarray(certain_strong_convexity(loss), dtype=float), jnp.asarray(bool(loss.convex)))


def _composite(problem: ConstrainedProblem) -> Composite:
    return Composite(problem.loss, L1(problem.objective.weight))


def _lagrangian(problem, x, mu):
    """``<z, s>`` and the three ways to close the gap, in JAX and without their rounding."""
    constraints = problem.constraints
    g, slack = problem.objective.gradient(x), -constraints.value(x)
    z = constraints.multipliers(x, g)
    r = g + constraints.jacobian_transpose(x, z)
    squared = jnp.vdot(r, r)
    radius = jnp.inf if problem.radius is None else problem.radius
    rest = jnp.stack(
        [
            jnp.where(mu > 0, squared / (2 * jnp.where(mu > 0, mu, 1.0)), jnp.inf),
            jnp.maximum(constraints.reach(x, r), 0.0),
            jnp.where(squared == 0, 0.0, jnp.sqrt(squared) * jnp.where(squared == 0, 1.0, radius)),
        ]
    )
    feasible = jnp.all(slack > 0)
    return jnp.where(feasible, jnp.vdot(z, slack), jnp.inf), rest


def running_gap(problem: ConstrainedProblem, x: Any, constants: Knowledge) -> tuple[Any, Any]:
    """``f(x)`` and the bound, inside a compiled program; rounding is not allowed for."""
    value = problem.objective.value(x)
    if isinstance(problem.objective, LiftedL1):
        inner, bound = running_bound(_composite(problem), problem.objective.coefficients(x), constants)
        return value, bound + jnp.maximum(value - inner, 0.0)
    mu = constants.strong_convexity.astype(x.dtype) if problem.objective.coefficients(x).shape == x.shape else 0.0
    gap, rest = _lagrangian(problem, x, jnp.asarray(mu, x.dtype))
    bound = jnp.where(constants.convex, gap + jnp.min(rest), jnp.inf)
    return value, jnp.where(jnp.isnan(bound), jnp.inf, bound)


@issuer
def certify_constrained(problem: ConstrainedProblem, x: Any) -> Certificate:
    """The smallest bound on ``f(x) - f*`` that a strictly feasible point and the problem allow.

    Refused where the objective is not convex, the point not feasible, or nothing bounds how far the minimiser can be.

    The Lagrangian dual (Boyd and Vandenberghe 2004, section 5.2) at multipliers made from the point; with an l1
    penalty, the duality gap of `certify_optimality`.

    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import Bounds
    >>> problem = ConstrainedProblem(optim.Quadratic(np.eye(2), [-1.0, 1.0]), Bounds(0.0))     # solution (0, 1)
    >>> certify_constrained(problem, [1e-8, 1.0]).upper < 1e-6
    True
    """
    require_constrained(problem)
    x = point(problem, "x", x)
    if problem.loss is None:
        raise CertificateError("no certificate: the objective is a stream", assumption="the objective is known")
    certify = _certify_l1 if isinstance(problem.objective, LiftedL1) else _certify_lagrangian
    return certify(problem, x)


def _certify_l1(problem: ConstrainedProblem, x: Any) -> Certificate:
    """The gap at the coefficients ``w``, plus what ``x`` pays more than ``|w|_1``."""
    wide, x = widen(problem), np.asarray(x, dtype=np.float64)
    inner, weight = _composite(wide), np.asarray(wide.objective.weight, dtype=np.float64)
    first, second = np.split(x, 2)
    split = isinstance(wide.objective, SplitL1)
    w = enclose(first) - second if split else enclose(first)
    check(np.all(np.isfinite(x)), "x is finite")
    certificate = certify_optimality(inner, w.value)
    assert isinstance(certificate.bound, float)
    # w+ + w- - |w+ - w-| = 2 min(w+, w-)
    more = (enclose(2 * np.minimum(first, second) if split else second) - (0.0 if split else np.abs(first))) * weight
    # The coefficients are rounded, and the gap was taken at the rounded ones.
    slope = enclosed_gradient(inner.smooth, w)
    steep = float(np.sum((np.abs(slope.value) + slope.error + weight) * w.error))
    gap = enclose(certificate.bound, certificate.slack) + more.sum()
    gap = gap.widened(steep * (1 + 1e-9))
    return Certificate(
        "f(x) - f*",
        max(float(gap.value), 0.0),
        certificate.theorem,
        certificate.assumptions,
        slack=max(float(gap.upper) - max(float(gap.value), 0.0), 0.0),
        details={"value": float(wide.value(x)), "gap at the coefficients": float(certificate.upper)},
    )


def _gradient(problem: ConstrainedProblem, x: np.ndarray) -> Enclosure:
    """The gradient of the objective in ``x``, with a bound on its error."""
    if isinstance(problem.objective, Plain):
        return enclosed_gradient(problem.loss, x)
    last = float(problem.objective.total) - enclose(x).sum()
    w = Enclosure(np.append(x, last.value), np.append(np.zeros_like(x), last.error))
    gradient = enclosed_gradient(problem.loss, w)
    return gradient[:-1] - gradient[-1]


def _certify_lagrangian(problem: ConstrainedProblem, x: Any) -> Certificate:
    wide, x = widen(problem), np.asarray(x, dtype=np.float64)
    if not isinstance(wide.objective, Plain | OnSimplex):
        raise TypeError(f"no certificate is known for the objective {type(wide.objective).__name__}")
    loss, constraints = wide.loss, wide.constraints
    convex, bent = convexity(loss, "the objective is convex")
    c = constraints.enclosed_value(x)
    feasible = check(
        np.all(c.value <= c.error), "x is feasible, up to rounding", f"largest constraint {np.max(c.value):.3g}"
    )
    gradient = _gradient(wide, x)
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.asarray(constraints.multipliers(x, gradient.value), dtype=np.float64)
    z = np.maximum(np.where(np.isfinite(z), z, 0.0), 0.0)
    r = gradient + constraints.enclosed_pull(x, z)
    # In the coordinates of the simplex without its last, curvature is larger by at most 1 + n.
    bent = bent * (1.0 if isinstance(wide.objective, Plain) else 1.0 + x.size) + constraints.negative_curvature(x, z)
    mu = (certain_strong_convexity(loss) - bent) * (1 - 1e-15) if isinstance(wide.objective, Plain) else 0.0
    diameter = float(constraints.diameter(x.size)) * (1 + 1e-12)
    radius = np.inf if wide.radius is None else float(wide.radius)
    norm = r.square().sum().sqrt()
    ways: list[tuple[Enclosure, Callable[[], Assumption]]] = [
        (
            r.square().sum() / (enclose(mu) * 2.0) if mu > 0 else enclose(np.inf),
            lambda: Assumption("the objective is strongly convex", loss.constants_are, f"mu = {mu:.6g}"),
        ),
        (
            constraints.enclosed_reach(x, r) + _paid(bent, diameter),
            lambda: check(np.isfinite(diameter), "the set is bounded", f"diameter {diameter:.6g}"),
        ),
        (
            norm * radius + _paid(bent, radius) if np.isfinite(radius) else enclose(np.inf),
            lambda: assume("a minimiser is within the radius given", f"radius = {radius:.6g}"),
        ),
    ]
    closing, because = min(ways, key=lambda way: np.nan_to_num(float(way[0].upper), nan=np.inf))
    gap = closing - dot(c, z)
    if not np.isfinite(gap.upper):
        raise CertificateError(
            f"no certificate: the gradient of the Lagrangian is not exactly zero (norm {float(norm.value):.3g}), the "
            "objective is not strongly convex and the set not known to be bounded: give the problem a radius you can "
            "vouch for",
            assumption="the minimiser is within a known distance",
        )
    bound = max(float(gap.value), 0.0)
    return Certificate(
        "f(x) - f*",
        bound,
        "weak duality at the multipliers of x: -<z, c(x)> plus what is left of the gradient of the Lagrangian",
        (
            convex,
            _shape(constraints),
            feasible,
            by_construction("the multipliers are not negative"),
            because(),
            accuracy(loss, "the bound is computed from the data in float64"),
        ),
        slack=max(float(gap.upper) - bound, 0.0),
        details={
            "value": float(wide.value(x)),
            "complementarity": float(-np.dot(z, c.value)),
            "residual": float(norm.value),
        },
    )


def _paid(curvature: float, distance: float) -> Enclosure:
    """What negative curvature can cost over a distance."""
    if curvature == 0:
        return enclose(0.0)
    return enclose(distance).square() * (enclose(curvature) * 0.5) if np.isfinite(distance) else enclose(np.inf)


def _shape(constraints: Any) -> Assumption:
    text = "the constraints are convex"
    if constraints.convexity == "assumed":
        return assume(text, "the function is yours")
    if constraints.convexity == "checked":
        return check(True, text, "by their eigenvalues; what rounding leaves open is paid for in the bound")
    return by_construction(text)


def relative_accuracy(value: float, dual: float) -> float:
    """A bound on ``(f(x) - f*) / |f*|`` from ``f(x)`` and a lower bound ``q <= f*``, infinity where their signs differ.

    ``(f - q) / q`` where ``q > 0``, ``(f - q) / (-f)`` where ``f < 0`` (Boyd and Vandenberghe 2004, section 5.5.1).

    >>> relative_accuracy(1.5, 1.0), relative_accuracy(-1.0, -1.5), relative_accuracy(1.0, -1.0)
    (0.5, 0.5, inf)
    """
    if not checks.number("value", value) >= checks.number("dual", dual):
        raise ValueError(f"value must be at least the lower bound; got {value} and {dual}")
    if dual > 0:
        return (value - dual) / dual
    return (value - dual) / -value if value < 0 else float("inf")
