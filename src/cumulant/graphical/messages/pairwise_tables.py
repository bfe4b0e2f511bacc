"""A model of single variables and pairs as flat arrays, without the states that are seen to be impossible."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from cumulant.certificates import rounding
from cumulant.errors import DomainError
from cumulant.graphical.messages.incidence import starts_of
from cumulant.graphical.structure import Structure


@dataclass(frozen=True, eq=False)
class PairwiseTables:
    """``constant + sum_i theta_i(x_i) + sum_e theta_e(x_i, x_j)``, one table for each pair of variables that has one.

    States that a table of theirs rules out, whatever its other variable does, are left out, and so on until every state
    is possible in each table by itself. Then every message is finite.
    """

    structure: Structure  # of the free variables, with all states
    kept: tuple[np.ndarray, ...]  # the states of each variable
    edges: np.ndarray  # pairs i < j, each once
    tables: np.ndarray  # one after the other, the second variable running fastest
    fields: np.ndarray
    constant: float
    slack: float  # what rounding may have done to sums of several tables of the same variables

    @classmethod
    def of(cls, structure: Structure, theta: np.ndarray) -> "PairwiseTables":
        """Refuses factors of three variables or more, and models without a possible state."""
        width = np.diff(structure.scope_starts)
        if width.max(initial=0) > 2:
            f = int(width.argmax())
            raise ValueError(
                "tree-reweighted messages need factors of one or two variables; "
                f"factor {f} is over {structure.scope(f)}: use bound_log_partition or mini_bucket_bound"
            )
        fields = [np.zeros(k) for k in structure.cardinalities.tolist()]
        pairs: dict[tuple[int, int], np.ndarray] = {}
        constants: list[float] = []
        repeats: Counter[tuple[int, ...]] = Counter()
        for f in range(structure.n_factors):
            scope, table = structure.scope(f), structure.table(f, theta)
            repeats[tuple(sorted(scope))] += 1
            if len(scope) == 0:
                constants.append(float(table))
            elif len(scope) == 1:
                fields[scope[0]] += table
            else:
                i, j = sorted(scope)
                table = table if scope[0] == i else table.T
                pairs[i, j] = pairs[i, j] + table if (i, j) in pairs else table
        constant = math.fsum(constants)
        if constant == -np.inf:
            raise DomainError("every state is impossible, given the evidence: there is no distribution")
        edges = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
        kept = _possible(fields, pairs)
        for i, j in edges.tolist():
            pairs[i, j] = pairs[i, j][np.ix_(kept[i], kept[j])].ravel()
        tables = np.concatenate([*(pairs[i, j] for i, j in edges.tolist()), np.zeros(0)])
        own = np.concatenate([*(field[states] for field, states in zip(fields, kept, strict=True)), np.zeros(0)])
        most = max((count for scope, count in repeats.items() if scope), default=1)
        slack = rounding(theta[np.isfinite(theta)], terms=most - 1.0) if most > 1 else 0.0
        return cls(structure, tuple(kept), edges, tables, own, constant, slack + rounding(constant))

    @property
    def n_variables(self) -> int:
        """How many variables there are."""
        return self.structure.n_variables

    @property
    def sizes(self) -> np.ndarray:
        """How many states each variable has left."""
        return np.array([states.size for states in self.kept], dtype=np.int64)

    def layout(self) -> tuple[np.ndarray, ...]:
        """The arrays that the kernels take: ends of the messages, where nodes, tables and messages begin, and the
        messages in the order of the nodes that they come from.
        """
        sizes, ends = self.sizes, np.ascontiguousarray(self.edges[:, ::-1]).ravel()
        return (
            ends,
            starts_of(sizes),
            starts_of(sizes[self.edges[:, 0]] * sizes[self.edges[:, 1]]),
            starts_of(sizes[ends]),
            np.argsort(self.edges.ravel(), kind="stable").astype(np.int64),
        )

    def expanded(self, single: list[np.ndarray], pairs: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        """Distributions over the states kept as those over all states, and the flat tables of all factors."""
        marginals = []
        for v, p in enumerate(single):
            marginals.append(np.zeros(int(self.structure.cardinalities[v])))
            marginals[v][self.kept[v]] = p
        number = {(i, j): e for e, (i, j) in enumerate(self.edges.tolist())}
        flat = np.ones(int(self.structure.table_starts[-1]))
        for f in range(self.structure.n_factors):
            scope = self.structure.scope(f)
            table = self.structure.table(f, flat)
            if len(scope) == 1:
                table[:] = marginals[scope[0]]
            elif len(scope) == 2:
                i, j = sorted(scope)
                full = np.zeros((int(self.structure.cardinalities[i]), int(self.structure.cardinalities[j])))
                full[np.ix_(self.kept[i], self.kept[j])] = pairs[number[i, j]].reshape(self.kept[i].size, -1)
                table[...] = full if scope[0] == i else full.T
        return marginals, flat


def _possible(fields: list[np.ndarray], pairs: dict[tuple[int, int], np.ndarray]) -> list[np.ndarray]:
    """The states of each variable that no table by itself rules out (arc consistency; Mackworth 1977)."""
    alive = [field > -np.inf for field in fields]
    hard = {pair: table > -np.inf for pair, table in pairs.items() if np.isneginf(table).any()}
    changed = True
    while changed:
        changed = False
        for (i, j), possible in hard.items():
            for v, left in ((i, alive[i] & (possible @ alive[j])), (j, alive[j] & (alive[i] @ possible))):
                if left.sum() < alive[v].sum():
                    alive[v], changed = left, True
    if not all(states.any() for states in alive):
        raise DomainError("every state is impossible, given the evidence: there is no distribution")
    return [np.flatnonzero(states) for states in alive]
