"""Junction trees: cliques of a triangulated graph joined so that what two of them share lies on all between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from networkx.utils import UnionFind

from cumulant.errors import TooWide
from cumulant.graphical.exact.min_fill import eliminate, min_fill
from cumulant.graphical.exact.orders import elimination_order
from cumulant.graphical.graphs import undirected
from cumulant.graphical.structure import Structure

_LARGE = 2.0**14  # entries of all cliques from which other orders than min-fill are tried


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of variables joined to a tree, or to a forest where the graph falls apart.

    It has the running-intersection property: the cliques that hold a variable are connected. A distribution that
    factorises over the cliques is then ``prod_C p(y_C) / prod_S p(y_S)``, with one separator ``S`` for each edge of the
    tree (Lauritzen and Spiegelhalter 1988). Make one by `of`, `from_graph` or `from_cliques`.

    Attributes
    ----------
    n_variables : int
    cliques : tuple of tuples
        Parents before children. The variables of the separator come first in each.
    parents : tuple of int
        The clique above each, -1 for a root.
    separators : tuple of tuples
        What each clique shares with its parent; empty for a root.

    Examples
    --------
    >>> tree = JunctionTree.of(4, [(0, 1), (1, 2), (2, 3), (3, 0)])  # a cycle gets a chord
    >>> tree.cliques
    ((1, 2, 3), (1, 3, 0))
    >>> tree.separators, tree.largest_table(10)
    (((), (1, 3)), 1000)
    """

    n_variables: int
    cliques: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]
    separators: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, n_variables: int, cliques: Iterable[Sequence[int]], n_states: int = 2) -> "JunctionTree":
        """The tree of the graph that joins the variables of each clique.

        Variables are eliminated one by one, each time one that adds the fewest edges among its neighbours (min-fill;
        Kjaerulff 1990); where that gives large tables, with `n_states` states a variable, in the best order that
        `elimination_order` finds. A graph that is already triangulated keeps its cliques, and the tree is one of
        largest weight, the size of its separators (Jensen and Jensen 1994). Variables in no clique make one of their
        own.
        """
        scopes = _checked(n_variables, cliques)
        steps = min_fill(_neighbours(n_variables, scopes))
        widths = [len(around) for _, around in steps]
        if max(widths) > 3 and sum(float(n_states) ** (width + 1) for width in widths) > _LARGE:
            order = elimination_order(Structure(np.full(n_variables, n_states), scopes)).order
            steps = eliminate(_neighbours(n_variables, scopes), order.tolist())
        return cls._arranged(n_variables, *_clique_tree(steps))

    @classmethod
    def from_graph(cls, graph: Any, n_states: int = 2) -> "JunctionTree":
        """The tree of a networkx graph whose nodes are 0, 1, ..., n - 1.

        >>> import networkx as nx
        >>> JunctionTree.from_graph(nx.path_graph(3)).separators
        ((), (1,))
        """
        graph = undirected(graph)
        n = graph.number_of_nodes()
        if set(graph) != set(range(n)):
            raise ValueError(f"the nodes of graph must be the numbers from 0 to {n - 1}; got {list(graph)!r:.80}")
        return cls.of(n, graph.edges, n_states)

    @classmethod
    def from_cliques(
        cls, n_variables: int, cliques: Sequence[Sequence[int]], edges: Iterable[tuple[int, int]]
    ) -> "JunctionTree":
        """The tree with these cliques and these edges, pairs of numbers of cliques; refused where it is none.

        >>> JunctionTree.from_cliques(3, [(0, 1), (2, 0)], [(0, 1)]).separators
        ((), (0,))
        >>> JunctionTree.from_cliques(3, [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)])
        Traceback (most recent call last):
        ...
        ValueError: the cliques that hold variable 0 must be connected; they are in 2 parts: (0, 1), (0, 2)
        """
        sets = [set(clique) for clique in _checked(n_variables, cliques)]
        pairs = [(int(a), int(b)) for a, b in edges]
        _check_forest(len(sets), pairs)
        shared = [sets[a] & sets[b] for a, b in pairs]
        for v in range(n_variables):
            holders = [tuple(sorted(clique)) for clique in sets if v in clique]
            if not holders:
                raise ValueError(f"variable {v} is in no clique")
            parts = len(holders) - sum(v in both for both in shared)  # in a forest: nodes minus edges
            if parts != 1:
                raise ValueError(
                    f"the cliques that hold variable {v} must be connected; they are in {parts} parts: "
                    f"{', '.join(map(str, holders))}"
                )
        return cls._arranged(n_variables, sets, pairs)

    @classmethod
    def _arranged(cls, n_variables, sets, edges):
        """Parents before children, from the last clique of each part, and separators first in each clique."""
        beside: list[list[int]] = [[] for _ in sets]
        for a, b in edges:
            beside[a].append(b)
            beside[b].append(a)
        place, cliques, parents, separators = {}, [], [], []
        for root in reversed(range(len(sets))):
            waiting = [(root, -1)] if root not in place else []
            while waiting:
                c, parent = waiting.pop()
                place[c] = len(cliques)
                shared = sets[c] & set(cliques[parent]) if parent >= 0 else set()
                separators.append(tuple(sorted(shared)))
                cliques.append((*separators[-1], *sorted(sets[c] - shared)))
                parents.append(parent)
                waiting += [(d, place[c]) for d in reversed(beside[c]) if d not in place]
        return cls(n_variables, tuple(cliques), tuple(parents), tuple(separators))

    def largest_table(self, n_labels: int) -> int:
        """Entries of the largest clique: labels to the power of its variables."""
        return n_labels ** max(map(len, self.cliques), default=0)

    def size(self, n_labels: int) -> int:
        """Entries of all cliques together."""
        return sum(n_labels ** len(clique) for clique in self.cliques)

    def check_width(self, n_labels: int, max_table: int, of: str = "the graph") -> None:
        """Raise `TooWide` where a clique has more than `max_table` entries."""
        if self.largest_table(n_labels) > max_table:
            widest = max(map(len, self.cliques))
            raise TooWide(
                f"exact inference on {of} needs a table of {n_labels}^{widest} = {self.largest_table(n_labels):.3g} "
                f"entries, for a clique of {widest} variables; max_table is {max_table}"
            )

    def homes(self, scopes: Iterable[Sequence[int]]) -> list[int]:
        """The smallest clique that holds each of these sets of variables."""
        holders: list[list[int]] = [[] for _ in range(self.n_variables)]
        for c, clique in enumerate(self.cliques):
            for v in clique:
                holders[v].append(c)
        sets = [set(clique) for clique in self.cliques]
        out = []
        for scope in scopes:
            rarest = min((holders[v] for v in scope), key=len)
            fitting = [c for c in rarest if sets[c].issuperset(scope)]
            if not fitting:
                raise ValueError(f"no clique of the junction tree holds the variables {tuple(map(int, scope))}")
            out.append(min(fitting, key=lambda c: len(self.cliques[c])))
        return out


def _checked(n_variables: int, cliques: Iterable[Sequence[int]]) -> list[list[int]]:
    if isinstance(n_variables, bool) or n_variables < 1:
        raise ValueError(f"n_variables must be at least 1; got {n_variables}")
    out = [[int(v) for v in clique] for clique in cliques]
    for clique in out:
        if not clique or min(clique) < 0 or max(clique) >= n_variables or len(set(clique)) < len(clique):
            raise ValueError(
                f"a clique must be different variables from 0 to {n_variables - 1}, at least one; got {tuple(clique)}"
            )
    return out


def _neighbours(n_variables: int, cliques: list[list[int]]) -> list[set[int]]:
    adjacent: list[set[int]] = [set() for _ in range(n_variables)]
    for clique in cliques:
        for v in clique:
            adjacent[v].update(clique)
            adjacent[v].discard(v)
    return adjacent


def _check_forest(n: int, edges: list[tuple[int, int]]) -> None:
    """Every edge joins two parts that were apart."""
    parts = UnionFind(range(n))
    for a, b in edges:
        if not (0 <= a < n and 0 <= b < n):
            raise ValueError(f"an edge must join two of the {n} cliques, numbered from 0; got {(a, b)}")
        if parts[a] == parts[b]:
            raise ValueError(f"the edges must make a tree or a forest; {(a, b)} closes a cycle")
        parts.union(a, b)


def _clique_tree(order: list[tuple[int, set[int]]]) -> tuple[list[set[int]], list[tuple[int, int]]]:
    """The maximal cliques that an elimination leaves, and the edges between them.

    The clique of a variable, itself and its neighbours, is joined to that of the neighbour that goes first. It is not
    maximal exactly where it is all the neighbours of a variable so joined to it: then it is part of that one's clique.
    """
    rank = {v: r for r, (v, _) in enumerate(order)}
    above = {v: min(around, key=lambda u: rank[u], default=None) for v, around in order}
    larger: dict[int, int] = {}  # a variable whose clique holds all of this one's
    sets, home = [], {}
    for v, around in order:
        if v in larger:
            home[v] = home[larger[v]]
        else:
            home[v] = len(sets)
            sets.append({v, *around})
        up = above[v]
        if up is not None and len(around) == 1 + len(order[rank[up]][1]):
            larger.setdefault(up, v)
    return sets, [(home[v], home[up]) for v, up in above.items() if up is not None and home[v] != home[up]]
