"""Compiled loops over chains: scores, marginals, and what the objectives need of all data.

The weights are one matrix ``W`` of ``attributes + biases + labels`` rows and one column per label: a row for each
attribute, then none or three for the biases (every node, first node, last node), then the transitions ``P[j, k]`` from
label ``j`` to label ``k``. Tokens are rows of a CSR matrix; sequence ``i`` is the tokens ``offsets[i]:offsets[i+1]``.

Marginals come from a forward and a backward pass on scaled probabilities: one `exp` for each label of each node and one
for each transition. Where scores differ by more than `_RANGE` the passes run on logarithms instead. That is rare, and
half of the program: kernels whose argument `logs` is None do without it, and stop at the first sequence that needs it.

All of this is compiled at the first fit, which is why there are loops where NumPy has a function, and arrays that the
caller makes: slices, `reshape`, `np.sum` or `np.zeros` in a kernel are programs of their own.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log, soft

_RANGE = 350.0  # products of two numbers that are exp(-350) are still far from the end of the floating-point range
_FAST = {"reassoc", "contract", "nsz"}


@kernel(called_by="kernels", fastmath=_FAST)
def sparse_scores(hidden, threshold, attributes, has_bias, indptr, indices, values, first, last, scores):
    """`chain_scores` with the weights ``soft(hidden, threshold)``."""
    labels = hidden.shape[1]
    for t in range(first, last):
        row = scores[t - first]
        for k in range(labels):
            row[k] = 0.0
        for e in range(indptr[t], indptr[t + 1]):
            weight_row, value = hidden[indices[e]], values[e]
            for k in range(labels):
                row[k] += value * soft(weight_row[k], threshold)
        if has_bias:
            for k in range(labels):
                row[k] += soft(hidden[attributes, k], threshold)
    if has_bias:
        for k in range(labels):
            scores[0, k] += soft(hidden[attributes + 1, k], threshold)
            scores[last - first - 1, k] += soft(hidden[attributes + 2, k], threshold)


@kernel(fastmath=_FAST)
def chain_scores(weights, attributes, has_bias, indptr, indices, values, first, last, scores):
    """``scores[t, k]`` of label ``k`` at the nodes ``first:last``: the inner product of its features and weights."""
    labels = weights.shape[1]
    for t in range(first, last):
        row = scores[t - first]
        for k in range(labels):
            row[k] = weights[attributes, k] if has_bias else 0.0
        for e in range(indptr[t], indptr[t + 1]):
            weight_row, value = weights[indices[e]], values[e]
            for k in range(labels):
                row[k] += value * weight_row[k]
    if has_bias:
        for k in range(labels):
            scores[0, k] += weights[attributes + 1, k]
            scores[last - first - 1, k] += weights[attributes + 2, k]


@kernel(called_by="kernels", fastmath=_FAST)
def _range_of(scores, length, transitions):
    labels = scores.shape[1]
    widest = 0.0
    for t in range(length):
        low, high = scores[t, 0], scores[t, 0]
        for k in range(1, labels):
            low, high = min(low, scores[t, k]), max(high, scores[t, k])
        widest = max(widest, high - low)
    low, high = transitions[0, 0], transitions[0, 0]
    for j in range(labels):
        for k in range(labels):
            low, high = min(low, transitions[j, k]), max(high, transitions[j, k])
    return widest + high - low, high


@kernel(called_by="kernels", fastmath=_FAST)
def _scaled_forward(scores, length, transitions, top, moved, forward, ahead):
    """The forward pass on probabilities scaled at each node; returns the log-partition function.

    Leaves ``forward[t]`` (probabilities given the past), ``ahead[t]`` (what a label at ``t`` is worth) and
    ``moved = exp(P - top)``.
    """
    labels = scores.shape[1]
    for j in range(labels):
        for k in range(labels):
            moved[j, k] = fast_exp(transitions[j, k] - top)
    log_z = top * (length - 1)
    for t in range(length):
        highest = scores[t, 0]
        for k in range(1, labels):
            highest = max(highest, scores[t, k])
        log_z += highest
        row, out = ahead[t], forward[t]
        for k in range(labels):
            row[k] = fast_exp(scores[t, k] - highest)
        if t == 0:
            for k in range(labels):
                out[k] = row[k]
        else:
            before = forward[t - 1]
            for k in range(labels):
                out[k] = 0.0
            for j in range(labels):
                share, moved_row = before[j], moved[j]
                for k in range(labels):
                    out[k] += share * moved_row[k]
            for k in range(labels):
                out[k] *= row[k]
        total = 0.0
        for k in range(labels):
            total += out[k]
        log_z += np.log(total)
        scale = 1.0 / total
        for k in range(labels):
            out[k] *= scale
            row[k] *= scale  # of the passage into this node
    return log_z


@kernel(called_by="kernels", fastmath=_FAST)
def _scaled_passes(scores, length, transitions, top, moved, forward, ahead, unary):
    """Both passes: ``ahead[t]`` then counts the future after ``t`` too, and `unary` are the marginals.

    The marginal of a pair is ``forward[t, j] moved[j, k] ahead[t + 1, k]``. Returns the log-partition function.
    """
    labels = scores.shape[1]
    log_z = _scaled_forward(scores, length, transitions, top, moved, forward, ahead)
    for k in range(labels):
        unary[length - 1, k] = forward[length - 1, k]
    for t in range(length - 2, -1, -1):
        after = ahead[t + 1]
        for j in range(labels):
            total, moved_row = 0.0, moved[j]
            for k in range(labels):
                total += moved_row[k] * after[k]
            unary[t, j] = forward[t, j] * total
            ahead[t, j] *= total
    return log_z


# Plain loops, not array expressions: six kernels have all of this put into them, and expressions compile slowly.


@kernel(called_by="kernels")
def _normalise(row):
    """Takes the logarithm of the sum of exponentials off, and returns it."""
    highest, total = row[0], 0.0
    for k in range(1, len(row)):
        highest = max(highest, row[k])
    for k in range(len(row)):
        total += np.exp(row[k] - highest)
    total = np.log(total)
    for k in range(len(row)):
        row[k] = (row[k] - highest) - total  # in this order: large scores would cost the digits of their differences
    return highest + total


@kernel(called_by="kernels")
def _log_forward(scores, length, transitions, moved, forward, ahead):
    """`_scaled_forward` on logarithms."""
    labels = scores.shape[1]
    log_z, terms = 0.0, moved[0]  # work space
    for t in range(length):
        for k in range(labels):
            forward[t, k] = scores[t, k]
            if t > 0:
                for j in range(labels):
                    terms[j] = forward[t - 1, j] + transitions[j, k]
                forward[t, k] += _normalise(terms)
        # Normalised at each node: beside large scores, what adds up over nodes would forget the small ones.
        total = _normalise(forward[t])
        log_z += total
        for k in range(labels):
            ahead[t, k] = scores[t, k] - total
    return log_z


@kernel(called_by="kernels")
def _log_passes(scores, length, transitions, moved, forward, ahead, unary):
    """The same on logarithms: ``k`` follows ``j`` with a probability proportional to ``exp(P[j, k] + ahead[k])``."""
    labels = scores.shape[1]
    log_z, terms = _log_forward(scores, length, transitions, moved, forward, ahead), moved[0]
    for k in range(labels):
        unary[length - 1, k] = np.exp(forward[length - 1, k])
    for t in range(length - 2, -1, -1):
        for j in range(labels):
            for k in range(labels):
                terms[k] = transitions[j, k] + ahead[t + 1, k]
            after = _normalise(terms)
            unary[t, j] = forward[t, j] + after
            ahead[t, j] += after
        _normalise(unary[t])  # where scores are huge, rounding may leave all of them far below zero
        for j in range(labels):
            unary[t, j] = np.exp(unary[t, j])
    return log_z


@kernel(fastmath=_FAST)
def log_partition(scores, length, transitions, moved, forward, ahead):
    """The log-partition function of a chain, by the forward pass alone; work space as in `chain_marginals`."""
    width, top = _range_of(scores, length, transitions)
    if width < _RANGE:
        return _scaled_forward(scores, length, transitions, top, moved, forward, ahead)
    return _log_forward(scores, length, transitions, moved, forward, ahead)


@kernel(fastmath=_FAST)
def chain_marginals(scores, length, transitions, moved, forward, ahead, unary, pair, logs=True):
    """The marginals of all nodes and pairs of neighbours; returns the log-partition function, NaN if it needs `logs`.

    Work space: `moved` ``(K, K)``, `forward` and `ahead` ``(T, K)``. Answers: `unary` ``(T, K)``, `pair`
    ``(T - 1, K, K)``.
    """
    labels = scores.shape[1]
    width, top = _range_of(scores, length, transitions)
    if width < _RANGE:
        log_z = _scaled_passes(scores, length, transitions, top, moved, forward, ahead, unary)
        for t in range(length - 1):
            after = ahead[t + 1]
            for j in range(labels):
                share, moved_row, out = forward[t, j], moved[j], pair[t, j]
                for k in range(labels):
                    out[k] = share * moved_row[k] * after[k]
        return log_z
    if logs is None:
        return np.nan
    log_z = _log_passes(scores, length, transitions, moved, forward, ahead, unary)
    for t in range(length - 1):
        for j in range(labels):
            out = pair[t, j]
            for k in range(labels):
                out[k] = transitions[j, k] + ahead[t + 1, k]
            _normalise(out)
            for k in range(labels):
                out[k] = unary[t, j] * np.exp(out[k])
    return log_z


@kernel(called_by="kernels", fastmath=_FAST)
def expected(scores, length, transitions, moved, forward, ahead, unary, counts, logs=True):
    """The marginals of all nodes and the expected transitions `counts` ``(K, K)``; returns the log-partition function.

    Work space, and `logs`, as in `chain_marginals`.
    """
    labels = scores.shape[1]
    width, top = _range_of(scores, length, transitions)
    for j in range(labels):
        for k in range(labels):
            counts[j, k] = 0.0
    if width < _RANGE:
        log_z = _scaled_passes(scores, length, transitions, top, moved, forward, ahead, unary)
        for t in range(length - 1):
            after = ahead[t + 1]
            for j in range(labels):
                share, row = forward[t, j], counts[j]
                for k in range(labels):
                    row[k] += share * after[k]
        for j in range(labels):
            for k in range(labels):
                counts[j, k] *= moved[j, k]
        return log_z
    if logs is None:
        return np.nan
    log_z = _log_passes(scores, length, transitions, moved, forward, ahead, unary)
    for t in range(length - 1):
        for j in range(labels):
            row = moved[j]
            for k in range(labels):
                row[k] = transitions[j, k] + ahead[t + 1, k]
            _normalise(row)
            for k in range(labels):
                counts[j, k] += unary[t, j] * np.exp(row[k])
    return log_z


@kernel(called_by="python")
def expectations(
    weights, attributes, has_bias, indptr, indices, values, offsets, first, last, unary, transitions, log_z, scores,
    forward, ahead, moved, counts, logs,
):  # fmt: skip
    """What the primal objective needs of the sequences ``first:last``; returns the first that it did not do, or `last`.

    Fills `unary` ``(N, K)`` with the marginals of their nodes and `log_z` with their log-partition functions, and adds
    the expected transitions to `transitions` ``(K, K)``. Work space, for sequences of at most ``T`` nodes: `scores`,
    `forward`, `ahead` ``(T, K)``, `moved`, `counts` ``(K, K)``.
    """
    labels = weights.shape[1]
    matrix = weights[weights.shape[0] - labels :]
    for i in range(first, last):
        start, stop = offsets[i], offsets[i + 1]
        chain_scores(weights, attributes, has_bias, indptr, indices, values, start, stop, scores)
        log_z[i] = expected(scores, stop - start, matrix, moved, forward, ahead, unary[start:stop], counts, logs)
        if logs is None and np.isnan(log_z[i]):
            return i
        for j in range(labels):
            for k in range(labels):
                transitions[j, k] += counts[j, k]
    return last


@kernel(called_by="python")
def all_marginals(
    weights, attributes, has_bias, indptr, indices, values, offsets, first, last, unary, pair, scores, forward, ahead,
    moved, found,
):  # fmt: skip
    """Fills `unary` ``(N, K)`` and `pair` ``(N - n, K, K)`` with the marginals of the sequences ``first:last``.

    Work space, for sequences of at most ``T`` nodes: `scores`, `forward`, `ahead` ``(T, K)``, `moved` ``(K, K)``,
    `found` ``(T, K, K)``. The pairs of sequence ``i`` begin at ``offsets[i] - i``, and may be float32.
    """
    labels = weights.shape[1]
    matrix = weights[weights.shape[0] - labels :]
    for i in range(first, last):
        start, stop = offsets[i], offsets[i + 1]
        length = stop - start
        chain_scores(weights, attributes, has_bias, indptr, indices, values, start, stop, scores)
        chain_marginals(scores, length, matrix, moved, forward, ahead, unary[start:stop], found)
        for t in range(length - 1):
            for j in range(labels):
                for k in range(labels):
                    pair[start - i + t, j, k] = found[t, j, k]


@kernel(called_by="python")
def distinct_attributes(indptr, indices, offsets, starts, distinct, place, seen_by, seen_at):
    """Fills in the attributes of each sequence, each named once, in order of occurrence.

    Those of sequence ``i`` are ``distinct[starts[i]:starts[i + 1]]``, and `place` says which of them each value is of.
    Work space, one entry for each attribute: `seen_by`, which is -1, and `seen_at`.
    """
    n = len(offsets) - 1
    count = 0
    for i in range(n):
        starts[i] = count
        for e in range(indptr[offsets[i]], indptr[offsets[i + 1]]):
            a = indices[e]
            if seen_by[a] != i:
                seen_by[a], seen_at[a] = i, count
                distinct[count] = a
                count += 1
            place[e] = seen_at[a] - starts[i]
    starts[n] = count


@kernel(called_by="kernels", fastmath=_FAST)
def collect(indptr, values, local, first, last, has_bias, nodes, counts, rows, biases):
    """The features of one sequence, its nodes weighted by `nodes` and its transitions by `counts`; their squared norm.

    They are gathered in `rows`, one for each of its attributes, and `biases`.
    """
    labels = nodes.shape[1]
    for r in range(len(rows)):
        for k in range(labels):
            rows[r, k] = 0.0
    for t in range(first, last):
        source = nodes[t - first]
        for e in range(indptr[t], indptr[t + 1]):
            target, value = rows[local[e]], values[e]
            for k in range(labels):
                target[k] += value * source[k]
    norm = 0.0
    for r in range(len(rows)):
        for k in range(labels):
            norm += rows[r, k] * rows[r, k]
    for b in range(3):
        for k in range(labels):
            biases[b, k] = 0.0
    if has_bias:
        for t in range(last - first):
            for k in range(labels):
                biases[0, k] += nodes[t, k]
        for k in range(labels):
            biases[1, k], biases[2, k] = nodes[0, k], nodes[last - first - 1, k]
        for b in range(3):
            for k in range(labels):
                norm += biases[b, k] * biases[b, k]
    for j in range(labels):
        for k in range(labels):
            norm += counts[j, k] * counts[j, k]
    return norm


@kernel(called_by="kernels", fastmath=_FAST)
def inner(first, second):
    """The sum of products of two matrices, over the rows of the first."""
    total = 0.0
    for t in range(first.shape[0]):
        for k in range(first.shape[1]):
            total += first[t, k] * second[t, k]
    return total


@kernel(called_by="python", fastmath=_FAST)
def gather(indptr, indices, values, rows, first, last, out):
    """``out[a]``: the sum of ``values[e] rows[indices[e]]`` over row ``a`` of a CSR matrix, rows ``first:last``.

    With the matrix that holds the tokens of each attribute, it gathers what the tokens say into the attributes: every
    row of the answer is written once, by one thread, in a fixed order.
    """
    labels = rows.shape[1]
    for a in range(first, last):
        target = out[a]
        for k in range(labels):
            target[k] = 0.0
        for e in range(indptr[a], indptr[a + 1]):
            source, value = rows[indices[e]], values[e]
            for k in range(labels):
                target[k] += value * source[k]


@kernel(called_by="python", fastmath=_FAST)
def chain_distribution(unary, pair, offsets, first, last, nodes, transitions, entropy):
    """A distribution over the labellings of each of the sequences ``first:last``, whatever numbers are given.

    It is the chain with the first marginal and the conditional probabilities of `pair`; where these are the marginals
    of a chain, that chain. Fills its marginals `nodes` ``(N, K)`` and `entropy` ``(n,)``, by the chain rule, of whose
    terms none is negative, and adds the expected transitions to `transitions`.
    """
    k_labels = unary.shape[1]
    for i in range(first, last):
        start, stop = offsets[i], offsets[i + 1]
        now = nodes[start]
        total = 0.0
        for j in range(k_labels):
            now[j] = unary[start, j]
            if stop - start > 1:
                now[j] = 0.0
                for k in range(k_labels):
                    now[j] += pair[start - i, j, k]
            total += now[j]
        value = 0.0
        for j in range(k_labels):
            now[j] /= total
            value -= now[j] * fast_log(now[j])
        for t in range(start, stop - 1):
            now, following = nodes[t], nodes[t + 1]
            for k in range(k_labels):
                following[k] = 0.0
            for j in range(k_labels):
                row, target, share = pair[t - i, j], transitions[j], now[j]
                total = 0.0
                for k in range(k_labels):
                    total += row[k]
                inverse = 1.0 / total if total > 0.0 else 0.0
                rest = 0.0 if total > 0.0 else 1.0 / k_labels  # nothing is known: uniform
                spread = 0.0
                for k in range(k_labels):
                    conditional = row[k] * inverse + rest
                    spread -= conditional * fast_log(conditional)
                    following[k] += share * conditional
                    target[k] += share * conditional
                value += share * spread
        entropy[i] = value


@kernel(called_by="python")
def subtract_gold(pair, offsets, labels, first, last, own, out):
    """Adds the transitions in the labels minus the expected ones of the sequences ``first:last`` to `out`.

    The differences of one sequence are added up in `own` first: they are small where the two agree.
    """
    k = out.shape[0]
    for i in range(first, last):
        for a in range(k):
            for b in range(k):
                own[a, b] = 0.0
        for t in range(offsets[i], offsets[i + 1] - 1):
            own[labels[t], labels[t + 1]] += 1.0
            matrix = pair[t - i]
            for a in range(k):
                for b in range(k):
                    own[a, b] -= matrix[a, b]
        for a in range(k):
            for b in range(k):
                out[a, b] += own[a, b]
