"""Whether two classes can be separated by a hyperplane through zero: then logistic regression has no minimiser."""

from typing import Any

import numpy as np
from scipy import sparse

from cumulant.errors import NotConvergedError
from cumulant.optim.problems import array, matrix
from cumulant.optim.sparse_matrix import host_matrix

__all__ = ["is_separable", "separating_direction"]


def separating_direction(A: Any, y: Any) -> np.ndarray | None:
    """A vector ``x`` with ``y_i <a_i, x> >= 0`` for all ``i``, and ``> 0`` for one; None if there is none.

    By the linear programme ``max sum_i y_i <a_i, x>`` over ``y_i <a_i, x> >= 0``, ``|x_j| <= 1``, on rows scaled to
    largest entry one. Along such a direction the logistic loss decreases for ever, so it has a minimiser exactly when
    there is none and the columns of ``A`` are independent (Albert and Anderson 1984).
    """
    from scipy.optimize import linprog  # here, because it takes long to import and few need it

    rows, signs = host_matrix(matrix(A, "A")), np.asarray(array(y, "y", 1), dtype=np.float64)
    if rows.shape[0] != signs.size or not np.all(np.abs(signs) == 1):
        raise ValueError(f"y must hold one sign, +1 or -1, for each of the {rows.shape[0]} rows of A")
    largest = abs(rows).max(axis=1)
    largest = largest.toarray().ravel() if sparse.issparse(largest) else np.asarray(largest)
    scale = signs / np.where(largest > 0, largest, 1.0)
    signed = sparse.diags_array(scale) @ rows if sparse.issparse(rows) else scale[:, None] * rows
    total = np.asarray(signed.sum(axis=0)).ravel()
    found = linprog(-total, A_ub=-signed, b_ub=np.zeros(signs.size), bounds=(-1.0, 1.0), method="highs")
    if found.status != 0:
        raise NotConvergedError(f"the linear programme of separability was not solved: {found.message}")
    # The programme is solved to 1e-7 in each constraint; what it gains has to be more than such errors can add up to.
    margins = signed @ found.x
    gained = np.max(margins, initial=0.0) > 1e-6 and np.min(margins) >= -1e-7
    return found.x if gained else None


def is_separable(A: Any, y: Any) -> bool:
    """Whether some ``x`` has ``y_i <a_i, x> >= 0`` for all ``i`` and not all zero: no minimiser of the logistic loss.

    Complete and quasi-complete separation alike; add a constant column to ``A`` for hyperplanes that need not pass
    through zero. Independent columns do not prevent it, whatever the strict convexity of the loss suggests. Any
    ``l2 > 0`` restores a minimiser.

    >>> is_separable([[1.0], [2.0], [-1.0]], [1, 1, -1]), is_separable([[1.0], [2.0], [1.0]], [1, 1, -1])
    (True, False)
    """
    return separating_direction(A, y) is not None
