"""Pictures of particle runs: the estimate of ``log Z`` and the effective number of particles along the path."""

from typing import Any

import numpy as np

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
