"""The back-door adjustment: the effect of an intervention from data that were only observed."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.graphical.bayes_net import BayesNet
from cumulant.graphical.graphs import directed
from cumulant.graphical.tables import axes_of, distribution, names_of_axes


@dataclass(frozen=True)
class Backdoor:
    """The answer of `backdoor_criterion`: true or false as a condition, with the reason where it is false."""

    holds: bool
    reason: str = ""

    def __bool__(self):
        return self.holds


def backdoor_criterion(graph: Any, x: Hashable, y: Hashable, z: Sequence[Hashable] = ()) -> Backdoor:
    """Whether `z` satisfies the back-door criterion for the effect of `x` on `y`.

    That is: (i) no variable of `z` is a descendant of `x`, and (ii) `z` blocks every path between `x` and `y` that has
    an arrow into `x` (Pearl 2009, definition 3.3.1). Given (i), (ii) says that `z` d-separates `x` from `y` in the
    graph without the arrows out of `x`.

    Examples
    --------
    >>> kidney = [("size", "treatment"), ("size", "healed"), ("treatment", "healed")]
    >>> bool(backdoor_criterion(kidney, "treatment", "healed", ["size"]))
    True
    >>> print(backdoor_criterion(kidney, "treatment", "healed").reason)
    a path into 'treatment' from 'healed' stays open
    """
    graph = directed(graph)
    z = _several(z)
    for argument, names in (("x", (x,)), ("y", (y,)), ("z", z)):
        for name in names:
            if name not in graph:
                raise ValueError(f"{argument}: {name!r} is not a node of graph; there are {tuple(graph)}")
    _require_distinct(x, y, z)
    below = [name for name in z if name in nx.descendants(graph, x)]
    if below:
        return Backdoor(
            False, f"{below[0]!r} is a descendant of {x!r}, so that adjusting for it removes part of the effect"
        )
    without = graph.copy()
    without.remove_edges_from(list(graph.out_edges(x)))
    if not nx.is_d_separator(without, {x}, {y}, set(z)):
        given = f" given {', '.join(map(repr, z))}" if z else ""
        return Backdoor(False, f"a path into {x!r} from {y!r} stays open{given}")
    return Backdoor(True)


def backdoor_adjustment(
    p: Any,
    x: Hashable,
    y: Hashable,
    z: Sequence[Hashable] = (),
    *,
    variables: Sequence[Hashable] | None = None,
    graph: Any = None,
) -> np.ndarray:
    """``P(y | do(x)) = sum_z P(y | x, z) P(z)`` for every state of `x` and `y`.

    This is the effect of setting `x` if `z` satisfies the back-door criterion in the true causal graph (Pearl 2009,
    theorem 3.3.2; Le Priol 2021, equation 2.38). The criterion is a statement about causes, which no table can tell: it
    is checked against `graph` where one is given, and is otherwise the caller's word.

    Parameters
    ----------
    p : array or BayesNet
        A joint table of probabilities or counts with one axis for each variable, or a network, which brings its table,
        names and graph along.
    x, y : name
        The cause that is set and the effect that is asked for.
    z : sequence of names
        What to adjust for; none gives ``P(y | x)``.
    variables : sequence, optional
        The name of each axis of `p`; 0, 1, 2, ... without it.
    graph : networkx.DiGraph or pairs (cause, effect), optional
        The causal graph; it may have variables that the table has not.

    Returns
    -------
    array of shape (states of x, states of y)
        Each row is a distribution.

    Raises
    ------
    DomainError
        Where `z` does not satisfy the criterion in `graph`, or some state of `x` never occurs in a stratum of `z` that
        does: ``P(y | x, z)`` is then not determined by the table.

    Examples
    --------
    Kidney stones (Charig and others 1986): treatment A heals more of the small stones and more of the large ones, and
    yet fewer of all.

    >>> healed = np.array([[[81, 6], [192, 71]], [[234, 36], [55, 25]]])      # treatment, size, healed (yes, no)
    >>> kidney = [("size", "treatment"), ("size", "healed"), ("treatment", "healed")]
    >>> names = ("treatment", "size", "healed")
    >>> backdoor_adjustment(healed, "treatment", "healed", ["size"], variables=names, graph=kidney)[:, 0].round(6)
    array([0.832546, 0.778875])
    >>> backdoor_adjustment(healed, "treatment", "healed", variables=names)[:, 0].round(6)      # P(healed | treatment)
    array([0.78    , 0.825714])
    """
    if isinstance(p, BayesNet):
        if variables is not None or graph is not None:
            raise ValueError("a BayesNet brings its variables and its graph along: give neither variables= nor graph=")
        variables, graph, p = p.variables, p.graph, p.table()
    table = distribution(p)
    z = _several(z)
    names = names_of_axes(table, variables, (x, y, *z))
    _require_distinct(x, y, z)
    if graph is not None:
        verdict = backdoor_criterion(graph, x, y, z)
        if not verdict:
            what = f"adjusting for {', '.join(map(repr, z))}" if z else "conditioning without adjustment"
            raise DomainError(f"{what} does not give the effect of {x!r} on {y!r}: {verdict.reason}")
    axes = axes_of(names, (x, y, *z))
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    joint = table.sum(axis=others, keepdims=True).transpose(*axes, *others)
    joint = joint.reshape(*joint.shape[:2], -1)  # x, y, strata of z
    of_both, of_z = joint.sum(axis=1, keepdims=True), joint.sum(axis=(0, 1))
    holes = np.argwhere((of_both[:, 0] == 0) & (of_z > 0))
    if holes.size:
        stratum = np.unravel_index(holes[0][1], tuple(table.shape[axis] for axis in axes[2:]))
        where = ", ".join(f"{name} = {state}" for name, state in zip(z, stratum, strict=True))
        raise DomainError(
            f"{x} = {holes[0][0]} never occurs"
            + (f" where {where}" if where else "")
            + ": P(y | x, z) is not determined there"
        )
    conditional = np.divide(joint, of_both, out=np.zeros_like(joint), where=of_both > 0)
    return (conditional * of_z).sum(axis=-1)


def _several(z: Any) -> tuple:
    """`z` as a tuple of names; a word or a number is one name, not several."""
    if isinstance(z, str | int):
        return (z,)
    return tuple(checks.instance("z", z, Iterable, "a list of names"))


def _require_distinct(x: Hashable, y: Hashable, z: tuple) -> None:
    if len({x, y, *z}) != 2 + len(z):
        raise ValueError(f"x, y and the variables of z must all be different; got x = {x!r}, y = {y!r}, z = {z}")
