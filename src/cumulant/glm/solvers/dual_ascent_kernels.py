"""The inner loop of dual coordinate ascent for generalised linear models: one row at a time."""

import math

from cumulant.glm.objective.loss_kernels import row_conjugate, row_terms
from cumulant.kernels import kernel
from cumulant.math_kernels import soft
from cumulant.optim.finite_sums.sum_tree_kernels import draw, remember


@kernel(called_by="kernels")
def _solve(code, scale, y, eta, slope, c):
    """The root of ``t - eta + c (phi'(t) - slope)``: the score at which the dual of a row is largest.

    The function rises with slope at least one, so the root lies between ``eta`` and ``eta`` less its value there:
    Newton's method, kept in that bracket. Where an exponential dominates it would take a step of one at a time: it
    begins near where the exponential is as large as the rest.
    """
    excess = min(max(c * (row_terms(code, scale, eta, y)[1] - slope), -1e300), 1e300)
    low, high = (eta - excess, eta) if excess > 0.0 else (eta, eta - excess)
    t = eta
    if code == 1 and excess > 1.0:
        t = min(eta, math.log((1.0 + abs(eta)) / c + abs(slope + y)))
    elif code == 3 and excess < -1.0:
        t = max(eta, -math.log(((1.0 + abs(eta)) / c + abs(1.0 - slope)) / y))
    for _ in range(50):
        _, first, second = row_terms(code, scale, t, y)
        value = t - eta + c * (first - slope)
        if value > 0.0:
            high = t
        else:
            low = t
        following = t - value / (1.0 + c * second)
        if not low <= following <= high:
            following = 0.5 * (low + high)
        moved = abs(following - t)
        t = following
        if moved <= 1e-10 * (1.0 + abs(t)):
            break
    return t


@kernel(called_by="python")
def ascend(
    code, scale, indptr, indices, values, y, offset, weights, intercept, slopes, v, l1, l2, norms, tree,
    importance, scheme, nonuniformity, updates, seed, sweep,
):  # fmt: skip
    """`updates` exact maximisations of the dual over the slope of one row; `slopes` and `v` are changed in place.

    `v` is ``-X^T (p s) / l2``, and the weights are its soft threshold at ``l1 / l2``. Scheme: 0 uniform, 1 by
    `importance`, 2 by gap, 3 by both, 4 the largest gap, 5 by the residual.
    """
    n = len(y)
    threshold = l1 / l2
    for u in range(updates):
        i = draw(scheme, nonuniformity, tree, n, seed, 0, sweep, u)
        eta = offset[i] + intercept
        for e in range(indptr[i], indptr[i + 1]):
            eta += values[e] * soft(v[indices[e]], threshold)
        old = slopes[i]
        if scheme >= 2:
            value, wanted, _ = row_terms(code, scale, eta, y[i])
            if scheme == 5:
                seen = abs(wanted - old)
            else:
                seen = max(value + row_conjugate(code, scale, old, y[i]) - old * eta, 0.0)
            remember(scheme, tree, i, seen, importance[i])
        new = row_terms(code, scale, _solve(code, scale, y[i], eta, old, weights[i] * norms[i] / l2), y[i])[1]
        slopes[i] = new
        amount = -weights[i] * (new - old) / l2
        for e in range(indptr[i], indptr[i + 1]):
            v[indices[e]] += amount * values[e]
