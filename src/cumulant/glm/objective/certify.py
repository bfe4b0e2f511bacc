"""Certificates of a regression: the duality gap, self-concordance without a penalty, the distance of the weights."""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from cumulant.certificates import Assumption, Certificate, by_construction, check, issuer
from cumulant.errors import CertificateError
from cumulant.glm.objective.design import largest_image
from cumulant.glm.objective.duality_gap import PrimalDual, duality_gap, gradient_error, score_error, value_error
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.newton_step import SMALL, is_small, newton_slopes
from cumulant.optim.certify.self_concordance import decrement_bound

_DUALITY = "Fenchel duality, P(w) - D(s) with feasible slopes s: Rockafellar 1970, theorem 31.1"
_CONCORDANCE = "self-concordance, |phi'''| <= c phi'': Bach 2010, proposition 2, with the radius of these data"
_DISTANCE = "strong convexity, |w - w*| <= sqrt(2 (P(w) - P*) / mu): Nesterov 2004, theorem 2.1.8"
_PENALISED = "the objective has a penalty"
_BOUNDED = "the Hessian is positive definite and the third derivatives are bounded by it"
_NEAR = "Newton's decrement times the radius is below 1"
_UNIT = 2.0**-53


def _refused(text: str, assumption: str) -> CertificateError:
    return CertificateError(f"no certificate: {text}", assumption=assumption)


def _check_weights(problem: GLMProblem, x: np.ndarray) -> None:
    if x.shape != problem.shape or not np.all(np.isfinite(x)):
        raise _refused(
            f"the weights must be finite numbers, an array {problem.shape} with the intercept last; got {x.shape}",
            "the weights are finite and as many as the columns",
        )


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
    if not (problem.l1 > 0 or problem.l2 > 0):
        raise _refused("duality needs a penalty, and l1 = l2 = 0: use certify_glm_concordance", _PENALISED)
    penalised = check(True, _PENALISED, f"l1 = {problem.l1:g}, l2 = {problem.l2:g}")
    _check_weights(problem, x)
    if slopes is not None:
        if np.shape(slopes) != problem.offset.shape:
            raise _refused(
                f"there must be a dual slope for each row and output, an array {problem.offset.shape}; got "
                f"{np.shape(slopes)}",
                "there is a dual slope for each row and output",
            )
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


class _Curvature(NamedTuple):
    """The Hessian at a point, and what is certain of it in spite of rounding.

    ``root.T @ root`` is the inverse of the computed Hessian, and the true Hessian is at least `share` of the computed
    one; ``radius = c max_i |x_i|_{H^-1}``. The gradient and the losses are those at the point; `off` bounds
    ``|root @ e|`` for the error ``e`` of the gradient.
    """

    root: np.ndarray
    radius: float
    share: float
    gradient: np.ndarray
    off: float
    losses: np.ndarray


def _curvature(problem: GLMProblem, x: np.ndarray) -> _Curvature:
    """The Hessian of the smooth part of the objective; refused where it is not positive definite beyond rounding."""
    c = problem.loss.concordance
    if problem.loss.outputs > 1:
        raise _refused("no bound on the third derivatives is known for several classes; use l2 > 0", _BOUNDED)
    if c is None:
        raise _refused("no bound on the third derivatives is known for this family; use l2 > 0", _BOUNDED)
    if not is_small(problem):
        raise _refused(f"the Hessian is formed for at most {SMALL} parameters, and there are {x.size}", _BOUNDED)
    eta = problem.scores(x)
    losses, slope, curvature = problem.loss.terms(eta)
    gradient = problem.loss_gradient(slope) + problem.ridge(x)
    hessian = problem.hessian(curvature)
    # Columns are scaled to unit curvature, within the range in which the product of two scales is finite.
    scale = 1.0 / np.sqrt(np.clip(np.diagonal(hessian), 1e-290, 1e290))
    singular = _refused(
        "the Hessian is not positive definite beyond rounding: columns of X are linearly dependent, or nearly so, or "
        "the means are at the end of their range; drop columns or use l2 > 0",
        _BOUNDED,
    )
    try:
        factor = cholesky(hessian * scale[:, None] * scale, lower=True, check_finite=False)
    except LinAlgError:
        raise singular from None
    if not np.diagonal(factor).min() > 1e-6:  # too near to singular for a claim about its inverse
        raise singular
    root = solve_triangular(factor, np.diag(scale), lower=True, check_finite=False)
    radius = c * float(np.sqrt(largest_image(problem.design, root))) if c else 0.0
    # Rounding of the scores changes slopes and curvatures; the products with the matrix have errors of their own.
    error = score_error(problem, x, problem.loss.divergence(eta, slope).size)
    weight = problem.weights * curvature * np.exp(c * error.width)
    moved = float(np.linalg.norm(weight * error.rows) + weight.max() * error.total.max())
    shifted = (
        gradient_error(problem, slope) + problem.design.column_norms * moved + 4 * _UNIT * np.abs(problem.ridge(x))
    )
    off = float(np.linalg.norm(np.abs(root) @ shifted))
    size, (n, p) = float(np.sum((root / scale) ** 2)), problem.design.shape
    # The true Hessian is at least this share of the computed one: errors relative to a unit diagonal, by the norm of
    # the inverse.
    share = 1.0 - 4.0 * p * ((n + 2 * p + 16) * _UNIT + float(np.expm1(c * error.width))) * size
    if not (share > 0.5 and np.isfinite(radius)):
        raise singular
    return _Curvature(root, radius, share, gradient, off, losses)


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
    _check_weights(problem, x)
    if problem.l1:
        raise _refused(f"self-concordance is for l1 = 0, not for l1 = {problem.l1:g}: use certify_glm_gap", "l1 = 0")
    with np.errstate(over="ignore", invalid="ignore"):
        at = _curvature(problem, x)
        decrement = float(np.linalg.norm(at.root @ at.gradient))
        bound = decrement_bound(decrement**2, 1.0, at.radius)
        worse = decrement_bound((decrement + at.off) ** 2 / at.share, 1.0, at.radius / np.sqrt(at.share))
    if not np.isfinite(worse):
        raise _refused(
            "the weights are too far from a minimiser, or there is none: Newton's decrement times the radius must be "
            f"below 1, and is {decrement * at.radius:.3g}",
            _NEAR,
        )
    return Certificate(
        "P(w) - P*",
        bound,
        _CONCORDANCE,
        (
            check(True, _BOUNDED),
            check(True, _NEAR, f"{decrement * at.radius:.3g}"),
            by_construction("gradient and Hessian are computed from the data in float64"),
        ),
        slack=worse * (1.0 + 1e-12) - bound + 1e-300 + value_error(problem, float(problem.weights @ np.abs(at.losses))),
        details={"Newton decrement": decrement, "radius": at.radius},
    )


@issuer
def certify_glm_distance(problem: GLMProblem, answer: Any) -> Certificate:
    """A bound on ``|w - w*|``, the distance of the weights from those of the minimiser; the intercept is left out.

    It follows from a certified gap ``G >= P(x) - P*`` and strong convexity. With ``l2 > 0``, ``|w - w*| <= sqrt(2 G /
    l2)``. The data add curvature of their own where the Hessian ``H`` of the smooth part at `x` is positive definite
    and ``|phi'''| <= c phi''``: along any line through `x` with unit ``H``-length the second derivative is at least
    ``exp(-rho t)``, ``rho = c max_i |x_i|_{H^-1}``, and at the minimiser no direction descends, so that::

        G >= int_0^t r exp(-rho r) dr >= t^2/2 - rho t^3/3,      t = |x - x*|_H.

    For ``rho s <= 1/2``, ``s = sqrt(2 G)``, it follows that ``t <= s (1 + rho s)``, and ``|w - w*| <= t / sqrt(mu)``
    with ``mu`` the smallest eigenvalue of ``H`` after minimising over the intercept. An l1 penalty adds a convex
    function, which changes nothing. The smaller of both bounds is issued; `CertificateError` is raised where there is
    neither. `answer` is weights, or a pair `PrimalDual`.

    Nesterov (2004, theorem 2.1.8); Bach (2010, proposition 1) for the change of the Hessian.

    >>> from cumulant.glm import design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), l2=0.5)
    >>> certificate = certify_glm_distance(problem, [1.0])                # the minimiser is 16/15, the curvature 5/2
    >>> round(certificate.bound, 6), round(certificate.details["mu"], 6)
    (0.066667, 2.5)
    """
    x = np.asarray(answer.x if isinstance(answer, PrimalDual) else answer, dtype=np.float64)
    gap = certify_glm_gap(problem, answer) if problem.l1 or problem.l2 else certify_glm_concordance(problem, x)
    found, refusal = [], None
    if problem.l2 > 0:
        text = "the objective is strongly convex in the weights by its l2 penalty"
        found.append(_Convexity(problem.l2, problem.l2, 1.0, check(True, text, f"mu = l2 = {problem.l2:.6g}")))
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            found.append(_convexity_of_data(problem, x, gap.upper))
    except CertificateError as refused:
        refusal = refused
    if not found:
        assert refusal is not None
        raise refusal
    strong = min(found, key=lambda each: each.stretch / np.sqrt(each.certain))
    bound = float(np.sqrt(2.0 * (gap.bound / strong.mu)))
    upper = float(strong.stretch * np.sqrt(2.0 * (gap.upper / strong.certain))) * (1.0 + 8 * _UNIT)
    if not np.isfinite(upper):
        raise _refused("the bound on the distance is beyond float64", "the distance is finite")
    return Certificate(
        "|w - w*|",
        bound,
        _DISTANCE,
        (strong.assumption, *gap.assumptions),
        slack=upper - bound,
        details={"gap": gap.upper, "mu": strong.mu},
    )


class _Convexity(NamedTuple):
    """The strong convexity in the weights, as computed and as certain, and the factor by which it falls short on the
    way to the minimiser.
    """

    mu: float
    certain: float
    stretch: float
    assumption: Assumption


def _convexity_of_data(problem: GLMProblem, x: np.ndarray, gap: float) -> _Convexity:
    """From the Hessian at `x`; refused where it says too little about the way to the minimiser."""
    at = _curvature(problem, x)
    stretch = 1.0 + at.radius / np.sqrt(at.share) * np.sqrt(2.0 * gap)
    text = "the objective is strongly convex in the weights between here and the minimiser"
    if not stretch <= 1.5:
        raise _refused(
            "the gap is too large for the Hessian at the weights to bound their distance from the minimiser: the "
            f"radius times sqrt(2 gap) must be at most 0.5, and is {stretch - 1.0:.3g}",
            text,
        )
    root = at.root[:, :-1] if problem.design.intercept else at.root
    mu = float(np.linalg.norm(root, 2)) ** -2.0
    # The root is that of a triangular matrix whose condition the share keeps below 1e8: errors below a millionth.
    return _Convexity(mu, mu * at.share * (1 - 1e-5), stretch, check(True, text, f"mu = {mu:.6g} at the weights"))
