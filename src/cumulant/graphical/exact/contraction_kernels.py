"""Sums of products of tables: the one loop behind elimination, its backward pass and sampling.

Every table lies in one flat array. A contraction has axes, of which each table has some: the stride of a table along an
axis that it has not is zero. Axes along which all tables advance alike are taken as one, the longest of these is the
row that is worked on by vector instructions, and what does not change along a row is one number.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log

MAX_AXES, MAX_TERMS = 64, 12
# Numbers that kernels hand to kernels are not literals: those would be compiled for each one.
_ONE, _TWO = np.int64(1), np.int64(2)
_SHORT = np.int64(32)  # entries of an axis of logarithms at most, so that several make a block
_ROW = np.int64(1024)  # entries of a block of logarithms at most: what is read twice stays in the first cache
_LONG = 32  # entries from which a row is worth its overhead; below, blocks of several axes are read through an index
_BLOCK = np.int64(512)  # entries of such a block, and of a row of several axes, at most
_NOTHING = -1.7976931348623157e308  # the lowest number: stands for log 0 where a difference must not be NaN


def work_space() -> tuple[np.ndarray, ...]:
    """Arrays for one contraction at a time, in the order in which `contract` and `contract_log` name them."""
    axes, place, digits, turning, moving, along, fixed = np.empty((7, MAX_AXES), np.int64)
    still, straight = np.empty((2, MAX_TERMS + 1), np.bool_)
    steps = np.empty((MAX_TERMS + 1, MAX_AXES), np.int64)
    index, buffer = np.empty((MAX_TERMS + 1, _ROW), np.uint32), np.empty(_BLOCK)
    return axes, steps, place, digits, turning, moving, along, fixed, still, straight, index, buffer


def log_space() -> np.ndarray:
    """What `contract_log` needs beside `work_space`: rows of scores, of the largest, and of sums relative to these."""
    return np.empty((3, _ROW))


@kernel(called_by="kernels")
def _arrange(n_axes, sizes, n_terms, strides, longest, out_sizes, out_strides):
    """Fuse axes up to `longest` entries; rows of `strides` are the terms and, last, the target.

    Returns the number of axes and of the row.
    """
    n = 0
    # Axes of the target first, those that are summed after them: each row of the target is finished before the next.
    # They are fused from the last to the first, so that a row is near in memory, and turned round at the end.
    for summed in range(1, -1, -1):
        begin = n
        for a in range(n_axes - 1, -1, -1):
            if sizes[a] == 1 or (strides[n_terms, a] == 0) != (summed == 1):
                continue
            fits = n > begin and out_sizes[n - 1] * sizes[a] <= longest
            if fits:
                for t in range(n_terms + 1):
                    if strides[t, a] != out_strides[t, n - 1] * out_sizes[n - 1]:
                        fits = False
                        break
            if fits:
                out_sizes[n - 1] *= sizes[a]
            else:
                out_sizes[n] = sizes[a]
                for t in range(n_terms + 1):
                    out_strides[t, n] = strides[t, a]
                n += 1
    for a in range(n // 2):
        b = n - 1 - a
        out_sizes[a], out_sizes[b] = out_sizes[b], out_sizes[a]
        for t in range(n_terms + 1):
            out_strides[t, a], out_strides[t, b] = out_strides[t, b], out_strides[t, a]
    row = n - 1
    for a in range(n - 2, -1, -1):
        if out_sizes[a] > out_sizes[row]:
            row = a
    return n, row


@kernel(called_by="kernels")
def _advance(n, axes, turning, kind, n_tables, steps, digits, place):
    """The next entry of the axes whose `turning` is `kind`, the last fastest: moves the places in all tables; False
    after the last.
    """
    for a in range(n - 1, -1, -1):
        if turning[a] == kind:
            digits[a] += 1
            if digits[a] < axes[a]:
                for t in range(n_tables):
                    place[t] += steps[t, a]
                return True
            for t in range(n_tables):
                place[t] -= steps[t, a] * (axes[a] - 1)
            digits[a] = 0
    return False


@kernel(called_by="kernels")
def _index(n, axes, n_terms, steps, turning, index, still, straight):
    """Where the entries of the block of axes that do not turn are in each table; which tables stand `still` there, and
    in which the entries follow one another (`straight`), so that they need no index.
    """
    for t in range(n_terms + 1):
        still[t], straight[t] = True, True
        index[t, 0] = 0
    size = 1
    for a in range(n - 1, -1, -1):
        if turning[a] == 0:
            for t in range(n_terms + 1):
                still[t] = still[t] and steps[t, a] == 0
                straight[t] = straight[t] and steps[t, a] == size
                for digit in range(1, axes[a]):
                    for j in range(size):
                        index[t, digit * size + j] = index[t, j] + digit * steps[t, a]
            size *= axes[a]


@kernel(inline=True)
def contract(values, n_axes, sizes, n_terms, bases, strides, target, space):
    """``values[target + .] += sum prod_t values[bases[t] + .]``; row `n_terms` of `strides` is the target's."""
    axes, steps, place, digits, turning, moving, along, fixed, still, straight, index, buffer = space
    n, row = _arrange(n_axes, sizes, n_terms, strides, _BLOCK, axes, steps)
    length, total, n_moving = _ONE, 1, 0
    if n > 0:
        length = axes[row]
    for a in range(n):
        total *= axes[a]
        digits[a], turning[a] = 0, 1
    for t in range(n_terms):
        place[t] = bases[t]
        if n > 0 and steps[t, row] != 0:
            n_moving += 1
    place[n_terms] = target
    if total >= 4 * _LONG and (length < _LONG or (n_moving > 2 and length <= _BLOCK)):
        _contract_blocks(
            values, n, axes, n_terms, steps, place, digits, turning, moving, fixed, still, straight, index, buffer
        )
    else:
        _contract_rows(values, n, row, length, axes, n_terms, steps, place, digits, turning, moving, along)


@kernel(called_by="kernels", fastmath={"reassoc", "contract", "nsz"})
def _contract_rows(values, n, row, length, axes, n_terms, steps, place, digits, turning, moving, along):
    """Row by row: rows that one or two tables move along have loops of their own."""
    n_moving, stride = 0, 0
    for t in range(n_terms):
        if n > 0 and steps[t, row] != 0:
            moving[n_moving], along[n_moving] = t, steps[t, row]
            n_moving += 1
    if n > 0:
        turning[row], stride = 0, steps[n_terms, row]
    by_1, by_2 = along[0], along[1]
    contiguous = stride <= 1 and (n_moving == 1 or n_moving == 2) and by_1 == 1 and (n_moving == 1 or by_2 == 1)
    while True:
        factor = 1.0
        for t in range(n_terms):
            if n == 0 or steps[t, row] == 0:
                factor *= values[place[t]]
        if factor != 0.0:
            to, total = place[n_terms], 0.0
            if n_moving == 0 and stride == 0:
                total = length
            elif n_moving == 0 or n_moving > 2:
                for j in range(length):
                    product = factor
                    for m in range(n_moving):
                        product *= values[np.uint64(place[moving[m]] + j * along[m])]
                    values[np.uint64(to + j * stride)] += product
            elif n_moving == 1:
                a = place[moving[0]]
                if contiguous:
                    one, out = values[a : a + length], values[to : to + length]
                    if stride == 0:
                        for j in range(length):
                            total += one[j]
                    else:
                        for j in range(length):
                            out[j] += factor * one[j]
                elif stride == 0:
                    for j in range(length):
                        total += values[np.uint64(a + j * by_1)]
                else:
                    for j in range(length):
                        values[np.uint64(to + j * stride)] += factor * values[np.uint64(a + j * by_1)]
            else:
                a, b = place[moving[0]], place[moving[1]]
                if contiguous:
                    one, two, out = values[a : a + length], values[b : b + length], values[to : to + length]
                    if stride == 0:
                        for j in range(length):
                            total += one[j] * two[j]
                    else:
                        for j in range(length):
                            out[j] += factor * one[j] * two[j]
                elif stride == 0:
                    for j in range(length):
                        total += values[np.uint64(a + j * by_1)] * values[np.uint64(b + j * by_2)]
                else:
                    for j in range(length):
                        product = values[np.uint64(a + j * by_1)] * values[np.uint64(b + j * by_2)]
                        values[np.uint64(to + j * stride)] += factor * product
            if stride == 0 and n_moving <= 2:
                values[to] += factor * total
        if not _advance(n, axes, turning, _ONE, n_terms + 1, steps, digits, place):
            return


@kernel(called_by="kernels", fastmath={"reassoc", "contract", "nsz"})
def _contract_blocks(
    values, n, axes, n_terms, steps, place, digits, turning, moving, fixed, still, straight, index, buffer
):
    """The same where no row is long: the last axes of the target make a block, and an index says where its entries are
    in each table.
    """
    n_target, size = 0, _ONE
    while n_target < n and steps[n_terms, n_target] != 0:
        n_target += 1
    for a in range(n_target - 1, -1, -1):
        if size * axes[a] > _BLOCK:
            break
        turning[a] = 0
        size *= axes[a]
    for a in range(n - 1, n_target - 1, -1):  # a small target: sum inside the block too
        if size >= 64 or size * axes[a] > _BLOCK:
            break
        turning[a] = 0
        size *= axes[a]
    _index(n, axes, n_terms, steps, turning, index, still, straight)
    n_moving, n_fixed = 0, 0
    for t in range(n_terms):
        if still[t]:
            fixed[n_fixed] = t
            n_fixed += 1
        else:
            moving[n_moving] = t
            n_moving += 1
    while True:
        factor = 1.0
        for k in range(n_fixed):
            factor *= values[place[fixed[k]]]
        if factor != 0.0:
            if n_moving == 0:
                for j in range(size):
                    buffer[j] = factor
            for m in range(0, n_moving, 2):
                t = moving[m]
                one, where = values[place[t] :], index[t]
                if m + 1 < n_moving:
                    u = moving[m + 1]
                    two, there = values[place[u] :], index[u]
                    if m == 0:
                        for j in range(size):
                            buffer[j] = factor * one[where[j]] * two[there[j]]
                    else:
                        for j in range(size):
                            buffer[j] *= one[where[j]] * two[there[j]]
                elif m == 0:
                    for j in range(size):
                        buffer[j] = factor * one[where[j]]
                else:
                    for j in range(size):
                        buffer[j] *= one[where[j]]
            out, where = values[place[n_terms] :], index[n_terms]
            if straight[n_terms]:
                for j in range(size):
                    out[j] += buffer[j]
            else:
                for j in range(size):
                    out[where[j]] += buffer[j]
        if not _advance(n, axes, turning, _ONE, n_terms + 1, steps, digits, place):
            return


@kernel(called_by="kernels", fastmath={"contract", "nsz"})
def contract_log(values, n_axes, sizes, n_terms, bases, strides, target, best, space, logs):
    """The same for logarithms: ``log sum exp sum``, or ``max sum`` where `best`; -inf is the logarithm of zero.

    A block of entries is worked on at once: an index says where they are in each table. Of every entry of the target
    the largest term so far and the sum of all relative to it are kept, so that each term costs one exponential and each
    entry of the target one logarithm, and no product can underflow.
    """
    axes, steps, place, digits, turning, _, _, _, still, straight, index, _ = space
    score, top, total = logs[0], logs[1], logs[2]
    n, _ = _arrange(n_axes, sizes, n_terms, strides, _SHORT, axes, steps)
    n_target = 0
    while n_target < n and steps[n_terms, n_target] != 0:
        n_target += 1
    for a in range(n):  # what the block does not hold turns: axes of the target (1), and those that are summed (2)
        digits[a], turning[a] = 0, 1 if a < n_target else 2
    width, depth = 1, 1
    for a in range(n_target - 1, -1, -1):
        if width * axes[a] > _ROW:
            break
        turning[a] = 0
        width *= axes[a]
    if width < 8:  # a small target: the block runs along what is summed
        for a in range(n - 1, n_target - 1, -1):
            if width * depth * axes[a] > _ROW:
                break
            turning[a] = 0
            depth *= axes[a]
    _index(n, axes, n_terms, steps, turning, index, still, straight)
    for t in range(n_terms):
        place[t] = bases[t]
    place[n_terms] = target
    while True:
        out, to = values[place[n_terms] :], index[n_terms]
        first = True
        for i in range(width):
            first = first and not out[to[i * depth]] > _NOTHING
        for i in range(width):
            before = out[to[i * depth]]
            top[i] = before if before > _NOTHING else _NOTHING
            total[i] = 1.0 if before > _NOTHING else 0.0
        while True:
            constant = 0.0
            for t in range(n_terms):
                if still[t]:
                    constant += values[place[t]]
            for j in range(width * depth):
                score[j] = constant
            for t in range(n_terms):
                if still[t]:
                    continue
                table, where = values[place[t] :], index[t]
                if straight[t]:
                    for j in range(width * depth):
                        score[j] += table[j]
                else:
                    for j in range(width * depth):
                        score[j] += table[where[j]]
            if best:
                for i in range(width):
                    for j in range(i * depth, (i + 1) * depth):
                        top[i] = max(top[i], score[j])
            elif depth == 1 and first:  # nothing is there yet
                for i in range(width):
                    top[i] = max(score[i], _NOTHING)
                    total[i] = 1.0 if score[i] > _NOTHING else 0.0
            elif depth == 1:
                for i in range(width):
                    difference = score[i] - top[i]
                    share = fast_exp(-abs(difference))
                    total[i] = total[i] * share + 1.0 if difference > 0.0 else total[i] + share
                    top[i] = max(top[i], score[i])
            else:
                for i in range(width):
                    row = score[i * depth : (i + 1) * depth]
                    highest = top[i]
                    for j in range(depth):
                        highest = max(highest, row[j])
                    total[i] = total[i] * fast_exp(top[i] - highest) + _sum_exp(row, highest)
                    top[i] = highest
            first = False
            if not _advance(n, axes, turning, _TWO, n_terms + 1, steps, digits, place):
                break
        for i in range(width):
            if top[i] <= _NOTHING:
                out[to[i * depth]] = -np.inf
            else:
                out[to[i * depth]] = top[i] if best else top[i] + fast_log(total[i])
        if not _advance(n, axes, turning, _ONE, n_terms + 1, steps, digits, place):
            return


@kernel(called_by="kernels", fastmath={"reassoc", "contract", "nsz"})
def _sum_exp(row, highest):
    total = 0.0
    for j in range(row.size):
        total += fast_exp(row[j] - highest)
    return total


@kernel(called_by="kernels", fastmath={"reassoc", "contract", "nsz", "nnan"})
def log_dot(one, two):
    """``log sum exp(one + two)``; -inf where all terms are."""
    top = _NOTHING
    for j in range(one.size):
        top = max(top, one[j] + two[j])
    if top <= _NOTHING:
        return -np.inf
    total = 0.0
    for j in range(one.size):
        total += fast_exp(one[j] + two[j] - top)
    return top + np.log(total)
