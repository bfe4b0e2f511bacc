"""Weighted draws and pairwise sums, slow and obvious: what `sum_tree_kernels` must agree with."""

import numpy as np


def pairwise_sum(weights: np.ndarray) -> float:
    """The sum of a power-of-two number of weights, halves first."""
    if weights.size == 1:
        return float(weights[0])
    half = weights.size // 2
    return pairwise_sum(weights[:half]) + pairwise_sum(weights[half:])


def padded(weights: np.ndarray) -> np.ndarray:
    """`weights` followed by zeros up to the next power of two."""
    capacity = 1 << (weights.size - 1).bit_length()
    return np.concatenate([weights, np.zeros(capacity - weights.size)])


def draw(weights: np.ndarray, u: float) -> int:
    """The first index whose cumulative weight exceeds u times the total."""
    target = u * weights.sum()
    running = 0.0
    for i, weight in enumerate(weights):
        running += weight
        if target < running:
            return i
    return int(np.flatnonzero(weights)[-1])
