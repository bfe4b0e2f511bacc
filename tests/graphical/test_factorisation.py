from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError
from cumulant.graphical import BayesNet, factorises, maximal_cliques


def random_markov_field(graph, shape, rng):
    """``p(x)`` proportional to a product of random potentials over the maximal cliques."""
    log = np.zeros(shape)
    for clique in maximal_cliques(graph):
        sizes = [size if axis in clique else 1 for axis, size in enumerate(shape)]
        log = log + rng.normal(size=sizes)
    return np.exp(log) / np.exp(log).sum()


def interaction(log_p, subset, states, reference):
    """``lambda_S(x_S)`` straight from its definition, as a signed sum over the subsets of S."""
    total = 0.0
    for k in range(len(subset) + 1):
        for kept in combinations(range(len(subset)), k):
            x = list(reference)
            for j in kept:
                x[subset[j]] = states[j]
            total += (-1.0) ** (len(subset) - k) * log_p[tuple(x)]
    return total


@pytest.mark.parametrize("seed", range(8))
def test_a_product_over_the_cliques_factorises_and_over_no_smaller_graph(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(4, 0.6, seed=seed)
    p = random_markov_field(graph, (2, 3, 2, 3), rng)
    assert factorises(p, graph)
    assert factorises(p, graph, reference=(1, 2, 0, 1))
    for edge in graph.edges:
        smaller = graph.copy()
        smaller.remove_edge(*edge)
        verdict = factorises(p, smaller)
        assert not verdict
        assert verdict.violation > 1e-3


@pytest.mark.parametrize("reference", [(0, 0, 0, 0), (1, 2, 1, 0)])
def test_the_violation_is_the_largest_interaction_of_the_definition(reference):
    rng = np.random.default_rng(3)
    shape = (2, 3, 2, 2)
    p = rng.dirichlet(np.ones(24)).reshape(shape)
    graph = nx.Graph([(0, 1), (1, 2)])
    graph.add_node(3)
    worst = 0.0
    for k in range(2, 5):
        for subset in combinations(range(4), k):
            if all(graph.has_edge(a, b) for a, b in combinations(subset, 2)):
                continue
            others = [[s for s in range(shape[i]) if s != reference[i]] for i in subset]
            worst = max(worst, *(abs(interaction(np.log(p), subset, states, reference)) for states in product(*others)))
    verdict = factorises(p, graph, reference=reference)
    assert_allclose(verdict.violation, worst, rtol=1e-10)
    attained = interaction(np.log(p), verdict.variables, verdict.states, reference)
    assert_allclose(abs(attained), worst, rtol=1e-10)


def test_everything_factorises_over_a_complete_graph():
    p = np.random.default_rng(0).dirichlet(np.ones(12)).reshape(2, 3, 2)
    verdict = factorises(p, nx.complete_graph(3))
    assert verdict
    assert verdict.violation == 0.0
    assert str(verdict) == "factorises: largest violation 0 nats"


def test_three_way_interaction_without_a_triangle_is_found():
    """Any two of the variables are independent; with weights 3 to 1 for even parity the triple gives 4 log 3."""
    sign = np.array([1.0, -1.0])
    p = (1 + 0.5 * np.einsum("a,b,c->abc", sign, sign, sign)) / 8
    assert_allclose(p.sum(axis=2), 0.25)
    verdict = factorises(p, nx.path_graph(3))
    assert not verdict
    assert (verdict.variables, verdict.states) == ((0, 1, 2), (1, 1, 1))
    assert_allclose(verdict.violation, 4 * np.log(3), rtol=1e-12)


def test_counts_and_names_are_read():
    counts = np.array([[10, 20], [30, 60]])
    empty = nx.Graph()
    empty.add_nodes_from("ab")
    assert factorises(counts, empty, variables="ab")
    assert str(factorises(counts + np.eye(2), empty, variables="ab")).endswith("at a = 1, b = 1")


def test_zeros_are_refused_with_their_place_and_the_reason():
    with pytest.raises(DomainError, match=r"Hammersley and Clifford.*p is 0 at 0 = 0, 1 = 1"):
        factorises([[0.5, 0.0], [0.25, 0.25]], [(0, 1)])


def test_the_counterexample_of_moussouris_shows_why_zeros_are_refused():
    """Eight states of a 4-cycle: globally Markov, and yet no product of potentials (Moussouris 1974)."""
    support = {
        (0, 0, 0, 0),
        (1, 0, 0, 0),
        (1, 1, 0, 0),
        (1, 1, 1, 0),
        (0, 0, 0, 1),
        (0, 0, 1, 1),
        (0, 1, 1, 1),
        (1, 1, 1, 1),
    }
    p = np.zeros((2,) * 4)
    for x in support:
        p[x] = 1 / 8
    with pytest.raises(DomainError, match="positive"):
        factorises(p, nx.cycle_graph(4))


def random_net(graph, states, rng):
    parents = {i: sorted(graph.predecessors(i)) for i in graph}
    tables = {
        i: rng.dirichlet(np.ones(states[i]), size=tuple(states[j] for j in parents[i])).reshape(
            *(states[j] for j in parents[i]), states[i]
        )
        for i in sorted(graph)
    }
    return BayesNet(tables, parents)


def random_dag(n, density, seed):
    skeleton = nx.gnp_random_graph(n, density, seed=seed)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from((min(e), max(e)) for e in skeleton.edges)
    return graph


@pytest.mark.parametrize("seed", range(6))
def test_a_network_factorises_over_its_dag_and_its_moral_graph(seed):
    graph = random_dag(4, 0.5, seed)
    p = random_net(graph, [2, 3, 2, 2], np.random.default_rng(seed)).table()
    assert factorises(p, graph)
    assert factorises(p, nx.moral_graph(graph))
    for edge in graph.edges:
        smaller = graph.copy()
        smaller.remove_edge(*edge)
        assert not factorises(p, smaller)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_every_table_factorises_over_a_complete_dag(order):
    p = np.random.default_rng(1).dirichlet(np.full(12, 0.3)).reshape(2, 3, 2)
    graph = nx.DiGraph(list(combinations(order, 2)))
    assert factorises(p, graph).violation < 1e-12


def test_zeros_are_fine_for_a_directed_graph():
    copied = np.array([[0.5, 0.0], [0.0, 0.5]])  # the second variable is the first
    assert factorises(copied, nx.DiGraph([(0, 1)]))
    apart = nx.DiGraph()
    apart.add_nodes_from([0, 1])
    verdict = factorises(copied, apart)
    assert not verdict
    assert verdict.violation == np.inf
    assert copied[verdict.states] == 0.0


def test_the_collider_and_the_chain_are_told_apart():
    rng = np.random.default_rng(0)
    collider = nx.DiGraph([(0, 1), (2, 1)])
    chain = nx.DiGraph([(0, 1), (1, 2)])
    fork = nx.DiGraph([(1, 0), (1, 2)])
    p = random_net(chain, [2, 2, 2], rng).table()
    assert factorises(p, chain)
    assert factorises(p, fork)  # the same independence: no table can tell these two apart
    assert not factorises(p, collider)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"p": [[0.5, -0.5], [0.5, 0.5]], "graph": [(0, 1)]}, "not negative"),
        ({"p": [[0.5, np.nan], [0.5, 0.5]], "graph": [(0, 1)]}, "finite"),
        ({"p": np.zeros((2, 2)), "graph": [(0, 1)]}, "positive finite sum"),
        ({"p": 1.0, "graph": [(0, 1)]}, "one axis"),
        ({"p": np.ones((2, 2)), "graph": [("a", "b")]}, "'a' is not a variable.*variables="),
        ({"p": np.ones((2, 2)), "graph": [("a", "b")], "variables": "aa"}, "name each of the 2 axes"),
        ({"p": np.ones((2, 2)), "graph": [(0, 1)], "reference": (0, 5)}, "reference"),
        ({"p": np.ones((2, 2)), "graph": nx.DiGraph([(0, 1)]), "reference": (0, 0)}, "reference"),
        ({"p": np.ones((2, 2)), "graph": nx.DiGraph([(0, 1), (1, 0)])}, "cycle"),
        ({"p": np.ones((2, 2)), "graph": [(0, 1)], "tol": -1.0}, "tol"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, words):
    with pytest.raises(ValueError, match=words):
        factorises(**arguments)
