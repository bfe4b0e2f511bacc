"""Generalised belief propagation: messages between the regions of a region graph."""

from typing import Any

import numpy as np

from cumulant.errors import DomainError
from cumulant.graphical.messages.double_loop_kernels import free_energy_of_regions
from cumulant.graphical.messages.generalised_kernels import pass_messages
from cumulant.graphical.messages.incidence import tables_of
from cumulant.graphical.messages.loopy import Propagation
from cumulant.graphical.messages.region_graph import RegionGraph
from cumulant.graphical.messages.region_layout import constant_of, layout_of_regions, read_off

__all__ = ["generalised_belief_propagation"]

_DAMPINGS = (0.5, 0.75, 0.9)


def generalised_belief_propagation(
    model: Any, regions: RegionGraph, *, damping: float | None = None, max_sweeps: int = 1000, tol: float = 1e-10
) -> Propagation:
    """Messages between outer and inner regions, to a stationary point of ``F(q) = sum_R c_R (U_R - H_R)``.

    An outer region believes ``b_R ~ prod f prod exp(lambda_(R r))`` over its factors and its inner regions. Each inner
    region ``r`` in turn, with counting number ``c_r`` and ``n_r`` outer regions around it, is set to

    ``log q_r = sum_R (log b_R(x_r) - lambda_(R r)(x_r)) / (n_r + c_r)``,

    and each multiplier to what makes ``b_R`` agree with it. Where all agree, derivatives of the Lagrangian are zero:
    fixed points are the stationary points of the free energy (Yedidia, Freeman, Weiss 2005; this form by Heskes,
    Albers, Kappen 2003), those of `double_loop`. For the regions of `RegionGraph.bethe` it is belief propagation.

    A sweep costs less than one of the many inner sweeps of `double_loop`. What is given up is the guarantee: messages
    may go round in circles, and without damping they usually do, as the regions around an inner one are not
    independent. Where none of the dampings tried helps `converged` is False, and `double_loop` is what is left. The
    answer is exact where the regions make a junction tree, and an estimate without a certificate elsewhere.

    Parameters
    ----------
    model : DiscreteModel
        With or without evidence.
    regions : RegionGraph
        For example ``RegionGraph.of(model, plaquettes(rows, columns))``.
    damping : float, optional
        In [0, 1): the weight of the old multiplier in the new one. None: 1/2, and where messages do not settle with it
        they begin anew with 3/4, and then with 0.9.
    max_sweeps, tol : int, float
        The end of each run: in a sweep no marginal of an outer region was farther than `tol` from its inner region.

    Returns
    -------
    Propagation
        Its `trace` is the largest disagreement in each sweep of the last run.

    Examples
    --------
    >>> from cumulant.graphical import Ising, grid
    >>> from cumulant.graphical.messages.region_graph import plaquettes
    >>> model = Ising(grid(4, 4), 0.4, 0.1)
    >>> found = generalised_belief_propagation(model, RegionGraph.of(model, plaquettes(4, 4)))
    >>> found.converged, round(found.log_partition - model.log_partition(), 3)
    (True, -0.00...)
    """
    if not isinstance(regions, RegionGraph):
        raise ValueError(f"regions must be a RegionGraph; got {type(regions).__name__}")
    if damping is not None and not 0.0 <= damping < 1.0:
        raise ValueError(f"damping must be at least 0 and below 1, or None; got {damping!r}")
    if isinstance(max_sweeps, bool) or not isinstance(max_sweeps, int | np.integer) or max_sweeps < 1:
        raise ValueError(f"max_sweeps must be a whole number, at least 1; got {max_sweeps!r}")
    if not (np.isfinite(tol) and tol >= 0):
        raise ValueError(f"tol must be finite and not negative; got {tol!r}")
    structure, theta, _ = tables_of(model)
    regions.check(structure)
    layout, tables = layout_of_regions(structure, theta, regions)
    counting, flat = np.array(regions.counting, dtype=np.float64), tuple(layout)
    wrong = np.flatnonzero(layout.degrees + counting <= 0)
    if wrong.size:
        region = sorted(regions.inner[int(wrong[0])].variables)
        raise ValueError(
            f"the inner region {region} has {layout.degrees[wrong[0]]} outer regions and counting number "
            f"{counting[wrong[0]]:g}, and messages need a positive sum of them: use double_loop"
        )
    sizes, trace = np.diff(layout.node_starts), np.empty(max_sweeps)
    log_q, multipliers, sweeps = np.zeros(int(sizes.sum())), np.zeros(int(layout.message_starts[-1])), 0
    for weight in _DAMPINGS if damping is None else (float(damping),):
        multipliers[:] = 0.0
        sweeps = pass_messages(log_q, multipliers, tables, counting, weight, int(max_sweeps), float(tol), trace, flat)
        if sweeps < 0 or trace[sweeps - 1] <= tol:
            break
    beliefs = np.zeros(tables.size)
    value = np.nan if sweeps < 0 else free_energy_of_regions(
        log_q, multipliers, np.zeros(log_q.size), tables, counting, beliefs, flat
    )  # fmt: skip
    if not np.isfinite(value):
        raise DomainError("every state is impossible, given the evidence: there is no distribution")
    single, factors = read_off(structure, regions, layout, beliefs)
    return Propagation(
        float(constant_of(structure, theta) - value),
        model._all_marginals(single),
        factors,
        bool(trace[sweeps - 1] <= tol),
        trace[:sweeps].copy(),
        float(trace[sweeps - 1]),
    )
