"""Generalised linear models, slow and obvious: losses by their formulas, minima by a general-purpose optimiser."""

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, xlogy


def loss(family, y, eta):
    """Half the unit deviance of each row."""
    if family == "bernoulli":
        return np.logaddexp(0, eta) - y * eta
    if family == "poisson":
        return np.exp(eta) - y * eta + xlogy(y, y) - y
    if family == "normal":
        return 0.5 * (y - eta) ** 2
    if family == "gamma":
        return eta - np.log(y) + y * np.exp(-eta) - 1
    raise ValueError(family)


def slope(family, y, eta):
    if family == "gamma":
        return 1 - y * np.exp(-eta)
    return {"bernoulli": expit, "poisson": np.exp, "normal": lambda t: t}[family](eta) - y


def objective(family, X, y, w, b, l2, weights=None, offset=0.0, l1=0.0):
    weights = np.ones(len(y)) if weights is None else weights
    mean = np.average(loss(family, y, X @ w + b + offset), weights=weights)
    return mean + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w


def minimum(family, X, y, l2, weights=None, offset=0.0, intercept=True):
    """The minimum to about 1e-12, by Newton's method on dense matrices with halved steps."""
    n = len(X)
    weights = np.ones(n) if weights is None else weights
    weights = weights / weights.sum()
    Z = np.column_stack([X, np.ones(n)]) if intercept else X
    ridge = np.full(Z.shape[1], l2)
    if intercept:
        ridge[-1] = 0

    def value(v):
        with np.errstate(over="ignore"):
            return weights @ loss(family, y, Z @ v + offset) + 0.5 * ridge @ v**2

    def gradient(v):
        return Z.T @ (weights * slope(family, y, Z @ v + offset)) + ridge * v

    v = minimize(value, np.zeros(Z.shape[1]), jac=gradient, method="BFGS", options={"gtol": 1e-6}).x
    for _ in range(50):
        step = 1e-6
        hessian = np.stack([(gradient(v + step * e) - gradient(v - step * e)) / (2 * step) for e in np.eye(len(v))])
        d, t = -np.linalg.solve(hessian, gradient(v)), 1.0
        while value(v + t * d) > value(v) and t > 1e-6:
            t /= 2
        v = v + t * d
        if np.abs(gradient(v)).max() < 1e-13:
            break
    return v, value(v)


def dual_epoch(family, X, y, weights, offset, slopes, l1, l2, rows):
    """Exact maximisations of the dual over one slope at a time, in the given order; everything else from scratch.

    With an l1 penalty the new slope maximises the quadratic model of the dual, whose curvature is that of ``l2`` alone.
    """
    slopes = slopes.copy()
    for i in rows:
        v = -(X.T @ (weights * slopes)) / l2
        eta = X[i] @ (np.sign(v) * np.maximum(np.abs(v) - l1 / l2, 0)) + offset[i]
        c = weights[i] * X[i] @ X[i] / l2

        def excess(t, i=i, eta=eta, c=c):
            return t - eta + c * (slope(family, y[i], t) - slopes[i])

        width = abs(excess(eta)) + 1e-9
        slopes[i] = slope(family, y[i], brentq(excess, eta - width, eta + width, xtol=1e-14))
    return slopes


def lasso_model(hessian, gradient, x, l1, penalised, sweeps=20000):
    """Minimise ``<gradient, d> + <d, H d>/2 + l1 |x + d|_1`` by proximal gradient steps."""
    d, step = np.zeros_like(x), 1 / np.linalg.eigvalsh(hessian)[-1]
    for _ in range(sweeps):
        z = x + d - step * (gradient + hessian @ d)
        d = np.where(penalised, np.sign(z) * np.maximum(np.abs(z) - step * l1, 0), z) - x
    return d
