"""Prediction of one attribute or one tie from all the rest of a network, by Bayes factors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from cumulant import checks
from cumulant.relational.elimination import log_joint_table, log_total
from cumulant.relational.message_kernels import descend, free_energy, propagate
from cumulant.relational.messages import State, attempts, double_loop, loopy, require_finite, warn_unsettled
from cumulant.relational.network import Layout, Network, pairs_of, people_of
from cumulant.relational.parameters import tables_of
from cumulant.relational.prediction_kernels import change_tie
from cumulant.threads import in_parts, side_by_side

_METHODS = ("loopy", "double_loop", "exact")


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Of each attribute and tie, its probability given all others.

    Attributes
    ----------
    network : Network
    method : str
    people : array (people,)
        Whose attributes were asked for.
    attribute_log_odds : array (people,)
        The log-odds that the person has the attribute.
    pairs : array (pairs, 2)
        The pairs that were asked for.
    tie_log_odds : array (pairs,)
        The log-odds of a tie.
    attributes_converged, ties_converged : arrays of bool
        Whether the messages of both values settled; where they did not, the number is not to be relied on.

    Examples
    --------
    >>> from cumulant.relational import SmokersModel
    >>> model = SmokersModel([.6, .1, .2, .7, .15, .4, .05, .3, .5, .25, .2, .1, .8, .45])
    >>> network = Network.from_edges([1, 1, 0], [(0, 1), (0, 2)])
    >>> scores = loo_scores(model, network, method="exact")
    >>> scores.attributes.round(6), scores.ties.round(6)
    (array([0.701375, 0.543214, 0.453958]), array([0.631267, 0.198373, 0.193535]))
    """

    network: Network = field(repr=False)
    method: str
    people: np.ndarray
    attribute_log_odds: np.ndarray
    pairs: np.ndarray
    tie_log_odds: np.ndarray
    attributes_converged: np.ndarray
    ties_converged: np.ndarray

    @property
    def attributes(self) -> np.ndarray:
        """The probability that each of `people` has the attribute."""
        return expit(self.attribute_log_odds)

    @property
    def ties(self) -> np.ndarray:
        """The probability of a tie of each of `pairs`."""
        return expit(self.tie_log_odds)

    @property
    def converged(self) -> bool:
        """Whether the messages of all queries settled."""
        return bool(self.attributes_converged.all() and self.ties_converged.all())

    @property
    def observed_attributes(self) -> np.ndarray:
        """What was observed of `people`."""
        return self.network.attribute[self.people]

    @property
    def observed_ties(self) -> np.ndarray:
        """What was observed of `pairs`."""
        return self.network.ties[self.pairs[:, 0], self.pairs[:, 1]]


def loo_scores(
    model: Any,
    net: Network,
    *,
    method: str = "loopy",
    people: Any = None,
    pairs: Any = None,
    damping: float | None = None,
    max_sweeps: int | None = None,
    tol: float | None = None,
    n_jobs: int | None = None,
) -> LeaveOneOut:
    """The probability of each attribute and of each tie given all other observations of the network.

    ``p(v = 1 | rest) = sigmoid(log p(v = 1, rest) - log p(v = 0, rest))``, with minus the Bethe free energy in place of
    ``log p`` where messages are used. One of the two is the network as it was observed, and is computed once. Messages
    of the other start where those of the observed network ended. No certificate comes with approximate scores.

    Parameters
    ----------
    model : SmokersModel
    net : Network
    method : {"loopy", "double_loop", "exact"}
        Exact for at most 20 people.
    people, pairs : arrays (people,) and (pairs, 2), optional
        What to ask for; everything by default, and nothing where they are empty.
    damping, max_sweeps, tol
        As for `SmokersModel.posterior`: of both networks the same. With "double_loop" `max_sweeps` is the number of
        outer loops. With ``damping=None`` queries that do not settle are run again with damping.
    n_jobs : int, optional
        Threads; the answer does not depend on their number.
    """
    if isinstance(model, type) or not hasattr(model, "theta"):
        raise TypeError(f"model must be a SmokersModel; got {model!r:.60}")
    checks.instance("net", net, Network, "a Network")
    checks.choice("method", method, _METHODS)
    n = net.n_people
    who = np.arange(n) if people is None else people_of("people", people, n)
    which = net.pairs if pairs is None else pairs_of("pairs", pairs, n)
    queries = np.concatenate([np.stack([who, np.full(who.size, -1)], axis=1), which]).astype(np.int64)
    if method == "exact":
        gain, settled = _exact(model, net, queries, n_jobs)
    else:
        loops = (
            (5000 if method == "double_loop" else 200) if max_sweeps is None else checks.whole("max_sweeps", max_sweeps)
        )
        limit = (1e-7 if method == "double_loop" else 1e-9) if tol is None else checks.not_negative("tol", tol)
        gain, settled = _by_messages(model, net, queries, method, damping, loops, float(limit), n_jobs)
    observed = np.concatenate([net.attribute[who], net.ties[which[:, 0], which[:, 1]]])
    odds = np.where(observed, -gain, gain)
    return LeaveOneOut(
        net, method, who, odds[: who.size], which, odds[who.size :], settled[: who.size], settled[who.size :]
    )


def predict_attribute(model: Any, net: Network, x: int, **options: Any) -> float:
    """The probability that person `x` has the attribute, given all else: see `loo_scores` for the options.

    What `net` says of that attribute does not matter. A `ConvergenceWarning` says where messages did not settle.
    """
    checks.whole("x", x, 0)
    found = loo_scores(model, net, people=[x], pairs=[], **options)
    if not found.converged:
        warn_unsettled("the probability is")
    return float(found.attributes[0])


def predict_tie(model: Any, net: Network, x: int, y: int, **options: Any) -> float:
    """The probability that `x` and `y` are tied, given all else: see `loo_scores` for the options.

    A `ConvergenceWarning` says where messages did not settle.
    """
    checks.whole("x", x, 0)
    checks.whole("y", y, 0)
    found = loo_scores(model, net, people=[], pairs=[(x, y)], **options)
    if not found.converged:
        warn_unsettled("the probability is")
    return float(found.ties[0])


def _exact(model: Any, net: Network, queries: np.ndarray, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    """``log p(changed) - log p(observed)``."""
    base = log_total(log_joint_table(model, net))

    def work(q):
        x, y = queries[q].tolist()
        changed = net.with_attribute(x, not net.attribute[x]) if y < 0 else net.with_tie(x, y, not net.ties[x, y])
        return log_total(log_joint_table(model, changed)) - base

    return np.array(side_by_side(work, len(queries), n_jobs)), np.ones(len(queries), bool)


def _by_messages(
    model: Any, net: Network, queries: np.ndarray, method: str, damping: float | None, loops: int, tol: float,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The same by free energies, and whether messages settled."""
    convergent = method == "double_loop"
    if convergent:
        base = double_loop(model, net, max_loops=loops, tol=tol, pairs=False, trace=False)
    else:
        base = loopy(model, net, damping=damping, max_sweeps=loops, tol=tol, pairs=False)
    energies, changes = np.empty(len(queries)), np.full(len(queries), np.inf)
    tables, nothing = tuple(tables_of(model.theta)), np.empty(0)
    for weight, most in attempts(0.0 if convergent else damping, loops):
        left = np.flatnonzero(~(changes <= tol))

        def work(first, last, left=left, weight=weight, most=most):
            # Messages and free energies by the programs that the observed network was given to: one that does all of it
            # for many queries takes half a minute to compile, and saves no time that can be measured.
            for q in left[first:last]:
                layout, state = _changed(net.layout, base.state, *queries[q].tolist())
                if convergent:
                    _, change, settled = descend(
                        layout, tables, model.ordered, 0.0, most, tol, 50, 1e-10, nothing, state
                    )
                    changes[q] = change if settled else np.inf
                else:
                    _, changes[q] = propagate(layout, tables, model.ordered, weight, most, tol, nothing, state)
                energies[q] = free_energy(layout, tables, model.ordered, state)

        in_parts(work, left.size, n_jobs)
    observed = free_energy(tuple(net.layout), tables, model.ordered, tuple(base.state))
    require_finite(energies)
    return observed - energies, (changes <= tol) & bool(base.converged)


def _changed(layout: Layout, state: State, x: int, y: int) -> tuple[tuple, tuple]:
    """The network with the attribute of `x` changed where `y` is negative, else with the tie ``(x, y)`` changed; and
    messages, which start where those of the observed network ended, except those of gates that are new.
    """
    state, code = state.copy(), layout.code.copy()
    if y < 0:
        attribute = layout.attribute.copy()
        attribute[x] = 1 - attribute[x]
        code[x] ^= 4
        code[:, x] = layout.code[:, x] ^ 2
        return tuple(layout._replace(attribute=attribute, code=code)), tuple(state)
    code[x, y], code[y, x] = code[x, y] ^ 1, code[y, x] ^ 1
    most = layout.others.size + 2
    starts, others, mirror = np.empty_like(layout.starts), np.empty(most, np.int64), np.empty(most, np.int64)
    gate = np.empty(most)
    size = change_tie(x, y, tuple(layout), state.gate, starts, others, mirror, gate)
    changed = layout._replace(starts=starts, others=others[:size], mirror=mirror[:size], code=code)
    return tuple(changed), tuple(state._replace(gate=gate[:size], none=np.empty(size)))
