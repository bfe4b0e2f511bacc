"""Stochastic gradient methods as they are written on paper: dense, one row at a time, nothing put off."""

import numpy as np
from scipy.special import expit, softmax


def slope(name, scores, target):
    """The gradient of the loss of a row in its scores."""
    if name == "square":
        return scores - target
    if name == "classes":
        return softmax(scores) - np.eye(len(scores))[int(target)]
    margin = target * scores
    if name == "logistic":
        return -target * expit(-margin)
    if name == "squared hinge":
        return -target * np.maximum(1 - margin, 0)
    return -target * np.clip((1 - margin) / 0.5, 0, 1)  # the smoothed hinge of width 1/2


def gradients(name, A, y, X):
    """The gradient of the loss of every row, without the penalty: (n, p, K)."""
    return np.array([np.outer(a, slope(name, a @ X, t)) for a, t in zip(A, y, strict=True)])


def sgd(name, A, y, l2, scale, X, order, steps):
    """Iterates of stochastic gradient descent, one after each batch."""
    found = []
    for rows, tau in zip(order, steps, strict=True):
        g = np.mean([scale * np.outer(A[i], slope(name, A[i] @ X, y[i])) for i in rows], axis=0)
        X = X - tau * (g + l2 * X)
        found.append(X)
    return np.array(found)


def reduced(method, name, A, y, l2, scale, X, order, tau, stored, normalise="all"):
    """SAG, SAGA or SVRG from stored gradients (n, p, K) on; returns the last iterate and what is stored."""
    stored, seen = stored.copy(), set()
    for i in order:
        new = np.outer(A[i], slope(name, A[i] @ X, y[i]))
        seen.add(i)
        if method == "SAG":
            stored[i] = new
            direction = stored.sum(axis=0) / (len(seen) if normalise == "seen" else len(A))
        else:
            direction = new - stored[i] + stored.mean(axis=0)
            if method == "SAGA":
                stored[i] = new
        X = X - tau * (scale * direction + l2 * X)
    return X, stored
