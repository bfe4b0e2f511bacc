"""The part of a Bayesian network that an answer depends on."""

from collections.abc import Hashable, Mapping
from typing import Any

import networkx as nx
import numpy as np

from cumulant import checks
from cumulant.graphical.bayes_net import BayesNet


def prune(net: BayesNet, query: Any, evidence: Mapping[Any, Any] | None = None) -> tuple[BayesNet, dict[Hashable, Any]]:
    """A smaller network with the same ``p(query | evidence)``, and the part of the evidence that it still needs.

    What goes, in this order:

    * *Barren* variables, which are neither asked about nor given nor above one that is: their tables add up to one
      (Shachter 1986).
    * *Arrows out of given variables*: the tables of their children keep only the row that the evidence picks.
    * *d-separated* variables. Without these arrows each variable that is left is above one that is asked about or
      given, so that one depends on the query given the evidence exactly where a path, whatever its directions, leads to
      it (Shachter 1998): the joint distribution is a product over the connected parts.

    The answer is the same number for number, but for rounding, whatever the tables are, as long as the evidence has a
    positive probability: that of the parts that are gone is not looked at. Linear in the size of the network and its
    tables. `BayesNet.conditional` leaves out barren variables by itself.

    Parameters
    ----------
    net : BayesNet
    query : name or list of names
    evidence : mapping of name to state, optional

    Returns
    -------
    net : BayesNet
        Over the variables that are left, in their order.
    evidence : dict
        The states given to those of them that are.

    References
    ----------
    Shachter (1998), "Bayes-Ball: the rational pastime".

    Examples
    --------
    >>> net = BayesNet(
    ...     {"season": [0.5, 0.5], "rain": [[0.9, 0.1], [0.4, 0.6]], "wet": [[0.9, 0.1], [0.1, 0.9]],
    ...      "slip": [[0.95, 0.05], [0.6, 0.4]]},
    ...     {"rain": ["season"], "wet": ["rain"], "slip": ["wet"]},
    ... )
    >>> small, given = prune(net, "wet", {"rain": 1})
    >>> small.variables, given
    (('wet',), {})
    >>> small.conditional("wet", given), net.conditional("wet", {"rain": 1})
    (array([0.1, 0.9]), array([0.1, 0.9]))
    """
    checks.instance("net", net, BayesNet, "a BayesNet")
    wanted = list(query) if isinstance(query, list) else [query]
    for name in wanted:
        net.require(name, "query")
    if evidence is not None:
        checks.instance("evidence", evidence, Mapping, "a mapping of names to states")
    given = dict(evidence or {})
    both = [name for name in wanted if name in given]
    if both:
        raise ValueError(f"{both[0]!r} is both asked for and given")
    place = {name: k for k, name in enumerate(net.variables)}
    states = net.given(given).given_states()
    graph = net.graph
    above = {*wanted, *given}
    above = above.union(*(nx.ancestors(graph, name) for name in [*wanted, *given]))
    left = nx.Graph()
    left.add_nodes_from(above)
    left.add_edges_from((parent, name) for name in above for parent in net.parents[name] if parent not in given)
    kept = set().union(*(nx.node_connected_component(left, name) for name in wanted))
    tables, parents = {}, {}
    for name in net.variables:
        if name in kept:
            rows = tuple(states[place[p]] if p in given else slice(None) for p in net.parents[name])
            tables[name] = np.asarray(net.tables[name])[rows]
            parents[name] = [p for p in net.parents[name] if p not in given]
    named = None if net.states is None else {name: net.states[name] for name in tables}
    return BayesNet(tables, parents, named), {name: state for name, state in given.items() if name in kept}
