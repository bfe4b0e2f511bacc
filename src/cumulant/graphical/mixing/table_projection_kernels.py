"""Compiled loops for projecting tables: the proximal map of the widest row, of the widest column, and of both."""

import numpy as np

from cumulant.kernels import kernel


@kernel(called_by="kernels")
def excess(row, order, width):
    """How much must be cut above, and as much below, for the entries to lie within `width`; and its slope in `width`.

    ``S`` with ``sum max(x - u, 0) = sum max(l - x, 0) = S`` and ``u - l = width``. `order` sorts the row, increasing.
    Entries join the cut ones at the top or at the bottom one by one; none has to leave again. Returns ``S``, the
    derivative ``-dS/dwidth``, ``u`` and ``l``.
    """
    n = row.size
    top, bottom = row[order[n - 1]], row[order[0]]
    if top - bottom <= width:
        return 0.0, 0.0, top, bottom
    k, m = 1, 1
    while True:
        slope = 1.0 / (1.0 / k + 1.0 / m)
        cut = (top / k - bottom / m - width) * slope
        upper, lower = (top - cut) / k, (bottom + cut) / m
        if k < n and row[order[n - 1 - k]] > upper:
            top += row[order[n - 1 - k]]
            k += 1
        elif m < n and row[order[m]] < lower:
            bottom += row[order[m]]
            m += 1
        else:
            return cut, slope, upper, lower


@kernel
def shrink_rows(table, weight, out):
    """``out = V``, the part of `table` that the proximal map of ``weight * max_a range_b`` takes away.

    ``V`` has rows that add up to zero and ``|V|_1 <= 2 weight``. The common width solves ``sum_a S_a(width) = weight``;
    the sum is convex and decreasing in it, so that Newton's method from zero moves to the right only and is finite.
    """
    rows, columns = table.shape
    orders = np.empty((rows, columns), np.int64)
    for a in range(rows):  # by insertion: rows are short
        for b in range(columns):
            place = b
            while place > 0 and table[a, orders[a, place - 1]] > table[a, b]:
                orders[a, place] = orders[a, place - 1]
                place -= 1
            orders[a, place] = b
    width = 0.0
    for _ in range(4 * rows * columns + 8):
        total, slope = 0.0, 0.0
        for a in range(rows):
            cut, s, _, _ = excess(table[a], orders[a], width)
            total += cut
            slope += s
        if total <= weight or slope == 0.0:
            break
        step = (total - weight) / slope
        if width + step == width:
            break
        width += step
    for a in range(rows):
        _, _, upper, lower = excess(table[a], orders[a], width)
        for b in range(columns):
            x = table[a, b]
            out[a, b] = max(x - upper, 0.0) - max(lower - x, 0.0)
    return width


@kernel(called_by="python")
def shrink_edges(tables, shapes, starts, by_row, by_column, V, W, values, of_row, of_column, tol, max_steps):
    """For each edge the dual of ``min 1/2 |psi - theta|^2 + p max_a range_b psi + p' max_b range_a psi``.

    Maximises ``<V + W, theta> - 1/2 |V + W|^2`` over ``V`` (rows that add up to zero, ``|V|_1 <= 2 p``) and ``W``
    (columns, ``p'``) by turns, from what `V` and `W` hold; ``psi = theta - V - W``. `values` are the dual values,
    `of_row` and `of_column` the widths ``max_a range_b psi`` and ``max_b range_a psi``, their derivatives.
    """
    for e in range(shapes.shape[0]):
        r, c = shapes[e, 0], shapes[e, 1]
        here = slice(starts[e], starts[e] + r * c)
        theta = tables[here].reshape((r, c))
        v, w = V[here].reshape((r, c)), W[here].reshape((r, c))
        by_rows, by_columns = np.empty((r, c)), np.empty((c, r))
        new_v, new_w = np.empty((r, c)), np.empty((c, r))
        scale = 0.0
        for a in range(r):
            for b in range(c):
                scale = max(scale, abs(theta[a, b]))
        for _ in range(max_steps):
            moved = 0.0
            for a in range(r):
                for b in range(c):
                    by_rows[a, b] = theta[a, b] - w[a, b]
            shrink_rows(by_rows, by_row[e], new_v)
            for a in range(r):
                for b in range(c):
                    moved = max(moved, abs(new_v[a, b] - v[a, b]))
                    v[a, b] = new_v[a, b]
                    by_columns[b, a] = theta[a, b] - v[a, b]
            shrink_rows(by_columns, by_column[e], new_w)
            for a in range(r):
                for b in range(c):
                    moved = max(moved, abs(new_w[b, a] - w[a, b]))
                    w[a, b] = new_w[b, a]
            if moved <= tol * scale:
                break
        value, wide_row, wide_column = 0.0, 0.0, 0.0
        for a in range(r):
            high, low = -np.inf, np.inf
            for b in range(c):
                taken = v[a, b] + w[a, b]
                value += taken * theta[a, b] - 0.5 * taken * taken
                left = theta[a, b] - taken
                high, low = max(high, left), min(low, left)
            wide_row = max(wide_row, high - low)
        for b in range(c):
            high, low = -np.inf, np.inf
            for a in range(r):
                left = theta[a, b] - v[a, b] - w[a, b]
                high, low = max(high, left), min(low, left)
            wide_column = max(wide_column, high - low)
        values[e], of_row[e], of_column[e] = value, wide_row, wide_column
