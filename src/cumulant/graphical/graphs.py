"""Graphs from networkx objects or edges, and their maximal cliques."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import networkx as nx


def undirected(graph: Any, name: str = "graph") -> nx.Graph:
    """An undirected networkx graph from one, or from pairs of nodes. Self-loops and directed graphs are refused."""
    graph = _read(graph, nx.Graph, name)
    if graph.is_directed():
        raise TypeError(f"{name} must be undirected; got a directed graph (networkx.moral_graph makes one of a DAG)")
    return _without_loops(graph, name)


def directed(graph: Any, name: str = "graph") -> nx.DiGraph:
    """A directed acyclic networkx graph from one, or from pairs (parent, child). A cycle is refused and named."""
    graph = _read(graph, nx.DiGraph, name)
    if not graph.is_directed():
        raise TypeError(f"{name} must be a directed acyclic graph; got an undirected one")
    if not nx.is_directed_acyclic_graph(_without_loops(graph, name)):
        cycle = [edge[0] for edge in nx.find_cycle(graph)]
        raise ValueError(f"{name} must have no cycle; it has {' -> '.join(map(str, [*cycle, cycle[0]]))}")
    return graph


def parents_to_graph(parents: Mapping[Hashable, tuple[Hashable, ...]]) -> nx.DiGraph:
    """The DAG with an arrow to each variable from each of its parents; an unknown parent is refused."""
    graph = nx.DiGraph()
    graph.add_nodes_from(parents)
    for child, above in parents.items():
        if isinstance(above, str):
            raise ValueError(f"the parents of {child!r} must be a list of names; got {above!r}")
        for parent in above:
            if parent not in parents:
                raise ValueError(f"{child!r} has the parent {parent!r}, which is not one of the variables")
        if len(set(above)) != len(above):
            raise ValueError(f"the parents of {child!r} must be different variables; got {above}")
        graph.add_edges_from((parent, child) for parent in above)
    return directed(graph, "the graph of the parents")


def maximal_cliques(graph: Any) -> list[tuple]:
    """The cliques of an undirected graph that lie in no larger one, each sorted, in sorted order.

    A distribution factorises along the graph when ``p(x) = prod_C psi_C(x_C)`` over these cliques (Le Priol 2021,
    definitions 2.3.1 to 2.3.3). They are found by the algorithm of Bron and Kerbosch (1973); there can be exponentially
    many.

    Parameters
    ----------
    graph : networkx.Graph or iterable of pairs
        Pairs of nodes are edges; a node without an edge needs a networkx graph.

    Examples
    --------
    >>> maximal_cliques([(0, 1), (1, 2), (2, 0), (2, 3)])
    [(0, 1, 2), (2, 3)]
    """
    cliques = [_sorted(clique) for clique in nx.find_cliques(undirected(graph))]
    return list(_sorted(cliques))


def _sorted(items: Iterable) -> tuple:
    """Sorted as they are where they can be compared, else by their names."""
    items = list(items)
    try:
        return tuple(sorted(items))
    except TypeError:
        return tuple(sorted(items, key=str))


def _read(graph: Any, kind: type, name: str) -> Any:
    if isinstance(graph, nx.Graph):
        if graph.is_multigraph():
            raise TypeError(f"{name} must not have parallel edges; got a multigraph")
        return graph
    try:
        pairs = [tuple(edge) for edge in graph]
    except TypeError:
        raise TypeError(f"{name} must be a networkx graph or pairs of nodes; got {type(graph).__name__}") from None
    wrong = [pair for pair in pairs if len(pair) != 2 or not all(isinstance(node, Hashable) for node in pair)]
    if wrong:
        raise ValueError(f"an edge of {name} must be a pair of nodes; got {wrong[0]}")
    # An edge array holds NumPy integers, which print badly and are equal to Python's.
    return kind([tuple(node.item() if hasattr(node, "item") else node for node in pair) for pair in pairs])


def _without_loops(graph: Any, name: str) -> Any:
    loop = next(iter(nx.selfloop_edges(graph)), None)
    if loop is not None:
        raise ValueError(f"{name} must have no edge from a node to itself; it has one at {loop[0]!r}")
    return graph
