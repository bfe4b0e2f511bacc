"""Dual coordinate ascent as it is written on paper: whole sums for every draw, a root finder for every step."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, xlogy

from tests.reference.stochastic_gradient import slope


def loss(name, s, t):
    if name == "square":
        return (s[0] - t) ** 2 / 2
    if name == "classes":
        return float(logsumexp(s) - s[int(t)])
    m = t * s[0]
    if name == "logistic":
        return np.logaddexp(0, -m)
    short = max(1 - m, 0.0)
    if name == "squared hinge":
        return short**2 / 2
    return short**2 if short <= 0.5 else short - 0.25


def conjugate(name, u, t):
    if name == "square":
        return u[0] ** 2 / 2 + u[0] * t
    if name == "classes":
        q = u + np.eye(len(u))[int(t)]
        return float(np.sum(xlogy(q, q)))
    q = -t * u[0]
    if name == "logistic":
        return xlogy(q, q) + xlogy(1 - q, 1 - q)
    return -q + (1.0 if name == "squared hinge" else 0.5) * q**2 / 2


def conjugate_slope(name, u, t):
    if name == "square":
        return u + t
    if name == "classes":
        return np.log(u + np.eye(len(u))[int(t)])
    q = -t * u
    if name == "logistic":
        return -t * (np.log(q) - np.log(1 - q))
    return -t * (-1 + (1.0 if name == "squared hinge" else 0.5) * q)


def ascend(name, A, y, l2, U, weights, scheme, conditions, share, pairs):
    """One update for each pair of uniforms, from slopes `U` (n, K) and sampling weights on; the mean of losses.

    Returns the slopes, the weights of the draws, and the gap of the row before each update.
    """
    U, weights, n, gaps = U.copy(), weights.copy(), len(A), []
    for coin, place in pairs:
        i = min(int(place * n), n - 1)
        if scheme == "max" and coin < share:
            i = int(np.argmax(weights))
        elif scheme != "uniform" and coin < share:
            i = int(np.searchsorted(np.cumsum(weights), place * weights.sum(), side="right"))
        X = -A.T @ U / (n * l2)
        s = A[i] @ X
        target = slope(name, s, y[i])
        delta, bend = target - U[i], A[i] @ A[i] / (n * l2) * np.sum((target - U[i]) ** 2)
        gap = loss(name, s, y[i]) + conjugate(name, U[i], y[i]) - s @ U[i]
        residual = np.sum(np.abs(delta)) * np.sqrt(conditions[i])
        learned = {"gap": gap, "max": gap, "gap-importance": gap * conditions[i], "residual": residual}
        weights[i] = learned.get(scheme, weights[i])
        gaps.append(gap)

        def derivative(g, i=i, s=s, delta=delta, bend=bend):
            return delta @ (s - conjugate_slope(name, U[i] + g * delta, y[i])) - g * bend

        ends = derivative(1e-15), derivative(1 - 1e-15)
        step = 0.0 if ends[0] <= 0 else 1.0 if ends[1] >= 0 else brentq(derivative, 1e-15, 1 - 1e-15, xtol=1e-15)
        U[i] = U[i] + step * delta
    return U, weights, np.array(gaps)
