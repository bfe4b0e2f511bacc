"""Pictures of admixtures: shares of each individual as bars, distances between individuals as a map."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.plotting.style import COLOURS, INK, figure, style


def memberships(shares: Any, populations: Sequence[Any] | None = None, *, ax: Any = None) -> Any:
    """The bar plot of population genetics: a column for each individual, divided by its memberships.

    With `populations` individuals of one population stand together, with its name below; within a population they are
    ordered by the largest component of all its individuals.
    """
    tau = checks.real_array("shares", shares, ndim=2)
    order, edges, names = _groups(len(tau), populations, tau)
    with style():
        if ax is None:
            _, ax = figure(width=min(4.0 + 0.05 * len(tau), 14.0), height=2.6)
        _bars(ax, tau[order], range(tau.shape[1]))
        _label(ax, edges, names, "x")
        ax.set(ylabel="membership")
    return ax


def compare(fits: Mapping[Any, Any], populations: Sequence[Any] | None = None) -> Any:
    """Bars of several fits of the same individuals, one row each, in the same order: ``{name: memberships}``.

    A component has the colour of that of the row above with which it has most in common, so that rows can be followed
    from top to bottom; fits with few components go first. Individuals are in the order of the last row.
    """
    rows = {name: checks.real_array("fits", shares, ndim=2) for name, shares in fits.items()}
    if not rows or len({len(tau) for tau in rows.values()}) > 1:
        raise ValueError("fits must have the memberships of at least one fit, all of the same individuals")
    last = list(rows.values())[-1]
    order, edges, names = _groups(len(last), populations, last)
    fig, axes = figure(len(rows), 1, width=min(4.0 + 0.05 * len(last), 14.0), height=1.6 + 1.1 * len(rows))
    above, places = None, []
    with style():
        for ax, (name, tau) in zip(np.atleast_1d(axes).ravel(), rows.items(), strict=True):
            places = list(range(tau.shape[1])) if above is None else _followed(above, places, tau)
            _bars(ax, tau[order], places)
            ax.set(ylabel=str(name), yticks=[])
            _label(ax, edges, names if ax is np.atleast_1d(axes).ravel()[-1] else [""] * len(names), "x")
            above = tau
    return fig


def distances(matrix: Any, populations: Sequence[Any] | None = None, *, ax: Any = None) -> Any:
    """The admixture distance of each pair of individuals, from 0 to 1, as a map."""
    values = checks.real_array("matrix", matrix, ndim=2)
    if values.shape[0] != values.shape[1]:
        raise ValueError(f"matrix must be square; got shape {values.shape}")
    order, edges, names = _groups(len(values), populations, None)
    with style():
        if ax is None:
            _, ax = figure(width=5.2, height=4.4)
        shown = ax.imshow(values[np.ix_(order, order)], cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
        for axis in ("x", "y"):
            _label(ax, edges, names, axis)
        ax.grid(False)
        ax.figure.colorbar(shown, ax=ax, label="admixture distance")
    return ax


def _bars(ax: Any, tau: np.ndarray, places: Sequence[int]) -> None:
    """A column for each row of shares; `places` are the numbers of the colours."""
    bottom, edges = np.zeros(len(tau)), np.arange(len(tau) + 1) - 0.5
    for k, place in enumerate(places):
        hatch, colour = _colour(place)
        top = bottom + tau[:, k]
        ax.stairs(top, edges, baseline=bottom, fill=True, facecolor=colour, linewidth=0, hatch=hatch, edgecolor="white")
        bottom = top
    ax.set(xlim=(-0.5, len(tau) - 0.5), ylim=(0, 1))
    ax.grid(False)


def _colour(place: int) -> tuple[str, tuple[float, ...]]:
    """A hatch and a colour: beyond the colours there are, lighter and darker ones, and then all of them hatched."""
    from matplotlib.colors import to_rgb

    cycle, at = divmod(place, len(COLOURS))
    share, towards = ((1.0, 0.0), (0.45, 1.0), (0.55, 0.0))[cycle % 3]
    return "//" if cycle >= 3 else "", tuple(share * part + (1 - share) * towards for part in to_rgb(COLOURS[at]))


def _followed(above: np.ndarray, places: Sequence[int], tau: np.ndarray) -> list[int]:
    """Numbers of colours of the components: those of the components above that they overlap with, or new ones."""
    from scipy.optimize import linear_sum_assignment

    old, new = linear_sum_assignment(-(above.T @ tau))
    taken = {int(k): places[i] for i, k in zip(old, new, strict=True)}
    free = (place for place in itertools.count() if place not in taken.values())
    return [taken[k] if k in taken else next(free) for k in range(tau.shape[1])]


def _groups(n: int, populations: Sequence[Any] | None, tau: np.ndarray | None) -> tuple[np.ndarray, list[int], list]:
    """The order of individuals, where groups end, and their names."""
    if populations is None:
        return np.arange(n), [0, n], []
    if len(populations) != n:
        raise ValueError(f"populations must name the population of each of the {n} individuals; got {len(populations)}")
    labels = list(dict.fromkeys(map(str, populations)))
    groups = np.array([labels.index(str(each)) for each in populations])
    parts = []
    for g in range(len(labels)):
        members = np.flatnonzero(groups == g)
        if tau is not None:
            members = members[np.argsort(-tau[members, tau[members].mean(axis=0).argmax()], kind="stable")]
        parts.append(members)
    return np.concatenate(parts), [0, *np.cumsum([len(part) for part in parts]).tolist()], labels


def _label(ax: Any, edges: list[int], names: list, axis: str) -> None:
    if not names:
        (ax.set_xticks if axis == "x" else ax.set_yticks)([])
        return
    middles = [(a + b - 1) / 2 for a, b in itertools.pairwise(edges)]
    line = ax.axvline if axis == "x" else ax.axhline
    for edge in edges[1:-1]:
        line(edge - 0.5, color=INK, linewidth=0.8)
    if axis == "x":
        ax.set_xticks(middles, names, rotation=60 if len(names) > 4 else 0, ha="right" if len(names) > 4 else "center")
    else:
        ax.set_yticks(middles, names)
    ax.tick_params(axis=axis, length=0)
