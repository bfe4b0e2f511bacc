"""Expectations of the logistic loss under normal scores, row by row."""

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log

_DENSITY = 0.3989422804014327  # 1 / sqrt(2 pi)


@kernel(called_by="python", fastmath={"reassoc", "contract", "nsz"})
def logistic_expectations(means, scales, steps, halves, values, firsts, seconds):
    """``E log(1 + exp(-s))`` and the expectations of its first two derivatives in ``s ~ N(mean, scale^2)``.

    By the trapezoidal rule with ``2 halves[i] + 1`` nodes, ``steps[i]`` standard deviations apart.
    """
    for i in range(means.size):
        h, mean = steps[i], means[i]
        value, first, second = 0.0, 0.0, 0.0
        for k in range(-halves[i], halves[i] + 1):
            u = h * k
            s = mean + scales[i] * u
            weight = fast_exp(-0.5 * u * u)
            small = fast_exp(-abs(s))
            share = 1.0 / (1.0 + small)
            other = small * share
            value += weight * (fast_log(1.0 + small) + max(-s, 0.0))
            first += weight * (other if s > 0.0 else share)
            second += weight * (share * other)
        total = h * _DENSITY
        values[i], firsts[i], seconds[i] = total * value, -total * first, total * second
