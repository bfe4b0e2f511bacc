"""Adaptation of cause-effect models as it is defined: whole tables, running sums of all iterates, no lazy updates."""

import numpy as np
from numba import njit
from scipy.special import logsumexp

from cumulant.randomness_kernels import uniform


@njit
def _uniform(seed, problem, t):
    return uniform(seed, problem, t, 0)


def observations(table, problem, T, seed):
    """The same observations as the kernel, from the cumulative sums of the table."""
    ends = np.cumsum(table.ravel())
    cells = [np.searchsorted(ends, _uniform(seed, problem, t) * ends[-1], side="right") for t in range(T)]
    return [divmod(int(cell), table.shape[1]) for cell in cells]


def softmax(s):
    e = np.exp(s - s.max())
    return e / e.sum()


def mean_zero(logs, axis=-1):
    return logs - logs.mean(axis=axis, keepdims=True)


def adapt_pair(P, Q, seen, step, every=1):
    """``KL(Q || model)`` at the averages of 1, 2, ... iterates of a model ``p(x) p(y | x)`` that begins at `P`.

    `every` keeps those after so many observations only.
    """
    s_x = mean_zero(np.log(P.sum(1)))
    s_yx = mean_zero(np.log(P / P.sum(1, keepdims=True)))
    sums, found = [np.zeros_like(s_x), np.zeros_like(s_yx)], []
    for t, (x, y) in enumerate(seen):
        sums[0] += s_x
        sums[1] += s_yx
        if (t + 1) % every == 0:
            a, b = sums[0] / (t + 1), sums[1] / (t + 1)
            log_model = (a - logsumexp(a))[:, None] + b - logsumexp(b, axis=1, keepdims=True)
            found.append(np.sum(Q * (np.log(Q) - log_model)))
        g_x, g_row = -softmax(s_x), -softmax(s_yx[x])
        g_x[x] += 1
        g_row[y] += 1
        s_x, s_yx = s_x + step * g_x, s_yx.copy()
        s_yx[x] += step * g_row
    return np.array(found), s_x, s_yx


def adapt_table(P, Q, seen, step, every=1):
    """The same for the model of one table."""
    s, total, found = mean_zero(np.log(P).ravel()), np.zeros(P.size), []
    for t, (x, y) in enumerate(seen):
        total += s
        if (t + 1) % every == 0:
            a = total / (t + 1)
            found.append(np.sum(Q.ravel() * (np.log(Q).ravel() - a + logsumexp(a))))
        g = -softmax(s)
        g[x * P.shape[1] + y] += 1
        s = s + step * g
    return np.array(found), s


def adapt_batch(tables, targets, seen, steps, times):
    """All three models of many problems in NumPy, whole arrays over step sizes and problems: ``(3, L, n, times)``.

    What one writes with NumPy: `seen` (n, T, 2) observations, running sums of all parameters, divergences from the
    tables where they are asked for.
    """
    L, n, T = len(steps), len(tables), seen.shape[1]
    step = np.asarray(steps)[:, None, None]
    found = np.empty((3, L, n, len(times)))
    entropy = np.sum(targets * np.log(targets), axis=(1, 2))
    rows = np.arange(n)
    for m, (P, Q, x, y) in enumerate(
        (
            (tables, targets, seen[..., 0], seen[..., 1]),
            (tables.swapaxes(1, 2), targets.swapaxes(1, 2), seen[..., 1], seen[..., 0]),
        )
    ):
        s = np.repeat(mean_zero(np.log(P.sum(2)))[None], L, axis=0)
        r = np.repeat(mean_zero(np.log(P / P.sum(2, keepdims=True)))[None], L, axis=0)
        sum_s, sum_r = np.zeros_like(s), np.zeros_like(r)
        for t in range(T + 1):
            if t in times:
                a, b = (sum_s / t, sum_r / t) if t else (s, r)
                cross = np.sum(Q.sum(2) * (a - logsumexp(a, axis=-1, keepdims=True)), axis=-1)
                cross += np.sum(Q * (b - logsumexp(b, axis=-1, keepdims=True)), axis=(-2, -1))
                found[m, :, :, times.index(t)] = entropy - cross
            if t == T:
                break
            sum_s += s
            sum_r += r
            g = np.exp(s - s.max(axis=-1, keepdims=True))
            s -= step * (g / g.sum(axis=-1, keepdims=True))
            s[:, rows, x[:, t]] += step[..., 0]
            row = r[:, rows, x[:, t]]
            g = np.exp(row - row.max(axis=-1, keepdims=True))
            row -= step * (g / g.sum(axis=-1, keepdims=True))
            row[:, rows, y[:, t]] += step[..., 0]
            r[:, rows, x[:, t]] = row
    P, Q = tables.reshape(n, -1), targets.reshape(n, -1)
    s, cells = np.repeat(mean_zero(np.log(P))[None], L, axis=0), seen[..., 0] * tables.shape[2] + seen[..., 1]
    total = np.zeros_like(s)
    for t in range(T + 1):
        if t in times:
            a = total / t if t else s
            found[2, :, :, times.index(t)] = entropy - np.sum(Q * (a - logsumexp(a, axis=-1, keepdims=True)), axis=-1)
        if t == T:
            break
        total += s
        g = np.exp(s - s.max(axis=-1, keepdims=True))
        s -= step * (g / g.sum(axis=-1, keepdims=True))
        s[:, rows, cells[:, t]] += step[..., 0]
    return found
