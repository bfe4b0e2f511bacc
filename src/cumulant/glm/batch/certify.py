"""Certificates of a generalised linear model: the duality gap, and self-concordance where there is no penalty."""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from cumulant.certificates import Certificate, by_construction, check, recipe_of, rounding, verifier
from cumulant.errors import CertificateError
from cumulant.glm.batch.problem import GLMProblem
from cumulant.glm.solvers.newton_step import newton_slopes

__all__ = ["concordance_bound", "concordance_certificate", "duality_gap", "gap_certificate"]

_DUALITY = "Fenchel duality, P(w) - D(s) with feasible slopes s: Rockafellar 1970, theorem 31.1"
_CONCORDANCE = "self-concordance, |phi'''| <= c phi'': Bach 2010, proposition 2, with the radius of these data"


@verifier
def duality_gap(problem: GLMProblem, x: Any) -> float:
    """``P(x) - D(s)`` from the data; the slopes come from one Newton step at `x` or, with ``l1``, from `x` itself.

    Rockafellar (1970, theorem 31.1).

    >>> from cumulant.glm import design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), l2=0.5)
    >>> duality_gap(problem, [16 / 15]) < 1e-12, duality_gap(problem, [0.0]) > 1.0
    (True, True)
    """
    x = np.asarray(x, dtype=np.float64)
    slope = problem.loss.terms(problem.scores(x))[1]
    gaps = [problem.gap(x, slope)[0]]
    if not problem.l1:
        gaps.append(problem.gap(x, newton_slopes(problem, x))[0])
    return max(min(gaps), 0.0)


def gap_certificate(problem: GLMProblem, x: Any, slope: np.ndarray, gradient: np.ndarray | None = None) -> Certificate:
    """The certificate of `x` by dual slopes, or by what `GLMProblem.feasible` made of them.

    Raises `CertificateError` where none are feasible.

    Rockafellar (1970, theorem 31.1).

    >>> from cumulant.glm import design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), l2=0.5)
    >>> x = np.array([16 / 15])
    >>> slopes = problem.loss.terms(problem.scores(x))[1]
    >>> gap_certificate(problem, x, slopes).upper < 1e-12
    True
    """
    penalised = check(
        problem.l1 > 0 or problem.l2 > 0, "the objective has a penalty", f"l1 = {problem.l1:g}, l2 = {problem.l2:g}"
    )
    bound, value, slack = problem.gap(x, slope, gradient)
    if not np.isfinite(bound):
        raise CertificateError("no certificate: no dual slopes in the domain were found", assumption="feasible slopes")
    bound = max(bound, 0.0)
    details = {"relative gap": (bound + slack) / value if value > 0 else 0.0}
    if problem.l2 > 0:
        details["|w - w*|"] = float(np.sqrt(2 * (bound + slack) / problem.l2))
    return Certificate(
        "P(w) - P*",
        bound,
        _DUALITY,
        (penalised, by_construction("objective and dual are computed from the data in float64")),
        slack=slack,
        recipe=recipe_of(duality_gap),
        details=details,
    )


@verifier
def concordance_bound(problem: GLMProblem, x: Any) -> float:
    """A bound on ``P(x) - P*`` from the gradient and the Hessian at `x`, for ``l1 = 0`` and any ``l2 >= 0``.

    Let ``|phi'''| <= c phi''``, ``lambda^2 = g^T H^-1 g`` (Newton's decrement), ``rho = c max_i |x_i|_{H^-1}``. Along
    any line through `x` with unit ``H``-length the second derivative is at least ``exp(-rho t)``, hence

        P(x) - P* <= ((1 - a) log(1 - a) + a) / rho^2,      a = lambda rho < 1,

    and a minimiser exists. The bound is ``lambda^2 / 2`` for small ``a``; infinite for ``a >= 1``.

    Bach (2010, proposition 2), with the radius of these data.

    >>> from cumulant.glm import design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), l2=0.5)
    >>> round(concordance_bound(problem, [0.0]), 6), round(problem.value([0.0]) - problem.value([16 / 15]), 6)
    (1.422222, 1.422222)
    """
    return _concordance(problem, np.asarray(x, dtype=np.float64))[0]


def _concordance(problem, x):
    """The bound, Newton's decrement, the radius, and what rounding of the gradient may add to the bound."""
    nothing = np.inf, np.nan, np.nan, 0.0
    c = problem.loss.concordance
    if c is None or problem.l1 or problem.loss.outputs > 1:
        return nothing
    _, slope, curvature = problem.loss.terms(problem.scores(x))
    gradient = problem.loss_gradient(slope) + problem.ridge(x)
    hessian = problem.hessian(curvature)
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(hessian), 1e-300))
    try:
        factor = cholesky(hessian * scale[:, None] * scale, lower=True, check_finite=False)
    except LinAlgError:
        return nothing
    if np.diagonal(factor).min() < 1e-6:  # too near to singular for a claim about its inverse
        return nothing
    inverse = solve_triangular(factor, np.diag(scale), lower=True, check_finite=False)
    decrement = float(np.linalg.norm(inverse @ gradient))
    radius = c * float(np.sqrt(problem.design.largest_image(inverse))) if c else 0.0
    bound = _decrease(decrement, radius)
    error = float(np.linalg.norm(inverse)) * problem.gradient_error(slope)
    slack = _decrease(decrement + error, radius) - bound if np.isfinite(bound) else 0.0
    return bound, decrement, radius, slack


def _decrease(decrement: float, radius: float) -> float:
    """``((1 - a) log(1 - a) + a) / radius^2``, ``a = decrement radius``; half the square where the radius is zero."""
    a = decrement * radius
    if not a < 1:
        return np.inf
    if a < 1e-3:  # by the series, where the difference would cancel
        return decrement**2 * (0.5 + a / 6 + a * a / 12 + a**3 / 10)
    return ((1 - a) * float(np.log1p(-a)) + a) / radius**2


def concordance_certificate(problem: GLMProblem, x: Any) -> Certificate:
    """The certificate of `concordance_bound`, or `CertificateError` where it says nothing.

    Bach (2010, proposition 2).

    >>> from cumulant.glm import design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), l2=0.5)
    >>> concordance_certificate(problem, [16 / 15]).upper < 1e-12
    True
    """
    bound, decrement, radius, slack = _concordance(problem, np.asarray(x, dtype=np.float64))
    known = check(np.isfinite(radius), "the Hessian is positive definite and the third derivatives are bounded by it")
    near = check(np.isfinite(bound), "Newton's decrement times the radius is below 1", f"{decrement * radius:.3g}")
    check(np.isfinite(slack), "Newton's decrement times the radius is below 1", "but for rounding")
    slack += rounding(problem.value(x), terms=544 + problem.n_terms / 512)  # of the objective itself
    return Certificate(
        "P(w) - P*",
        bound,
        _CONCORDANCE,
        (known, near, by_construction("gradient and Hessian are computed from the data in float64")),
        slack=slack,
        recipe=recipe_of(concordance_bound),
        details={"Newton decrement": decrement, "radius": radius},
    )
