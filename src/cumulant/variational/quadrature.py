"""Expectations of the loss of a row under a normal score, with a bound on their error.

The trapezoidal rule converges geometrically for functions that are analytic in a strip: for ``f(u) = g(mean + scale u)
phi(u)`` with ``|g| <= 1`` in the strip of half-width ``a`` the error is at most ``2 exp(a^2 / 2) / (exp(2 pi a / h) -
1)`` (Trefethen and Weideman 2014, theorem 5.1). The derivatives of the logistic loss are bounded by one where the
imaginary part of the score is at most ``pi / 2``, so that ``a = pi / (2 scale)``.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from cumulant.errors import DomainError
from cumulant.variational.quadrature_kernels import logistic_expectations

LIKELIHOODS = ("normal", "bernoulli", "poisson")
_REACH = 8.5  # standard deviations: beyond, a normal variable is with probability 2e-17
_ERROR = 1e-14  # of a rule
_MOST = 2e9  # nodes altogether: about a minute
_UNIT = 2.0**-52


class Expectations(NamedTuple):
    """``E psi(s)``, ``E psi'(s)``, ``E psi''(s)`` for each row, and a bound on the error of any of the derivatives."""

    value: np.ndarray
    first: np.ndarray
    second: np.ndarray
    error: np.ndarray


def expectations(
    likelihood: str, y: np.ndarray, noise: float, means: np.ndarray, scales: np.ndarray, doubt: Any = 0.0
) -> Expectations:
    """For the loss ``psi(s) = -log p(y | s)``: ``(s - y)^2 / (2 noise^2)``, ``log(1 + exp(-y s))`` with signs ``y``, or
    ``exp(s) - y s``. In closed form but for the second. `doubt` is how far means and scales may be off, added up: the
    derivatives move by at most the largest curvature of the loss times that.

    >>> found = expectations("bernoulli", np.array([1.0]), 1.0, np.array([0.0]), np.array([0.0]))
    >>> found.value.round(6), found.second
    (array([0.693147]), array([0.25]))
    """
    if likelihood == "normal":
        precision = 1 / noise**2
        residual = means - y
        second = np.full_like(means, precision)
        error = 8 * _UNIT * precision * np.maximum(np.abs(means) + np.abs(y), 1.0) + precision * doubt
        return Expectations((residual**2 + scales**2) * precision / 2, residual * precision, second, error)
    if likelihood == "poisson":
        with np.errstate(over="ignore", invalid="ignore"):  # where counts overflow the error is no number
            rate = np.exp(means + scales**2 / 2)
            moved = rate * np.expm1(doubt * (1 + scales + doubt))
        error = 8 * _UNIT * (rate * (1 + np.abs(means) + scales**2) + y) + moved
        return Expectations(rate - y * means, rate - y, rate, error)
    # The longest steps with an error below `_ERROR`: h = 2 pi a / (log(2 / error) + a^2 / 2), a at most pi / (2 scale).
    log = math.log(2.0 / _ERROR) + 1e-6
    strip = np.minimum(np.pi / 2 / np.maximum(scales, 1e-300), math.sqrt(2 * log))
    steps = 2 * np.pi * strip / (log + strip**2 / 2)
    halves = np.ceil(_REACH / steps)
    if not 2 * halves.sum() <= _MOST:
        raise DomainError(
            f"scores have standard deviations up to {scales.max():.3g}: scale the columns of X or tighten the prior"
        )
    value, first, second = (np.empty_like(means) for _ in range(3))
    logistic_expectations(y * means, scales, steps, halves.astype(np.int64), value, first, second)
    error = 2 * _ERROR + 4 * (halves + 1) * _UNIT + 8 * _UNIT * (np.abs(means) + scales) + doubt / 4
    return Expectations(value, y * first, second, error)
