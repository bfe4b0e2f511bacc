"""Adaptation of linear-Gaussian models, slow and obvious: one problem, one step size, matrices as they are printed."""

import numpy as np


def adapted(start, xs, ys, step, prox=True):
    """The average of the iterates after each observation; `start` is ``(zeta, L, M, m, Lc)``.

    Le Priol (2021), section 4.6.1 and appendix 4.D.2.
    """
    zeta, L, M, m, Lc = (np.array(each, dtype=float) for each in start)
    total, averages = None, []
    for t, (x, y) in enumerate(zip(xs, ys, strict=True), start=1):
        r1 = L.T @ x - zeta
        r2 = Lc.T @ y - M @ x - m
        forces = [np.diag(1 / np.diag(each)) for each in (L, Lc)]  # of the logarithms, before the step
        zeta = zeta + step * r1
        m = m + step * r2
        M = M + step * np.outer(r2, x)
        L = L - step * np.tril(np.outer(x, r1))
        Lc = Lc - step * np.tril(np.outer(y, r2))
        if prox:
            L, Lc = (each + np.diag(log_prox(np.diag(each), step) - np.diag(each)) for each in (L, Lc))
        else:
            L, Lc = L + step * forces[0], Lc + step * forces[1]
        now = (zeta, L, M, m, Lc)
        total = now if total is None else tuple(a + b for a, b in zip(total, now, strict=True))
        averages.append(tuple(each / t for each in total))
    return averages


def log_prox(v, step):
    """``argmin_l -log l + (l - v)^2 / (2 step)``."""
    return (v + np.sqrt(v**2 + 4 * step)) / 2


def divergence(first, second):
    """``KL`` of models in Cholesky coordinates, by means and covariances of the joint distributions."""
    (mu0, S0), (mu1, S1) = joint(first), joint(second)
    ratio = np.linalg.solve(S1, S0)
    far = (mu1 - mu0) @ np.linalg.solve(S1, mu1 - mu0)
    return 0.5 * (far + np.trace(ratio) - len(mu0) - np.log(np.linalg.det(ratio)))


def joint(model):
    """Mean and covariance of ``(x, y)``."""
    zeta, L, M, m, Lc = model
    S, Sc = np.linalg.inv(L @ L.T), np.linalg.inv(Lc @ Lc.T)
    mu, A, a = np.linalg.solve(L.T, zeta), np.linalg.solve(Lc.T, M), np.linalg.solve(Lc.T, m)
    return np.concatenate([mu, A @ mu + a]), np.block([[S, S @ A.T], [A @ S, Sc + A @ S @ A.T]])
