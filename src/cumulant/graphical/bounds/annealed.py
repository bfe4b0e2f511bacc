"""Annealed importance sampling: unbiased estimates of ``Z``, and the lower bound that several of them prove."""

from typing import Any

import numpy as np
from scipy.special import betaincinv

from cumulant.graphical.bounds.annealed_kernels import anneal
from cumulant.graphical.bounds.reweighted import Tables
from cumulant.randomness import seed as seed_of
from cumulant.threads import in_parts

__all__ = ["annealed_estimates", "lower_from_estimates"]


def annealed_estimates(
    model: Any, n_estimates: int = 128, n_temperatures: int = 100, rng: Any = None, n_jobs: int | None = None
) -> np.ndarray:
    """Logarithms of independent estimates of ``Z``, each unbiased: ``E exp(estimate) = Z``.

    Each chain starts from independent variables with the single-variable tables of the model and is annealed by Gibbs
    sweeps while the other factors are switched on, ``k / K`` of their logarithms at step ``k`` (Neal 2001). With
    evidence it is the ``Z`` of the states that agree with it; -inf is an estimate of zero.

    Examples
    --------
    >>> from cumulant.graphical import grid, spin_glass
    >>> model = spin_glass(grid(4, 4), coupling=0.5, field=0.5, rng=0)
    >>> estimates = annealed_estimates(model, 64, 100, rng=0)
    >>> bool(abs(np.log(np.exp(estimates).mean()) - model.log_partition()) < 0.1)
    True
    """
    for value, name in ((n_estimates, "n_estimates"), (n_temperatures, "n_temperatures")):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be a positive whole number; got {value!r}")
    structure, theta, _ = model.restricted()
    return annealed(Tables.of(structure, theta), n_estimates, n_temperatures, seed_of(rng), n_jobs)


def annealed(tables: Tables, n_estimates: int, n_temperatures: int, seed: int, n_jobs: int | None) -> np.ndarray:
    """The same for tables that are known to be right."""
    structure = tables.structure
    sizes, starts = structure.cardinalities, structure.table_starts
    fields = tables.theta[starts[-1] :]
    begin = np.concatenate([[0], np.cumsum(sizes)])
    base = tables.constant
    for v in range(sizes.size):
        own = fields[begin[v] : begin[v + 1]]
        if own.max() == -np.inf:
            return np.full(n_estimates, -np.inf)
        base += float(own.max() + np.log(np.exp(own - own.max()).sum()))
    factor = np.repeat(np.arange(structure.n_factors), np.diff(structure.scope_starts))
    strides = np.ones(structure.scopes.size, np.int64)
    for j in range(structure.scopes.size - 2, -1, -1):
        if factor[j] == factor[j + 1]:
            strides[j] = strides[j + 1] * sizes[structure.scopes[j + 1]]
    order = np.argsort(structure.scopes, kind="stable")
    of_starts = np.searchsorted(structure.scopes[order], np.arange(sizes.size + 1)).astype(np.int64)
    temperatures = np.linspace(0.0, 1.0, n_temperatures + 1)
    out = np.empty(n_estimates)

    def work(first, last):
        anneal(
            first, seed, temperatures, sizes, fields, begin, tables.theta, structure.scope_starts, structure.scopes,
            starts, of_starts, factor[order], strides[order], out[first:last],
        )  # fmt: skip

    in_parts(work, n_estimates, n_jobs)
    return base + out


def lower_from_estimates(estimates: np.ndarray, delta: float) -> float:
    """A number below ``log Z`` with probability at least ``1 - delta``, from independent unbiased estimates of ``Z``.

    By Markov's inequality an estimate is above ``Z / p`` with probability at most ``p``, so that the ``k``-th smallest
    of ``R`` is above it with probability at most ``P(Binomial(R, p) >= R - k + 1)``. Where that is ``delta``,
    ``log p + estimate_(k)`` is a lower bound; ``k = 1`` is the smallest of them, ``p = delta^(1/R)``. The best of
    several ``k`` is taken, each with its share of ``delta``. (Gogate, Bidyuk and Dechter 2007 use the minimum.)

    >>> lower_from_estimates(np.zeros(100), 0.01) > -0.2
    True
    """
    ordered = np.sort(np.asarray(estimates, dtype=np.float64))
    ranks = [2**i for i in range(ordered.size.bit_length()) if 2 ** (i + 1) <= ordered.size] or [1]
    share = delta / len(ranks)
    limits = [np.log(betaincinv(ordered.size - k + 1, k, share)) + ordered[k - 1] for k in ranks]
    return float(max(limits))
