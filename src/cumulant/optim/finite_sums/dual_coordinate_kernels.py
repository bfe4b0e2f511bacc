"""The inner loop of dual coordinate ascent on losses of rows: a row drawn, its gap, a line search, an update."""

import math

import numpy as np

from cumulant.kernels import kernel
from cumulant.optim.finite_sums.finite_sum_kernels import row_slope
from cumulant.optim.finite_sums.sum_tree_kernels import draw, remember
from cumulant.randomness_kernels import uniform_pair

_TINY = 1e-300
_GOLDEN = 0.6180339887498949


@kernel(called_by="python")
def coins(seed, sweep, count):
    """The two uniforms of each of `count` draws, as `draw` uses them, shape (count, 2)."""
    pairs = np.empty((count, 2))
    for t in range(count):
        pairs[t, 0], pairs[t, 1] = uniform_pair(seed, 0, sweep, t)
    return pairs


@kernel(called_by="kernels")
def _log1pexp(z):
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


@kernel(called_by="kernels")
def _entropy_term(q):
    return q * math.log(q) if q > 0.0 else 0.0


@kernel(called_by="kernels")
def _laws(code, width, scores, target, slope, old, law, log_new, delta):
    """What the line search needs of a row: laws, logarithms and the direction; returns the gap of the row.

    Log-losses (codes 1 and 4) are Kullback-Leibler divergences between laws on two or K classes: `law` is the old one,
    `log_new` the logarithm of the one that the scores give, `delta` the difference. The others are scalars.
    """
    if code == 4:
        top = scores[0]
        for k in range(1, len(scores)):
            top = max(top, scores[k])
        total = 0.0
        for k in range(len(scores)):
            total += math.exp(scores[k] - top)
        log_z = top + math.log(total)
        gap = 0.0
        for k in range(len(scores)):
            true = 1.0 if k == int(target) else 0.0
            law[k] = max(old[k] + true, 0.0)
            log_new[k] = scores[k] - log_z
            delta[k] = slope[k] - old[k]
            gap += _entropy_term(law[k]) - law[k] * log_new[k]
        return max(gap, 0.0)
    if code == 0:
        delta[0] = slope[0] - old[0]
        return delta[0] ** 2 / 2
    margin, q = target * scores[0], max(-target * old[0], 0.0)
    delta[0] = slope[0] - old[0]
    if code == 1:
        q = min(q, 1.0)
        law[0], law[1] = q, 1.0 - q
        log_new[0], log_new[1] = -_log1pexp(margin), -_log1pexp(-margin)
        gap = _entropy_term(q) - q * log_new[0] + _entropy_term(1.0 - q) - (1.0 - q) * log_new[1]
        delta[1] = target * delta[0]  # the law moves by minus that on the first class
        delta[0] = -delta[1]
        return max(gap, 0.0)
    short = max(1.0 - margin, 0.0)
    loss = short * short / (2 * width) if code == 2 or short <= width else short - width / 2
    return max(loss - q + width * q * q / 2 + margin * q, 0.0)


@kernel(called_by="kernels")
def _line_search(code, width, scores, target, old, law, log_new, delta, c, kind, subprecision, limit):
    """The share of the way from the old slope to the new one at which the dual is largest."""
    if code == 0:
        return 1.0 / (1.0 + c)
    if code == 2 or code == 3:
        change = delta[0]
        if change == 0.0:
            return 0.0
        q = -target * old[0]
        rise = -target * (1.0 - target * scores[0] - width * q)
        return min(max(rise / ((width + c) * change), 0.0), 1.0)
    size = 2 if code == 1 else len(scores)
    squared = 0.0
    for k in range(len(scores) if code == 4 else 1):
        squared += delta[k] * delta[k]
    bend = c * squared
    if kind == 1:
        return _golden(law, log_new, delta, size, bend, subprecision)
    slope = 0.0  # of the dual at zero: the two divergences between the laws
    for k in range(size):
        slope += delta[k] * (log_new[k] - math.log(max(law[k], _TINY)))
    if not slope > 0.0:
        return 0.0
    low, high, gamma = 0.0, 1.0, slope / (slope + bend)
    for _ in range(limit):
        first, second = -gamma * bend, bend
        for k in range(size):
            m = max(law[k] + gamma * delta[k], _TINY)
            first += delta[k] * (log_new[k] - math.log(m))
            second += delta[k] * delta[k] / m
        if first > 0.0:
            low = gamma
        else:
            high = gamma
        following = gamma + first / second
        if not low < following < high:
            following = 0.5 * (low + high)
        moved, gamma = abs(following - gamma), following
        if moved < subprecision:
            break
    return gamma


@kernel(called_by="kernels")
def _along(law, log_new, delta, size, bend, gamma):
    """The dual along the direction, up to a constant."""
    value = -0.5 * gamma * gamma * bend
    for k in range(size):
        value += gamma * delta[k] * log_new[k] - _entropy_term(law[k] + gamma * delta[k])
    return value


@kernel(called_by="kernels")
def _golden(law, log_new, delta, size, bend, subprecision):
    low, high = 0.0, 1.0
    a, b = 1.0 - _GOLDEN, _GOLDEN
    at_a, at_b = _along(law, log_new, delta, size, bend, a), _along(law, log_new, delta, size, bend, b)
    while high - low > subprecision:
        if at_a < at_b:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = _along(law, log_new, delta, size, bend, b)
        else:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = _along(law, log_new, delta, size, bend, a)
    return 0.5 * (low + high)


@kernel(called_by="python")
def ascend(
    indptr, indices, data, targets, code, width, ratio, squares, x, slopes, tree, conditions, scheme, nonuniformity,
    kind, subprecision, limit, updates, seed, sweep,
):  # fmt: skip
    """`updates` updates of one row each; `x` ``(p, K)``, `slopes` ``(n, K)`` and `tree` are changed in place.

    `ratio` is ``weight / l2`` and ``x = -ratio sum_i a_i slope_i``. Kind of step: 0 bracketed Newton's method, 1 golden
    section, 2 the safe share ``1 / c_i``. Scheme: as in `draw` and `remember`.
    """
    n, outputs = slopes.shape
    scores, slope = np.empty(outputs), np.empty(outputs)
    law, log_new, delta = np.empty(max(outputs, 2)), np.empty(max(outputs, 2)), np.empty(max(outputs, 2))
    for u in range(updates):
        i = draw(scheme, nonuniformity, tree, n, seed, 0, sweep, u)
        scores[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            for k in range(outputs):
                scores[k] += data[e] * x[indices[e], k]
        row_slope(code, width, scores, targets[i], slope)
        old = slopes[i]
        gap = _laws(code, width, scores, targets[i], slope, old, law, log_new, delta)
        if scheme == 5:
            gap = 0.0  # the norm of the residual takes its place
            for k in range(outputs):
                gap += abs(slope[k] - old[k])
        remember(scheme, tree, i, gap, conditions[i])
        if kind == 2:
            gamma = 1.0 / conditions[i]
        else:
            c = ratio * squares[i]
            gamma = _line_search(
                code, width, scores, targets[i], old, law, log_new, delta, c, kind, subprecision, limit
            )  # fmt: skip
        for k in range(outputs):
            slope[k] = gamma * (slope[k] - old[k])
            old[k] += slope[k]
        for e in range(indptr[i], indptr[i + 1]):
            for k in range(outputs):
                x[indices[e], k] -= ratio * data[e] * slope[k]


@kernel(called_by="python")
def all_gaps(indptr, indices, data, targets, code, width, x, slopes, gaps, residuals):
    """The gap of every row and the l1 norm of its residual at `x`."""
    n, outputs = slopes.shape
    scores, slope = np.empty(outputs), np.empty(outputs)
    law, log_new, delta = np.empty(max(outputs, 2)), np.empty(max(outputs, 2)), np.empty(max(outputs, 2))
    for i in range(n):
        scores[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            for k in range(outputs):
                scores[k] += data[e] * x[indices[e], k]
        row_slope(code, width, scores, targets[i], slope)
        gaps[i] = _laws(code, width, scores, targets[i], slope, slopes[i], law, log_new, delta)
        residuals[i] = 0.0
        for k in range(outputs):
            residuals[i] += abs(slope[k] - slopes[i, k])
