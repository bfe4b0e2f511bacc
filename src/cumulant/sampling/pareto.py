"""How heavy the tail of importance weights is: Pareto's shape, and smoothed weights."""

import math
from typing import Any, NamedTuple

import numpy as np

from cumulant import checks


class ParetoFit(NamedTuple):
    """The shape ``k`` of the tail, and log-weights whose tail was replaced by quantiles of the fitted distribution."""

    shape: float
    log_weights: np.ndarray


def pareto_shape(log_weights: Any) -> ParetoFit:
    """Fit a generalised Pareto distribution to the largest of ``n`` weights, ``min(n / 5, 3 sqrt(n))`` of them.

    A shape above 0.7 says that estimates with these weights are not to be trusted at any practical number of draws;
    above 0.5 their variance may be infinite (Vehtari, Simpson, Gelman, Yao and Gabry 2024). The fit is that of Zhang
    and Stephens (2009), with the weak prior of the former. Infinite where a weight is, or for fewer than 25 weights.

    >>> rng = np.random.default_rng(0)
    >>> round(pareto_shape(0.5 * rng.exponential(size=100_000)).shape, 1)     # weights with a tail of index 2
    0.5
    """
    logs = checks.real_array("log_weights", log_weights, finite=False)
    if logs.ndim != 1 or np.any(np.isnan(logs)):
        raise ValueError(f"log_weights must be a vector of numbers; got shape {logs.shape}")
    if logs.size < 25 or np.any(logs == np.inf) or not np.any(np.isfinite(logs)):
        return ParetoFit(math.inf, logs)
    logs = logs - logs.max()
    n_tail = int(min(logs.size / 5, 3 * math.sqrt(logs.size)))
    order = np.argsort(logs)
    tail, cut = order[-n_tail:], logs[order[-n_tail - 1]]
    excess = np.exp(logs[tail]) - math.exp(cut)
    if logs.min() > -1e-9:  # equal but for rounding
        return ParetoFit(-math.inf, logs)
    if not excess[0] > 0:  # ties at the cut: many draws share the largest weights
        return ParetoFit(-math.inf if excess[-1] == 0 else math.inf, logs)
    shape, scale = _generalised_pareto(excess)
    smoothed = logs.copy()
    ranks = (np.arange(n_tail) + 0.5) / n_tail
    quantiles = scale * (np.expm1(-shape * np.log1p(-ranks)) / shape if shape != 0 else -np.log1p(-ranks))
    smoothed[tail] = np.minimum(np.log(quantiles + math.exp(cut)), 0.0)
    return ParetoFit(float(shape), smoothed)


def _generalised_pareto(x: np.ndarray) -> tuple[float, float]:
    """Shape and scale by the posterior mean of Zhang and Stephens (2009), for ascending ``x > 0``."""
    n = x.size
    m = 30 + int(math.sqrt(n))
    quartile = x[int(n / 4 + 0.5) - 1]
    b = 1 / x[-1] + (1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (3 * quartile)
    k = np.mean(np.log1p(-b[:, None] * x), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        profile = n * (np.log(-b / k) - k - 1)
    profile = np.where(np.isfinite(profile), profile, -np.inf)
    weights = np.exp(profile - profile.max())
    theta = float(np.sum(b * weights) / np.sum(weights))
    shape = float(np.mean(np.log1p(-theta * x)))
    scale = -shape / theta
    return (n * shape + 5) / (n + 10), scale  # shrunk towards 1/2 by ten observations
