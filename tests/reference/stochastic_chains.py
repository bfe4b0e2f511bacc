"""Stochastic gradient methods on chains, slow and obvious: gradients by enumeration, dense steps."""

import numpy as np

from cumulant import randomness_kernels
from tests.compiled import from_python
from tests.sequences.cases import feature_map, joint_law

uniform, uniform_pair = from_python(randomness_kernels.uniform), from_python(randomness_kernels.uniform_pair)


def loss(problem, w, i):
    """``phi_i(w)`` and its gradient."""
    first, last = problem.data.offsets[i], problem.data.offsets[i + 1]
    joint, labellings = joint_law(problem, w, i)
    gold = problem.labels[first:last]
    truth = np.flatnonzero(np.all(labellings == gold, axis=1))[0]
    mean = sum(p * feature_map(problem, i, y) for p, y in zip(joint, labellings, strict=True))
    return -np.log(joint[truth]), mean - feature_map(problem, i, gold)


def raised(problem, w, i, constant, least):
    """The constant after doubling, and the number of trials."""
    value, gradient = loss(problem, w, i)
    norm, trials = np.sum(gradient**2), 0
    if norm <= least:
        return constant, 0
    while True:
        trials += 1
        if loss(problem, w - gradient / constant, i)[0] <= value - norm / (2 * constant):
            return constant, trials
        constant *= 2


def drawn(weights, place):
    """The index whose part of the cumulated weights holds ``place`` of the total."""
    return int(np.searchsorted(np.cumsum(weights), place * np.sum(weights), side="right"))


def sag_recalled(problem, epochs, seed, *, nonuniform, search):
    """SAG with one constant for all, or one for each sequence and half of the draws in proportion to them."""
    n, l2 = problem.n_terms, problem.l2
    w, stored = np.zeros(problem.shape), {}
    constants, common = {}, 1.0
    streaks, waits = np.zeros(n, int), np.zeros(n, int)
    calls = trials_made = 0
    for sweep in range(epochs):
        for u in range(n):
            coin, place = uniform_pair(seed, 0, sweep, u)
            if nonuniform and coin < 0.5 and constants:
                i = drawn([constants.get(j, 0.0) for j in range(n)], place)
            else:
                i = int(place * n)
            if nonuniform and i not in constants:
                constants[i] = 0.5 * np.mean(list(constants.values())) if constants else 1.0
            stored[i] = loss(problem, w, i)[1]
            calls += 1
            if search == "skip" and waits[i] > 0:
                waits[i] -= 1
            else:
                before = constants[i] if nonuniform else common
                after, trials = raised(problem, w, i, before, 1e-8)
                calls, trials_made = calls + trials, trials_made + trials
                if trials and after == before:
                    streaks[i] += 1
                    waits[i] = 2 ** (streaks[i] - 1)
                    after *= 0.9 if nonuniform else 1.0
                elif trials:
                    streaks[i] = 0
                if nonuniform:
                    constants[i] = after
                else:
                    common = after
            if nonuniform:
                known = np.array(list(constants.values()))
                gamma = 0.5 * (1 / (known.max() + l2) + 1 / (known.mean() + l2))
            else:
                gamma = 1 / (common + l2)
                common *= 2 ** (-1 / n)
            w = (1 - gamma * l2) * w - gamma * sum(stored.values()) / len(stored)
    return w, calls, trials_made


def sag_port(problem, epochs, seed):
    """SAG with non-uniform sampling, sequences not seen yet first, constants halved before each search."""
    n, l2 = problem.n_terms, problem.l2
    w, stored, constants, largest = np.zeros(problem.shape), {}, {}, 0.0
    order = list(range(n))  # those seen first, then the others
    calls = 0
    for sweep in range(epochs):
        for u in range(n):
            coin, place = uniform_pair(seed, 0, sweep, u)
            m = len(stored)
            if coin * n < n - m:
                i = order[m + int(place * (n - m))]
            elif uniform(seed, 1, sweep, u) < 0.5:
                i = order[int(place * m)]
            else:
                i = drawn([constants[j] + l2 if j in constants else 0.0 for j in range(n)], place)
            fresh = i not in stored
            if fresh:
                constants[i] = 0.5 * np.mean(list(constants.values())) if constants else 1.0
                where = order.index(i)
                order[m], order[where] = i, order[m]
            stored[i] = loss(problem, w, i)[1]
            after, trials = raised(problem, w, i, constants[i] * (1 if fresh else 0.5), 1.5e-8)
            calls += 1 + trials
            if trials:
                constants[i] = after
            largest = max(largest, constants[i])
            m, mean = len(stored), np.mean(list(constants.values()))
            gamma = (n - m) / n / (largest + l2) + m / n * 0.5 * (1 / (largest + l2) + 1 / (mean + l2))
            largest *= 2 ** (-1 / n)
            w = (1 - gamma * l2) * w - gamma / m * sum(stored.values())
    return w, calls


def saga(problem, epochs, seed, gamma, snapshot=None):
    """SAGA; or SVRG, whose stored gradients are those of a snapshot taken every `snapshot` epochs."""
    n = problem.n_terms
    w, stored = np.zeros(problem.shape), np.zeros((n, *problem.shape))
    for sweep in range(epochs):
        if snapshot and sweep % snapshot == 0:
            stored = np.array([loss(problem, w, i)[1] for i in range(n)])
        for u in range(n):
            i = int(uniform(seed, 0, sweep, u) * n)
            new = loss(problem, w, i)[1]
            w = w - gamma * (new - stored[i] + stored.mean(axis=0) + problem.l2 * w)
            if not snapshot:
                stored[i] = new
    return w


def sgd(problem, epochs, seed, steps):
    """Stochastic gradient descent with ``steps(t)``: the last iterate, and the mean weighted by 1, 2, 3, ..."""
    n, w = problem.n_terms, np.zeros(problem.shape)
    iterates = []
    for sweep in range(epochs):
        for u in range(n):
            i = int(uniform(seed, 0, sweep, u) * n)
            w = w - steps(sweep * n + u) * (loss(problem, w, i)[1] + problem.l2 * w)
            iterates.append(w)
    return w, np.average(iterates, axis=0, weights=np.arange(1, len(iterates) + 1))
