"""The passes of elimination over a list of steps: forward for the partition function, backward for marginals.

All tables lie in one flat array: factor ``t`` and the result of step ``s`` (table ``n_factors + s``) begin at
`offsets`, and what multiplies them in the partition function (its derivative by them) begins at `adjoints`; -1 where it
is not wanted. In linear mode a table is kept up to a power of two; `low` and `high` bound its positive entries, so that
an underflow can be ruled out before it happens: where it cannot, the pass says so and is run again with logarithms.

`logs` is the work space of passes with logarithms, and None in linear mode: its type says which of the two is compiled,
and the second is compiled only where it is needed.
"""

import math

import numpy as np

from cumulant.graphical.exact.contraction_kernels import MAX_AXES, MAX_TERMS, contract, contract_log, log_dot
from cumulant.kernels import kernel

_TINY, _HUGE = 1e-290, 1e290
_WHOLE = np.int64(0)  # of a contraction: no part of it (and no literal: that would be compiled by itself)
_MAX = 2  # the mode of a step that takes the largest term: 0 adds numbers, 1 logarithms


def scratch(n_variables: int) -> tuple[np.ndarray, ...]:
    """Arrays in which one contraction is laid out: axes, strides, where terms begin, which they are, and the axis of
    each variable.
    """
    axes, bases, tables = np.empty((3, MAX_AXES), np.int64)
    return axes, np.empty((MAX_TERMS + 1, MAX_AXES), np.int64), bases, tables, np.empty(n_variables, np.int64)


@kernel(called_by="kernels")
def _lay_out(s, target, part, n_split, offsets, adjoints, layout, scratch):
    """One contraction of step `s`, into `scratch`: for its result where `target` is -1, the adjoint of its term
    `target`, or the marginal of its variable (`target` = -2, into the adjoint's place of the step).

    Where `n_split` is positive, only the `part` of it that has the first `n_split` axes of the target at these digits.
    Returns how many axes and terms there are, and where the target is.
    """
    summed, begins, ends, pool, term_starts, terms, sizes, _ = layout
    axes, strides, bases, tables, position = scratch
    own = begins.size - summed.size + s
    begin = begins[own] - (1 if summed[s] >= 0 else 0)
    n_axes = ends[own] - begin
    for a in range(n_axes):
        v = pool[begin + a]
        position[v] = a
        axes[a] = sizes[v]
    n_terms = 0
    for i in range(term_starts[s], term_starts[s + 1]):
        if i - term_starts[s] != target:
            bases[n_terms], tables[n_terms] = offsets[terms[i]], terms[i]
            n_terms += 1
    if target != -1:
        bases[n_terms], tables[n_terms] = adjoints[own], own
        n_terms += 1
    tables[n_terms] = own if target < 0 else terms[term_starts[s] + target]
    into = tables[n_terms] if target >= 0 else begins.size + summed[s]
    to = offsets[own] if target == -1 else adjoints[into]
    for t in range(n_terms + 1):
        for a in range(n_axes):
            strides[t, a] = 0
        stride = 1
        for k in range(ends[tables[t]] - 1, begins[tables[t]] - 1, -1):
            strides[t, position[pool[k]]] = stride
            stride *= sizes[pool[k]]
    if target == -2:
        for a in range(n_axes):
            strides[n_terms, a] = 1 if a == 0 else 0
    # the first axes of the target, the last of them first
    a, found, left = 0, 0, part
    while found < n_split:
        found += 1 if strides[n_terms, a] != 0 else 0
        a += 1
    while a > 0:
        a -= 1
        if strides[n_terms, a] != 0:
            digit = left % axes[a]
            left //= axes[a]
            for t in range(n_terms):
                bases[t] += digit * strides[t, a]
            to += digit * strides[n_terms, a]
            axes[a] = 1
    return n_axes, n_terms, to


@kernel(called_by="kernels", fastmath={"nnan", "nsz"})
def _measure(values):
    """The smallest positive entry and the largest entry; by four of each, so that no comparison waits for the last."""
    low_0 = low_1 = low_2 = low_3 = np.inf
    high_0 = high_1 = high_2 = high_3 = 0.0
    whole = values.size - values.size % 4
    for j in range(0, whole, 4):
        a, b, c, d = values[j], values[j + 1], values[j + 2], values[j + 3]
        high_0, high_1 = max(high_0, a), max(high_1, b)
        high_2, high_3 = max(high_2, c), max(high_3, d)
        low_0, low_1 = min(low_0, a if a > 0.0 else np.inf), min(low_1, b if b > 0.0 else np.inf)
        low_2, low_3 = min(low_2, c if c > 0.0 else np.inf), min(low_3, d if d > 0.0 else np.inf)
    for j in range(whole, values.size):
        high_0, low_0 = max(high_0, values[j]), min(low_0, values[j] if values[j] > 0.0 else np.inf)
    return min(min(low_0, low_1), min(low_2, low_3)), max(max(high_0, high_1), max(high_2, high_3))


@kernel(called_by="kernels")
def _settle(values, begin, size, low, high):
    """Scale a table by a power of two where its largest entry went far from one; returns the power, `low`, `high`."""
    if high == 0.0 or (2.0**-64 <= high <= 2.0**64):
        return 0, low, high
    power = math.floor(math.log2(high))
    half = power // 2  # in two halves: 2^-power itself may not be a number
    first, second = 2.0 ** (-half), 2.0 ** (half - power)
    for j in range(begin, begin + size):
        values[j] = values[j] * first * second
    return power, low * first * second, high * first * second


@kernel(called_by="kernels")
def _safe(s, target, ranges, layout):
    """Whether no product of this contraction can leave the range of normal numbers."""
    low, high, low_adjoint, high_adjoint = ranges
    summed, begins, _, _, term_starts, terms, _, _ = layout
    own = begins.size - summed.size + s
    bottom, top = 1.0, 1.0
    for i in range(term_starts[s], term_starts[s + 1]):
        if i - term_starts[s] != target:
            bottom *= min(low[terms[i]], 1.0)
            top *= max(high[terms[i]], 1.0)
    if target != -1:
        bottom *= min(low_adjoint[own], 1.0)
        top *= max(high_adjoint[own], 1.0)
    return bottom > _TINY and top < _HUGE


@kernel(called_by="kernels", fastmath={"reassoc", "contract", "nsz"})
def _dot(one, two):
    total = 0.0
    for j in range(one.size):
        total += one[j] * two[j]
    return total


@kernel(called_by="python")
def advance(first, last, kind, modes, values, offsets, adjoints, ranges, power, layout, scratch, space, logs):
    """Steps `first` to `last` - 1 forward (`kind` 0), or `last` - 1 to `first` backward (1), for the adjoints of their
    terms and the marginals of the variables summed out there, or for these marginals alone (2).

    Returns False where products may leave the range of numbers. There is one call to the contraction, for all kinds,
    as every call is compiled by itself.
    """
    low, high, low_adjoint, high_adjoint = ranges
    summed, begins, _, _, term_starts, terms, sizes, lengths = layout
    axes, strides, bases, _, _ = scratch
    n_factors = begins.size - summed.size
    one, nothing = 1.0, 0.0
    if logs is not None:
        one, nothing = 0.0, -np.inf
    for k in range(last - first):
        s = first + k if kind == 0 else last - 1 - k
        own, v = n_factors + s, summed[s]
        if kind == 1 and adjoints[own] < 0:  # nothing below it is asked for
            continue
        n_terms = term_starts[s + 1] - term_starts[s]
        if kind == 1 and lengths[own] == 1 and v >= 0:  # a root: nothing multiplies it
            values[adjoints[own]] = one
            low_adjoint[own], high_adjoint[own] = 1.0, 1.0
        for job in range(n_terms if kind == 2 else 0, 1 if kind == 0 else n_terms + 1):
            mode = 1
            if kind == 0:
                target, table, begin, size, mode = np.int64(-1), own, offsets[own], lengths[own], modes[s]
            elif job < n_terms:
                target, table = job, terms[term_starts[s] + job]
                begin, size = adjoints[table], lengths[table]
                if begin < 0:
                    continue
            else:
                if v < 0:
                    continue
                target, table, begin, size = np.int64(-2), own, adjoints[begins.size + v], sizes[v]
                message = -1
                for i in range(term_starts[s], term_starts[s + 1]):
                    t = terms[i]
                    if t >= n_factors and adjoints[t] >= 0 and (message < 0 or lengths[t] < lengths[message]):
                        message = t
                if message >= 0:  # from the message and its adjoint, whose first variable it is
                    if logs is None and not (low[message] * low_adjoint[message] > _TINY):
                        return False
                    block = lengths[message] // size
                    for x in range(size):
                        a, b = offsets[message] + x * block, adjoints[message] + x * block
                        left, right = values[a : a + block], values[b : b + block]
                        if logs is None:
                            values[begin + x] = _dot(left, right)
                        else:
                            values[begin + x] = log_dot(left, right)
                    continue
            if logs is None and not _safe(s, target, ranges, layout):
                return False
            out = values[begin : begin + size]
            for j in range(size):
                out[j] = nothing
            n_axes, n_tables, to = _lay_out(s, target, _WHOLE, _WHOLE, offsets, adjoints, layout, scratch)
            if logs is None:
                contract(values, n_axes, axes, n_tables, bases, strides, to, space)
            else:
                contract_log(values, n_axes, axes, n_tables, bases, strides, to, mode == _MAX, space, logs)
            if logs is None and target != -2:
                bottom, top = _measure(out)
                shift, bottom, top = _settle(values, begin, size, bottom, top)
                if target == -1:
                    power[own], low[own], high[own] = shift, bottom, top
                else:
                    low_adjoint[table], high_adjoint[table] = bottom, top
    return True


@kernel(called_by="python")
def decode(linear, uniforms, states, weights, values, offsets, layout):
    """Steps backwards, each variable given those that were summed out after it.

    `states` (draws, variables) is filled in: at random by `uniforms` of the same shape, or with the best state where
    that has no rows. `weights` is space for the states of a variable.
    """
    summed, begins, ends, pool, term_starts, terms, sizes, _ = layout
    for draw in range(states.shape[0]):
        for s in range(summed.size - 1, -1, -1):
            v = summed[s]
            if v < 0:
                continue
            for x in range(sizes[v]):
                weights[x] = 1.0 if linear else 0.0
            for i in range(term_starts[s], term_starts[s + 1]):
                t = terms[i]
                place, stride, along = offsets[t], 1, 0
                for k in range(ends[t] - 1, begins[t] - 1, -1):
                    u = pool[k]
                    if u == v:
                        along = stride
                    else:
                        place += stride * states[draw, u]
                    stride *= sizes[u]
                for x in range(sizes[v]):
                    if linear:
                        weights[x] *= values[place + x * along]
                    else:
                        weights[x] += values[place + x * along]
            best = 0
            for x in range(1, sizes[v]):
                if weights[x] > weights[best]:
                    best = x
            if uniforms.shape[0] == 0:
                states[draw, v] = best
                continue
            top, total = weights[best], 0.0
            for x in range(sizes[v]):
                if not linear:
                    weights[x] = math.exp(weights[x] - top)
                total += weights[x]
            left, x = uniforms[draw, v] * total, 0
            while x < sizes[v] - 1 and (left >= weights[x] or weights[x] == 0.0):
                left -= weights[x]
                x += 1
            while weights[x] == 0.0:  # rounding at the far end: the last state that is possible
                x -= 1
            states[draw, v] = x


@kernel(called_by="python")
def part_of_step(s, target, mode, part, n_parts, n_split, values, offsets, adjoints, layout, scratch, space, logs):
    """One part of a contraction, its space set to zero before; returns the smallest positive and largest entry."""
    summed, begins, _, _, term_starts, terms, _, lengths = layout
    if target == -1:
        table = begins.size - summed.size + s
        begin = offsets[table]
    else:
        table = terms[term_starts[s] + target]
        begin = adjoints[table]
    block = lengths[table] // n_parts
    begin += part * block
    nothing = 0.0
    if logs is not None:
        nothing = -np.inf
    out = values[begin : begin + block]
    for j in range(block):
        out[j] = nothing
    axes, strides, bases, _, _ = scratch
    n_axes, n_tables, to = _lay_out(s, target, part, n_split, offsets, adjoints, layout, scratch)
    if logs is None:
        contract(values, n_axes, axes, n_tables, bases, strides, to, space)
    else:
        contract_log(values, n_axes, axes, n_tables, bases, strides, to, mode == _MAX, space, logs)
    return _measure(out)


@kernel(called_by="python")
def settle(values, begin, size, low, high):
    """`_settle` for tables that were computed in parts."""
    return _settle(values, begin, size, low, high)


@kernel(called_by="python")
def safe(s, target, ranges, layout):
    """`_safe` for tables that are computed in parts."""
    return _safe(s, target, ranges, layout)


@kernel(called_by="python")
def exponentiate(theta, table_starts, linear, values, low, high, shift):
    """Factors into `values`: ``exp(theta - max)`` of each table, or ``theta - max`` itself; `shift` gets the maxima."""
    for t in range(table_starts.size - 1):
        begin, end = table_starts[t], table_starts[t + 1]
        top = -np.inf
        for j in range(begin, end):
            top = max(top, theta[j])
        shift[t] = top
        low[t], high[t] = np.inf, 0.0
        for j in range(begin, end):
            if top == -np.inf:
                values[j] = 0.0 if linear else -np.inf
            elif linear:
                values[j] = math.exp(theta[j] - top)
                high[t] = max(high[t], values[j])
                if theta[j] > -np.inf:
                    low[t] = min(low[t], values[j])  # zero where it underflows: then no product is safe
            else:
                values[j] = theta[j] - top
