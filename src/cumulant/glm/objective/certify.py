"""Certificates of a generalised linear model: the duality gap, and self-concordance where there is no penalty."""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from cumulant.certificates import Certificate, by_construction, check, issuer
from cumulant.errors import CertificateError
from cumulant.glm.objective.design import largest_image
from cumulant.glm.objective.duality_gap import PrimalDual, duality_gap, gradient_error, score_error, value_error
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.newton_step import newton_slopes
from cumulant.optim.certify.self_concordance import decrement_bound

_DUALITY = "Fenchel duality, P(w) - D(s) with feasible slopes s: Rockafellar 1970, theorem 31.1"
_CONCORDANCE = "self-concordance, |phi'''| <= c phi'': Bach 2010, proposition 2, with the radius of these data"
_UNIT = 2.0**-53


@issuer
def certify_glm_gap(problem: GLMProblem, answer: Any, gradient: np.ndarray | None = None) -> Certificate:
    """The duality gap ``P(x) - D(s)`` of weights `x`, or of a pair `PrimalDual` of weights and dual slopes.

    Without slopes they are those of the losses at `x`, or for ``l1 = 0`` those of one Newton step at `x`, whichever
    give the smaller gap. With `gradient`, slopes and ``X^T (p s)`` are what `GLMProblem.feasible` gave; else they are
    made feasible here. Raises `CertificateError` where there is no penalty or no slopes are feasible.

    Rockafellar (1970, theorem 31.1); rounding as in `duality_gap`.

    >>> from cumulant.glm import design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), l2=0.5)
    >>> certify_glm_gap(problem, [16 / 15]).upper < 1e-12, certify_glm_gap(problem, [0.0]).bound > 1.0
    (True, True)
    """
    x, slopes = answer if isinstance(answer, PrimalDual) else (answer, None)
    x = np.asarray(x, dtype=np.float64)
    penalised = check(
        problem.l1 > 0 or problem.l2 > 0, "the objective has a penalty", f"l1 = {problem.l1:g}, l2 = {problem.l2:g}"
    )
    check(x.shape == problem.shape and np.all(np.isfinite(x)), "the weights are finite and as many as the columns")
    if slopes is not None:
        check(np.shape(slopes) == problem.offset.shape, "there is a dual slope for each row and output")
        candidates = [(np.asarray(slopes, dtype=np.float64), gradient)]
    else:
        candidates = [(problem.loss.terms(problem.scores(x))[1], None)]
        if not problem.l1:
            candidates.append((newton_slopes(problem, x), None))
    with np.errstate(over="ignore", invalid="ignore"):
        found = [duality_gap(problem, x, *candidate) for candidate in candidates]
    bound, slack, value = min(found, key=lambda gap: gap.bound + gap.slack)
    if not np.isfinite(bound + slack):
        raise CertificateError(
            "no certificate: the dual slopes are not feasible, or their gap is not finite", assumption="feasible slopes"
        )
    details = {"relative gap": (bound + slack) / value} if value > 0 else {}
    if problem.l2 > 0:
        details["|w - w*|"] = float(np.sqrt(2 * ((bound + slack) / problem.l2)))
    return Certificate(
        "P(w) - P*",
        bound,
        _DUALITY,
        (penalised, by_construction("objective and dual are computed from the data in float64")),
        slack=slack,
        details=details,
    )


class _Concordance(NamedTuple):
    """The bound, Newton's decrement, the radius, and what rounding may add to the bound."""

    bound: float
    decrement: float
    radius: float
    slack: float


def _concordance(problem: GLMProblem, x: np.ndarray) -> _Concordance:
    nothing = _Concordance(np.inf, np.nan, np.nan, np.inf)
    c = problem.loss.concordance
    if c is None or problem.l1 or problem.loss.outputs > 1:
        return nothing
    eta = problem.scores(x)
    losses, slope, curvature = problem.loss.terms(eta)
    gradient = problem.loss_gradient(slope) + problem.ridge(x)
    hessian = problem.hessian(curvature)
    # Columns are scaled to unit curvature, within the range in which the product of two scales is finite.
    scale = 1.0 / np.sqrt(np.clip(np.diagonal(hessian), 1e-290, 1e290))
    try:
        factor = cholesky(hessian * scale[:, None] * scale, lower=True, check_finite=False)
    except LinAlgError:
        return nothing
    if not np.diagonal(factor).min() > 1e-6:  # too near to singular for a claim about its inverse
        return nothing
    inverse = solve_triangular(factor, np.diag(scale), lower=True, check_finite=False)
    decrement = float(np.linalg.norm(inverse @ gradient))
    radius = c * float(np.sqrt(largest_image(problem.design, inverse))) if c else 0.0
    # Rounding of the scores changes slopes and curvatures; the products with the matrix have errors of their own.
    error = score_error(problem, x, problem.loss.divergence(eta, slope).size)
    weight = problem.weights * curvature * np.exp(c * error.width)
    moved = float(np.linalg.norm(weight * error.rows) + weight.max() * error.total.max())
    shifted = (
        gradient_error(problem, slope) + problem.design.column_norms * moved + 4 * _UNIT * np.abs(problem.ridge(x))
    )
    off = float(np.linalg.norm(np.abs(inverse) @ shifted))
    size, (n, p) = float(np.sum((inverse / scale) ** 2)), problem.design.shape
    # The true Hessian is at least this share of the computed one: errors relative to a unit diagonal, by the norm of
    # the inverse.
    share = 1.0 - 4.0 * p * ((n + 2 * p + 16) * _UNIT + float(np.expm1(c * error.width))) * size
    bound = decrement_bound(decrement**2, 1.0, radius)
    if not (share > 0.5 and np.isfinite(bound)):
        return _Concordance(bound, decrement, radius, np.inf)
    worse = decrement_bound((decrement + off) ** 2 / share, 1.0, radius / np.sqrt(share))
    slack = worse * (1.0 + 1e-12) - bound + 1e-300 + value_error(problem, float(problem.weights @ np.abs(losses)))
    return _Concordance(bound, decrement, radius, float(slack))


@issuer
def certify_glm_concordance(problem: GLMProblem, x: Any) -> Certificate:
    """A bound on ``P(x) - P*`` from the gradient and the Hessian at `x`, for ``l1 = 0`` and any ``l2 >= 0``.

    Let ``|phi'''| <= c phi''``, ``lambda^2 = g^T H^-1 g`` (Newton's decrement), ``rho = c max_i |x_i|_{H^-1}``. Along
    any line through `x` with unit ``H``-length the second derivative is at least ``exp(-rho t)``, hence

        P(x) - P* <= ((1 - a) log(1 - a) + a) / rho^2,      a = lambda rho < 1,

    and a minimiser exists. The bound is ``lambda^2 / 2`` for small ``a``. Raises `CertificateError` for ``a >= 1``,
    for several outputs, and where rounding leaves open whether the Hessian is positive definite.

    Bach (2010, proposition 2), with the radius of these data.

    >>> from cumulant.glm import design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), l2=0.5)
    >>> bound = certify_glm_concordance(problem, [0.0]).bound
    >>> round(bound, 6), round(problem.value([0.0]) - problem.value([16 / 15]), 6)
    (1.422222, 1.422222)
    """
    x = np.asarray(x, dtype=np.float64)
    check(x.shape == problem.shape and np.all(np.isfinite(x)), "the weights are finite and as many as the columns")
    with np.errstate(over="ignore", invalid="ignore"):
        bound, decrement, radius, slack = _concordance(problem, x)
    known = check(np.isfinite(radius), "the Hessian is positive definite and the third derivatives are bounded by it")
    near = check(np.isfinite(bound), "Newton's decrement times the radius is below 1", f"{decrement * radius:.3g}")
    check(np.isfinite(slack), "the Hessian is positive definite beyond what rounding can change")
    return Certificate(
        "P(w) - P*",
        bound,
        _CONCORDANCE,
        (known, near, by_construction("gradient and Hessian are computed from the data in float64")),
        slack=slack,
        details={"Newton decrement": decrement, "radius": radius},
    )
