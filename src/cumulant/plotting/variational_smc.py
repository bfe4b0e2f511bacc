"""Pictures of variational sequential Monte Carlo: how a run went, and overlaps of spins."""

from typing import Any

import numpy as np

from cumulant.plotting.style import COLOURS, INK, figure, legend, style


def run(result: Any, *, exact: float | None = None) -> Any:
    """The bound, the effective sample size and the distance from the target at each step, a curve for each island.

    Parameters
    ----------
    result : VariationalResult
    exact : float, optional
        ``log Z`` of the target, where it is known.

    Returns
    -------
    array of matplotlib.axes.Axes
    """
    _, axes = figure(1, 3, width=11.0)
    panels = (
        ("bound", "bound on log Z", COLOURS[0]),
        ("ess", "effective sample size", COLOURS[2]),
        ("distance", "distance from the target", COLOURS[1]),
    )
    with style():
        for ax, (name, words, colour) in zip(axes, panels, strict=True):
            for outcome in result.outcomes:
                values = outcome.trace[name]
                ax.plot(np.arange(values.size), values, color=colour, alpha=0.7)
            ax.set(xlabel="step", ylabel=words)
        axes[1].set_ylim(0, None)
        if exact is not None:
            axes[0].axhline(exact, color=INK, linewidth=0.8, linestyle="--", label="exact")
            legend(axes[0])
    return axes


def overlap(distribution: Any, *, ax: Any = None, label: str | None = None) -> Any:
    """The density of the overlap ``q``, from an `OverlapDistribution`."""
    with style():
        if ax is None:
            _, ax = figure()
        ax.stairs(distribution.density, distribution.edges, linewidth=1.4, label=label)
        ax.set(xlabel="overlap q", ylabel="P(q)", ylim=(0, None))
        if label is not None:
            legend(ax)
    return ax
