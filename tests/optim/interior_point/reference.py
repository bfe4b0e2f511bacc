"""The stochastic interior-point rule for the l1 penalty in plain NumPy, one line for each line of the algorithm."""

import numpy as np


def longest(tau, *pairs):
    steps = [tau * -v / dv for values, changes in pairs for v, dv in zip(values, changes, strict=True) if dv < 0]
    return min(steps, default=np.inf)


def split(A, y, weight, k0, sigma, steps):
    """``x = (w+, w-) >= 0`` with the identity for the curvature (Carbonetto 2009, equations 2.62 and 2.63)."""
    n, p = A.shape
    x, z = np.ones(2 * p), np.ones(2 * p)
    for k in range(1, steps + 1):
        a = A[(k - 1) % n]
        mu = sigma(k) * (x @ z) / (2 * p)
        g = -a * (y[(k - 1) % n] - a @ (x[:p] - x[p:]))
        dx = (-np.concatenate([g, -g]) - weight + mu / x) / (1 + z / x)
        dz = mu / x - z - z / x * dx
        step = min(1 / (k0 + k), longest(0.995, (x, dx), (z, dz)))
        x, z = x + step * dx, z + step * dz
    return x, z


def bound(A, y, weight, k0, sigma, steps):
    """``x = (w, u)`` with ``-u <= w <= u`` (2.65 to 2.69), a two-by-two system for each coordinate."""
    n, p = A.shape
    w, u, low, high = np.zeros(p), np.ones(p), np.ones(p), np.ones(p)
    for k in range(1, steps + 1):
        a = A[(k - 1) % n]
        c_low, c_high = -w - u, w - u
        mu = sigma(k) * -(c_low @ low + c_high @ high) / (2 * p)
        g = -a * (y[(k - 1) % n] - a @ w)
        s_low, s_high = low / c_low, high / c_high
        dw, du = np.empty(p), np.empty(p)
        for j in range(p):
            total, tilt = s_low[j] + s_high[j], s_low[j] - s_high[j]
            matrix = [[1 - total, -tilt], [-tilt, -total]]
            right = [g[j] + mu / c_low[j] - mu / c_high[j], weight + mu / c_low[j] + mu / c_high[j]]
            dw[j], du[j] = np.linalg.solve(matrix, -np.array(right))
        d_low = -low - mu / c_low + s_low * (du + dw)
        d_high = -high - mu / c_high + s_high * (du - dw)
        step = min(1 / (k0 + k), longest(0.995, (low, d_low), (high, d_high), (w + u, dw + du), (u - w, du - dw)))
        w, u, low, high = w + step * dw, u + step * du, low + step * d_low, high + step * d_high
    return np.concatenate([w, u]), np.concatenate([low, high])
