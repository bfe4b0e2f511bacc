"""What can be said of memberships whatever the components are called: distances, levels, agreement of runs."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from cumulant import checks

_PART = 2**24  # numbers that a block of pairwise distances may hold


def admixture_distance(memberships: Any) -> np.ndarray:
    """``dist(d, d') = 1/2 sum_k |tau_dk - tau_d'k|`` for memberships ``(..., D, K)``: ``(..., D, D)``, from 0 to 1.

    >>> admixture_distance([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    array([[0. , 1. , 0.5],
           [1. , 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    tau = _memberships(memberships)
    return 0.5 * np.abs(tau[..., :, None, :] - tau[..., None, :, :]).sum(axis=-1)


def admixture_level(memberships: Any) -> np.ndarray:
    """``1 - K / (2 (K - 1)) sum_k |tau_dk - 1/K|`` for memberships ``(..., D, K)``: 0 for a single component, 1 for
    equal shares.

    >>> admixture_level([[1.0, 0.0], [0.5, 0.5]])
    array([0., 1.])
    """
    tau = _memberships(memberships)
    k = tau.shape[-1]
    if k < 2:
        raise ValueError("memberships must have at least two components for a level of admixture")
    return 1.0 - k / (2.0 * (k - 1)) * np.abs(tau - 1.0 / k).sum(axis=-1)


def mean_distance(draws: Any, weights: Any = None) -> np.ndarray:
    """The mean of the distance over draws ``(S, D, K)`` of memberships, with weights ``(S,)``.

    It is the mean of the function, not the function of the mean: components may change their names between draws.
    """
    tau, w = _draws(draws, weights)
    total = np.zeros((tau.shape[1], tau.shape[1]))
    size = max(1, _PART // max(tau.shape[1] ** 2 * tau.shape[2], 1))
    for first in range(0, len(tau), size):
        some = slice(first, first + size)
        total += np.tensordot(w[some], admixture_distance(tau[some]), axes=1)
    return total


def mean_level(draws: Any, weights: Any = None) -> np.ndarray:
    """The mean of the level over draws ``(S, D, K)`` of memberships, with weights ``(S,)``."""
    tau, w = _draws(draws, weights)
    return w @ admixture_level(tau)


@dataclasses.dataclass(frozen=True, eq=False)
class AgreementReport:
    """How far runs agree on label-invariant summaries.

    Attributes
    ----------
    distance, level : array (D, D), (D,)
        Means over runs.
    distance_variance, level_variance : array (D, D), (D,)
        Variances over runs.
    least_similar : tuple of int
        The two runs whose levels differ most.
    """

    distance: np.ndarray
    level: np.ndarray
    distance_variance: np.ndarray
    level_variance: np.ndarray
    least_similar: tuple[int, int]
    n_runs: int

    @property
    def largest_distance_variance(self) -> float:
        """Of the pair on which the runs agree least."""
        return float(self.distance_variance.max())

    @property
    def largest_level_variance(self) -> float:
        """Of the document on which the runs agree least."""
        return float(self.level_variance.max())

    def __str__(self):
        return (
            f"{self.n_runs} runs: largest variance of a distance {self.largest_distance_variance:.3g}, "
            f"of a level {self.largest_level_variance:.3g}"
        )


def agreement_report(runs: Sequence[Any]) -> AgreementReport:
    """Compare runs on the same data: fitted `Admixture` estimators, or pairs ``(distance, level)``.

    Examples
    --------
    >>> first = mean_distance([[[1.0, 0.0], [0.0, 1.0]]]), mean_level([[[1.0, 0.0], [0.0, 1.0]]])
    >>> other = mean_distance([[[0.0, 1.0], [1.0, 0.0]]]), mean_level([[[0.0, 1.0], [1.0, 0.0]]])
    >>> print(agreement_report([first, other]))  # the names of components do not count
    2 runs: largest variance of a distance 0, of a level 0
    """
    pairs = [(each.distance_, each.level_) if hasattr(each, "distance_") else each for each in runs]
    if len(pairs) < 2:
        raise ValueError(f"runs must be at least two; got {len(pairs)}")
    sizes = {np.shape(each[0]) for each in pairs}
    if len(sizes) > 1:
        raise ValueError(f"runs must be about the same documents; their distances have shapes {sorted(sizes)}")
    distances = checks.real_array("distances of runs", [pair[0] for pair in pairs])
    levels = checks.real_array("levels of runs", [pair[1] for pair in pairs])
    apart = np.abs(levels[:, None] - levels[None]).sum(axis=2)
    first, second = np.unravel_index(int(np.argmax(apart)), apart.shape)
    return AgreementReport(
        distances.mean(axis=0),
        levels.mean(axis=0),
        distances.var(axis=0, ddof=1),
        levels.var(axis=0, ddof=1),
        (int(first), int(second)),
        len(pairs),
    )


def _memberships(memberships: Any) -> np.ndarray:
    tau = checks.real_array("memberships", memberships)
    if tau.ndim < 2 or tau.min(initial=0.0) < 0 or np.abs(tau.sum(axis=-1) - 1.0).max(initial=0.0) > 1e-6:
        raise ValueError("memberships must have rows (documents, components) of shares that sum to one")
    return tau


def _draws(draws: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    tau = checks.real_array("draws", draws, ndim=3)
    if weights is None:
        return tau, np.full(len(tau), 1.0 / len(tau))
    w = checks.real_array("weights", weights, ndim=1)
    if w.shape != tau.shape[:1] or w.min() < 0 or w.sum() <= 0:
        raise ValueError(f"weights must be {len(tau)} numbers, not negative, with a positive sum")
    return tau, w / w.sum()
