"""The two spin glasses of the thesis on conditional mean field, and exact answers for them."""

import numpy as np

from cumulant import graphical


def instance(seed: int, edges: np.ndarray) -> graphical.Ising:
    """Fields uniform in [-1, 1], couplings of 1/2 with random signs."""
    draw = np.random.default_rng(seed)
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    fields = draw.uniform(-1, 1, int(edges.max()) + 1)
    return graphical.Ising(edges, draw.choice([-0.5, 0.5], len(edges)), fields)


def means_of(marginals) -> np.ndarray:
    """``E x_i`` from the probabilities of -1 and +1."""
    return marginals[:, 1] - marginals[:, 0]


def exact(model: graphical.Ising):
    """``log Z`` and the means of the spins, by elimination."""
    return model.log_partition(), means_of(model.marginals())


def exact_by_halves(model: graphical.Ising):
    """All states of one half of the spins against all of the other, some rows at a time."""
    n = model.n_variables
    half = n // 2
    spins = 2.0 * ((np.arange(2**half)[:, None] >> np.arange(half)) & 1) - 1.0
    couplings = np.zeros((n, n))
    couplings[tuple(model.edges.T)] = model.couplings
    inner = [couplings[:half, :half], couplings[half:, half:]]
    fields = [model.fields[:half], model.fields[half:]]
    alone = [spins @ h + np.einsum("si,ij,sj->s", spins, J, spins) for h, J in zip(fields, inner, strict=True)]
    across = spins @ couplings[:half, half:]
    rows, columns = np.zeros(2**half), np.zeros(2**half)
    top = float(alone[0].max() + alone[1].max())
    for part in np.array_split(np.arange(2**half), 64):
        weights = np.exp(alone[0][part, None] + across[part] @ spins.T + alone[1] - top)
        rows[part] = weights.sum(axis=1)
        columns += weights.sum(axis=0)
    parts = [rows @ spins / rows.sum(), columns @ spins / columns.sum()]
    return top + float(np.log(rows.sum())), np.concatenate(parts)


def tree_reweighted(model: graphical.Ising):
    """All spanning trees alike: each edge has its effective resistance (Wainwright, Jaakkola, Willsky 2005)."""
    found = graphical.tree_reweighted(model, "uniform", damping=0.5, tol=1e-10, max_sweeps=5000)
    return found.bound, means_of(found.marginals)
