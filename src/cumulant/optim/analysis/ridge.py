"""Ridge regression by the formula that suits the shape of the data, and its limit, the pseudo-inverse."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import linalg

from cumulant import checks
from cumulant.certificates import Certificate, Subject
from cumulant.optim.certify.strong_convexity import certify_strong_convexity
from cumulant.optim.driver.run import run
from cumulant.optim.problems.base import array, matrix
from cumulant.optim.problems.least_squares import LeastSquares
from cumulant.optim.problems.sparse_matrix import SparseMatrix, host_matrix
from cumulant.optim.solvers.conjugate_gradient import ConjugateGradient

Method = Literal["auto", "primal", "dual", "cg", "svd"]


@dataclass(frozen=True)
class RidgeSolution:
    """The coefficients, the objective there, how far it can be from the minimum, and the method that was used.

    >>> solution = ridge([[1.0], [1.0]], [1.0, 3.0], 2.0)
    >>> solution.x, solution.method
    (array([1.]), 'primal')
    """

    x: np.ndarray
    value: float
    certificate: Certificate
    method: str
    subject: Subject = field(repr=False)

    def __str__(self):
        return f"ridge by {self.method}: value {self.value:.10g}\n  " + str(self.certificate).replace("\n", "\n  ")


def ridge(A: Any, y: Any, lam: float, *, method: Method = "auto", tol: float = 1e-12) -> RidgeSolution:
    """Minimise ``|A x - y|^2 / 2 + lam |x|^2 / 2``: scikit-learn's ``Ridge(alpha=lam, fit_intercept=False)``.

    Parameters
    ----------
    A : array or SciPy sparse matrix (n, p)
    y : array (n,)
    lam : float
        Positive; for the limit zero see `pinv_solution`.
    method : str
        ``"primal"``: ``(A^T A + lam I)^-1 A^T y`` by Cholesky; ``"dual"``: ``A^T (A A^T + lam I)^-1 y``, smaller where
        ``n < p``; ``"svd"``; ``"cg"``: conjugate gradients, which only multiplies by ``A``, to a certified relative
        `tol`. ``"auto"`` is ``"cg"`` for sparse data and else the smaller of the first two.

    Returns
    -------
    RidgeSolution
        With the certificate ``f(x) - f* <= |grad f(x)|^2 / (2 mu)``, which is the duality gap where ``A`` has no full
        column rank.

    Examples
    --------
    >>> solution = ridge([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], 1.0)
    >>> solution.x.round(8), solution.certificate.upper < 1e-14
    (array([0.18965517, 0.34482759]), True)
    """
    lam = float(checks.number("lam", lam))
    if not (np.isfinite(lam) and lam > 0):
        raise ValueError(f"lam must be positive and finite; got {lam}: for the limit at zero see pinv_solution")
    checks.choice("method", method, ("auto", "primal", "dual", "cg", "svd"))
    problem = LeastSquares(A, y, l2=lam, reduction="sum")
    design, targets = host_matrix(problem.A), np.asarray(problem.y, dtype=np.float64)
    n, p = design.shape
    if method == "auto":
        method = "cg" if isinstance(problem.A, SparseMatrix) else "primal" if n >= p else "dual"
    if method == "cg":
        found = run(ConjugateGradient(), problem, np.zeros(p), tol=tol, max_steps=max(10 * min(n, p), 100))
        x = np.asarray(found.x)
    else:
        dense = design.toarray() if isinstance(problem.A, SparseMatrix) else design
        if method == "primal":
            x = linalg.solve(dense.T @ dense + lam * np.eye(p), dense.T @ targets, assume_a="pos")
        elif method == "dual":
            x = dense.T @ linalg.solve(dense @ dense.T + lam * np.eye(n), targets, assume_a="pos")
        else:
            x = ridge_path(dense, targets, [lam])[0]
    subject = Subject(problem, x)
    return RidgeSolution(x, float(problem.value(x)), certify_strong_convexity(*subject), method, subject)


def ridge_path(A: Any, y: Any, lams: Any) -> np.ndarray:
    """The ridge solutions for many penalties, one row each, from one singular value decomposition.

    ``x_lam = V diag(s / (s^2 + lam)) U^T y``.

    >>> ridge_path([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], [1.0, 10.0]).round(4)
    array([[0.1897, 0.3448],
           [0.2128, 0.2824]])
    """
    lams = np.asarray(array(lams, "lams", 1), dtype=np.float64)
    if not np.all(lams > 0):
        raise ValueError(f"lams must be positive; got {lams.min():g}")
    s, along, Vt = _singular(A, y)
    return (s / (s**2 + lams[:, None]) * along) @ Vt


def _singular(A: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The singular values of ``A = U diag(s) V^T``, with ``U^T y`` and ``V^T``."""
    design, targets = host_matrix(matrix(A, "A")), np.asarray(array(y, "y", 1), dtype=np.float64)
    if design.shape[0] != targets.size:
        raise ValueError(f"A must have one row for each entry of y; got shapes {design.shape} and {targets.shape}")
    U, s, Vt = np.linalg.svd(design if isinstance(design, np.ndarray) else design.toarray(), full_matrices=False)
    return s, U.T @ targets, Vt


def pinv_solution(A: Any, y: Any, *, cutoff: float | None = None) -> np.ndarray:
    """``A^+ y``: of the least-squares solutions the one of smallest norm, and the limit of `ridge` for ``lam -> 0``.

    Singular values below `cutoff` times the largest count as zero; ``max(n, p)`` units of rounding unless given.

    The pseudo-inverse of Penrose (1955).

    >>> pinv_solution([[1.0, 2.0, 0.5], [0.0, 1.0, 1.0]], [1.0, 1.0]).round(8)
    array([-0.11764706,  0.41176471,  0.58823529])
    """
    s, along, Vt = _singular(A, y)
    share = max(np.size(y), Vt.shape[1]) * np.finfo(np.float64).eps if cutoff is None else float(cutoff)
    kept = s > share * s[0]
    return Vt.T @ (np.where(kept, 1 / np.where(kept, s, 1.0), 0.0) * along)
