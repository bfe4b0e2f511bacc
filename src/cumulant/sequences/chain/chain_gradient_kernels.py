"""What stochastic methods on chains do with one sequence: its gradient, and updates that touch its own rows only.

The gradient of the loss of a sequence is ``E F(x_i, y) - F(x_i, y_i)``: sums over its tokens of their attributes times
the marginals minus the labels. So the marginals of its nodes ``(T, K)`` and its expected transitions ``(K, K)`` are all
that has to be remembered of it.

Shrinking by the penalty and moving along the sum of all stored gradients concern every weight at every update. Both are
put off: the weights are ``scale * x``, and a row of ``x`` catches up with ``total`` when it is next needed, as
``total[a]`` does not change in between. An update then touches the rows of its own sequence only.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.sequences.chain.chain_kernels import chain_scores

FAST = {"reassoc", "contract", "nsz"}
_SMALL = 1e-50  # a scale this small is multiplied out


# Where a loop does what one line of NumPy would, it is for the compiler: such lines bring code for shapes that do not
# agree, seconds of it for each kernel they stand in.


@kernel(called_by="kernels")
def longest_span(starts):
    """The largest difference of neighbours."""
    out = 0
    for i in range(len(starts) - 1):
        out = max(out, starts[i + 1] - starts[i])
    return out


@kernel(called_by="kernels")
def copy_rows(source, length, target):
    """``target[:length] = source[:length]``."""
    for t in range(length):
        for k in range(source.shape[1]):
            target[t, k] = source[t, k]


@kernel(called_by="kernels")
def workspace(longest, labels):
    """Scores, forward, backward and node tables ``(T, K)``, then three of transitions ``(K, K)``."""
    work, squares = np.empty((4, longest, labels)), np.empty((3, labels, labels))
    return work[0], work[1], work[2], work[3], squares[0], squares[1], squares[2]


@kernel(called_by="kernels", fastmath=FAST)
def add_features(target, amount, indptr, indices, values, first, last, attributes, has_bias, nodes, counts):
    """Adds `amount` times the features of one sequence, its nodes weighted by `nodes` and its pairs by `counts`."""
    labels = target.shape[1]
    for t in range(first, last):
        source = nodes[t - first]
        for e in range(indptr[t], indptr[t + 1]):
            row, value = target[indices[e]], amount * values[e]
            for k in range(labels):
                row[k] += value * source[k]
        if has_bias:
            for k in range(labels):
                target[attributes, k] += amount * source[k]
    if has_bias:
        for k in range(labels):
            target[attributes + 1, k] += amount * nodes[0, k]
            target[attributes + 2, k] += amount * nodes[last - first - 1, k]
    matrix = target[target.shape[0] - labels :]
    for j in range(labels):
        for k in range(labels):
            matrix[j, k] += amount * counts[j, k]


@kernel(called_by="kernels", fastmath=FAST)
def catch_up(x, total, late, passed, first_dense, rows):
    """Take the steps along `total` that the rows `rows`, and all from `first_dense` on, have put off."""
    labels = x.shape[1]
    for r in range(len(rows) + x.shape[0] - first_dense):
        a = rows[r] if r < len(rows) else first_dense + r - len(rows)
        owed = passed - late[a]
        if owed != 0.0:
            target, source = x[a], total[a]
            for k in range(labels):
                target[k] -= owed * source[k]
            late[a] = passed


@kernel(called_by="kernels", fastmath=FAST)
def multiply_out(x, total, late, passed, scale):
    """All rows catch up, and the scale goes into them."""
    labels = x.shape[1]
    for a in range(x.shape[0]):
        owed = passed - late[a]
        for k in range(labels):
            x[a, k] = scale * (x[a, k] - owed * total[a, k])
        late[a] = 0.0


@kernel(called_by="kernels", fastmath=FAST)
def scaled_scores(x, scale, attributes, has_bias, indptr, indices, values, first, last, scores, matrix):
    """Scores of nodes, and the matrix of transitions, of one sequence at the weights ``scale * x``."""
    labels = x.shape[1]
    chain_scores(x, attributes, has_bias, indptr, indices, values, first, last, scores)
    first_transition = x.shape[0] - labels
    for t in range(last - first):
        for k in range(labels):
            scores[t, k] *= scale
    for j in range(labels):
        for k in range(labels):
            matrix[j, k] = scale * x[first_transition + j, k]


@kernel(called_by="kernels", fastmath=FAST)
def subtract_labels(nodes, counts, labels, first, last):
    """Marginals and expected transitions minus those of the true labels: what the gradient is made of."""
    for t in range(first, last):
        nodes[t - first, labels[t]] -= 1.0
        if t + 1 < last:
            counts[labels[t], labels[t + 1]] -= 1.0


@kernel(called_by="kernels")
def shrink(x, total, late, passed, scale, gamma, l2):
    """The penalty of one step of size `gamma`, put into the scale; returns what has passed and the scale."""
    scale *= 1.0 - gamma * l2
    if scale < _SMALL:
        multiply_out(x, total, late, passed, scale)
        return 0.0, 1.0
    return passed, scale
