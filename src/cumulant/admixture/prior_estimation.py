"""The parameter of a symmetric Dirichlet distribution from counts."""

import numpy as np
from scipy.special import digamma


def symmetric_prior(counts: np.ndarray, start: float, *, least: float = 1e-4, most: float = 1e4) -> float:
    """The parameter ``a`` that maximises the probability of rows of counts, each multinomial with Dirichlet(a) shares.

    Minka's fixed point (Minka 2000, "Estimating a Dirichlet distribution", equation 55): with ``K`` columns and row
    sums ``N_d``,

        a <- a sum_dk (psi(n_dk + a) - psi(a)) / (K sum_d (psi(N_d + K a) - psi(K a))),

    which never lowers the likelihood. Kept between `least` and `most`: rows of single entries, or rows all alike, have
    their maximum at zero or at infinity.

    Examples
    --------
    >>> shares = np.random.default_rng(0).dirichlet(np.full(5, 0.3), size=2000)
    >>> counts = np.array([np.random.default_rng(i).multinomial(100, row) for i, row in enumerate(shares)])
    >>> bool(abs(symmetric_prior(counts, 1.0) - 0.3) < 0.02)
    True
    """
    rows = counts.sum(axis=1)
    k, value = counts.shape[1], float(start)
    if k == 1 or not rows.any():
        return value
    entries, times = np.unique(counts[counts > 0], return_counts=True)
    lengths, each = np.unique(rows[rows > 0], return_counts=True)
    for _ in range(1000):
        above = times @ (digamma(entries + value) - digamma(value))
        below = k * (each @ (digamma(lengths + k * value) - digamma(k * value)))
        before, value = value, float(np.clip(value * above / below, least, most))
        if abs(value - before) <= 1e-6 * value:
            break
    return value
