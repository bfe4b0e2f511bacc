"""Pictures of social networks: who decides independently, and how well habits and ties are predicted."""

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np

from cumulant import checks
from cumulant.plotting.style import COLOURS, INK, figure, style

_MARKERS = {True: "s", False: "o"}


def influence(
    graph: Any,
    probabilities: Any,
    *,
    attribute: str | None = None,
    positions: Mapping[Any, Any] | None = None,
    labels: bool = False,
    rng: int = 0,
    ax: Any = None,
) -> Any:
    """A network whose people are coloured by the probability that they decide independently of their friends.

    Squares are people with the attribute, circles those without it.

    Parameters
    ----------
    graph : networkx.Graph or relational.Network
    probabilities : mapping of people to numbers, or array
        As `SocialInfluence.influence_` has them.
    attribute : str, optional
        The name of the node attribute, for a networkx graph; without it all are circles.
    positions : mapping of people to points, optional
        Where people stand; by default a spring layout, the same for the same `rng`.
    labels : bool
        Whether to write the names of people.
    """
    if not isinstance(graph, nx.Graph):
        values, graph = graph.attribute, nx.from_numpy_array(graph.ties.astype(int))
        nx.set_node_attributes(graph, dict(enumerate(values.tolist())), "attribute")
        attribute = "attribute"
    people = list(graph)
    if isinstance(probabilities, Mapping):
        missing = [each for each in people if each not in probabilities]
        if missing:
            raise ValueError(f"probabilities has no entry for {missing[0]!r}")
        shade = np.array([probabilities[each] for each in people], dtype=float)
    else:
        shade = checks.real_array("probabilities", probabilities, ndim=1)
    if shade.size != len(people):
        raise ValueError(f"probabilities must have one entry for each of {len(people)} people; got {shade.size}")
    at = positions or nx.spring_layout(graph, seed=rng, k=1.6 / np.sqrt(max(len(people), 1)), method="force")
    points = np.array([at[each] for each in people])
    has = np.array([bool(attribute and graph.nodes[each].get(attribute)) for each in people])
    with style():
        from matplotlib.collections import LineCollection
        from matplotlib.lines import Line2D

        if ax is None:
            _, ax = figure(width=6.4, height=5.0)
        ax.add_collection(LineCollection([[at[a], at[b]] for a, b in graph.edges], colors="#9a9a9a", linewidths=0.9))
        shown = None
        for value, marker in _MARKERS.items():
            chosen = has == value
            if chosen.any():
                shown = ax.scatter(
                    *points[chosen].T, c=shade[chosen], marker=marker, s=70, cmap="viridis", vmin=0, vmax=1,
                    edgecolors=INK, linewidths=0.7, zorder=2,
                )  # fmt: skip
        if labels:
            for each, point in zip(people, points, strict=True):
                ax.annotate(str(each), point, xytext=(6, 5), textcoords="offset points", fontsize=7)
        if attribute:
            handles = [
                Line2D([], [], linestyle="", marker=marker, markerfacecolor="white", markeredgecolor=INK, label=text)
                for marker, text in ((_MARKERS[True], f"{attribute}: yes"), (_MARKERS[False], f"{attribute}: no"))
            ]
            ax.legend(handles=handles, loc="best")
        ax.figure.colorbar(shown, ax=ax, label="probability of deciding independently")
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(False)
        ax.margins(0.06)
    return ax


def roc_curves(scores: Mapping[str, tuple[Any, Any]], *, ax: Any = None) -> Any:
    """ROC curves of several predictors, each a pair (labels, scores); the legend has the area under each.

    >>> ax = roc_curves({"ours": ([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])})
    >>> ax.get_legend_handles_labels()[1]
    ['ours, 0.75']
    """
    from sklearn.metrics import roc_auc_score, roc_curve

    styles = ("-", "--", "-.", ":")
    with style():
        if ax is None:
            _, ax = figure(width=4.4, height=4.2)
        ax.plot([0, 1], [0, 1], color="#b0b0b0", linewidth=0.8)
        for k, (name, (labels, values)) in enumerate(scores.items()):
            false, true, _ = roc_curve(labels, values)
            label = f"{name}, {roc_auc_score(labels, values):.2f}"
            ax.plot(false, true, color=COLOURS[k % len(COLOURS)], linestyle=styles[k % len(styles)], label=label)
        ax.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
        if len(scores) > 4:  # they would hide the curves
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
        else:
            ax.legend(loc="lower right", fontsize=8)
    return ax
