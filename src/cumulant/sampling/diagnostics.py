"""Diagnostics: split R-hat and effective sample size of Markov chains, effective size and log-mean of weights.

They are symptoms, not certificates: chains that all missed the same mode look perfect. A certificate of mixing needs a
theorem about the chain (small influence, coupling from the past).

Reference: Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), "Rank-normalization, folding, and localization: an
improved R-hat for assessing convergence of MCMC", Bayesian Analysis.
"""

from typing import Any

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from cumulant import checks


def split_r_hat(draws: Any, *, rank: bool = False) -> Any:
    """``sqrt(var_plus / W)``: how much wider all draws together are than the halves of each chain on their own.

    Each chain is cut in two; ``W`` is the mean of the variances within the halves and ``var_plus = (N - 1) / N W +
    B / N`` adds the variance between their means (equations 1 to 4 of Vehtari and others 2021). Near 1 when chains
    agree; above about 1.01 they do not. With `rank` the draws are replaced by normal scores of their ranks, and the
    larger of the values for the draws and for their distances to the median is taken (section 4 there), which also sees
    heavy tails and chains that differ in spread.

    Parameters
    ----------
    draws : array (chains, draws, ...)
        At least four draws; further axes are separate quantities.

    Returns
    -------
    number or array of the further axes
        1 where all draws are the same number, infinite where the halves are constants that differ.

    Examples
    --------
    >>> chains = np.random.default_rng(0).normal(size=(4, 500))
    >>> round(float(split_r_hat(chains)), 2), round(float(split_r_hat(chains + [[0], [0], [0], [3]])), 2)
    (1.0, 1.69)
    """
    halves = _split(_checked(draws))
    if not rank:
        return _r_hat(halves)[()]
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_r_hat(_normal_scores(halves)), _r_hat(_normal_scores(folded)))[()]


def effective_sample_size(draws: Any, *, rank: bool = False) -> Any:
    """How many independent draws would estimate the mean as well: ``chains * draws / tau``.

    ``tau = 1 + 2 sum_t rho_t`` is the autocorrelation time of the chains cut in halves, the sum ended by Geyer's
    initial monotone sequence (Geyer 1992; equations 10 and 11 of Vehtari and others 2021). With `rank` the draws are
    replaced by normal scores of their ranks: the "bulk" effective sample size. At most ``N log10 N``, for draws that
    are worth more than independent ones.

    Parameters
    ----------
    draws : array (chains, draws, ...)
        At least four draws; further axes are separate quantities.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(4, 2000))
    >>> slow = np.zeros_like(noise)
    >>> for t in range(1, 2000):
    ...     slow[:, t] = 0.9 * slow[:, t - 1] + noise[:, t]
    >>> bool(6000 < effective_sample_size(noise) < 10000), bool(300 < effective_sample_size(slow) < 550)
    (True, True)
    """
    halves = _split(_checked(draws))
    return _effective(_normal_scores(halves) if rank else halves)[()]


def normalised(log_weights: Any) -> np.ndarray:
    """``w / sum w`` from logarithms; refused where all are -inf, or one is NaN or +inf.

    >>> normalised([0.0, np.log(3.0), -np.inf])
    array([0.25, 0.75, 0.  ])
    """
    logs = checks.real_array("log_weights", log_weights, finite=False)
    top = logs.max(initial=-np.inf)
    if not np.isfinite(top):
        raise ValueError(f"log_weights must have a finite largest entry; it is {top}")
    weights = np.exp(logs - top)
    return weights / weights.sum()


def weighted_sample_size(log_weights: Any) -> float:
    """``(sum w)^2 / sum w^2``: how many draws of equal weight have the same variance (Kong 1992).

    Between 1 and the number of draws. It does not see what no draw has reached.

    >>> round(weighted_sample_size(np.log([1.0, 1.0, 2.0])), 12)
    2.666666666667
    """
    return float(1.0 / (normalised(log_weights) ** 2).sum())


def log_mean_exp(log_weights: Any) -> tuple[float, float]:
    """``log mean w`` of independent weights, and its standard error ``sd(w) / (mean(w) sqrt(n))`` (delta method).

    The mean of weights may be unbiased; its logarithm then is too small on average (Jensen).

    >>> value, error = log_mean_exp([np.log(2.0), np.log(4.0)])
    >>> round(value, 6), round(error, 6)
    (1.098612, 0.333333)
    """
    shares = normalised(log_weights).ravel() * np.size(log_weights)  # weights relative to their mean
    top = float(np.max(log_weights))
    value = top + float(np.log(np.exp(np.asarray(log_weights, dtype=np.float64) - top).mean()))
    return value, float(shares.std(ddof=1) / np.sqrt(shares.size)) if shares.size > 1 else np.inf


def _checked(draws: Any) -> np.ndarray:
    array = checks.real_array("draws", draws, finite=False)
    if array.ndim < 2 or array.shape[0] < 1 or array.shape[1] < 4:
        raise ValueError(f"draws must have shape (chains, draws, ...) with at least 4 draws; got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("draws must be finite numbers; there is NaN or infinity among them")
    return array


def _split(draws: np.ndarray) -> np.ndarray:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata  # when it is needed: scipy.stats takes half a second to import

    flat = draws.reshape(draws.shape[0] * draws.shape[1], -1)
    ranks = rankdata(flat, axis=0)
    return ndtri((ranks - 0.375) / (flat.shape[0] + 0.25)).reshape(draws.shape)


def _r_hat(halves: np.ndarray) -> np.ndarray:
    n = halves.shape[1]
    within, between = halves.var(axis=1, ddof=1).mean(axis=0), halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # constants: decided below
        value = np.sqrt((n - 1) / n + between / within)
    return np.where(within > 0, value, np.where(between > 0, np.inf, 1.0))


def _effective(halves: np.ndarray) -> np.ndarray:
    chains, n = halves.shape[:2]
    size = next_fast_len(2 * n)
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.asarray(rfft(centred, size, axis=1))
    covariance = np.asarray(irfft(np.abs(spectrum) ** 2, size, axis=1))[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + (halves.mean(axis=1).var(axis=0, ddof=1) if chains > 1 else 0.0)
    constant = np.ptp(halves, axis=(0, 1)) < np.finfo(float).resolution
    rho = 1.0 - (within - covariance) / np.where(constant, 1.0, total)
    rho[0] = 1.0
    last = max((n - 3) // 2, 0)  # the last pair of lags that is looked at
    pairs = rho[0 : 2 * last + 2 : 2] + rho[1 : 2 * last + 2 : 2]
    negative = pairs <= 0
    end = np.where(negative.any(axis=0), negative.argmax(axis=0), last)
    kept = np.where(np.arange(last + 1).reshape(-1, *[1] * end.ndim) < end, np.minimum.accumulate(pairs, axis=0), 0.0)
    after = np.take_along_axis(rho, (2 * end)[None], axis=0)[0]  # half of the pair that ended the sum
    tau = -1.0 + 2.0 * kept.sum(axis=0) + np.maximum(after, 0.0)
    draws = chains * n
    return np.where(constant, float(draws), draws / np.maximum(tau, 1.0 / np.log10(draws)))
