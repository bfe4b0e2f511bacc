"""A plan of exact inference: the steps of an elimination, and how large their tables are, known before any work."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cumulant.graphical.exact.program_kernels import build_steps
from cumulant.graphical.structure import Structure
from cumulant.kernels import InterpretedFirst

_SMALL = 500  # variables and factors
_build_steps = InterpretedFirst(build_steps)


@dataclass(frozen=True, eq=False)
class Program:
    """The steps of eliminating the variables of a structure in an order. See `elimination_kernels` for the layout.

    Tables are numbered: factors first, then the result of each step. `terms` of a step are the tables it multiplies;
    each is used once, so that the steps make a tree, or a forest: a bucket tree (Dechter 1999), whose tables are those
    of a junction tree.
    """

    structure: Structure
    summed: np.ndarray  # the variable that each step sums out, -1 where it only multiplies
    begins: np.ndarray  # the variables of table t are pool[begins[t] : ends[t]]; before them is the one summed out
    ends: np.ndarray
    pool: np.ndarray
    term_starts: np.ndarray
    terms: np.ndarray
    lengths: np.ndarray  # entries of each table
    clique_sizes: np.ndarray  # entries of all variables of a step together: the work it is

    @classmethod
    def of(cls, structure: Structure, order: np.ndarray) -> "Program":
        """Build the steps."""
        n, scopes, n_factors = structure.n_variables, structure.scopes, structure.n_factors
        steps = 2 * n + n_factors + 1  # at most
        summed, cliques = np.empty((2, steps), np.int64)
        term_starts, terms = np.empty(steps + 1, np.int64), np.empty(2 * steps, np.int64)
        begins, ends, lengths = np.empty((3, n_factors + steps), np.int64)
        variables, tables = np.empty((4, n), np.int64), np.empty((3, n_factors + steps), np.int64)
        room = scopes.size + 32 * n + 64
        while True:
            pool = np.empty(room, np.int64)
            pool[: scopes.size] = scopes
            made, used = _build_steps(
                n + n_factors <= _SMALL, order, structure.cardinalities, structure.scope_starts, summed, begins, ends,
                pool, term_starts, terms, lengths, cliques, *variables, *tables,
            )  # fmt: skip
            if used >= 0:
                break
            room *= 2
        last = n_factors + made
        return cls(
            structure, summed[:made], begins[:last], ends[:last], pool[:used].copy(), term_starts[: made + 1],
            terms[: term_starts[made]], lengths[:last], cliques[:made],
        )  # fmt: skip

    @property
    def n_steps(self) -> int:
        """How many steps there are: one for each variable, and products that prepare them."""
        return self.summed.size

    @property
    def n_factors(self) -> int:
        """How many of the tables are factors."""
        return self.structure.n_factors

    @property
    def layout(self) -> tuple:
        """The arrays that every kernel takes, in their order."""
        sizes = self.structure.cardinalities
        return self.summed, self.begins, self.ends, self.pool, self.term_starts, self.terms, sizes, self.lengths

    @cached_property
    def consumers(self) -> np.ndarray:
        """The step that uses each table, -1 for a root."""
        out = np.full(self.lengths.size, -1, dtype=np.int64)
        out[self.terms] = np.repeat(np.arange(self.n_steps), np.diff(self.term_starts))
        return out

    @cached_property
    def roots(self) -> np.ndarray:
        """The steps whose result is one number: one for each part of the graph."""
        return np.flatnonzero(self.consumers[self.n_factors :] < 0)

    @cached_property
    def only_factors(self) -> np.ndarray:
        """Whether a step multiplies factors and sums nothing out: marginals do not need what multiplies its result."""
        out = np.zeros(self.n_steps, dtype=bool)
        for s in np.flatnonzero(self.summed < 0):  # steps are numbered with sources first
            out[s] = all(t < self.n_factors or out[t - self.n_factors] for t in self.terms_of(int(s)))
        return out

    @cached_property
    def schedules(self) -> dict:
        """The schedules that were found for these steps, by what was asked for."""
        return {}

    def terms_of(self, step: int) -> list[int]:
        """The tables that a step multiplies."""
        return self.terms[self.term_starts[step] : self.term_starts[step + 1]].tolist()
