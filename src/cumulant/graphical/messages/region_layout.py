"""Regions as messages see them: outer regions are tables, inner regions are nodes."""

import numpy as np

from cumulant.graphical.messages.incidence import Incidence
from cumulant.graphical.messages.region_graph import RegionGraph
from cumulant.graphical.structure import Structure

__all__ = ["constant_of", "layout_of_regions", "read_off"]


def layout_of_regions(structure: Structure, theta: np.ndarray, regions: RegionGraph) -> tuple[Incidence, np.ndarray]:
    """Outer regions as tables, the sums of the factors that fall to them, and inner regions as nodes."""
    members = [sorted(region.variables) for region in regions.outer]
    shapes = [tuple(structure.cardinalities[m].tolist()) for m in members]
    tables = [np.zeros(shape) for shape in shapes]
    for f, r in _homes(regions).items():
        scope = structure.scope(f)
        table = structure.table(f, theta).transpose(np.argsort(scope))
        tables[r] += table.reshape([size if v in scope else 1 for v, size in zip(members[r], shapes[r], strict=True)])
    holding: dict[int, list[int]] = {}
    for i, region in enumerate(regions.inner):
        for v in region.variables:
            holding.setdefault(v, []).append(i)
    first, node, places = [0], [], [np.zeros(0, np.int32)]
    for r, region in enumerate(regions.outer):
        states = dict(zip(members[r], np.indices(shapes[r]).reshape(len(members[r]), -1), strict=True))
        for i in sorted({i for v in members[r] for i in holding.get(v, [])}):
            if regions.inner[i].below(region):
                inside = sorted(regions.inner[i].variables)
                at = np.ravel_multi_index([states[v] for v in inside], structure.cardinalities[inside].tolist())
                node.append(i)
                places.append(at.astype(np.int32))
        first.append(len(node))
    sizes = np.array(
        [int(np.prod(structure.cardinalities[sorted(r.variables)])) for r in regions.inner], dtype=np.int64
    )
    starts = np.concatenate([[0], np.cumsum([t.size for t in tables])])
    layout = Incidence.linked(starts, np.array(first), np.array(node, dtype=np.int64), sizes, np.concatenate(places))
    return layout, np.concatenate([*(t.ravel() for t in tables), np.zeros(0)])


def _homes(regions: RegionGraph) -> dict[int, int]:
    """The first outer region that accounts for each factor."""
    homes: dict[int, int] = {}
    for r, region in enumerate(regions.outer):
        for f in region.factors:
            homes.setdefault(f, r)
    return homes


def constant_of(structure: Structure, theta: np.ndarray) -> float:
    """Factors of no variables, which are in no region."""
    alone = np.flatnonzero(np.diff(structure.scope_starts) == 0)
    return float(theta[structure.table_starts[alone]].sum())


def read_off(structure: Structure, regions: RegionGraph, layout: Incidence, beliefs: np.ndarray):
    """The distributions of single variables and of factors, from the first outer region that has them."""
    single: list[np.ndarray] = [np.zeros(0)] * structure.n_variables
    flat = np.ones(int(structure.table_starts[-1]))
    homes = _homes(regions)
    wanted: list[list[int]] = [[] for _ in regions.outer]
    for f, r in homes.items():
        wanted[r].append(f)
    for r, region in enumerate(regions.outer):
        members = sorted(region.variables)
        belief = beliefs[layout.table_starts[r] : layout.table_starts[r + 1]].reshape(
            structure.cardinalities[members].tolist()
        )
        for v in members:
            if single[v].size == 0:
                single[v] = _sum_out(belief, members, (v,))
        for f in wanted[r]:
            structure.table(f, flat)[...] = _sum_out(belief, members, structure.scope(f))
    return single, flat


def _sum_out(belief: np.ndarray, members: list[int], scope: tuple[int, ...]) -> np.ndarray:
    kept = belief.sum(axis=tuple(a for a, v in enumerate(members) if v not in scope))
    return kept.transpose(np.argsort(np.argsort(scope)))
