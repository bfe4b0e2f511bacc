"""Ising models without fields on square lattices: which sites and bonds they have, found from their edges alone."""

import math
from typing import Any, NamedTuple

import numpy as np


class SquareLattice(NamedTuple):
    """Couplings of the bonds to the right of each site and down from it; the last ones lead round, where joined."""

    right: np.ndarray
    down: np.ndarray
    joined_right: bool
    joined_down: bool

    @classmethod
    def of(cls, model: Any, rows: int | None = None, columns: int | None = None) -> "SquareLattice | None":
        """The lattice whose sites, numbered along its rows, are the spins; None where there is none.

        Bonds may be missing, and couplings of an edge that is named twice add up. Without `rows` and `columns` it is
        the lattice, lying or standing, that is the cheapest to sum over.
        """
        n = model.n_variables
        if rows is not None and columns is not None:
            return _read(model, rows, columns) if rows * columns == n else None
        edges = model.edges
        gaps = np.abs(edges[:, 1] - edges[:, 0])
        limit = int(gaps[gaps > 1].min(initial=n)) + 1  # the shortest step but along a row is down, or round a row
        widths = [c for c in range(1, min(n, limit) + 1) if n % c == 0]
        found = [lattice for c in widths if (lattice := _read(model, n // c, c)) is not None]
        found += [lattice.turned() for lattice in found]
        return min(found, key=lambda lattice: lattice.front, default=None)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.right.shape  # type: ignore[return-value]

    @property
    def front(self) -> int:
        """How many variables are open at a time when sites are taken row by row."""
        return (2 if self.joined_down else 1) * self.shape[1] + (2 if self.joined_right else 0) + 4

    @property
    def couplings(self) -> np.ndarray:
        """All of them, with zeros for bonds that are missing."""
        return np.concatenate([self.right.ravel(), self.down.ravel()])

    def turned(self) -> "SquareLattice":
        """The same lattice with rows and columns exchanged."""
        return SquareLattice(
            np.ascontiguousarray(self.down.T), np.ascontiguousarray(self.right.T), self.joined_down, self.joined_right
        )

    @property
    def bipartite(self) -> bool:
        """Whether every bond joins an even site to an odd one."""
        rows, columns = self.shape
        return not (self.joined_right and columns % 2) and not (self.joined_down and rows % 2)


def _read(model: Any, rows: int, columns: int) -> SquareLattice | None:
    first, second = np.sort(model.edges, axis=1).T
    gap, column = second - first, first % columns
    right = (gap == 1) & (column < columns - 1)
    down = gap == columns
    across = (gap == columns - 1) & (column == 0) & (columns > 2)
    up = (gap == (rows - 1) * columns) & (first < columns) & (rows > 2)
    if not (right | down | across | up).all():
        return None
    n = rows * columns
    place = np.where(right, first, np.where(across, second, np.where(down, n + first, n + second)))
    lying, standing = _sums(place, model.couplings, 2 * n).reshape(2, rows, columns)
    return SquareLattice(lying, standing, bool(np.any(lying[:, -1])), bool(np.any(standing[-1])))


def _sums(place: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """The values at each place added up, with one rounding: large couplings of one bond may cancel."""
    out = np.zeros(n)
    out[place] = values
    for k in np.flatnonzero(np.bincount(place, minlength=n) > 1).tolist():
        out[k] = math.fsum(values[place == k])
    return out
