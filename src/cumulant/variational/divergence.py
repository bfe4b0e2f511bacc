"""How far a Gaussian is from the posterior itself, where the posterior is strongly log-concave.

The certificate of a fit bounds the distance from the best Gaussian; this one bounds ``KL(q | p)``, by the logarithmic
Sobolev inequality, and with it the errors of means and standard deviations.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit

from cumulant import checks, randomness
from cumulant.certificates import Assumption, Certificate, Subject, assume, by_construction, check, issuer
from cumulant.errors import CertificateError
from cumulant.optim.problems.enclosures import UNIT, smallest_eigenvalue
from cumulant.sampling import Target
from cumulant.variational.result import GaussianFit
from cumulant.variational.targets import Regression

_CHUNK = 2**22  # numbers of scores held at a time


@dataclasses.dataclass(frozen=True, eq=False)
class DivergenceProblem:
    """A target, and the draws by which the divergence from it is bounded: `n` of them from a `seed`.

    `delta` is the probability that the bound fails.
    """

    target: Target
    n: int
    delta: float
    seed: int

    def __post_init__(self):
        checks.whole("n", self.n)
        checks.fraction("delta", self.delta)


@dataclasses.dataclass(frozen=True, eq=False)
class DivergenceBound:
    """Bounds on the distance between a Gaussian ``q`` and a strongly log-concave ``p``; all hold together.

    Attributes
    ----------
    certificate : Certificate
        Of ``KL(q | p)``, with probability ``1 - delta`` over the draws.
    total_variation : float
        ``sqrt(KL / 2)`` (Pinsker): the error of the probability of any event.
    coordinate_error : array (dim,)
        Bounds the error of each mean, and that of each standard deviation: ``sqrt(2 KL (Lambda^-1)_ii)``, ``Lambda`` a
        lower bound on the Hessian of ``-log p`` (Talagrand's inequality, of one coordinate).
    relative_error : array (dim,)
        The same in standard deviations of ``q``.
    """

    certificate: Certificate
    subject: Subject
    total_variation: float
    coordinate_error: np.ndarray
    relative_error: np.ndarray

    def __str__(self):
        return (
            f"{self.certificate}\n  the probability of no event is off by more than {self.total_variation:.3g}; "
            f"no mean or standard deviation by more than {float(np.max(self.relative_error)):.3g} standard deviations"
        )


def bound_divergence(fit: GaussianFit, *, n: int = 2000, delta: float = 0.01, rng: Any = 0) -> DivergenceBound:
    """``KL(q | p)`` of a fit and what follows from it: the distance of the Gaussian from the posterior itself.

    Where the Hessian of ``-log p`` is at least ``Lambda`` everywhere, ``KL(q | p) <= E |grad log q - grad log p|^2 /
    2`` in the norm of ``Lambda^-1`` (Bakry and Emery 1985). The expectation is bounded from `n` draws of ``q``: the
    root of its sample mean is a Lipschitz function of the draws, so that it concentrates as a Gaussian does (Tsirelson,
    Ibragimov and Sudakov 1976).

    The bound is tight where ``Lambda`` is near the Hessian at the mode: linear regressions, and models whose prior is
    not much weaker than their data. Under a weak prior it is far above the truth.

    Parameters
    ----------
    fit : GaussianFit
        Of a target with known `smoothness` and a positive `strong_convexity`.
    n : int
        Draws; more of them bring the bound nearer to ``E |grad log q - grad log p|^2 / 2``.
    delta : float
        The probability that it fails.

    Examples
    --------
    >>> from cumulant import variational as vi
    >>> posterior = vi.fit(vi.logistic_regression([[1.0], [2.0], [-1.0]], [1, 1, 1]))
    >>> bound = bound_divergence(posterior)
    >>> bound.certificate.kind, bool(0 < bound.certificate.upper < 0.05)
    ('with probability', True)
    """
    checks.instance("fit", fit, GaussianFit, "a GaussianFit, as vi.fit returns")
    problem = DivergenceProblem(fit.target, n, delta, randomness.seed(rng))
    answer = np.concatenate([fit.mean[:, None], fit.scale], axis=1)
    certificate = certify_divergence(problem, answer)
    most = certificate.upper
    errors = math.sqrt(2 * most) * _widths(_curvature(fit.target))
    return DivergenceBound(
        certificate,
        Subject(problem, answer),
        min(1.0, math.sqrt(most / 2)),
        errors,
        errors / fit.deviations,
    )


@issuer
def certify_divergence(given: DivergenceProblem, answer: Any) -> Certificate:
    """``KL(q | p)`` of ``q = N(m, C C^T)``, ``answer = [m | C]``, by `bound_divergence`'s inequalities."""
    w = np.asarray(answer, dtype=np.float64)
    m, C = w[:, 0], w[:, 1:]
    d = len(m)
    curvature = _curvature(given.target)
    # In coordinates u, z = m + C u, the Hessian of -log p is between low and high times the identity.
    A, doubt = _carried(C, *curvature.lower)
    low = smallest_eigenvalue(A) - doubt
    B, doubt = _carried(C, *curvature.upper)
    high = -smallest_eigenvalue(-B) + doubt
    known = f"mu = {float(given.target.strong_convexity):.6g}, M = {float(given.target.smoothness or math.nan):.6g}"
    assumptions: list[Assumption] = [
        check(low > 0, "minus the log-density is strongly convex", known)
        if curvature.known
        else assume("minus the log-density is strongly convex and smooth", f"as given: {known}"),
    ]
    if not low > 0:
        raise CertificateError("no certificate: the Hessian of the target is not known to be positive in float64")
    R = np.linalg.cholesky(A)
    u = np.random.default_rng(given.seed).normal(size=(given.n, d))
    norms, wrong = np.empty(given.n), np.empty(given.n)
    for start in range(0, given.n, _rows_at_once(given.target)):
        part = slice(start, start + _rows_at_once(given.target))
        v, error = _residual(given.target, m, C, u[part])
        norms[part] = np.linalg.norm(solve_triangular(R, v.T, lower=True), axis=0)
        wrong[part] = np.linalg.norm(error, axis=1) / math.sqrt(low)
    if not np.all(np.isfinite(norms)):
        raise CertificateError("no certificate: the gradient of the target is not finite at a draw of the Gaussian")
    computed = math.sqrt(float(np.mean(norms**2)))
    condition = 1 + 64 * (d + 2) ** 2 * UNIT * high / low + 4 * given.n * UNIT
    root = condition * (computed + math.sqrt(float(np.mean(wrong**2))))
    slope = max(high - 1, 1 - low) / math.sqrt(low)
    away = slope * math.sqrt(2 * math.log(1 / given.delta) / given.n)
    bound = ((computed + away) ** 2 + slope**2 / given.n) / 2
    most = ((root + away) ** 2 + slope**2 / given.n) / 2
    if isinstance(given.target, Regression):
        rounding = by_construction("the gradients are within the slack")
    else:
        rounding = assume("the gradients are computed to 1e-9 of the sizes of their terms")
    assumptions += [by_construction("the draws are independent, from a generator with this seed"), rounding]
    return Certificate(
        "KL(q | p)",
        bound,
        "logarithmic Sobolev inequality, Bakry and Emery 1985; Gaussian concentration, Tsirelson and others 1976",
        tuple(assumptions),
        kind="with probability",
        delta=given.delta,
        slack=most - bound + 16 * UNIT * most,
        details={"Fisher divergence / 2": computed**2 / 2, "draws": given.n, "Lipschitz constant": slope},
    )


class _Curvature(NamedTuple):
    """The Hessian of ``-log p`` is between two matrices, each with a bound on its error in norm; whether they were
    computed.
    """

    lower: tuple[np.ndarray, float]
    upper: tuple[np.ndarray, float]
    known: bool


def _carried(C: np.ndarray, H: np.ndarray, error: float) -> tuple[np.ndarray, float]:
    """``C^T H C``, and a bound on its error in norm."""
    size = float(np.max(np.sum(np.abs(C).T @ np.abs(H) @ np.abs(C), axis=1)))
    return _symmetric(C.T @ H @ C), 8 * (len(C) + 2) * UNIT * size + float(np.sum(C**2)) * error


def _curvature(target: Target) -> _Curvature:
    M, mu, d = target.smoothness, float(target.strong_convexity), target.dim
    if M is None or not mu > 0:
        raise CertificateError(
            "no certificate: the target must have a known smoothness and a positive strong_convexity; it has "
            f"{M} and {mu}",
            assumption="strong convexity",
        )
    known = target.constants_are == "checked"
    if not isinstance(target, Regression):
        return _Curvature((mu * np.eye(d), 0.0), (float(M) * np.eye(d), 0.0), known)
    X, _, P, _, noise = target.data
    least, most = (noise**-2.0,) * 2 if target.likelihood == "normal" else (0.0, 0.25)
    gram, off = X.T @ X, UNIT * (len(X) + 8) * float(np.sum(X**2))
    prior = 8 * UNIT * float(np.max(np.abs(P)))
    lower, upper = ((_symmetric(P + bend * gram), prior + bend * off) for bend in (least, most))
    return _Curvature(lower, upper, known)


def _widths(curvature: _Curvature) -> np.ndarray:
    """At least the roots of the diagonal of ``Lambda^-1``."""
    lower, error = curvature.lower
    Lambda = lower - error * np.eye(len(lower))
    least = smallest_eigenvalue(Lambda)
    if not np.max(np.abs(Lambda)) < 1e8 * least:  # too near to singular for its inverse to have eight digits
        return np.full(len(Lambda), 1 / math.sqrt(least))
    return np.sqrt(np.diagonal(np.linalg.inv(Lambda))) * (1 + 1e-6)


def _residual(target: Target, m: np.ndarray, C: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``C^T grad (log q - log p)`` at ``m + C u``, row by row, and bounds on its errors."""
    z = m + u @ C.T
    sizes = np.abs(m) + np.abs(u) @ np.abs(C).T  # of the terms of z, which may cancel
    if not isinstance(target, Regression):
        gradient = np.asarray(target.gradient(z))
        terms = np.abs(gradient) @ np.abs(C) + np.abs(u)
        return -(gradient @ C) - u, 1e-9 * terms
    X, y, P, _, noise = target.data
    n, d = X.shape
    unit = 4 * (n + d + 8) * UNIT
    scores = z @ X.T
    if target.likelihood == "normal":
        slopes, bend = (scores - y) / noise**2, noise**-2.0
        beside = np.abs(y) * bend
    else:
        slopes, bend = -y * expit(-y * scores), 0.25
        beside = np.zeros_like(y)
    gradient = slopes @ X + z @ P
    # Errors of the scores move the slopes; then each product and sum is rounded.
    doubt = bend * unit * (sizes @ np.abs(X).T) + unit * (np.abs(slopes) + beside)
    error = doubt @ np.abs(X) + unit * (sizes @ np.abs(P))
    return gradient @ C - u, error @ np.abs(C) + unit * (np.abs(gradient) @ np.abs(C) + np.abs(u))


def _rows_at_once(target: Target) -> int:
    rows = target.data[0].shape[0] if isinstance(target, Regression) else target.dim
    return max(1, _CHUNK // max(rows, 1))


def _symmetric(A: np.ndarray) -> np.ndarray:
    return (A + A.T) / 2
