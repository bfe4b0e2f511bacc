"""Interior-point stochastic approximation with an l1 penalty, every feature at every row, by the equations."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit


def direction(form, s, z, g, h, l1, mu):
    """Solve the reduced primal-dual equations of one feature as a system of linear equations."""
    if form == "split":
        # x = (w+, w-), c = -x, with the diagonal of the Hessian only
        matrix = np.diag(h + z / s)
        ds = np.linalg.solve(matrix, -np.array([g, -g]) - l1 + mu / s)
        return ds, mu / s - z - z / s * ds
    # x = (w, u), c = (-w - u, w - u)
    J = np.array([[-1.0, -1.0], [1.0, -1.0]])
    sigma = np.diag(-z / s)
    W = np.diag([h, 0.0])
    dx = np.linalg.solve(W - J.T @ sigma @ J, -(np.array([g, l1]) - mu * J.T @ (1 / -s)))
    dz = -(z + mu / -s + sigma @ J @ dx)
    return -J @ dx, dz


def learn(
    X, y, *, logistic, form, curvature, common, l1, x0, z0, delay, centring, centring_power, intercept, implicit=False,
    weights=None,
):  # fmt: skip
    """All rows in order, steps ``1 / (delay + k)``; slacks (p, 2), multipliers (p, 2), intercept, scores.

    An implicit step takes the slope at the score that a full step without barrier and penalty would lead to.
    """
    weights = np.ones(len(y)) if weights is None else weights
    n, p = X.shape
    s, z, h, b, bend = np.full((p, 2), x0), np.full((p, 2), z0), np.zeros(p), 0.0, 0.0
    share, scores = (1.0 if form == "split" else 0.5), np.empty(n)
    for k in range(1, n + 1):
        x = X[k - 1]
        a, mu = 1 / (delay + k), centring / k**centring_power * np.sum(s * z) / (2 * p)
        scores[k - 1] = score = share * x @ (s[:, 0] - s[:, 1]) + b
        mean = expit(score) if logistic else score
        second = weights[k - 1] * (mean * (1 - mean) if logistic else 1.0)
        slope = weights[k - 1] * (mean - y[k - 1])
        if k == 1:
            h[:], bend = second * np.sum(x**2) / np.count_nonzero(x), second
        h += a * (second * x**2 - h)
        c = {"identity": np.ones(p), "diagonal": second * x**2, "averaged": h}[curvature]
        bend += a * (second - bend)
        flat = 1.0 if curvature == "identity" else bend
        if implicit:
            falls = [
                direction(form, s[j], z[j], 0.0, c[j], l1, mu)[0] - direction(form, s[j], z[j], x[j], c[j], l1, mu)[0]
                for j in range(p)
            ]
            response = a * (share * x @ [fall[0] - fall[1] for fall in falls] + (1 / flat if intercept else 0.0))

            def moved(t, i=k - 1, start=score, response=response):
                return t - start + response * weights[i] * ((expit(t) if logistic else t) - y[i])

            far = score - response * slope
            t = brentq(moved, min(score, far) - 1e-9, max(score, far) + 1e-9, xtol=1e-14, rtol=1e-15)
            slope = weights[k - 1] * ((expit(t) if logistic else t) - y[k - 1])
        moves = [direction(form, s[j], z[j], slope * x[j], c[j], l1, mu) for j in range(p)]
        ds, dz = np.array([m[0] for m in moves]), np.array([m[1] for m in moves])
        quotients = np.concatenate([-ds / s, -dz / z], axis=1).max(axis=1)  # the fastest fall of each feature
        own = np.where(quotients * a > 0.995, 0.995 / np.maximum(quotients, 1e-300), a)
        steps = np.full(p, own.min()) if common else own
        s, z = s + steps[:, None] * ds, z + steps[:, None] * dz
        if intercept:
            b -= (own.min() if common else a) * slope / flat
    return s, z, b, scores
