"""What certificates of smooth convex functions rest on, and the one from strong convexity."""

from typing import Any

import numpy as np

from cumulant.certificates import Assumption, Certificate, assume, by_construction, check, issuer
from cumulant.optim.problems.base import widen
from cumulant.optim.problems.enclosures import TINY, Enclosure, enclose
from cumulant.optim.problems.quadratic import Quadratic
from cumulant.optim.problems.row_sums import RowSums
from cumulant.optim.protocol import CertifiedProblem


def enclosed_gradient(problem: Any, x: Any) -> Enclosure:
    """The gradient in float64 with a bound on its error: proved for least squares, quadratics and the losses of this
    package, an allowance for a function of the user.
    """
    if isinstance(problem, RowSums | Quadratic):
        return problem.enclosed_gradient(x)
    x = enclose(x)
    gradient = np.asarray(problem.gradient(x.value), dtype=np.float64)
    smoothness = 0.0 if problem.smoothness is None else float(problem.smoothness)
    error = float(problem.gradient_rounding(x.value)) + smoothness * float(np.linalg.norm(x.error))
    return enclose(gradient, error + TINY)


def certain_strong_convexity(problem: Any) -> float:
    """``mu`` less what rounding may have added to it."""
    return max(float(problem.strong_convexity) - float(problem.constant_rounding), 0.0)


def accuracy(problem: Any, text: str) -> Assumption:
    """That the rounding is within the slack: proved for the functions of this package, assumed for others."""
    if isinstance(problem, RowSums | Quadratic) and problem.constants_are == "checked":
        return by_construction(text)
    return assume("the rounding is within the slack", "the function is not one whose rounding is bounded here")


def convexity(problem: Any, text: str) -> tuple[Assumption, float]:
    """The assumption that a function is convex, and how much negative curvature it leaves open, for the bound to pay.

    >>> from cumulant import optim
    >>> print(convexity(optim.Quadratic([[1.0, 0.0], [0.0, 0.0]], [1.0, 0.0]), "the objective is convex")[0])
    ✓ the objective is convex (checked: by its eigenvalues)
    """
    check(problem.convex, text)
    if isinstance(problem, Quadratic):
        paid = problem.negative_curvature
        if paid == 0:
            return check(True, text, "by its eigenvalues"), 0.0
        return check(True, f"{text} up to a curvature that the bound pays for", f"at least {-paid:.3g}"), paid
    if problem.constants_are == "assumed":
        return assume(text, "as given with the problem"), 0.0
    return by_construction(text), 0.0


def refuse_estimates(problem: Any) -> None:
    """No certificate from values and gradients that a sample estimates."""
    check(not problem.estimated, "the objective is computed exactly", "it is estimated from a sample")


@issuer
def certify_strong_convexity(problem: Any, x: Any) -> Certificate:
    """The certificate ``f(x) - f* <= |grad f(x)|^2 / (2 mu)`` of a ``mu``-strongly convex function (Polyak 1963).

    Minimising both sides of ``f(y) >= f(x) + <grad f(x), y - x> + mu/2 |y - x|^2`` over ``y`` gives it. The slack
    allows for the rounding of the gradient, of its square and of ``mu``. Refused where ``mu`` is zero or cannot be told
    from it. A problem that certifies itself (`CertifiedProblem`) is asked instead.

    >>> from cumulant import optim
    >>> certify_strong_convexity(optim.Quadratic([[1.0, 0.0], [0.0, 10.0]], [0.0, 0.0]), [1.0, 0.0]).bound
    0.5
    """
    if isinstance(problem, CertifiedProblem):
        return problem.certify(x)
    refuse_estimates(problem)
    wide, x = widen(problem), np.asarray(x, dtype=np.float64)
    mu, certain = float(wide.strong_convexity), certain_strong_convexity(wide)
    text = "the objective is strongly convex"
    strong = check(certain > 0, text, f"mu = {mu:.6g}")
    if wide.constants_are != "checked":
        strong = Assumption(text, wide.constants_are, f"mu = {mu:.6g}, as given with the problem")
    gradient = enclosed_gradient(wide, x)
    bound = gradient.square().sum() / (enclose(mu, mu - certain) * 2.0)
    check(np.isfinite(bound.upper), "the gradient is finite")
    return Certificate(
        "f(x) - f*",
        float(bound.value),
        "strong convexity: |grad f(x)|^2 / (2 mu), Polyak 1963",
        (strong, accuracy(wide, "the gradient is computed from the data in float64")),
        slack=float(bound.upper) - float(bound.value),
        details={"gradient norm": float(np.linalg.norm(gradient.value)), "mu": mu},
    )
