"""The distance to the minimum of a logistic loss without a penalty, from one Newton decrement."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from cumulant.certificates import Certificate, assume, by_construction, check, issuer
from cumulant.errors import CertificateError
from cumulant.optim.analysis.separability import separating_direction
from cumulant.optim.certify.strong_convexity import accuracy
from cumulant.optim.problems.base import widen
from cumulant.optim.problems.enclosures import TINY, UNIT, Enclosure, dot, enclose, smallest_eigenvalue
from cumulant.optim.problems.margin_losses import LogisticLoss
from cumulant.optim.problems.sparse_matrix import row_squares

_SMALL = 200_000  # entries of A up to which a refusal looks for a separating direction


class _Found(NamedTuple):
    """The squared decrement, the smallest eigenvalue of the Hessian (computed, and what it is proved to be at least)
    and the length of the longest row times the constant of the loss.
    """

    squared: Enclosure
    computed: float
    certain: float
    rows: float


def _find(problem: Any, x: np.ndarray) -> _Found:
    A, l2, concordance = problem.host_A, float(problem.l2), float(problem.loss.self_concordance)
    curvature = problem.enclosed_curvature(problem.enclosed_margins(x))
    computed = curvature.value
    squares = row_squares(problem.A)
    rows = concordance * float(np.sqrt(squares.max())) * (1 + (A.shape[1] + 8) * UNIT)
    weighted = A.T @ (A * (problem.weight * computed)[:, None])
    H = np.asarray(weighted.todense() if sparse.issparse(weighted) else weighted) + l2 * np.eye(x.size)
    H = (H + H.T) / 2
    # The error of H is at most a sum of matrices |a_i| |a_i|^T, and so is its norm at most that of their traces.
    size = problem.weight * (curvature.error + (sum(A.shape) + 16) * UNIT * computed) * squares
    smallest = float(np.linalg.eigvalsh(H)[0])
    certain = smallest_eigenvalue(H, smallest) - float(np.sum(size)) * (1 + 1e-12) - 8 * UNIT * l2 - TINY
    if not certain > 0:
        return _Found(enclose(np.inf), smallest, certain, rows)
    g = problem.enclosed_gradient(x)
    v = np.linalg.solve(H, g.value)
    bent = problem.pulled_back(dot(A, v) * curvature) + enclose(v) * l2
    # Whatever v, <g, H^-1 g> = 2 <g, v> - <v, H v> + <r, H^-1 r> with r = g - H v.
    squared = dot(g, v) * 2.0 - dot(bent, v) + (g - bent).square().sum() / certain
    return _Found(squared, smallest, certain, rows)


def decrement_bound(squared: float, smallest: float, rows: float) -> float:
    """``(lambda / M^2) [(1 - k) log(1 - k) + k]``, ``k = decrement M / sqrt(lambda)``; infinite from ``k = 1`` on."""
    k = np.sqrt(squared) * rows / np.sqrt(smallest)
    if not k < 1:
        return np.inf
    # Over k^2, so that nothing overflows. The difference cancels for small k, where it is sum k^(j - 2) / (j (j - 1)).
    if k < 1e-2:
        shape = sum(k ** (j - 2) / (j * (j - 1)) for j in range(2, 9)) + k**7 / (72 * (1 - k))
    else:
        shape = ((1 - k) * np.log1p(-k) + k) / k**2
    return float(squared * shape)


def _ends(found: _Found) -> tuple[float, float]:
    """The bound from the computed numbers, and the one that holds whatever their rounding."""
    if not (found.certain > 0 and np.isfinite(found.squared.upper)):
        return np.inf, np.inf
    computed = decrement_bound(max(float(found.squared.value), 0.0), found.computed, found.rows)
    certain = decrement_bound(max(float(found.squared.upper), 0.0), found.certain, found.rows * (1 + 8 * UNIT))
    return min(computed, certain), certain * (1 + 1e-11) + TINY


def self_concordant_gap(problem: Any, x: Any) -> float:
    """The bound of `certify_self_concordance`; infinite where there is none."""
    return _ends(_find(widen(problem), np.asarray(x, dtype=np.float64)))[1]


@issuer
def certify_self_concordance(problem: Any, x: Any) -> Certificate:
    """``f(x) - f* <= (lambda / M^2) [(1 - k) log(1 - k) + k]``, about half the squared Newton decrement ``nu``.

    ``lambda`` is the smallest eigenvalue of the Hessian at ``x``, ``M = max |a_i|`` and ``k = nu M / sqrt(lambda)``,
    which has to be below one. The third derivative of the logistic loss is at most its second, so along a direction
    ``v`` the Hessian falls no faster than ``exp(-M |v|)`` (Bach 2010, proposition 1). Integrating twice,
    ``f(x + v) >= f(x) - nu |v|_H + (lambda / M^2) (exp(-s) + s - 1)`` with ``s = M |v|_H / sqrt(lambda)``, and the
    smallest value of the right-hand side over ``s`` is the bound.

    That ``k < 1`` also proves that a minimiser exists. Where it is not, a separating direction is looked for, and the
    refusal says so if there is one.
    """
    wide, x = widen(problem), np.asarray(x, dtype=np.float64)
    found = _find(wide, x)
    bound, upper = _ends(found)
    if not np.isfinite(upper):
        if float(wide.l2) == 0 and wide.A.size <= _SMALL and separating_direction(wide.A, wide.y) is not None:
            raise CertificateError(
                "no certificate: it was not shown that a minimiser exists (the classes can be separated, so the loss "
                "decreases for ever along a direction: add l2)",
                assumption="a minimiser exists",
            )
        check(
            False,
            "the Newton decrement is small enough to bound the gap without l2",
            f"lambda = {found.computed:.3g}",
        )
    decrement = float(np.sqrt(max(float(found.squared.value), 0.0)))
    third = "the third derivative of the loss is at most its second"
    ratio = decrement * found.rows / np.sqrt(found.certain)
    return Certificate(
        "f(x) - f*",
        bound,
        "self-concordance of the logistic loss: half the squared Newton decrement, to leading order, Bach 2010",
        (
            check(True, "decrement * max |a_i| < sqrt(lambda)", f"ratio {ratio:.3g}"),
            by_construction(third) if type(wide.loss) is LogisticLoss else assume(third, "the loss is yours"),
            accuracy(wide, "the decrement is computed from the data in float64"),
        ),
        slack=upper - bound,
        details={"decrement": decrement, "lambda": found.computed},
    )
