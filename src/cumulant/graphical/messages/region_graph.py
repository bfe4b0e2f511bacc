"""Region graphs: clusters of variables, their intersections, and the numbers by which their entropies count."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cumulant.graphical.messages.structured_blocks import induced
from cumulant.graphical.structure import Structure


class Region(NamedTuple):
    """Variables, and the factors that the region accounts for."""

    variables: frozenset[int]
    factors: frozenset[int]

    def below(self, other: "Region") -> bool:
        """Whether it is part of `other`, and not the same."""
        return self != other and self.variables <= other.variables and self.factors <= other.factors


@dataclass(frozen=True)
class RegionGraph:
    """Outer regions, inner regions, and counting numbers ``c_R = 1 - sum of c_S over the S above R`` (Moebius).

    The free energy of the regions is ``sum_R c_R (U_R - H_R)``. It is valid where every factor and every variable are
    counted once: ``sum of c_R over the R that contain it = 1`` (Yedidia, Freeman, Weiss 2005); `check` says so.

    Attributes
    ----------
    outer : tuple of Region
        The largest regions; each has counting number 1.
    inner : tuple of Region
        Their intersections, the intersections of these, and so on, larger ones first.
    counting : tuple of int
        The counting numbers of the inner regions.

    Examples
    --------
    Three rows and columns are four squares: four edges lie in two of them, and the middle in all four.

    >>> from cumulant.graphical import Ising, grid
    >>> model = Ising(grid(3, 3), 0.3)
    >>> graph = RegionGraph.of(model, plaquettes(3, 3))
    >>> [(sorted(region.variables), c) for region, c in zip(graph.inner, graph.counting)]
    [([1, 4], -1), ([3, 4], -1), ([4, 5], -1), ([4, 7], -1), ([4], 1)]
    """

    outer: tuple[Region, ...]
    inner: tuple[Region, ...]
    counting: tuple[int, ...]

    @classmethod
    def of(cls, model: Any, clusters: Iterable[Iterable[int]]) -> "RegionGraph":
        """Clusters of variables, closed under intersection (the cluster variation method; Kikuchi 1951).

        Each factor must lie in a cluster. Clusters inside others are dropped, and so are variables with evidence.
        """
        structure, _, free = model.restricted()
        number = {int(v): i for i, v in enumerate(free)}
        sets = []
        for cluster in clusters:
            members = [int(v) for v in cluster]
            if any(not 0 <= v < model.structure.n_variables for v in members):
                raise ValueError(f"clusters must hold variables from 0 to {model.structure.n_variables - 1}")
            sets.append(frozenset(number[v] for v in members if v in number))
        sets += [frozenset([i]) for i in range(free.size)]
        return cls._closed(structure, [_region(structure, s) for s in _largest(sets)])

    @classmethod
    def bethe(cls, model: Any) -> "RegionGraph":
        """Factors with their variables, and single variables: counting numbers 1 and ``1 - degree``.

        A variable without factors is an outer region.
        """
        structure = model.restricted()[0]
        scopes = [frozenset(structure.scope(f)) for f in range(structure.n_factors)]
        single = [Region(frozenset([i]), frozenset()) for i in range(structure.n_variables)]
        touched = frozenset().union(*scopes)
        outer = [Region(scope, frozenset([f])) for f, scope in enumerate(scopes) if scope]
        outer += [region for i, region in enumerate(single) if i not in touched]
        return cls._counted(tuple(outer), tuple(single[i] for i in sorted(touched)), structure)

    @classmethod
    def _closed(cls, structure: Structure, outer: list[Region]) -> "RegionGraph":
        found = set(outer)
        fresh = list(outer)
        while fresh:
            holding: dict[int, list[Region]] = {}
            for region in found:
                for v in region.variables:
                    holding.setdefault(v, []).append(region)
            made = set()
            for region in fresh:
                for other in {r for v in region.variables for r in holding[v]}:
                    if other != region:
                        made.add(Region(region.variables & other.variables, region.factors & other.factors))
            fresh = [region for region in made if region not in found]
            found.update(fresh)
        inner = sorted(found - set(outer), key=lambda r: (-len(r.variables), sorted(r.variables)))
        return cls._counted(tuple(outer), tuple(inner), structure)

    @classmethod
    def _counted(cls, outer: tuple[Region, ...], inner: tuple[Region, ...], structure: Structure) -> "RegionGraph":
        holding: dict[int, list[int]] = {}
        everything = [*outer, *inner]  # larger ones first: what is above a region stands before it
        numbers: list[int] = []
        for r, region in enumerate(everything):
            some = next(iter(region.variables))
            above = [s for s in holding.get(some, []) if region.below(everything[s])]
            numbers.append(1 - sum(numbers[s] for s in above))
            for v in region.variables:
                holding.setdefault(v, []).append(r)
        graph = cls(outer, inner, tuple(numbers[len(outer) :]))
        graph.check(structure)
        return graph

    def check(self, structure: Structure) -> None:
        """Refuse counting numbers by which a variable or a factor is not counted once."""
        variables, factors = np.zeros(structure.n_variables), np.zeros(structure.n_factors)
        numbers = (1,) * len(self.outer) + self.counting
        for region, c in zip((*self.outer, *self.inner), numbers, strict=True):
            variables[list(region.variables)] += c
            factors[list(region.factors)] += c
        constant = np.diff(structure.scope_starts) == 0  # a number is in no region
        for name, counts in (("variable", variables), ("factor", np.where(constant, 1.0, factors))):
            wrong = np.flatnonzero(counts != 1)
            if wrong.size:
                at = int(wrong[0])
                where = f" over {structure.scope(at)}" if name == "factor" else ""
                raise ValueError(
                    f"the regions count {name} {at}{where} {counts[at]:g} times, and every one must count once: "
                    "each factor must lie in a cluster"
                )


def plaquettes(rows: int, columns: int) -> list[tuple[int, int, int, int]]:
    """The squares of ``grid(rows, columns)``: the clusters of Kikuchi's approximation.

    >>> plaquettes(2, 3)
    [(0, 1, 3, 4), (1, 2, 4, 5)]
    """
    corners = [r * columns + c for r in range(rows - 1) for c in range(columns - 1)]
    return [(v, v + 1, v + columns, v + columns + 1) for v in corners]


def _largest(sets: list[frozenset[int]]) -> list[frozenset[int]]:
    """Without the sets inside others, and without copies."""
    holding: dict[int, list[frozenset[int]]] = {}
    kept = []
    for s in sorted(set(sets), key=lambda s: (-len(s), sorted(s))):
        if s and not any(s <= other for other in holding.get(next(iter(s)), [])):
            kept.append(s)
            for v in s:
                holding.setdefault(v, []).append(s)
    return kept


def _region(structure: Structure, variables: frozenset[int]) -> Region:
    _, touched, whole = induced(structure, np.array(sorted(variables)))
    return Region(variables, frozenset(touched[whole].tolist()))
