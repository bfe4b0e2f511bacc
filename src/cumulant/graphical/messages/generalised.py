"""Generalised belief propagation: messages between the regions of a region graph."""

from typing import Any

import numpy as np

from cumulant.graphical.messages.incidence import check_settings
from cumulant.graphical.messages.loopy import Propagation
from cumulant.graphical.messages.region_graph import RegionGraph
from cumulant.graphical.messages.region_layout import RegionMessages

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
    check_settings(damping=0.0 if damping is None else damping, max_sweeps=max_sweeps, tol=tol)
    messages = RegionMessages(model, regions)
    degrees, counting = messages.layout.degrees, messages.counting
    wrong = np.flatnonzero(degrees + counting <= 0)
    if wrong.size:
        region = sorted(regions.inner[int(wrong[0])].variables)
        raise ValueError(
            f"the inner region {region} has {degrees[wrong[0]]} outer regions and counting number "
            f"{counting[wrong[0]]:g}, and messages need a positive sum of them: use double_loop"
        )
    trace = np.full(1, np.inf)
    for weight in _DAMPINGS if damping is None else (damping,):
        messages.multipliers[:] = 0.0
        trace = messages.settle(counting, weight, max_sweeps, tol)
        if trace[-1] <= tol:
            break
    return messages.result(trace, trace[-1], tol, energies=False)
