"""Conditional likelihoods of Ising models: of each spin given the rest, and of each joined pair given the rest."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import coo_array
from scipy.special import expit, logsumexp

__all__ = ["composite_likelihood", "pseudo_likelihood"]

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


def pseudo_likelihood(x: np.ndarray, edges: np.ndarray) -> Objective:
    """``theta -> -mean over data of sum_i log p(x_i | rest)`` and its gradient (Besag 1975).

    ``theta`` is the fields and then the couplings. Convex: a logistic regression for each spin, with shared couplings.
    """
    x = np.asarray(x, dtype=np.float64)
    i, j = edges[:, 0], edges[:, 1]

    def value_and_gradient(theta):
        margins = x * _local(x, theta, edges)
        slope = -2.0 * x * expit(-2.0 * margins)
        couplings = (slope[:, i] * x[:, j] + slope[:, j] * x[:, i]).mean(axis=0)
        value = np.logaddexp(0.0, -2.0 * margins).sum(axis=1).mean()
        return float(value), np.concatenate([slope.mean(axis=0), couplings])

    return value_and_gradient


def composite_likelihood(x: np.ndarray, edges: np.ndarray) -> Objective:
    """``theta -> -mean over data of sum_ij log p(x_i, x_j | rest)`` over the edges, and its gradient (Lindsay 1988)."""
    x = np.asarray(x, dtype=np.float64)
    n, m, i, j = x.shape[1], len(edges), edges[:, 0], edges[:, 1]
    products = x[:, i] * x[:, j]
    at_first, at_second = (coo_array((np.ones(m), (end, np.arange(m))), shape=(n, m)).tocsr() for end in (i, j))
    # The four states of a pair: of its first spin, its second, and their product.
    first, second = np.array([-1.0, -1.0, 1.0, 1.0]), np.array([-1.0, 1.0, -1.0, 1.0])

    def value_and_gradient(theta):
        local, J = _local(x, theta, edges), theta[n:]
        a, b = local[:, i] - J * x[:, j], local[:, j] - J * x[:, i]
        scores = a[..., None] * first + b[..., None] * second + J[:, None] * (first * second)
        total = np.asarray(logsumexp(scores, axis=-1))
        p = np.exp(scores - total[..., None])
        value = (total - a * x[:, i] - b * x[:, j] - J * products).sum(axis=1).mean()
        left, right, both = p @ first - x[:, i], p @ second - x[:, j], p @ (first * second) - products
        around = (at_first @ left.T + at_second @ right.T).T  # for each spin, over the pairs it is in
        couplings = (around[:, i] - left) * x[:, j] + (around[:, j] - right) * x[:, i] + both
        return float(value), np.concatenate([around.mean(axis=0), couplings.mean(axis=0)])

    return value_and_gradient


def _local(x, theta, edges):
    """``h_i + sum_j J_ij x_j`` for each observation and spin."""
    n, i, j = x.shape[1], edges[:, 0], edges[:, 1]
    J = coo_array((np.tile(theta[n:], 2), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(n, n)).tocsr()
    return theta[:n] + (J @ x.T).T
