"""Shapes that statistics draws again and again: a band, an interval, data under a fitted density."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cumulant.certificates import Interval
from cumulant.plotting.style import COLOURS, INK, figure, legend, style


def band(ax: Any, x: Any, low: Any, high: Any, *, color: str | None = None, label: str | None = None) -> Any:
    """Fill between two curves: where a quantity lies, for each `x`.

    Without `color` the band takes the colour of the last line drawn on `ax`, to which it belongs.
    """
    x, low, high = (np.asarray(values, dtype=float) for values in (x, low, high))
    if not x.shape == low.shape == high.shape or x.ndim != 1:
        raise ValueError(
            f"x, low and high must be vectors of one length; got shapes {x.shape}, {low.shape}, {high.shape}"
        )
    if color is None:
        color = ax.lines[-1].get_color() if ax.lines else COLOURS[0]
    with style():
        return ax.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0, label=label)


def interval(
    ax: Any, where: float, bounds: Interval | Sequence[float], *, color: str = COLOURS[0], label: str | None = None
) -> Any:
    """An upright interval at `where`, with a dot at its estimate if it has one.

    `bounds` is an `Interval` or a pair (lower, upper).
    """
    if not isinstance(bounds, Interval):
        if len(bounds) != 2:
            raise ValueError(f"bounds must be an Interval or a pair (lower, upper); got {bounds!r}")
        bounds = Interval(bounds[0], bounds[1])
    with style():
        middle = 0.5 * (bounds.lower + bounds.upper) if bounds.estimate is None else bounds.estimate
        return ax.errorbar(
            [where],
            [middle],
            yerr=[[middle - bounds.lower], [bounds.upper - middle]],
            fmt="none" if bounds.estimate is None else "o",
            color=color,
            label=label,
        )


def density(
    family: Any,
    theta: Any,
    data: Any,
    *,
    ax: Any = None,
    label: str | None = None,
    color: str = COLOURS[1],
    bins: Any = "auto",
) -> Any:
    """Data as a histogram and over it the density, or the probabilities, of a one-dimensional family at `theta`.

    Where the family is discrete, the data are bars of relative frequency. Returns the axes; call again with ``ax=`` for
    a second family: the histogram is drawn once.
    """
    values = np.asarray(data, dtype=float)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"data must be a non-empty vector of finite numbers; got shape {values.shape}")
    if tuple(family.event_shape) != ():
        raise ValueError(
            f"only one-dimensional families can be drawn; {family} has events of shape {family.event_shape}"
        )
    with style():
        if ax is None:
            _, ax = figure()
        if not getattr(ax, "_cumulant_histogram", False):
            _histogram(ax, values, bins, family.discrete)
            ax._cumulant_histogram = True
        grid = _grid(family, values)
        height = np.exp(np.asarray(family.log_prob(grid, np.asarray(theta, dtype=float))))
        marks = {"marker": "o", "markersize": 3} if family.discrete else {}
        ax.plot(grid, height, color=color, label=label or type(family).__name__, **marks)
        legend(ax)
    return ax


def _histogram(ax, values, bins, discrete):
    look = {"color": INK, "alpha": 0.18, "label": "data"}
    if discrete:
        points, counts = np.unique(values, return_counts=True)
        ax.bar(points, counts / values.size, width=0.9, **look)
        ax.set_ylabel("probability")
        ax.xaxis.get_major_locator().set_params(integer=True)
    else:
        ax.hist(values, bins=bins, density=True, **look)
        ax.set_ylabel("density")


def _grid(family, values):
    """Points at which the family has a density, over the range of the data and a little more."""
    low, high = values.min(), values.max()
    if family.discrete:
        points = np.arange(np.floor(low), np.ceil(high) + 1)
    else:
        margin = 0.05 * (high - low or 1.0)
        points = np.linspace(low - margin, high + margin, 400)
    return points[np.asarray(family.in_support(points))]
