"""The constants of mirror descent for normals in any number of dimensions: integrals over one variable.

In coordinates in which the iterate has mean zero and unit variances the observation is ``u ~ N(delta, diag(lambda))``.
A step changes the covariance by a multiple of ``u u^T``, so that its inverse is a ratio with ``1 + kappa |u|^2`` below
(Sherman and Morrison). ``1/x = int exp(-t x) dt`` and ``log x = int (e^-t - e^(-t x)) / t dt`` leave expectations under
``exp(-t kappa |u|^2)``, which are those of another normal.
"""

import numpy as np
from scipy.linalg import solve_triangular

_STEP, _LOG_EPS = 0.2, 40.0  # of the trapezoidal rule in log t; e^-40 is below the rounding of a double


def full_constant(kind, gamma, mean, covariance, true_mean, true_covariance, known_mean=False) -> float:
    """The constant of `smd_assumption` where mean and covariance, or the covariance alone, are unknown."""
    root = np.linalg.cholesky(covariance)
    half = solve_triangular(root, np.linalg.cholesky(true_covariance), lower=True)
    vectors, sizes, _ = np.linalg.svd(half)
    spread = sizes**2
    delta = vectors.T @ solve_triangular(root, true_mean - mean, lower=True)
    if kind == "variance":
        kappa, factor = (gamma / (1 - gamma), (1 - gamma) ** -2) if known_mean else (gamma, 1 / (1 - gamma))
        return factor * _mean_of_ratio(spread, delta, kappa, 0.0 if known_mean else 1.0, 0.5, 0.5 * spread, 0.5)
    share = 2 * gamma
    if known_mean:
        shift, weight = 0.0, share
    elif share > 1 or (share == 1 and delta.any()):
        return np.inf
    else:
        shift, weight = (1 / (1 - share) if share < 1 else 1.0), share * (1 - share)
    # The covariance after a step is W + weight y y^T, W = I - share M and y = u + (shift - 1) delta.
    sizes, vectors = np.linalg.eigh(np.diag(spread) + shift * np.outer(delta, delta))
    if share * sizes[-1] >= 1:
        return np.inf
    scaled = np.sqrt(spread)[:, None] * vectors
    omega, turn = np.linalg.eigh(scaled / (1 - share * sizes) @ scaled.T)
    grown = _mean_of_log(weight * omega, turn.T @ (shift * delta / np.sqrt(spread)))
    return -(float(np.log1p(-share * sizes).sum()) + grown) / (4 * gamma**2)


def shared_constant(kind, gamma, mean, variance, true_mean, true_variance) -> float:
    """The same for coordinates with unknown means and one variance; of one coordinate, the normal family."""
    delta = (true_mean - mean) / np.sqrt(variance)
    d, ratio, squares = delta.size, true_variance / variance, float(delta @ delta)
    spread = np.full(d, ratio)
    if kind == "variance":
        middle = np.full(d, (d * ratio + squares) / (2 * d))
        return _mean_of_ratio(spread, delta, gamma / d, 1.0, 1 / (2 * d), middle, 0.0) / (1 - gamma)
    share = 2 * gamma
    if share > 1 or (share == 1 and delta.any()):
        return np.inf
    shift = 1 / (1 - share) if share < 1 else 1.0
    lost = share * (ratio + shift * squares / d)
    if lost >= 1:
        return np.inf
    grown = _mean_of_log(share * (1 - share) * spread / (d * (1 - lost)), shift * delta / np.sqrt(ratio))
    return -d * (float(np.log1p(-lost)) + grown) / (4 * gamma**2)


def _mean_of_ratio(spread, delta, kappa, linear, square, quadratic, product) -> float:
    """``E [linear (q - u.delta) + square q^2 - sum quadratic u^2 - product (u.delta)^2] / (1 + kappa q)``.

    ``u ~ N(delta, diag(spread))`` and ``q = |u|^2``.
    """
    t, width = _nodes(kappa * float(np.sum(spread + delta**2)))
    shrink = 1 / (1 + 2 * kappa * t[:, None] * spread)
    mean, variance = delta * shrink, spread * shrink
    log_mass = np.sum(0.5 * np.log(shrink) - kappa * t[:, None] * delta * mean, axis=1) - t
    second = variance + mean**2
    q, along = second.sum(axis=1), mean @ delta
    q_squared = q**2 + np.sum(2 * variance**2 + 4 * variance * mean**2, axis=1)
    value = linear * (q - along) + square * q_squared - second @ quadratic
    value -= product * (along**2 + variance @ delta**2)
    return float(np.sum(width * t * np.exp(log_mass) * value))


def _mean_of_log(weights, centres) -> float:
    """``E log(1 + sum_i weights_i (z_i + centres_i)^2)`` for standard normal ``z``."""
    t, width = _nodes(float(np.sum(weights * (1 + centres**2))))
    grown = t[:, None] * weights
    log_mass = -np.sum(0.5 * np.log1p(2 * grown) + grown * centres**2 / (1 + 2 * grown), axis=1)
    return float(np.sum(width * -np.expm1(log_mass) * np.exp(-t)))


def _nodes(scale):
    """Nodes ``t`` and the distance of their logarithms, for integrands that vary from ``1 / scale`` to 1."""
    return np.exp(np.arange(-_LOG_EPS - np.log1p(scale), np.log(2 * _LOG_EPS), _STEP)), _STEP
