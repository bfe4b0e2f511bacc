"""The posterior of a network as a factor graph of `graphical`."""

from __future__ import annotations

import numpy as np

from cumulant.errors import TooWide
from cumulant.graphical.causal_independence import CausalFactorGraph, CausalIndependence
from cumulant.graphical.factor_graph import FactorGraph
from cumulant.relational.network import Network
from cumulant.relational.or_kernels import or_to_aggregate
from cumulant.relational.parameters import tables_of

_MOST_FRIENDS = 16

Factor = tuple[tuple[int, ...], np.ndarray]


def factor_graph(theta: np.ndarray, ordered: bool, network: Network) -> FactorGraph:
    """With a variable for each gate, and ORs as tables."""
    n, layout = network.n_people, network.layout
    factors, sway = _shared(theta, network), tables_of(theta).sway
    causes: dict[int, list[int]] = {}
    gates = np.repeat(np.arange(n), np.diff(layout.starts)).tolist()
    for g, (x, y) in enumerate(zip(gates, layout.others.tolist(), strict=True)):
        kind, gate = int(network.attribute[y]), 3 * n + g
        noise = np.array([[1.0, 1.0 - sway[kind]], [0.0, sway[kind]]])
        factors.append(((gate,), noise[:, 1]) if ordered and y < x else ((gate, y), noise))
        causes.setdefault((n if kind else 2 * n) + x, []).append(gate)
    for aggregate in range(n, 3 * n):
        inputs = causes.get(aggregate, [])
        if len(inputs) > _MOST_FRIENDS:
            raise TooWide(
                f"person {aggregate % n} has {len(inputs)} friends of one kind, and the table of the OR over their "
                f"gates 2^{len(inputs) + 1} entries: use factor_graph(network, causal=True)"
            )
        table = np.zeros((2,) * (1 + len(inputs)))
        table[1] = 1.0
        table[(slice(None), *[0] * len(inputs))] = 1.0, 0.0
        factors.append(((aggregate, *inputs), table))
    return FactorGraph.from_tables([2] * (3 * n + len(gates)), factors)


def causal_factor_graph(theta: np.ndarray, ordered: bool, network: Network) -> CausalFactorGraph:
    """With ORs and their gates as causally independent factors of ``z``."""
    n, sway = network.n_people, tables_of(theta).sway
    factors, causal = _shared(theta, network), []
    for kind, offset in ((1, n), (0, 2 * n)):
        for x in range(n):
            friends = np.flatnonzero(network.ties[x] & (network.attribute == kind)).tolist()
            always = [y for y in friends if ordered and y < x]
            causes = [y for y in friends if y not in always]
            # the probability that none of these sways can be far below the rounding of 1
            leak = np.array(or_to_aggregate(len(always) * np.log1p(-sway[kind])))
            noise = [np.array([[1.0, 0.0], [1.0 - sway[kind], sway[kind]]])] * len(causes)
            causal.append(CausalIndependence("or", offset + x, causes, noise, leak))
    with np.errstate(divide="ignore"):  # a prior of 0 makes states impossible
        logs = [(scope, np.log(table)) for scope, table in factors]
    return CausalFactorGraph([2] * (3 * n), logs, causal)


def _shared(theta: np.ndarray, network: Network) -> list[Factor]:
    """Priors, pairs and attributes."""
    n, code, tables = network.n_people, network.layout.code, tables_of(theta)
    factors: list[Factor] = [((x,), tables.prior) for x in range(n)]
    factors += [((x, y), tables.pair[code[x, y]].reshape(2, 2)) for x, y in network.pairs.tolist()]
    for x in range(n):
        mine = tables.habit[int(network.attribute[x])]
        factors.append(((x, n + x, 2 * n + x), np.stack([mine[1:].reshape(2, 2), np.full((2, 2), mine[0])])))
    return factors
