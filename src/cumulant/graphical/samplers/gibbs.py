"""Single-site Gibbs sampling: models as flat arrays, and chains side by side on threads."""

from dataclasses import dataclass
from typing import Any

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

__all__ = ["IsingArrays", "Neighbours", "TableArrays", "ising_gibbs", "random_scan", "table_gibbs"]

_LANES = 16  # chains that share vector instructions; the answer does not depend on it


@dataclass(frozen=True)
class IsingArrays:
    """Spins that are free, their fields (with what the evidence adds) and the couplings between them."""

    fields: np.ndarray
    edges: np.ndarray
    couplings: np.ndarray
    free: np.ndarray

    @classmethod
    def of(cls, model: Any) -> "IsingArrays":
        """From an `Ising` model and its evidence."""
        evidence, n = model.evidence, model.n_variables
        fields, edges, couplings = np.array(model.fields), model.edges, model.couplings
        free = np.array([v for v in range(n) if v not in evidence], dtype=np.int64) if evidence else np.arange(n)
        if evidence:
            given = np.zeros(n)
            given[list(evidence)] = list(evidence.values())
            for one, other in ((0, 1), (1, 0)):
                np.add.at(fields, edges[:, one], couplings * given[edges[:, other]])
            inside = (given[edges] == 0).all(axis=1)
            number = np.cumsum(given == 0) - 1
            fields, edges, couplings = fields[free], number[edges[inside]], couplings[inside]
        return cls(fields, edges, couplings, free)

    @property
    def n(self) -> int:
        """How many spins are free."""
        return self.free.size


@dataclass(frozen=True)
class TableArrays:
    """Tables with, for each variable, the factors it is in and its stride in their tables."""

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

    def flat(self) -> tuple[np.ndarray, ...]:
        """The arrays in the order in which kernels take them."""
        return (
            self.sizes,
            self.starts,
            self.factors,
            self.strides,
            self.scope_starts,
            self.scopes,
            self.scope_strides,
            self.tables,
            self.origin,
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
    sites: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> None:
    """`steps` random-scan Gibbs updates of every row of `spins` ``(chains, n)``, int8 of -1 and +1, in place.

    Each update draws one site uniformly (from `sites`, all without it) and then its spin given the rest. Rows are
    independent chains; row ``c`` depends on (`seed`, ``c``) only, whatever `n_jobs`. A second call with `first_step`
    where the first ended continues the same run.

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
    sites = np.arange(fields.size) if sites is None else np.ascontiguousarray(sites, np.int64)
    arrays = (sites, graph.indptr, graph.neighbours, along, fields)

    def work(first, last):
        ising_random_scan(spins[first:last], *arrays, steps, seed, first, first_step)

    in_parts(work, spins.shape[0], n_jobs)


def ising_gibbs(arrays: IsingArrays, method: str, n_chains: int):
    """The chains of an Ising model: a function ``run(x, out, begin, burn_in, thin, seed, first)`` and the number of
    chains it is best called with.

    `x` are the states ``(chains, n)`` before sweep `begin`, changed in place; `out` has room for the draws, ``(chains,
    draws, n)``; `first` is the number of the first chain.
    """
    graph = Neighbours.of(arrays.n, arrays.edges)
    order = _order(arrays.n, arrays.edges, method)
    flat = (order, graph.indptr, graph.neighbours, arrays.couplings[graph.edge], arrays.fields)
    one_by_one = ising_random_chain if method == "random" else ising_scan

    def run(x, out, begin, burn_in, thin, seed, first):
        if method != "random" and len(x) >= _LANES // 2:
            lanes = np.ascontiguousarray(x.T)
            ising_scan_lanes(lanes, out, *flat, begin, burn_in, thin, seed, first)
            x[:] = lanes.T
            return
        for c in range(len(x)):
            one_by_one(x[c], out[c], *flat, begin, burn_in, thin, seed, first + c)

    return run, _LANES if n_chains >= _LANES else 1


def table_gibbs(structure: Structure, tables: np.ndarray, method: str):
    """The same for general tables; the states are 0, 1, 2, ... in int64."""
    order, flat = _order(structure.n_variables, structure.edges, method), TableArrays.of(structure, tables).flat()

    def run(x, out, begin, burn_in, thin, seed, first):
        for c in range(len(x)):
            table_chain(x[c], out[c], order, method == "random", *flat, begin, burn_in, thin, seed, first + c)

    return run, 1


def _order(n: int, edges: np.ndarray, method: str) -> np.ndarray:
    return np.argsort(colouring(n, edges), kind="stable") if method == "chromatic" else np.arange(n)
