"""Weighted draws and arg-maxima over n weights that change one at a time, in O(log n) each.

A tree is one flat float64 array of length `2 * capacity`, where `capacity` is the next power of two at or above n: the
root is at 1, the children of node k are at 2k and 2k + 1, leaf i is at `capacity + i`, and entry 0 is not used. Leaves
past n hold the neutral element (zero in a sum tree, minus infinity in a max tree). An update recomputes each ancestor
from its two children instead of adding a difference, so the tree after any number of updates is bit for bit the one
that `tree_build` makes from the same weights: rounding errors do not accumulate.

The weights are finite and non-negative; whoever calls has checked that.
"""

import math

import numpy as np

from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform_pair


def tree_build(weights: np.ndarray) -> np.ndarray:
    """The sum tree of `weights`: every node holds the sum of the leaves below it, added in pairs."""
    return _built(weights, np.add, 0.0)


def max_tree_build(weights: np.ndarray) -> np.ndarray:
    """The max tree of `weights`: every node holds the largest leaf below it."""
    return _built(weights, np.maximum, -np.inf)


def _built(weights: np.ndarray, combine: np.ufunc, neutral: float) -> np.ndarray:
    capacity = 1 << max(weights.size - 1, 0).bit_length()
    tree = np.full(2 * capacity, neutral)
    tree[capacity : capacity + weights.size] = weights
    while capacity > 1:
        children, capacity = tree[capacity : 2 * capacity], capacity // 2
        tree[capacity : 2 * capacity] = combine(children[::2], children[1::2])
    return tree


@kernel(called_by="kernels")
def tree_update(tree, i, weight):
    """Give leaf `i` the weight `weight`; `tree` is changed in place."""
    k = tree.size // 2 + i
    tree[k] = weight
    k //= 2
    while k >= 1:
        tree[k] = tree[2 * k] + tree[2 * k + 1]
        k //= 2


@kernel(called_by="python")
def tree_total(tree):
    """The sum of the weights, by pairwise summation."""
    return tree[1]


@kernel(called_by="kernels")
def tree_draw(tree, u, n):
    """The index drawn by `u` in [0, 1): the i with `w_0 + ... + w_{i-1} <= u * total < w_0 + ... + w_i`.

    The descent enters a child only if its weight is positive, whatever the rounding: an index of weight zero or beyond
    n - 1 is never returned. Where all weights are zero the draw is uniform on the n indices.
    """
    total = tree[1]
    if not total > 0.0:
        return min(int(u * n), n - 1)
    capacity = tree.size // 2
    remainder = u * total
    k = 1
    while k < capacity:
        k *= 2
        left = tree[k]
        # An empty left child is never entered, as remainder >= 0 = left; the first test keeps out of an empty right.
        if tree[k + 1] > 0.0 and remainder >= left:
            remainder -= left
            k += 1
    return k - capacity


@kernel(called_by="kernels")
def max_tree_update(tree, i, weight):
    """Give leaf `i` the weight `weight`; `tree` is changed in place."""
    k = tree.size // 2 + i
    tree[k] = weight
    k //= 2
    while k >= 1:
        largest = max(tree[2 * k], tree[2 * k + 1])
        if largest == tree[k]:  # nothing changes above either
            break
        tree[k] = largest
        k //= 2


@kernel
def max_tree_argmax(tree):
    """The index of the largest weight, the lowest such index if several are equal."""
    capacity = tree.size // 2
    k = 1
    while k < capacity:
        k *= 2
        if tree[k + 1] > tree[k]:
            k += 1
    return k - capacity


@kernel
def draw(scheme, nonuniformity, tree, n, seed, block, sweep, update):
    """Which of `n` comes next: scheme 0 uniform, 4 the largest of `tree`, else in proportion to it.

    A share ``1 - nonuniformity`` of the draws is uniform whatever the scheme.
    """
    coin, place = uniform_pair(seed, block, sweep, update)
    if scheme == 0 or coin >= nonuniformity:
        return min(int(place * n), n - 1)
    if scheme == 4:
        return max_tree_argmax(tree)
    return tree_draw(tree, place, n)


@kernel
def remember(scheme, tree, m, gap, importance):
    """Keep the gap that was just seen, or for scheme 5 the norm of the residual, where the scheme draws by it."""
    if scheme == 2 or scheme == 3:
        tree_update(tree, m, gap * importance if scheme == 3 else gap)
    elif scheme == 4:
        max_tree_update(tree, m, gap)
    elif scheme == 5:
        tree_update(tree, m, gap * math.sqrt(importance))
