"""Pictures of particle runs: ``log Z`` and the effective number of particles along the path, errors of methods."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.plotting.style import COLOURS, figure, legend, style


def trace(result: Any, *, exact: float | None = None) -> Any:
    """``log Z`` of the distribution at each step, and the effective number of particles with the resamplings.

    Parameters
    ----------
    result : ParticleResult
        Every island is a line.
    exact : float, optional
        The ``log Z`` of the last distribution, where it is known: a dashed line.

    Returns
    -------
    array of two matplotlib.axes.Axes
    """
    values, sizes, times = (np.atleast_2d(result.trace[name]) for name in ("log_z", "ess", "resampled"))
    _, axes = figure(1, 2, width=8.4, height=3.0)
    with style():
        for island, (log_z, ess, resampled) in enumerate(zip(values, sizes, times, strict=True)):
            colour = COLOURS[island % len(COLOURS)]
            axes[0].plot(log_z, color=colour)
            axes[1].plot(ess, color=colour)
            at = np.flatnonzero(resampled == 1.0)
            axes[1].plot(at, ess[at], "o", color=colour, label="resampled" if island == 0 and at.size else None)
        if exact is not None:
            axes[0].axhline(exact, color=COLOURS[-1], linestyle="--", label="exact")
            legend(axes[0])
        if np.any(times == 1.0):
            legend(axes[1])
        axes[0].set(xlabel="step", ylabel="log Z")
        axes[1].set(xlabel="step", ylabel="effective number of particles", ylim=(0, None))
    return axes


def mean_errors(
    errors: Mapping[str, Any], *, lines: Mapping[str, float] | None = None, colours: Any = COLOURS, ax: Any = None
) -> Any:
    """Errors of several methods over repeated runs, a row for each: the runs as points, their mean with 95 % as a bar.

    Parameters
    ----------
    errors : mapping of str to array
        Of each method an error for each run, such as ``abs(result.mean() - exact).mean()``.
    lines : mapping of str to float, optional
        Methods with one answer, drawn as squares below.
    colours : sequence of colours
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    with style():
        if ax is None:
            _, ax = figure()
        alone = dict(lines or {})
        for k, (name, runs) in enumerate(errors.items()):
            values = checks.real_array(f"errors of {name}", runs, ndim=1)
            if not values.size or values.min() <= 0:
                raise ValueError(f"errors of {name} must be positive numbers, one or more; got {values!r:.80}")
            ax.plot(values, np.full(values.size, k), "o", color=colours[k % len(colours)], alpha=0.6, markersize=3.5)
            if values.size > 1:
                half = 1.96 * values.std(ddof=1) / np.sqrt(values.size)
                ax.plot([values.mean() - half, values.mean() + half], [k, k], color="0.2", linewidth=2.0)
        for k, value in enumerate(alone.values(), start=len(errors)):
            ax.plot([value], [k], "s", color="0.4", markersize=4)
        names = [*errors, *alone]
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ticks = [digit * 10.0**power for power in range(-9, 4) for digit in (1, 2, 5)]
        ticks = [tick for tick in ticks if low < tick < high]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set(xlabel="mean error of the means")
    return ax
