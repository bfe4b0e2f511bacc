"""The losses of one row, and draws of rows, for compiled loops."""

import math

import numpy as np

from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform


@kernel(called_by="python")
def draws(seed, sweep, n, count):
    """`count` rows of `n`, uniformly and with replacement: number t is a function of (seed, sweep, t)."""
    order = np.empty(count, np.int64)
    for t in range(count):
        order[t] = min(int(uniform(seed, 0, sweep, t) * n), n - 1)
    return order


@kernel(called_by="kernels")
def row_slope(code, width, scores, target, slope):
    """The gradient of the loss of a row in its scores, into `slope`.

    Codes: 0 square, 1 logistic, 2 squared hinge, 3 smoothed hinge of `width`, 4 log-sum-exp over classes.
    """
    if code == 4:
        top = scores[0]
        for k in range(1, len(scores)):
            top = max(top, scores[k])
        total = 0.0
        for k in range(len(scores)):
            slope[k] = math.exp(scores[k] - top)
            total += slope[k]
        for k in range(len(scores)):
            slope[k] /= total
        slope[int(target)] -= 1.0
    elif code == 0:
        slope[0] = scores[0] - target
    else:
        margin = target * scores[0]
        if code == 1:
            # exp of a negative number either way: no overflow
            small = math.exp(-abs(margin))
            slope[0] = -target * (small / (1.0 + small) if margin > 0.0 else 1.0 / (1.0 + small))
        else:
            short = max((1.0 - margin) / width, 0.0)
            slope[0] = -target * (short if code == 2 else min(short, 1.0))


@kernel(called_by="python")
def all_slopes(indptr, indices, data, targets, code, width, x, table, total):
    """The slopes of every row at `x`, into `table`, and ``sum_i a_i slope_i``, into `total`."""
    outputs = x.shape[1]
    scores = np.empty(outputs)
    total[:] = 0.0
    for i in range(len(targets)):
        scores[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            for k in range(outputs):
                scores[k] += data[e] * x[indices[e], k]
        row_slope(code, width, scores, targets[i], table[i])
        for e in range(indptr[i], indptr[i + 1]):
            for k in range(outputs):
                total[indices[e], k] += data[e] * table[i, k]
