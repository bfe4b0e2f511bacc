"""Products with a matrix, dense or sparse by rows (CSR), on some of its rows: what threads do side by side."""

from cumulant.kernels import kernel

_FAST = {"contract", "nsz", "reassoc"}


@kernel(called_by="kernels", fastmath=_FAST)
def _dot(indices, values, start, stop, v):
    total = 0.0
    for e in range(start, stop):
        total += values[e] * v[indices[e]]
    return total


@kernel(called_by="kernels", fastmath=_FAST)
def _block(a, b, start, stop):
    total = 0.0
    for i in range(start, stop):
        total += a[i] * b[i]
    return total


@kernel(called_by="python")
def dot_products(a, b):
    """``<a, b>``, by blocks of 512, in a fixed order: no partial sum has more than ``512 + n / 512`` terms."""
    total, n = 0.0, len(a)
    for start in range(0, n, 512):
        total += _block(a, b, start, min(start + 512, n))
    return total


@kernel(called_by="python")
def times(indptr, indices, values, v, first, last, out):
    """``out[i] = <row i, v>`` for rows `first` to `last`."""
    for i in range(first, last):
        out[i] = _dot(indices, values, indptr[i], indptr[i + 1], v)


@kernel(called_by="python")
def add_transposed(indptr, indices, values, u, first, last, out):
    """Add the sum of ``u[i] row_i`` over rows `first` to `last` to `out`."""
    for i in range(first, last):
        amount = u[i]
        if amount != 0.0:
            for e in range(indptr[i], indptr[i + 1]):
                out[indices[e]] += amount * values[e]


@kernel(called_by="python")
def add_weighted(indptr, indices, values, weights, v, shift, first, last, out):
    """Add the sum of ``u_i row_i``, ``u_i = weights[i] (<row_i, v> + shift)``, to `out`; returns the sum of ``u_i``."""
    total = 0.0
    for i in range(first, last):
        start, stop = indptr[i], indptr[i + 1]
        amount = weights[i] * (_dot(indices, values, start, stop, v) + shift)
        total += amount
        for e in range(start, stop):
            out[indices[e]] += amount * values[e]
    return total


@kernel(called_by="python")
def add_squares(indptr, indices, values, weights, first, last, out):
    """Add the sum of ``weights[i] row_i^2`` to `out`."""
    for i in range(first, last):
        for e in range(indptr[i], indptr[i + 1]):
            out[indices[e]] += weights[i] * values[e] * values[e]


@kernel(called_by="python")
def add_gram(indptr, indices, values, weights, first, last, out):
    """Add the sum of ``weights[i] row_i row_i^T`` to the matrix `out`."""
    for i in range(first, last):
        for e in range(indptr[i], indptr[i + 1]):
            amount, row = weights[i] * values[e], out[indices[e]]
            for f in range(indptr[i], indptr[i + 1]):
                row[indices[f]] += amount * values[f]


@kernel(called_by="python", fastmath=_FAST)
def rows_times(X, v, first, last, out):
    """``out[i] = <X[i], v>`` for rows `first` to `last` of a dense matrix."""
    p = X.shape[1]
    for i in range(first, last):
        row, total = X[i], 0.0
        for j in range(p):
            total += row[j] * v[j]
        out[i] = total


@kernel(called_by="python", fastmath=_FAST)
def rows_times_some(X, columns, v, first, last, out):
    """The same for a vector with the entries `v` at some `columns` and zeros elsewhere."""
    for i in range(first, last):
        row, total = X[i], 0.0
        for k in range(len(columns)):
            total += row[columns[k]] * v[k]
        out[i] = total


@kernel(called_by="python", fastmath=_FAST)
def rows_transposed(X, u, first, last, out):
    """Add the sum of ``u[i] X[i]`` over rows `first` to `last` of a dense matrix to `out`; four rows at a time."""
    p, whole = X.shape[1], first + (last - first) // 4 * 4
    for i in range(first, whole, 4):
        a, b, c, d = X[i], X[i + 1], X[i + 2], X[i + 3]
        s, t, w, z = u[i], u[i + 1], u[i + 2], u[i + 3]
        for j in range(p):
            out[j] += (s * a[j] + t * b[j]) + (w * c[j] + z * d[j])
    for i in range(whole, last):
        row, s = X[i], u[i]
        for j in range(p):
            out[j] += s * row[j]


@kernel(called_by="python", fastmath=_FAST)
def rows_squares(X, weights, first, last, out):
    """Add the sum of ``weights[i] X[i]^2`` over rows `first` to `last` of a dense matrix to `out`."""
    p = X.shape[1]
    for i in range(first, last):
        row, weight = X[i], weights[i]
        for j in range(p):
            out[j] += weight * (row[j] * row[j])


@kernel(called_by="python", fastmath=_FAST)
def rows_weighted(X, weights, v, shift, first, last, out):
    """Add the sum of ``u_i X[i]``, ``u_i = weights[i] (<X[i], v> + shift)``, over rows `first` to `last` to `out`;
    returns the sum of ``u_i``. Four rows at a time, which are read from memory once.
    """
    p, whole, sum_ = X.shape[1], first + (last - first) // 4 * 4, 0.0
    for i in range(first, whole, 4):
        a, b, c, d = X[i], X[i + 1], X[i + 2], X[i + 3]
        s, t, w, z = 0.0, 0.0, 0.0, 0.0
        for j in range(p):
            s += a[j] * v[j]
            t += b[j] * v[j]
            w += c[j] * v[j]
            z += d[j] * v[j]
        s, t = weights[i] * (s + shift), weights[i + 1] * (t + shift)
        w, z = weights[i + 2] * (w + shift), weights[i + 3] * (z + shift)
        sum_ += (s + t) + (w + z)
        for j in range(p):
            out[j] += (s * a[j] + t * b[j]) + (w * c[j] + z * d[j])
    for i in range(whole, last):
        row, s = X[i], 0.0
        for j in range(p):
            s += row[j] * v[j]
        s = weights[i] * (s + shift)
        sum_ += s
        for j in range(p):
            out[j] += s * row[j]
    return sum_


@kernel(called_by="python", fastmath=_FAST)
def rows_gram(X, weights, out):
    """Add the sum of ``weights[i] X[i] X[i]^T`` to the matrix `out`."""
    n, p = X.shape
    for i in range(n):
        row = X[i]
        for j in range(p):
            amount, into = weights[i] * row[j], out[j]
            for k in range(p):
                into[k] += amount * row[k]
