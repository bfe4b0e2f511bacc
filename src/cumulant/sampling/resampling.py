"""Resampling: from weighted particles to equally weighted ones, without bias.

Each method draws `n` ancestors so that particle ``i`` is chosen ``n w_i`` times on average, with weights ``w`` that sum
to one. They differ in the variance of those counts; stratified and residual draws never have more than multinomial ones
(Douc, Cappé and Moulines 2005), and systematic draws give ``floor(n w_i)`` or ``ceil(n w_i)`` copies.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.randomness import generator
from cumulant.sampling.chains import require_counts
from cumulant.sampling.diagnostics import normalised


def resample(log_weights: Any, n: int | None = None, *, method: str = "systematic", rng: Any = None) -> np.ndarray:
    """Indices of `n` ancestors (default: as many as weights), in increasing order.

    Parameters
    ----------
    log_weights : array (particles,)
        Logarithms of weights, up to a constant; -inf is a weight of zero, which is never chosen.
    method : str
        ``"multinomial"`` (independent draws), ``"stratified"`` (one uniform in each of `n` equal parts),
        ``"systematic"`` (the same uniform in each part) or ``"residual"`` (``floor(n w)`` copies, and multinomial draws
        for the rest).

    Examples
    --------
    >>> resample(np.log([0.5, 0.25, 0.25]), 4, rng=0)
    array([0, 0, 1, 2])
    """
    weights = normalised(log_weights)
    if weights.ndim != 1:
        raise ValueError(f"log_weights must be a vector; got shape {weights.shape}")
    checks.choice("method", method, RESAMPLING)
    n = weights.size if n is None else n
    require_counts(n=(n, 0))
    return RESAMPLING[method](weights, int(n), generator(rng))


def _at(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The particles whose shares of [0, 1) hold the points, which are in increasing order."""
    possible = np.flatnonzero(weights)
    ends = np.cumsum(weights[possible])
    # The last end is one up to rounding: a point beyond it belongs to the last particle.
    return possible[np.minimum(np.searchsorted(ends, points * ends[-1], side="right"), possible.size - 1)]


def _multinomial(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return _at(np.sort(rng.random(n)), weights)


def _stratified(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return _at(POINTS["stratified"](n, rng), weights)


def _systematic(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return _at(POINTS["systematic"](n, rng), weights)


def _residual(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    copies = np.floor(n * weights).astype(np.int64)
    certain = np.repeat(np.arange(weights.size), copies)
    rest = n * weights - copies
    left = n - certain.size
    drawn = _multinomial(rest / rest.sum(), left, rng) if left else np.zeros(0, np.int64)
    return np.sort(np.concatenate([certain, drawn]))


# Where methods whose random numbers do not depend on the weights look for ancestors in [0, 1).
POINTS: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "stratified": lambda n, rng: (np.arange(n) + rng.random(n)) / n,
    "systematic": lambda n, rng: (np.arange(n) + rng.random()) / n,
}
RESAMPLING: dict[str, Callable[[np.ndarray, int, np.random.Generator], np.ndarray]] = {
    "multinomial": _multinomial,
    "stratified": _stratified,
    "systematic": _systematic,
    "residual": _residual,
}
