"""The exact risk of the posterior mode for a normal with unknown mean and variance, and its bias-variance split."""

from typing import Any, NamedTuple

import numpy as np

from cumulant.errors import DomainError
from cumulant.families.risk._arguments import grid, integers
from cumulant.families.risk.exact import risk_mle_normal
from cumulant.families.risk.quadrature import gamma_blocks, normal_nodes
from cumulant.families.special import excess_numpy


class NormalRisk(NamedTuple):
    """``total = bias + variance``, and ``E theta_n``, whose member of the family the bias is about."""

    total: Any
    bias: Any
    variance: Any
    expected_natural: Any


def risk_map_normal1d(n: Any, n0: Any, prior_mean: Any, true_mean: Any) -> NormalRisk:
    """Risk of the posterior mode in ``N(m, v)`` with both parameters unknown, split into bias and variance.

    The sample mean is ``N(m*, v*/n)`` and the centred sum of squares is an independent ``v* chi2_{n-1}``: a double
    integral, taken by the exponentially convergent rules of `quadrature`. Affine invariance brings the truth to
    ``N(0, 1)`` first, so that means far from zero lose no digits.

    Parameters
    ----------
    n, n0 : array
        Number of observations and strength of the prior; they broadcast. With ``n0 = 0`` (the MLE) the risk is infinite
        for ``n <= 3``.
    prior_mean, true_mean : pair of float
        Mean parameters ``(E x, E x^2)`` of the prior and of the truth.

    Returns
    -------
    NormalRisk
        ``total``, ``bias``, ``variance`` (shape of ``n`` and ``n0``) and ``expected_natural`` (one more axis of
        length 2: ``E[m_n/v_n]``, ``E[-1/(2 v_n)]``).

    References
    ----------
    Le Priol (2021), thesis, figures 5.2, 5.3 and 5.8, where these numbers come from simulation.

    Examples
    --------
    >>> risk = risk_map_normal1d([0, 1, 10], 1.0, (1.0, 2.0), (0.0, 1.0))
    >>> risk.total.round(5), risk.bias.round(5)
    (array([0.5    , 0.46534, 0.10002]), array([0.5    , 0.30078, 0.01331]))
    """
    (n,) = integers(n=n)
    (n0,) = grid(n0=n0)
    n, n0 = np.broadcast_arrays(n, n0)
    m_true, v_true = _mean_and_variance("true_mean", true_mean)
    m_prior, v_prior = _mean_and_variance("prior_mean", prior_mean)
    scale = np.sqrt(v_true)
    shift, spread = (m_prior - m_true) / scale, v_prior / v_true
    rows = np.array([_standard(int(a), float(b), shift, spread) for a, b in zip(n.ravel(), n0.ravel(), strict=True)])
    rows = rows.reshape(*n.shape, 5)
    # Back from y = (x - m*)/s: theta_0 y + theta_1 y^2 in terms of x.
    first, second = rows[..., 3], rows[..., 4]
    with np.errstate(invalid="ignore"):
        natural = np.stack([first / scale - 2 * second * m_true / v_true, second / v_true], axis=-1)
    # Without an expectation (the MLE of up to three points) the parameter is off at infinity, along with the risk.
    natural = np.where(np.isnan(natural), np.inf, natural)
    return NormalRisk(rows[..., 0][()], rows[..., 1][()], rows[..., 2][()], natural)


def _mean_and_variance(name, mu):
    mu = np.asarray(mu, dtype=np.float64)
    if mu.shape != (2,):
        raise ValueError(f"{name} must be a pair (E x, E x^2); got shape {mu.shape}")
    variance = mu[1] - mu[0] ** 2
    if not (np.all(np.isfinite(mu)) and variance > 0):
        raise DomainError(f"{name} must have E x^2 > (E x)^2, a positive variance; got {mu}")
    return float(mu[0]), float(variance)


def _standard(n: int, n0: float, shift: float, spread: float) -> tuple[float, float, float, float, float]:
    """Total, bias, variance, E theta_0, E theta_1 for the truth N(0, 1) and the prior N(shift, spread)."""
    if n0 == 0:
        if n <= 3:
            return np.inf, np.inf, np.inf, np.nan, -np.inf
        # E theta_n = n/(n-3) theta*, and what remains is the known total.
        total, bias = float(risk_mle_normal(n)), 0.5 * float(excess_numpy(np.asarray(3 / (n - 3))))
        return total, bias, total - bias, 0.0, -0.5 * n / (n - 3)
    if n == 0:
        mean, variance, weight = np.array([shift]), np.array([spread]), np.ones(1)
    else:
        mean, variance, weight = _law_of_the_mode(n, n0, shift, spread)
    first, second = float(np.sum(weight * mean / variance)), float(np.sum(weight * -0.5 / variance))
    centre_variance = -0.5 / second
    centre_mean = first * centre_variance
    total = float(np.sum(weight * _kl(0.0, 1.0, mean, variance)))
    bias = float(_kl(0.0, 1.0, np.float64(centre_mean), np.float64(centre_variance)))
    split = float(np.sum(weight * _kl(centre_mean, centre_variance, mean, variance)))
    return total, bias, split, first, second


def _kl(m, v, mean, variance):
    return 0.5 * ((m - mean) ** 2 / variance + excess_numpy((v - variance) / variance))


def _law_of_the_mode(n, n0, shift, spread):
    """Means, variances and weights of the estimate: nodes over the sample mean (rows) and the sum of squares (columns).

    ``v_n = (n0 v0 + SS)/(n0+n) + n0 n (m0 - xbar)^2/(n0+n)^2``: sums of positive terms. As a function of the sample
    mean it vanishes at a distance ``sqrt(v0 (n0+n)/n)`` from the real line, which is what limits the rule there.
    """
    total = n0 + n
    g, weight = normal_nodes(np.sqrt(spread * total))
    sample = g / np.sqrt(n)
    between = n0 * n * (shift - sample) ** 2 / total**2
    mean = (n0 * shift + n * sample) / total
    if n == 1:
        return mean, n0 * spread / total + between, weight
    shape = np.full(1, (n - 1) / 2)
    ((_, t, inner),) = gamma_blocks(shape, np.array([n0 * spread / 2]))
    squares = (n - 1) * np.exp(t[0])
    variance = (n0 * spread + squares)[None, :] / total + between[:, None]
    return np.broadcast_to(mean[:, None], variance.shape), variance, weight[:, None] * inner
