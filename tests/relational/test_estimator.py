"""The estimator: from graphs and tables to influence and predictions, and what it refuses."""

from contextlib import nullcontext
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from cumulant.errors import CertificateError, FileFormatError
from cumulant.relational import Network, SmokersModel, SocialInfluence, fit_em, graph_from_tables, loo_scores
from cumulant.relational.graphs import network_from_graph

TRUTH = SmokersModel([0.5, 0.1, 0.02, 0.3, 0.1, 0.15, 0.1, 0.4, 0.5, 0.5, 0.3, 0.05, 0.9, 0.5])


def as_graph(net):
    graph = nx.Graph()
    for x, value in enumerate(net.attribute):
        graph.add_node(f"person {x}", smokes=int(value))
    graph.add_edges_from((f"person {x}", f"person {y}") for x, y in net.edges)
    return graph


@pytest.fixture(scope="module")
def nets():
    return [TRUTH.sample(12, seed).without_latents() for seed in range(6)]


@pytest.fixture(scope="module")
def graphs(nets):
    return [as_graph(net) for net in nets]


@pytest.mark.parametrize("e_step", ["loopy", "double_loop", "exact", "gibbs"])
def test_it_is_the_core_by_name(nets, graphs, e_step):
    options = {"max_iter": 6} if e_step != "exact" else {}
    with pytest.warns(ConvergenceWarning) if e_step in ("loopy", "double_loop") else nullcontext():
        model = SocialInfluence("smokes", e_step=e_step, random_state=0, **options).fit(graphs)
    core = fit_em(nets, e_step=e_step, rng=0, **{"max_iter": 500, **options})
    assert_allclose(list(model.theta_.values()), core.theta)
    assert list(model.influence_[0]) == list(graphs[0])
    if e_step != "gibbs":
        expected = core.model.posterior(nets[2], e_step).independence
        assert_allclose(list(model.influence_[2].values()), expected, atol=1e-9)
        assert_allclose(list(model.influence_of(graphs[2]).values()), expected, atol=1e-9)
        scores = loo_scores(core.model, nets[1], method=e_step)
        assert_allclose(model.predict_attribute(graphs[1]), scores.attributes, atol=1e-9)
        found = model.predict_tie(graphs[1])
        assert_allclose(found[scores.pairs[:, 0], scores.pairs[:, 1]], scores.ties, atol=1e-9)
        assert_allclose(found, found.T)
        asked = [("person 3", "person 1"), ("person 0", "person 5")]
        assert_allclose(model.predict_tie(graphs[1], asked), [found[3, 1], found[0, 5]], atol=1e-9)
        assert_allclose(model.predict_attribute(graphs[1], ["person 4"]), scores.attributes[4:5], atol=1e-9)
    assert (model.certificate_ is not None) == (e_step == "exact")
    assert (model.refusal_ is None) == (e_step == "exact")


def swaying(model, net):
    """The same from all states of ``z`` and all gates of one person: slow and plain."""
    z_all, joint = np.indices((2,) * net.n_people).reshape(net.n_people, -1).T, np.exp(model.log_joint(net)).ravel()
    theta, out = model.theta, {}
    for x in range(net.n_people):
        friends = np.flatnonzero(net.ties[x])
        for weight, z in zip(joint / joint.sum(), z_all, strict=True):
            able = [z[y] or (model.ordered and y < x) for y in friends]
            strength = [theta[8] if net.attribute[y] else theta[9] for y in friends]
            gates = np.indices((2,) * friends.size).reshape(friends.size, -1).T
            mass = []
            for state in gates:
                chances = [s if a else 0.0 for s, a in zip(strength, able, strict=True)]
                p = np.prod([c if g else 1 - c for g, c in zip(state, chances, strict=True)])
                swayed = [any(g and net.attribute[y] == k for g, y in zip(state, friends, strict=True)) for k in (1, 0)]
                habit = theta[7] if z[x] else theta[10 + 2 * swayed[0] + swayed[1]]
                mass.append(p * (habit if net.attribute[x] else 1 - habit))
            for k, y in enumerate(friends):
                share = 0.0 if z[x] else np.dot(mass, gates[:, k]) / np.sum(mass)
                out[y, x] = out.get((y, x), 0.0) + weight * share
    return out


@pytest.mark.parametrize("influence", ["independent", "ordered"])
def test_who_sways_whom(graphs, influence):
    net = Network.from_edges([1, 1, 0, 1, 0, 0], [(0, 1), (0, 2), (1, 2), (1, 3), (3, 4), (2, 5), (0, 4)])
    model = SocialInfluence("smokes", e_step="exact", influence=influence).fit(net)
    expected = swaying(model.model_, net)
    found = model.sways_of(net)
    assert found.keys() == expected.keys()
    assert_allclose([found[pair] for pair in expected], list(expected.values()), atol=1e-12)
    model.e_step, model.seed_ = "gibbs", 0
    assert_allclose([model.sways_of(net)[pair] for pair in expected], list(expected.values()), atol=0.05)
    for model.e_step in ("loopy", "double_loop"):
        assert_allclose([model.sways_of(net)[pair] for pair in expected], list(expected.values()), atol=0.1)
    named = SocialInfluence("smokes", max_iter=500).fit(graphs[:2]).sways_of(graphs[0])
    assert set(named) == {pair for a, b in graphs[0].edges for pair in ((a, b), (b, a))}


def test_certificate_only_with_exact_e_steps(nets, graphs):
    model = SocialInfluence("smokes", e_step="exact").fit(graphs)
    assert model.status_ == "stationary"
    assert model.verify(graphs).upper == model.certificate_.upper < 0
    spoiled = model.result_.thetas[0].copy()
    model.result_ = replace(model.result_, model=SmokersModel(np.clip(spoiled + 0.2, 0.1, 0.9)))
    with pytest.raises(CertificateError):  # other probabilities than those that were certified
        model.verify(graphs)
    loopy = SocialInfluence("smokes").fit(graphs)
    assert loopy.certificate_ is None
    assert "bounds the likelihood on neither side" in loopy.refusal_
    with pytest.raises(CertificateError, match="no certificate to verify: messages on a graph with cycles"):
        loopy.verify(graphs)
    interval = loopy.bound_log_likelihood(graphs[0])
    exact = loopy.model_.log_likelihood(nets[0], "exact")
    assert interval.lower <= exact <= interval.upper


def test_an_unfinished_fit_says_so(graphs):
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=2"):
        model = SocialInfluence("smokes", max_iter=2).fit(graphs)
    assert model.status_ == "max_steps"


def test_answers_of_messages_that_did_not_settle_are_flagged():
    """Two people whose messages go round in a circle: a fit is put in the place of one with such probabilities."""
    theta = (
        0.381307888, 0.0091520803, 1e-100, 0.269721374, 0.995279754, 0.578460483, 0.885679012, 1e-30, 0.01, 0.490695734,
        0.949706482, 0.531364136, 0.141385444, 0.762479342,
    )  # fmt: skip
    net = Network.from_edges([0, 0], [(0, 1)])
    model = SocialInfluence().fit(net)
    model.model_ = SmokersModel(theta)
    assert not model.model_.posterior(net).converged
    with pytest.warns(ConvergenceWarning, match="who decides independently is not to be relied on"):
        model.influence_of(net)
    with pytest.warns(ConvergenceWarning, match="who sways whom is not to be relied on"):
        model.sways_of(net)
    with pytest.warns(ConvergenceWarning, match="did not settle for 2 of the predictions"):
        model.predict_attribute(net)
    with pytest.warns(ConvergenceWarning, match="did not settle for 1 of the predictions"):
        model.predict_tie(net)
    truth = model.model_.log_likelihood(net, "exact")
    assert truth in model.bound_log_likelihood(net)  # which needs no messages


def test_save_and_load(graphs, tmp_path):
    model = SocialInfluence("smokes", e_step="exact", fixed={0: 0.6}, random_state=3).fit(graphs)
    again = SocialInfluence.load(model.save(tmp_path / "fit"))
    assert again.theta_ == model.theta_
    assert again.theta_["independent"] == 0.6
    assert again.get_params() == {**model.get_params(), "fixed": {"independent": 0.6}}
    assert_allclose(again.predict_attribute(graphs[0]), model.predict_attribute(graphs[0]))
    assert again.influence_of(graphs[0]) == model.influence_of(graphs[0])
    assert again.certificate_.upper == model.certificate_.upper
    with pytest.raises(CertificateError, match="loaded from a file"):
        again.verify(graphs)
    (tmp_path / "other.npz").write_bytes(b"nothing")
    with pytest.raises(FileFormatError):
        SocialInfluence.load(tmp_path / "other.npz")


def test_conventions(graphs, nets):
    model = SocialInfluence("smokes", n_restarts=2, random_state=1)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict_attribute(graphs[0])
    model.fit(graphs)
    assert model.result_.starts.size == 3
    assert_allclose(SocialInfluence("smokes").fit(nets[0]).predict_attribute(nets[0]).shape, 12)
    assert SocialInfluence("smokes").fit(graphs).score(graphs) == pytest.approx(
        SocialInfluence("smokes").fit(nets).score(nets)
    )
    assert -1.0 < model.score(graphs[0]) < 0.0


# Graphs and tables ----------------------------------------------------------------------------------------------------


def directed():
    graph = nx.DiGraph([("a", "b"), ("b", "a"), ("c", "a")])
    nx.set_node_attributes(graph, {"a": 1, "b": 0, "c": True}, "smokes")
    return graph


def test_directed_ties_are_made_symmetric_as_the_user_says():
    with pytest.raises(ValueError, match=r"tie from 'c' to 'a' and none back.*symmetrise=\"mutual\""):
        SocialInfluence("smokes").fit(directed())
    mutual, people = network_from_graph(directed(), "smokes", symmetrise="mutual")
    assert people == ["a", "b", "c"]
    assert mutual.edges.tolist() == [[0, 1]]
    assert network_from_graph(directed(), "smokes", symmetrise="any")[0].edges.tolist() == [[0, 1], [0, 2]]
    both = directed()
    both.remove_edge("c", "a")
    assert network_from_graph(both, "smokes")[0].n_ties == 1  # nothing to decide


def test_tables():
    pd = pytest.importorskip("pandas")
    people = pd.DataFrame({"name": ["a", "b", "c"], "smokes": [1, 0, 1], "age": [30.0, np.nan, 20.0]})
    ties = pd.DataFrame({"source": ["a", "b", "c"], "target": ["b", "a", "a"]})
    graph = graph_from_tables(people, ties, person="name")
    net, names = network_from_graph(graph, "smokes", symmetrise="mutual")
    assert (names, net.edges.tolist(), net.attribute.tolist()) == (["a", "b", "c"], [[0, 1]], [True, False, True])
    assert network_from_graph(graph_from_tables(people, ties, person="name", directed=False), "smokes")[0].n_ties == 2
    with pytest.raises(ValueError, match="'zoe' is not among the people"):
        graph_from_tables(people, pd.DataFrame({"source": ["zoe"], "target": ["a"]}), person="name")
    with pytest.raises(ValueError, match="people has no column 'id'; it has name, smokes, age"):
        graph_from_tables(people, ties)
    with pytest.raises(ValueError, match="name each person once"):
        graph_from_tables(pd.concat([people, people]), ties, person="name")
    with pytest.raises(TypeError, match="graph_from_tables makes one of tables"):
        SocialInfluence("smokes").fit(people)
    with pytest.raises(TypeError, match="ties must be a data frame; got list"):
        graph_from_tables(people, [("a", "b")], person="name")
    with pytest.raises(ValueError, match="attribute 'age' of 'a' must be 0 or 1"):
        network_from_graph(graph, "age", symmetrise="any")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda g: g.nodes["person 3"].update(smokes=float("nan")), "of 'person 3' is NaN"),
        (lambda g: g.nodes["person 3"].update(smokes=2), "must be 0 or 1, or a truth value; got 2"),
        (lambda g: g.nodes["person 3"].update(smokes="yes"), "must be 0 or 1, or a truth value; got 'yes'"),
        (lambda g: g.nodes["person 3"].pop("smokes"), "'person 3' has no attribute 'smokes'; it has none"),
        (lambda g: g.add_node("zoe", age=3), "'zoe' has no attribute 'smokes'; it has age"),
        (lambda g: g.add_edge("person 1", "person 1"), "a tie of 'person 1' with itself"),
    ],
)
def test_graphs_are_checked(graphs, change, words):
    graph = graphs[0].copy()
    change(graph)
    with pytest.raises(ValueError, match=words):
        SocialInfluence("smokes").fit([graphs[1], graph])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: SocialInfluence("smokes").fit([]), ValueError, "networks must hold at least one"),
        (lambda g: SocialInfluence("smokes").fit(np.eye(3)), TypeError, "networks must be graphs of networkx"),
        (lambda g: SocialInfluence("smokes").fit(["a"]), TypeError, "graph must be a graph of networkx"),
        (lambda g: SocialInfluence("smokes").fit(g).predict_attribute(g[0], 0), TypeError, "people must be a list"),
        (lambda g: SocialInfluence("smokes", e_step="lbp").fit(g), ValueError, "e_step must be one of 'loopy'"),
        (lambda g: SocialInfluence("smokes", symmetrise="all").fit(g), ValueError, "symmetrise must be one of"),
        (lambda g: SocialInfluence("smokes", fixed={"ind": 1}).fit(g), ValueError, "a key of fixed must be one of"),
        (lambda g: SocialInfluence("smokes", fixed=["ind"]).fit(g), TypeError, "fixed must be a mapping of rules"),
        (lambda g: SocialInfluence("smokes").fit(nx.Graph()), ValueError, "at least one person"),
    ],
)
def test_arguments_are_checked(graphs, call, error, words):
    with pytest.raises(error, match=words):
        call(graphs)


def test_questions_are_checked(graphs):
    model = SocialInfluence("smokes").fit(graphs)
    with pytest.raises(ValueError, match="people: 'zoe' is not among the 12 people"):
        model.predict_attribute(graphs[0], ["zoe"])
    with pytest.raises(ValueError, match="pairs must hold two people each; got 'person 1'"):
        model.predict_tie(graphs[0], ["person 1"])
    with pytest.raises(ValueError, match=r"people: \['person 1'\] is not among"):
        model.predict_attribute(graphs[0], [["person 1"]])
    with pytest.raises(TypeError, match="pairs must be a list of pairs of people; got 3"):
        model.predict_tie(graphs[0], 3)
    with pytest.raises(ValueError, match="two different people"):
        model.predict_tie(graphs[0], [("person 1", "person 1")])


@pytest.mark.parametrize("e_step", ["loopy", "exact"])
def test_a_network_of_one_person(e_step):
    graph = nx.Graph()
    graph.add_node("anna", smokes=1)
    model = SocialInfluence("smokes", e_step=e_step).fit(graph)
    assert model.predict_tie(graph).tolist() == [[0.0]]
    assert model.sways_of(graph) == {}
    assert_allclose(model.score(graph), np.log(model.predict_attribute(graph)[0]))
    assert model.predict_attribute(graph, []).size == 0


def test_the_score_of_what_was_almost_impossible():
    """All are friends of the only one without the attribute: the probability of it rounds to 1, its complement to 0."""
    net = Network([0, 1, 1, 1, 1], 1 - np.eye(5))
    model = SocialInfluence(e_step="exact").fit(net)
    model.model_ = SmokersModel([1.0, 0.5, 1e-6, 0.5, *[0.5] * 10])
    assert model.predict_attribute(net)[0] == 1.0
    ratio = np.log(0.5) - np.log(1e-6)
    expected = [-np.logaddexp(0, 4 * ratio), *[-np.logaddexp(0, -2 * ratio)] * 4]
    assert_allclose(model.score(net), np.mean(expected), rtol=1e-12)


def test_the_program_is_the_model(nets):
    """The compiled program and `SmokersModel` agree on networks drawn at random, in both readings."""
    from cumulant.relational import smokers_program

    for influence in ("independent", "ordered"):
        model = SmokersModel(TRUTH.theta, influence)
        for seed in range(3):
            net = model.sample(6, seed)
            ground = smokers_program(model.theta, influence).ground(6)
            evidence = {f"smokes({x + 1})": bool(net.attribute[x]) for x in range(6)}
            evidence |= {f"friends{{{x + 1}, {y + 1}}}": bool(net.ties[x, y]) for x, y in net.pairs}
            assert_allclose(ground.log_probability(evidence), model.log_likelihood(net, "exact"), atol=1e-10)
            found = ground.marginals(evidence)
            expected = model.posterior(net, "exact")
            assert_allclose([found[f"ind({x + 1})"] for x in range(6)], expected.independence, atol=1e-9)
            assert_allclose([found[f"sa({x + 1})"] for x in range(6)], expected.encouraged, atol=1e-9)
    assert isinstance(net, Network)
