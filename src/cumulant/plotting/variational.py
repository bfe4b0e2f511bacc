"""Pictures of Gaussian fits: convergence, marginals against check draws, and ranks of a calibration."""

from typing import Any

import numpy as np

from cumulant.plotting.style import COLOURS, INK, figure, legend, style


def convergence(fit: Any, *, ax: Any = None) -> Any:
    """How far the objective was above its last value at each record, and certified bounds where there are any."""
    trace = fit.trace
    with style():
        if ax is None:
            _, ax = figure()
        above = np.asarray(trace.value) - np.min(trace.value)
        ax.plot(trace.steps, np.where(above > 0, above, np.nan), "o-", color=COLOURS[0], label="above the lowest value")
        if np.any(np.isfinite(trace.bound)):
            ax.plot(trace.steps, trace.bound, "--", color=COLOURS[1], label="certified: above the best Gaussian")
        ax.set(xlabel="steps", ylabel="KL(q | p), in nats", yscale="log")
        legend(ax)
    return ax


def marginals(fit: Any, check: Any = None, *, most: int = 6) -> Any:
    """Densities of single coordinates of a fit, over weighted draws that annealing moved to the target.

    Parameters
    ----------
    fit : GaussianFit
    check : AnnealingCheck, optional
        Its draws are the histograms.
    most : int
        How many coordinates: with a check those that it moves most, else the first.

    Returns
    -------
    array of matplotlib.axes.Axes
    """
    deviations = fit.deviations
    chosen = np.arange(len(fit.mean))
    if check is not None:
        chosen = np.argsort(-np.abs(check.mean_shift) - np.abs(np.log(check.scale_ratio)), kind="stable")
    chosen = chosen[:most]
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    _, axes = figure(rows, columns, width=3.4 * columns + 0.4, height=2.6 * rows + 0.2, squeeze=False)
    with style():
        for ax, i in zip(axes.ravel(), chosen, strict=False):
            grid = np.linspace(-4.0, 4.0, 200)
            if check is not None:
                draws = (check.draws.flat[:, i] - fit.mean[i]) / deviations[i]
                weights = check.draws.weights.ravel()
                ax.hist(draws, bins=40, range=(-4, 4), weights=weights * 5, color=INK, alpha=0.18, label="annealed")
            ax.plot(grid, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), color=COLOURS[0], label="fit")
            ax.set(xlabel=f"coordinate {i}, in its standard deviations", ylabel="density")
        for ax in axes.ravel()[len(chosen) :]:
            ax.set_visible(False)
        legend(axes[0, 0])
    return axes


def ranks(calibration: Any, *, most: int = 6) -> Any:
    """Histograms of the ranks of a calibration, over the band where those of a calibrated fit are (99 % of them).

    Coordinates with the smallest p-values come first. A valley in the middle means fits that are too narrow, a hill
    fits that are too wide, a slope fits that are off to one side.
    """
    from scipy.stats import binom

    n, bins = len(calibration.ranks), max(2, min(20, len(calibration.ranks) // 10))
    order = np.argsort(calibration.p_values)[:most]
    columns = min(3, len(order))
    rows = -(-len(order) // columns)
    _, axes = figure(rows, columns, width=3.4 * columns + 0.4, height=2.6 * rows + 0.2, squeeze=False)
    low, high = binom.ppf([0.005, 0.995], n, 1 / bins)
    with style():
        for ax, i in zip(axes.ravel(), order, strict=False):
            shares = (calibration.ranks[:, i] + 0.5) / (calibration.draws + 1)
            ax.axhspan(low, high, color=COLOURS[2], alpha=0.15, linewidth=0, label="99% if calibrated")
            ax.hist(shares, bins=bins, range=(0, 1), color=COLOURS[0], alpha=0.7)
            ax.set(xlabel=f"rank of {calibration.names[i]}", ylabel="simulations")
        for ax in axes.ravel()[len(order) :]:
            ax.set_visible(False)
        legend(axes[0, 0], loc="upper center")
    return axes
