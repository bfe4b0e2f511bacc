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
    sways: Mapping[tuple[Any, Any], float] | None = None,
    symmetrise: str = "any",
    positions: Mapping[Any, Any] | None = None,
    labels: bool = False,
    rng: int = 0,
    ax: Any = None,
) -> Any:
    """A network whose people are coloured by the probability that they decide independently of their friends.

    Squares are people with the attribute, circles those without it. With `sways`, arrows go from those who sway to
    those who are swayed, the darker the more probable.

    Parameters
    ----------
    graph : networkx.Graph or relational.Network
    probabilities : mapping of people to numbers, or array
        As `SocialInfluence.influence_` has them.
    attribute : str, optional
        The name of the node attribute, for a networkx graph; without it all are circles.
    sways : mapping of pairs to numbers, optional
        As `SocialInfluence.sways_of` has them; arrows are drawn where it is more than 0.1.
    symmetrise : {"any", "mutual"}
        Which ties of a directed graph are drawn: all, or those that go both ways.
    positions : mapping of people to points, optional
        Where people stand; by default so that distances are those along ties (above 300 people a spring layout, the
        same for the same `rng`).
    labels : bool
        Whether to write the names of people.
    """
    if not isinstance(graph, nx.Graph):
        values, graph = graph.attribute, nx.from_numpy_array(graph.ties.astype(int))
        nx.set_node_attributes(graph, dict(enumerate(values.tolist())), "attribute")
        attribute = "attribute"
    checks.choice("symmetrise", symmetrise, ("any", "mutual"))
    if isinstance(graph, nx.DiGraph):
        graph = graph.to_undirected(reciprocal=symmetrise == "mutual")
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
    strangers = {each for pair in sways or {} for each in pair} - set(people)
    if strangers:
        raise ValueError(f"sways names {strangers.pop()!r}, who is not in the graph")
    at = positions or _positions(graph, rng)
    points = np.array([at[each] for each in people])
    has = np.array([bool(attribute and graph.nodes[each].get(attribute)) for each in people])
    with style():
        from matplotlib.collections import LineCollection
        from matplotlib.lines import Line2D

        if ax is None:
            _, ax = figure(width=6.4, height=5.0)
        ax.add_collection(LineCollection([[at[a], at[b]] for a, b in graph.edges], colors="#b8b8b8", linewidths=0.8))
        for (a, b), chance in (sways or {}).items():
            if chance > 0.1:
                arrow = {"arrowstyle": "-|>", "color": INK, "alpha": min(chance, 1.0), "shrinkA": 4, "shrinkB": 5}
                ax.annotate("", at[b], at[a], arrowprops=arrow, zorder=1)
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


def _positions(graph: Any, rng: int) -> dict[Any, Any]:
    """Kamada and Kawai's layout; people who are not connected are about as far from each other as those who are."""
    if len(graph) > 300:
        return nx.spring_layout(graph, seed=rng, k=1.6 / np.sqrt(len(graph)), method="force")
    along = dict(nx.all_pairs_shortest_path_length(graph))
    apart = 0.6 * max(max(each.values()) for each in along.values()) + 1.0
    distances = {a: {b: along[a].get(b, apart) for b in graph} for a in graph}
    return nx.kamada_kawai_layout(graph, dist=distances)


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
