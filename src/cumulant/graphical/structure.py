"""What a discrete model is made of, apart from its numbers: variables with finitely many states, and scopes."""

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from cumulant import checks


class Structure:
    """Cardinalities of the variables and the scopes of the factors, as flat arrays.

    The tables of all factors lie one after the other in one array, ``theta``; in a table the last variable of the scope
    runs fastest.

    Attributes
    ----------
    cardinalities : int array
        How many states each variable has.
    scope_starts, scopes : int arrays
        Factor ``f`` is about the variables ``scopes[scope_starts[f] : scope_starts[f + 1]]``.
    table_starts : int array
        Its table is ``theta[table_starts[f] : table_starts[f + 1]]``.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("cardinalities", "scope_starts", "scopes")

    def __init__(self, cardinalities: Any, scopes: Iterable[Any]):
        each = [np.asarray(scope, dtype=np.int64).reshape(-1) for scope in scopes]
        ends = np.cumsum([0, *map(len, each)])
        self._fill(_cardinalities(cardinalities), ends, np.concatenate([*each, np.zeros(0, np.int64)]))
        self._check()

    @classmethod
    def flat(cls, cardinalities: np.ndarray, scope_starts: np.ndarray, scopes: np.ndarray) -> "Structure":
        """The same from flat arrays that are known to be right."""
        new = object.__new__(cls)
        new._fill(cardinalities, scope_starts, scopes)
        return new

    @classmethod
    def checked(cls, cardinalities: np.ndarray, scope_starts: np.ndarray, scopes: np.ndarray) -> "Structure":
        """The same from flat arrays of a file; a ValueError where they do not fit together."""
        if scope_starts.ndim != 1 or scope_starts.size < 1 or scope_starts[0] != 0 or (np.diff(scope_starts) < 0).any():
            raise ValueError("the scopes do not follow one another")
        if scopes.ndim != 1 or scope_starts[-1] != scopes.size:
            raise ValueError("the scopes are not complete")
        return cls(cardinalities, np.split(scopes, scope_starts[1:-1]) if scope_starts.size > 1 else [])

    def _fill(self, cardinalities, scope_starts, scopes):
        self.cardinalities = np.ascontiguousarray(cardinalities, dtype=np.int64)
        self.scope_starts = np.ascontiguousarray(scope_starts, dtype=np.int64)
        self.scopes = np.ascontiguousarray(scopes, dtype=np.int64)
        self.plans: dict[Any, Any] = {}

    def _check(self):
        n = self.n_variables
        for f in range(self.n_factors):
            scope = self.scope(f)
            if len(set(scope)) < len(scope) or any(not 0 <= v < n for v in scope):
                raise ValueError(
                    f"the scope of factor {f} must be different variables from 0 to {n - 1}, as cardinalities has {n} "
                    f"entries; got {scope}"
                )

    @property
    def n_variables(self) -> int:
        """How many variables there are."""
        return self.cardinalities.size

    @property
    def n_factors(self) -> int:
        """How many factors there are."""
        return self.scope_starts.size - 1

    @cached_property
    def table_starts(self) -> np.ndarray:
        """Where the table of each factor begins, and where the last one ends."""
        states = np.append(self.cardinalities[self.scopes].astype(np.float64), 1.0)
        with np.errstate(over="ignore"):
            sizes = np.multiply.reduceat(states, self.scope_starts[:-1]) if self.n_factors else np.zeros(0)
        sizes[np.diff(self.scope_starts) == 0] = 1.0  # of no variable: a constant
        if sizes.max(initial=0.0) > 2.0**40:
            raise ValueError("a factor has a table of more than 2^40 entries")
        return np.concatenate([[0], np.cumsum(sizes.astype(np.int64))])

    def scope(self, factor: int) -> tuple[int, ...]:
        """The variables of a factor."""
        return tuple(self.scopes[self.scope_starts[factor] : self.scope_starts[factor + 1]].tolist())

    def shape(self, factor: int) -> tuple[int, ...]:
        """The shape of its table."""
        return tuple(self.cardinalities[list(self.scope(factor))].tolist())

    def table(self, factor: int, theta: np.ndarray) -> np.ndarray:
        """Its table, as a view of the flat array."""
        return theta[self.table_starts[factor] : self.table_starts[factor + 1]].reshape(self.shape(factor))

    @cached_property
    def edges(self) -> np.ndarray:
        """Pairs ``i < j`` of variables that share a factor, each once, shape (edges, 2)."""
        width, pairs = np.diff(self.scope_starts), [np.zeros((0, 2), np.int64)]
        for k in range(2, int(width.max(initial=0)) + 1):
            begin = self.scope_starts[:-1][width == k]
            if begin.size:
                members = np.sort(self.scopes[begin[:, None] + np.arange(k)], axis=1)
                left, right = np.triu_indices(k, 1)
                pairs.append(np.stack([members[:, left].ravel(), members[:, right].ravel()], axis=1))
        found = np.concatenate(pairs)
        codes = np.unique(found[:, 0] * self.n_variables + found[:, 1])
        return np.stack([codes // max(self.n_variables, 1), codes % max(self.n_variables, 1)], axis=1)

    def restrict(self, theta: np.ndarray, evidence: Mapping[int, int]) -> tuple["Structure", np.ndarray, np.ndarray]:
        """Without the variables of the evidence and those with one state: a structure, its tables, and which
        variables are left.
        """
        state = np.full(self.n_variables, -1, dtype=np.int64)
        state[self.cardinalities == 1] = 0
        for v, x in evidence.items():
            state[v] = x
        left = np.flatnonzero(state < 0)
        if left.size == self.n_variables:
            return self, theta, left
        number = np.cumsum(state < 0) - 1
        free = state[self.scopes] < 0
        kept = np.concatenate([[0], np.cumsum(free)])[self.scope_starts]
        touched = np.diff(kept) < np.diff(self.scope_starts)
        tables = []
        for f in range(self.n_factors):
            if touched[f]:
                fixed = tuple(slice(None) if state[v] < 0 else state[v] for v in self.scope(f))
                tables.append(self.table(f, theta)[fixed].ravel())
            else:
                tables.append(theta[self.table_starts[f] : self.table_starts[f + 1]])
        structure = Structure.flat(self.cardinalities[left], kept, number[self.scopes[free]])
        return structure, np.concatenate([*tables, np.zeros(0)]), left

    def entries(self, states: np.ndarray) -> np.ndarray:
        """The entry of each table, in the flat array, that these states pick: shape (..., factors)."""
        place = np.zeros((*states.shape[:-1], self.n_factors), dtype=np.int64)
        width = np.diff(self.scope_starts)
        for k in range(int(width.max(initial=0))):
            there = width > k
            variables = self.scopes[self.scope_starts[:-1][there] + k]
            place[..., there] = place[..., there] * self.cardinalities[variables] + states[..., variables]
        return place + self.table_starts[:-1]

    def picked(self, states: np.ndarray) -> csr_array:
        """The same as a sparse matrix of ones, (states, entries of all tables)."""
        entries = self.entries(states)
        starts = np.arange(len(entries) + 1) * self.n_factors
        return csr_array((np.ones(entries.size), entries.ravel(), starts), (len(entries), int(self.table_starts[-1])))

    def n_states(self) -> int:
        """How many states all variables have together."""
        return math.prod(self.cardinalities.tolist())

    def __eq__(self, other):
        return isinstance(other, Structure) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in self.PARTS
        )

    def __hash__(self):
        return hash((self.cardinalities.tobytes(), self.scope_starts.tobytes(), self.scopes.tobytes()))


def _cardinalities(cardinalities: Any) -> np.ndarray:
    array = checks.array("cardinalities", cardinalities)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"cardinalities must be a list of whole numbers, one for each variable; got {cardinalities!r:.80}"
        )
    if array.size and array.min() < 1:
        raise ValueError(f"cardinalities must be at least 1; got {array.min()} for variable {int(array.argmin())}")
    return array.astype(np.int64)
