"""Pruned networks give the same answers as enumeration of the whole ones, with fewer variables."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.graphical import BayesNet, prune
from tests.graphical.networks import joint_table, random_net


def asked(net, query, evidence):
    """``p(query | evidence)`` from the joint table."""
    p = joint_table(net)
    place = {name: k for k, name in enumerate(net.variables)}
    index = [slice(None)] * p.ndim
    for name, state in evidence.items():
        index[place[name]] = net.states[name].index(state) if isinstance(state, str) else state
    p = p[tuple(index)]
    names = [name for name in net.variables if name not in evidence]
    p = p.sum(axis=tuple(k for k, name in enumerate(names) if name not in query))
    order = [name for name in names if name in query]
    p = np.moveaxis(p, [order.index(name) for name in query], range(len(query)))
    return p / p.sum()


def test_the_same_answers_with_fewer_variables():
    smaller, all_gone = 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        net = random_net(rng, 8, window=4)
        names = rng.permutation(net.variables).tolist()
        n_query, n_given = rng.integers(1, 3), rng.integers(0, 5)
        query = names[:n_query]
        evidence = {name: net.states[name][rng.integers(len(net.states[name]))] for name in names[2 : 2 + n_given]}
        part, given = prune(net, query, evidence)
        assert set(query) <= set(part.variables) <= set(net.variables)
        assert set(given) == set(part.variables) & set(evidence)
        assert_allclose(part.conditional(query, given), asked(net, query, evidence), rtol=1e-11)
        gone = set(net.variables) - set(part.variables) - set(evidence)
        smaller += bool(gone)
        all_gone += set(part.variables) == set(query)
        for name in gone:  # what is gone was barren, or says nothing about the query
            above = set(evidence) | set(query)
            barren = not any(name == v or name in ancestors(net, v) for v in above)
            assert barren or net.is_d_separated([name], query, list(evidence))
        for name in set(part.variables) - set(query) - set(evidence):  # and what is left says something
            assert not net.is_d_separated([name], query, list(evidence))
    assert smaller > 30
    assert all_gone > 3


def ancestors(net, name):
    found, waiting = set(), list(net.parents[name])
    while waiting:
        v = waiting.pop()
        if v not in found:
            found.add(v)
            waiting += net.parents[v]
    return found


def test_friendships_that_nobody_asks_about_may_be_dropped():
    """Carbonetto 2009, section 5.2: a friendship of two of whom nothing is known changes no answer."""
    habits = {f"s{i}": [0.6, 0.4] for i in range(4)}
    pairs = [(i, j) for i in range(4) for j in range(i)]
    table = np.array([[[0.9, 0.1], [0.8, 0.2]], [[0.8, 0.2], [0.3, 0.7]]])
    net = BayesNet(
        {**habits, **{f"f{i}{j}": table for i, j in pairs}}, {f"f{i}{j}": [f"s{i}", f"s{j}"] for i, j in pairs}
    )
    part, given = prune(net, "s0", {"f10": 1, "s1": 1})
    assert part.variables == ("s0", "f10")
    assert given == {"f10": 1}
    assert_allclose(part.conditional("s0", given), asked(net, ["s0"], {"f10": 1, "s1": 1}), rtol=1e-12)


def test_named_states_and_refusals():
    net = random_net(np.random.default_rng(0), 6)
    with pytest.raises(ValueError, match="both asked for and given"):
        prune(net, "v0", {"v0": "s0"})
    with pytest.raises(ValueError, match="'w' is not a variable"):
        prune(net, "w")
    with pytest.raises(ValueError, match="'w' is not a variable"):
        prune(net, "v0", {"w": 1})
    with pytest.raises(TypeError, match="BayesNet"):
        prune(net.model, "v0")
    part, _ = prune(net, ["v1"])
    assert part.states == {name: net.states[name] for name in part.variables}
