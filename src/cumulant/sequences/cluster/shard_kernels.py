"""The marginals of many chains at given weights, kept for every node and pair."""

from cumulant.kernels import kernel
from cumulant.sequences.chain.chain_kernels import chain_marginals, chain_scores

__all__ = ["all_marginals"]


@kernel
def all_marginals(
    weights, attributes, has_bias, indptr, indices, values, offsets, first, last, unary, pair, scores, forward, ahead,
    moved, found,
):  # fmt: skip
    """Fills `unary` ``(N, K)`` and `pair` ``(N - n, K, K)`` for the sequences ``first:last``.

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
