"""Whether a table of probabilities factorises over a graph, and where it fails to."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.graphical.graphs import directed, undirected
from cumulant.graphical.tables import axes_of, distribution, names_of_axes


@dataclass(frozen=True)
class Factorisation:
    """The answer of `factorises`: true or false as a condition, with the worst violation.

    Attributes
    ----------
    holds : bool
        Whether `violation` is at most the tolerance.
    violation : float
        Undirected graph: the largest absolute interaction ``|lambda_S(x_S)|`` among sets ``S`` that are no clique.
        Directed graph: the largest ``|log p(x) - sum_i log p(x_i | x_parents)|``. In nats; 0 where there is nothing to
        violate.
    variables, states : tuple
        Where it is attained: the variables of ``S`` (all of them for a directed graph) and their states.
    """

    holds: bool
    violation: float
    variables: tuple = ()
    states: tuple[int, ...] = ()

    def __bool__(self):
        return self.holds

    def __str__(self):
        verdict = "factorises" if self.holds else "does not factorise"
        where = ", ".join(f"{name} = {state}" for name, state in zip(self.variables, self.states, strict=True))
        return f"{verdict}: largest violation {self.violation:.3g} nats" + (f" at {where}" if where else "")


def factorises(
    p: Any,
    graph: Any,
    *,
    variables: Sequence[Hashable] | None = None,
    reference: Sequence[int] | None = None,
    tol: float = 1e-9,
) -> Factorisation:
    """Whether the joint table `p` factorises over a graph, undirected or directed.

    Undirected. For ``p > 0`` and a reference state ``x0``, let

    ``lambda_S(x_S) = sum_{T subset of S} (-1)^|S - T| log p(x_T, x0_-T)``.

    Then ``p(x) = prod_C psi_C(x_C)`` over the cliques ``C`` if and only if ``lambda_S = 0`` for each ``S`` that is no
    clique (Hammersley and Clifford 1971; Besag 1974). The equivalence needs ``p > 0``: a table with a zero is refused.

    Directed. ``p(x) = prod_i p(x_i | x_parents(i))`` (Le Priol 2021, equation 2.36) is compared entry by entry, in
    logarithms; zeros are allowed. Every table factorises over a complete DAG (2.37).

    All is exact up to rounding, which `tol` is there for. A table estimated from data factorises over hardly any graph:
    this is not a statistical test.

    Parameters
    ----------
    p : array
        Probabilities or counts (divided by their sum), one axis for each variable.
    graph : networkx.Graph, networkx.DiGraph or iterable of pairs
        A graph over the variables; variables that are not nodes of it have no edges. Pairs are undirected edges.
    variables : sequence, optional
        The node of each axis; 0, 1, 2, ... without it.
    reference : sequence of int, optional
        The state ``x0`` (undirected only); all zeros without it. The verdict does not depend on it.
    tol : float
        The largest violation, in nats, that counts as none.

    Returns
    -------
    Factorisation
        Usable as a condition; has the worst violation and where it is.

    Examples
    --------
    A Markov chain 0 - 1 - 2: the ends are independent given the middle.

    >>> step = np.array([[0.9, 0.1], [0.3, 0.7]])
    >>> p = np.einsum("a,ab,bc->abc", [0.5, 0.5], step, step)
    >>> bool(factorises(p, [(0, 1), (1, 2)]))
    True
    >>> print(factorises(p, [(0, 1)]))
    does not factorise: largest violation 3.04 nats at 1 = 1, 2 = 1
    """
    checks.not_negative("tol", tol)
    table = distribution(p)
    is_directed = isinstance(graph, nx.Graph) and graph.is_directed()
    if is_directed and reference is not None:
        raise ValueError("a reference state belongs to undirected graphs; the comparison with a DAG has none")
    graph = directed(graph) if is_directed else undirected(graph)
    names = names_of_axes(table, variables, graph.nodes)
    if is_directed:
        violation, states = _directed_violation(table, graph, names)
        where = tuple(range(table.ndim))
    else:
        violation, where, states = _undirected_violation(table, graph, names, reference)
    return Factorisation(bool(violation <= tol), violation, tuple(names[axis] for axis in where), states)


def _undirected_violation(table, graph, names, reference):
    zero = np.argwhere(table == 0)
    if zero.size:
        raise DomainError(
            "p must be positive everywhere: for an undirected graph the test rests on the theorem of Hammersley and "
            f"Clifford, which fails for tables with zeros; p is 0 at {_describe(names, zero[0])}"
        )
    base = _reference(table, reference)
    log = np.log(table)
    # After this, entry x holds lambda_S(x_S) with S the axes on which x differs from the reference.
    for axis in range(table.ndim):
        log = np.moveaxis(log, axis, 0)
        at_reference = log[base[axis]].copy()
        log = log - at_reference
        log[base[axis]] = at_reference
        log = np.moveaxis(log, 0, axis)
    violation, worst = 0.0, ()
    # A set is no clique exactly if it has two variables without an edge: these are looked at, pair by pair.
    for first, second in combinations(range(table.ndim), 2):
        if graph.has_edge(names[first], names[second]):
            continue
        size = np.abs(log)
        for axis in (first, second):
            np.moveaxis(size, axis, 0)[base[axis]] = 0.0
        place = np.unravel_index(np.argmax(size), size.shape)
        if size[place] > violation:
            violation, worst = float(size[place]), tuple(map(int, place))
    where = tuple(axis for axis, state in enumerate(worst) if state != base[axis])
    return violation, where, tuple(worst[axis] for axis in where)


def _directed_violation(table, graph, names):
    log_product = np.zeros_like(table)
    for axis, name in enumerate(names):
        parents = axes_of(names, graph.predecessors(name)) if name in graph else ()
        others = tuple(each for each in range(table.ndim) if each != axis and each not in parents)
        family = table.sum(axis=others, keepdims=True)
        above = family.sum(axis=axis, keepdims=True)
        # Where the parents' states never occur any conditional will do: some factor of theirs is zero there already.
        log_product = log_product + _log(np.divide(family, above, out=np.zeros_like(family), where=above > 0))
    gap = np.where((table == 0) & np.isneginf(log_product), 0.0, np.inf)
    both = (table > 0) & np.isfinite(log_product)
    gap[both] = np.abs(_log(table)[both] - log_product[both])
    place = np.unravel_index(np.argmax(gap), gap.shape)
    return float(gap[place]), tuple(map(int, place))


def _log(values):
    """The logarithm, with log 0 = -inf: a state that cannot occur."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def _reference(table, reference):
    base = (0,) * table.ndim if reference is None else tuple(reference)
    fits = len(base) == table.ndim and all(0 <= state < size for state, size in zip(base, table.shape, strict=True))
    if not fits:
        raise ValueError(f"reference must be one state of a table of shape {table.shape}; got {base}")
    return base


def _describe(names, states):
    return ", ".join(f"{name} = {state}" for name, state in zip(names, states, strict=True))
