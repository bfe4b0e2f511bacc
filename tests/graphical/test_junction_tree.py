"""Junction trees against networkx: cliques, triangulation, running intersection, weight; and what is refused."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cumulant.errors import TooWide
from cumulant.graphical import JunctionTree


def filled(tree):
    """The graph in which the cliques of the tree are cliques."""
    graph = nx.empty_graph(tree.n_variables)
    for clique in tree.cliques:
        graph.add_edges_from(itertools.combinations(clique, 2))
    return graph


def joined(tree):
    graph = nx.empty_graph(len(tree.cliques))
    graph.add_edges_from((c, parent) for c, parent in enumerate(tree.parents) if parent >= 0)
    return graph


def check(tree, graph):
    """All that makes a junction tree of `graph`."""
    chordal, forest = filled(tree), joined(tree)
    assert set(map(frozenset, graph.edges)) <= set(map(frozenset, chordal.edges))
    assert nx.is_forest(forest)
    assert nx.number_connected_components(forest) == nx.number_connected_components(graph)
    assert nx.is_chordal(chordal)
    assert set(map(frozenset, tree.cliques)) == set(map(frozenset, nx.chordal_graph_cliques(chordal)))
    assert len(set(tree.cliques)) == len(tree.cliques)
    for v in range(tree.n_variables):
        holders = [c for c, clique in enumerate(tree.cliques) if v in clique]
        assert nx.is_connected(forest.subgraph(holders))
    for c, (clique, parent, separator) in enumerate(zip(tree.cliques, tree.parents, tree.separators, strict=True)):
        assert parent < c
        assert clique[: len(separator)] == separator
        assert set(separator) == (set(clique) & set(tree.cliques[parent]) if parent >= 0 else set())
    weights = nx.Graph()
    weights.add_nodes_from(range(len(tree.cliques)))
    for a, b in itertools.combinations(range(len(tree.cliques)), 2):
        if shared := len(set(tree.cliques[a]) & set(tree.cliques[b])):
            weights.add_edge(a, b, weight=shared)
    assert sum(map(len, tree.separators)) == nx.maximum_spanning_tree(weights).size("weight")


KNOWN = {  # variables in the largest clique
    "single": (nx.empty_graph(1), 1),
    "chain": (nx.path_graph(7), 2),
    "star": (nx.star_graph(6), 2),
    "triangle": (nx.complete_graph(3), 3),
    "square": (nx.cycle_graph(4), 3),
    "long cycle": (nx.cycle_graph(11), 3),
    "complete": (nx.complete_graph(6), 6),
    "apart": (nx.disjoint_union_all([nx.path_graph(3), nx.cycle_graph(5), nx.empty_graph(2)]), 3),
    "grid": (nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3), ordering="sorted"), 4),
    "wide grid": (nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 20), ordering="sorted"), 4),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_graphs(name):
    graph, widest = KNOWN[name]
    tree = JunctionTree.from_graph(graph)
    check(tree, graph)
    assert max(map(len, tree.cliques)) == widest
    assert tree.largest_table(3) == 3**widest
    assert tree.size(3) == sum(3 ** len(clique) for clique in tree.cliques)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 12), st.floats(0.0, 0.7))
def test_random_graphs(seed, n, density):
    graph = nx.gnp_random_graph(n, density, seed=seed)
    tree = JunctionTree.from_graph(graph)
    check(tree, graph)
    if nx.is_chordal(graph):
        assert filled(tree).number_of_edges() == graph.number_of_edges()


def test_no_fewer_edges_can_be_filled_in_on_small_graphs():
    """Min-fill is greedy; on these it finds the fewest, by trying all orders of elimination."""

    def fill(graph, order):
        graph, added = graph.copy(), 0
        for v in order:
            around = list(graph[v])
            new = [pair for pair in itertools.combinations(around, 2) if not graph.has_edge(*pair)]
            added += len(new)
            graph.add_edges_from(new)
            graph.remove_node(v)
        return added

    for graph in (nx.cycle_graph(6), nx.complete_bipartite_graph(2, 4), nx.wheel_graph(6)):
        fewest = min(fill(graph, order) for order in itertools.permutations(graph))
        found = filled(JunctionTree.from_graph(graph)).number_of_edges() - graph.number_of_edges()
        assert found == fewest


def test_a_tall_grid_gets_the_cliques_of_the_best_order():
    """Min-fill is a poor order for a grid: a sweep has cliques of one more than its height, and no more of them."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(9, 9), ordering="sorted")
    tree = JunctionTree.from_graph(graph, n_states=4)
    check(tree, graph)
    assert max(map(len, tree.cliques)) == 10
    assert tree.size(4) < 4**10 * 81


def test_cliques_of_three_and_variables_without_any():
    tree = JunctionTree.of(6, [(0, 1, 2), (2, 3), (3,), (4, 3)])
    assert {frozenset(c) for c in tree.cliques} == {frozenset(c) for c in [(0, 1, 2), (2, 3), (3, 4), (5,)]}
    homes = tree.homes([(2, 1), (3,), (4, 3), (5,), (0,)])
    assert [set(tree.cliques[c]) for c in homes] == [{0, 1, 2}, tree_set(tree, homes[1]), {3, 4}, {5}, {0, 1, 2}]
    assert len(tree.cliques[homes[1]]) == 2
    with pytest.raises(ValueError, match=r"no clique of the junction tree holds the variables \(0, 4\)"):
        tree.homes([(0, 4)])


def tree_set(tree, c):
    return set(tree.cliques[c])


def test_a_tree_of_ones_own():
    tree = JunctionTree.from_cliques(4, [(0, 1), (1, 2), (3,)], [(1, 0)])
    assert sorted(map(sorted, tree.cliques)) == [[0, 1], [1, 2], [3]]
    assert sorted(tree.separators) == [(), (), (1,)]
    for cliques, edges, message in [
        ([(0, 1), (1, 2), (3,)], [(0, 1), (1, 0)], "closes a cycle"),
        ([(0, 1), (1, 2), (3,)], [(0, 3)], "join two of the 3 cliques"),
        ([(0, 1), (1, 2), (3,)], [], "variable 1 must be connected; they are in 2 parts"),
        ([(0, 1), (1, 2)], [(0, 1)], "variable 3 is in no clique"),
        ([(0, 1), (1, 4), (3,)], [(0, 1)], "variables from 0 to 3"),
        ([(0, 0), (1, 2), (3,)], [], "different variables"),
    ]:
        with pytest.raises(ValueError, match=message):
            JunctionTree.from_cliques(4, cliques, edges)


def test_refusals():
    with pytest.raises(ValueError, match="n_variables must be at least 1"):
        JunctionTree.of(0, [])
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        JunctionTree.from_graph(nx.Graph([("a", "b")]))
    with pytest.raises(ValueError, match="from a node to itself"):
        JunctionTree.from_graph([(0, 1), (1, 1)])
    with pytest.raises(TooWide, match=r"the graph needs a table of 10\^8 = 1e\+08 entries.*max_table is 1000000"):
        JunctionTree.from_graph(nx.complete_graph(8)).check_width(10, 1_000_000)


def test_large_trees_take_no_time():
    star = JunctionTree.of(5001, [(0, v) for v in range(1, 5001)])
    assert len(star.cliques) == 5000
    chain = JunctionTree.of(5000, np.column_stack([np.arange(4999), np.arange(1, 5000)]).tolist())
    assert len(chain.cliques) == 4999
