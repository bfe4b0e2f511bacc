"""Makers: edges of grids, tori, complete and random regular graphs, and spin glasses on them."""

from typing import Any

import networkx as nx
import numpy as np

from cumulant.graphical.pairwise import Ising
from cumulant.randomness import generator


def grid(rows: int, columns: int) -> np.ndarray:
    """The edges of a grid, shape (edges, 2); variable ``r * columns + c`` is in row ``r`` and column ``c``.

    >>> grid(2, 2).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    number = np.arange(_positive(rows, "rows") * _positive(columns, "columns")).reshape(rows, columns)
    beside = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    below = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return np.concatenate([beside, below])


def torus(rows: int, columns: int) -> np.ndarray:
    """The edges of a grid whose opposite sides are joined; at least 3 rows and columns, so that no edge is double.

    >>> len(torus(3, 4))
    24
    """
    if rows < 3 or columns < 3:
        raise ValueError(f"a torus needs at least 3 rows and 3 columns; got {rows} and {columns}")
    number = np.arange(rows * columns).reshape(rows, columns)
    beside = np.stack([number.ravel(), np.roll(number, -1, axis=1).ravel()], axis=1)
    below = np.stack([number.ravel(), np.roll(number, -1, axis=0).ravel()], axis=1)
    return np.concatenate([beside, below])


def complete(n: int) -> np.ndarray:
    """All pairs of `n` variables.

    >>> complete(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    return np.stack(np.triu_indices(_positive(n, "n"), 1), axis=1)


def random_regular(n: int, degree: int, rng: Any = None) -> np.ndarray:
    """The edges of a random graph in which each of `n` variables has `degree` neighbours.

    >>> edges = random_regular(10, 3, rng=0)
    >>> np.bincount(edges.ravel()).tolist()
    [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    """
    if not 0 <= degree < n or n * degree % 2:
        raise ValueError(f"degree must be from 0 to n - 1, with n * degree even; got n = {n}, degree = {degree}")
    graph = nx.random_regular_graph(degree, n, seed=int(generator(rng).integers(2**31)))
    return np.array(sorted((min(e), max(e)) for e in graph.edges), dtype=np.int64).reshape(-1, 2)


def spin_glass(
    edges: Any, *, coupling: float = 1.0, field: float = 0.0, kind: str = "gaussian", rng: Any = None
) -> Ising:
    """An `Ising` model with random couplings, ``N(0, coupling^2)`` or ``+-coupling`` (`kind` ``"gaussian"`` or
    ``"signs"``), and fields ``N(0, field^2)``.

    >>> spin_glass(grid(3, 3), kind="signs", rng=0).couplings[:4]
    array([ 1.,  1.,  1., -1.])
    """
    draw, edges = generator(rng), np.asarray(edges)
    if kind not in ("gaussian", "signs"):
        raise ValueError(f"kind must be 'gaussian' or 'signs'; got {kind!r}")
    n = int(edges.max()) + 1 if edges.size else 0
    couplings = draw.standard_normal(len(edges)) if kind == "gaussian" else 2.0 * draw.integers(0, 2, len(edges)) - 1.0
    return Ising(edges, coupling * couplings, field * draw.standard_normal(n))


def _positive(value: int, name: str) -> int:
    if isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be at least 1; got {value}")
    return int(value)
