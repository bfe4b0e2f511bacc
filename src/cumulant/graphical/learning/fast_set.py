"""A fast-mixing set in the parameters of a model: couplings of edges, or tables of pairs."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from cumulant.graphical.mixing.certificates import Mixing
from cumulant.graphical.mixing.fast_mixing import FastMixing
from cumulant.graphical.mixing.table_projection import Tables
from cumulant.graphical.pairwise import BoltzmannMachine, Ising, Potts

__all__ = ["CouplingSet", "TableSet", "fast_set"]

# How far x_j can move the distribution of x_i, over |J_ij|: a quarter of the oscillation of the table of one coupling.
_INFLUENCE = {Ising: 1.0, Potts: 0.5, BoltzmannMachine: 0.25}


@dataclass(frozen=True)
class CouplingSet:
    """Of models whose last free parameters are one coupling for each edge."""

    within: FastMixing
    edges: np.ndarray
    n: int
    influence: float
    only: bool

    def widened(self, largest: float) -> Self:
        """The set whose radius is `largest`, where that is above its own."""
        return replace(self, within=replace(self.within, radius=max(self.within.radius, largest)))

    def mixing(self) -> Mixing:
        """What holds for every member."""
        return self.within.mixing(self.edges, self.n, self.influence)

    def reach(self) -> float:
        """No member is farther from zero; infinite where there are fields."""
        return self.within.reach(self.edges, self.n, self.influence) if self.only else np.inf

    def size(self, theta: np.ndarray) -> float:
        """At most the radius for members."""
        return self.within.size(self.edges, self._couplings(theta), self.n, self.influence)

    def project(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """The nearest member, and how far from the true projection it can be."""
        m = len(self.edges)
        couplings, error = self.within.project(self.edges, self._couplings(theta), self.n, self.influence)
        return np.concatenate([theta[: theta.size - m], couplings]), error

    def _couplings(self, theta):
        return theta[theta.size - len(self.edges) :]


@dataclass(frozen=True)
class TableSet:
    """Of models whose parameters are tables; `where` are the entries of tables of pairs among the free parameters."""

    within: FastMixing
    tables: Tables
    where: np.ndarray
    only: bool

    def widened(self, largest: float) -> Self:
        """The set whose radius is `largest`, where that is above its own."""
        return replace(self, within=replace(self.within, radius=max(self.within.radius, largest)))

    def mixing(self) -> Mixing:
        """What holds for every member."""
        return self.within.mixing(self.tables.edges, self.tables.n)

    def reach(self) -> float:
        """No member whose tables add up to zero, each, is farther from zero; infinite where there are fields."""
        return self.within.reach_of_tables(self.tables) if self.only else np.inf

    def size(self, theta: np.ndarray) -> float:
        """At most the radius for members."""
        return self.within.size_of_tables(self._filled(theta))

    def project(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """The nearest member, and how far from the true projection it can be."""
        point, error = self.within.project_tables(self._filled(theta))
        theta = theta.copy()
        theta[self.where] = point
        return theta, error

    def _filled(self, theta):
        t = self.tables
        return Tables(t.edges, t.shapes, t.starts, np.ascontiguousarray(theta[self.where]), t.n)


def fast_set(model: Any, free: np.ndarray, within: FastMixing) -> CouplingSet | TableSet:
    """The set `within` for the free parameters of a model; refused, with the reason, where there is none.

    A Potts model has one coupling for each edge, ``J_ij [x_i = x_j]``: ``R_ij = |J_ij| / 2``, and the projection is
    that of spins with twice the radius; for units 0 and 1, ``W_ij x_i x_j``, four times. Tables are projected as
    `graphical.project` does it.
    """
    n = model.n_variables
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
    sizes = shapes.prod(axis=1)
    starts = np.cumsum(sizes) - sizes
    entry = np.arange(int(sizes.sum())) - np.repeat(starts, sizes) + np.repeat(structure.table_starts[pairs], sizes)
    where = np.searchsorted(free, entry)
    tables = Tables(edges, shapes, starts, np.zeros(entry.size), n)
    return TableSet(within, tables, where, free.size == entry.size)
