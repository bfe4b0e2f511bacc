"""Tree-reweighted bounds by writing every spanning tree out, and distributions over trees by counting."""

import itertools

import networkx as nx
import numpy as np
from scipy.special import logsumexp


def spanning_trees(n, edges):
    """Every spanning tree, as the numbers of its edges."""
    return [
        those
        for those in itertools.combinations(range(len(edges)), n - 1)
        if nx.is_connected(nx.Graph([(v, v) for v in range(n)] + [edges[e] for e in those]))
    ]


def directions(n, edges, tree, root):
    """Pairs (edge, parent, child) of a tree hung up at a root."""
    graph = nx.Graph([(*edges[e], {"number": e}) for e in tree])
    return [(graph.edges[a, b]["number"], a, b) for a, b in nx.bfs_edges(graph, root)]


def orientation(n, edges, mixture):
    """``out[e, 0]``: the second end of the edge is the parent; ``mixture`` has pairs of a probability and a tree."""
    out = np.zeros((len(edges), 2))
    for p, tree in mixture:
        for root in range(n):
            for e, parent, _ in directions(n, edges, tree, root):
                out[e, 0 if parent == edges[e][1] else 1] += p / n
    return out


def answer(e, source, edges, tables, fields, messages, rho):
    """``log sum over x_source of exp(theta / rho + H - u)``; ``messages[e, v]`` is about ``x_v``."""
    h = total(source, edges, fields, messages, rho) - messages[e, source]
    table = tables[e] if edges[e][0] == source else tables[e].T
    return logsumexp(table / rho[e] + h[:, None], axis=0)


def total(v, edges, fields, messages, rho):
    return fields[v] + sum(rho[e] * messages[e, v] for e, edge in enumerate(edges) if v in edge)


def bound_by_trees(n, edges, tables, fields, messages, mixture):
    """``sum p(T) log Z_T``, each tree hung up at every root with the same probability: its edges are conditional
    distributions made from the messages, and what these do not account for goes to the trees with that root.

    Also checked: the tables of all trees add up to those of the model.
    """
    sizes = [field.size for field in fields]
    orient = orientation(n, edges, mixture)
    rho = orient.sum(axis=1)
    conditional = {}
    rest = [field.copy() for field in fields]
    for e, (i, j) in enumerate(edges):
        own = {v: total(v, edges, fields, messages, rho) - messages[e, v] for v in (i, j)}
        joint = tables[e] / rho[e] + own[i][:, None] + own[j]
        conditional[e, i] = joint - logsumexp(joint, axis=1, keepdims=True)  # log p(x_j | x_i), parent i
        conditional[e, j] = joint - logsumexp(joint, axis=0, keepdims=True)
        left = tables[e] - orient[e, 1] * conditional[e, i] - orient[e, 0] * conditional[e, j]
        rows = left[:, :1]  # a sum of a function of x_i and one of x_j
        rest[i] += rows[:, 0]
        rest[j] += left[0] - rows[0]
        assert np.allclose(left, rows + (left[0] - rows[0]), atol=1e-9)
    value, summed = 0.0, np.zeros(sizes)
    for p, tree in mixture:
        for root in range(n):
            scores = np.zeros(sizes)
            for e, parent, _ in directions(n, edges, tree, root):
                scores = scores + spread(conditional[e, parent], edges[e], n)
            scores = scores + spread(n * rest[root], (root,), n)
            value += p / n * logsumexp(scores)
            summed += p / n * scores
    model = sum(spread(f, (v,), n) for v, f in enumerate(fields)) + sum(
        spread(t, edge, n) for t, edge in zip(tables, edges, strict=True)
    )
    assert np.allclose(summed, model, atol=1e-8)
    return value


def spread(table, scope, n):
    """A table over some variables (in rising order) as one over all."""
    shape = [1] * n
    for axis, v in enumerate(scope):
        shape[v] = table.shape[axis]
    return table.reshape(shape)


def spins_of_a_grid(model, side):
    """``log Z`` and the mean of each spin of an Ising model on a square grid: rows forth and back, in plain numbers."""
    coupling = {tuple(edge): c for edge, c in zip(np.sort(model.edges, axis=1).tolist(), model.couplings, strict=True)}
    spin = np.array([-1.0, 1.0])

    def through(weights, r):  # a row summed out against the next one, column by column
        for c in range(side):
            bond = np.exp(coupling[r * side + c, (r + 1) * side + c] * np.outer(spin, spin))
            weights = np.moveaxis(np.tensordot(bond, weights, (1, c)), 0, c)
        return weights

    rows = []
    for r in range(side):
        score = np.zeros((2,) * side)
        for c in range(side):
            score = score + spread(model.fields[r * side + c] * spin, (c,), side)
            if c:
                pair = coupling[r * side + c - 1, r * side + c] * np.outer(spin, spin)
                score = score + spread(pair, (c - 1, c), side)
        rows.append(np.exp(score))
    above, log_z = [np.ones((2,) * side)], 0.0
    for r in range(side - 1):
        weights = through(above[r] * rows[r], r)
        log_z += np.log(weights.sum())
        above.append(weights / weights.sum())
    log_z += np.log((above[-1] * rows[-1]).sum())
    below, means = np.ones((2,) * side), np.zeros((side, side))
    for r in range(side - 1, -1, -1):
        p = above[r] * rows[r] * below
        for c in range(side):
            single = p.sum(axis=tuple(a for a in range(side) if a != c))
            means[r, c] = (single[1] - single[0]) / single.sum()
        if r:
            below = through(below * rows[r], r - 1)
            below /= below.sum()
    return float(log_z), means.ravel()
