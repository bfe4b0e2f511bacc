"""Regions as messages see them: outer regions are tables, inner regions are nodes."""

from typing import Any

import numpy as np

from cumulant.errors import DomainError
from cumulant.graphical.messages.generalised_kernels import free_energy_of_regions, pass_messages
from cumulant.graphical.messages.incidence import Incidence, ranges, tables_of
from cumulant.graphical.messages.loopy import Propagation
from cumulant.graphical.messages.region_graph import RegionGraph
from cumulant.graphical.structure import Structure


class RegionMessages:
    """Messages between the regions of a model: multipliers of the links, and ``log q`` of the inner regions.

    `tilted` are the tables that the beliefs of outer regions are made of; at first those of the model, `tables`.
    """

    def __init__(self, model: Any, regions: RegionGraph):
        self.model, self.regions = model, regions
        self.structure, self.theta, _ = tables_of(model)
        regions.check(self.structure)
        self.layout, self.tables = _layout(self.structure, self.theta, regions)
        self.counting = np.array(regions.counting, dtype=np.float64)
        self.sizes, self.flat = np.diff(self.layout.node_starts), tuple(self.layout)
        self.log_q = -np.log(np.repeat(self.sizes, self.sizes).astype(np.float64))
        self.multipliers = np.zeros(int(self.layout.message_starts[-1]))
        self.tilted, self.beliefs = self.tables, np.zeros(self.tables.size)

    def tilt(self, pull: np.ndarray) -> None:
        """Add `pull`, a number for each state of each inner region, to all outer regions around it."""
        layout, sizes = self.layout, np.diff(self.layout.place_starts)
        entries = ranges(layout.table_starts[layout.factor], sizes)
        states = np.repeat(layout.node_starts[layout.node], sizes) + layout.places
        self.tilted = self.tables + np.bincount(entries, pull[states], self.tables.size)

    def settle(self, counting: np.ndarray, damping: float, max_sweeps: int, tol: float, moves=False) -> np.ndarray:
        """Sweeps until regions agree within `tol`, or ``q`` `moves` by no more: the largest distance in each."""
        trace = np.empty(max_sweeps)
        sweeps = pass_messages(
            self.log_q, self.multipliers, self.tilted, counting, float(damping), moves, int(max_sweeps), float(tol),
            trace, self.flat,
        )  # fmt: skip
        if sweeps < 0:
            raise DomainError("every state is impossible, given the evidence: there is no distribution")
        return trace[:sweeps]

    def free_energy(self) -> float:
        """``sum_R c_R (U_R - H_R)`` without factors of no variables, which are in no region; sets the beliefs."""
        return free_energy_of_regions(
            self.log_q, self.multipliers, self.tilted, self.tables, self.counting, self.beliefs, self.flat
        )

    def result(self, trace: np.ndarray, change: float, tol: float, energies: bool) -> Propagation:
        """What was found; `trace` may be of `energies`."""
        alone = np.flatnonzero(np.diff(self.structure.scope_starts) == 0)
        constant = float(self.theta[self.structure.table_starts[alone]].sum())
        value = constant - self.free_energy()
        if not np.isfinite(value):
            raise DomainError("every state is impossible, given the evidence: there is no distribution")
        single, factors = self._read_off()
        trace, marginals = trace - constant if energies else trace, self.model._all_marginals(single)
        return Propagation(
            self.model, trace, None, marginals, factors, bool(change <= tol), float(value), float(change)
        )

    def _read_off(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The distributions of single variables and of factors, from the first outer region that has them."""
        structure, starts = self.structure, self.layout.table_starts
        single: list[np.ndarray] = [np.zeros(0)] * structure.n_variables
        flat, seen = np.ones(int(structure.table_starts[-1])), set()
        for r, region in enumerate(self.regions.outer):
            members = sorted(region.variables)
            belief = self.beliefs[starts[r] : starts[r + 1]].reshape(structure.cardinalities[members].tolist())
            for v in members:
                if single[v].size == 0:
                    single[v] = sum_out(belief, members, (v,))
            for f in region.factors - seen:
                structure.table(f, flat)[...] = sum_out(belief, members, structure.scope(f))
            seen |= region.factors
        return single, flat


def _layout(structure: Structure, theta: np.ndarray, regions: RegionGraph) -> tuple[Incidence, np.ndarray]:
    """Outer regions as tables, the sums of the factors that fall to them, and inner regions as nodes."""
    members = [sorted(region.variables) for region in regions.outer]
    shapes = [tuple(structure.cardinalities[m].tolist()) for m in members]
    tables = [np.zeros(shape) for shape in shapes]
    seen: set[int] = set()
    for r, region in enumerate(regions.outer):
        for f in sorted(region.factors - seen):
            scope = structure.scope(f)
            table = structure.table(f, theta).transpose(np.argsort(scope))
            tables[r] += table.reshape([k if v in scope else 1 for v, k in zip(members[r], shapes[r], strict=True)])
        seen |= region.factors
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


def sum_out(belief: np.ndarray, members: list[int], scope: tuple[int, ...]) -> np.ndarray:
    """The table over `scope`, with its axes in this order, of a table over the sorted `members`."""
    kept = belief.sum(axis=tuple(a for a, v in enumerate(members) if v not in scope))
    return kept.transpose(np.argsort(np.argsort(scope)))
