"""Losses of generalised linear models row by row: value, slope, curvature and conjugate, in one pass each.

Codes: 0 successes in `scale` trials, logit link; 1 Poisson, log link; 2 normal with variance `scale`, natural link
``mean / variance``; 3 gamma, log link. Every loss is half a deviance, so zero is the best a row can do.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log

__all__ = ["bend_softmax", "conjugates", "reach", "row_conjugate", "row_terms", "terms", "terms_softmax"]

_FAST = {"contract", "nsz"}
_LARGEST = 700.0  # the exponential of anything larger counts as infinite


@kernel(fastmath=_FAST)
def _successes(scale, eta, y, constant, value, slope, curvature):
    for i in range(len(eta)):
        x = eta[i]
        e = fast_exp(-abs(x))
        share = 1.0 / (1.0 + e)  # of the likelier side
        small = e * share
        # log(1 + e) = -log(share), where e is not so small that 1 + e loses it: there the series is exact to rounding.
        tail = -fast_log(share) if e > 1e-5 else e - 0.5 * e * e
        # What the likelier side loses is small, and must not be lost beside what cancels.
        side = scale if x >= 0.0 else 0.0
        value[i] = (side - y[i]) * x + scale * tail + constant[i]
        slope[i] = (side - y[i]) + scale * (-small if x >= 0.0 else small)
        curvature[i] = scale * share * small


@kernel(fastmath=_FAST)
def _poisson(eta, y, constant, value, slope, curvature):
    for i in range(len(eta)):
        mean = fast_exp(min(eta[i], _LARGEST))
        value[i] = mean - y[i] * eta[i] + constant[i]
        slope[i] = mean - y[i]
        curvature[i] = mean


@kernel(fastmath=_FAST)
def _gamma(eta, y, constant, value, slope, curvature):
    for i in range(len(eta)):
        ratio = y[i] * fast_exp(min(-eta[i], _LARGEST))
        value[i] = eta[i] + ratio + constant[i]
        slope[i] = 1.0 - ratio
        curvature[i] = ratio


@kernel
def terms(code, scale, eta, y, constant, value, slope, curvature):
    """Value, first and second derivative of the loss of each row in its score `eta`; into the last three arrays."""
    if code == 0:
        _successes(scale, eta, y, constant, value, slope, curvature)
    elif code == 1:
        _poisson(eta, y, constant, value, slope, curvature)
    elif code == 2:
        for i in range(len(eta)):
            residual = scale * eta[i] - y[i]
            value[i] = 0.5 * residual * residual / scale
            slope[i] = residual
            curvature[i] = scale
    else:
        _gamma(eta, y, constant, value, slope, curvature)


@kernel
def _x_log_x(x):
    return x * fast_log(x) if x > 0.0 else 0.0


@kernel
def conjugates(code, scale, slope, y, constant, out):
    """``phi*(slope)`` of each row; slopes are in the closed domain, or beyond it by rounding."""
    for i in range(len(slope)):
        if code == 0:
            share = (slope[i] + y[i]) / scale
            out[i] = scale * (_x_log_x(share) + _x_log_x(1.0 - share)) - constant[i]
        elif code == 1:
            mean = max(slope[i] + y[i], 0.0)
            out[i] = _x_log_x(mean) - mean - constant[i]
        elif code == 2:
            out[i] = slope[i] * (0.5 * slope[i] + y[i]) / scale
        else:
            ratio = max(1.0 - slope[i], 0.0)
            out[i] = _x_log_x(ratio) - ratio * (1.0 + fast_log(y[i])) - constant[i]


@kernel
def reach(code, scale, slope, y, change):
    """The largest ``t <= 1`` for which ``slope + t change`` is in the closed domain of the conjugate, for all rows."""
    t = 1.0
    if code == 2:
        return t
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


@kernel
def row_terms(code, scale, eta, y):
    """Value, slope and curvature for one row; the value without the constant that makes it half a deviance."""
    if code == 0:
        e = fast_exp(-abs(eta))
        share = 1.0 / (1.0 + e)
        small = e * share
        tail = -fast_log(share) if e > 1e-5 else e - 0.5 * e * e
        side = scale if eta >= 0.0 else 0.0
        slope = (side - y) + scale * (-small if eta >= 0.0 else small)
        return (side - y) * eta + scale * tail, slope, scale * share * small
    if code == 1:
        mean = fast_exp(min(eta, _LARGEST))
        return mean - y * eta, mean - y, mean
    if code == 2:
        return 0.5 * scale * eta * eta - y * eta, scale * eta - y, scale
    ratio = y * fast_exp(min(-eta, _LARGEST))
    return eta + ratio, 1.0 - ratio, ratio


@kernel
def row_conjugate(code, scale, slope, y):
    """The conjugate of `row_terms`' value."""
    if code == 0:
        share = (slope + y) / scale
        return scale * (_x_log_x(share) + _x_log_x(1.0 - share))
    if code == 1:
        mean = max(slope + y, 0.0)
        return _x_log_x(mean) - mean
    if code == 2:
        return 0.5 * (slope + y) ** 2 / scale
    ratio = max(1.0 - slope, 0.0)
    return _x_log_x(ratio) - ratio * (1.0 + fast_log(y))


@kernel
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


@kernel(fastmath=_FAST)
def bend_softmax(mean, change, out):
    """The second derivative of the multiclass logistic loss times a change of scores, row by row, into `out`."""
    n, k = mean.shape
    for i in range(n):
        average = 0.0
        for j in range(k):
            average += mean[i, j] * change[i, j]
        for j in range(k):
            out[i, j] = mean[i, j] * (change[i, j] - average)
