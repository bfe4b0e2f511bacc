"""The distance to the minimum of a logistic loss without a penalty, from one Newton decrement."""

from typing import Any

import numpy as np

from cumulant.certificates import Certificate, by_construction, check, recipe_of, verifier
from cumulant.errors import CertificateError
from cumulant.optim.analysis.separability import separating_direction
from cumulant.optim.problems.base import _UNIT, widen
from cumulant.optim.problems.sparse_matrix import host_matrix, row_squares
from cumulant.precision import float64

__all__ = ["certify_self_concordance", "decrement_bound", "self_concordant_gap"]

_SMALL = 200_000  # entries of A up to which a refusal looks for a separating direction


def _ingredients(problem: Any, x: Any) -> tuple[float, float, float, float, float]:
    """The squared decrement, the smallest eigenvalue, its rounding, the longest row and the gradient's rounding."""
    x = np.asarray(x, dtype=np.float64)
    A = host_matrix(problem.A)
    with float64():
        curvature = np.asarray(problem.loss.curvature(np.asarray(problem.y) * (A @ x)))
    weighted = A.T @ (A * (problem.weight * curvature)[:, None])
    H = np.asarray(weighted.todense() if hasattr(weighted, "todense") else weighted) + float(problem.l2) * np.eye(
        x.size
    )
    smallest = float(np.linalg.eigvalsh(H)[0])
    doubt = 2 * (sum(A.shape) + 8) * _UNIT * float(np.trace(H))
    g = np.asarray(problem.gradient(x))
    squared = float(g @ np.linalg.solve(H, g)) if smallest > doubt else np.inf
    rows = problem.loss.self_concordance * float(np.sqrt(row_squares(problem.A).max()))
    return squared, smallest, doubt, rows, float(problem.gradient_rounding(x))


def decrement_bound(decrement: float, smallest: float, rows: float) -> float:
    """``(lambda / M^2) [(1 - k) log(1 - k) + k]``, ``k = decrement M / sqrt(lambda)``; infinite from ``k = 1`` on."""
    k = decrement * rows / np.sqrt(smallest)
    if not k < 1:
        return np.inf
    # The difference cancels for small k, where it is k^2/2 + k^3/6 + k^4/12 + ... = sum k^j / (j (j - 1)).
    shape = sum(k**j / (j * (j - 1)) for j in range(2, 9)) if k < 1e-2 else (1 - k) * np.log1p(-k) + k
    tail = k**9 / (72 * (1 - k)) if k < 1e-2 else 0.0
    return smallest / rows**2 * (shape + tail) if rows > 0 else 0.0


@verifier
def self_concordant_gap(problem: Any, x: Any) -> float:
    """The bound of `certify_self_concordance`, in float64 from the data."""
    squared, smallest, doubt, rows, _ = _ingredients(widen(problem), x)
    return decrement_bound(np.sqrt(squared), smallest, rows) if smallest > doubt else np.inf


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
    squared, smallest, doubt, rows, error = _ingredients(wide, x)
    decrement = np.sqrt(squared)
    bound = upper = np.inf
    if smallest > doubt:
        bound = decrement_bound(decrement, smallest, rows)
        # The exact Hessian is at least (1 - doubt / smallest) times the computed one.
        sure = (decrement / np.sqrt(1 - doubt / smallest) + error / np.sqrt(smallest - doubt)) * (1 + 1e-9)
        upper = decrement_bound(sure, smallest - doubt, rows)
    if not np.isfinite(upper):
        if float(wide.l2) == 0 and wide.A.size <= _SMALL and separating_direction(wide.A, wide.y) is not None:
            raise CertificateError(
                "no certificate: a minimiser exists does not hold (the classes can be separated, so the loss decreases "
                "for ever along a direction: add l2)",
                assumption="a minimiser exists",
            )
        check(False, "the Newton decrement is small enough to bound the gap without l2", f"lambda = {smallest:.3g}")
    return Certificate(
        "f(x) - f*",
        bound,
        "self-concordance of the logistic loss: half the squared Newton decrement, to leading order, Bach 2010",
        (
            check(True, "decrement * max |a_i| < sqrt(lambda)", f"ratio {decrement * rows / np.sqrt(smallest):.3g}"),
            by_construction("the third derivative of the loss is at most its second"),
        ),
        slack=max(upper - bound, 0.0),
        recipe=recipe_of(self_concordant_gap),
        details={"decrement": decrement, "lambda": smallest},
    )
