"""Convex sets of couplings or tables in which Gibbs sampling mixes fast, for learning inside them."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.errors import NotConvergedError
from cumulant.graphical.mixing.certificates import Mixing, NotFastMixing, dependency_norm
from cumulant.graphical.mixing.ferromagnetic import Ferromagnetic, FerromagneticSet
from cumulant.graphical.mixing.row_sum_projection import nearest_row_sums
from cumulant.graphical.mixing.spectral_projection import nearest_weights, weight_matrix
from cumulant.graphical.mixing.table_projection import Tables, nearest_tables, table_influences
from cumulant.graphical.pairwise import BoltzmannMachine, Ising, Potts

_NORMS = ("spectral", "one", "inf", "box")
# How far x_j can move the distribution of x_i, over |J_ij|: a quarter of the oscillation of the table of one coupling.
_INFLUENCE = {Ising: 1.0, Potts: 0.5, BoltzmannMachine: 0.25}


@dataclass(frozen=True)
class FastMixing:
    """The models with ``norm(R) <= radius``, ``R`` a matrix of influences; for ``norm="box"``, ``|J_ij| <= radius``.

    ``R_ij`` is ``|J_ij|`` for spins, ``|J_ij| / 2`` for a Potts model, ``|W_ij| / 4`` for units 0 and 1, and for tables
    half of ``max_a range_b theta_ij(a, b)``: each bounds how far ``x_j`` can move the distribution of ``x_i``, and
    is convex in the parameters. Every member mixes as ``d(v) <= N exp(-v (1 - kappa) / N)`` with ``kappa = radius``,
    for the box ``kappa = degree * tanh(R)``. Fields are free.

    Examples
    --------
    >>> from cumulant.graphical import grid
    >>> round(FastMixing(0.2, "box").mixing(grid(4, 4), 16).rate, 6)
    0.98693
    """

    radius: float = 0.9
    norm: str = "spectral"

    def __post_init__(self):
        checks.choice("norm", self.norm, _NORMS)
        checks.positive("radius", self.radius)

    def mixing(self, edges: np.ndarray, n: int, influence: float = 1.0) -> Mixing:
        """What holds for every member, `influence` being ``R_ij / |J_ij|``; `NotFastMixing` where nothing does."""
        kappa = self.radius
        if self.norm == "box":
            kappa = int(np.bincount(edges.ravel(), minlength=1).max()) * math.tanh(influence * self.radius)
            kappa *= 1.0 + 2.0**-50  # rounding
        if not kappa < 1.0:
            raise NotFastMixing(f"this set is not fast-mixing: it allows kappa = {kappa:.6g}, not below 1", kappa)
        return Mixing(float(max(n, 1)), -(1.0 - kappa) / max(n, 1), kappa, self.norm)


@dataclass(frozen=True)
class CouplingSet:
    """A set in the parameters ``theta`` of a model whose last ones are a coupling for each edge; `only` if all are."""

    within: FastMixing
    edges: np.ndarray
    n: int
    influence: float = 1.0
    only: bool = False

    def mixing(self, largest: float = 0.0) -> Mixing:
        """What holds for every member, and for all models of a size up to `largest`."""
        return _widened(self.within, largest).mixing(self.edges, self.n, self.influence)

    def reach(self) -> float:
        """No member is farther from zero: ``radius sqrt(edges)`` for the box, else ``radius sqrt(n / 2) / influence``,
        as the squares of all couplings add up to half a squared Frobenius norm. Infinite where there are fields.
        """
        if not self.only:
            return math.inf
        if self.within.norm == "box":
            return self.within.radius * math.sqrt(len(self.edges))
        return self.within.radius / self.influence * math.sqrt(min(len(self.edges), self.n / 2.0))

    def size(self, theta: np.ndarray) -> float:
        """What must be at most the radius: an upper bound on the norm of ``R``, or the largest coupling."""
        weights = np.abs(theta[theta.size - len(self.edges) :])
        if self.within.norm == "box":
            return float(weights.max(initial=0.0))
        return dependency_norm(weight_matrix(self.edges, self.influence * weights, self.n), self.within.norm)

    def project(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """The nearest member, and how far from the true projection it can be."""
        fields, couplings = np.split(theta, [theta.size - len(self.edges)])
        point, error = self._nearest(couplings)
        return np.concatenate([fields, point]), error

    def _nearest(self, couplings: np.ndarray) -> tuple[np.ndarray, float]:
        norm, radius = self.within.norm, self.within.radius
        if norm == "box":
            return np.clip(couplings, -radius, radius), 0.0
        given = (self.edges, np.abs(couplings), self.n, radius / self.influence)
        for tol, steps in ((1e-11, 25), (1e-8, 100)):
            try:
                if norm == "spectral":
                    nearest = nearest_weights(*given, tol=tol)
                else:
                    nearest = nearest_row_sums(*given, tol=tol, max_steps=steps)
            except NotConvergedError:  # Newton's method can be slow on bipartite graphs, and close to the set it rounds
                continue
            return np.copysign(nearest.point, couplings) * (nearest.point > 0), math.sqrt(2.0 * nearest.gap)
        shrunk = radius / self.size(couplings) * (1.0 - 2.0**-50) * couplings
        return shrunk, float(np.linalg.norm(shrunk - couplings))  # no farther from the projection: see `TableSet`


@dataclass(frozen=True)
class TableSet:
    """The same for tables: `where` are the entries of `tables`, those of pairs, among the parameters ``theta``."""

    within: FastMixing
    tables: Tables
    where: np.ndarray
    only: bool = False

    def mixing(self, largest: float = 0.0) -> Mixing:
        """What holds for every member, and for all models of a size up to `largest`."""
        return _widened(self.within, largest).mixing(self.tables.edges, self.tables.n)

    def reach(self) -> float:
        """No member whose tables add up to zero, each, is farther from zero; infinite where there are fields.

        The rows of such a table lie within ``R_ij`` of their middles and the means of rows within ``R_ji`` of theirs,
        so that the squares of its ``r`` by ``c`` entries add up to ``r c (R_ij^2 + R_ji^2)`` at most; no entry of ``R``
        is above its norm, and its squares add up to at most ``n`` times the norm squared.
        """
        if not self.only:
            return math.inf
        entries = self.tables.shapes.prod(axis=1)
        most = min(2 * int(entries.sum()), int(entries.max(initial=0)) * self.tables.n)
        return self.within.radius * math.sqrt(most)

    def size(self, theta: np.ndarray) -> float:
        """What must be at most the radius: an upper bound on the norm of ``R``."""
        return dependency_norm(table_influences(self._filled(theta)), self.within.norm)

    def project(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """The nearest member, and how far from the true projection it can be."""
        point, error = self._nearest(self._filled(theta), self.size(theta))
        theta = theta.copy()
        theta[self.where] = point
        return theta, error

    def _nearest(self, tables: Tables, size: float) -> tuple[np.ndarray, float]:
        norm, radius = self.within.norm, self.within.radius
        if size <= radius:
            return tables.flat, 0.0
        shrunk = tables.shrunk(tables.flat, radius / size * (1.0 - 2.0**-50))
        # The true projection is no farther from the given tables than these, and in the set they are no farther from it
        # (the projection is the foot of a perpendicular).
        away = float(np.linalg.norm(shrunk - tables.flat))
        if away <= 1e-7 * (1.0 + float(np.linalg.norm(tables.flat))):
            return shrunk, away
        try:
            nearest = nearest_tables(tables, radius, norm, tol=1e-7, floor=1e-12)
        except NotConvergedError:
            return shrunk, away
        error = math.sqrt(2.0 * nearest.gap)
        return (nearest.point, error) if error <= away else (shrunk, away)

    def _filled(self, theta: np.ndarray) -> Tables:
        return replace(self.tables, flat=np.ascontiguousarray(theta[self.where]))


def _widened(within: FastMixing, largest: float) -> FastMixing:
    return replace(within, radius=max(within.radius, largest))


def fast_set(
    model: Any, free: np.ndarray, within: FastMixing | Ferromagnetic
) -> CouplingSet | TableSet | FerromagneticSet:
    """The set `within` for the free parameters of a model; refused, with the reason, where there is none.

    A Potts model has one coupling for each edge, ``J_ij [x_i = x_j]``: ``R_ij = |J_ij| / 2``, and the projection is
    that of spins with twice the radius; for units 0 and 1, ``W_ij x_i x_j``, four times. Tables are projected as
    `graphical.project` does it.
    """
    n = model.n_variables
    if isinstance(within, Ferromagnetic):
        if not isinstance(model, Ising) or free.size != n + len(model.edges):
            raise ValueError("mixing=Ferromagnetic(...) is for Ising models whose fields are learnt too (fields=True)")
        return FerromagneticSet(within, n, len(model.edges))
    for kind, influence in _INFLUENCE.items():
        if isinstance(model, kind):
            return CouplingSet(within, model.edges, n, influence, free.size == len(model.edges))
    structure = model.structure
    width = np.diff(structure.scope_starts)
    if model.family.design is not None:
        raise TypeError(f"mixing: no fast-mixing set is known for the parameters of a {type(model).__name__}")
    if (width > 2).any():
        raise ValueError(
            f"mixing needs factors of at most two variables; factor {int(np.argmax(width > 2))} has {width.max()}: "
            "learn without mixing, by 'exact', 'pseudo_likelihood', 'contrastive_divergence' or 'persistent'"
        )
    if within.norm == "box":
        raise ValueError(
            "norm='box' bounds the coupling of each edge, and tables have none: use 'spectral', 'one' or 'inf'"
        )
    pairs = np.flatnonzero(width == 2)
    edges = structure.scopes[structure.scope_starts[pairs][:, None] + np.arange(2)]
    if len(np.unique(np.sort(edges, axis=1), axis=0)) < len(edges):
        raise ValueError("mixing needs one table for each pair of variables: a pair has two, add them up")
    shapes = structure.cardinalities[edges]
    where = np.searchsorted(free, np.flatnonzero(np.repeat(width == 2, np.diff(structure.table_starts))))
    return TableSet(within, Tables(edges, shapes, np.zeros(where.size), n), where, free.size == where.size)
