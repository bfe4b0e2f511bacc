"""Colouring: classes of variables of which no two are neighbours, so that each class can be updated at once."""

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from cumulant import checks
from cumulant.graphical.samplers.colouring_kernels import greedy, two_colours

_STRATEGIES = ("auto", "dsatur", "greedy")
_SMALL = 5000  # vertices up to which DSATUR, which is in Python, is worth its time


@dataclass(frozen=True)
class Neighbours:
    """The neighbours of each variable: of ``i``, ``neighbours[indptr[i] : indptr[i + 1]]``, by the edges ``edge[...]``.

    >>> Neighbours.of(3, [(0, 1), (1, 2)]).neighbours.tolist()
    [1, 0, 2, 1]
    """

    indptr: np.ndarray
    neighbours: np.ndarray
    edge: np.ndarray

    @classmethod
    def of(cls, n: int, edges: Any) -> "Neighbours":
        """From pairs of variables, shape (edges, 2)."""
        pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        ends = np.concatenate([pairs, pairs[:, ::-1]])
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(pairs.ravel(), minlength=n))]).astype(np.int64)
        return cls(indptr, ends[order, 1].astype(np.int32), order % max(len(pairs), 1))


def colouring(n: int, edges: Any, strategy: str = "auto") -> np.ndarray:
    """A colour 0, 1, 2, ... for each of `n` variables, such that no edge joins two of the same colour.

    ``"auto"`` uses two colours where the graph allows it (it is bipartite), else DSATUR (Brélaz 1979: next comes the
    vertex whose neighbours have most colours), or, beyond 5,000 variables, the greedy rule with vertices by descending
    degree, which needs at most one colour more than the largest degree. The answer is checked against every edge.

    Examples
    --------
    >>> colouring(4, [(0, 1), (1, 2), (2, 3)]).tolist()
    [0, 1, 0, 1]
    >>> int(colouring(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]).max()) + 1
    3
    """
    checks.choice("strategy", strategy, _STRATEGIES)
    checks.whole("n", n, 0)
    pairs = checks.real_array("edges", edges)
    if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2 or np.any(pairs != np.floor(pairs))):
        raise ValueError(f"edges must be pairs of whole numbers; got shape {pairs.shape}")
    pairs = pairs.astype(np.int64).reshape(-1, 2)
    if pairs.size and (pairs.min() < 0 or pairs.max() >= n or (pairs[:, 0] == pairs[:, 1]).any()):
        raise ValueError(f"edges must join different variables from 0 to n - 1, with n = {n}")
    if n == 0:
        return np.zeros(0, np.int64)
    graph = Neighbours.of(n, pairs)
    colours = two_colours(graph.indptr, graph.neighbours) if strategy == "auto" else np.full(n, -1)
    if colours[0] < 0 and (strategy == "dsatur" or (strategy == "auto" and n <= _SMALL)):
        named = nx.Graph()
        named.add_nodes_from(range(n))
        named.add_edges_from((i, j) for i, j in pairs.tolist())
        found = nx.greedy_color(named, "DSATUR")
        colours = np.array([found[v] for v in range(n)], dtype=np.int64)
    elif colours[0] < 0:
        colours = greedy(np.argsort(-np.diff(graph.indptr), kind="stable"), graph.indptr, graph.neighbours)
    if (colours[pairs[:, 0]] == colours[pairs[:, 1]]).any():
        raise AssertionError("an edge joins two variables of the same colour: this is a fault of colouring")
    return colours
