"""Pictures of regressions: coefficients along a path and with intervals, a certified gap beside the true one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.plotting.style import COLOURS, GRID, figure, legend, style


def coefficient_path(
    penalties: Any, coefficients: Any, *, names: Sequence[str] | None = None, named: int = 5, ax: Any = None
) -> Any:
    """Each coefficient as a line over the penalty, which decreases from left to right.

    Parameters
    ----------
    penalties : array (fits,)
        Positive.
    coefficients : array (fits, features)
    names : sequence of str, optional
        Of the features; their numbers without it.
    named : int
        How many features have a colour and a name: those with non-zero coefficients at the largest penalties, larger
        coefficients first. The others are grey.

    Returns
    -------
    matplotlib.axes.Axes
    """
    penalties = checks.real_array("penalties", penalties, finite=False)
    coefficients = checks.real_array("coefficients", coefficients, finite=False)
    if penalties.ndim != 1 or penalties.size == 0 or not (np.isfinite(penalties) & (penalties > 0)).all():
        raise ValueError(f"penalties must be a vector of positive numbers; got {penalties}")
    if coefficients.ndim != 2 or len(coefficients) != penalties.size or not np.isfinite(coefficients).all():
        raise ValueError(
            f"coefficients must be finite, with a row for each of the {penalties.size} penalties; "
            f"got shape {coefficients.shape}"
        )
    labels = [f"feature {j}" for j in range(coefficients.shape[1])] if names is None else [str(name) for name in names]
    if len(labels) != coefficients.shape[1]:
        raise ValueError(f"names must be {coefficients.shape[1]}, one for each feature; got {len(labels)}")
    order = np.argsort(-penalties)
    penalties, coefficients = penalties[order], coefficients[order]
    first = np.where((coefficients != 0).any(axis=0), (coefficients != 0).argmax(axis=0), len(penalties))
    chosen = np.lexsort((-np.abs(coefficients).max(axis=0), first))[: min(named, len(COLOURS) - 1)]
    with style():
        if ax is None:
            _, ax = figure()
        for j in range(len(labels)):
            if j not in chosen:
                ax.plot(penalties, coefficients[:, j], color="#b8b8b8", linewidth=0.9, zorder=1.5)
        for colour, j in zip(COLOURS, chosen, strict=False):
            ax.plot(penalties, coefficients[:, j], color=colour, label=labels[j])
        ax.axhline(0.0, color=GRID, linewidth=1.0, zorder=1)
        ax.set(xscale="log", xlabel="penalty l1", ylabel="coefficient")
        ax.invert_xaxis()
        if len(chosen):
            legend(ax, bbox_to_anchor=(1.0, 0.5), loc="center left")
    return ax


def gap_and_truth(steps: Any, bound: Any, truth: Any, *, ax: Any = None, xlabel: str = "passes over the data") -> Any:
    """The certified gap of a run and its true gap, over its steps: the certified one must be the upper curve.

    Records at which a curve is not positive are left out: the axis is logarithmic. Returns the axes.
    """
    given = {"steps": steps, "bound": bound, "truth": truth}
    steps, bound, truth = (checks.real_array(name, values, finite=False) for name, values in given.items())
    if steps.ndim != 1 or steps.size == 0 or not steps.shape == bound.shape == truth.shape:
        raise ValueError(
            f"steps, bound and truth must be vectors of one length; got shapes {steps.shape}, {bound.shape}, "
            f"{truth.shape}"
        )
    with style():
        if ax is None:
            _, ax = figure()
        for values, marks, label in ((bound, "-", "certified: P(w) − P* at most"), (truth, "--", "true P(w) − P*")):
            shown = values > 0
            ax.semilogy(steps[shown], values[shown], marks, label=label)
        ax.set(xlabel=xlabel, ylabel="nats")
        legend(ax)
    return ax


def coefficient_intervals(table: Any, *, intercept: bool = False, ax: Any = None) -> Any:
    """The coefficients of a `GLM.summary` with their intervals, one below the other, and a line at zero.

    The intercept is left out unless `intercept` is set: its scale is another one. Returns the axes.
    """
    shown = [i for i, term in enumerate(table.terms) if intercept or term != "(intercept)"]
    labels = [f"{table.classes[i]}: {table.terms[i]}" if table.classes else table.terms[i] for i in shown]
    places = -np.arange(len(shown))
    with style():
        if ax is None:
            _, ax = figure(height=max(2.0, 0.8 + 0.28 * len(shown)))
        ax.axvline(0.0, color="0.3", linewidth=0.8, zorder=1)
        ax.hlines(places, table.lower[shown], table.upper[shown], color=COLOURS[0], linewidth=1.6)
        ax.plot(table.coef[shown], places, "o", color=COLOURS[0], markersize=4.5)
        ax.set(yticks=places, yticklabels=labels, xlabel=f"coefficient, {100 * table.level:g} % interval")
    return ax
