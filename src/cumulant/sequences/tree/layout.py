"""Where the tables of junction trees lie in flat arrays, as compiled loops take them.

The table of a clique lists the labels of its variables in C order, the separator's variables first: every entry of the
separator owns a *block*, and marginalising onto it is a sum over consecutive numbers. Maps are left from the entries of
a clique to those of the separator of a child, and to those of a factor. They depend only on which places of the clique
the variables have, and the few that there are lie in one pool. Graphs of the same structure share one tree.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from cumulant.graphical.exact.junction_tree import JunctionTree
from cumulant.sequences.data.graph_data import GraphData


class Layout(NamedTuple):
    """Flat arrays, by graph, by structure, by clique of a structure, and by factor of a structure.

    Where a table, separator or factor begins is counted from the beginning of its graph.
    """

    structures: np.ndarray  # (n,) which structure a graph has
    table_offsets: np.ndarray  # (n + 1,) where the clique tables of a graph begin
    separator_offsets: np.ndarray
    factor_offsets: np.ndarray
    variable_offsets: np.ndarray
    cliques: np.ndarray  # (structures + 1,) where the cliques of a structure begin
    factors: np.ndarray
    tables: np.ndarray  # (cliques,) where the table of a clique begins
    separators: np.ndarray  # where its separator begins; that of a root has one entry
    states: np.ndarray  # entries of the separator
    blocks: np.ndarray  # entries of the table for each of them
    parents: np.ndarray  # the clique above, -1 for a root
    down: np.ndarray  # the map from the parent's entries to those of the separator
    scopes: np.ndarray  # (cliques + 1,) where the variables of a clique begin
    shared: np.ndarray  # how many of them are in the separator
    variables: np.ndarray
    homes: np.ndarray  # (factors,) the clique that a factor is counted in
    widths: np.ndarray  # entries of the factor
    entries: np.ndarray  # the map from the entries of its home to its own
    map_starts: np.ndarray  # (maps,) where a map begins in `maps`
    chunks: np.ndarray  # it has a number for each chunk of this many entries, which
    steps: np.ndarray  # all go there (0), or one after the other from there on (1)
    maps: np.ndarray


class Features(NamedTuple):
    """The features of all factors, graph by graph: a CSR matrix whose columns are places in the flat weights."""

    indptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray


class WeightRows(NamedTuple):
    """The rows of weights that each graph touches, each named once."""

    starts: np.ndarray  # (n + 1,)
    columns: np.ndarray  # where a row begins in the weights
    widths: np.ndarray
    places: np.ndarray  # for each value of `Features`, where its row begins among those of its graph, laid end to end


_OF_CLIQUES = ("tables", "separators", "states", "blocks", "parents", "down", "shared")
_OF_FACTORS = ("homes", "widths", "entries")


class _Pool:
    """Maps from the entries of a clique to those of some of its variables, each pattern once."""

    def __init__(self, n_labels: int):
        self.n_labels, self.known = n_labels, {}
        self.maps, self.chunks, self.steps = [np.zeros(0, dtype=np.int32)], [], []

    def number(self, clique: tuple[int, ...], some: tuple[int, ...]) -> int:
        """The number of the map of `clique` to `some` of its variables, in their order."""
        pattern = (len(clique), *(clique.index(v) for v in some))
        if pattern not in self.known:
            self.known[pattern] = len(self.chunks)
            self._add(*pattern)
        return self.known[pattern]

    def _add(self, size: int, *places: int) -> None:
        k, last = self.n_labels, size - 1
        together = 0  # variables at the end of the clique that are, in this order, at the end of the others too
        while together < len(places) and places[-1 - together] == last - together:
            together += 1
        chunk = k**together if together else k ** (last - max(places, default=-1))
        entry, own = np.arange(0, k**size, chunk), np.zeros(k**size // chunk, dtype=np.int64)
        for place in places:
            own = own * k + entry // k ** (last - place) % k
        self.maps.append(own.astype(np.int32))
        self.chunks.append(chunk)
        self.steps.append(int(together > 0))


class _Structures:
    """The columns of `Layout` that structures have, one structure after the other."""

    def __init__(self, n_labels: int, max_table: int):
        self.n_labels, self.max_table, self.pool, self.known = n_labels, max_table, _Pool(n_labels), {}
        self.cliques: list[tuple] = []  # _OF_CLIQUES
        self.factors: list[tuple] = []  # _OF_FACTORS
        self.variables: list[tuple[int, ...]] = []
        self.first_clique, self.first_factor = [0], [0]
        self.sizes: list[tuple[int, int]] = []  # entries of all tables and separators

    def number(self, i: int, n_variables: int, scopes: tuple, tree: JunctionTree | None) -> int:
        """The number of the structure with these factors; a new one is laid out."""
        key = (n_variables, scopes, tree)
        if key not in self.known:
            self.known[key] = len(self.sizes)
            tree = JunctionTree.of(n_variables, set(scopes), self.n_labels) if tree is None else tree
            tree.check_width(self.n_labels, self.max_table, f"graph {i}")
            self._add(tree, scopes)
        return self.known[key]

    def _add(self, tree: JunctionTree, scopes: tuple) -> None:
        k, first, table, separator = self.n_labels, len(self.cliques), 0, 0
        for clique, parent, shared in zip(tree.cliques, tree.parents, tree.separators, strict=True):
            states, block = k ** len(shared), k ** (len(clique) - len(shared))
            down = self.pool.number(tree.cliques[parent], shared) if parent >= 0 else 0
            above = first + parent if parent >= 0 else -1
            self.cliques.append((table, separator, states, block, above, down, len(shared)))
            table, separator = table + states * block, separator + states
        self.variables += tree.cliques
        for scope, home in zip(scopes, tree.homes(scopes), strict=True):
            self.factors.append((first + home, k ** len(scope), self.pool.number(tree.cliques[home], scope)))
        self.first_clique.append(len(self.cliques))
        self.first_factor.append(len(self.factors))
        self.sizes.append((table, separator))


def lay_out(data: GraphData, n_labels: int, max_table: int) -> tuple[Layout, np.ndarray]:
    """The layout, and the order of factors in it: graph by graph, and as they come, kind after kind, in each."""
    graphs = np.concatenate([data.graph_of(f.variables[:, 0]) for f in data.factors.values()])
    order = np.argsort(graphs, kind="stable")
    factor_offsets = _offsets(np.bincount(graphs, minlength=len(data)))
    first = data.offsets[graphs].tolist()
    scopes = [scope for f in data.factors.values() for scope in f.variables.tolist()]
    scopes = [tuple(v - start for v in scope) for scope, start in zip(scopes, first, strict=True)]
    trees = data.trees or [None] * len(data)
    found = _Structures(n_labels, max_table)
    structures = np.array(
        [
            found.number(i, int(size), tuple(scopes[f] for f in order[factor_offsets[i] : factor_offsets[i + 1]]), tree)
            for i, (size, tree) in enumerate(zip(data.sizes, trees, strict=True))
        ]
    )
    sizes = np.array(found.sizes)[structures]
    cliques = np.array(found.cliques, dtype=np.int64).T.copy()
    factors = np.array(found.factors, dtype=np.int64).reshape(-1, 3).T.copy()
    layout = Layout(
        structures=structures,
        table_offsets=_offsets(sizes[:, 0]),
        separator_offsets=_offsets(sizes[:, 1]),
        factor_offsets=factor_offsets,
        variable_offsets=data.offsets,
        cliques=np.array(found.first_clique),
        factors=np.array(found.first_factor),
        **dict(zip(_OF_CLIQUES, cliques, strict=True)),
        scopes=_offsets([len(clique) for clique in found.variables]),
        variables=np.concatenate([np.array(clique, dtype=np.int64) for clique in found.variables]),
        **dict(zip(_OF_FACTORS, factors, strict=True)),
        map_starts=_offsets([len(own) for own in found.pool.maps[1:]]),
        chunks=np.array(found.pool.chunks, dtype=np.int64),
        steps=np.array(found.pool.steps, dtype=np.int64),
        maps=np.concatenate(found.pool.maps),
    )
    return layout, order


def features_of(data: GraphData, n_labels: int, order: np.ndarray) -> Features:
    """The features of all factors in this order; the weights of a kind are a matrix ``(A, K^r)``, kind after kind."""
    columns, start = [], 0
    for factors in data.factors.values():
        width = n_labels**factors.arity
        columns.append(start + factors.features.indices.astype(np.int64) * width)
        start += factors.n_features * width
    matrices: Any = [factors.features for factors in data.factors.values()]
    together = (
        np.concatenate([matrix.data for matrix in matrices]),
        np.concatenate(columns),
        _offsets(np.concatenate([np.diff(matrix.indptr) for matrix in matrices])),
    )
    matrix: Any = sparse.csr_matrix(together, shape=(len(order), max(start, 1)))[order]
    return Features(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)


def rows_of(layout: Layout, features: Features) -> WeightRows:
    """The rows of weights that each graph touches."""
    counts = np.diff(features.indptr)
    first = layout.factors[layout.structures]  # of the structure of each graph
    within = np.arange(len(counts)) - np.repeat(layout.factor_offsets[:-1], np.diff(layout.factor_offsets))
    widths = layout.widths[np.repeat(first, np.diff(layout.factor_offsets)) + within]
    graph = np.repeat(np.repeat(np.arange(len(first)), np.diff(layout.factor_offsets)), counts)
    order = np.lexsort((features.columns, graph))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(graph[order]) != 0) | (np.diff(features.columns[order]) != 0)
    chosen = order[new]
    own, starts = np.repeat(widths, counts)[chosen], _offsets(np.bincount(graph[chosen], minlength=len(first)))
    ends = _offsets(own)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = (ends[:-1] - ends[starts[graph[chosen]]])[np.cumsum(new) - 1]
    return WeightRows(starts, features.columns[chosen], own, places)


def _offsets(counts: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))])
