"""Annealed importance sampling of discrete models: weighted draws, and unbiased estimates of ``Z``."""

from typing import Any

import numpy as np

from cumulant import checks
from cumulant.graphical.bounds.reweighted import Tables
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.samplers.annealed_kernels import anneal
from cumulant.graphical.samplers.gibbs import TableArrays
from cumulant.randomness import seed as seed_of
from cumulant.sampling.chains import require_counts
from cumulant.sampling.diagnostics import log_mean_exp
from cumulant.sampling.draws import Draws
from cumulant.threads import in_parts


def annealed_importance_sampling(
    model: Any, n: int = 128, temperatures: int = 100, *, rng: Any = None, n_jobs: int | None = None
) -> Draws:
    """`n` independent weighted draws, each weight an unbiased estimate of ``Z``: ``E exp(log_weight) = Z``.

    Each chain starts from independent variables with the single-variable tables of the model and is annealed by Gibbs
    sweeps while the other factors are switched on, ``k / K`` of their logarithms at step ``k`` (Neal 2001). With
    evidence it is the ``Z`` of the states that agree with it; -inf is an estimate of zero. For densities of vectors see
    `sampling.annealed_importance_sampling`.

    Examples
    --------
    >>> from cumulant.graphical import grid, spin_glass
    >>> model = spin_glass(grid(4, 4), couplings=0.5, fields=0.5, rng=0)
    >>> draws = annealed_importance_sampling(model, 64, 100, rng=0)
    >>> bool(abs(draws.log_normaliser - model.log_partition()) < 4 * draws.log_normaliser_error)
    True
    """
    require_counts(n=(n, 1), temperatures=(temperatures, 1))
    checks.instance("model", model, DiscreteModel, "a DiscreteModel")
    structure, theta, free = model.restricted()
    seed = seed_of(rng)
    log_weights, found = annealed(Tables.of(structure, theta), n, temperatures, seed, n_jobs)
    states = model.given_states(1, n)
    states[:, :, free] = found
    value, error = log_mean_exp(log_weights) if log_weights.max() > -np.inf else (-np.inf, np.inf)
    settings = {"seed": seed, "temperatures": np.linspace(0.0, 1.0, temperatures + 1)}
    values = model.labels.numbers(states)
    return Draws(values, "annealed", settings, model.shapes, log_weights[None], value, error)


def annealed(
    tables: Tables, n_estimates: int, n_temperatures: int, seed: int, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the weights, and the states they belong to, for tables that are known to be right."""
    structure = tables.structure
    sizes, end = structure.cardinalities, int(structure.table_starts[-1])
    out, states = np.empty(n_estimates), np.zeros((n_estimates, sizes.size), np.int64)
    fields, begin = tables.theta[end:], np.concatenate([[0], np.cumsum(sizes)])
    base = tables.constant
    for v in range(sizes.size):
        own = fields[begin[v] : begin[v + 1]]
        if own.max() == -np.inf:
            return np.full(n_estimates, -np.inf), states
        base += float(own.max() + np.log(np.exp(own - own.max()).sum()))
    flat = (np.linspace(0.0, 1.0, n_temperatures + 1), fields, begin, TableArrays.of(structure, tables.theta[:end]))

    def work(first, last):
        anneal(first, seed, *flat, out[first:last], states[first:last])

    in_parts(work, n_estimates, n_jobs)
    return base + out, states
