from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from cumulant.graphical import maximal_cliques


def brute_force_cliques(graph):
    """Definition 2.3.2 of Le Priol (2021), by looking at every subset of the nodes."""
    nodes = sorted(graph)
    subsets = [set(s) for k in range(1, len(nodes) + 1) for s in combinations(nodes, k)]
    cliques = [s for s in subsets if all(graph.has_edge(a, b) for a, b in combinations(s, 2))]
    return sorted(tuple(sorted(c)) for c in cliques if not any(c < other for other in cliques))


@pytest.mark.parametrize("seed", range(12))
def test_the_maximal_cliques_are_those_of_the_definition(seed):
    graph = nx.gnp_random_graph(7, 0.2 + 0.06 * seed, seed=seed)
    assert maximal_cliques(graph) == brute_force_cliques(graph)


def test_an_edge_array_is_a_graph():
    cliques = maximal_cliques(np.array([[0, 1], [1, 2], [0, 2]]))
    assert cliques == [(0, 1, 2)]
    assert all(type(node) is int for node in cliques[0])


def test_nodes_that_cannot_be_compared_are_sorted_by_name():
    assert maximal_cliques([("a", 1), (1, "b")]) == [(1, "a"), (1, "b")]


def test_an_isolated_node_is_a_clique_and_no_graph_has_none():
    graph = nx.Graph([(0, 1)])
    graph.add_node(2)
    assert maximal_cliques(graph) == [(0, 1), (2,)]
    assert maximal_cliques([]) == []


@pytest.mark.parametrize(
    ("graph", "error", "words"),
    [
        (nx.DiGraph([(0, 1)]), TypeError, "undirected"),
        (nx.MultiGraph([(0, 1), (0, 1)]), TypeError, "multigraph"),
        ([(0, 0)], ValueError, "itself"),
        ([(0, 1, 2)], ValueError, r"pair.*\(0, 1, 2\)"),
        (7, TypeError, "int"),
    ],
)
def test_what_is_no_undirected_graph_is_refused(graph, error, words):
    with pytest.raises(error, match=words):
        maximal_cliques(graph)
