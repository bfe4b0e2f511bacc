"""Compiled loops over single labellings of chains: the best, the given, draws. For weights see `chain_kernels`."""

import numpy as np

from cumulant.kernels import kernel
from cumulant.sequences.chain.chain_kernels import chain_scores


@kernel
def best_labels(scores, length, transitions, value, origin, labels_out):
    """The labelling of highest score (Viterbi), and that score. Work space `value` ``(2, K)``, `origin` ``(T, K)``."""
    labels = scores.shape[1]
    for k in range(labels):
        value[0, k] = scores[0, k]
    for t in range(1, length):
        now, before = value[t % 2], value[(t - 1) % 2]
        for k in range(labels):
            now[k] = -np.inf
        back = origin[t]
        for j in range(labels):
            reached, row = before[j], transitions[j]
            for k in range(labels):
                candidate = reached + row[k]
                better = candidate > now[k]
                now[k] = candidate if better else now[k]
                back[k] = j if better else back[k]
        for k in range(labels):
            now[k] += scores[t, k]
    last = value[(length - 1) % 2]
    best = 0
    for k in range(1, labels):
        best = k if last[k] > last[best] else best
    score = last[best]
    for t in range(length - 1, -1, -1):
        labels_out[t] = best
        best = origin[t, best] if t else best
    return score


@kernel(called_by="python")
def decode(weights, attributes, has_bias, indptr, indices, values, offsets, first, last, out, scores, value, origin):
    """The best labels of the sequences ``first:last``. Work: `scores`, `origin` ``(T, K)``, `value` ``(2, K)``."""
    matrix = weights[weights.shape[0] - weights.shape[1] :]
    for i in range(first, last):
        start, stop = offsets[i], offsets[i + 1]
        chain_scores(weights, attributes, has_bias, indptr, indices, values, start, stop, scores)
        best_labels(scores, stop - start, matrix, value, origin, out[start:stop])


@kernel(called_by="python")
def label_scores(weights, attributes, has_bias, indptr, indices, values, offsets, labels, out):
    """``w . F(x_i, y_i)`` of every sequence."""
    first_transition = weights.shape[0] - weights.shape[1]
    for i in range(len(offsets) - 1):
        total = 0.0
        for t in range(offsets[i], offsets[i + 1]):
            label = labels[t]
            for e in range(indptr[t], indptr[t + 1]):
                total += values[e] * weights[indices[e], label]
            if has_bias:
                total += weights[attributes, label]
            if t > offsets[i]:
                total += weights[first_transition + labels[t - 1], label]
        if has_bias:
            total += weights[attributes + 1, labels[offsets[i]]] + weights[attributes + 2, labels[offsets[i + 1] - 1]]
        out[i] = total


@kernel
def sample_labels(forward_unary, pair, length, uniforms, labels_out):
    """One labelling drawn from the chain with these marginals, by inversion node after node."""
    labels = forward_unary.shape[1]
    total, drawn = 0.0, 0
    for k in range(labels):
        if forward_unary[0, k] > 0.0:
            drawn = k
        total += forward_unary[0, k]
        if uniforms[0] < total:
            break
    labels_out[0] = drawn
    for t in range(1, length):
        row = pair[t - 1, drawn]
        target, total, last_possible = uniforms[t] * np.sum(row), 0.0, drawn
        drawn = -1
        for k in range(labels):
            if row[k] > 0.0:
                last_possible = k
            total += row[k]
            if target < total:
                drawn = k
                break
        if drawn < 0:
            drawn = last_possible
        labels_out[t] = drawn


@kernel(called_by="kernels")
def _merge(scores, counts, added, value, label, rank):
    """The largest of several descending lists, merged: list ``j`` is ``scores[j, :counts[j]]``, raised by ``added[j]``.

    Writes values, and the list and place each came from; returns how many there are. Minus infinity is left out.
    """
    lists = scores.shape[0]
    heads = np.zeros(lists, dtype=np.int64)
    found = 0
    while found < value.size:
        best, chosen = -np.inf, -1
        for j in range(lists):
            if heads[j] < counts[j]:
                candidate = scores[j, heads[j]] + added[j]
                if candidate > best:
                    best, chosen = candidate, j
        if chosen < 0:
            break
        value[found], label[found], rank[found] = best, chosen, heads[chosen]
        heads[chosen] += 1
        found += 1
    return found


@kernel(called_by="python")
def best_lists(scores, transitions, step, size):
    """The `size` labellings of highest score, best first (list Viterbi); fewer if fewer are possible.

    ``transitions[step * t]`` are the scores of the pair ``(t, t + 1)``: `step` is 0 where one matrix serves all pairs.
    Every node keeps, for each label, the best beginnings that end in it; those of the next node are a merge of these
    lists, so that no two labellings are the same. Time ``O(T K^2 size)``, memory ``O(T K size)``.
    """
    length, labels = scores.shape
    value = np.empty((2, labels, size))
    counts = np.zeros((2, labels), dtype=np.int64)
    origin = np.empty((length, labels, size), dtype=np.int32)
    place = np.empty((length, labels, size), dtype=np.int32)
    for k in range(labels):
        if scores[0, k] > -np.inf:
            value[0, k, 0], counts[0, k] = scores[0, k], 1
    for t in range(1, length):
        now, before = t % 2, (t - 1) % 2
        for k in range(labels):
            found = 0
            if scores[t, k] > -np.inf:
                added = transitions[step * (t - 1), :, k]
                found = _merge(value[before], counts[before], added, value[now, k], origin[t, k], place[t, k])
                for m in range(found):
                    value[now, k, m] += scores[t, k]
            counts[now, k] = found
    last = (length - 1) % 2
    best = np.empty(size)
    final, where = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
    total = _merge(value[last], counts[last], np.zeros(labels), best, final, where)
    out = np.empty((total, length), dtype=np.int64)
    for m in range(total):
        k, r = final[m], where[m]
        for t in range(length - 1, 0, -1):
            out[m, t] = k
            k, r = origin[t, k, r], place[t, k, r]
        out[m, 0] = k
    return out, best[:total]


@kernel(called_by="python")
def sample_many(nodes, pairs, uniforms, out):
    """A labelling for each row of `uniforms`, drawn from the chain with these marginals."""
    for m in range(uniforms.shape[0]):
        sample_labels(nodes, pairs, nodes.shape[0], uniforms[m], out[m])
