"""Compiled conditional likelihoods: of blocks of variables given the rest, for tables of any order."""

import numpy as np

from cumulant.graphical.samplers.gibbs_kernels import largest
from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp

__all__ = ["conditional_likelihood"]


@kernel
def conditional_likelihood(
    states,
    weights,
    scope_starts,
    scopes,
    scope_strides,
    tables,
    origin,
    block_starts,
    members,
    member_strides,
    sizes,
    factor_starts,
    factors,
    offset_starts,
    offsets,
    gradient,
):
    """``-sum_d weight_d sum_b log p(x_b | rest)``; its derivative by the tables is added to `gradient`.

    The joint states of block ``b`` are numbered ``sum member_stride * x``, of which there are ``sizes[b]``. Its factors
    are ``factors[factor_starts[b] : factor_starts[b + 1]]``, and ``offsets[offset_starts[a] + s]`` is how far the joint
    state ``s`` is from the joint state 0 in the table of the ``a``-th of them.
    """
    entry, scores, value = np.empty(origin.size, np.int64), np.empty(largest(sizes)), 0.0
    for d in range(states.shape[0]):
        x, weight = states[d], weights[d]
        for f in range(origin.size):
            at = origin[f]
            for k in range(scope_starts[f], scope_starts[f + 1]):
                at += scope_strides[k] * x[scopes[k]]
            entry[f] = at
        for b in range(sizes.size):
            size, own = sizes[b], 0
            for k in range(block_starts[b], block_starts[b + 1]):
                own += member_strides[k] * x[members[k]]
            for s in range(size):
                scores[s] = 0.0
            for a in range(factor_starts[b], factor_starts[b + 1]):
                first = offset_starts[a]
                base = entry[factors[a]] - offsets[first + own]
                for s in range(size):
                    scores[s] += tables[base + offsets[first + s]]
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
            for a in range(factor_starts[b], factor_starts[b + 1]):
                first = offset_starts[a]
                base = entry[factors[a]] - offsets[first + own]
                for s in range(size):
                    gradient[base + offsets[first + s]] += scores[s]
    return value
