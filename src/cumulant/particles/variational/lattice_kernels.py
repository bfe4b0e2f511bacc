"""Compiled passes over forests of spins given the other block: sums, means, products with covariances, draws.

A block is a forest: its nodes in `order` (roots first, parents before children), `parent[i]` and `link[i]` the parent
of a node and the edge to it, -1 at roots. Edges to the other block are ``across[starts[i] : starts[i + 1]]``, their
ends there `others`. Given the other block a node has the field ``H_i = h_i + sum_j theta_ij x_j``. From the leaves up,
summing a node out gives its parent a field (``lc = log cosh``)

    u = [lc(H + theta) - lc(H - theta)] / 2,    log R = log 2 + [lc(H + theta) + lc(H - theta)] / 2,

and a root gives ``log 2 cosh H``. The adjoint of that recursion, from the roots down, gives the means of spins and of
pairs; the derivative of both along a direction gives products with the covariance.
"""

import math

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log
from cumulant.randomness_kernels import uniform

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
def _local_fields(row, f, couplings, fields, field):
    """``H`` of each node before anything below it is summed out."""
    for i in range(f.order.size):
        total = fields[f.nodes[i]]
        for k in range(f.starts[i], f.starts[i + 1]):
            total += couplings[f.across[k]] * row[f.others[k]]
        field[i] = total


@kernel(called_by="kernels")
def _up(f, couplings, field):
    """Sum out from the leaves to the roots; `field` becomes that of each node given its parent. The logarithm of the
    sum, without the roots.
    """
    total = 0.0
    for k in range(f.order.size - 1, f.n_roots - 1, -1):
        i = f.order[k]
        theta = couplings[f.link[i]]
        plus, minus = _log_cosh(field[i] + theta), _log_cosh(field[i] - theta)
        field[f.parent[i]] += 0.5 * (plus - minus)
        total += _LOG_2 + 0.5 * (plus + minus)
    return total


@kernel(called_by="kernels")
def _other_block(row, f, couplings, fields):
    """The terms that only the other block is in."""
    total = 0.0
    for k in range(f.inner.size):
        total += couplings[f.inner[k]] * row[f.inner_ends[k, 0]] * row[f.inner_ends[k, 1]]
    for j in range(row.size):
        total += fields[f.other_nodes[j]] * row[j]
    return total


@kernel(called_by="python")
def block_values(given, f, couplings, fields, field, out):
    """``log f(x_A; theta)`` of each row of spins `given`, the other block summed out."""
    for s in range(out.size):
        row = given[s]
        _local_fields(row, f, couplings, fields, field)
        total = _other_block(row, f, couplings, fields) + _up(f, couplings, field)
        for k in range(f.n_roots):
            total += _log_cosh(field[f.order[k]]) + _LOG_2
        out[s] = total


@kernel(called_by="python")
def block_means(given, f, couplings, fields, group, scale, field, mean, out):
    """``E[t | x_A]`` of each row, pairs gathered into parameters: ``t_g = sum of scale x_i x_j over group g``."""
    for s in range(out.shape[0]):
        row = given[s]
        for p in range(out.shape[1]):
            out[s, p] = 0.0
        _local_fields(row, f, couplings, fields, field)
        _up(f, couplings, field)
        for k in range(f.order.size):
            i = f.order[k]
            p = f.parent[i]
            if p < 0:
                mean[i] = _tanh(field[i])
            else:
                e = f.link[i]
                a, b = _tanh(field[i] + couplings[e]), _tanh(field[i] - couplings[e])
                mean[i] = 0.5 * (mean[p] * (a - b) + a + b)
                out[s, group[e]] += scale[e] * 0.5 * (mean[p] * (a + b) + a - b)
            for c in range(f.starts[i], f.starts[i + 1]):
                out[s, group[f.across[c]]] += scale[f.across[c]] * mean[i] * row[f.others[c]]
        for c in range(f.inner.size):
            e = f.inner[c]
            out[s, group[e]] += scale[e] * row[f.inner_ends[c, 0]] * row[f.inner_ends[c, 1]]


@kernel(called_by="python")
def block_products(given, f, couplings, fields, vector, group, scale, field, mean, tangent, moved, out):
    """``Cov[t | x_A] v`` of each row, for `vector` ``v`` over edges: the derivative of `block_means` along it."""
    for s in range(out.shape[0]):
        row = given[s]
        for p in range(out.shape[1]):
            out[s, p] = 0.0
        _local_fields(row, f, couplings, fields, field)
        for i in range(f.order.size):
            total = 0.0
            for k in range(f.starts[i], f.starts[i + 1]):
                total += vector[f.across[k]] * row[f.others[k]]
            tangent[i] = total
        for k in range(f.order.size - 1, f.n_roots - 1, -1):
            i = f.order[k]
            p, e = f.parent[i], f.link[i]
            theta = couplings[e]
            a, b = _tanh(field[i] + theta), _tanh(field[i] - theta)
            field[p] += 0.5 * (_log_cosh(field[i] + theta) - _log_cosh(field[i] - theta))
            tangent[p] += 0.5 * (a * (tangent[i] + vector[e]) - b * (tangent[i] - vector[e]))
        for k in range(f.order.size):
            i = f.order[k]
            p = f.parent[i]
            if p < 0:
                mean[i] = _tanh(field[i])
                moved[i] = (1.0 - mean[i] * mean[i]) * tangent[i]
            else:
                e = f.link[i]
                a, b = _tanh(field[i] + couplings[e]), _tanh(field[i] - couplings[e])
                da, db = (1.0 - a * a) * (tangent[i] + vector[e]), (1.0 - b * b) * (tangent[i] - vector[e])
                mean[i] = 0.5 * (mean[p] * (a - b) + a + b)
                moved[i] = 0.5 * (moved[p] * (a - b) + mean[p] * (da - db) + da + db)
                out[s, group[e]] += scale[e] * 0.5 * (moved[p] * (a + b) + mean[p] * (da + db) + da - db)
            for c in range(f.starts[i], f.starts[i + 1]):
                out[s, group[f.across[c]]] += scale[f.across[c]] * moved[i] * row[f.others[c]]


@kernel(called_by="python")
def draw_block(given, f, couplings, fields, seed, field, out):
    """Exact draws of a forest given the other block, a row for each row of `given`: from the roots down."""
    for s in range(out.shape[0]):
        row = given[s]
        _local_fields(row, f, couplings, fields, field)
        _up(f, couplings, field)
        for k in range(f.order.size):
            i = f.order[k]
            p = f.parent[i]
            h = field[i] if p < 0 else field[i] + couplings[f.link[i]] * out[s, p]
            # u < 1 / (1 + exp(-2 h)), without overflow
            u = uniform(seed, s, 0, i)
            out[s, i] = 1 if 2.0 * h > fast_log(u / (1.0 - u)) else -1


@kernel(called_by="python")
def pair_statistics(spins, edges, group, scale, out):
    """``t_g(x) = sum of scale x_i x_j over the edges of group g``, of each row of whole states."""
    for s in range(out.shape[0]):
        for p in range(out.shape[1]):
            out[s, p] = 0.0
        for e in range(edges.shape[0]):
            out[s, group[e]] += scale[e] * np.float64(spins[s, edges[e, 0]] * spins[s, edges[e, 1]])
