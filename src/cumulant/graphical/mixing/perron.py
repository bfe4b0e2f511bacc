"""The Perron root of a sparse matrix that is not negative, between two bounds that are proved."""

from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import ArpackNoConvergence, cg, eigsh

from cumulant.certificates import Interval

_DENSE = 400  # up to here a dense factorisation is faster than a few hundred sparse products


def perron_root(matrix: Any, *, rtol: float = 1e-5) -> Interval:
    """The largest eigenvalue of a symmetric matrix with entries ``>= 0``.

    The lower end is a Rayleigh quotient, the upper end that of Collatz and Wielandt: ``max_i (S x)_i / x_i`` for any
    ``x > 0``. Here ``x`` solves ``(t I - S) x = 1`` with ``t`` just above the root, for then ``S x = t x - 1 < t x``;
    such an ``x`` is positive however small the eigenvector is far from where it lives. Both ends allow for rounding.

    Parameters
    ----------
    matrix : sparse or dense array of shape (n, n)
    rtol : float
        The relative width aimed at, on small matrices 1e-10; what is reached is in the answer.

    Examples
    --------
    >>> perron_root(np.array([[0.0, 1.0], [1.0, 0.0]])).upper < 1.0 + 1e-5
    True

    References
    ----------
    Collatz (1942); Wielandt (1950); Berman and Plemmons (1994), theorem 6.2.3.
    """
    return _symmetric(csr_array(matrix), None, rtol)


def spectral_norm(matrix: Any, *, rtol: float = 1e-5) -> Interval:
    """The largest singular value of a matrix with entries ``>= 0``: the root of the Perron root of ``R^T R``.

    >>> round(spectral_norm(np.array([[0.0, 2.0], [0.0, 0.0]])).estimate, 9)
    2.0
    """
    R: Any = csr_array(matrix)
    if R.shape[0] == R.shape[1] and abs(R - R.T).max() == 0:
        return perron_root(R, rtol=rtol)
    square = _symmetric(csr_array(R.T @ R), R, rtol)
    return Interval(np.sqrt(square.lower), np.sqrt(square.upper), np.sqrt(square.estimate or 0.0))


def perron_vector(matrix: Any, *, rtol: float = 1e-5) -> np.ndarray:
    """An approximate eigenvector of the largest eigenvalue of a symmetric matrix with entries ``>= 0``, of unit length.

    >>> perron_vector(np.array([[0.0, 1.0], [1.0, 0.0]])).round(6)
    array([0.707107, 0.707107])
    """
    return np.abs(_top(csr_array(matrix), rtol)[1])


def _symmetric(S: Any, factor: Any, rtol: float) -> Interval:
    n = S.shape[0]
    if S.nnz == 0 or S.data.max(initial=0.0) == 0:
        return Interval(0.0, 0.0, 0.0)
    # The sums of a row, once for S and once more where S is itself a product, each rounded once for every term.
    terms = np.diff(S.indptr).max() + (0 if factor is None else np.diff(factor.indptr).max() + n)
    slack = 1.0 + 4.0 * (terms + 4.0) * 2.0**-53
    rtol = min(rtol, 1e-10) if n <= _DENSE else rtol
    rows = float(S.sum(axis=1).max())  # x = 1 in the quotient: always there to fall back on
    value, vector = _top(S, rtol)
    vector = np.abs(vector)
    lower = float(vector @ (S @ vector) / (vector @ vector)) / slack**2
    upper = rows
    for step in (rtol, 10.0 * rtol, 100.0 * rtol):
        target = max(value, lower) * (1.0 + step)
        if target >= rows:
            break
        x = _resolvent(S, target)
        if x is not None:
            upper = min(upper, float((S @ x / x).max()))
            break
    upper *= slack
    return Interval(min(lower, upper), upper, min(max(value, lower), upper))


def _top(S: Any, rtol: float) -> tuple[float, np.ndarray]:
    n = S.shape[0]
    if n <= _DENSE:
        values, vectors = linalg.eigh(S.toarray(), subset_by_index=[n - 1, n - 1])
        return float(values[0]), vectors[:, 0]
    tolerance: Any = min(0.1 * rtol, 1e-4)
    start = np.asarray(S.sum(axis=1)).ravel() + 1e-3 * S.data.max()
    try:
        values, vectors = eigsh(S, k=1, which="LA", v0=start, tol=tolerance, ncv=min(n - 1, 48))
    except ArpackNoConvergence as problem:
        if not len(problem.eigenvalues):
            return float((S @ start) @ start / (start @ start)), start
        values, vectors = problem.eigenvalues, problem.eigenvectors
    return float(values[0]), vectors[:, 0]


def _resolvent(S: Any, target: float) -> np.ndarray | None:
    """``x > 0`` with ``(target I - S) x`` close to one everywhere, or None where there is none to be found."""
    n = S.shape[0]
    ones = np.ones(n)
    if n <= _DENSE:
        try:
            factor = linalg.cho_factor(target * np.eye(n) - S.toarray(), check_finite=False)
        except linalg.LinAlgError:
            return None
        x = linalg.cho_solve(factor, ones, check_finite=False)
    else:
        x, _ = cg(target * eye_array(n) - S, ones, rtol=0.0, atol=0.5, maxiter=20_000)
    residual = np.abs(target * x - S @ x - ones).max()
    return x if x.min() > 0 and residual < 0.9 else None
