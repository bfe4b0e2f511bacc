from itertools import chain, combinations

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError
from cumulant.graphical import BayesNet, backdoor_adjustment, backdoor_criterion

# Charig and others (1986): treatment (A, B), size (small, large), healed (yes, no).
KIDNEY = np.array([[[81, 87 - 81], [192, 263 - 192]], [[234, 270 - 234], [55, 80 - 55]]])
NAMES = ("treatment", "size", "healed")
CONFOUNDED = [("size", "treatment"), ("size", "healed"), ("treatment", "healed")]


def test_kidney_stones():
    adjusted = backdoor_adjustment(KIDNEY, "treatment", "healed", ["size"], variables=NAMES, graph=CONFOUNDED)
    naive = backdoor_adjustment(KIDNEY, "treatment", "healed", variables=NAMES)
    assert_allclose(adjusted[:, 0], [0.832546, 0.778875], atol=5e-7)
    assert_allclose(naive[:, 0], [0.78, 0.825714], atol=5e-7)
    assert adjusted[0, 0] > adjusted[1, 0]
    assert naive[0, 0] < naive[1, 0]
    assert_allclose(adjusted.sum(axis=1), 1.0, rtol=1e-14)


def test_kidney_stones_by_cutting_the_arrow():
    """The adjustment is the marginal of the network without the arrow from size to treatment."""
    p = KIDNEY / KIDNEY.sum()
    net = BayesNet(
        {
            "size": p.sum(axis=(0, 2)),
            "treatment": (p.sum(axis=2) / p.sum(axis=(0, 2))).T,
            "healed": p / p.sum(axis=2, keepdims=True),
        },
        parents={"treatment": ["size"], "healed": ["treatment", "size"]},
    )
    adjusted = backdoor_adjustment(net, "treatment", "healed", ["size"])
    for treatment in (0, 1):
        assert_allclose(adjusted[treatment], net.do({"treatment": treatment}).marginals()["healed"], rtol=1e-12)


def test_without_the_confounder_the_graph_refuses():
    with pytest.raises(DomainError, match=r"conditioning without adjustment does not give the effect.*stays open"):
        backdoor_adjustment(KIDNEY, "treatment", "healed", variables=NAMES, graph=CONFOUNDED)


def test_with_the_arrow_reversed_adjusting_is_refused_and_conditioning_is_the_effect():
    mediated = [("treatment", "size"), ("size", "healed"), ("treatment", "healed")]
    with pytest.raises(DomainError, match="'size' is a descendant of 'treatment'"):
        backdoor_adjustment(KIDNEY, "treatment", "healed", ["size"], variables=NAMES, graph=mediated)
    effect = backdoor_adjustment(KIDNEY, "treatment", "healed", variables=NAMES, graph=mediated)
    assert_allclose(effect[:, 0], [0.78, 0.825714], atol=5e-7)


def open_paths(graph, x, y, z):
    """Paths between x and y with an arrow into x that z leaves open: the definition, path by path."""
    found = []
    for path in nx.all_simple_paths(graph.to_undirected(), x, y):
        if not graph.has_edge(path[1], path[0]):
            continue
        blocked = False
        for before, middle, after in zip(path, path[1:], path[2:], strict=False):
            collider = graph.has_edge(before, middle) and graph.has_edge(after, middle)
            if collider:
                blocked |= not ({middle} | nx.descendants(graph, middle)) & set(z)
            else:
                blocked |= middle in z
        if not blocked:
            found.append(path)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_the_criterion_is_that_of_the_definition(seed):
    skeleton = nx.gnp_random_graph(6, 0.45, seed=seed)
    order = np.random.default_rng(seed).permutation(6)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(6))
    graph.add_edges_from((a, b) if order[a] < order[b] else (b, a) for a, b in skeleton.edges)
    subsets = chain.from_iterable(combinations(range(2, 6), k) for k in range(5))
    for z in subsets:
        expected = not (set(z) & nx.descendants(graph, 0)) and not open_paths(graph, 0, 1, z)
        assert bool(backdoor_criterion(graph, 0, 1, z)) == expected, (list(graph.edges), z)


def random_net(graph, rng):
    parents = {i: sorted(graph.predecessors(i)) for i in sorted(graph)}
    return BayesNet({i: rng.dirichlet(np.ones(2), size=(2,) * len(parents[i])) for i in sorted(graph)}, parents)


@pytest.mark.parametrize("seed", range(8))
def test_every_admissible_set_gives_the_effect_of_the_intervention(seed):
    rng = np.random.default_rng(seed)
    skeleton = nx.gnp_random_graph(5, 0.6, seed=seed)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(5))
    graph.add_edges_from((min(e), max(e)) for e in skeleton.edges)
    net = random_net(graph, rng)
    x, y = 2, 4
    truth = np.stack([net.do({x: state}).marginals()[y] for state in range(2)])
    admissible = 0
    for z in chain.from_iterable(combinations((0, 1, 3), k) for k in range(4)):
        if backdoor_criterion(net.graph, x, y, z):
            assert_allclose(backdoor_adjustment(net, x, y, z), truth, rtol=1e-10)
            admissible += 1
    assert admissible  # the parents of x always are


def test_a_collider_must_not_be_adjusted_for():
    """M-shaped bias: z is a common effect of two causes, one of x and one of y (Pearl 2009, section 11.3.3)."""
    graph = nx.DiGraph([("u", "x"), ("u", "z"), ("v", "z"), ("v", "y"), ("x", "y")])
    assert backdoor_criterion(graph, "x", "y")
    assert not backdoor_criterion(graph, "x", "y", ["z"])
    assert backdoor_criterion(graph, "x", "y", ["z", "u"])


def test_a_stratum_without_one_treatment_is_refused_by_name():
    counts = KIDNEY.copy()
    counts[1, 0] = 0
    with pytest.raises(DomainError, match="treatment = 1 never occurs where size = 0"):
        backdoor_adjustment(counts, "treatment", "healed", ["size"], variables=NAMES)


def test_an_empty_stratum_does_no_harm():
    counts = np.concatenate([KIDNEY, np.zeros((2, 1, 2))], axis=1)
    adjusted = backdoor_adjustment(counts, "treatment", "healed", "size", variables=NAMES)
    assert_allclose(adjusted[:, 0], [0.832546, 0.778875], atol=5e-7)


def test_bad_questions_are_refused():
    with pytest.raises(ValueError, match="'stone' is not a variable"):
        backdoor_adjustment(KIDNEY, "stone", "healed", variables=NAMES)
    with pytest.raises(ValueError, match="must all be different"):
        backdoor_adjustment(KIDNEY, 0, 0)
    with pytest.raises(ValueError, match="must all be different"):
        backdoor_criterion(CONFOUNDED, "treatment", "healed", ["healed"])
    with pytest.raises(ValueError, match="not a node"):
        backdoor_criterion(CONFOUNDED, "treatment", "age")
    with pytest.raises(ValueError, match="cycle"):
        backdoor_criterion([(0, 1), (1, 2), (2, 0)], 0, 1)
    with pytest.raises(ValueError, match="brings its variables"):
        backdoor_adjustment(BayesNet({"a": [0.5, 0.5]}), "a", "b", graph=CONFOUNDED)
