"""Ising, Potts, Boltzmann machines and pairwise tables as models: families, conditioning, divergences, files."""

import itertools

import jax
import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, FileFormatError
from cumulant.graphical import (
    BayesNet,
    BoltzmannMachine,
    FactorGraph,
    Ising,
    PairwiseMRF,
    Potts,
    complete,
    grid,
    mean_field,
    random_regular,
    spin_glass,
    torus,
)
from cumulant.graphical.exact.lattices import kac_ward, torus_log_partition, transfer_matrix
from tests.graphical.models import distribution, joint, random_model

RNG = np.random.default_rng(7)
EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
MODELS = {
    "ising": (Ising(EDGES, RNG.normal(size=5), RNG.normal(size=4)), (-1, 1)),
    "boltzmann": (BoltzmannMachine(EDGES, RNG.normal(size=5), RNG.normal(size=4)), (0, 1)),
    "potts": (Potts(EDGES, RNG.normal(size=5), RNG.normal(size=(4, 3))), (0, 1, 2)),
    "tables": (PairwiseMRF(RNG.normal(size=(4, 2)), EDGES, RNG.normal(size=(5, 2, 2))), (0, 1)),
}
CASES = pytest.mark.parametrize(("model", "values"), MODELS.values(), ids=MODELS.keys())


def score(model, x):
    """``<theta, T(x)>`` from the definition."""
    if isinstance(model, PairwiseMRF):
        single = sum(model.factors[i][1][x[i]] for i in range(4))
        return single + sum(model.factors[4 + e][1][x[i], x[j]] for e, (i, j) in enumerate(EDGES))
    if isinstance(model, Potts):
        fields = model.fields.reshape(4, 3)
        alike = [x[i] == x[j] for i, j in EDGES]
        return sum(fields[i, x[i]] for i in range(4)) + model.couplings @ alike
    return model.fields @ x + sum(J * x[i] * x[j] for J, (i, j) in zip(model.couplings, EDGES, strict=True))


@CASES
def test_questions_by_enumeration(model, values):
    states = np.array(list(itertools.product(values, repeat=4)))
    scores = np.array([score(model, x) for x in states])
    log_z = np.logaddexp.reduce(scores)
    p = np.exp(scores - log_z)
    assert_allclose(model.log_partition(), log_z, rtol=1e-13)
    assert_allclose(model.log_prob(states), scores - log_z, atol=1e-12)
    assert_allclose(model.family.statistics(states) @ model.theta, scores, atol=1e-12)
    assert_allclose(model.mean(), p @ model.family.statistics(states), atol=1e-12)
    assert_allclose(model.entropy(), -p @ (scores - log_z), atol=1e-12)
    single = [[p[states[:, i] == v].sum() for v in values] for i in range(4)]
    assert_allclose(np.array(model.marginals()), single, atol=1e-12)
    given = model.given({2: values[1]})
    inside = states[:, 2] == values[1]
    assert_allclose(given.log_partition(), np.logaddexp.reduce(scores[inside]), rtol=1e-13)
    assert_allclose(given.mean(), p[inside] @ model.family.statistics(states[inside]) / p[inside].sum(), atol=1e-12)
    assert_allclose(np.exp(given.log_prob(states)).sum(), 1.0)
    assert np.isneginf(given.log_prob(states[~inside])).all()
    x, best = model.map()
    assert_allclose([best, score(model, x)], scores.max())
    family = model.family
    assert_allclose(family.log_prob(states, model.theta), scores - log_z, atol=1e-12)
    assert_allclose(family.to_mean(model.theta), model.mean())
    assert_allclose(family.entropy(model.theta), model.entropy(), atol=1e-12)


@CASES
def test_divergences(model, values):
    family = model.family
    other = family.log_tables(model.theta * 0.5 + 0.1)
    q = FactorGraph.from_flat(model.structure, other)
    states = np.array(list(itertools.product(values, repeat=4)))
    log_p, log_q = model.log_prob(states), q.log_prob(family.states(states))
    expected = np.sum(np.exp(log_p) * (log_p - log_q))
    assert_allclose(model.kl(q), expected, rtol=1e-10)
    assert_allclose(family.kl(model.theta, model.theta * 0.5 + 0.1), expected, rtol=1e-10)
    assert model.kl(model) < 1e-12


def test_divergence_between_models_of_other_factors():
    for seed in range(60):
        p, rng = random_model(3 * seed + 1), np.random.default_rng(seed)
        sizes = p.cardinalities.tolist()
        q = FactorGraph(sizes, [(tuple(range(len(sizes)))[:3], rng.normal(size=sizes[:3]))])
        log_p, log_q = (joint(sizes, m.factors) - distribution(joint(sizes, m.factors))[0] for m in (p, q))
        assert_allclose(p.kl(q), np.sum(np.exp(log_p) * (log_p - log_q)), atol=1e-9)
    forbids = FactorGraph([2], [((0,), [0.0, -np.inf])])
    allows = FactorGraph([2], [((0,), [0.0, 0.0])])
    assert allows.kl(forbids) == np.inf
    assert_allclose(forbids.kl(allows), np.log(2))
    assert allows.kl(allows.given({0: 1})) == np.inf
    assert_allclose(allows.given({0: 1}).kl(allows), np.log(2))


@CASES
def test_files(model, values, tmp_path):
    given = model.given({1: values[0]})
    path = given.save(tmp_path / "model")
    again = type(model).load(path)
    assert again == given
    assert again.evidence == given.evidence
    assert again.log_partition() == given.log_partition()
    assert np.array_equal(again.edges, EDGES)
    with pytest.raises(FileFormatError):
        Stranger.load(path)


class Stranger(Ising):
    pass


def test_factor_graphs_are_saved_and_read(tmp_path):
    for seed in range(20):
        model = random_model(seed)
        assert FactorGraph.load(model.save(tmp_path / "m")) == model


def test_jax_differentiates_through_the_partition_function():
    model = MODELS["ising"][0]
    theta = jax.numpy.asarray(model.theta)
    value, gradient = jax.jit(jax.value_and_grad(model.family.log_partition))(theta)
    assert_allclose(value, model.log_partition(), rtol=1e-6)
    assert_allclose(gradient, model.mean(), atol=1e-6)
    both = jax.vmap(model.family.log_partition)(jax.numpy.stack([theta, 0 * theta]))
    assert_allclose(both, [model.log_partition(), 4 * np.log(2)], rtol=1e-6)


def test_makers():
    assert len(grid(3, 5)) == 2 * 5 + 3 * 4
    assert np.array_equal(np.bincount(torus(4, 5).ravel()), np.full(20, 4))
    assert len(complete(6)) == 15
    assert np.array_equal(np.bincount(random_regular(12, 3, rng=1).ravel()), np.full(12, 3))
    assert np.array_equal(random_regular(12, 3, rng=1), random_regular(12, 3, rng=1))
    glass = spin_glass(complete(5), couplings=2.0, kind="signs", rng=0)
    assert set(np.abs(glass.couplings)) == {2.0}
    with pytest.raises(ValueError, match="rows must be a whole number of at least 3"):
        torus(2, 5)
    with pytest.raises(ValueError, match="n \\* degree even"):
        random_regular(5, 3)


def test_models_from_graphs_and_frames():
    graph = nx.cycle_graph(5)
    nx.set_edge_attributes(graph, 0.3, "weight")
    nx.set_node_attributes(graph, {0: 1.0}, "field")
    model = Ising.from_networkx(graph)
    assert_allclose(model.fields, [1, 0, 0, 0, 0])
    ring = 2**5 * (np.cosh(0.3) ** 5 + np.sinh(0.3) ** 5)
    assert_allclose(Ising.from_networkx(graph, field=0.0).log_partition(), np.log(ring), rtol=1e-13)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"source": [0, 1], "target": [1, 2], "coupling": [0.5, -0.5]})
    assert Ising.from_pandas(frame) == Ising([(0, 1), (1, 2)], [0.5, -0.5])
    with pytest.raises(ValueError, match="no column 'weight'"):
        Ising.from_pandas(frame, coupling="weight")
    named = Ising.from_pandas(frame.assign(source=["a", "b"], target=["b", "c"]))
    assert named == Ising([(0, 1), (1, 2)], [0.5, -0.5], names=["a", "b", "c"])
    fields = pandas.Series({"c": 0.1, "b": 0.2, "a": 0.3})
    ordered = Ising.from_pandas(frame.assign(source=["a", "b"], target=["b", "c"]), fields)
    assert ordered == Ising([(2, 1), (1, 0)], [0.5, -0.5], [0.1, 0.2, 0.3], names=["c", "b", "a"])
    with pytest.raises(ValueError, match="'d', which has no field"):
        Ising.from_pandas(frame.assign(source=["a", "b"], target=["b", "d"]), fields)
    with pytest.raises(ValueError, match="numbered from 0, whole numbers"):
        Ising.from_pandas(frame.assign(source=[0.5, 1.0]))
    graph = nx.Graph([("rain", "wet", {"weight": 0.3})])
    assert Ising.from_networkx(graph) == Ising([(0, 1)], 0.3, names=["rain", "wet"])


def test_a_bayesian_network_as_a_factor_graph():
    net = BayesNet({"a": [0.2, 0.8], "b": [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]}, parents={"b": ["a"]})
    model = FactorGraph.from_bayes_net(net)
    assert abs(model.log_partition()) < 1e-14
    assert_allclose(model.marginals()[1], net.marginals()["b"])


def test_references_for_lattices_agree():
    rng = np.random.default_rng(3)
    model = Ising(grid(6, 7), rng.normal(size=len(grid(6, 7))))
    place = [(i // 7, i % 7) for i in range(42)]
    assert_allclose(kac_ward(model, place), transfer_matrix(model, 6, 7), rtol=1e-11)
    assert_allclose(kac_ward(model, place), model.log_partition(), rtol=1e-11)
    triangles = Ising(EDGES, rng.normal(size=5))
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert_allclose(kac_ward(triangles, corners), triangles.log_partition(), rtol=1e-11)
    for rows, columns, K in ((3, 3, 0.1), (4, 5, 0.44), (5, 4, 0.9), (6, 6, 0.5 * np.log(1 + np.sqrt(2)))):
        exact = Ising(torus(rows, columns), K).log_partition()
        assert_allclose(torus_log_partition(rows, columns, K), exact, rtol=1e-11)


def test_edges_that_lie_on_each_other_in_the_plane():
    """Each of these had an answer, and a wrong one."""
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    twice = Ising([*EDGES, (1, 0), (2, 1)], np.linspace(-0.5, 0.7, 7))
    assert_allclose(kac_ward(twice, corners), twice.log_partition(), rtol=1e-11)
    for where in ([(0, 0)] * 4, [(0, 0), (1, 0), (2, 0), (3, 0)]):
        with pytest.raises(ValueError, match="keep the edges apart"):
            kac_ward(Ising(EDGES, 0.4), where)
    with pytest.raises(ValueError, match="positions must be finite"):
        kac_ward(Ising(EDGES, 0.4), np.full((4, 2), np.nan))
    with pytest.raises(TypeError, match="an Ising model; got Potts"):
        kac_ward(Potts(EDGES, 0.4, n_states=3), corners)


@pytest.mark.parametrize("method", ["coordinate", "newton"])
def test_no_variables_at_all(method):
    model = Ising([], [], [])
    assert model.marginals().shape == (0, 2)
    assert -1e-300 < mean_field(model, method=method).bound <= 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FactorGraph([2, 0], []), "cardinalities must be at least 1"),
        (lambda: FactorGraph([2.5], []), "whole numbers"),
        (lambda: FactorGraph([2], [((0, 0), np.zeros((2, 2)))]), "different variables"),
        (lambda: FactorGraph([2], [((1,), [0, 0])]), "from 0 to 0"),
        (lambda: FactorGraph([2], [((0,), [0, 0, 0])]), r"must have shape \(2,\)"),
        (lambda: FactorGraph([2], [((0,), [0, np.nan])]), "NaN"),
        (lambda: FactorGraph([2], [((0,), [0, np.inf])]), r"\+inf"),
        (lambda: Ising([(0, 0)], 1.0), "two different variables"),
        (lambda: Ising([(0, 1)], [1.0, 2.0]), "one for each of 1 edges"),
        (lambda: Ising([(0, 3)], 1.0, [0.0, 0.0]), "as there are 2 fields"),
        (lambda: Ising([(0, 1)], np.inf), "couplings must be finite"),
        (lambda: Potts([(0, 1)], 1.0), "n_states must be a whole number"),
        (lambda: MODELS["ising"][0].given({0: 0}), "no state 0"),
        (lambda: MODELS["ising"][0].given({9: 1}), "variables from 0 to 3"),
        (lambda: MODELS["ising"][0].given({0: 1}).given({0: -1}), "already given"),
        (lambda: MODELS["ising"][0].log_prob([1, 1, 1, 2]), "no state 2"),
        (lambda: MODELS["ising"][0].log_prob([1, 1, 1]), "4 variables on its last axis"),
        (lambda: MODELS["ising"][0].log_partition(method="magic"), "method must be"),
        (lambda: MODELS["ising"][0].log_partition(order=[0, 1, 2]), "each of the 4 variables once"),
        (lambda: MODELS["ising"][0].log_partition(order="worst"), "kind must be"),
        (lambda: MODELS["ising"][0].log_partition(max_memory=-1), "max_memory must be positive"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises((ValueError, DomainError), match=message):
        make()


def test_models_without_variables_or_factors():
    assert FactorGraph([], []).log_partition() == 0.0
    assert_allclose(FactorGraph([], [((), 2.5)]).log_partition(), 2.5)
    assert_allclose(FactorGraph([3, 1], []).log_partition(), np.log(3))
    assert FactorGraph([1, 1], [((0, 1), [[0.5]])]).marginals()[1].tolist() == [1.0]
    with pytest.raises(DomainError, match="every state is impossible"):
        FactorGraph([2], [((0,), [-np.inf, -np.inf])]).sample(3)
    never = FactorGraph([2, 1], [((0,), [0.0, 1.0]), ((1,), [-np.inf])])
    for method in (None, "enumeration", "mean_field", "structured_mean_field", "loopy", "double_loop"):
        assert never.log_partition(method=method) == -np.inf
        with pytest.raises(DomainError, match="every state is impossible"):
            never.mean(method=method)
