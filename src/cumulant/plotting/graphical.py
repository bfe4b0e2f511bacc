"""Pictures of Markov random fields: states and spins on a grid, an interval that closes around log Z, chains."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.certificates import Interval
from cumulant.plotting.style import COLOURS, GRID, INK, figure, legend, style


def pixels(values: Any, *, ax: Any = None, title: str | None = None, low: float = 0.0, high: float = 1.0) -> Any:
    """A picture of one number for each place of a grid: `low` is white, `high` is black. Returns the axes."""
    values = _matrix(values, "values")
    with style():
        if ax is None:
            _, ax = figure()
        ax.imshow(values, cmap="Greys", vmin=low, vmax=high, interpolation="nearest")
        ax.set(xticks=[], yticks=[], title=title or "")
        ax.grid(False)
        ax.spines[:].set(visible=True, color=GRID)
    return ax


def snapshots(states: Sequence[Any], titles: Sequence[str], *, side: float = 2.6) -> Any:
    """States of spins on a grid side by side, such as draws at several temperatures: -1 is white, +1 is black.

    Parameters
    ----------
    states : sequence of arrays (rows, columns)
    titles : sequence of str
        One for each.
    side : float
        The width of each picture in inches.

    Returns
    -------
    array of matplotlib.axes.Axes

    Examples
    --------
    >>> axes = snapshots([np.ones((4, 4)), -np.ones((4, 4))], ["all up", "all down"])
    >>> [ax.get_title() for ax in axes]
    ['all up', 'all down']
    """
    if len(states) != len(titles) or not len(states):
        raise ValueError(f"titles must have one for each of the states; got {len(titles)} and {len(states)}")
    _, axes = figure(1, len(states), width=side * len(states), height=side + 0.3, squeeze=False)
    for ax, state, title in zip(axes[0], states, titles, strict=True):
        pixels(state, ax=ax, title=title, low=-1.0, high=1.0)
    return axes[0]


def spins(means: Any, edges: Any, couplings: Any, *, ax: Any = None, title: str | None = None) -> Any:
    """An Ising model on a grid: its spins coloured by their means, its couplings as lines.

    Parameters
    ----------
    means : array (rows, columns)
        ``E x_i``, from -1 (blue) to 1 (red).
    edges : array (edges, 2)
        Pairs of spins, numbered along the rows.
    couplings : array (edges,)
        A positive one, which makes neighbours agree, is a dark line; a negative one is pale.

    Returns
    -------
    matplotlib.axes.Axes
    """
    means = _matrix(means, "means")
    edges, couplings = np.asarray(edges), np.asarray(couplings, dtype=float)
    if edges.ndim != 2 or edges.shape[1] != 2 or couplings.shape != edges.shape[:1]:
        raise ValueError(
            f"edges must be pairs and couplings one number for each; got shapes {edges.shape} and {couplings.shape}"
        )
    if edges.size and not (edges.min() >= 0 and edges.max() < means.size):
        raise ValueError(
            f"edges must join spins numbered from 0 to {means.size - 1}; got {edges.min()} to {edges.max()}"
        )
    rows, columns = means.shape
    where = np.stack([np.tile(np.arange(columns), rows), np.repeat(np.arange(rows), columns)], axis=1)
    with style():
        from matplotlib.collections import LineCollection

        if ax is None:
            _, ax = figure(width=5.2, height=4.6)
        for sign, colour, label in ((-1, "#d2d2d2", "neighbours differ"), (1, INK, "neighbours agree")):
            kept = edges[np.sign(couplings) == sign]
            ax.add_collection(LineCollection(list(where[kept]), colors=colour, linewidths=1.3, label=label, zorder=1))
        size = (0.62 * 72 * 4.0 / max(rows, columns)) ** 2
        dots = ax.scatter(
            *where.T, c=means.ravel(), cmap="RdBu_r", vmin=-1, vmax=1, s=size, edgecolors=INK, linewidths=0.4, zorder=2
        )
        ax.set(xlim=(-0.7, columns - 0.3), ylim=(rows - 0.3, -0.7), xticks=[], yticks=[], aspect="equal")
        ax.set_title(title or "")
        ax.grid(False)
        ax.spines[:].set(visible=False)
        key = ax.figure.colorbar(dots, ax=ax, shrink=0.8)
        key.set_label("mean of the spin")
        legend(ax, loc="upper center", bbox_to_anchor=(0.5, 0.01), ncols=2)
    return ax


def closing(
    work: Any, intervals: Sequence[Interval], *, truth: float | None = None, ax: Any = None, label: str = "log Z"
) -> Any:
    """Intervals for one number, found with more and more work, as a band; and the number, where it is known.

    The best bounds so far are what is known, so that the band never widens from left to right. Intervals without two
    finite ends cannot be drawn and are refused.
    """
    work = np.asarray(work, dtype=float)
    ends = np.array([(i.lower, i.upper) for i in intervals], dtype=float).reshape(-1, 2)
    if work.ndim != 1 or work.size == 0 or work.size != len(ends) or not (np.diff(work) > 0).all():
        raise ValueError(f"work must be an increasing vector with an entry for each of the {len(ends)} intervals")
    if not np.isfinite(ends).all():
        raise ValueError("the ends of intervals must be finite to be drawn")
    lower, upper = np.maximum.accumulate(ends[:, 0]), np.minimum.accumulate(ends[:, 1])
    with style():
        if ax is None:
            _, ax = figure()
        ax.fill_between(work, lower, upper, step="post", color=COLOURS[0], alpha=0.16, linewidth=0)
        ax.step(work, upper, where="post", color=COLOURS[1], label="upper bound")
        ax.step(work, lower, where="post", color=COLOURS[0], label="lower bound")
        if truth is not None:
            ax.axhline(truth, color=INK, linewidth=1.0, linestyle="--", label="exact")
        ax.set(xlabel="pieces of work", ylabel=label)
        legend(ax)
    return ax


def chains(values: Any, *, ax: Any = None, title: str | None = None, label: str = "") -> Any:
    """A number at each draw of several chains, (chains, draws), one line for each chain. Returns the axes."""
    values = _matrix(values, "values")
    with style():
        if ax is None:
            _, ax = figure()
        for colour, chain in zip(np.resize(np.array(COLOURS), len(values)), values, strict=True):
            ax.plot(chain, color=str(colour), linewidth=0.9)
        ax.set(xlabel="draw", ylabel=label, title=title or "")
        ax.margins(x=0.01)
    return ax


def _matrix(values: Any, name: str) -> np.ndarray:
    values = checks.real_array(name, values, finite=False)
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"{name} must be a matrix of finite numbers, not empty; got shape {values.shape}")
    return values
