"""How far a feasible point can be from the constrained minimum, from the point and the data alone.

For any multipliers ``z >= 0`` the minimum is at least ``inf_y f(y) + <z, c(y)>`` (weak duality). With ``r = grad f(x) +
J(x)^T z``, convexity bounds that infimum from below by ``f(x) + <z, c(x)>`` minus

* ``|r|^2 / (2 mu)`` where ``f`` is ``mu``-strongly convex;
* the maximum of ``<r, x - y>`` over the set, where it is bounded;
* ``|r|`` times a distance to the minimiser that the user vouches for.

So ``f(x) - f* <= -<z, c(x)>`` plus the smallest of these: the duality gap where ``r = 0``. An l1 penalty has a gap of
its own, from `cumulant.optim.certify.optimality`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from cumulant.certificates import Assumption, Certificate, assume, by_construction, check, recipe_of, rounding, verifier
from cumulant.errors import CertificateError
from cumulant.optim.certify.optimality import Knowledge, certify_optimality, running_bound
from cumulant.optim.interior_point.constraints import SmoothConvex
from cumulant.optim.interior_point.lifted import BoundL1, SplitL1
from cumulant.optim.interior_point.problem import ConstrainedProblem
from cumulant.optim.problems.base import widen
from cumulant.optim.problems.composite import Composite
from cumulant.optim.problems.penalties import L1
from cumulant.precision import any_tracer, precise

__all__ = ["certify_constrained", "constrained_gap", "known", "l1_gap", "relative_accuracy", "running_gap"]


def known(problem: ConstrainedProblem) -> Knowledge:
    """The constants of the loss, looked up once; nothing is known of a problem that is being traced."""
    loss = problem.loss
    if loss is None or any_tracer(problem):
        return Knowledge(jnp.zeros(()), jnp.asarray(loss is not None and bool(getattr(loss, "convex", False))))
    mu, doubt = float(loss.strong_convexity), float(getattr(loss, "constant_rounding", 0.0))
    return Knowledge(jnp.asarray(max(mu - doubt, 0.0), dtype=float), jnp.asarray(bool(loss.convex)))


def _composite(problem: ConstrainedProblem) -> Composite:
    return Composite(problem.loss, L1(problem.objective.weight))


def _has_l1(problem: ConstrainedProblem) -> bool:
    return isinstance(problem.objective, SplitL1 | BoundL1)


def _lagrangian(problem, x, mu):
    """``<z, s>``, the three ways to close the gap, and what their rounding depends on."""
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
    return jnp.where(feasible, jnp.vdot(z, slack), jnp.inf), rest, z, slack, r


_lagrangian_in_float64 = precise(_lagrangian)


def running_gap(problem: ConstrainedProblem, x: Any, constants: Knowledge) -> tuple[Any, Any]:
    """``f(x)`` and the bound, inside a compiled program; rounding is not allowed for."""
    value = problem.objective.value(x)
    if _has_l1(problem):
        inner, bound = running_bound(_composite(problem), problem.objective.coefficients(x), constants)
        return value, bound + jnp.maximum(value - inner, 0.0)
    mu = constants.strong_convexity.astype(x.dtype) if problem.objective.coefficients(x).shape == x.shape else 0.0
    gap, rest, *_ = _lagrangian(problem, x, jnp.asarray(mu, x.dtype))
    bound = jnp.where(constants.convex, gap + jnp.min(rest), jnp.inf)
    return value, jnp.where(jnp.isnan(bound), jnp.inf, bound)


def _found(problem: Any, x: Any) -> tuple:
    wide, x = widen(problem), np.asarray(x, dtype=np.float64)
    mu = max(float(wide.strong_convexity) - float(getattr(wide.loss, "constant_rounding", 0.0)), 0.0)
    return wide, x, mu, *_lagrangian_in_float64(wide, x, mu)


@verifier
def constrained_gap(problem: Any, x: Any) -> float:
    """The bound of `certify_constrained` without its slack, in float64 from the data."""
    if _has_l1(problem):
        return l1_gap(problem, x)
    _, _, _, gap, rest, *_ = _found(problem, x)
    return float(gap + np.min(rest))


@verifier
def l1_gap(problem: Any, x: Any) -> float:
    """The duality gap at ``w``, plus what ``x`` pays more than ``|w|_1``."""
    wide, x = widen(problem), np.asarray(x, dtype=np.float64)
    inner, w = _composite(wide), wide.coefficients(x)
    certificate = certify_optimality(inner, w)
    assert isinstance(certificate.bound, float)
    return certificate.bound + max(float(wide.value(x)) - float(inner.value(w)), 0.0)


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
    if problem.loss is None:
        raise CertificateError("no certificate: the objective is a stream", assumption="the objective is known")
    return _certify_l1(problem, x) if _has_l1(problem) else _certify_lagrangian(problem, x)


def _certify_l1(problem: ConstrainedProblem, x: Any) -> Certificate:
    wide, x = widen(problem), np.asarray(x, dtype=np.float64)
    inner, w = _composite(wide), wide.coefficients(x)
    certificate = certify_optimality(inner, w)
    bound = l1_gap(wide, x)
    value = float(wide.value(x))
    extra = rounding(value, value, np.sum(wide.objective.weight * np.abs(x)), terms=x.size + 8)
    return Certificate(
        "f(x) - f*",
        bound,
        certificate.theorem,
        certificate.assumptions,
        slack=certificate.slack + extra,
        recipe=recipe_of(l1_gap),
        details={"value": value, "gap at the coefficients": float(certificate.upper)},
    )


def _certify_lagrangian(problem: ConstrainedProblem, x: Any) -> Certificate:
    wide, x, mu, gap, rest, z, slack, r = _found(problem, x)
    loss, constraints = wide.loss, wide.constraints
    status = wide.constants_are
    feasible = check(np.all(slack > 0), "x is strictly feasible", f"largest constraint {-np.min(slack):.3g}")
    text = "the objective is convex"
    check(wide.convex, text)
    convex = Assumption(text, status)
    error = float(loss.gradient_rounding(wide.coefficients(x)))
    if np.shape(wide.coefficients(x)) != x.shape:
        error *= 1 + np.sqrt(x.size)  # the last entry is subtracted from each of the others
    norm, diameter = float(np.linalg.norm(r)), float(constraints.diameter(x.size))
    radius = np.inf if wide.radius is None else float(wide.radius)
    slacks = np.array(
        [
            ((norm + error) ** 2 - norm**2) / (2 * mu) if mu > 0 else np.inf,
            error * diameter if np.isfinite(diameter) else np.inf,
            error * radius if np.isfinite(radius) else np.inf,
        ]
    )
    best = int(np.argmin(rest + slacks))
    if not np.isfinite(rest[best] + slacks[best]):
        raise CertificateError(
            f"no certificate: the gradient of the Lagrangian is not exactly zero (norm {norm:.3g}), the objective is "
            "not strongly convex and the set not known to be bounded: give the problem a radius you can vouch for",
            assumption="the minimiser is within a known distance",
        )
    J = np.abs(np.asarray(constraints.jacobian(jnp.asarray(x)), dtype=np.float64))
    extra = rounding(z * (J @ np.abs(x) + np.abs(slack)), terms=x.size + slack.size + 8) + rounding(rest[best], terms=8)
    closing = (
        lambda: Assumption("the objective is strongly convex", status, f"mu = {mu:.6g}"),
        lambda: check(np.isfinite(diameter), "the set is bounded", f"diameter {diameter:.6g}"),
        lambda: assume("a minimiser is within the radius given", f"radius = {radius:.6g}"),
    )[best]()
    shape = (
        assume("the constraints are convex", "the function is yours")
        if constraints.holds_type(SmoothConvex)
        else by_construction("the constraints are convex")
    )
    return Certificate(
        "f(x) - f*",
        float(gap + rest[best]),
        "weak duality at the multipliers of x: -<z, c(x)> plus what is left of the gradient of the Lagrangian",
        (convex, shape, feasible, by_construction("the multipliers are not negative"), closing),
        slack=float(slacks[best] + extra),
        recipe=recipe_of(constrained_gap),
        details={"value": float(wide.value(x)), "complementarity": float(gap), "residual": norm},
    )


def relative_accuracy(value: float, dual: float) -> float:
    """A bound on ``(f(x) - f*) / |f*|`` from ``f(x)`` and a lower bound ``q <= f*``, infinity where their signs differ.

    ``(f - q) / q`` where ``q > 0``, ``(f - q) / (-f)`` where ``f < 0`` (Boyd and Vandenberghe 2004, section 5.5.1).

    >>> relative_accuracy(1.5, 1.0), relative_accuracy(-1.0, -1.5), relative_accuracy(1.0, -1.0)
    (0.5, 0.5, inf)
    """
    if not value >= dual:
        raise ValueError(f"value must be at least the lower bound; got {value} and {dual}")
    if dual > 0:
        return (value - dual) / dual
    return (value - dual) / -value if value < 0 else float("inf")
