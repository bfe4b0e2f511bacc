"""The loops of on-line learning with an l1 penalty by interior-point steps: one row at a time.

A weight is ``w = share * (s0 - s1)`` with slacks ``s0, s1 > 0`` and multipliers ``z0, z1 > 0``. Form 0 splits weights
into positive and negative parts (the slacks are the parts, share 1), form 1 bounds them, ``-u <= w <= u`` (the slacks
are ``w + u`` and ``u - w``, share 1/2). Slacks are stored, never computed as differences, which would cancel.

The steps of an absent feature, which come from the barrier and the penalty alone, are deferred within a *block* of rows
and taken as one step when it is next needed, with ``1 - A = prod (1 - a_k)`` and ``mu`` the mean of the barrier
parameters weighted as in ``M_k = (1 - a_k) M_{k-1} + a_k mu_k``. Linear recursions (the averaged curvature, products
``s z`` to first order) are exact; the rest is exact to first order in ``A``, which is at most `deferral`. With steps of
``1/k`` there are about ``log(rows) / deferral`` blocks.

An *implicit* step takes the slope of the loss at the score that the row will have after it (Kulis and Bartlett 2010;
Toulis and Airoldi 2017).
"""

import numpy as np

from cumulant.glm.objective.loss_kernels import row_terms
from cumulant.kernels import kernel

_KEEP = 0.995  # the share of the way to the boundary that a step may go
_FLOOR = 1e-30  # of slacks and multipliers: quotients of them must stay finite
_STALLED = 0.01  # the share of the steps allowed, over a doubling of the rows, below which they count as stalled
_WATCHED = 64  # rows before the first doubling that is watched
GAP, PASSED, MEAN_BARRIER, FADED, INTERCEPT, BEND, SUM_STEPS, SUM_SQUARES, SUM_ALLOWED, MARK, MARK_ALLOWED = range(11)
ROWS, POSITION, CUTS, SWEEPS, CLIPPED, STALLS = range(6)


@kernel
def direction(form, s0, s1, z0, z1, g, h, l1, mu):
    """The primal-dual direction of one feature with gradient `g` and curvature `h` of the loss.

    Split: ``ds = (-+g - l1 + mu/s) / (h + z/s)``. Bound: two equations for the slacks. Of the multipliers,
    ``dz = mu/s - z - (z/s) ds`` is written without the terms that cancel where a slack is small.
    """
    if form == 0:
        d0 = (mu - (l1 + g) * s0) / (h * s0 + z0)
        d1 = (mu - (l1 - g) * s1) / (h * s1 + z1)
        return d0, d1, l1 + g + h * d0 - z0, l1 - g + h * d1 - z1
    half = 0.5 * h
    b0 = 2.0 * mu - (l1 + g) * s0
    b1 = 2.0 * mu - (l1 - g) * s1
    determinant = 2.0 * half * (z0 * s1 + z1 * s0) + 4.0 * z0 * z1
    d0 = ((half * s1 + 2.0 * z1) * b0 + half * s0 * b1) / determinant
    d1 = ((half * s0 + 2.0 * z0) * b1 + half * s1 * b0) / determinant
    moved = half * (d0 - d1)
    return d0, d1, 0.5 * (l1 + g + moved) - z0, 0.5 * (l1 - g - moved) - z1


@kernel(called_by="kernels")
def largest_step(a, s0, s1, z0, z1, d0, d1, e0, e1):
    """The largest step, at most `a`, that goes no further than 0.995 of the way to the boundary."""
    if -a * d0 > _KEEP * s0:
        a = -_KEEP * s0 / d0
    if -a * d1 > _KEEP * s1:
        a = -_KEEP * s1 / d1
    if -a * e0 > _KEEP * z0:
        a = -_KEEP * z0 / e0
    if -a * e1 > _KEEP * z1:
        a = -_KEEP * z1 / e1
    return a


@kernel(called_by="kernels")
def _move(j, t, d0, d1, e0, e1, s0, s1, z0, z1):
    """A step `t` of feature `j`; returns its part of the gap."""
    s0[j] = max(s0[j] + t * d0, _FLOOR)
    s1[j] = max(s1[j] + t * d1, _FLOOR)
    z0[j] = max(z0[j] + t * e0, _FLOOR)
    z1[j] = max(z1[j] + t * e1, _FLOOR)
    return s0[j] * z0[j] + s1[j] * z1[j]


@kernel(called_by="kernels")
def _deferred(history, last, position):
    """The step, the barrier parameter and what is left of the curvature, composed over the rows after `last`."""
    kept = history[0, position] / history[0, last]
    a = 1.0 - kept
    mu = (history[1, position] - kept * history[1, last]) / a if a > 0.0 else 0.0
    return a, mu, history[2, position] / history[2, last]


@kernel(called_by="kernels")
def _curvature_while_absent(curvature, h, faded):
    """Of an absent feature: 1 for the identity, 0 for the row's own diagonal, the average half way else."""
    if curvature == 0:
        return 1.0
    return 0.0 if curvature == 1 else h * np.sqrt(faded)


@kernel(called_by="kernels")
def _catch_up(j, a, mu, faded, form, curvature, s0, s1, z0, z1, h, l1):
    """Take the deferred steps of feature `j` as one, without a gradient; 1 where it would have left the inside."""
    c = _curvature_while_absent(curvature, h[j], faded)
    d0, d1, e0, e1 = direction(form, s0[j], s1[j], z0[j], z1[j], 0.0, c, l1, mu)
    t = largest_step(a, s0[j], s1[j], z0[j], z1[j], d0, d1, e0, e1)
    _move(j, t, d0, d1, e0, e1, s0, s1, z0, z1)
    if curvature == 2:
        h[j] *= faded
    return 1 if t < a else 0


@kernel(called_by="kernels")
def _sweep(form, curvature, s0, s1, z0, z1, h, last, history, l1, scalars, counters):
    """End a block: every feature takes its deferred steps, and the gap is added up afresh."""
    position = counters[POSITION]
    a0, mu0, faded0 = _deferred(history, 0, position)
    total, clipped = 0.0, 0
    for j in range(len(s0)):
        a, mu, faded = a0, mu0, faded0  # of most features: not seen in this block
        if last[j] > 0:
            a, mu, faded = _deferred(history, last[j], position)
        clipped += _catch_up(j, a, mu, faded, form, curvature, s0, s1, z0, z1, h, l1)
        total += s0[j] * z0[j] + s1[j] * z1[j]
        last[j] = 0
    scalars[GAP] = total
    scalars[PASSED], scalars[MEAN_BARRIER], scalars[FADED] = 1.0, 0.0, 1.0
    history[0, 0], history[1, 0], history[2, 0] = 1.0, 0.0, 1.0
    counters[POSITION] = 0
    counters[SWEEPS] += 1
    counters[CLIPPED] += clipped


@kernel(called_by="kernels")
def _all_step(form, curvature, common, s0, s1, z0, z1, h, gradient, own, l1, mu, a):
    """Every feature steps at once; returns the new gap and the step that was taken (the smallest, if not in common)."""
    taken = a
    for j in range(len(s0)):
        c = 1.0 if curvature == 0 else (own[j] if curvature == 1 else h[j])
        d0, d1, e0, e1 = direction(form, s0[j], s1[j], z0[j], z1[j], gradient[j], c, l1, mu)
        taken = largest_step(taken, s0[j], s1[j], z0[j], z1[j], d0, d1, e0, e1)
    total = 0.0
    for j in range(len(s0)):
        c = 1.0 if curvature == 0 else (own[j] if curvature == 1 else h[j])
        d0, d1, e0, e1 = direction(form, s0[j], s1[j], z0[j], z1[j], gradient[j], c, l1, mu)
        t = taken if common else largest_step(a, s0[j], s1[j], z0[j], z1[j], d0, d1, e0, e1)
        total += _move(j, t, d0, d1, e0, e1, s0, s1, z0, z1)
    return total, taken


@kernel(called_by="kernels")
def _weight_now(j, form, curvature, s0, s1, z0, z1, h, last, history, position, l1):
    """The weight of a feature with its deferred steps; nothing is changed."""
    share = 1.0 if form == 0 else 0.5
    difference = s0[j] - s1[j]
    if last[j] < position:
        a, mu, faded = _deferred(history, last[j], position)
        c = _curvature_while_absent(curvature, h[j], faded)
        d0, d1, e0, e1 = direction(form, s0[j], s1[j], z0[j], z1[j], 0.0, c, l1, mu)
        t = largest_step(a, s0[j], s1[j], z0[j], z1[j], d0, d1, e0, e1)
        difference = max(s0[j] + t * d0, _FLOOR) - max(s1[j] + t * d1, _FLOOR)
    return share * difference


@kernel(called_by="kernels")
def _response(first, end, indices, values, form, curvature, bend, kept, a, s0, s1, z0, z1, h):
    """By how much the score of a row falls per unit of slope, in a full step along the directions of its features.

    `kept` is the share of the averaged curvature that is left before the row's own is added.
    """
    total = 0.0
    for e in range(first, end):
        j = indices[e]
        square = values[e] * values[e]
        c = 1.0 if curvature == 0 else (bend * square if curvature == 1 else kept * h[j] + a * bend * square)
        if form == 0:
            total += square * (s0[j] / (c * s0[j] + z0[j]) + s1[j] / (c * s1[j] + z1[j]))
        else:
            total += square / (c + 4.0 * z0[j] * z1[j] / (z0[j] * s1[j] + z1[j] * s0[j]))
    return total


@kernel
def implicit_slope(code, score, target, response):
    """The slope at the score ``t`` with ``t = score - response * slope(t)``, by Newton steps or halving a bracket."""
    t = score
    _, slope, bend = row_terms(code, 1.0, t, target)
    low, high = min(score, score - response * slope), max(score, score - response * slope)
    before = np.inf
    for _ in range(200):
        excess = t - score + response * slope
        if excess > 0.0:
            high = t
        else:
            low = t
        following = t - excess / (1.0 + response * bend)
        if not low <= following <= high or abs(excess) > 0.5 * before:  # far out on both sides Newton steps would swing
            following = 0.5 * (low + high)
        before = abs(excess)
        if abs(following - t) <= 1e-14 * (abs(t) + abs(score)):
            break
        t = following
        _, slope, bend = row_terms(code, 1.0, t, target)
    return slope


@kernel(called_by="python")
def learn(
    code, form, curvature, common, intercept, implicit, indptr, indices, values, targets, weights, rows,
    s0, s1, z0, z1, h, last, history, gradient, own, scalars, counters,
    l1, step, delay, power, centring, centring_power, deferral, scores,
):  # fmt: skip
    """Learn from `rows` in order; `scores` gets the score of each row before it was learned.

    Everything about the model is changed in place: slacks, multipliers, averaged curvature, when each feature was last
    up to date, the steps of the block so far, and the numbers in `scalars` and `counters`. `gradient` and `own` are
    zero before and after. Code: 0 logistic, 2 squared error. Curvature: 0 identity, 1 of the row, 2 averaged. The loss
    of a row counts `weights` times; a row of weight 0 gets its score, and leaves everything as it was.
    """
    p = len(s0)
    share = 1.0 if form == 0 else 0.5
    longest = history.shape[1] - 1
    for n in range(len(rows)):
        i = rows[n]
        first, end = indptr[i], indptr[i + 1]
        if weights[i] == 0.0:
            score = scalars[INTERCEPT]
            for e in range(first, end):
                score += values[e] * _weight_now(
                    indices[e], form, curvature, s0, s1, z0, z1, h, last, history, counters[POSITION], l1
                )
            scores[n] = score
            continue
        k = counters[ROWS] + 1
        a = min(step / (delay + k) ** power, 1.0)
        sigma = min(centring / float(k) ** centring_power, 1.0)
        position = counters[POSITION]
        if position > 0 and (position == longest or 1.0 - scalars[PASSED] * (1.0 - a) > deferral):
            _sweep(form, curvature, s0, s1, z0, z1, h, last, history, l1, scalars, counters)
            position = 0
        # The score, with every feature of the row brought up to date
        score = scalars[INTERCEPT]
        for e in range(first, end):
            j = indices[e]
            if last[j] < position:
                d, m, faded = _deferred(history, last[j], position)
                scalars[GAP] -= (1.0 - d) * (s0[j] * z0[j] + s1[j] * z1[j]) + 2.0 * d * m  # as if products were linear
                counters[CLIPPED] += _catch_up(j, d, m, faded, form, curvature, s0, s1, z0, z1, h, l1)
                scalars[GAP] += s0[j] * z0[j] + s1[j] * z1[j]
                last[j] = position
            score += values[e] * share * (s0[j] - s1[j])
        scores[n] = score
        _, slope, bend = row_terms(code, 1.0, score, targets[i])
        slope *= weights[i]
        bend *= weights[i]
        if k == 1:  # averages begin at the first row, for features that it has not at the mean square of those it has
            scalars[BEND] = bend
            square = 0.0
            for e in range(first, end):
                square += values[e] * values[e]
            if curvature == 2:
                h[:] = bend * square / (end - first) if square > 0.0 else bend
        mu = sigma * scalars[GAP] / (2.0 * p)
        everything = a > deferral
        if everything and curvature == 2:
            for j in range(p):
                h[j] *= 1.0 - a
        if intercept:
            scalars[BEND] += a * (bend - scalars[BEND])
        flat = 1.0 if curvature == 0 else max(scalars[BEND], 1e-8)  # the curvature along the intercept
        if implicit:
            kept = 1.0 if everything else 1.0 - a
            response = _response(first, end, indices, values, form, curvature, bend, kept, a, s0, s1, z0, z1, h)
            response = a * weights[i] * (response + 1.0 / flat if intercept else response)
            slope = weights[i] * implicit_slope(code, score, targets[i], response)
        # Directions and the longest step in common
        taken = a
        for e in range(first, end):
            j = indices[e]
            g = slope * values[e]
            c = bend * values[e] * values[e]
            if curvature == 2:
                if not everything:
                    h[j] *= 1.0 - a
                h[j] += a * c
                c = h[j]
            if everything:
                gradient[j], own[j] = g, c
            else:
                c = 1.0 if curvature == 0 else c
                d0, d1, e0, e1 = direction(form, s0[j], s1[j], z0[j], z1[j], g, c, l1, mu)
                taken = largest_step(taken, s0[j], s1[j], z0[j], z1[j], d0, d1, e0, e1)
        if everything:
            total, taken = _all_step(form, curvature, common, s0, s1, z0, z1, h, gradient, own, l1, mu, a)
            scalars[GAP] = total
            for e in range(first, end):
                gradient[indices[e]], own[indices[e]] = 0.0, 0.0
            general = taken if common else a
        else:
            general = taken if common else a
            scalars[GAP] = (1.0 - general) * scalars[GAP] + 2.0 * p * general * mu
            scalars[PASSED] *= 1.0 - general
            scalars[MEAN_BARRIER] = (1.0 - general) * scalars[MEAN_BARRIER] + general * mu
            scalars[FADED] *= 1.0 - a
            position += 1
            history[0, position], history[1, position] = scalars[PASSED], scalars[MEAN_BARRIER]
            history[2, position] = scalars[FADED]
            counters[POSITION] = position
            for e in range(first, end):
                j = indices[e]
                c = 1.0 if curvature == 0 else (h[j] if curvature == 2 else bend * values[e] * values[e])
                expected = (1.0 - general) * (s0[j] * z0[j] + s1[j] * z1[j]) + 2.0 * general * mu
                d0, d1, e0, e1 = direction(form, s0[j], s1[j], z0[j], z1[j], slope * values[e], c, l1, mu)
                t = taken if common else largest_step(a, s0[j], s1[j], z0[j], z1[j], d0, d1, e0, e1)
                scalars[GAP] += _move(j, t, d0, d1, e0, e1, s0, s1, z0, z1) - expected
                last[j] = position
        if intercept:  # not constrained, so a scaled gradient step
            scalars[INTERCEPT] -= general * slope / flat
        scalars[SUM_STEPS] += general
        scalars[SUM_ALLOWED] += a
        scalars[SUM_SQUARES] += general * general
        counters[CUTS] += taken < a
        counters[ROWS] = k
        if k >= _WATCHED and k & (k - 1) == 0:
            realised, allowed = scalars[SUM_STEPS] - scalars[MARK], scalars[SUM_ALLOWED] - scalars[MARK_ALLOWED]
            counters[STALLS] += k > _WATCHED and realised < _STALLED * allowed
            scalars[MARK], scalars[MARK_ALLOWED] = scalars[SUM_STEPS], scalars[SUM_ALLOWED]


@kernel(called_by="python")
def weights_of(form, curvature, s0, s1, z0, z1, h, last, history, position, l1, out):
    """Every weight as it is now, deferred steps included; nothing else is changed."""
    for j in range(len(s0)):
        out[j] = _weight_now(j, form, curvature, s0, s1, z0, z1, h, last, history, position, l1)


@kernel(called_by="python")
def scores_of(
    form, curvature, indptr, indices, values, s0, s1, z0, z1, h, last, history, position, l1, intercept, out
):  # fmt: skip
    """The score of each row at the weights as they are now, in time of the row's entries; nothing else is changed."""
    for i in range(len(out)):
        score = intercept
        for e in range(indptr[i], indptr[i + 1]):
            weight = _weight_now(
                indices[e], form, curvature, s0, s1, z0, z1, h, last, history, position, l1
            )  # fmt: skip
            score += values[e] * weight
        out[i] = score
