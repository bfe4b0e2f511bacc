"""Models of single sequences and graphs against enumeration, and against elimination on the same factor graph."""

import itertools

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from cumulant.errors import DomainError
from cumulant.graphical import FactorGraph
from cumulant.sequences import ChainCRF, ChainModel, SequenceData, TreeCRF

NAMES = np.array(["cat", "dog", "eel"])


def enumerated(unary, pair, evidence):
    """All labellings that agree with the evidence, and their scores."""
    length, k = unary.shape
    pair = np.broadcast_to(pair, (length - 1, k, k))
    every = np.array(list(itertools.product(range(k), repeat=length)))
    every = every[[all(y[t] == label for t, label in evidence.items()) for y in every]]
    scores = [sum(unary[t, y[t]] for t in range(length)) for y in every]
    return every, np.array(scores) + [sum(pair[t, y[t], y[t + 1]] for t in range(length - 1)) for y in every]


def chains():
    rng = np.random.default_rng(0)
    for length, k, scale in [(1, 3, 1.0), (2, 2, 1.0), (4, 3, 2.0), (5, 2, 300.0), (3, 1, 1.0), (5, 3, 1e-6)]:
        yield scale * rng.normal(size=(length, k)), scale * rng.normal(size=(k, k)), {}
        yield scale * rng.normal(size=(length, k)), scale * rng.normal(size=(length - 1, k, k)), {length - 1: k - 1}
    unary = rng.normal(size=(4, 3))
    unary[1, 2] = -np.inf
    yield unary, np.where(rng.uniform(size=(3, 3)) < 0.3, -np.inf, 0.5), {0: 1, 2: 0}


@pytest.mark.parametrize("case", list(chains()))
def test_a_chain_answers_as_enumeration_and_as_its_factor_graph(case):
    unary, pair, evidence = case
    model = ChainModel(unary, pair).given(evidence)
    every, scores = enumerated(unary, pair, evidence)
    log_z, length, k = logsumexp(scores), *unary.shape
    p = np.exp(scores - log_z)
    nodes = np.array([[p[every[:, t] == j].sum() for j in range(k)] for t in range(length)])
    graph = model.to_factor_graph()
    assert isinstance(graph, FactorGraph)
    assert_allclose(model.log_partition(), log_z, rtol=1e-12, atol=1e-12)
    assert_allclose(model.marginals(), nodes, atol=1e-11)
    assert_allclose(model.marginals(), graph.marginals(), atol=1e-11)
    mean = model.family.statistics(every).T @ p
    assert_allclose(model.mean(), mean, atol=1e-11)
    assert model.mean().shape == model.theta.shape == (model.family.dim,)
    assert_allclose(model.entropy(), -np.sum(p[p > 0] * np.log(p[p > 0])), atol=1e-9)
    assert_allclose(model.entropy(), graph.entropy(), atol=1e-9)
    assert_allclose(model.log_prob(every), scores - log_z, rtol=1e-12, atol=1e-11)
    best, score = model.map()
    assert_allclose(score, scores.max(), rtol=1e-12)
    assert_allclose(model.log_prob(best), scores.max() - log_z, atol=1e-10)
    assert_allclose(model.log_partition(method="enumeration"), log_z, rtol=1e-12, atol=1e-12)
    if evidence:
        t = next(iter(evidence))
        assert_allclose(model.marginals()[t], np.eye(k)[evidence[t]])
    draws = model.sample(4000, rng=1)
    assert draws.shape == (4000, length)
    frequency = np.array([[np.mean(draws[:, t] == j) for j in range(k)] for t in range(length)])
    assert_allclose(frequency, nodes, atol=0.04)


def test_divergence_between_chains():
    rng = np.random.default_rng(3)
    first, second = (ChainModel(rng.normal(size=(4, 3)), rng.normal(size=(3, 3))) for _ in range(2))
    every = np.array(list(itertools.product(range(3), repeat=4)))
    p, q = first.log_prob(every), second.log_prob(every)
    assert_allclose(first.kl(second), np.sum(np.exp(p) * (p - q)), rtol=1e-12)
    assert_allclose(first.kl(second.to_factor_graph()), first.kl(second), rtol=1e-10)
    assert first.kl(first) == 0
    assert first.kl(first.given({1: 2})) == np.inf
    assert_allclose(first.given({1: 2}).kl(first), -np.log(first.marginals()[1, 2]), rtol=1e-12)
    with pytest.raises(ValueError, match="the same variables"):
        first.kl(ChainModel(np.zeros((3, 3)), np.zeros((3, 3))))


def test_what_is_impossible_is_said():
    forbidding = ChainModel(np.zeros((3, 2)), [[-np.inf, 0.0], [0.0, -np.inf]])  # labels alternate
    assert forbidding.log_partition() == np.log(2)
    never = forbidding.given({0: 0, 1: 0})
    assert never.log_partition() == -np.inf
    for ask in (never.marginals, never.mean, never.entropy, never.map, never.sample):
        with pytest.raises(DomainError, match="has probability zero"):
            ask()


WORDS = [[["the"], ["dog"], ["runs"]], [["a"], ["cat"]], [["the"], ["cat"], ["sleeps"]]]
TAGS = [["D", "N", "V"], ["D", "N"], ["D", "N", "V"]]


def test_the_model_of_a_sentence():
    crf = ChainCRF(tol=1e-6).fit(WORDS, TAGS)
    for x, y in zip(WORDS, TAGS, strict=True):
        model = crf.model(x)
        assert_allclose(model.marginals(), crf.predict_marginals([x])[0], rtol=1e-12)
        labels, score = model.map()
        assert labels.tolist() == crf.predict([x])[0]
        assert_allclose(model.log_prob(y), crf.log_likelihood([x], [y])[0], rtol=1e-10)
        assert_allclose(score - model.log_partition(), model.log_prob(labels), rtol=1e-10)
        assert set(model.sample(50, rng=0).ravel()) <= set(crf.classes_)
    known = crf.model(WORDS[0]).given({1: "V"})
    assert known.map()[0][1] == "V"
    assert known.log_prob(["D", "N", "V"]) == -np.inf
    assert_allclose(known.marginals()[1], [0.0, 0.0, 1.0])
    with pytest.raises(DomainError, match="has no state 'X'"):
        crf.model(WORDS[0]).given({1: "X"})


def test_numbered_labels_and_sequence_data():
    rng = np.random.default_rng(4)
    data = SequenceData(rng.normal(size=(9, 2)), [0, 4, 9], rng.choice([3, 7, 8], size=9))
    crf = ChainCRF(tol=1e-6).fit(data)
    model = crf.model(data[:1])
    assert model.map()[0].tolist() == crf.predict(data)[0]
    assert model.given({0: 7}).map()[0][0] == 7
    assert_allclose(model.log_prob(data.labels[:4]), crf.log_likelihood(data)[0], rtol=1e-10)
    with pytest.raises(ValueError, match="one sequence"):
        crf.model(data)


def test_the_model_of_a_graph():
    rng = np.random.default_rng(5)
    edges = list(nx.convert_node_labels_to_integers(nx.grid_2d_graph(2, 3)).edges)
    X = [(rng.normal(size=(6, 2)), edges, rng.normal(size=(len(edges), 1))) for _ in range(5)]
    y = [NAMES[rng.integers(0, 3, size=6)] for _ in X]
    crf = TreeCRF(tol=1e-4).fit(X, y)
    model = crf.model(X[0])
    assert_allclose(np.array(model.marginals()), crf.predict_marginals(X[:1])[0], rtol=1e-9)
    labels, _ = model.map()
    assert labels.tolist() == crf.predict(X[:1])[0]
    assert_allclose(model.log_prob(y[0]), crf.log_likelihood(X[:1], y[:1])[0], rtol=1e-9)
    every = np.array(list(itertools.product(range(3), repeat=6)))
    p = np.exp(model.log_prob(NAMES[every]))
    assert_allclose(p.sum(), 1.0, rtol=1e-12)
    assert_allclose(model.entropy(), -np.sum(p * np.log(p)), rtol=1e-9)
    assert_allclose(model.mean(), p @ model.family.statistics(NAMES[every]), atol=1e-12)
    given = model.given({0: "eel", 5: "cat"})
    agree = (every[:, 0] == 2) & (every[:, 5] == 0)
    assert_allclose(given.log_partition() - model.log_partition(), np.log(p[agree].sum()), rtol=1e-9)
    assert np.all(given.sample(20, rng=0)[:, 0] == "eel")
    assert_allclose(given.kl(model), -np.log(p[agree].sum()), rtol=1e-9)
