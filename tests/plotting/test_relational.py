"""Pictures of social networks."""

import networkx as nx
import numpy as np
import pytest

pytest.importorskip("matplotlib")

from cumulant.plotting.relational import influence, roc_curves
from cumulant.relational import Network


def graph():
    made = nx.path_graph(["a", "b", "c", "d"])
    nx.set_node_attributes(made, {"a": 1, "b": 0, "c": 1, "d": 0}, "smokes")
    return made


def test_colours_are_the_probabilities():
    chances = {"a": 0.1, "b": 0.9, "c": 0.4, "d": 0.7}
    ax = influence(graph(), chances, attribute="smokes", labels=True)
    drawn = [part for part in ax.collections if part.get_array() is not None]
    assert [part.get_array().tolist() for part in drawn] == [[0.1, 0.4], [0.9, 0.7]]  # squares, then circles
    assert len(ax.collections[0].get_segments()) == 3
    assert sorted(text.get_text() for text in ax.texts) == ["a", "b", "c", "d"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["smokes: yes", "smokes: no"]


def test_places_may_be_given_and_are_the_same_for_the_same_seed():
    places = {each: (i, 0.0) for i, each in enumerate("abcd")}
    ax = influence(graph(), [0.5] * 4, positions=places)
    assert np.array_equal(ax.collections[1].get_offsets()[:, 0], range(4))
    first, second = (influence(graph(), [0.5] * 4).collections[1].get_offsets() for _ in range(2))
    assert np.array_equal(first, second)


def test_arrows_go_from_those_who_sway():
    places = {each: (i, 0.0) for i, each in enumerate("abcd")}
    ax = influence(graph(), [0.5] * 4, positions=places, sways={("a", "b"): 0.8, ("b", "a"): 0.05})
    assert [(arrow.xyann, arrow.xy) for arrow in ax.texts] == [(places["a"], places["b"])]
    with pytest.raises(ValueError, match="sways names 'e', who is not in the graph"):
        influence(graph(), [0.5] * 4, sways={("a", "e"): 0.8})
    assert ax.texts[0].arrow_patch.get_alpha() == 0.8


def test_directed_graphs_and_graphs_in_pieces():
    directed = nx.DiGraph([("a", "b"), ("b", "a"), ("c", "d")])
    directed.add_node("e")
    lines = [influence(directed, [0.5] * 5, symmetrise=how).collections[0] for how in ("any", "mutual")]
    assert [len(each.get_segments()) for each in lines] == [2, 1]
    ax = influence(directed, [0.5] * 5)
    assert np.unique(ax.collections[1].get_offsets().round(6), axis=0).shape == (5, 2)


def test_a_network_will_do():
    ax = influence(Network.from_edges([1, 0, 1], [(0, 1)]), np.array([0.2, 0.4, 0.6]))
    assert ax.collections[1].get_array().tolist() == [0.2, 0.6]


def test_refusals():
    with pytest.raises(ValueError, match="no entry for 'd'"):
        influence(graph(), {"a": 1, "b": 1, "c": 1})
    with pytest.raises(ValueError, match="one entry for each of 4 people; got 3"):
        influence(graph(), [0.1, 0.2, 0.3])


def test_roc_curves():
    ax = roc_curves({"one": ([0, 1, 1], [0.1, 0.2, 0.3]), "other": ([0, 1, 1], [0.3, 0.2, 0.1])})
    assert ax.get_legend_handles_labels()[1] == ["one, 1.00", "other, 0.00"]
