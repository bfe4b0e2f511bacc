"""Compiled passes over forests of spins given the other block: sums, means, products with covariances, draws.

A block is a forest: its nodes in `order` (roots first, parents before children), `parent[i]` and `link[i]` the parent
of a node and the edge to it, -1 at roots. Edges to the other block are ``across[starts[i] : starts[i + 1]]``, their
ends there `others`. Given the other block a node has the field ``H_i = h_i + sum_j theta_ij x_j``. From the leaves up,
summing a node out gives its parent a field (``lc = log cosh``)

    u = [lc(H + theta) - lc(H - theta)] / 2,    log R = log 2 + [lc(H + theta) + lc(H - theta)] / 2,

and a root gives ``log 2 cosh H``. The adjoint of that recursion, from the roots down, gives the means of spins and of
pairs; the derivative of both along a direction gives products with the covariance.

Particles are rows of the arguments and of the results. `LANES` of them are worked on together, as the columns of
scratch arrays ``(nodes, LANES)`` or ``(parameters, LANES)`` that the caller makes: every inner loop is over lanes. What
a particle gets does not depend on the others.
"""

import math

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log
from cumulant.randomness_kernels import uniform_pair

LANES = 64
_LOG_2 = math.log(2.0)


@kernel(called_by="kernels")
def _log_cosh(x):
    size = abs(x)
    return size + fast_log(1.0 + fast_exp(-2.0 * size)) - _LOG_2


@kernel(called_by="kernels")
def _tanh(x):
    """To an absolute error of some 1e-16."""
    e = fast_exp(-2.0 * abs(x))
    size = (1.0 - e) / (1.0 + e)
    return size if x >= 0.0 else -size


@kernel(called_by="kernels")
def _into_lanes(rows, first, x):
    """Rows from `first` on as the columns of `x`; lanes beyond the last row repeat it."""
    for c in range(LANES):
        s = min(first + c, rows.shape[0] - 1)
        for j in range(x.shape[0]):
            x[j, c] = rows[s, j]


@kernel(called_by="kernels")
def _from_lanes(columns, first, out):
    """The columns as rows of `out` from `first` on."""
    for c in range(min(LANES, out.shape[0] - first)):
        for j in range(columns.shape[0]):
            out[first + c, j] = columns[j, c]


@kernel(called_by="kernels")
def _clear(columns):
    for j in range(columns.shape[0]):
        for c in range(LANES):
            columns[j, c] = 0.0


@kernel(called_by="kernels")
def _local_fields(x, f, couplings, fields, field):
    """``H`` of each node before anything below it is summed out."""
    for i in range(f.order.size):
        h = fields[f.nodes[i]]
        for c in range(LANES):
            field[i, c] = h
        for k in range(f.starts[i], f.starts[i + 1]):
            coupling, j = couplings[f.across[k]], f.others[k]
            for c in range(LANES):
                field[i, c] += coupling * x[j, c]


@kernel(called_by="kernels")
def _up(f, couplings, field, total):
    """Sum out from the leaves to the roots; `field` becomes that of each node given its parent. The logarithm of the
    sum, without the roots, is added to `total`, where there is one.
    """
    for k in range(f.order.size - 1, f.n_roots - 1, -1):
        i = f.order[k]
        p, theta = f.parent[i], couplings[f.link[i]]
        for c in range(LANES):
            plus, minus = _log_cosh(field[i, c] + theta), _log_cosh(field[i, c] - theta)
            field[p, c] += 0.5 * (plus - minus)
            if total is not None:
                total[c] += _LOG_2 + 0.5 * (plus + minus)


@kernel(called_by="python")
def block_values(given, f, couplings, fields, x, field, total, out):
    """``log f(x_A; theta)`` of each row of spins `given`, the other block summed out."""
    for first in range(0, out.size, LANES):
        _into_lanes(given, first, x)
        _local_fields(x, f, couplings, fields, field)
        for c in range(LANES):
            total[c] = 0.0
        for k in range(f.inner.size):  # terms that only the other block is in
            coupling, i, j = couplings[f.inner[k]], f.inner_ends[k, 0], f.inner_ends[k, 1]
            for c in range(LANES):
                total[c] += coupling * x[i, c] * x[j, c]
        for j in range(x.shape[0]):
            h = fields[f.other_nodes[j]]
            if h != 0.0:
                for c in range(LANES):
                    total[c] += h * x[j, c]
        _up(f, couplings, field, total)
        for k in range(f.n_roots):
            i = f.order[k]
            for c in range(LANES):
                total[c] += _log_cosh(field[i, c]) + _LOG_2
        for c in range(min(LANES, out.size - first)):
            out[first + c] = total[c]


@kernel(called_by="python")
def block_means(given, f, couplings, fields, group, scale, x, field, mean, sums, out):
    """``E[t | x_A]`` of each row, pairs gathered into parameters: ``t_g = sum of scale x_i x_j over group g``."""
    for first in range(0, out.shape[0], LANES):
        _into_lanes(given, first, x)
        _clear(sums)
        _local_fields(x, f, couplings, fields, field)
        _up(f, couplings, field, None)
        for k in range(f.order.size):
            i = f.order[k]
            p = f.parent[i]
            if p < 0:
                for c in range(LANES):
                    mean[i, c] = _tanh(field[i, c])
            else:
                e = f.link[i]
                theta, g, s = couplings[e], group[e], 0.5 * scale[e]
                for c in range(LANES):
                    a, b = _tanh(field[i, c] + theta), _tanh(field[i, c] - theta)
                    mean[i, c] = 0.5 * (mean[p, c] * (a - b) + a + b)
                    sums[g, c] += s * (mean[p, c] * (a + b) + a - b)
            for n in range(f.starts[i], f.starts[i + 1]):
                g, s, j = group[f.across[n]], scale[f.across[n]], f.others[n]
                for c in range(LANES):
                    sums[g, c] += s * mean[i, c] * x[j, c]
        _pairs(x, f.inner, f.inner_ends, group, scale, sums)
        _from_lanes(sums, first, out)


@kernel(called_by="python")
def block_products(given, f, couplings, fields, vector, group, scale, x, field, mean, tangent, moved, sums, out):
    """``Cov[t | x_A] v`` of each row, for `vector` ``v`` over edges: the derivative of `block_means` along it."""
    for first in range(0, out.shape[0], LANES):
        _into_lanes(given, first, x)
        _clear(sums)
        _local_fields(x, f, couplings, fields, field)
        for i in range(f.order.size):
            for c in range(LANES):
                tangent[i, c] = 0.0
            for n in range(f.starts[i], f.starts[i + 1]):
                v, j = vector[f.across[n]], f.others[n]
                for c in range(LANES):
                    tangent[i, c] += v * x[j, c]
        for k in range(f.order.size - 1, f.n_roots - 1, -1):
            i = f.order[k]
            p, theta, v = f.parent[i], couplings[f.link[i]], vector[f.link[i]]
            for c in range(LANES):
                plus, minus = field[i, c] + theta, field[i, c] - theta
                a, b = _tanh(plus), _tanh(minus)
                field[p, c] += 0.5 * (_log_cosh(plus) - _log_cosh(minus))
                tangent[p, c] += 0.5 * (a * (tangent[i, c] + v) - b * (tangent[i, c] - v))
        for k in range(f.order.size):
            i = f.order[k]
            p = f.parent[i]
            if p < 0:
                for c in range(LANES):
                    mean[i, c] = _tanh(field[i, c])
                    moved[i, c] = (1.0 - mean[i, c] * mean[i, c]) * tangent[i, c]
            else:
                e = f.link[i]
                theta, v, g, s = couplings[e], vector[e], group[e], 0.5 * scale[e]
                for c in range(LANES):
                    a, b = _tanh(field[i, c] + theta), _tanh(field[i, c] - theta)
                    da, db = (1.0 - a * a) * (tangent[i, c] + v), (1.0 - b * b) * (tangent[i, c] - v)
                    mean[i, c] = 0.5 * (mean[p, c] * (a - b) + a + b)
                    moved[i, c] = 0.5 * (moved[p, c] * (a - b) + mean[p, c] * (da - db) + da + db)
                    sums[g, c] += s * (moved[p, c] * (a + b) + mean[p, c] * (da + db) + da - db)
            for n in range(f.starts[i], f.starts[i + 1]):
                g, s, j = group[f.across[n]], scale[f.across[n]], f.others[n]
                for c in range(LANES):
                    sums[g, c] += s * moved[i, c] * x[j, c]
        _from_lanes(sums, first, out)


@kernel(called_by="python")
def draw_block(given, f, couplings, fields, seed, x, field, noise, drawn, out):
    """Exact draws of a forest given the other block, a row for each row of `given`: from the roots down."""
    for first in range(0, out.shape[0], LANES):
        _into_lanes(given, first, x)
        _local_fields(x, f, couplings, fields, field)
        _up(f, couplings, field, None)
        for k in range(f.order.size):
            i = f.order[k]
            p = f.parent[i]
            if k % 2 == 0:
                for c in range(LANES):
                    one, other = uniform_pair(seed, first + c, 0, k // 2)
                    noise[0, c] = 0.5 * fast_log(one / (1.0 - one))
                    noise[1, c] = 0.5 * fast_log(other / (1.0 - other))
            if p >= 0:
                theta = couplings[f.link[i]]
                for c in range(LANES):
                    field[i, c] += theta * drawn[p, c]
            for c in range(LANES):  # u < 1 / (1 + exp(-2 h)), without overflow
                drawn[i, c] = 1 if field[i, c] > noise[k % 2, c] else -1
        _from_lanes(drawn, first, out)


@kernel(called_by="python")
def pair_statistics(spins, edges, number, group, scale, x, sums, out):
    """``t_g(x) = sum of scale x_i x_j over the edges of group g``, of each row of whole states; `edges` with their
    numbers.
    """
    for first in range(0, out.shape[0], LANES):
        _into_lanes(spins, first, x)
        _clear(sums)
        _pairs(x, number, edges, group, scale, sums)
        _from_lanes(sums, first, out)


@kernel(called_by="kernels")
def _pairs(x, number, ends, group, scale, sums):
    for k in range(number.size):
        g, s, i, j = group[number[k]], scale[number[k]], ends[k, 0], ends[k, 1]
        for c in range(LANES):
            sums[g, c] += s * (x[i, c] * x[j, c])
