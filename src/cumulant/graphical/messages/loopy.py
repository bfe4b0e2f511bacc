"""Belief propagation, sum-product and max-product: exact on trees, an estimate on graphs with cycles."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.certificates import Certificate, by_construction, check, issuer, rounding
from cumulant.errors import DomainError
from cumulant.graphical.exact.elimination import slack_of_elimination
from cumulant.graphical.messages.answers import Answer, Approximation
from cumulant.graphical.messages.incidence import (
    Incidence,
    check_settings,
    is_forest,
    normalise,
    require_model,
    tables_of,
)
from cumulant.graphical.messages.loopy_kernels import propagate, propagate_residual, summarise

_SCHEDULES = ("sequential", "parallel", "residual")
_SETTLED = 1e-12  # a change of messages that is rounding


@dataclass(frozen=True, eq=False)
class Propagation(Approximation):
    """What message passing found: an estimate, unless a certificate says otherwise.

    Its `trace` is the largest change of a message in each sweep, for a double loop the free energy after each outer
    loop. A `certificate`, of ``|log Z - log_partition|``, is issued on trees only. Where it has not `converged` the
    numbers mean little.

    Attributes
    ----------
    log_partition : float
        Minus the Bethe free energy (or that of the regions), an estimate of ``log Z`` that can lie on either side.
    change : float
        The last change.
    messages : array or None
        The logarithms of the messages of `belief_propagation`, for the next run to start from.
    """

    log_partition: float
    change: float
    messages: np.ndarray | None = None

    def __str__(self):
        end = "converged" if self.converged else f"NOT converged, last change {self.change:.2g}"
        kind = "estimate without a certificate" if self.certificate is None else "exact"
        return f"log Z ~ {self.log_partition:.6g}  ({kind}; {len(self.trace)} sweeps, {end})"


@dataclass(frozen=True, eq=False)
class MaxProduct(Answer):
    """A state, its score ``<theta, T(x)>``, and whether it is known to be the best.

    Its `trace` is the largest change of a message in each sweep, and its `certificate`, of ``max <theta, T> - score``,
    is issued on trees only.

    Attributes
    ----------
    x : array
        The state, in the values of the model.
    score : float
        Its score, computed from the model: no other state is known to be better, and on trees none is.
    converged : bool
        Whether messages settled within `tol`.
    """

    x: np.ndarray
    score: float
    converged: bool

    def __str__(self):
        end = "converged" if self.converged else f"NOT converged, last change {self.trace[-1]:.2g}"
        kind = "a good state without a certificate" if self.certificate is None else "a best state"
        return f"score {self.score:.6g}  ({kind}; {len(self.trace)} sweeps, {end})"


def belief_propagation(
    model: Any,
    *,
    schedule: str = "sequential",
    damping: float = 0.0,
    max_sweeps: int = 1000,
    tol: float = 1e-10,
    start: Propagation | None = None,
) -> Propagation:
    """Loopy belief propagation: sum-product messages to a fixed point, and the Bethe estimate of ``log Z``.

    ``m_(f -> i)(x_i) ~ sum_(x_f without x_i) f(x_f) prod_(j != i) prod_(g != f) m_(g -> j)(x_j)``, in logarithms. On a
    tree it ends with the exact marginals and ``log Z``, and a certificate. On a graph with cycles fixed points are the
    stationary points of the Bethe free energy (Yedidia, Freeman, Weiss 2005): often close, never certified, and there
    may be none that the iteration finds; see `double_loop` for one that always converges.

    Parameters
    ----------
    model : DiscreteModel
        With or without evidence; tables of any arity. A causally independent factor is a chain of small tables, along
        which the sequential schedule goes forth and back: messages take time linear in the number of causes.
    schedule : str
        ``"sequential"`` (tables in order, forth and back), ``"parallel"`` (all from the last messages) or
        ``"residual"`` (always the table whose messages would change most; Elidan, McGraw, Koller 2006).
    damping : float
        In [0, 1): the weight of the logarithm of the old message in the new one.
    max_sweeps, tol : int, float
        The end: no message, as a distribution, changes by more than `tol` in a sweep, before damping, and no belief of
        a table differs by more from those of its variables.
    start : Propagation, optional
        A result for a model with the same scopes and evidence on the same variables, whose messages to start from
        where the tables have changed a little; uniform messages without it.

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> chain = Ising([(0, 1), (1, 2)], [0.5, -0.3], [0.4, 0.3, -0.5])
    >>> result = belief_propagation(chain)
    >>> abs(result.log_partition - chain.log_partition()) <= result.certificate.upper
    True
    >>> square = Ising([(0, 1), (0, 2), (1, 3), (2, 3)], [-0.5, 0.5, 0.5, 0.5], [0.4, 0.3, -0.5, -0.2])
    >>> print(belief_propagation(square))
    log Z ~ 3.40197  (estimate without a certificate; ... sweeps, converged)
    """
    structure, theta, _ = tables_of(model)
    layout = Incidence.of(structure)
    messages, trace, change = _run(layout, theta, False, schedule, damping, max_sweeps, tol, start)
    nodes, tables = np.zeros(int(layout.node_starts[-1])), np.zeros(theta.size)
    value = summarise(messages, theta, nodes, tables, tuple(layout))[0]
    if not np.isfinite(value):  # a zero message is a proof: every state is impossible
        raise DomainError("every state is impossible, given the evidence: there is no distribution")
    marginals = model._all_marginals(layout.split(normalise(nodes, layout.node_starts)))
    beliefs = normalise(tables, layout.table_starts)
    result = Propagation(
        model, trace, None, marginals, beliefs, bool(change <= tol), float(value), float(change), messages
    )
    if change <= _SETTLED and is_forest(structure):
        result = replace(result, certificate=certify_propagation(model, result))
    return result


@issuer
def certify_propagation(model: Any, result: Propagation) -> Certificate:
    """``|log Z - value|`` with ``log Z`` by elimination, which on a tree costs no more than the messages."""
    exact = model.log_partition(method="elimination")
    return _compared(model, "|log Z - value|", abs(exact - result.log_partition), "sum-product", rounding(exact))


def _compared(model: Any, quantity: str, distance: float, which: str, slack: float) -> Certificate:
    structure, theta, _ = model.restricted()
    return Certificate(
        quantity,
        max(distance, 0.0),
        f"the exactness of {which} on trees (Pearl 1988), compared with elimination",
        (
            check(is_forest(structure), "the factor graph has no cycle"),
            by_construction(
                "elimination gives the exact answer within rounding", f"{distance:.1e} from that of messages"
            ),
        ),
        slack=slack_of_elimination(structure, theta) + slack,
    )


def max_product(
    model: Any,
    *,
    schedule: str = "sequential",
    damping: float = 0.0,
    max_sweeps: int = 1000,
    tol: float = 1e-10,
) -> MaxProduct:
    """Max-product messages, and a state read off them: a best one on a tree, a good one elsewhere.

    The state is read factor by factor: each takes its best entry among those that agree with what is settled, which on
    a tree is right even where several states are best. Arguments are those of `belief_propagation`.

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> found = max_product(Ising([(0, 1), (1, 2)], [0.5, -0.3], [0.4, 0.3, -0.5]))
    >>> found.x, round(found.score, 6)
    (array([ 1,  1, -1]), 2.0)
    >>> print(found)
    score 2  (a best state; ... sweeps, converged)
    """
    require_model(model)
    if model.n_variables != model.structure.n_variables:
        raise ValueError("max_product needs a model without hidden variables: these would be maximised, not summed out")
    structure, theta, free = tables_of(model)
    layout = Incidence.of(structure)
    messages, trace, change = _run(layout, theta, True, schedule, damping, max_sweeps, tol)
    nodes, tables = np.zeros(int(layout.node_starts[-1])), np.zeros(theta.size)
    if summarise(messages, theta, nodes, tables, tuple(layout))[0] == -np.inf:
        raise DomainError("every state is impossible, given the evidence: there is no best one")
    states = np.zeros(model.n_variables, dtype=np.int64)
    for v, x in model._evidence.items():
        states[v] = x
    states[free] = _decode(layout, nodes, tables)
    x = model.family.values(states)
    score = float(model.family.score(x, model.theta))
    result = MaxProduct(model, trace, None, x, score, bool(change <= tol))
    if change <= _SETTLED and score > -np.inf and is_forest(structure):
        result = replace(result, certificate=certify_max_product(model, result))
    return result


@issuer
def certify_max_product(model: Any, result: MaxProduct) -> Certificate:
    """``max <theta, T> - score`` with the largest score by elimination."""
    best, theta = model.map()[1], model.theta
    distance = best - float(model.family.score(result.x, theta))
    slack = rounding(theta[np.isfinite(theta)], best, terms=theta.size + 1.0)
    return _compared(model, "max <theta, T> - score", distance, "max-product", slack)


def _run(layout: Incidence, theta, maximise, schedule, damping, max_sweeps, tol, start=None):
    checks.choice("schedule", schedule, _SCHEDULES)
    check_settings(damping=damping, max_sweeps=max_sweeps, tol=tol)
    sizes = np.diff(layout.message_starts)
    messages = np.zeros(int(sizes.sum())) if maximise else -np.log(np.repeat(sizes, sizes))
    if start is not None:
        if not isinstance(start, Propagation) or start.messages is None or start.messages.shape != messages.shape:
            raise ValueError("start must be a result of belief_propagation for a model with the same scopes")
        # what was impossible may be possible under other tables: such messages begin anew
        messages = np.where(np.isneginf(start.messages), messages, start.messages)
    trace = np.empty(max_sweeps)
    how = (float(damping), int(max_sweeps), float(tol), trace, tuple(layout))
    if theta.size == 0:
        sweeps, change = 0, 0.0
    elif schedule == "residual":
        sweeps, change = propagate_residual(messages, theta, maximise, *how)
    else:
        sweeps, change = propagate(messages, theta, maximise, schedule == "parallel", *how)
    return messages, trace[:sweeps].copy(), change


def _decode(layout: Incidence, nodes: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """States by factor beliefs, going from a settled variable to the factors that it is in."""
    states = np.full(layout.n_nodes, -1, dtype=np.int64)
    seen = np.zeros(layout.first.size - 1, dtype=bool)
    for start in range(layout.n_nodes):
        if states[start] >= 0:
            continue
        states[start] = int(np.argmax(nodes[layout.node_starts[start] : layout.node_starts[start + 1]]))
        waiting = [start]
        while waiting:
            i = waiting.pop()
            for f in layout.factor[layout.links[layout.link_starts[i] : layout.link_starts[i + 1]]].tolist():
                if seen[f]:
                    continue
                seen[f] = True
                belief = tables[layout.table_starts[f] : layout.table_starts[f + 1]].copy()
                links = range(layout.first[f], layout.first[f + 1])
                at = {k: layout.places[layout.place_starts[k] : layout.place_starts[k + 1]] for k in links}
                for k in links:
                    if states[layout.node[k]] >= 0:
                        belief[at[k] != states[layout.node[k]]] = -np.inf
                best = int(np.argmax(belief))
                for k in links:
                    if states[layout.node[k]] < 0:
                        states[layout.node[k]] = at[k][best]
                        waiting.append(int(layout.node[k]))
    return states
