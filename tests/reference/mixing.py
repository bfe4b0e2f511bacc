"""Gibbs sampling as a matrix: the chain itself, with nothing bounded."""

import itertools

import numpy as np


def transition_matrix(n, score):
    """Of random-scan Gibbs over spins: `score(x)` is the logarithm of the unnormalised probability."""
    states = list(itertools.product((-1, 1), repeat=n))
    number = {x: k for k, x in enumerate(states)}
    P = np.zeros((len(states), len(states)))
    for k, x in enumerate(states):
        for i in range(n):
            up, down = (*x[:i], 1, *x[i + 1 :]), (*x[:i], -1, *x[i + 1 :])
            p = 1.0 / (1.0 + np.exp(score(down) - score(up)))
            P[k, number[up]] += p / n
            P[k, number[down]] += (1.0 - p) / n
    weights = np.exp([score(x) for x in states])
    return P, weights / weights.sum()


def worst_distances(P, stationary, steps):
    """``d(v)`` for ``v = 0, ..., steps``: the largest total variation over starting states."""
    law, out = np.eye(len(P)), []
    for _ in range(steps + 1):
        out.append(0.5 * np.abs(law - stationary).sum(axis=1).max())
        law = law @ P
    return np.array(out)


def widest_row_prox(table, weight):
    """``argmin 1/2 |psi - table|^2 + weight max_a (max_b psi - min_b psi)`` by bisection on the width."""

    def clipped(width):
        out, cut = np.array(table), 0.0
        for a, row in enumerate(table):
            low, high = row.min() - 1.0, row.max() + 1.0  # the middle of the strip: as much above it as below
            for _ in range(50):
                middle = 0.5 * (low + high)
                above = np.maximum(row - middle - width / 2, 0).sum()
                below = np.maximum(middle - width / 2 - row, 0).sum()
                low, high = (middle, high) if above > below else (low, middle)
            out[a] = np.clip(row, middle - width / 2, middle + width / 2)
            cut += np.maximum(row - middle - width / 2, 0).sum()
        return out, cut

    low, high = 0.0, np.ptp(table, axis=1).max()
    for _ in range(50):
        width = 0.5 * (low + high)
        low, high = (width, high) if clipped(width)[1] > weight else (low, width)
    return clipped(high)[0]
