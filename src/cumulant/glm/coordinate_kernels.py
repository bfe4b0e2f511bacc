"""Coordinate descent on the quadratic model of an objective with an l1 penalty."""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import soft

__all__ = ["descend_columns", "descend_gram"]


@kernel
def descend_gram(hessian, gradient, x, l1, penalised, sweeps, precision, step):
    """Minimise ``<gradient, d> + <d, H d>/2 + l1 |x + d|_1`` over ``d``, from `step`, in place; returns sweeps made.

    Coordinates are visited in order, those at zero only in every tenth sweep and the last. Ends when no coordinate
    moves by more than `precision` in the units of the objective (``H_jj change^2``).
    """
    p = len(x)
    image = np.zeros(p)  # H d
    for j in range(p):
        if step[j] != 0.0:
            for k in range(p):
                image[k] += step[j] * hessian[j, k]
    made, full = 0, True
    for sweep in range(sweeps):
        largest = 0.0
        for j in range(p):
            curvature = hessian[j, j]
            here = x[j] + step[j]
            if curvature <= 0.0 or not (full or here != 0.0):
                continue
            slope = gradient[j] + image[j]
            wanted = soft(here - slope / curvature, (l1 if penalised[j] else 0.0) / curvature)
            change = wanted - here
            if change != 0.0:
                step[j] += change
                row = hessian[j]
                for k in range(p):
                    image[k] += change * row[k]
                largest = max(largest, curvature * change * change)
        made += 1
        if largest <= precision:
            if full:
                break
            full = True
        else:
            full = sweep % 10 == 9
    return made


@kernel
def descend_columns(
    indptr, indices, values, weights, diagonal, gradient, x, l1, l2, intercept, sweeps, precision, step, image
):
    """The same with ``H = X^T diag(weights) X + l2 I`` by columns (CSC); `image` is ``X d``, kept in step.

    With an `intercept` the last of the parameters has a column of ones and no penalty.
    """
    p, n = len(x) - (1 if intercept else 0), len(weights)
    made, full = 0, True
    for sweep in range(sweeps):
        largest = 0.0
        for j in range(p):
            here = x[j] + step[j]
            if diagonal[j] <= 0.0 or not (full or here != 0.0):
                continue
            slope = gradient[j] + l2 * step[j]
            for e in range(indptr[j], indptr[j + 1]):
                slope += values[e] * weights[indices[e]] * image[indices[e]]
            change = soft(here - slope / diagonal[j], l1 / diagonal[j]) - here
            if change != 0.0:
                step[j] += change
                for e in range(indptr[j], indptr[j + 1]):
                    image[indices[e]] += change * values[e]
                largest = max(largest, diagonal[j] * change * change)
        if intercept and diagonal[p] > 0.0:
            slope = gradient[p]
            for i in range(n):
                slope += weights[i] * image[i]
            change = -slope / diagonal[p]
            step[p] += change
            for i in range(n):
                image[i] += change
            largest = max(largest, diagonal[p] * change * change)
        made += 1
        if largest <= precision:
            if full:
                break
            full = True
        else:
            full = sweep % 10 == 9
    return made
