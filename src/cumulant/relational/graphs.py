"""Graphs of networkx and tables of people and ties, as networks with a binary attribute."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import networkx as nx
import numpy as np

from cumulant import checks
from cumulant.relational.network import Network

_SYMMETRISE = (None, "mutual", "any")


def graph_from_tables(
    people: Any, ties: Any, *, person: str = "id", source: str = "source", target: str = "target", directed: bool = True
) -> Any:
    """A networkx graph from a table of people and a table of ties (data frames).

    Parameters
    ----------
    people : data frame
        One row for each person: `person` names them, every other column becomes a node attribute.
    ties : data frame
        One row for each tie, from `source` to `target`.
    directed : bool
        Whether a row is a tie in one direction only (somebody names a friend); otherwise it is symmetric.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"id": ["anna", "bob", "carl"], "smokes": [1, 0, 1]})
    >>> ties = pd.DataFrame({"source": ["anna", "bob", "carl"], "target": ["bob", "anna", "anna"]})
    >>> graph_from_tables(people, ties).number_of_edges()
    3
    """
    for name, table, columns in (("people", people, (person,)), ("ties", ties, (source, target))):
        if not hasattr(table, "columns"):
            raise TypeError(f"{name} must be a data frame; got {type(table).__name__}")
        for column in columns:
            if column not in table.columns:
                raise ValueError(f"{name} has no column {column!r}; it has {', '.join(map(str, table.columns))}")
    if people[person].isna().any() or people[person].duplicated().any():
        raise ValueError(f"people: column {person!r} must name each person once, without missing values")
    graph: Any = nx.DiGraph() if directed else nx.Graph()
    for row in people.to_dict("records"):
        graph.add_node(row[person], **{str(name): value for name, value in row.items() if name != person})
    for a, b in ties[[source, target]].itertuples(index=False):
        for each in (a, b):
            if each not in graph:
                raise ValueError(f"ties: {each!r} is not among the people of column {person!r}")
        graph.add_edge(a, b)
    return graph


def network_from_graph(graph: Any, attribute: str, *, symmetrise: str | None = None) -> tuple[Network, list[Any]]:
    """A `Network` from a graph whose nodes have a value of 0 or 1 under the name `attribute`, and the people in order.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
    attribute : str
    symmetrise : {None, "mutual", "any"}
        How the ties of a directed graph become symmetric, as the model has them: where both directions are there
        (``"mutual"``), or at least one. Without it a directed graph with a tie in one direction only is refused.

    Examples
    --------
    >>> graph = nx.DiGraph([("anna", "bob"), ("bob", "anna"), ("carl", "anna")])
    >>> nx.set_node_attributes(graph, {"anna": 1, "bob": 0, "carl": 1}, "smokes")
    >>> network_from_graph(graph, "smokes", symmetrise="mutual")
    (Network(3 people, 2 with the attribute, 1 ties), ['anna', 'bob', 'carl'])
    """
    checks.instance("graph", graph, nx.Graph, "a graph of networkx, or a Network")
    checks.choice("symmetrise", symmetrise, _SYMMETRISE)
    people = list(graph)
    if not people:
        raise ValueError("graph must have at least one person; it has no nodes")
    checks.instance("attribute", attribute, Hashable, "the name of a node attribute")
    values = np.array([_value(graph, each, attribute) for each in people])
    number = {each: i for i, each in enumerate(people)}
    ties = np.zeros((len(people), len(people)), bool)
    for a, b in graph.edges():
        if a == b:
            raise ValueError(f"graph has a tie of {a!r} with itself: remove it (networkx.selfloop_edges finds them)")
        ties[number[a], number[b]] = True
        if not graph.is_directed():
            ties[number[b], number[a]] = True
    if (ties != ties.T).any():
        if symmetrise is None:
            a, b = (people[i] for i in np.argwhere(ties & ~ties.T)[0])
            raise ValueError(
                f"graph is directed, with a tie from {a!r} to {b!r} and none back; ties of the model are symmetric: "
                'say with symmetrise="mutual" or symmetrise="any" which are meant'
            )
        ties = ties & ties.T if symmetrise == "mutual" else ties | ties.T
    return Network(values, ties), people


def _value(graph: Any, person: Any, attribute: str) -> bool:
    if attribute not in graph.nodes[person]:
        known = ", ".join(sorted(map(str, graph.nodes[person])))
        raise ValueError(f"{person!r} has no attribute {attribute!r}; it has {known or 'none'}")
    value = graph.nodes[person][attribute]
    if isinstance(value, float | np.floating) and np.isnan(value):
        raise ValueError(f"attribute {attribute!r} of {person!r} is NaN: people must have 0 or 1; remove or impute it")
    if not isinstance(value, bool | int | float | np.generic) or value not in (0, 1):
        raise ValueError(f"attribute {attribute!r} of {person!r} must be 0 or 1, or a truth value; got {value!r}")
    return bool(value)
