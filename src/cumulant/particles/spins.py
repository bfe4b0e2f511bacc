"""What is asked of spins: overlaps of pairs, whether both modes are there, free energies."""

import dataclasses
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.particles.result import ParticleResult
from cumulant.sampling.draws import Draws


@dataclasses.dataclass(frozen=True, eq=False)
class OverlapDistribution:
    """``P(q)`` of the overlap of two independent states, in bins.

    Attributes
    ----------
    edges : array (bins + 1,)
    probability : array (bins,)
        That sums to one.
    mean_abs : float
        ``E |q|``.
    positive : float
        ``P(q > 0) + P(q = 0) / 2``; one half for a distribution that is symmetric under ``x -> -x``.
    """

    edges: np.ndarray
    probability: np.ndarray
    mean_abs: float
    positive: float

    @property
    def centres(self) -> np.ndarray:
        """The middle of each bin."""
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    @property
    def density(self) -> np.ndarray:
        """``P(q)`` for each unit of ``q``."""
        return self.probability / np.diff(self.edges)


def overlap_distribution(particles: Any, weights: Any = None, bins: int | None = None) -> OverlapDistribution:
    """The distribution of the overlap ``q = sum_i x_i x'_i / N`` of two states: the order parameter of spin glasses.

    ``P(q in bin) = sum_(s != t) W_s W_t [q_st in bin] / (1 - sum W^2)``: pairs of different particles (Carbonetto 2009,
    equation 3.69). Particles that descend from one ancestor overlap more than independent states do: a population that
    was resampled to a few families shows peaks that the model does not have.

    Parameters
    ----------
    particles : ParticleResult, Draws or array (n, N)
        Spins -1 and +1.
    weights : array (n,), optional
        Of an array: equal ones without it.
    bins : int, optional
        Of equal width between -1 and 1; 41, or one for each value of ``q`` below 100 spins.

    Examples
    --------
    >>> found = overlap_distribution([[1, 1], [-1, -1], [1, 1]], bins=3)         # q = -1 twice, q = 1 once
    >>> found.probability.round(4), round(found.positive, 4)
    (array([0.6667, 0.    , 0.3333]), 0.3333)
    """
    x, W = _weighted(particles, weights)
    if bins is None:
        bins = x.shape[1] + 1 if x.shape[1] < 100 else 41
    bins = checks.whole("bins", bins)
    if len(x) < 2:
        raise ValueError("an overlap needs at least two particles")
    if np.count_nonzero(W) < 2:
        raise ValueError("an overlap needs at least two particles with a weight; one has all of it")
    overlaps = x @ x.T / x.shape[1]
    upper = np.triu_indices(len(x), 1)
    q, pairs = overlaps[upper], np.outer(W, W)[upper]
    pairs = pairs / pairs.sum()
    # One value of q is 2 / N from the next: rounding must not move it over an edge.
    probability, edges = np.histogram(np.clip(np.round(q, 12), -1, 1), bins=bins, range=(-1, 1), weights=pairs)
    positive = float(pairs[q > 1e-12].sum() + 0.5 * pairs[np.abs(q) <= 1e-12].sum())
    return OverlapDistribution(edges, probability, float(pairs @ np.abs(q)), positive)


def up_share(particles: Any, weights: Any = None) -> float:
    """The weighted share of states with more spins up than down; ties count half.

    >>> up_share([[1, 1, 1], [-1, -1, 1]], weights=[0.25, 0.75])
    0.25
    """
    x, W = _weighted(particles, weights)
    total = x.sum(axis=1)
    return float(W[total > 0].sum() + 0.5 * W[total == 0].sum())


def has_both_modes(particles: Any, weights: Any = None, least: float = 0.05) -> bool:
    """Whether states with most spins up, and those with most down, each have at least this share of the weight.

    >>> has_both_modes([[1, 1, 1], [-1, -1, 1]])
    True
    """
    checks.number("least", least)
    share = up_share(particles, weights)
    return least < share < 1 - least


def free_energy(log_z: float, temperature: float, n_spins: int) -> float:
    """``f = -T log Z / N``, the free energy of each spin.

    >>> free_energy(800.832460661, 1.0, 400)
    -2.00208115165...
    """
    checks.number("log_z", log_z)
    return -checks.positive("temperature", temperature) * log_z / checks.whole("n_spins", n_spins)


def _weighted(particles: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(particles, ParticleResult):
        particles = particles.draws
    if isinstance(particles, Draws):
        if weights is not None:
            raise ValueError("weights are those of the draws; give them with an array of spins only")
        weights, particles = particles.weights.ravel(), particles.flat
    x = checks.real_array("particles", particles, ndim=2)
    if not x.size or not np.isin(x, (-1.0, 1.0)).all():
        raise ValueError("particles must be spins, -1 and +1")
    if not x.size:
        raise ValueError(f"particles must be rows of spins, one row or more; got shape {x.shape}")
    W = np.full(len(x), 1 / len(x)) if weights is None else checks.real_array("weights", weights, ndim=1)
    if W.shape != (len(x),) or (W < 0).any() or not W.sum() > 0:
        raise ValueError(
            f"weights must be a number for each of the {len(x)} particles, none negative; got shape {W.shape}"
        )
    return x, W / W.sum()
