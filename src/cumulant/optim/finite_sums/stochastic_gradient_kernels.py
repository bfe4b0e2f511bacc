"""The inner loop of stochastic gradient descent on losses of rows, in time proportional to the entries it touches."""

import numpy as np

from cumulant.kernels import kernel
from cumulant.optim.finite_sums.finite_sum_kernels import row_slope

_SMALL = 1e-3  # the scale is multiplied into the weights before it gets below this: digits are lost in proportion


@kernel(called_by="python")
def sgd_updates(indptr, indices, data, targets, code, width, scale, l2, x, total, average, order, steps):
    """One update for each row of `order` ``(updates, batch)``; `x` ``(p, K)`` and `total` are changed in place.

    ``x <- (1 - tau l2) x - tau scale mean_b slope_b a_b``. The weights are kept as ``s z``, so that the penalty costs
    one multiplication. With `average`, the iterates are added to `total`: with ``S`` the sum of the ``s`` so far, the
    sum of the iterates is ``S z + u``, where a change ``d`` of ``z`` takes ``S d`` off ``u`` (Xu 2011, section 4).
    """
    outputs, batch = x.shape[1], order.shape[1]
    scores, slopes = np.empty(outputs), np.empty((batch, outputs))
    s, cumulated = 1.0, 0.0
    for t in range(len(order)):
        for b in range(batch):
            i = order[t, b]
            scores[:] = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                for k in range(outputs):
                    scores[k] += data[e] * x[indices[e], k]
            for k in range(outputs):
                scores[k] *= s
            row_slope(code, width, scores, targets[i], slopes[b])
        kept = 1.0 - steps[t] * l2
        if abs(s * kept) < _SMALL:
            if average:
                total += cumulated * x
            x *= s * kept
            s, cumulated = 1.0, 0.0
        else:
            s *= kept
        for b in range(batch):
            i = order[t, b]
            amount = -steps[t] * scale / (batch * s)
            for e in range(indptr[i], indptr[i + 1]):
                for k in range(outputs):
                    change = amount * data[e] * slopes[b, k]
                    x[indices[e], k] += change
                    if average:
                        total[indices[e], k] -= cumulated * change
        cumulated += s
    if average:
        total += cumulated * x
    x *= s
