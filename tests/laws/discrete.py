"""Discrete families with their states and statistics written out by hand: the truth is a sum over all states."""

import itertools
from typing import NamedTuple

import numpy as np

from cumulant import graphical


class Enumerated(NamedTuple):
    """A family, all of its states one a row, and the statistic of each."""

    family: graphical.DiscreteFamily
    states: np.ndarray
    statistics: np.ndarray


def _enumerated(model, statistic):
    values = [model.labels.allowed(v) for v in range(model.n_variables)]
    states = np.array(list(itertools.product(*values)))
    return Enumerated(model.family, states, np.array([statistic(x) for x in states], dtype=float))


def _pairs(edges, x):
    return [x[i] * x[j] for i, j in edges]


def _indicators(scopes, sizes, x):
    """The indicator of each entry of each table, the last variable running fastest."""
    out = []
    for scope in scopes:
        for states in itertools.product(*(range(sizes[v]) for v in scope)):
            out.append(float(all(x[v] == state for v, state in zip(scope, states, strict=True))))
    return out


_RING = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]
_PATH = [(0, 1), (1, 2)]
_SCOPES, _SIZES = [(0, 2, 1), (1,), (), (2, 1)], [2, 3, 2]
_CHAIN = [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3)]

CASES = {
    "ising": _enumerated(graphical.Ising(_RING, 0.0), lambda x: [*x, *_pairs(_RING, x)]),
    "boltzmann": _enumerated(graphical.BoltzmannMachine(_RING, 0.0), lambda x: [*x, *_pairs(_RING, x)]),
    "potts": _enumerated(
        graphical.Potts(_PATH, 0.0, n_states=3),
        lambda x: [*np.eye(3)[list(x)].ravel(), *(float(x[i] == x[j]) for i, j in _PATH)],
    ),
    "factor graph": _enumerated(
        graphical.FactorGraph(_SIZES, [(scope, np.zeros([_SIZES[v] for v in scope])) for scope in _SCOPES]),
        lambda x: _indicators(_SCOPES, _SIZES, x),
    ),
    "chain": _enumerated(
        graphical.PairwiseMRF(np.zeros((4, 2)), [(0, 1), (1, 2), (2, 3)], np.zeros((3, 2, 2))),
        lambda x: _indicators(_CHAIN, [2] * 4, x),
    ),
}
FAMILIES = tuple(case.family for case in CASES.values())
