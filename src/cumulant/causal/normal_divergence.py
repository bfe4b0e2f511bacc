"""Divergences of normal distributions in mean, natural and Cholesky coordinates."""

from typing import Any

import numpy as np

from cumulant import checks
from cumulant.causal.matrices import (
    check_positive_definite,
    check_trailing,
    check_triangular,
    matvec,
    solve,
    transposed,
)


def normal_kl(first: Any, second: Any, space: str = "mean") -> Any:
    """``KL(N_0 || N_1)`` of normal distributions in three coordinates (appendix 4.E, in the forms that hold).

    ``2 KL + k`` is, with pairs ``(mu, S)`` for ``"mean"``, ``(eta, P)`` for ``"natural"``, ``(zeta, L)`` for
    ``"cholesky"`` and ``V = L_0^-1 L_1``:

    * ``(mu_1 - mu_0)^T S_1^-1 (mu_1 - mu_0) + tr(S_1^-1 S_0) - log det(S_1^-1 S_0)``;
    * ``eta_1^T P_1^-1 eta_1 - 2 eta_1^T P_0^-1 eta_0 + eta_0^T P_0^-1 P_1 P_0^-1 eta_0 + tr(P_1 P_0^-1) - log det(P_1
      P_0^-1)``;
    * ``|V^T zeta_0 - zeta_1|^2 + |V|_F^2 - 2 sum_i log V_ii``, which loses the least to rounding.

    >>> normal_kl(([0.0], [[1.0]]), ([1.0], [[1.0]]))
    np.float64(0.5)
    """
    checks.choice("space", space, ("mean", "natural", "cholesky"))
    for name, pair in (("first", first), ("second", second)):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"{name} must be a pair of a vector and a matrix; got {pair!r:.60}")
    (u0, m0), (u1, m1) = (
        (checks.real_array(f"the vector of {name}", pair[0]), checks.real_array(f"the matrix of {name}", pair[1]))
        for name, pair in (("first", first), ("second", second))
    )
    size = u0.shape[-1] if u0.ndim else 0
    for name, vector, matrix in (("first", u0, m0), ("second", u1, m1)):
        check_trailing(f"the vector of {name}", vector, (size,))
        check_trailing(f"the matrix of {name}", matrix, (size, size))
        if space == "cholesky":
            check_triangular(f"the matrix of {name}", matrix)
        else:
            check_positive_definite(f"the matrix of {name}", matrix)
    if space == "cholesky":
        ratio = np.linalg.solve(m0, m1)
        apart = matvec(transposed(ratio), u0) - u1
        pivots = np.diagonal(ratio, axis1=-2, axis2=-1)
        rest = np.sum(np.tril(ratio, -1) ** 2, axis=(-2, -1)) + np.sum(_excess(pivots), axis=-1)
        return 0.5 * (np.sum(apart**2, axis=-1) + rest)
    if space == "natural":
        mean, ratio = solve(m0, u0), np.linalg.solve(m0, m1)
        far = np.sum(u1 * solve(m1, u1), axis=-1) - 2 * np.sum(u1 * mean, axis=-1)
        far = far + np.sum(mean * matvec(m1, mean), axis=-1)
    else:
        ratio = np.linalg.solve(m1, m0)
        far = np.sum((u1 - u0) * solve(m1, u1 - u0), axis=-1)
    trace = np.trace(ratio, axis1=-2, axis2=-1)
    return 0.5 * (far + trace - size - np.linalg.slogdet(ratio)[1])


def _excess(pivots: np.ndarray) -> np.ndarray:
    """``v^2 - 1 - 2 log v``."""
    far = (pivots - 1) * (pivots + 1)
    return far - np.log1p(far)
