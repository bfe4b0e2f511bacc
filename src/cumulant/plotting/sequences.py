"""Pictures of chain models: a word with its marginals, the gap of a run, a matrix of transitions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cumulant.plotting.style import COLOURS, GRID, figure, legend, style

__all__ = ["gap", "transitions", "word"]


def word(
    images: Any,
    marginals: Mapping[str, Any],
    *,
    classes: Any = None,
    truth: Any = None,
) -> Any:
    """The images of a sequence, and below each the probabilities of its labels.

    Parameters
    ----------
    images : array (length, height, width)
        Ink is dark.
    marginals : mapping of str to array (length, labels)
        By the name of the model they come from: one set of bars for each.
    classes : sequence, optional
        The labels; their numbers without it.
    truth : sequence, optional
        The true label of each image, written above it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    images = np.asarray(images, dtype=float)
    bars = {name: np.asarray(values, dtype=float) for name, values in marginals.items()}
    if images.ndim != 3 or len(images) == 0:
        raise ValueError(f"images must have shape (length, height, width); got {images.shape}")
    if not bars:
        raise ValueError("marginals must hold the probabilities of at least one model")
    labels = next(iter(bars.values())).shape[-1]
    for name, values in bars.items():
        if values.shape != (len(images), labels):
            raise ValueError(f"marginals[{name!r}] must have shape {(len(images), labels)}; got {values.shape}")
    names = [str(label) for label in (range(labels) if classes is None else classes)]
    length = len(images)
    fig, axes = figure(2, length, width=0.7 + 1.45 * length, height=3.3, squeeze=False)
    width = 0.84 / len(bars)
    with style():
        for t in range(length):
            above, below = axes[0, t], axes[1, t]
            above.imshow(images[t], cmap="Greys", vmin=0.0, vmax=1.0)
            above.set(xticks=[], yticks=[])
            above.grid(False)
            above.spines[:].set(visible=True, color=GRID)
            if truth is not None:
                above.set_title(str(truth[t]), fontsize=11)
            for i, (name, values) in enumerate(bars.items()):
                where = np.arange(labels) + (i - 0.5 * (len(bars) - 1)) * width
                below.bar(where, values[t], width=width, color=COLOURS[i], label=name if t == 0 else None)
            below.set(ylim=(0.0, 1.0), xlim=(-0.7, labels - 0.3), yticks=[0.0, 0.5, 1.0])
            below.set_xticks(range(labels), labels=names, fontsize=7)
            below.grid(False, axis="x")
            if t:
                below.set_yticklabels([])
        axes[1, 0].set_ylabel("probability")
        fig.legend(loc="outside lower center", ncols=len(bars))
    return fig


def gap(history: Sequence[Mapping[str, float]], *, ax: Any = None, label: str | None = None) -> Any:
    """What a run had left to gain, ``P(w) - P*`` at most, against its seconds: the rows of `ChainCRF.history_`.

    Records with a gap of exactly zero have no place on the logarithmic axis and are left out. Returns the axes.
    """
    if not history:
        raise ValueError("history must hold at least one record")
    seconds = np.array([row["seconds"] for row in history])
    gaps = np.array([row["gap"] for row in history])
    with style():
        if ax is None:
            _, ax = figure()
        shown = gaps > 0
        ax.semilogy(seconds[shown], gaps[shown], "o-", label=label)
        ax.set(xlabel="seconds", ylabel="gap: bound on P(w) − P*")
        if label is not None:
            legend(ax)
    return ax


def transitions(
    matrix: Any,
    *,
    classes: Any = None,
    ax: Any = None,
    title: str | None = None,
    signed: bool = True,
) -> Any:
    """A matrix with a row for each label and a column for each next label, as colours with their key.

    `signed` values, such as weights, are blue below zero and red above; others begin at zero, white. Returns the axes.
    """
    matrix = np.asarray(matrix, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"matrix must be square and finite; got shape {matrix.shape}")
    names = [str(label) for label in (range(len(matrix)) if classes is None else classes)]
    if len(names) != len(matrix):
        raise ValueError(f"classes must be {len(matrix)} labels, one for each row; got {len(names)}")
    highest = float(np.abs(matrix).max()) or 1.0
    with style():
        if ax is None:
            _, ax = figure(width=4.8, height=4.0)
        image = ax.imshow(matrix, cmap="RdBu_r" if signed else "Greys", vmin=-highest if signed else 0.0, vmax=highest)
        ax.grid(False)
        ax.set_xticks(range(len(names)), labels=names, rotation=0 if max(map(len, names)) < 3 else 90)
        ax.set_yticks(range(len(names)), labels=names)
        ax.set(xlabel="next label", ylabel="label", title=title or "")
        ax.figure.colorbar(image, ax=ax, shrink=0.85)
    return ax
