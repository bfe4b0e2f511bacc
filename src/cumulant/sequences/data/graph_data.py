"""Labelled graphs as arrays: factors of several kinds, each on some variables of a graph, and labels by variable."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from cumulant.graphical.exact.junction_tree import JunctionTree
from cumulant.sequences.data.sequence_data import csr_matrix, flat_labels

__all__ = ["Factors", "GraphData"]


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of one kind: row ``f`` of `features` belongs to the variables ``variables[f]``, in this order.

    Parameters
    ----------
    variables : array of int (F, r)
        Numbered over all graphs. ``r`` is 1 for nodes, 2 for edges, 3 for triangles, and so on.
    features : CSR matrix or array (F, A)
    """

    variables: Any
    features: Any

    def __post_init__(self):
        features = csr_matrix(self.features, "features")
        variables = _whole_numbers(self.variables, "variables")
        if variables.ndim != 2 or len(variables) != features.shape[0] or variables.shape[1] < 1:
            raise ValueError(
                f"variables must be a row of one or more for each of the {features.shape[0]} rows of features; got "
                f"shape {variables.shape}"
            )
        object.__setattr__(self, "variables", variables)
        object.__setattr__(self, "features", features)

    def __len__(self) -> int:
        return len(self.variables)

    @property
    def arity(self) -> int:
        """How many variables a factor has."""
        return self.variables.shape[1]

    @property
    def n_features(self) -> int:
        """How many features."""
        return self.features.shape[1]


@dataclass(frozen=True, eq=False)
class GraphData:
    """Graphs: the variables of graph ``i`` are ``offsets[i]:offsets[i+1]``, and factors see features of some of them.

    With labels ``y``, a factor of kind ``k`` on the variables ``C`` scores ``features . W_k[:, y_C]``; each kind has
    weights of its own.

    Parameters
    ----------
    offsets : array of int (n + 1,)
        Where the variables of graphs begin, from 0 to N. Every graph has at least one.
    factors : mapping of str to Factors
        By kind.
    labels : array (N,), optional
        A label for each variable: numbers or strings.
    trees : sequence of JunctionTree, optional
        One for each graph, whose variables count from 0. They are made from the factors where none are given.

    Examples
    --------
    >>> nodes = Factors([[0], [1], [2], [3]], np.eye(4))
    >>> triangles = Factors([[0, 1, 2]], [[1.0]])
    >>> GraphData([0, 3, 4], {"nodes": nodes, "triangles": triangles}, labels=["a", "b", "a", "a"])
    2 graphs, 4 variables, 4 nodes, 1 triangles, with labels
    """

    offsets: Any
    factors: Mapping[str, Factors]
    labels: Any = None
    trees: Sequence[JunctionTree] | None = None

    def __post_init__(self):
        offsets = _whole_numbers(self.offsets, "offsets")
        if offsets.ndim != 1 or offsets.size < 2 or offsets[0] != 0 or np.any(np.diff(offsets) < 1):
            raise ValueError(
                f"offsets must rise from 0 by at least one for each graph, and be one more than there are graphs; got "
                f"{self.offsets!r:.80}"
            )
        object.__setattr__(self, "offsets", offsets)
        for kind, factors in self.factors.items():
            self._check_factors(kind, factors)
        if self.labels is not None:
            labels = np.asarray(self.labels)
            if labels.shape != (self.n_variables,):
                raise ValueError(f"labels must be one for each of the {self.n_variables} variables; got {labels.shape}")
            object.__setattr__(self, "labels", labels)
        if self.trees is not None:
            trees = tuple(self.trees)
            if [tree.n_variables for tree in trees] != self.sizes.tolist():
                raise ValueError("trees must be a junction tree for each graph, with as many variables")
            object.__setattr__(self, "trees", trees)
        if not self.factors:
            raise ValueError("factors must have at least one kind")

    def _check_factors(self, kind: str, factors: Factors) -> None:
        variables = factors.variables
        if variables.size == 0:
            return
        if variables.min() < 0 or variables.max() >= self.n_variables:
            bad = int(np.flatnonzero(np.any((variables < 0) | (variables >= self.n_variables), axis=1))[0])
            raise ValueError(
                f"factor {bad} of {kind!r} is on the variables {variables[bad].tolist()}; there are "
                f"{self.n_variables}, numbered from 0 over all graphs"
            )
        graphs = self.graph_of(variables)
        apart = np.flatnonzero(np.any(graphs != graphs[:, :1], axis=1))
        if apart.size:
            raise ValueError(
                f"factor {apart[0]} of {kind!r} is on the variables {variables[apart[0]].tolist()}, of several graphs"
            )
        ordered = np.sort(variables, axis=1)
        twice = np.flatnonzero(np.any(ordered[:, 1:] == ordered[:, :-1], axis=1))
        if twice.size:
            raise ValueError(
                f"factor {twice[0]} of {kind!r} has a variable twice: {variables[twice[0]].tolist()} (a self-loop?)"
            )

    @classmethod
    def from_graphs(cls, graphs: Any, labels: Any = None, bias: bool = True) -> "GraphData":
        """Graphs ``(node_features, edges)`` or ``(node_features, edges, edge_features)``, and labels of their nodes.

        `node_features` is an array or sparse matrix ``(T, A)``, `edges` are pairs of nodes from 0 to ``T - 1``, and
        `edge_features` have a row for each edge; without them an edge has one feature, which is 1. With `bias` every
        node has one more, which is 1, and so has every edge that has features. Graphs without nodes are left out.

        >>> GraphData.from_graphs([(np.eye(3), [(0, 1), (1, 2)]), (np.eye(3)[:1], [])])
        2 graphs, 4 variables, 4 nodes, 2 edges
        """
        graphs = [_graph(i, graph) for i, graph in enumerate(_listed(graphs))]
        sizes = np.array([nodes.shape[0] for nodes, _, _ in graphs], dtype=np.int64)
        if not sizes.any():
            raise ValueError(f"there must be at least one graph with a node; got {len(sizes)} graphs without")
        labels = None if labels is None else flat_labels(sizes, labels, "graph", "node")
        graphs = [graph for graph, size in zip(graphs, sizes, strict=True) if size]
        offsets = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        if len({features is None for _, _, features in graphs}) > 1:
            bare = [features is None for _, _, features in graphs].index(True)
            raise ValueError(f"graph {bare} has no edge features, and others have")
        nodes = _stacked([nodes for nodes, _, _ in graphs], "node features")
        edges = np.concatenate([pairs + first for (_, pairs, _), first in zip(graphs, offsets[:-1], strict=True)])
        if graphs[0][2] is None:
            between: Any = np.ones((len(edges), 1))
        else:
            between = _stacked([features for _, _, features in graphs], "edge features")
            between = _with_one(between) if bias else between
        factors = {
            "nodes": Factors(np.arange(offsets[-1])[:, None], _with_one(nodes) if bias else nodes),
            "edges": Factors(edges, between),
        }
        return cls(offsets, factors, labels)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_variables(self) -> int:
        """The number of variables of all graphs."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> np.ndarray:
        """The number of variables of each graph."""
        return np.diff(self.offsets)

    def graph_of(self, variables: np.ndarray) -> np.ndarray:
        """Which graph each of these variables belongs to."""
        return np.searchsorted(self.offsets, variables, side="right") - 1

    def split(self, values: Any) -> list:
        """Values for each variable, as a list of one array for each graph."""
        return np.split(np.asarray(values), self.offsets[1:-1])

    def with_labels(self, labels: Any) -> "GraphData":
        """The same graphs with these labels: for each variable, or a list of them for each graph."""
        return GraphData(self.offsets, self.factors, flat_labels(self.sizes, labels, "graph", "node"), self.trees)

    def __repr__(self):
        kinds = "".join(f", {len(factors)} {kind}" for kind, factors in self.factors.items())
        labelled = "" if self.labels is None else ", with labels"
        return f"{len(self)} graphs, {self.n_variables} variables{kinds}{labelled}"


# Checks of arguments --------------------------------------------------------------------------------------------------


def _listed(graphs: Any) -> list:
    if isinstance(graphs, str | bytes | Mapping) or not isinstance(graphs, Iterable):
        raise TypeError(f"graphs must be a list of (node_features, edges), or GraphData; got {type(graphs).__name__}")
    return list(graphs)


def listed_graphs(graphs: Any) -> tuple[Any, np.ndarray]:
    """The graphs as a list or `GraphData`, and the number of nodes of each."""
    if isinstance(graphs, GraphData):
        return graphs, graphs.sizes
    graphs = _listed(graphs)
    return graphs, np.array([_graph(i, graph)[0].shape[0] for i, graph in enumerate(graphs)], dtype=np.int64)


def _graph(i: int, graph: Any) -> tuple[Any, np.ndarray, Any]:
    if not isinstance(graph, tuple | list) or len(graph) not in (2, 3):
        raise ValueError(
            f"graph {i} must be (node_features, edges) or (node_features, edges, edge_features); got "
            f"{type(graph).__name__} {graph!r:.60}"
        )
    nodes = np.zeros((0, 0)) if isinstance(graph[0], list) and not graph[0] else graph[0]
    nodes = csr_matrix(nodes, f"node features of graph {i}")
    size = nodes.shape[0]
    edges = _whole_numbers(graph[1], f"edges of graph {i}")
    edges = edges.reshape(0, 2) if edges.size == 0 else edges
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise ValueError(f"edges of graph {i} must be pairs of nodes; got shape {edges.shape}")
    for u, v in edges[np.any((edges < 0) | (edges >= size), axis=1) | (edges[:, 0] == edges[:, 1])].tolist():
        if u == v:
            raise ValueError(f"edge ({u}, {v}) of graph {i} joins a node to itself")
        raise ValueError(f"edge ({u}, {v}) of graph {i} needs nodes that are not there: it has nodes 0 to {size - 1}")
    features = None if len(graph) == 2 or graph[2] is None else csr_matrix(graph[2], f"edge features of graph {i}")
    if features is not None and features.shape[0] != len(edges):
        raise ValueError(f"graph {i} has {len(edges)} edges and {features.shape[0]} rows of edge features")
    return nodes, edges, features


def _whole_numbers(values: Any, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise ValueError(f"{name} must be whole numbers; got {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int64)


def _stacked(matrices: list, name: str) -> Any:
    widths = [matrix.shape[1] for matrix in matrices]
    for i, width in enumerate(widths):
        if width != widths[0]:
            raise ValueError(f"{name} of graph {i} have {width} columns, and those of graph 0 have {widths[0]}")
    return sparse.vstack(matrices, format="csr")


def _with_one(matrix: Any) -> Any:
    return sparse.hstack([matrix, np.ones((matrix.shape[0], 1))], format="csr")
