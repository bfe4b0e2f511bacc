"""Distributions over the spanning trees of a graph, by the probabilities of their edges and of the ends as parents.

Edge ``e = (i, j)`` has two directions: ``orient[2 e]`` is the probability that it is in the tree with ``j`` as the
parent of ``i``, ``orient[2 e + 1]`` that ``i`` is the parent of ``j``. Their sum is the probability ``rho_e`` of the
edge, and ``1 - sum of orient over the parents of i`` is the probability that ``i`` is the root.

``rho`` comes from forests exactly when ``sum of rho inside S <= |S| - 1`` for every set ``S`` of nodes (Edmonds 1971).
Then *every* non-negative `orient` that adds up to it, and gives no node more than one parent in expectation, comes from
rooted forests: the root counted, a set ``S`` is entered from outside ``|S| - rho(S) >= 1`` times in expectation, which
is what rooted trees need (Edmonds 1967).
"""

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, maximum_flow, minimum_spanning_tree

DENSE = 2048  # nodes of a component up to which the inverse of its Laplacian is made
_COVER = 16  # trees of a larger one, at least


def roots(n: int, edges: np.ndarray, orient: np.ndarray) -> np.ndarray:
    """The probability that each node is a root."""
    children = edges.ravel()  # message 2 e comes from i, its child, and message 2 e + 1 from j
    return np.maximum(1.0 - np.bincount(children, orient, n), 0.0)


def heaviest_forest(n: int, edges: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The numbers of the edges of a maximum spanning forest (a tree in each component).

    >>> heaviest_forest(3, np.array([[0, 1], [0, 2], [1, 2]]), np.array([1.0, 3.0, 2.0]))
    array([1, 2])
    """
    rank = np.empty(len(edges))
    rank[np.argsort(-weights, kind="stable")] = np.arange(1, len(edges) + 1)  # scipy takes a weight of 0 for no edge
    kept = minimum_spanning_tree(coo_array((rank, edges.T), (n, n)).tocsr())
    return np.sort(np.argsort(rank)[kept.data.astype(np.int64) - 1])


def orientation_of_forest(n: int, edges: np.ndarray, forest: np.ndarray) -> np.ndarray:
    """One forest, with the root of each tree drawn uniformly: an end is the parent in proportion to its side."""
    orient = np.zeros(2 * len(edges))
    i, j = edges[forest].T
    graph = coo_array((np.ones(forest.size), (i, j)), (n, n)).tocsr()
    _, label = connected_components(graph, directed=False)
    size = np.bincount(label)[label].astype(np.float64)
    below, parent = np.ones(n), np.full(n, -1, dtype=np.int64)
    for start in np.unique(label, return_index=True)[1].tolist():
        order, before = breadth_first_order(graph, start, directed=False)
        parent[order[1:]] = before[order[1:]]
        for v in order[:0:-1].tolist():
            below[parent[v]] += below[v]
    side = np.where(parent[i] == j, below[i], size[i] - below[j])  # how many nodes are on the side of i
    orient[2 * forest] = 1.0 - side / size[i]
    orient[2 * forest + 1] = side / size[i]
    return orient


def uniform_orientation(n: int, edges: np.ndarray) -> np.ndarray:
    """All spanning forests equally likely, with uniform roots: ``orient = L+_ii - L+_ij`` with the pseudo-inverse of
    the Laplacian, so that ``rho_e = L+_ii + L+_jj - 2 L+_ij``, the effective resistance (Kirchhoff 1847).

    The path from ``i`` to the root ``r`` in a uniform tree begins with ``(i, j)`` with the probability of the current
    there, when one unit flows from ``i`` to ``r``. Where there are cycles, all is made smaller by a factor that covers
    rounding, which stays in the polytope of forests. A component of more than 2048 nodes with cycles has instead some
    trees that use its edges evenly.

    >>> triangle = np.array([[0, 1], [0, 2], [1, 2]])
    >>> orient = uniform_orientation(3, triangle)
    >>> np.round(orient.reshape(3, 2).sum(axis=1), 9)                # each edge is in two of three trees
    array([0.66666667, 0.66666667, 0.66666667])
    """
    orient = np.zeros(2 * len(edges))
    label = connected_components(coo_array((np.ones(len(edges)), edges.T), (n, n)), directed=False)[1]
    nodes_of, edges_of = np.argsort(label, kind="stable"), np.argsort(label[edges[:, 0]], kind="stable")
    sizes, counts = np.bincount(label), np.bincount(label[edges[:, 0]], minlength=label.max(initial=-1) + 1)
    number = np.empty(n, dtype=np.int64)
    node_at = edge_at = 0
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        nodes, those = nodes_of[node_at : node_at + size], edges_of[edge_at : edge_at + count]
        node_at, edge_at = node_at + size, edge_at + count
        number[nodes] = np.arange(size)
        part = number[edges[those]]
        if count == size - 1:
            found = orientation_of_forest(size, part, np.arange(count))
        else:
            found = _by_currents(size, part) if size <= DENSE else _by_covering(size, part)
        orient[2 * those], orient[2 * those + 1] = found[::2], found[1::2]
    return orient


def _by_currents(n: int, edges: np.ndarray) -> np.ndarray:
    """`uniform_orientation` of a connected graph; ``(L + 11'/n)^-1`` is the pseudo-inverse of ``L`` and a constant."""
    i, j = edges.T
    laplacian = np.full((n, n), 1.0 / n)
    laplacian[np.arange(n), np.arange(n)] += np.bincount(edges.ravel(), minlength=n)
    laplacian[i, j] -= 1.0
    laplacian[j, i] -= 1.0
    inverse = np.linalg.inv(laplacian)
    orient = np.empty(2 * len(edges))
    orient[::2], orient[1::2] = inverse[i, i] - inverse[j, i], inverse[j, j] - inverse[i, j]
    orient = np.maximum(orient, 0.0)
    off = np.abs(
        np.bincount(edges.ravel(), orient, n) - (1.0 - 1.0 / n)
    ).sum()  # each node has a parent, or is the root
    return orient * (1.0 - 1e-12 - 4.0 * off)


def _by_covering(n: int, edges: np.ndarray) -> np.ndarray:
    """Trees of the edges that were used least so far, until all are, each tree as likely as the others."""
    used, total, count = np.zeros(len(edges)), np.zeros(2 * len(edges)), 0
    while count < _COVER or not used.all():
        tree = heaviest_forest(n, edges, -used)
        total += orientation_of_forest(n, edges, tree)
        used[tree] += 1.0
        count += 1
    return total / count


def orientation_of_given(n: int, edges: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """An orientation of given edge probabilities, rounded down to a grid on which they are proved to be in the polytope
    of forests; a `ValueError` where they are not.

    For each node ``r`` the mass of every edge is sent to its ends so that ``r`` receives nothing and the others at most
    one: possible exactly when ``rho(S) <= |S| - 1`` for all ``S`` that hold ``r`` (Martin 1991). A flow in whole
    numbers is exact. The mean over ``r`` is the orientation.
    """
    m = len(edges)
    unit = 2**30 // max(n, 1)  # the sum of all flows is below 2^31
    mass = np.floor(probabilities * unit * (1.0 + 2.0**-40)).astype(np.int64)
    orient = np.zeros(2 * m)
    first, last = m + n, m + n + 1  # nodes: edges, ends, source, sink
    tail = np.concatenate([np.full(m, first), np.arange(m), np.arange(m), m + np.arange(n)])
    head = np.concatenate([np.arange(m), m + edges[:, 0], m + edges[:, 1], np.full(n, last)])
    for r in range(n):
        room = np.full(n, unit)
        room[r] = 0
        capacity = np.concatenate([mass, mass, mass, room]).astype(np.int32)
        flow = maximum_flow(csr_array((capacity, (tail, head)), (m + n + 2,) * 2), first, last)
        if flow.flow_value < mass.sum():
            raise ValueError(
                f"edge_probabilities are not those of forests: some set of nodes with node {r} has more probability on "
                "the edges inside it than it has nodes less one"
            )
        sent = flow.flow.tocsr()
        orient[::2] += np.asarray(sent[np.arange(m), m + edges[:, 0]]).ravel()  # to i, the child
        orient[1::2] += np.asarray(sent[np.arange(m), m + edges[:, 1]]).ravel()
    return orient / (float(n) * unit)
