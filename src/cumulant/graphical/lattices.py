"""Makers: edges of lattices in any dimension, complete and random regular graphs, and spin glasses on them."""

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np

from cumulant import checks
from cumulant.graphical.pairwise import Ising, edge_array
from cumulant.randomness import generator


def lattice(shape: Sequence[int], periodic: bool | Sequence[bool] = False) -> np.ndarray:
    """The edges of a rectangular lattice of any dimension, shape (edges, 2).

    The variables are numbered as the entries of an array of this `shape`, the last axis fastest, so that
    ``draw.reshape(shape)`` puts a state back into place. Edges along the last axis come first.

    Parameters
    ----------
    shape : whole numbers
        The number of variables along each axis.
    periodic : bool, or one for each axis
        Whether opposite sides are joined; then at least 3 along that axis, so that no edge is double.

    Examples
    --------
    >>> len(lattice((4, 4, 4), periodic=True)), len(lattice((4, 4, 4)))
    (192, 144)
    >>> lattice((2, 2)).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    sizes = [checks.whole("every entry of shape", s) for s in np.atleast_1d(checks.array("shape", shape)).tolist()]
    joined = [bool(periodic)] * len(sizes) if np.ndim(periodic) == 0 else [bool(p) for p in np.asarray(periodic)]
    if len(joined) != len(sizes):
        raise ValueError(f"periodic must be one flag, or one for each of {len(sizes)} axes; got {len(joined)}")
    number = np.arange(int(np.prod(sizes))).reshape(sizes)
    found = []
    for axis in reversed(range(len(sizes))):
        if joined[axis] and sizes[axis] < 3:
            raise ValueError(f"a periodic axis needs at least 3 variables; axis {axis} has {sizes[axis]}")
        ahead = np.roll(number, -1, axis=axis)
        kept = slice(None) if joined[axis] else slice(sizes[axis] - 1)
        some = (slice(None),) * axis + (kept,)
        found.append(np.stack([number[some].ravel(), ahead[some].ravel()], axis=1))
    return np.concatenate(found)


def grid(rows: int, columns: int) -> np.ndarray:
    """The edges of a grid, shape (edges, 2); variable ``r * columns + c`` is in row ``r`` and column ``c``.

    >>> grid(2, 2).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    return lattice((checks.whole("rows", rows), checks.whole("columns", columns)))


def torus(rows: int, columns: int) -> np.ndarray:
    """The edges of a grid whose opposite sides are joined; at least 3 rows and columns, so that no edge is double.

    >>> len(torus(3, 4))
    24
    """
    return lattice((checks.whole("rows", rows, 3), checks.whole("columns", columns, 3)), periodic=True)


def complete(n: int) -> np.ndarray:
    """All pairs of `n` variables.

    >>> complete(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    return np.stack(np.triu_indices(checks.whole("n", n), 1), axis=1)


def random_regular(n: int, degree: int, rng: Any = None) -> np.ndarray:
    """The edges of a random graph in which each of `n` variables has `degree` neighbours.

    >>> edges = random_regular(10, 3, rng=0)
    >>> np.bincount(edges.ravel()).tolist()
    [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    """
    n, degree = checks.whole("n", n), checks.whole("degree", degree, 0)
    if degree >= n or n * degree % 2:
        raise ValueError(f"degree must be from 0 to n - 1, with n * degree even; got n = {n}, degree = {degree}")
    graph = nx.random_regular_graph(degree, n, seed=int(generator(rng).integers(2**31)))
    return np.array(sorted((min(e), max(e)) for e in graph.edges), dtype=np.int64).reshape(-1, 2)


def spin_glass(
    edges: Any,
    *,
    couplings: float = 1.0,
    fields: float = 0.0,
    kind: str = "gaussian",
    field_kind: str = "gaussian",
    rng: Any = None,
) -> Ising:
    """An `Ising` model with random couplings and fields, of the sizes given.

    The couplings are ``N(0, couplings^2)`` or ``+-couplings`` (`kind` ``"gaussian"`` or ``"signs"``), the fields
    ``N(0, fields^2)`` or uniform in ``[-fields, fields]`` (`field_kind` ``"gaussian"`` or ``"uniform"``).

    >>> spin_glass(grid(3, 3), kind="signs", rng=0).couplings[:4]
    array([ 1.,  1.,  1., -1.])
    >>> model = spin_glass(grid(9, 9), couplings=0.5, fields=1.0, kind="signs", field_kind="uniform", rng=0)
    >>> bool(0.9 < np.abs(model.fields).max() <= 1.0)
    True
    """
    draw, edges = generator(rng), edge_array(edges)
    checks.choice("kind", kind, ("gaussian", "signs"))
    checks.choice("field_kind", field_kind, ("gaussian", "uniform"))
    for name, size in (("couplings", couplings), ("fields", fields)):
        if np.ndim(size) != 0:
            raise ValueError(
                f"{name} of a spin glass must be one number, the size of the random ones; got shape {np.shape(size)}: "
                "for given ones use Ising(edges, couplings, fields)"
            )
        checks.number(name, size)
    n = int(edges.max()) + 1 if edges.size else 0
    drawn = draw.standard_normal(len(edges)) if kind == "gaussian" else 2.0 * draw.integers(0, 2, len(edges)) - 1.0
    around = draw.standard_normal(n) if field_kind == "gaussian" else draw.uniform(-1.0, 1.0, n)
    return Ising(edges, couplings * drawn, fields * around)
