"""Compiled loops of averaged stochastic proximal gradients on linear-Gaussian models, in Cholesky coordinates.

A problem's samples are drawn once and serve all step sizes and both directions. They depend on (seed, problem, time)
and on nothing else. Parameters of a model are ``zeta, L`` of the cause and ``M, m, Lc`` of the effect.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform_pair


@kernel(called_by="kernels")
def parts(vector, p, q):
    """The five arrays of a packed model of `p` causes and `q` effects, as views."""
    a, b = p + p * p, p + p * p + q * p
    return (
        vector[:p],
        vector[p:a].reshape((p, p)),
        vector[a:b].reshape((q, p)),
        vector[b : b + q],
        vector[b + q :].reshape((q, q)),
    )


@kernel(called_by="python")
def draw_samples(model, seed, problem, x, y):
    """Fill `x` (times, causes) and `y` (times, effects) with draws of one model: ``L^T x = zeta + e``, and
    ``Lc^T y = M x + m + e'`` with standard normal ``e``.
    """
    p, q = x.shape[1], y.shape[1]
    zeta, L, M, m, Lc = parts(model, p, q)
    noise = np.empty(p + q + 1)
    for t in range(x.shape[0]):
        for pair in range((p + q + 1) // 2):
            u, v = uniform_pair(seed, problem, t, pair)
            radius, angle = np.sqrt(-2.0 * np.log(u)), 2.0 * np.pi * v
            noise[2 * pair] = radius * np.cos(angle)
            noise[2 * pair + 1] = radius * np.sin(angle)
        for i in range(p - 1, -1, -1):
            value = zeta[i] + noise[i]
            for k in range(i + 1, p):
                value -= L[k, i] * x[t, k]
            x[t, i] = value / L[i, i]
        for i in range(q - 1, -1, -1):
            value = m[i] + noise[p + i]
            for k in range(p):
                value += M[i, k] * x[t, k]
            for k in range(i + 1, q):
                value -= Lc[k, i] * y[t, k]
            y[t, i] = value / Lc[i, i]


@kernel(called_by="kernels")
def divergence(zeta, L, M, m, Lc, zeta1, L1, M1, m1, Lc1, mean, V, D):
    """``KL(p || q)``, ``p`` the first model, whose cause has this `mean`, and ``q`` the second; `V` and `D` are room
    for square matrices of the larger size.

    Of the cause ``(|V^T zeta - zeta1|^2 + |V|_F^2 - p - 2 sum log V_ii) / 2`` with ``V = L^-1 L1``. Of the effect the
    same without the first term, and ``E |D x + d|^2 / 2`` with ``D = V^T M - M1``, ``d = V^T m - m1``, where
    ``E |D x + d|^2 = |D mean + d|^2 + |D L^-T|_F^2``.
    """
    p, q = zeta.size, m.size
    total = ratio(L, L1, V)
    for i in range(p):
        apart = -zeta1[i]
        for k in range(i, p):
            apart += V[k, i] * zeta[k]
        total += apart * apart
    total += ratio(Lc, Lc1, V)
    for i in range(q):
        for j in range(p):
            D[i, j] = -M1[i, j]
        apart = -m1[i]
        for k in range(i, q):
            apart += V[k, i] * m[k]
            for j in range(p):
                D[i, j] += V[k, i] * M[k, j]
        for j in range(p):
            apart += D[i, j] * mean[j]
        total += apart * apart
        for j in range(p):  # the row of D L^-T, in place
            value = D[i, j]
            for k in range(j):
                value -= L[j, k] * D[i, k]
            D[i, j] = value / L[j, j]
            total += D[i, j] * D[i, j]
    return 0.5 * total


@kernel(called_by="kernels")
def ratio(L, L1, V):
    """``V = L^-1 L1``, and ``|V|_F^2 - n - 2 sum log V_ii``: infinite where `L1` has no positive diagonal."""
    n = L.shape[0]
    total = 0.0
    for j in range(n):
        for i in range(j, n):
            value = L1[i, j]
            for k in range(j, i):
                value -= L[i, k] * V[k, j]
            V[i, j] = value / L[i, i]
            if i > j:
                total += V[i, j] * V[i, j]
        if not V[j, j] > 0.0:
            return np.inf
        far = (V[j, j] - 1.0) * (V[j, j] + 1.0)
        total += far - np.log1p(far)
    return total


@kernel(called_by="python")
def adapt(x, y, steps, times, proximal, start, target, mean, out, last):
    """Adapt a model, from `start` on, to the samples of `target`, whose cause has this `mean`, with each of the steps.

    ``out[s, k]`` is the divergence of the target from the average of the first ``times[k]`` iterates, or from `start`
    at time 0; infinite from the first that is not finite on. ``last[s]`` is the last average. With `proximal` the step
    of ``-sum log L_ii`` is implicit, else it is a gradient step.
    """
    p, q = x.shape[1], y.shape[1]
    size = max(p, q)
    V, D, r, s = np.empty((size, size)), np.empty((size, size)), np.empty(p), np.empty(q)
    state, total = np.empty(start.size), np.empty(start.size)
    a, F, B, b, G = parts(state, p, q)
    zeta, L, M, m, Lc = parts(target, p, q)
    for run in range(steps.size):
        step = steps[run]
        a1, F1, B1, b1, G1 = parts(last[run], p, q)
        for k in range(start.size):
            state[k], last[run, k], total[k] = start[k], start[k], 0.0
        place = 0
        if times[0] == 0:
            out[run, 0] = divergence(zeta, L, M, m, Lc, a1, F1, B1, b1, G1, mean, V, D)
            place = 1
        for t in range(x.shape[0]):
            for j in range(p):
                r[j] = -a[j]
            for i in range(p):
                for j in range(i + 1):
                    r[j] += F[i, j] * x[t, i]
            for i in range(q):
                s[i] = -b[i]
                for j in range(p):
                    s[i] -= B[i, j] * x[t, j]
            for i in range(q):
                for j in range(i + 1):
                    s[j] += G[i, j] * y[t, i]
            for i in range(p):
                a[i] += step * r[i]
            for i in range(q):
                move = step * s[i]
                b[i] += move
                for j in range(p):
                    B[i, j] += move * x[t, j]
            move_factor(F, x[t], r, step, proximal)
            move_factor(G, y[t], s, step, proximal)
            for k in range(start.size):
                total[k] += state[k]
            if place < times.size and times[place] == t + 1:
                share = 1.0 / (t + 1)
                for k in range(start.size):
                    last[run, k] = share * total[k]
                found = divergence(zeta, L, M, m, Lc, a1, F1, B1, b1, G1, mean, V, D)
                if not found < np.inf:
                    for k in range(place, times.size):
                        out[run, k] = np.inf
                    break
                out[run, place] = found
                place += 1


@kernel(called_by="kernels")
def move_factor(F, x, r, step, proximal):
    """The gradient step ``F -= step tril(x r^T)``, and the step of ``-sum log F_ii``."""
    for i in range(x.size):
        if not proximal:
            F[i, i] += step / F[i, i]
        move = step * x[i]
        for j in range(i + 1):
            F[i, j] -= move * r[j]
        if proximal:
            old = F[i, i]
            root = np.sqrt(old * old + 4.0 * step)
            F[i, i] = 0.5 * (old + root) if old > 0.0 else 2.0 * step / (root - old)
