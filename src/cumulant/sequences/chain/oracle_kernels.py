"""Compiled loops of the oracles: the best labellings of a chain in order, and many samples of one."""

import numpy as np

from cumulant.kernels import kernel
from cumulant.sequences.chain.labelling_kernels import sample_labels

__all__ = ["best_lists", "sample_many"]


@kernel
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


@kernel
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


@kernel
def sample_many(nodes, pairs, uniforms, out):
    """A labelling for each row of `uniforms`, drawn from the chain with these marginals."""
    for m in range(uniforms.shape[0]):
        sample_labels(nodes, pairs, nodes.shape[0], uniforms[m], out[m])
