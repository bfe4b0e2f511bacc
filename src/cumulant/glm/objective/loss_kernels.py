"""Losses of generalised linear models row by row: value, slope, curvature and conjugate, in one pass each.

Codes: 0 successes in `scale` trials, logit link; 1 Poisson, log link; 2 normal with variance `scale`, natural link
``mean / variance``, here for single rows only; 3 gamma, log link. Every loss is half a deviance, so zero is the best a
row can do.
"""

import math

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log

_FAST = {"contract", "nsz"}
_LARGEST = 700.0  # the exponential of anything larger counts as infinite


@kernel(called_by="kernels", fastmath=_FAST)
def _successes(scale, eta, y):
    e = fast_exp(-abs(eta))
    share = 1.0 / (1.0 + e)  # of the likelier side
    small = e * share
    # log(1 + e) = -log(share), where e is not so small that 1 + e loses it: there the series is exact to rounding.
    tail = -fast_log(share) if e > 1e-5 else e - 0.5 * e * e
    # What the likelier side loses is small, and must not be lost beside what cancels.
    side = scale if eta >= 0.0 else 0.0
    slope = (side - y) + scale * (-small if eta >= 0.0 else small)
    return (side - y) * eta + scale * tail, slope, scale * share * small


@kernel(called_by="kernels", fastmath=_FAST)
def _poisson(eta, y):
    mean = fast_exp(min(eta, _LARGEST))
    return mean - y * eta, mean - y, mean


@kernel(called_by="kernels", fastmath=_FAST)
def _normal(scale, eta, y):
    residual = scale * eta - y
    return 0.5 * residual * residual / scale, residual, scale


@kernel(called_by="kernels", fastmath=_FAST)
def _gamma(eta, y):
    ratio = y * fast_exp(min(-eta, _LARGEST))
    return eta + ratio, 1.0 - ratio, ratio


@kernel(called_by="kernels")
def row_terms(code, scale, eta, y):
    """Value, slope and curvature of one row; the value without the constant that makes it half a deviance."""
    if code == 0:
        return _successes(scale, eta, y)
    if code == 1:
        return _poisson(eta, y)
    return _normal(scale, eta, y) if code == 2 else _gamma(eta, y)


@kernel(called_by="python", fastmath=_FAST)
def terms(code, scale, eta, y, constant, value, slope, curvature):
    """Value, first and second derivative of the loss of each row in its score `eta`; into the last three arrays."""
    if code == 0:
        for i in range(len(eta)):
            own, slope[i], curvature[i] = _successes(scale, eta[i], y[i])
            value[i] = own + constant[i]
    elif code == 1:
        for i in range(len(eta)):
            own, slope[i], curvature[i] = _poisson(eta[i], y[i])
            value[i] = own + constant[i]
    else:
        for i in range(len(eta)):
            own, slope[i], curvature[i] = _gamma(eta[i], y[i])
            value[i] = own + constant[i]


@kernel(called_by="kernels")
def _x_log_x(x):
    return x * fast_log(x) if x > 0.0 else 0.0


@kernel(called_by="kernels")
def _failures(scale, slope, y):
    """``scale - y - slope``, the mean number of failures, to a few units in its own last place."""
    most = scale - y
    return (most - slope) + ((scale - most) - y)


@kernel(called_by="kernels")
def _entropy_of_successes(scale, slope, y):
    """``m log(m / scale) + f log(f / scale)`` of the means ``m`` of successes and ``f`` of failures."""
    few = min(max(slope + y, 0.0), max(_failures(scale, slope, y), 0.0)) / scale
    # The series where 1 - few would lose most of few.
    rest = fast_log(1.0 - few) if few > 1e-4 else -few * (1.0 + few * (0.5 + few * (1.0 / 3.0 + few * 0.25)))
    return scale * (_x_log_x(few) + (1.0 - few) * rest)


@kernel(called_by="kernels")
def row_conjugate(code, scale, slope, y):
    """The conjugate of the value of `row_terms`; the slope is in the closed domain, or beyond it by rounding."""
    if code == 0:
        return _entropy_of_successes(scale, slope, y)
    if code == 1:
        mean = max(slope + y, 0.0)
        return _x_log_x(mean) - mean
    if code == 2:
        return slope * (0.5 * slope + y) / scale
    ratio = max(1.0 - slope, 0.0)
    return _x_log_x(ratio) - ratio * (1.0 + fast_log(y))


@kernel(called_by="python")
def conjugates(code, scale, slope, y, constant, out):
    """``phi*(slope)`` of each row."""
    for i in range(len(slope)):
        out[i] = row_conjugate(code, scale, slope[i], y[i]) - constant[i]


@kernel(called_by="kernels")
def _excess(mean, image, d):
    """``mean (e^d - 1 - d)`` and its derivative ``mean (e^d - 1)``, with ``image = mean e^d``."""
    if abs(d) <= 1.0:
        rise = mean * math.expm1(d)
        return rise - mean * d, rise
    return image - mean - mean * d, image - mean


@kernel(called_by="python")
def fenchel_young(code, scale, eta, slope, y, value, change, curvature, size):
    """``phi(eta) + phi*(slope) - slope eta`` of each row, never negative; its first and second derivative in ``eta``.

    These are divergences between the mean of a row at ``eta`` and the mean ``y + slope``, computed as such: what is
    rounded amounts to a change of ``eta`` by a few units in the last place of `size`, and a few units in the last place
    of the value. The value is infinite where the slope is outside the domain of the conjugate.
    """
    for i in range(len(eta)):
        x, size[i] = eta[i], 1.0 + abs(eta[i])
        if code == 0:
            many, few = slope[i] + y[i], _failures(scale, slope[i], y[i])
            e = fast_exp(-abs(x))
            curvature[i] = scale * e / ((1.0 + e) * (1.0 + e))
            if few < many:  # count failures as successes
                many, few, x = few, many, -x
            # Now `many` is the smaller of the two means.
            if many <= 0.0:
                value[i] = scale * (math.log1p(e) + max(x, 0.0)) if many == 0.0 else np.inf
                rise = scale * ((1.0 if x > 0.0 else e) / (1.0 + e))
            else:
                share, odds = many / scale, math.log(many / few)
                d = x - odds
                size[i] += abs(odds)
                if d < 600.0:
                    lift = math.expm1(d)
                    value[i] = scale * (math.log1p(share * lift) - share * d)
                    rise = lift * (few / scale) * many / (1.0 + share * lift)
                else:
                    value[i] = scale * ((few / scale) * d + math.log(share))
                    rise = few
            change[i] = abs(rise)
        elif code == 1:
            mean, image = slope[i] + y[i], math.exp(x)
            curvature[i] = image
            if mean <= 0.0:
                value[i], change[i] = image if mean == 0.0 else np.inf, image
            else:
                score = math.log(mean)
                size[i] += abs(score)
                value[i], change[i] = _excess(mean, image, x - score)
        else:
            ratio, image = 1.0 - slope[i], y[i] * math.exp(-x)
            curvature[i] = image
            if ratio <= 0.0:
                value[i], change[i] = image if ratio == 0.0 else np.inf, image
            else:
                top, bottom = math.log(y[i]), math.log(ratio)
                size[i] += abs(top) + abs(bottom)
                value[i], change[i] = _excess(ratio, image, top - bottom - x)
        value[i] = max(value[i], 0.0)


@kernel(called_by="python")
def fenchel_young_softmax(eta, slope, y, value, change, size):
    """The same for the multiclass logistic loss, with the total of the means ``y + slope`` of a row, less one.

    `change` has the derivative in each score. The value is that of means divided by their total, up to the square of
    what the total lacks and a share of the value as large as that.
    """
    n, k = eta.shape
    lack = 0.0
    for i in range(n):
        top, bottom, total, sum_ = eta[i, 0], eta[i, 0], 0.0, 0.0
        for j in range(1, k):
            top, bottom = max(top, eta[i, j]), min(bottom, eta[i, j])
        for j in range(k):
            change[i, j] = math.exp(eta[i, j] - top)
            total += change[i, j]
        log_total, value[i] = math.log(total), 0.0
        size[i] = 1.0 + top - bottom + max(abs(top), abs(bottom)) + log_total
        longest = 0.0
        for j in range(k):
            mean = slope[i, j] + (1.0 if y[i] == j else 0.0)
            image = change[i, j] / total
            if mean <= 0.0:
                excess, change[i, j] = image if mean == 0.0 else np.inf, image
            else:
                score = math.log(mean)
                excess, change[i, j] = _excess(mean, image, (eta[i, j] - top) - log_total - score)
                longest = max(longest, abs(score))
            value[i] += max(excess, 0.0)
            sum_ += mean
        size[i] += longest
        lack = max(lack, abs(sum_ - 1.0))
    return lack


@kernel(called_by="python")
def reach(code, scale, slope, y, change):
    """The largest ``t <= 1`` for which ``slope + t change`` is in the closed domain of the conjugate, for all rows."""
    t = 1.0
    for i in range(len(slope)):
        step = change[i]
        if code == 3:  # slopes are at most one
            room = 1.0 - slope[i]
        elif step < 0.0:  # means are not negative
            room, step = slope[i] + y[i], -step
        elif code == 0:  # nor more than the trials
            room = scale - y[i] - slope[i]
        else:
            continue
        if step > room and step > 0.0:
            t = min(t, max(room, 0.0) / step)
    return t


@kernel(called_by="python")
def terms_softmax(eta, y, value, mean):
    """Multiclass logistic loss: ``log sum_k exp(eta[i, k]) - eta[i, y[i]]`` and the probabilities."""
    n, k = eta.shape
    for i in range(n):
        top = eta[i, 0]
        for j in range(1, k):
            top = max(top, eta[i, j])
        total = 0.0
        for j in range(k):
            mean[i, j] = fast_exp(eta[i, j] - top)
            total += mean[i, j]
        for j in range(k):
            mean[i, j] /= total
        value[i] = np.log(total) + top - eta[i, y[i]]


@kernel(called_by="python", fastmath=_FAST)
def bend_softmax(mean, change, out):
    """The second derivative of the multiclass logistic loss times a change of scores, row by row, into `out`."""
    n, k = mean.shape
    for i in range(n):
        average = 0.0
        for j in range(k):
            average += mean[i, j] * change[i, j]
        for j in range(k):
            out[i, j] = mean[i, j] * (change[i, j] - average)
