"""The certificates of mirror descent, and the constants relative to an entropy that they rest on."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from cumulant import checks
from cumulant.certificates import Assumption, Certificate, assume, check, issuer, rounding
from cumulant.errors import CertificateError
from cumulant.geometry import Euclidean, Shannon
from cumulant.geometry.entropy import Entropy
from cumulant.optim.certify.strong_convexity import accuracy, certify_strong_convexity, convexity, enclosed_gradient
from cumulant.optim.driver.fingerprint import fingerprint
from cumulant.optim.problems.base import widen
from cumulant.optim.problems.enclosures import enclose
from cumulant.optim.problems.likelihoods import NegativeLogLikelihood, SampleLikelihood, certify_likelihood
from cumulant.optim.protocol import Problem


class RelativeConstants(NamedTuple):
    """``strong_convexity * D_psi <= D_f <= smoothness * D_psi``, and how we know."""

    smoothness: float | None
    strong_convexity: float
    status: Any


def relative_constants(
    problem: Any, entropy: Any, constraint: str | None = None, *, points: Any = None
) -> RelativeConstants:
    """The constants of a problem relative to an entropy, as far as they are known, or as far as `points` show them.

    Those a problem gives for its own `reference` entropy; the ordinary ones for the Euclidean entropy; and on the
    simplex with the Shannon entropy the smoothness in the l1 norm, since ``D_f <= L/2 |x - y|_1^2 <= L KL(x|y)``
    (Pinsker): the largest entry of the Hessian of a quadratic, which can be much less than its largest eigenvalue,
    and else the ordinary smoothness. (Relative smoothness: Bauschke, Bolte and Teboulle 2017; Lu, Freund and Nesterov
    2018.) What is not known is None, or zero for the strong convexity.

    With `points`, vectors inside the domain of the entropy, they are measured instead: the largest and the smallest
    eigenvalue of ``(hess psi)^-1 hess f`` at any of them. Every ``L`` for which ``L psi - f`` is convex on a set with
    these points is at least the first, and every ``mu`` at most the second; that they suffice elsewhere is not shown,
    so that the status is ``"assumed"``.

    Parameters
    ----------
    problem, entropy
    constraint : None or "simplex"
        For what is known without points.
    points : array (n, p), optional

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[2.0, 1.0], [1.0, 2.0]], [0.0, 0.0])
    >>> relative_constants(problem, Shannon(), "simplex").smoothness      # the largest eigenvalue is 3
    2.0
    >>> found = relative_constants(problem, Shannon(), points=[[0.5, 0.5], [1.0, 1.0]])      # x times the Hessian
    >>> round(found.smoothness, 9), round(found.strong_convexity, 9), found.status
    (3.0, 0.5, 'assumed')
    """
    checks.instance("problem", problem, Problem, "a problem of cumulant.optim")
    checks.instance("entropy", entropy, Entropy, "an entropy, such as Shannon()")
    if points is not None:
        return _measured_constants(problem, entropy, points)
    reference = problem.reference
    status = problem.constants_are
    if reference is not None and _same(reference, entropy):
        smoothness = problem.relative_smoothness
        return RelativeConstants(
            None if smoothness is None else float(smoothness), float(problem.relative_strong_convexity), status
        )
    ordinary = None if problem.smoothness is None else float(problem.smoothness)
    if isinstance(entropy, Euclidean):
        return RelativeConstants(ordinary, float(problem.strong_convexity), status)
    if isinstance(entropy, Shannon) and constraint == "simplex":
        return RelativeConstants(float(problem.largest_entry) or ordinary, 0.0, status)
    return RelativeConstants(None, 0.0, status)


def _measured_constants(problem: Any, entropy: Any, points: Any) -> RelativeConstants:
    points = checks.real_array("points", points, ndim=2)
    if not points.size or not np.all(entropy.in_domain(points)):
        raise ValueError(f"points must be one or more, all inside the domain of {entropy}")
    if problem.shape is not None and points.shape[1:] != tuple(problem.shape):
        raise ValueError(f"points must be vectors of shape {tuple(problem.shape)}; got {points.shape[1:]}")
    problem, units, found = widen(problem), np.eye(points.shape[1]), []
    for x in points:
        hessian, metric = (
            np.stack([np.asarray(apply(x, unit)) for unit in units])
            for apply in (problem.hessian_apply, entropy.hessian_apply)
        )
        if not np.all(np.isfinite(metric)):
            raise ValueError(f"points must be off the boundary of the domain of {entropy}; got {x}")
        found.append(scipy.linalg.eigvalsh((hessian + hessian.T) / 2, (metric + metric.T) / 2))
    return RelativeConstants(float(np.max(found)), float(np.min(found)), "assumed")


def _same(first: Any, second: Any) -> bool:
    return fingerprint(first) == fingerprint(second)


@issuer
def certify_mirror_descent(given: tuple[Any, Any], state: Any) -> Certificate:
    """The smallest of the certificates of `MirrorDescent`; `given` is the problem and the solver, `state` its state."""
    problem, solver = given
    attempts: list[Callable[[], Certificate]] = [lambda: _rate(problem, solver, state)]
    if solver.constraint == "simplex":
        attempts.append(lambda: certify_simplex(problem, state.x))
    elif isinstance(problem, NegativeLogLikelihood | SampleLikelihood) and _same(problem.reference, solver.entropy):
        attempts.append(lambda: certify_likelihood(problem, state.x))
    elif isinstance(solver.entropy, Euclidean):
        attempts.append(lambda: certify_strong_convexity(problem, state.x))
    else:
        attempts.append(lambda: certify_relative((problem, solver.entropy), state.x))
    found, refusals = [], []
    for attempt in attempts:
        try:
            found.append(attempt())
        except CertificateError as refusal:
            refusals.append(refusal)
    if not found:
        raise CertificateError("; and ".join(str(refusal) for refusal in refusals), assumption=refusals[-1].assumption)
    best = min(found, key=lambda certificate: certificate.upper)
    return dataclasses.replace(best, recipe="")  # to be issued again from here


def _rate(problem: Any, solver: Any, state: Any) -> Certificate:
    """``D(x*|x0)`` over the sum of the steps."""
    problem = widen(problem)
    constants = relative_constants(problem, solver.entropy, solver.constraint)
    radius, travelled, longest = (float(getattr(state, name)) for name in ("radius", "travelled", "longest"))
    convex, paid = convexity(problem, "the objective is convex")
    check(paid == 0, "the objective is convex, whatever the rounding", f"negative curvature up to {paid:.3g}")
    check(radius >= 0, "a bound on D(x*|x0) is known", "radius was not given")
    known = (
        check(True, "D(x*|x0) is at most max_i -log x0_i", f"{radius:.6g}")
        if solver.radius is None
        else assume("D(x*|x0) is at most radius", f"{radius:.6g}")
    )
    assumptions = [known, convex, check(travelled > 0, "at least one step was taken")]
    if solver.implicit and solver.constraint == "simplex":
        assumptions.append(check(True, "what implicit steps leave of their equations is added to D(x*|x0)"))
    elif solver.implicit:
        never = np.finfo(np.asarray(state.longest).dtype).max
        assumptions.append(check(longest < never, "every implicit step was solved, to half of the digits and more"))
    else:
        smooth = constants.smoothness
        known_as = "unknown" if smooth is None else f"{smooth:.6g}"
        assumptions.append(
            check(
                smooth is not None and longest * smooth <= 1 + 1e-9,
                "every step is at most one over the relative smoothness",
                f"up to 1e-9: largest step {longest:.6g}, relative smoothness {known_as}",
            )
        )
        assumptions.append(Assumption("the relative smoothness is right", constants.status))
    assumptions.append(assume("rounding during the run is negligible", "the rate speaks of exact steps"))
    return Certificate(
        "f(x) - f* on the simplex" if solver.constraint == "simplex" else "f(x) - f*",
        radius / travelled,
        "mirror descent: D(x*|x0) / sum of steps, "
        + ("Chen and Teboulle 1993" if solver.implicit else "Lu, Freund, Nesterov 2018"),
        tuple(assumptions),
        slack=rounding(state.value, radius / travelled, terms=float(state.step) + 8),
        details={"steps": float(state.step), "sum of steps": travelled},
    )


@issuer
def certify_relative(given: tuple[Any, Any], x: Any) -> Certificate:
    """``f(x) - f* <= mu D(x|y)``, ``grad psi(y) = grad psi(x) - grad f(x) / mu``, for relatively strongly convex ``f``.

    It is what minimising ``f(y) >= f(x) + <grad f(x), y - x> + mu D(y|x)`` over ``y`` gives; ``f*`` is the infimum
    over the domain of the entropy. `given` is the problem and the entropy.
    """
    problem, entropy = given
    problem, x = widen(problem), np.asarray(x, dtype=np.float64)
    text = f"the objective is strongly convex relative to {entropy}"
    constants = relative_constants(problem, entropy)
    mu = constants.strong_convexity
    check(mu > 0, text, f"mu = {mu:.6g}")
    gradient, dual = np.asarray(problem.gradient(x)), np.asarray(entropy.gradient(x))
    target = dual - gradient / mu
    lowest = np.asarray(entropy.conjugate_gradient(target)) if np.all(entropy.in_conjugate_domain(target)) else np.inf
    exists = check(np.all(np.isfinite(lowest)), "the lower bound has a minimiser")
    bound = mu * float(np.sum(entropy.divergence(x, lowest)))
    # The derivative of the bound in the gradient g is x - y, so an error of g costs at most |x - y| times it.
    error = rounding(gradient, dual * mu, terms=64)
    moved = float(np.sum(np.abs(x - lowest)))
    # The divergence is a difference of two values of the entropy and of a product.
    terms = (entropy.value(x), entropy.value(lowest), target * (x - lowest))
    slack = error * moved + mu * rounding(*terms, terms=64) + rounding(bound, terms=64)
    check(np.isfinite(bound + slack), "the lower bound is finite", f"mu = {mu:.6g}")
    return Certificate(
        "f(x) - f*",
        bound,
        "relative strong convexity: mu D(x|y), grad psi(y) = grad psi(x) - grad f(x) / mu",
        (
            Assumption(text, constants.status, f"mu = {mu:.6g}"),
            exists,
            assume("the rounding is within the slack", "64 units in the last place of what is added up"),
        ),
        slack=slack,
    )


@issuer
def certify_simplex(problem: Any, x: Any) -> Certificate:
    """``f(x) - min over the simplex <= <grad f(x), x> - min_i grad f(x)_i`` for convex ``f`` (Frank and Wolfe 1956)."""
    problem, x = widen(problem), np.asarray(x, dtype=np.float64)
    convex, paid = convexity(problem, "the objective is convex")
    on = check(
        np.all(x >= 0) and abs(np.sum(x) - 1) <= 1e-9, "x is on the simplex, up to 1e-9", f"sum = {np.sum(x):.15g}"
    )
    gradient = enclosed_gradient(problem, x)
    # No point of the simplex is farther from x than sqrt 2, up to what x is off it.
    gap = (gradient * x).sum() - enclose(np.min(gradient.value), np.max(gradient.error)) + enclose(paid) * (1 + 1e-8)
    bound = max(float(gap.value), 0.0)
    check(np.isfinite(gap.upper), "the gradient is finite")
    return Certificate(
        "f(x) - f* on the simplex",
        bound,
        "convexity on the simplex: <grad f(x), x> - min_i grad f(x)_i, Frank and Wolfe 1956",
        (convex, on, accuracy(problem, "the gradient is computed from the data in float64")),
        slack=max(float(gap.upper) - bound, 0.0),
    )
