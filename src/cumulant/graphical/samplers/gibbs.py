"""Single-site Gibbs sampling: models as flat arrays, and chains side by side on threads."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cumulant.graphical.samplers.colouring import Neighbours, colouring
from cumulant.graphical.samplers.gibbs_kernels import (
    ising_random_chain,
    ising_random_scan,
    ising_scan,
    ising_scan_lanes,
    table_chain,
)
from cumulant.graphical.structure import Structure
from cumulant.threads import in_parts

LANES = 16  # chains that share vector instructions; the answer does not depend on it

# ``run(x, out, begin, burn_in, thin, seed, first)`` advances the states ``x`` (chains, n) of the chains numbered from
# `first`, in place, from sweep `begin` on, and fills the draws `out` (chains, draws, n).
Run = Callable[[np.ndarray, np.ndarray, int, int, int, int, int], None]


@dataclass(frozen=True)
class IsingArrays:
    """Spins that are free, their fields (with what the evidence adds), the couplings between them, and what the spins
    that are given contribute by themselves.
    """

    fields: np.ndarray
    edges: np.ndarray
    couplings: np.ndarray
    free: np.ndarray
    constant: float = 0.0

    @classmethod
    def of(cls, model: Any) -> "IsingArrays":
        """From an `Ising` model and its evidence."""
        given = np.zeros(model.n_variables)
        for v, spin in model.evidence.items():
            given[v] = spin
        fields, edges, couplings = np.array(model.fields), model.edges, model.couplings
        for one, other in ((0, 1), (1, 0)):
            np.add.at(fields, edges[:, one], couplings * given[edges[:, other]])
        free, inside = np.flatnonzero(given == 0), (given[edges] == 0).all(axis=1)
        number = np.cumsum(given == 0) - 1
        constant = math.fsum(model.fields * given) + math.fsum(couplings * given[edges].prod(axis=1))
        return cls(fields[free], number[edges[inside]], couplings[inside], free, constant)

    @property
    def n(self) -> int:
        """How many spins are free."""
        return self.free.size


class TableArrays(NamedTuple):
    """Tables with, for each variable, the factors it is in and its stride in their tables: what kernels take."""

    sizes: np.ndarray
    starts: np.ndarray
    factors: np.ndarray
    strides: np.ndarray
    scope_starts: np.ndarray
    scopes: np.ndarray
    scope_strides: np.ndarray
    tables: np.ndarray
    origin: np.ndarray

    @classmethod
    def of(cls, structure: Structure, tables: np.ndarray) -> "TableArrays":
        """From a structure and its log tables."""
        starts, sizes = structure.scope_starts, structure.cardinalities
        width, left = np.diff(starts), np.diff(structure.table_starts)
        strides = np.empty(structure.scopes.size, np.int64)
        for k in range(int(width.max(initial=0))):
            there = np.flatnonzero(width > k)
            at = starts[:-1][there] + k
            left[there] //= sizes[structure.scopes[at]]
            strides[at] = left[there]
        order = np.argsort(structure.scopes, kind="stable")
        owner = np.repeat(np.arange(structure.n_factors), width)[order]
        counts = np.bincount(structure.scopes, minlength=sizes.size)
        return cls(
            sizes,
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            owner,
            strides[order],
            starts,
            structure.scopes,
            strides,
            np.ascontiguousarray(tables),
            structure.table_starts[:-1].copy(),
        )


def random_scan(
    spins: np.ndarray,
    graph: Neighbours,
    couplings: np.ndarray,
    fields: np.ndarray,
    steps: int,
    *,
    seed: int,
    first_step: int = 0,
    n_jobs: int | None = None,
) -> None:
    """`steps` random-scan Gibbs updates of every row of `spins` ``(chains, n)``, int8 of -1 and +1, in place.

    Each update draws one site uniformly and then its spin given the rest. Rows are independent chains; row ``c``
    depends on (`seed`, ``c``) only, whatever `n_jobs`. A second call with `first_step` where the first ended continues
    the same run.

    Examples
    --------
    >>> graph, spins = Neighbours.of(3, [(0, 1), (1, 2)]), np.ones((1000, 3), dtype=np.int8)
    >>> random_scan(spins, graph, np.array([0.5, 0.5]), np.zeros(3), 60, seed=0)
    >>> bool(abs((spins[:, 0] * spins[:, 1]).mean() - np.tanh(0.5)) < 0.08)
    True
    """
    if spins.dtype != np.int8 or spins.ndim != 2 or not spins.flags.c_contiguous:
        raise ValueError(f"spins must be a C-ordered int8 array (chains, n); got {spins.dtype} {spins.shape}")
    along, fields = np.ascontiguousarray(couplings, np.float64)[graph.edge], np.ascontiguousarray(fields, np.float64)
    arrays = (graph.indptr, graph.neighbours, along, fields)

    def work(first, last):
        ising_random_scan(spins[first:last], *arrays, steps, seed, first, first_step)

    in_parts(work, spins.shape[0], n_jobs)


def ising_gibbs(arrays: IsingArrays, scan: str) -> Run:
    """Sweeps over the spins of an Ising model; many chains at once share vector instructions."""
    graph = Neighbours.of(arrays.n, arrays.edges)
    flat = (graph.indptr, graph.neighbours, arrays.couplings[graph.edge], arrays.fields)
    if scan == "random":
        return one_by_one(ising_random_chain, *flat)
    flat = (_order(arrays.n, arrays.edges, scan), *flat)
    single = one_by_one(ising_scan, *flat)

    def run(x, out, begin, burn_in, thin, seed, first):
        if len(x) < LANES // 2:
            return single(x, out, begin, burn_in, thin, seed, first)
        lanes = np.ascontiguousarray(x.T)
        ising_scan_lanes(lanes, out, *flat, begin, burn_in, thin, seed, first)
        x[:] = lanes.T
        return None

    return run


def table_gibbs(structure: Structure, tables: np.ndarray, scan: str) -> Run:
    """The same for general tables; the states are 0, 1, 2, ... in int64."""
    order = _order(structure.n_variables, structure.edges, scan)
    return one_by_one(table_chain, order, scan == "random", TableArrays.of(structure, tables))


def one_by_one(kernel: Any, *arguments: Any) -> Run:
    """Chains that a kernel advances each on its own."""

    def run(x, out, begin, burn_in, thin, seed, first):
        for c in range(len(x)):
            kernel(x[c], out[c], *arguments, begin, burn_in, thin, seed, first + c)

    return run


def _order(n: int, edges: np.ndarray, scan: str) -> np.ndarray:
    return np.argsort(colouring(n, edges), kind="stable") if scan == "chromatic" else np.arange(n)
