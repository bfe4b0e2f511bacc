"""States that no configuration of positive weight has: found by propagation, and left out before inference.

A table entry of minus infinity is impossible. A state of a variable is impossible where some table has no possible
entry with it and with possible states of the others; removing it may make others impossible (generalised arc
consistency; Mackworth 1977). Only what is certain is removed, so that ``log Z`` and all marginals stay what they are.
"""

from dataclasses import dataclass

import numpy as np

from cumulant.graphical.exact.support_kernels import revise_all
from cumulant.graphical.structure import Structure


@dataclass(frozen=True, eq=False)
class HardTables:
    """The factors of a model that have impossible entries, as flat arrays."""

    sizes: np.ndarray  # states of each variable
    first: np.ndarray  # where the states of each variable begin, and where the last ones end
    scope_starts: np.ndarray
    scopes: np.ndarray
    table_starts: np.ndarray
    allowed: np.ndarray  # which entries are possible
    link_starts: np.ndarray  # the places of variable v in `scopes` are links[link_starts[v] : link_starts[v + 1]]
    links: np.ndarray
    factor: np.ndarray  # of each place in `scopes`

    @classmethod
    def of(cls, structure: Structure, theta: np.ndarray) -> "HardTables | None":
        """Those of a model; None where every entry is possible."""
        width, entries = np.diff(structure.scope_starts), np.diff(structure.table_starts)
        bad = np.isneginf(theta[: int(structure.table_starts[-1])])
        if not bad.any():
            return None
        some = np.logical_or.reduceat(bad, structure.table_starts[:-1])
        scopes = structure.scopes[np.repeat(some, width)]
        return cls(
            np.array(structure.cardinalities),
            _starts(structure.cardinalities),
            _starts(width[some]),
            scopes,
            _starts(entries[some]),
            ~bad[np.repeat(some, entries)],
            _starts(np.bincount(scopes, minlength=structure.n_variables)),
            np.argsort(scopes, kind="stable"),
            np.repeat(np.arange(int(some.sum())), width[some]),
        )

    @property
    def contradiction(self) -> bool:
        """Whether a factor without variables is impossible."""
        return bool((np.diff(self.scope_starts) == 0).any())

    @property
    def n_factors(self) -> int:
        """How many there are."""
        return self.scope_starts.size - 1

    @property
    def layout(self) -> tuple:
        """The arrays that every kernel takes, in their order."""
        return (
            self.sizes, self.first, self.scope_starts, self.scopes, self.table_starts, self.allowed, self.link_starts,
            self.links, self.factor,
        )  # fmt: skip

    def workspace(self) -> "Workspace":
        """Every state possible, and every table waiting to be looked at."""
        widest = int(np.diff(self.scope_starts).max())
        most = int(np.add.reduceat(self.sizes[self.scopes], self.scope_starts[:-1]).max())
        n_states = int(self.first[-1])
        return Workspace(
            np.ones(n_states, bool), self.sizes.copy(), np.zeros(n_states, np.int64), 0, np.arange(self.n_factors),
            np.ones(self.n_factors, bool), self.n_factors, np.zeros(widest, np.int64), np.zeros(most, bool),
        )  # fmt: skip


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@dataclass(eq=False)
class Workspace:
    """What propagation changes: see `revise_all`."""

    possible: np.ndarray
    counts: np.ndarray
    trail: np.ndarray
    removed: int
    queue: np.ndarray
    queued: np.ndarray
    waiting: int
    digits: np.ndarray
    seen: np.ndarray

    def propagate(self, hard: HardTables) -> bool:
        """Remove what has no support; False where a variable has no state left: then no configuration is possible."""
        conflict, self.removed, _ = revise_all(
            *hard.layout, self.possible, self.counts, self.trail, self.removed, self.queue, self.queued, self.waiting,
            self.digits, self.seen,
        )  # fmt: skip
        self.waiting = 0
        return conflict < 0


@dataclass(frozen=True, eq=False)
class Reduction:
    """A model without the states that are certain to be impossible, and without the variables that have one left.

    Attributes
    ----------
    structure, theta
        Of what is left; factors keep their numbers.
    left : int array
        The variables that are left.
    states : tuple of int arrays
        The states of every variable of the whole model that may be possible.
    """

    whole: Structure
    structure: Structure
    theta: np.ndarray
    left: np.ndarray
    states: tuple[np.ndarray, ...]

    def marginals(self, found: list[np.ndarray]) -> list[np.ndarray]:
        """Of all variables, from those of what is left."""
        out = [np.zeros(size) for size in self.whole.cardinalities.tolist()]
        for v, states in enumerate(self.states):
            if states.size == 1:
                out[v][states[0]] = 1.0
        for v, p in zip(self.left.tolist(), found, strict=True):
            out[v][self.states[v]] = p
        return out

    def beliefs(self, flat: np.ndarray) -> np.ndarray:
        """The marginal tables of all factors at full size."""
        out = np.zeros(int(self.whole.table_starts[-1]))
        for f in range(self.whole.n_factors):
            each = [self.states[v] for v in self.whole.scope(f)]
            part = self.structure.table(f, flat).reshape([states.size for states in each])
            self.whole.table(f, out)[np.ix_(*each)] = part
        return out

    def configuration(self, x: np.ndarray) -> np.ndarray:
        """States of all variables from those of the variables that are left."""
        out = np.array([states[0] for states in self.states], dtype=np.int64)
        for v, state in zip(self.left.tolist(), x.tolist(), strict=True):
            out[v] = self.states[v][state]
        return out


def reduce(structure: Structure, theta: np.ndarray, smaller_scopes: bool = False) -> Reduction | None:
    """The model without the states that propagation finds impossible; None where that proves ``log Z = -inf``.

    With `smaller_scopes` also without the variables on which the tables with impossible entries no longer depend: many
    allow all that is left, and no longer join their variables. `log Z` and marginals stay; `beliefs` needs the scopes.

    >>> structure = Structure([2, 3], [(0,), (0, 1)])
    >>> theta = np.array([-np.inf, 0.0, 0.0, 0.0, 0.0, 0.5, -np.inf, 1.0])   # x_0 = 1, and then x_1 is 0 or 2
    >>> found = reduce(structure, theta)
    >>> found.left, found.states[1], found.theta
    (array([1]), array([0, 2]), array([0. , 0.5, 1. ]))
    """
    hard = HardTables.of(structure, theta)
    if hard is None:
        every = tuple(np.arange(size) for size in structure.cardinalities.tolist())
        return Reduction(structure, structure, theta, np.arange(structure.n_variables), every)
    if hard.contradiction:
        return None
    space = hard.workspace()
    if not space.propagate(hard):
        return None
    states = tuple(np.flatnonzero(part) for part in np.split(space.possible, hard.first[1:-1]))
    if space.removed == 0:
        return Reduction(structure, structure, theta, np.arange(structure.n_variables), states)
    sizes = np.array([each.size for each in states], dtype=np.int64)
    fewer, scopes, tables = sizes < structure.cardinalities, [], []
    for f in range(structure.n_factors):
        scope, table = structure.scope(f), structure.table(f, theta)
        if any(fewer[v] for v in scope):
            table = table[np.ix_(*(states[v] for v in scope))]
            scope, table = _dependent(scope, table) if smaller_scopes else (scope, table)
        scopes.append(scope)
        tables.append(table.ravel())
    smaller = Structure.flat(
        sizes, np.cumsum([0, *map(len, scopes)]), np.array([v for scope in scopes for v in scope], dtype=np.int64)
    )
    part, flat, left = smaller.restrict(np.concatenate([*tables, np.zeros(0)]), {})
    return Reduction(structure, part, flat, left, states)


def _dependent(scope: tuple[int, ...], table: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
    """A table without the variables that make no difference to it."""
    for axis in range(len(scope) - 1, -1, -1):
        once = table.take([0], axis)
        if (once == table).all():
            scope, table = scope[:axis] + scope[axis + 1 :], once.squeeze(axis)
    return scope, table
