"""Convex sets of couplings or tables in which Gibbs sampling mixes fast, for learning inside them."""

import math
from dataclasses import dataclass

import numpy as np

from cumulant.errors import NotConvergedError
from cumulant.graphical.mixing.certificates import Mixing, NotFastMixing, dependency_norm
from cumulant.graphical.mixing.row_sum_projection import nearest_row_sums
from cumulant.graphical.mixing.spectral_projection import nearest_weights, weight_matrix
from cumulant.graphical.mixing.table_projection import Tables, nearest_tables, table_influences

__all__ = ["FastMixing"]

_NORMS = ("spectral", "one", "inf", "box")


@dataclass(frozen=True)
class FastMixing:
    """The models with ``norm(R) <= radius``, ``R`` a matrix of influences; for ``norm="box"``, ``|J_ij| <= radius``.

    ``R_ij`` is ``|J_ij|`` for spins, ``|J_ij| / 2`` for a Potts model, ``|W_ij| / 4`` for units 0 and 1, and for tables
    half of ``max_a range_b theta_ij(a, b)``: each bounds how far ``x_j`` can move the distribution of ``x_i``, and
    is convex in the parameters. Every member mixes as ``d(v) <= N exp(-v (1 - kappa) / N)`` with ``kappa = radius``,
    for the box ``kappa = degree * tanh(R)``. Fields are free.

    `influence` in the methods is ``R_ij / |J_ij|``: 1, 1/2 or 1/4.

    Examples
    --------
    >>> from cumulant.graphical import grid
    >>> round(FastMixing(0.2, "box").mixing(grid(4, 4), 16).rate, 6)
    0.98693
    """

    radius: float = 0.9
    norm: str = "spectral"

    def __post_init__(self):
        if self.norm not in _NORMS:
            raise ValueError(f"norm must be one of {', '.join(map(repr, _NORMS))}; got {self.norm!r}")
        if isinstance(self.radius, bool) or not (math.isfinite(self.radius) and self.radius > 0):
            raise ValueError(f"radius must be positive and finite; got {self.radius}")

    def mixing(self, edges: np.ndarray, n: int, influence: float = 1.0) -> Mixing:
        """What holds for every member; `NotFastMixing` where nothing does."""
        kappa = self.radius
        if self.norm == "box":
            kappa = int(np.bincount(edges.ravel(), minlength=1).max()) * math.tanh(influence * self.radius)
        if not kappa < 1.0:
            raise NotFastMixing(f"this set is not fast-mixing: it allows kappa = {kappa:.6g}, not below 1", kappa)
        return Mixing(float(max(n, 1)), -(1.0 - kappa) / max(n, 1), kappa, self.norm)

    # Of models with one coupling for each edge ------------------------------------------------------------------------

    def reach(self, edges: np.ndarray, n: int, influence: float = 1.0) -> float:
        """No couplings of a member are farther from zero: ``radius sqrt(edges)`` for the box, else
        ``(radius / influence) sqrt(n / 2)``, as the squares of all couplings add up to half a squared Frobenius norm.
        """
        if self.norm == "box":
            return self.radius * math.sqrt(len(edges))
        return self.radius / influence * math.sqrt(min(len(edges), n / 2.0))

    def project(
        self, edges: np.ndarray, couplings: np.ndarray, n: int, influence: float = 1.0
    ) -> tuple[np.ndarray, float]:
        """The nearest member, and how far from the true projection it can be."""
        if self.norm == "box":
            return np.clip(couplings, -self.radius, self.radius), 0.0
        weights, radius = np.abs(couplings), self.radius / influence
        for tol, steps in ((1e-11, 25), (1e-8, 100)):
            try:
                if self.norm == "spectral":
                    nearest = nearest_weights(edges, weights, n, radius, tol=tol)
                else:
                    nearest = nearest_row_sums(edges, weights, n, radius, tol=tol, max_steps=steps)
            except (
                NotConvergedError
            ):  # on bipartite graphs Newton's method can slow down, close to the set rounding stops it
                continue
            return np.copysign(nearest.point, couplings) * (nearest.point > 0), math.sqrt(2.0 * nearest.gap)
        shrunk = self.radius / self.size(edges, couplings, n, influence) * (1.0 - 2.0**-50) * couplings
        return shrunk, float(np.linalg.norm(shrunk - couplings))  # no farther from the projection: see project_tables

    def size(self, edges: np.ndarray, couplings: np.ndarray, n: int, influence: float = 1.0) -> float:
        """What must be at most `radius`: an upper bound on the norm of ``R``, or the largest coupling."""
        if self.norm == "box":
            return float(np.abs(couplings).max(initial=0.0))
        return dependency_norm(weight_matrix(edges, influence * np.abs(couplings), n), self.norm)

    # Of models with tables --------------------------------------------------------------------------------------------

    def reach_of_tables(self, tables: Tables) -> float:
        """No tables of a member whose entries add up to zero, each, are farther from zero.

        The rows of such a table lie within ``R_ij`` of their middles and the means of rows within ``R_ji`` of theirs,
        so that the squares of its ``r`` by ``c`` entries add up to ``r c (R_ij^2 + R_ji^2)`` at most; no entry of ``R``
        is above its norm, and its squares add up to at most ``n`` times the norm squared.
        """
        entries = tables.shapes.prod(axis=1)
        return self.radius * math.sqrt(min(2 * int(entries.sum()), int(entries.max(initial=0)) * tables.n))

    def project_tables(self, tables: Tables) -> tuple[np.ndarray, float]:
        """The nearest tables of a member, flat, and how far from the true projection they can be."""
        size = self.size_of_tables(tables)
        if size <= self.radius:
            return tables.flat, 0.0
        entries = tables.shapes.prod(axis=1)
        edge = np.repeat(np.arange(len(entries)), entries)
        mean = (np.bincount(edge, tables.flat) / entries)[edge]
        shrunk = mean + self.radius / size * (1.0 - 2.0**-50) * (tables.flat - mean)
        # The true projection is no farther from the given tables than these, and in the set they are no farther from it
        # (the projection is the foot of a perpendicular).
        away = float(np.linalg.norm(shrunk - tables.flat))
        if away <= 1e-7 * (1.0 + float(np.linalg.norm(tables.flat))):
            return shrunk, away
        try:
            nearest = nearest_tables(tables, self.radius, self.norm, tol=1e-7, floor=1e-12)
        except NotConvergedError:
            return shrunk, away
        error = math.sqrt(2.0 * nearest.gap)
        return (nearest.point, error) if error <= away else (shrunk, away)

    def size_of_tables(self, tables: Tables) -> float:
        """What must be at most `radius`: an upper bound on the norm of ``R``."""
        return dependency_norm(table_influences(tables), self.norm)
