"""The approximate methods that the questions of a model can be answered by, under their names."""

from typing import Any

import numpy as np

from cumulant.errors import NotConvergedError
from cumulant.graphical.messages.double_loop import double_loop
from cumulant.graphical.messages.generalised import generalised_belief_propagation
from cumulant.graphical.messages.loopy import Propagation, belief_propagation
from cumulant.graphical.messages.mean_field import mean_field
from cumulant.graphical.messages.structured_mean_field import structured_mean_field
from cumulant.graphical.messages.tree_reweighted import tree_reweighted

METHODS = {
    "mean_field": mean_field,
    "structured_mean_field": structured_mean_field,
    "loopy": belief_propagation,
    "double_loop": double_loop,
    "generalised": generalised_belief_propagation,
    "tree_reweighted": tree_reweighted,
}
_ADVICE = {
    "loopy": "use damping, or method='double_loop'",
    "double_loop": "raise max_loops",
    "generalised": "use damping, or method='double_loop' with the same regions",
}


def approximate(model: Any, method: str, options: dict) -> tuple[float, list[np.ndarray], np.ndarray]:
    """``log Z`` (a lower bound by mean field, an upper one by reweighted trees, an estimate by messages), the
    distributions of the free variables, and the tables of their factors.

    Messages that did not settle are no answer: `NotConvergedError` says how far they were.
    """
    if method == "generalised" and "regions" not in options:
        raise ValueError(
            "method='generalised' needs regions=, for example RegionGraph.of(model, plaquettes(rows, columns)); "
            "without larger regions it is method='loopy'"
        )
    found = METHODS[method](model, **options)
    if isinstance(found, Propagation):
        if not found.converged:
            raise NotConvergedError(
                f"method {method!r} did not converge in {len(found.trace)} sweeps (last change {found.change:.2g}): "
                + _ADVICE[method]
            )
        value = found.log_partition
    else:
        value = found.bound
    return value, [found.marginals[v] for v in model.restricted()[2].tolist()], found.beliefs
