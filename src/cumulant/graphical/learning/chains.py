"""Chains that give learning its gradients: many short ones from fresh starts, and the mean of their statistics."""

from typing import Any

import numpy as np

from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.samplers.colouring import Neighbours
from cumulant.graphical.samplers.gibbs import TableArrays, random_scan
from cumulant.graphical.samplers.gibbs_kernels import table_random_scan
from cumulant.graphical.samplers.subgraphs import EdgeFlips, SubgraphsWorld
from cumulant.threads import in_parts


class SpinChains:
    """Of an Ising model: spins in single bytes."""

    def __init__(self, model: Ising, free: np.ndarray):
        self.n, self.edges, self.free = model.n_variables, model.edges, free
        self.graph = Neighbours.of(self.n, self.edges)
        self.with_fields = free.size > len(self.edges)

    def uniform(self, draw: np.random.Generator, chains: int) -> np.ndarray:
        """Starts: all states equally likely."""
        return (2 * draw.integers(0, 2, (chains, self.n), dtype=np.int8) - 1).astype(np.int8)

    def at(self, data: np.ndarray) -> np.ndarray:
        """Starts at observations."""
        return np.ascontiguousarray(data, dtype=np.int8)

    def run(self, x: np.ndarray, theta: np.ndarray, updates: int, seed: int, n_jobs: int | None) -> np.ndarray:
        """Advance the chains `x`, in place, by random-scan updates of the model `theta`: the mean statistics after."""
        n, full = self.n, np.zeros(self.n + len(self.edges))
        full[self.free] = theta
        random_scan(x, self.graph, full[n:], full[:n], updates, seed=seed, n_jobs=n_jobs)
        spins = np.ascontiguousarray(x.T)
        each = ((spins[i], spins[j]) for i, j in self.edges)
        pairs = np.array([np.dot(a.astype(np.float32), b) for a, b in each]) / len(x)
        return np.concatenate([x.mean(axis=0), pairs]) if self.with_fields else pairs


class SubgraphChains:
    """Of a ferromagnet in a field: chains of the subgraphs world, turned into spins at their ends."""

    def __init__(self, model: Ising):
        self.n, self.edges = model.n_variables, model.edges

    def uniform(self, draw: np.random.Generator, chains: int) -> np.ndarray:
        """Starts: the empty subgraph, from which `subgraphs_mixing` counts."""
        return np.zeros((chains, len(self.edges)), np.uint8)

    def run(self, x: np.ndarray, theta: np.ndarray, updates: int, seed: int, n_jobs: int | None) -> np.ndarray:
        """Advance the subgraphs `x`, in place, by at least so many moves: the mean statistics of the spins after."""
        n, m = self.n, len(self.edges)
        world = SubgraphsWorld(self.edges, theta[n:], theta[:n])
        program = EdgeFlips(n_jobs).program(world, len(x))
        sweeps = max(-(-updates // max(m, 1)), 1)

        def work(first, last):
            program.run(x[first:last], np.empty((last - first, 1, m), np.uint8), 0, sweeps - 1, 1, seed, first)

        if m:
            in_parts(work, len(x), n_jobs)
        spins = np.ascontiguousarray(world.to_spins(x, rng=seed + 1, n_jobs=n_jobs).T)
        each = ((spins[i], spins[j]) for i, j in self.edges)
        pairs = np.array([np.dot(a.astype(np.float32), b) for a, b in each]) / len(x)
        return np.concatenate([spins.mean(axis=1), pairs])


class TableChains:
    """Of any model: states 0, 1, 2, ..."""

    def __init__(self, model: DiscreteModel, free: np.ndarray):
        self.family, self.free = model.family, free
        structure = self.family.structure
        self.arrays = TableArrays.of(structure, np.zeros(int(structure.table_starts[-1])))

    def uniform(self, draw: np.random.Generator, chains: int) -> np.ndarray:
        """Starts: all states equally likely."""
        return draw.integers(0, self.arrays.sizes, (chains, self.arrays.sizes.size))

    def at(self, data: np.ndarray) -> np.ndarray:
        """Starts at observations."""
        return np.array(self.family.states(data))

    def run(self, x: np.ndarray, theta: np.ndarray, updates: int, seed: int, n_jobs: int | None) -> np.ndarray:
        """Advance the chains `x`, in place, by random-scan updates of the model `theta`: the mean statistics after."""
        full = np.zeros(self.family.dim)
        full[self.free] = theta
        tables = np.ascontiguousarray(self.family.log_tables(full))
        arrays = self.arrays._replace(tables=tables)

        def work(first, last):
            counts = np.zeros(tables.size, np.int64)
            table_random_scan(x[first:last], counts, arrays, updates, seed, first)
            return counts

        counts: Any = sum(in_parts(work, len(x), n_jobs))
        return self.family.mean_of(counts / len(x))[self.free]
