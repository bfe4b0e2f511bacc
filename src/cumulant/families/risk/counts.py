"""Exact risks for classes and counts under a conjugate prior: sums over the distribution of each count.

Without a prior the risk is infinite for every ``n``: a class may never be seen.
"""

from typing import Any

import numpy as np

from cumulant.errors import DomainError
from cumulant.families.risk._arguments import grid, integers
from cumulant.families.special import excess_numpy


def risk_map_categorical(n: Any, n0: Any, probabilities: Any, prior_mean: Any) -> Any:
    """Risk of ``(n0 mu0 + counts) / (n0 + n)`` for one of K classes, a sum over the distribution of each count.

    ``sum_k p_k E phi(q_k/p_k)`` with ``phi(y) = y - 1 - log y``, which is ``sum_k p_k E log(p_k/q_k)`` without its
    cancellation. Infinite where a possible class has no prior mass (it may never be seen): for the MLE, always.

    Parameters
    ----------
    n, n0 : array
        Number of observations and strength of the prior; they broadcast against each other.
    probabilities, prior_mean : array
        Truth and prior mean over all K classes, each adding up to one.

    Examples
    --------
    >>> risk_map_categorical([0, 1, 10, 100], 3.0, [0.5, 0.3, 0.2], [1/3, 1/3, 1/3]).round(6)
    array([0.068959, 0.093245, 0.066098, 0.009629])
    """
    p, mu0 = _simplex("probabilities", probabilities), _simplex("prior_mean", prior_mean)
    if p.shape != mu0.shape:
        raise ValueError(f"probabilities and prior_mean must have the same length; got {p.size} and {mu0.size}")
    n, n0 = integers(n=n)[0], grid(n0=n0)[0]
    n, n0 = np.broadcast_arrays(n, n0)
    answer = np.zeros(n.shape)
    for size in np.unique(n):
        here = n == size
        strength = n0[here][:, None]
        total = strength + size
        value = np.zeros(strength.shape[0])
        for p_k, mu0_k in zip(p, mu0, strict=True):
            start = strength * mu0_k
            if p_k == 0:  # what the estimate wastes on an impossible class: p phi(q/p) -> q
                value += np.where(total[:, 0] > 0, start[:, 0] / np.where(total > 0, total, 1.0)[:, 0], 0.0)
                continue
            counts, mass = binomial_window(int(size), p_k)
            scale = total * p_k
            with np.errstate(divide="ignore", invalid="ignore"):
                excess = np.where(total > 0, (start - strength * p_k + (counts - size * p_k)) / scale, -1.0)
            never = (start[:, 0] == 0) & (p_k < 1 or size == 0)
            value += np.where(never, np.inf, p_k * (excess_numpy(np.where(never[:, None], 0.0, excess)) @ mass))
        answer[here] = value
    return answer[()]


def risk_map_poisson(n: Any, n0: Any, rate: Any, prior_mean: Any) -> Any:
    """Risk of ``(n0 mu0 + total count) / (n0 + n)`` for a Poisson rate, a sum over the distribution of the total.

    ``mu* E phi(mu_n/mu*)`` with ``phi(y) = y - 1 - log y``. Infinite without a prior (all counts may be zero). The
    arguments broadcast.

    >>> risk_map_poisson([0, 1, 100], 1.0, 2.0, 1.0).round(6)
    array([0.386294, 0.316592, 0.004995])
    """
    n, n0, rate, prior_mean = grid(positive=("rate",), n=n, n0=n0, rate=rate, prior_mean=prior_mean)
    answer = np.full(n.size, np.inf)
    flat = np.stack([each.ravel() for each in (n, n0, rate, prior_mean)], axis=1)
    for i, (m, m0, true, prior) in enumerate(flat):
        if m0 * prior > 0:
            counts, mass = poisson_window(m * true)
            excess = (m0 * (prior - true) + (counts - m * true)) / ((m0 + m) * true)
            answer[i] = true * (excess_numpy(excess) @ mass)
    return answer.reshape(n.shape)[()]


def poisson_window(mean: float) -> tuple[np.ndarray, np.ndarray]:
    """The counts that matter and their probabilities, by ratios from the first one on."""
    if mean == 0:
        return np.zeros(1), np.ones(1)
    reach = int(40 * np.sqrt(mean)) + 60
    counts = np.arange(max(0, int(mean) - reach), int(mean) + reach + 1, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log(mean) - np.log(counts[1:]))])
    mass = np.exp(logs - logs.max())
    return counts, mass / mass.sum()


def negative_binomial_window(successes: float, p: float, rest: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The counts that matter (of failures before as many successes) and their probabilities, by ratios; `rest` is
    ``1 - p``, where it is known better than by that.

    >>> counts, mass = negative_binomial_window(2.5, 0.4)
    >>> float((counts @ mass).round(12))                            # r (1 - p) / p
    3.75
    """
    rest = 1 - p if rest is None else rest
    if rest == 0:
        return np.zeros(1), np.ones(1)
    mean = successes * rest / p
    reach = 40 * np.sqrt(mean / p)
    last = int(mean + reach + 60 + 40 / p)
    if last > 50_000_000:
        raise DomainError(f"a sum over {last:.3g} counts is too long: the mean of the total is {mean:.4g}")
    counts = np.arange(max(0, int(mean - reach)), last + 1, dtype=np.float64)
    steps = np.log(counts[:-1] + successes) - np.log(counts[1:]) + np.log(rest)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    mass = np.exp(logs - logs.max())
    return counts, mass / mass.sum()


def binomial_window(n: int, p: float, rest: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The counts that matter and their probabilities, by ratios from the first one on; `rest` is ``1 - p``, where it is
    known better than by that.
    """
    rest = 1 - p if rest is None else rest
    if p == 0 or rest == 0:
        return np.array([n if rest == 0 else 0.0]), np.ones(1)
    mode = min(int((n + 1) * p), n)
    reach = int(40 * np.sqrt(n * p * rest)) + 60
    counts = np.arange(max(0, mode - reach), min(n, mode + reach) + 1, dtype=np.float64)
    steps = np.log(n - counts[:-1]) - np.log(counts[1:]) + (np.log(p) - np.log(rest))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    mass = np.exp(logs - logs.max())
    return counts, mass / mass.sum()


def _simplex(name, value):
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(f"{name} must be a vector of at least two probabilities; got shape {array.shape}")
    if not (np.all(array >= 0) and abs(array.sum() - 1) <= 1e-9):
        raise DomainError(
            f"{name} must not be negative and must add up to 1; got {array}, which adds up to {array.sum()}"
        )
    return array / array.sum()
