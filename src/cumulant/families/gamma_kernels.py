"""Sums over positive numbers at the speed of memory: the logarithm of a product instead of a sum of logarithms."""

import numpy as np

from cumulant.kernels import kernel

__all__ = ["sums_of_excess_and_log"]

_BLOCK = 512  # significands lie between sqrt(1/2) and sqrt(2): the product of a block neither overflows nor vanishes
_SIGNIFICAND = np.int64((1 << 52) - 1)
_SQRT_HALF = np.float64(np.sqrt(0.5)).view(np.int64)
_LOG_2 = np.log(2.0)


@kernel(fastmath={"reassoc", "contract"})
def _block(x, first, last, scale):
    """The sums of ``y - 1`` and of the exponents of ``y = x scale``, the product of its significands, and whether
    every ``y`` is positive, finite and a factor of two from the ends of the floating-point range.
    """
    excess, product, exponents, signs = 0.0, 1.0, np.int64(0), np.int64(0)
    for i in range(first, last):
        y = x[i] * scale
        excess += y - 1.0
        bits = np.float64(y).view(np.int64) - _SQRT_HALF
        exponent = bits >> 52  # a sign of y, zero, infinity and NaN end up outside of what is allowed here
        signs |= (exponent + 1021) | (1023 - exponent)
        exponents += exponent
        product *= np.int64((bits & _SIGNIFICAND) + _SQRT_HALF).view(np.float64)
    return excess, exponents, product, signs >= 0


@kernel
def sums_of_excess_and_log(x, first, last, scale):
    """``(sum of y - 1, sum of log y, fine)`` over ``y = scale x[first:last]``; not `fine` where some ``y`` is not
    positive, finite and away from the ends of the floating-point range.
    """
    excess, logs, fine = 0.0, 0.0, True
    for start in range(first, last, _BLOCK):
        part, exponents, product, all_fine = _block(x, start, min(start + _BLOCK, last), scale)
        excess += part
        logs += exponents * _LOG_2 + np.log(product)
        fine = fine and all_fine
    return excess, logs, fine
