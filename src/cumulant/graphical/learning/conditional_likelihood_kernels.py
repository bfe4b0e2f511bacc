"""Compiled conditional likelihoods: of blocks of variables given the rest, for tables of any order."""

import numpy as np

from cumulant.graphical.samplers.gibbs_kernels import largest
from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp


@kernel(called_by="python")
def conditional_likelihood(states, weights, t, blocks, gradient):
    """``-sum_d weight_d sum_b log p(x_b | rest)`` by the tables of the `TableArrays` `t`, for `Blocks`; its derivative
    by the tables is added to `gradient`.
    """
    scores, value = np.empty(largest(blocks.sizes)), 0.0
    entry, starts, factors, offsets = np.empty(t.origin.size, np.int64), blocks.starts, blocks.factors, blocks.offsets
    for d in range(states.shape[0]):
        x, weight = states[d], weights[d]
        for f in range(t.origin.size):
            at = t.origin[f]
            for k in range(t.scope_starts[f], t.scope_starts[f + 1]):
                at += t.scope_strides[k] * x[t.scopes[k]]
            entry[f] = at
        for b in range(blocks.sizes.size):
            size, own = blocks.sizes[b], 0
            for k in range(starts[b], starts[b + 1]):
                own += blocks.strides[k] * x[blocks.members[k]]
            for s in range(size):
                scores[s] = 0.0
            for a in range(blocks.factor_starts[b], blocks.factor_starts[b + 1]):
                first = blocks.offset_starts[a]
                base = entry[factors[a]] - offsets[first + own]
                for s in range(size):
                    scores[s] += t.tables[base + offsets[first + s]]
            top, mine, total = scores[0], scores[own], 0.0
            for s in range(1, size):
                top = max(top, scores[s])
            for s in range(size):
                scores[s] = fast_exp(scores[s] - top)
                total += scores[s]
            value += weight * (np.log(total) + top - mine)
            for s in range(size):
                scores[s] *= weight / total
            scores[own] -= weight
            for a in range(blocks.factor_starts[b], blocks.factor_starts[b + 1]):
                first = blocks.offset_starts[a]
                base = entry[factors[a]] - offsets[first + own]
                for s in range(size):
                    gradient[base + offsets[first + s]] += scores[s]
    return value
