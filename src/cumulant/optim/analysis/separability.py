"""Whether two classes can be separated by a hyperplane through zero: then logistic regression has no minimiser."""

from typing import Any

import numpy as np
from scipy import sparse

from cumulant.errors import NotConvergedError
from cumulant.optim.problems.base import array, matrix
from cumulant.optim.problems.sparse_matrix import host_matrix


def separating_direction(A: Any, y: Any) -> np.ndarray | None:
    """A vector ``x`` with ``y_i <a_i, x> >= 0`` for all ``i``, and ``> 0`` for one; None if there is none.

    Rows with ``y_i = 0`` are ties: they ask for ``<a_i, x> = 0``, as observations do whose loss rises both ways. By the
    linear programme ``max sum_i y_i <a_i, x>`` under these constraints and ``|x_j| <= 1``, on columns, then rows,
    scaled to largest entry one. Along such a direction the logistic loss decreases for ever, so it has a minimiser
    exactly when there is none and the columns of ``A`` are independent (Albert and Anderson 1984).

    >>> separating_direction([[1.0, 0.0], [-1.0, 0.0]], [1, -1])
    array([ 1., -1.])
    >>> separating_direction([[1.0], [1.0]], [1, -1]) is None
    True
    """
    from scipy.optimize import linprog  # here, because it takes long to import and few need it

    rows, signs = host_matrix(matrix(A, "A")), np.asarray(array(y, "y", 1), dtype=np.float64)
    if rows.shape[0] != signs.size or not np.all(np.isin(signs, (-1.0, 0.0, 1.0))):
        raise ValueError(f"y must hold one sign, +1 or -1, or 0 for a tie, for each of the {rows.shape[0]} rows of A")
    rows = sparse.csr_array(rows)
    columns = 1.0 / _largest(rows, 0)
    rows = rows @ sparse.diags_array(columns)
    scale = np.where(signs == 0, 1.0, signs) / _largest(rows, 1)
    signed = sparse.csr_array(sparse.diags_array(scale) @ rows)
    wanted, tied = signed[signs != 0], signed[signs == 0]
    if wanted.shape[0] == 0:
        return None
    found = linprog(
        -np.asarray(wanted.sum(axis=0)).ravel(),
        A_ub=-wanted,
        b_ub=np.zeros(wanted.shape[0]),
        A_eq=tied if tied.shape[0] else None,
        b_eq=np.zeros(tied.shape[0]) if tied.shape[0] else None,
        bounds=(-1.0, 1.0),
        method="highs",
    )
    if found.status != 0:
        raise NotConvergedError(f"the linear programme of separability was not solved: {found.message}")
    # The programme is solved to 1e-7 in each constraint; what it gains has to be more than such errors can add up to.
    margins = wanted @ found.x
    gained = np.max(margins, initial=0.0) > 1e-6 and np.min(margins) >= -1e-7
    return columns * found.x if gained else None


def _largest(rows: Any, axis: int) -> np.ndarray:
    """The largest magnitude of each column (axis 0) or row (axis 1); one where all is zero."""
    found = abs(rows).max(axis=axis).toarray().ravel()
    return np.where(found > 0, found, 1.0)


def is_separable(A: Any, y: Any) -> bool:
    """Whether some ``x`` has ``y_i <a_i, x> >= 0`` for all ``i`` and not all zero: no minimiser of the logistic loss.

    Complete and quasi-complete separation alike; add a constant column to ``A`` for hyperplanes that need not pass
    through zero. Independent columns do not prevent it, whatever the strict convexity of the loss suggests. Any
    ``l2 > 0`` restores a minimiser.

    Albert and Anderson (1984).

    >>> is_separable([[1.0], [2.0], [-1.0]], [1, 1, -1]), is_separable([[1.0], [2.0], [1.0]], [1, 1, -1])
    (True, False)
    """
    return separating_direction(A, y) is not None
