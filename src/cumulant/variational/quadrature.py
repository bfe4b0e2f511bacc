"""Expectations of the loss of a row under a normal score, with a bound on their error.

The trapezoidal rule converges geometrically for functions that are analytic in a strip: for ``f(u) = g(mean + scale u)
phi(u)`` with ``|g| <= 1`` in the strip of half-width ``a`` the error is at most ``2 exp(a^2 / 2) / (exp(2 pi a / h) -
1)`` (Trefethen and Weideman 2014, theorem 5.1). The derivatives of the logistic loss are bounded by one where the
imaginary part of the score is at most ``pi / 2``, so that ``a = pi / (2 scale)``.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from cumulant.errors import DomainError
from cumulant.variational.quadrature_kernels import logistic_expectations

__all__ = ["LIKELIHOODS", "Expectations", "expectations"]

LIKELIHOODS = ("normal", "bernoulli", "poisson")
_REACH = 8.5  # standard deviations: beyond, a normal variable is with probability 2e-17
_LEVELS = 20  # the rule of level j has steps 0.75 * 2^(-j / 2)
_ERROR = 1e-14  # of a rule
_UNIT = 2.0**-52


class Expectations(NamedTuple):
    """``E psi(s)``, ``E psi'(s)``, ``E psi''(s)`` for each row, and a bound on the error of any of the derivatives."""

    value: np.ndarray
    first: np.ndarray
    second: np.ndarray
    error: np.ndarray


class _Rules(NamedTuple):
    nodes: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray
    widest: np.ndarray


@functools.cache
def _rules() -> _Rules:
    steps = 0.75 * 2.0 ** (-np.arange(_LEVELS) / 2)
    halves = np.ceil(_REACH / steps).astype(np.int64)
    nodes, weights = np.zeros((2, _LEVELS, 2 * halves.max() + 1))
    for level, (h, half) in enumerate(zip(steps, halves, strict=True)):
        u = h * np.arange(-half, half + 1)
        nodes[level, : u.size], weights[level, : u.size] = u, h * np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    # The smaller root of a^2 / 2 - 2 pi a / h + log(2 / error) is the narrowest strip that is wide enough.
    log = math.log(2.0 / _ERROR) + 1e-6
    strip = 2 * log / (2 * np.pi / steps + np.sqrt((2 * np.pi / steps) ** 2 - 2 * log))
    return _Rules(nodes, weights, 2 * halves + 1, np.pi / 2 / strip)


def expectations(likelihood: str, y: np.ndarray, noise: float, means: np.ndarray, scales: np.ndarray) -> Expectations:
    """For the loss ``psi(s) = -log p(y | s)``: ``(s - y)^2 / (2 noise^2)``, ``log(1 + exp(-y s))`` with signs ``y``, or
    ``exp(s) - y s``. In closed form but for the second.

    >>> found = expectations("bernoulli", np.array([1.0]), 1.0, np.array([0.0]), np.array([0.0]))
    >>> found.value.round(6), found.second
    (array([0.693147]), array([0.25]))
    """
    if likelihood == "normal":
        precision = 1 / noise**2
        residual = means - y
        second = np.full_like(means, precision)
        error = 8 * _UNIT * precision * np.maximum(np.abs(means) + np.abs(y), 1.0)
        return Expectations((residual**2 + scales**2) * precision / 2, residual * precision, second, error)
    if likelihood == "poisson":
        with np.errstate(over="ignore"):
            rate = np.exp(means + scales**2 / 2)
        error = 8 * _UNIT * (rate * (1 + np.abs(means) + scales**2) + y)
        return Expectations(rate - y * means, rate - y, rate, error)
    rules = _rules()
    levels = np.searchsorted(rules.widest, scales)  # a finer rule for wider scores
    if levels.max() >= _LEVELS:
        raise DomainError(
            f"scores have standard deviations up to {scales.max():.3g}, more than {rules.widest[-1]:.3g}: scale the "
            "columns of X or tighten the prior"
        )
    value, first, second = (np.empty_like(means) for _ in range(3))
    logistic_expectations(y * means, scales, levels, *rules[:3], value, first, second)
    error = 2 * _ERROR + 2 * rules.sizes[levels] * _UNIT * (1 + np.abs(means) + scales)
    return Expectations(value, y * first, second, error)
