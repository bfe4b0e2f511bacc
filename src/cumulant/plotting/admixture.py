"""Pictures of admixtures: shares of each individual as bars, distances between individuals as a map."""

import itertools
from collections.abc import Sequence
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
        bottom, at = np.zeros(len(tau)), np.arange(len(tau))
        colours = [COLOURS[k % len(COLOURS)] for k in range(tau.shape[1])]
        for k, colour in enumerate(colours):
            bars = tau[order, k]
            # beyond the colours there are, components of one colour are told apart by hatches
            hatch = ("", "//", "..", "xx")[(k // len(COLOURS)) % 4]
            ax.bar(at, bars, 1.0, bottom=bottom, color=colour, linewidth=0, hatch=hatch, edgecolor="white")
            bottom += bars
        _label(ax, edges, names, "x")
        ax.set(xlim=(-0.5, len(tau) - 0.5), ylim=(0, 1), ylabel="membership")
        ax.grid(False)
    return ax


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
