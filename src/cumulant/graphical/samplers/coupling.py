"""Perfect sampling: coupling from the past."""

import numpy as np

from cumulant.errors import DomainError, NotConvergedError
from cumulant.graphical.samplers.colouring import Neighbours
from cumulant.graphical.samplers.colouring_kernels import two_colours
from cumulant.graphical.samplers.coupling_kernels import monotone_past
from cumulant.graphical.samplers.gibbs import IsingArrays
from cumulant.sampling.chains import require_counts
from cumulant.threads import in_parts


def ferromagnetic_signs(n: int, edges: np.ndarray, couplings: np.ndarray) -> np.ndarray:
    """Signs ``s`` with ``J_ij s_i s_j >= 0`` on every edge: turning the spins with ``s = -1`` leaves only couplings
    that make neighbours agree. `DomainError` where there are none: the model is frustrated.

    They exist exactly where every cycle has an even number of negative couplings: for bipartite antiferromagnets, and
    for every tree.

    >>> ferromagnetic_signs(4, np.array([(0, 1), (1, 2), (2, 3)]), np.array([-1.0, 1.0, -1.0])).tolist()
    [1, -1, -1, 1]
    """
    there = couplings != 0
    pairs, sign = edges[there], np.sign(couplings[there])
    # A positive edge becomes a path of two by a vertex of its own: signs are then a colouring by two colours.
    positive = np.flatnonzero(sign > 0)
    middle = n + np.arange(positive.size)
    long = np.concatenate(
        [
            pairs[sign < 0],
            np.stack([pairs[positive, 0], middle], axis=1),
            np.stack([middle, pairs[positive, 1]], axis=1),
        ]
    )
    graph = Neighbours.of(n + positive.size, long)
    colours = two_colours(graph.indptr, graph.neighbours)
    if n and colours[0] < 0:
        raise DomainError(
            "coupling from the past needs a model without frustration: some cycle has an odd number of negative "
            "couplings, and no choice of signs makes all of them positive; use method='systematic' or 'exact'"
        )
    return 1 - 2 * colours[:n]


def perfect_draws(
    arrays: IsingArrays, n: int, seed: int, *, max_sweeps: int = 2**16, n_jobs: int | None = None
) -> np.ndarray:
    """`n` independent draws from exactly the distribution of a ferromagnetic Ising model with any fields.

    Monotone coupling from the past (Propp and Wilson 1996): when the chains from all spins down and all spins up, begun
    far enough in the past with the same random numbers, have met at time 0, their state has the stationary
    distribution; nothing depends on a guess of the mixing time. Other models are first made ferromagnetic by turning
    some spins (`ferromagnetic_signs`) or refused. Exact up to the 52 random bits of a decision: 2^-53 each.

    Raises
    ------
    NotConvergedError
        Where chains begun `max_sweeps` before have not met: couplings too strong for single-site updates.
    """
    require_counts(n=(n, 0), max_sweeps=(max_sweeps, 1))
    if max_sweeps >= 2**32:
        raise ValueError(f"max_sweeps must be below 2**32; got {max_sweeps!r}")
    signs = ferromagnetic_signs(arrays.n, arrays.edges, arrays.couplings)
    graph = Neighbours.of(arrays.n, arrays.edges)
    out, sweeps = np.empty((n, arrays.n), np.int8), np.zeros(n, np.int64)
    flat = (graph.indptr, graph.neighbours, np.abs(arrays.couplings)[graph.edge], arrays.fields * signs)

    def work(first, last):
        monotone_past(out[first:last], sweeps[first:last], *flat, max_sweeps, seed, first)

    in_parts(work, n, n_jobs)
    if (sweeps == 0).any():
        raise NotConvergedError(
            f"{int((sweeps == 0).sum())} of {n} draws had not coupled after {max_sweeps} sweeps: the chain mixes "
            "slowly here; raise max_sweeps, or use method='swendsen_wang' or 'exact'"
        )
    return out * signs.astype(np.int8)
