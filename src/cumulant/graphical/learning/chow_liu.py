"""The tree that fits data best (Chow and Liu 1968)."""

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from cumulant import checks
from cumulant.errors import NoEstimateError
from cumulant.graphical.pairwise import Ising, PairwiseMRF


def chow_liu(
    data: Any, cardinalities: Any = None, *, smoothing: float = 0.0, spins: bool | None = None
) -> Ising | PairwiseMRF:
    """The maximum-likelihood model among all those whose graph is a tree.

    A spanning tree of largest total mutual information, with ``p(x) = prod_i p_i(x_i) prod_ij p_ij / (p_i p_j)`` at the
    marginals of the data: no tree and no parameters on it have a larger likelihood (Chow and Liu 1968). Spins -1 and +1
    give an `Ising` model, states 0, 1, 2, ... a `PairwiseMRF`.

    Parameters
    ----------
    data : array of shape (observations, variables)
    cardinalities : sequence of int, optional
        How many states each variable has; as many as occur without it. Not for spins.
    smoothing : float
        The number of observations, spread evenly over all states, that are added to the data. Without any, a pair of
        states that never occurs on an edge of the tree has probability zero, which is refused.
    spins : bool, optional
        Whether the data are spins; without it, whether -1 is among them.

    Examples
    --------
    >>> x = np.array([[1, 1, 1], [1, 1, -1], [-1, -1, 1], [-1, -1, -1], [1, -1, 1], [-1, 1, -1]])
    >>> model = chow_liu(x)
    >>> sorted(map(tuple, np.sort(model.edges, axis=1).tolist()))
    [(0, 1), (0, 2)]
    >>> round(float(np.tanh(model.couplings[0])), 6)       # E x_0 x_1
    0.333333
    """
    x = checks.array("data", data)
    if x.ndim != 2 or not x.size or x.dtype.kind not in "iubf" or not np.array_equal(x, x.astype(np.int64)):
        raise ValueError(f"data must be whole numbers of shape (observations, variables); got shape {x.shape}")
    checks.not_negative("smoothing", smoothing)
    x = x.astype(np.int64)
    spins = cardinalities is None and bool((x == -1).any()) if spins is None else spins
    if spins:
        if not np.isin(x, (-1, 1)).all():
            raise ValueError("data must be spins -1 and +1, or states 0, 1, 2, ...; it has -1 and others than +1")
        x = (x + 1) // 2
    sizes = np.array([2] * x.shape[1]) if spins else _sizes(x, cardinalities)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    indicators = np.zeros((len(x), int(starts[-1])))
    np.put_along_axis(indicators, x + starts[:-1], 1.0, axis=1)
    share = smoothing / (len(x) + smoothing)
    owner = np.repeat(np.arange(sizes.size), sizes)
    joint = (1.0 - share) * (indicators.T @ indicators) / len(x) + share / np.outer(sizes[owner], sizes[owner])
    single = (1.0 - share) * indicators.mean(axis=0) + share / sizes[owner]
    edges = _tree(_information(joint, single, starts))
    tables = []
    for i, j in edges:
        here, there = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        if (joint[here, there] <= 0).any():
            raise NoEstimateError(
                f"variables {i} and {j} are joined in the tree and some pair of their states never occurs: the "
                "estimate is not finite; smoothing=1.0 adds one observation spread over all states"
            )
        tables.append(np.log(joint[here, there] / np.outer(single[here], single[there])))
    if (single <= 0).any():
        v = int(owner[np.flatnonzero(single <= 0)[0]])
        raise NoEstimateError(f"a state of variable {v} never occurs: the estimate is not finite; use smoothing=1.0")
    fields = [np.log(single[a:b]) for a, b in pairwise(starts)]
    return _spins(edges, tables, fields) if spins else PairwiseMRF(fields, edges, tables)


def _sizes(x: np.ndarray, cardinalities: Any) -> np.ndarray:
    found = x.max(axis=0) + 1
    if x.min() < 0:
        raise ValueError(f"data must be states 0, 1, 2, ... where cardinalities are given; got {x.min()}")
    if cardinalities is None:
        return found
    sizes = np.asarray(cardinalities)
    if sizes.shape != found.shape or (sizes < found).any():
        raise ValueError("cardinalities must have one number for each variable, above every state in data")
    return sizes.astype(np.int64)


def _information(joint: np.ndarray, single: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The mutual information of every pair."""
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 log 0 = 0: a pair of states that never occurs
        terms = np.where(joint > 0, joint * np.log(joint / np.outer(single, single)), 0.0)
    by_row = np.add.reduceat(terms, starts[:-1], axis=0)
    return np.maximum(np.add.reduceat(by_row, starts[:-1], axis=1), 0.0)


def _tree(information: np.ndarray) -> np.ndarray:
    # A weight of zero would be no edge at all: shift all of them, which changes no spanning tree.
    cost = np.triu(information.max() + 1.0 - information, 1)
    tree = minimum_spanning_tree(cost).tocoo()
    edges = np.sort(np.stack([tree.row, tree.col], axis=1), axis=1).astype(np.int64).reshape(-1, 2)
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


def _spins(edges, tables, fields) -> Ising:
    h = np.array([0.5 * (f[1] - f[0]) for f in fields])
    J = np.zeros(len(edges))
    for e, ((i, j), t) in enumerate(zip(edges, tables, strict=True)):
        J[e] = 0.25 * (t[1, 1] + t[0, 0] - t[0, 1] - t[1, 0])
        h[i] += 0.25 * (t[1, 1] + t[1, 0] - t[0, 1] - t[0, 0])
        h[j] += 0.25 * (t[1, 1] + t[0, 1] - t[1, 0] - t[0, 0])
    return Ising(edges, J, h)
