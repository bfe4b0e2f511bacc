"""Expectations of the logistic loss under normal scores, row by row."""

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log

__all__ = ["logistic_expectations"]


@kernel(fastmath={"reassoc", "contract", "nsz"})
def logistic_expectations(means, scales, levels, nodes, weights, sizes, values, firsts, seconds):
    """``E log(1 + exp(-s))`` and the expectations of its first two derivatives in ``s ~ N(mean, scale^2)``.

    Row ``i`` uses the rule of ``levels[i]``: the first ``sizes[level]`` of its nodes and weights.
    """
    for i in range(means.size):
        level = levels[i]
        mean, scale = means[i], scales[i]
        value, first, second = 0.0, 0.0, 0.0
        for k in range(sizes[level]):
            s = mean + scale * nodes[level, k]
            small = fast_exp(-abs(s))
            share = 1.0 / (1.0 + small)
            other = small * share
            value += weights[level, k] * (fast_log(1.0 + small) + max(-s, 0.0))
            first += weights[level, k] * (other if s > 0.0 else share)
            second += weights[level, k] * (share * other)
        values[i], firsts[i], seconds[i] = value, -first, second
