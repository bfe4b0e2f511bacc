"""The E-steps by messages: loopy belief propagation, and the double loop that always converges."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.relational.message_kernels import descend, free_energy, propagate, read_off
from cumulant.relational.network import Layout, Network
from cumulant.relational.parameters import Tables, assemble_counts, tables_of
from cumulant.relational.posterior import Posterior

DAMPINGS = (0.0, 0.5, 0.9)


class State(NamedTuple):
    """Messages and beliefs; see `message_kernels`."""

    ratios: np.ndarray
    own: np.ndarray
    gate: np.ndarray
    none: np.ndarray
    silent: np.ndarray
    belief: np.ndarray
    log_odds: np.ndarray

    @classmethod
    def uniform(cls, layout: Layout) -> State:
        """Messages and beliefs that say nothing."""
        n, gates = layout.attribute.size, layout.others.size
        return cls(
            np.ones((n, n)), np.ones(n), np.ones(gates), np.zeros(gates), np.zeros((n, 2)), np.full((n, 2), 0.5),
            np.zeros(n),
        )  # fmt: skip

    def copy(self) -> State:
        """A state of its own."""
        return State(*(part.copy() for part in self))


def loopy(
    model: Any,
    network: Network,
    *,
    damping: float | None = None,
    max_sweeps: int = 200,
    tol: float = 1e-9,
    start: Posterior | State | None = None,
    pairs: bool = True,
) -> Posterior:
    """Loopy belief propagation: a stationary point of the Bethe free energy where it converges.

    Parameters
    ----------
    damping : float, optional
        In [0, 1): the weight of the logarithm of the old message in the new one. None: none, and where messages do not
        settle they begin anew with 1/2, and then with 0.9, for 2 and 10 times as many sweeps.
    max_sweeps, tol : int, float
        The end of each run: in a sweep no message, as a distribution, changes by more than `tol` before damping, and
        no factor's belief of a person differs by more from that person's.
    start : Posterior, optional
        A result for the same network whose messages to start from.
    pairs : bool
        Whether to keep the beliefs of all pairs.
    """
    checks.whole("max_sweeps", max_sweeps)
    checks.not_negative("tol", tol)
    if damping is not None and not 0.0 <= checks.number("damping", damping) < 1.0:
        raise ValueError(f"damping must be at least 0 and below 1; got {damping}")
    layout, tables, runs = network.layout, tables_of(model.theta), attempts(damping, max_sweeps)
    state, sweeps, change, weight, trace = _started(layout, start), 0, np.inf, 0.0, np.empty(runs[-1][1])
    for weight, most in runs:
        if sweeps:
            state = State.uniform(layout)
        sweeps, change = propagate(
            tuple(layout), tuple(tables), model.ordered, weight, most, float(tol), trace, tuple(state)
        )
        if change <= tol:
            break
    return _posterior(
        model, network, "loopy", state, tables, sweeps, change, change <= tol, trace[:sweeps].copy(), pairs, weight
    )


def attempts(damping: float | None, max_sweeps: int) -> list[tuple[float, int]]:
    """The dampings that are tried, and the sweeps of each: damped messages come closer by a factor of the damping a
    sweep at best, so that 200 sweeps with 0.9 end above 1e-9 whatever the network.
    """
    if damping is not None:
        return [(float(damping), max_sweeps)]
    return [(each, round(max_sweeps / (1.0 - each))) for each in DAMPINGS]


def double_loop(
    model: Any,
    network: Network,
    *,
    linearised: float | None = None,
    max_loops: int = 5000,
    tol: float = 1e-7,
    inner_sweeps: int = 50,
    inner_tol: float = 1e-10,
    start: Posterior | State | None = None,
    pairs: bool = True,
    trace: bool = True,
) -> Posterior:
    """The double loop: the Bethe free energy never rises, as long as inner loops run to consistency.

    Everything about one person but ``z`` is a tree, and messages inside of it are exact; the outer loops linearise the
    entropies of the ``z`` alone, so that they are fewer than those of `graphical.double_loop` on the whole factor
    graph. Both have the same fixed points.

    Parameters
    ----------
    linearised : float, optional
        In (0, 1]: the share of these entropies that is linearised. With 1 inner problems are convex and the descent is
        a theorem; outer loops then contract by about ``1 - 1 / n``. None tries smaller shares and keeps a step only
        where its inner loop became consistent and the free energy did not rise, and else falls back, in the end to 1.
    max_loops, tol : int, float
        Outer loops end when no belief moves by more than `tol` and the inner loop became consistent; only then has the
        run converged.
    inner_sweeps, inner_tol : int, float
        Inner loops end, and are consistent, when no message changes by more than `inner_tol`, as for `loopy`.
    start, pairs
        As for `loopy`.
    trace : bool
        Whether to compute the free energy after each outer loop.
    """
    checks.whole("max_loops", max_loops)
    if linearised is not None and not 0.0 < checks.number("linearised", linearised) <= 1.0:
        raise ValueError(f"linearised must be above 0 and at most 1; got {linearised}")
    checks.whole("inner_sweeps", inner_sweeps)
    checks.not_negative("tol", tol)
    checks.not_negative("inner_tol", inner_tol)
    layout, tables, energies = network.layout, tables_of(model.theta), np.empty(max_loops if trace else 0)
    state = _started(layout, start)
    loops, change, settled = descend(
        tuple(layout), tuple(tables), model.ordered, float(linearised or 0.0), max_loops, float(tol), inner_sweeps,
        float(inner_tol), energies, tuple(state),
    )  # fmt: skip
    return _posterior(
        model, network, "double_loop", state, tables, loops, change, settled, energies[:loops].copy(), pairs, 0.0
    )


def _started(layout: Layout, start: Posterior | State | None) -> State:
    if start is None:
        return State.uniform(layout)
    if isinstance(start, State):
        return start.copy()
    if not isinstance(getattr(start, "state", None), State):
        raise ValueError("start must be a Posterior by method 'loopy' or 'double_loop', which has messages")
    if start.network.layout.others.shape != layout.others.shape or not np.array_equal(
        start.network.layout.code, layout.code
    ):
        raise ValueError("start must be a Posterior of the same network: messages belong to its ties and attributes")
    return start.state.copy()


def _posterior(
    model: Any, network: Network, method: str, state: State, tables: Tables, sweeps: int, change: float, settled: bool,
    trace: np.ndarray, pairs: bool, damping: float,
) -> Posterior:  # fmt: skip
    layout, n = network.layout, network.n_people
    flat = tuple(layout), tuple(tables), model.ordered, tuple(state)
    value = -free_energy(*flat)
    require_finite(value)
    pair_sums, habits = np.zeros((8, 4)), np.empty((n, 2, 2, 2))
    swayed, able = np.empty(layout.others.size), np.empty(layout.others.size)
    between = np.zeros((n, n, 4) if pairs else (0, 0, 4))
    read_off(*flat, pair_sums, between, habits, swayed, able)
    independence = state.belief[:, 1].copy()
    return Posterior(
        model, network, method, independence, habits, gate_people(layout), swayed,
        assemble_counts(layout, pair_sums, independence, habits, swayed, able), float(value), bool(settled),
        int(sweeps), float(change), trace, damping, between.reshape(n, n, 2, 2) if pairs else None, state,
    )  # fmt: skip


def require_finite(values: Any) -> None:
    """Refuse free energies that are not numbers."""
    if not np.isfinite(values).all():
        raise DomainError("messages are not finite: some probability of theta is too close to 0 or 1")


def warn_unsettled(what: str, stacklevel: int = 3) -> None:
    """Say that a number which stands alone comes from messages that did not settle."""
    warnings.warn(f"messages did not settle: {what} not to be relied on", ConvergenceWarning, stacklevel=stacklevel)


def gate_people(layout: Layout) -> np.ndarray:
    """Person and friend of each gate."""
    people = np.repeat(np.arange(layout.attribute.size), np.diff(layout.starts))
    return np.stack([people, layout.others], axis=1)
