"""Hot coupling: from a spanning forest of an Ising model, which is exact, to the whole, by groups of edges."""

from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.samplers.gibbs import IsingArrays
from cumulant.particles.ising_bridge import IsingBridge, ising_weights
from cumulant.particles.islands import run
from cumulant.particles.result import ParticleResult
from cumulant.particles.temperatures import Temperatures


def hot_coupling(
    model: Ising,
    n_particles: int = 1000,
    order: Any = None,
    *,
    groups: int | None = 1,
    steps_per_group: int = 100,
    weights: str | None = None,
    sweeps: int = 1,
    resampling: str = "stratified",
    ess_threshold: float = 0.5,
    chain_length: int = 1,
    exchange: int | None = None,
    n_islands: int = 1,
    delta: float = 0.05,
    rng: Any = None,
    progress: Any = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    client: Any = None,
) -> ParticleResult:
    """Weighted particles of an Ising model and an estimate of ``log Z``, by putting back the edges that a tree lacks.

    The start is a spanning forest of the graph with its couplings and all fields: its ``log Z`` and its draws are
    exact, by elimination. The other couplings then grow from zero, linearly, one group of edges after the other;
    particles are weighted, resampled and moved by Gibbs sweeps as in `anneal`. The path is fixed: ``E
    exp(log_partition) = Z`` exactly, and there is a certificate (Hamze and de Freitas 2005).

    Parameters
    ----------
    model : Ising
        Couplings to variables with evidence count as fields.
    order : array of int, optional
        The edges that are put back, by their number in ``model.edges``, the first first; those that are not named must
        form a forest. By default those outside of a spanning forest with the largest sum of ``|J|``, strong ones first.
    groups : int or None
        Into how many groups of equal size they are divided, in order; 1: all at once, None: one by one.
    steps_per_group : int
        Steps in which the couplings of a group grow.
    weights, sweeps
        As for `anneal`.
    resampling, ess_threshold, chain_length, exchange, n_islands, delta, rng, progress, time_limit, n_jobs, client
        As for `run`.

    Examples
    --------
    >>> from cumulant.graphical import grid, spin_glass
    >>> model = spin_glass(grid(4, 4), couplings=0.8, fields=0.5, rng=0)
    >>> result = hot_coupling(model, 500, steps_per_group=50, rng=1)
    >>> model.log_partition() in result.interval(0.99)
    True
    """
    checks.instance("model", model, Ising, "an Ising model (anneal takes every discrete model)")
    checks.whole("sweeps", sweeps)
    checks.whole("steps_per_group", steps_per_group)
    arrays = IsingArrays.of(model)
    if not arrays.n:
        raise ValueError(
            f"{model!r} has no variable that is free: there is nothing to draw, and model.log_partition() is exact"
        )
    back = _spanning_rest(arrays) if order is None else _given_rest(model, arrays, order)
    count = back.size if groups is None else min(checks.whole("groups", groups), back.size)
    group = np.full(len(arrays.edges), -1)
    group[back] = np.arange(back.size) * count // max(back.size, 1)
    kind = ising_weights(model, weights)
    temperatures = Temperatures.of(max(count, 1) * steps_per_group if back.size else 1, None)
    return run(
        IsingBridge(model, group, temperatures, kind, sweeps, n_jobs),
        n_particles,
        n_islands=n_islands,
        resampling=resampling,
        ess_threshold=ess_threshold,
        chain_length=chain_length,
        exchange=exchange,
        delta=delta,
        method="hot coupling",
        total=temperatures.total,
        rng=rng,
        progress=progress,
        time_limit=time_limit,
        n_jobs=n_jobs,
        client=client,
    )


def _spanning_rest(arrays: IsingArrays) -> np.ndarray:
    """The edges between free spins that a spanning forest of the largest couplings lacks, strong ones first."""
    strength = np.abs(arrays.couplings)
    order = np.argsort(-strength, kind="stable")
    # The rank of an edge in this order is its length, from 1 on: of several edges between two spins one is in the tree.
    rows, columns = arrays.edges[order].min(axis=1), arrays.edges[order].max(axis=1)
    _, kept = np.unique(rows * arrays.n + columns, return_index=True)
    lengths = coo_array((kept + 1.0, (rows[kept], columns[kept])), shape=(arrays.n, arrays.n))
    tree = minimum_spanning_tree(lengths.tocsr()).data.astype(np.int64) - 1
    return np.delete(order, tree)


def _given_rest(model: Ising, arrays: IsingArrays, order: Any) -> np.ndarray:
    """The places among the edges between free spins of those that a user names, checked."""
    given = checks.real_array("order", order, ndim=1)
    m = len(model.edges)
    if np.any(given != np.floor(given)) or (given.size and (given.min() < 0 or given.max() >= m)):
        raise ValueError(f"order must have numbers of edges, from 0 to {m - 1}; got {order!r:.80}")
    if np.unique(given).size < given.size:
        raise ValueError("order must name each edge once")
    named = given.astype(np.int64)
    given_to = np.asarray(np.isin(model.edges, list(model.evidence)).any(axis=1))
    back = (np.cumsum(~given_to) - 1)[named[~given_to[named]]]
    rest = np.delete(arrays.edges, back, axis=0)
    links = coo_array((np.ones(len(rest)), (rest[:, 0], rest[:, 1])), shape=(arrays.n, arrays.n))
    if arrays.n - connected_components(links, directed=False)[0] != len(rest):
        raise DomainError("order must name enough edges: those that it leaves out have a cycle")
    return back
