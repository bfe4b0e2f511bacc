"""The covariance of the statistics of a discrete family: exact, by enumeration or by conditioning on table entries."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cumulant.errors import DomainError
from cumulant.graphical.exact.elimination import Elimination
from cumulant.graphical.exact.enumeration import joint_scores
from cumulant.graphical.structure import Structure

_FEW_STATES, _FEW_ENTRIES = 2**14, 2**23  # states, and statistics of all of them, that are looked at one by one


def covariance(structure: Structure, tables: np.ndarray, design: Any, evidence: dict, **options: Any) -> np.ndarray:
    """``Cov T(x)`` given the evidence, where ``T(x)`` is the sum of the rows of `design` that ``x`` picks.

    ``Cov T = sum_e p(e) D_e (E[T | e] - E T)^T`` over the entries ``e`` of all tables: one elimination pass for each,
    with all other entries of that table impossible. Models with few states are enumerated.
    """
    smaller, some, _ = structure.restrict(tables, evidence)
    place = structure.restrict(np.arange(tables.size, dtype=np.float64), evidence)[1].astype(np.int64)
    rows: Any = csr_array((np.ones(place.size), place, np.arange(place.size + 1)), (place.size, tables.size))
    rows = rows if design is None else csr_array(rows @ design)
    if smaller.n_states() <= _FEW_STATES and smaller.n_states() * rows.shape[1] <= _FEW_ENTRIES:
        return _by_enumeration(smaller, some, rows)
    value, _, p = Elimination.of(smaller, some, **options).beliefs()
    _require_possible(value)
    out = np.zeros((rows.shape[1], rows.shape[1]))
    for f in range(smaller.n_factors):
        begin, end = smaller.table_starts[f : f + 2]
        for e in range(begin, end):
            own = slice(rows.indptr[e], rows.indptr[e + 1])
            if p[e] > 0 and own.start < own.stop:
                tilted = some.copy()
                tilted[begin:end] = -np.inf
                tilted[e] = some[e]
                given = Elimination.of(smaller, tilted, **options).beliefs()[2]
                out[rows.indices[own]] += np.outer(p[e] * rows.data[own], rows.T @ (given - p))
    return (out + out.T) / 2


def _by_enumeration(structure: Structure, tables: np.ndarray, rows: csr_array) -> np.ndarray:
    scores = joint_scores(structure, tables).ravel()
    _require_possible(scores.max())
    p = np.exp(scores - scores.max())
    p /= p.sum()
    T = csr_array(structure.picked(states_of(structure)) @ rows).toarray()
    centred = T - p @ T
    return centred.T @ (p[:, None] * centred)


def states_of(structure: Structure) -> np.ndarray:
    """All states, one a row, the last variable running fastest."""
    shape = tuple(structure.cardinalities.tolist())
    return np.indices(shape).reshape(len(shape), -1).T if shape else np.zeros((1, 0), dtype=np.int64)


def _require_possible(value: float) -> None:
    if value == -np.inf:
        raise DomainError("every state is impossible under theta: there is no distribution")
