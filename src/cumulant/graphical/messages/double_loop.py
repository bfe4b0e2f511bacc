"""The convergent double loop for the Bethe free energy and those of region graphs."""

from typing import Any

import numpy as np

from cumulant.errors import DomainError
from cumulant.graphical.messages.double_loop_kernels import free_energy_of_regions, solve_inner
from cumulant.graphical.messages.incidence import Incidence, tables_of
from cumulant.graphical.messages.loopy import Propagation
from cumulant.graphical.messages.region_graph import RegionGraph
from cumulant.graphical.messages.region_layout import constant_of, layout_of_regions, read_off

__all__ = ["double_loop"]


def double_loop(
    model: Any,
    regions: RegionGraph | None = None,
    *,
    max_loops: int = 1000,
    tol: float = 1e-8,
    inner_sweeps: int = 50,
    inner_tol: float = 1e-10,
) -> Propagation:
    """Minimise the Bethe free energy, or that of a region graph, by a method that cannot oscillate.

    ``F(q) = sum_R c_R (U_R - H_R)``; entropies with negative counting number, the concave part, are replaced by their
    tangents at the last ``q`` (outer loop), and the convex rest is minimised under consistency by exact coordinate
    ascent on its dual (inner loop). ``F`` never rises from one outer loop to the next, as long as inner loops run to
    consistency, and fixed points are its stationary points (Yuille 2002; Heskes, Albers, Kappen 2003; Heskes 2006). It
    is slower than `belief_propagation`, and like it gives an estimate without a certificate.

    Parameters
    ----------
    model : DiscreteModel
        With or without evidence.
    regions : RegionGraph, optional
        The Bethe free energy without it.
    max_loops, tol : int, float
        Outer loops end when no probability of an inner region moves by more than `tol`.
    inner_sweeps, inner_tol : int, float
        The same for inner loops.

    Returns
    -------
    Propagation
        Its `trace` is the free energy after each outer loop, and `log_partition` minus the last.

    Examples
    --------
    >>> from cumulant.graphical import Ising, grid
    >>> from cumulant.graphical.messages.region_graph import plaquettes
    >>> model = Ising(grid(3, 3), 0.8, 0.1)
    >>> kikuchi = double_loop(model, RegionGraph.of(model, plaquettes(3, 3)))
    >>> bethe = double_loop(model)
    >>> [round(abs(found.log_partition - model.log_partition()), 3) for found in (bethe, kikuchi)]
    [0.175, 0.001]
    """
    for name, value in (("max_loops", max_loops), ("inner_sweeps", inner_sweeps)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be a whole number, at least 1; got {value!r}")
    for name, value in (("tol", tol), ("inner_tol", inner_tol)):
        if not (np.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be finite and not negative; got {value!r}")
    structure, theta, _ = tables_of(model)
    if regions is None:
        layout, tables = Incidence.of(structure), theta
        counting = 1.0 - layout.degrees
    else:
        regions.check(structure)
        layout, tables = layout_of_regions(structure, theta, regions)
        counting = np.array(regions.counting, dtype=np.float64)
    found = _minimise(layout, tables, counting, max_loops, tol, inner_sweeps, inner_tol)
    log_q, beliefs, trace, change = found
    constant = 0.0 if regions is None else constant_of(structure, theta)
    if regions is None:
        single, flat = layout.split(np.exp(log_q)), beliefs
    else:
        single, flat = read_off(structure, regions, layout, beliefs)
    return Propagation(
        float(constant - trace[-1]),
        model._all_marginals(single),
        flat,
        bool(change <= tol),
        np.array(trace) - constant,
        float(change),
    )


def _minimise(layout: Incidence, theta, counting, max_loops, tol, inner_sweeps, inner_tol):
    sizes, flat = np.diff(layout.node_starts), tuple(layout)
    degrees = np.maximum(layout.degrees, 1)
    tangent = np.repeat(np.maximum(-counting, 0.0) / degrees, sizes)  # its share in each outer region
    log_q = -np.log(np.repeat(sizes, sizes).astype(np.float64))
    multipliers, beliefs = np.zeros(int(layout.message_starts[-1])), np.zeros(theta.size)
    trace, change = [], np.inf
    while len(trace) < max_loops and change > tol:
        before = np.exp(log_q)
        pull = np.where(tangent > 0, tangent * np.where(tangent > 0, log_q, 0.0), 0.0)
        _, inner = solve_inner(
            log_q, multipliers, pull, theta, np.maximum(counting, 0.0), inner_sweeps, inner_tol, flat
        )
        if inner < 0:
            raise DomainError("every state is impossible, given the evidence: there is no distribution")
        trace.append(free_energy_of_regions(log_q, multipliers, pull, theta, counting, beliefs, flat))
        change = float(np.abs(np.exp(log_q) - before).max(initial=0.0))
    return log_q, beliefs, trace, change
