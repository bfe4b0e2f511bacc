"""The inner loop of SAG, SAGA and SVRG on losses of rows, with updates of a coordinate put off until it is needed."""

import numpy as np

from cumulant.kernels import kernel
from cumulant.optim.finite_sums.finite_sum_kernels import row_slope

_SMALL = 1e-3  # the scale is multiplied into the weights before it gets below this: digits are lost in proportion


@kernel(called_by="kernels")
def _catch_up(x, total, last, cumulated, factor):
    """Make every coordinate what it is now, times `factor`."""
    for j in range(len(x)):
        for k in range(x.shape[1]):
            x[j, k] = factor * (x[j, k] - (cumulated - last[j]) * total[j, k])
        last[j] = 0.0


@kernel(called_by="python")
def reduced_updates(
    indptr, indices, data, targets, code, width, scale, l2, x, total, table, seen, method, plain, step, order
):  # fmt: skip
    """One update for each row of `order`; `x` ``(p, K)``, `total`, `table` and `seen` are changed in place.

    `table` ``(n, K)`` holds the stored slopes and `total` their ``sum_i a_i slope_i``. Method 0 is SAG: the stored
    slope is replaced, then a step goes along ``total / m``, ``m`` the rows seen so far (all of them if `plain`).
    Method 1 is SAGA: along ``(new - stored) a_i + total / n``, then the slope is replaced. Method 2 is SVRG: the same
    and nothing is replaced.

    Weights are kept as ``s z``, and along `total` a coordinate is moved only when a row needs it: between two of its
    visits its entry of `total` does not change, so what it missed is the sum of ``step scale / (m s)`` over those
    updates times that entry (Schmidt, Le Roux and Bach 2017, section 4.1).
    """
    n, outputs = len(targets), x.shape[1]
    scores, slope = np.empty(outputs), np.empty(outputs)
    last = np.zeros(len(x))
    s, cumulated = 1.0, 0.0
    count = 0
    for i in range(n):
        count += seen[i]
    for i in order:
        scores[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            behind = cumulated - last[j]
            for k in range(outputs):
                x[j, k] -= behind * total[j, k]
                scores[k] += data[e] * x[j, k]
            last[j] = cumulated
        for k in range(outputs):
            scores[k] *= s
        row_slope(code, width, scores, targets[i], slope)
        if seen[i] == 0:
            seen[i] = 1
            count += 1
        kept = 1.0 - step * l2
        if abs(s * kept) < _SMALL:
            _catch_up(x, total, last, cumulated, s * kept)
            s, cumulated = 1.0, 0.0
        else:
            s *= kept
        own = step * scale / s
        shared = own / (count if method == 0 and not plain else n)
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            for k in range(outputs):
                change = data[e] * (slope[k] - table[i, k])
                if method != 0:
                    x[j, k] -= own * change + shared * total[j, k]
                if method != 2:
                    total[j, k] += change
            if method != 0:
                last[j] = cumulated + shared
        cumulated += shared
        if method != 2:
            for k in range(outputs):
                table[i, k] = slope[k]
    _catch_up(x, total, last, cumulated, s)
