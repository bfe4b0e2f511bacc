"""Sums over positive numbers at the speed of memory: the logarithm of a product instead of a sum of logarithms."""

import numpy as np

from cumulant.kernels import kernel

_BLOCK = 512  # significands lie between sqrt(1/2) and sqrt(2): the product of a block neither overflows nor vanishes
_SIGNIFICAND = np.int64((1 << 52) - 1)
_SQRT_HALF = np.float64(np.sqrt(0.5)).view(np.int64)
_LOG_2 = np.log(2.0)
_QUARTER = _BLOCK // 4
# The product of four numbers between these neither overflows nor vanishes.
_LEAST = np.float64(2.0**-250).view(np.int64)
_MOST = np.float64(2.0**250).view(np.int64)


@kernel(called_by="kernels", fastmath={"reassoc", "contract"})
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


@kernel(inline=True)
def _outside(y):
    """A negative number where `y` is not between ``2^-250`` and ``2^250``, or is not a number."""
    bits = np.float64(y).view(np.int64)
    return (bits - _LEAST) | (_MOST - bits)


@kernel(called_by="kernels", fastmath={"reassoc", "contract"})
def _moderate_block(x, first, scale):
    """`_block` for a whole block, four numbers at a time, if all of them lie between ``2^-250`` and ``2^250``."""
    excess, product, exponents, signs = 0.0, 1.0, np.int64(0), np.int64(0)
    one, two = x[first : first + _QUARTER], x[first + _QUARTER : first + 2 * _QUARTER]
    three, four = x[first + 2 * _QUARTER : first + 3 * _QUARTER], x[first + 3 * _QUARTER : first + _BLOCK]
    for i in range(_QUARTER):
        a, b, c, d = one[i] * scale, two[i] * scale, three[i] * scale, four[i] * scale
        excess += (a - 1.0) + (b - 1.0) + (c - 1.0) + (d - 1.0)
        signs |= _outside(a) | _outside(b) | _outside(c) | _outside(d)
        bits = np.float64((a * b) * (c * d)).view(np.int64) - _SQRT_HALF
        exponents += bits >> 52
        product *= np.int64((bits & _SIGNIFICAND) + _SQRT_HALF).view(np.float64)
    return excess, exponents, product, signs >= 0


@kernel(called_by="python")
def sums_of_excess_and_log(x, first, last, scale):
    """``(sum of y - 1, sum of log y, fine)`` over ``y = scale x[first:last]``; not `fine` where some ``y`` is not
    positive, finite and away from the ends of the floating-point range.
    """
    excess, logs, fine = 0.0, 0.0, True
    for start in range(first, last, _BLOCK):
        last_of_block = min(start + _BLOCK, last)
        if last_of_block - start == _BLOCK:
            part, exponents, product, all_fine = _moderate_block(x, start, scale)
        else:
            part, exponents, product, all_fine = 0.0, np.int64(0), 1.0, False
        if not all_fine:
            part, exponents, product, all_fine = _block(x, start, last_of_block, scale)
        excess += part
        logs += exponents * _LOG_2 + np.log(product)
        fine = fine and all_fine
    return excess, logs, fine
