"""Transfer matrices of square lattices, one spin at a time, in logarithms; see `exact.lattices`."""

import numpy as np

from cumulant.kernels import kernel


@kernel(called_by="kernels")
def _log_add(a, b):
    top = max(a, b)
    return top if top == -np.inf else top + np.log1p(np.exp(-abs(a - b)))


@kernel(called_by="kernels")
def _spin(state, column):
    return 2.0 * ((state >> column) & 1) - 1.0


@kernel(called_by="kernels")
def _own(state, r, c, right, fields):
    """What the spin of site ``(r, c)`` adds, with its field and the bonds along its row that are complete with it."""
    columns = right.shape[1]
    value = fields[r, c]
    if c > 0:
        value += right[r, c - 1] * _spin(state, c - 1)
    if c == columns - 1 and columns > 2:
        value += right[r, c] * _spin(state, 0)
    return value * _spin(state, c)


@kernel(called_by="python")
def transfer(right, down, fields, joined, kept, back, means):
    """``log Z``; `means` are changed in place where the rows of `kept`, one for each step, are enough to go back.

    The state of a step is that of the last spin of each column, column ``c`` in bit ``c``. Where the last row is joined
    to the first, every state of the first row is taken in turn.
    """
    rows, columns = right.shape
    size, steps = 1 << columns, (rows - 1) * columns
    with_means = kept.shape[0] > steps
    total, top = 0.0, -np.inf
    means[:] = 0.0
    for first in range(size if joined else 1):
        vector = kept[0]
        for state in range(size):
            vector[state] = 0.0
            for c in range(columns):
                vector[state] += _own(state, 0, c, right, fields)
            if joined and state != first:
                vector[state] = -np.inf
        for step in range(steps):
            r, c = step // columns + 1, step % columns
            before, after = (kept[step], kept[step + 1]) if with_means else (kept[step % 2], kept[(step + 1) % 2])
            bond, bit = down[r - 1, c], 1 << c
            for low in range(size):
                if low & bit:
                    continue
                a, b = before[low], before[low | bit]
                after[low] = _log_add(a + bond, b - bond) + _own(low, r, c, right, fields)
                after[low | bit] = _log_add(a - bond, b + bond) + _own(low | bit, r, c, right, fields)
        vector = kept[steps] if with_means else kept[steps % 2]
        value = -np.inf
        for state in range(size):
            back[state] = 0.0
            if joined:
                for c in range(columns):
                    back[state] += down[rows - 1, c] * _spin(state, c) * _spin(first, c)
            value = _log_add(value, vector[state] + back[state])
        if value > top:
            scale = np.exp(top - value)
            total *= scale
            for r in range(rows):
                for c in range(columns):
                    means[r, c] *= scale
            top = value
        share = np.exp(value - top)
        total += share
        if not with_means:
            continue
        for step in range(steps, -1, -1):
            r, c = (step - 1) // columns + 1, (step - 1) % columns
            # Shares of their own sum: that of the step and `value` differ by rounding, which may be many nats.
            peak, norm, mean = -np.inf, 0.0, 0.0
            for state in range(size):
                peak = max(peak, kept[step, state] + back[state])
            for state in range(size):
                p = np.exp(kept[step, state] + back[state] - peak)
                norm += p
                mean += p * _spin(state, c)
            if step > 0:
                means[r, c] += share * mean / norm
            else:
                for state in range(size):
                    p = share / norm * np.exp(kept[0, state] + back[state] - peak)
                    for column in range(columns):
                        means[0, column] += p * _spin(state, column)
            if step == 0:
                break
            bond, bit = down[r - 1, c], 1 << c
            for low in range(size):
                if low & bit:
                    continue
                a = back[low] + _own(low, r, c, right, fields)
                b = back[low | bit] + _own(low | bit, r, c, right, fields)
                back[low] = _log_add(a + bond, b - bond)
                back[low | bit] = _log_add(a - bond, b + bond)
    for r in range(rows):
        for c in range(columns):
            means[r, c] /= total
    return top + np.log(total)
