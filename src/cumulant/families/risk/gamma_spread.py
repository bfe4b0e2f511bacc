"""The spread of a gamma sample, ``log mean(x) - mean(log x)``, and what the optimality gap of a batch is from it."""

import numpy as np
from scipy.special import gammaln, loggamma

from cumulant.families.inverses import inverse_digamma_gap
from cumulant.families.special import log_minus_digamma
from cumulant.precision import float64, to_numpy

_NODES = 32  # of the contour
_FEW = 16  # draws, up to which the contour serves


def gamma_gap(shape: float, k: int) -> float:
    """``E A*(mean of T over k draws) - A*(mu*)`` of a gamma with unknown shape and rate, for ``k >= 2``.

    Of the statistics, ``A*`` depends on ``s = log mean(x) - mean(log x)`` and on a linear function: it is ``F(s) =
    a log a - a - log Gamma(a) - a s`` at the ``a`` with ``log a - digamma(a) = s``. ``exp(-k s)`` is a product of
    independent ``Beta(shape, j/k)``, ``j = 1, ..., k - 1`` (Glaser 1976), with moments in closed form; the density of
    ``s`` is their Laplace transform inverted: on Talbot's contour (Weideman 2006), or for more than 16 draws, where
    the transform falls fast, on the imaginary axis. The integral is the trapezoidal rule in ``log s``: about 1e-8.

    >>> round(gamma_gap(2.0, 2), 4), round(100 * gamma_gap(2.0, 100), 2)     # towards 2/2 over the batch
    (0.9818, 1.01)
    """
    truth, share = float(log_minus_digamma(shape)), float(np.sqrt(2.0 / (k - 1)))
    mean = truth - float(log_minus_digamma(k * shape))  # of the spread
    low = np.log(mean) - 80.0 / (k - 1) - 9.0 * share
    high = np.log(mean * (1.0 + 9.0 * share) + 45.0 / (shape * k))
    s = np.exp(np.linspace(low, high, 1 + int(np.ceil((high - low) / min(0.02, 0.1 * share)))))
    density = np.asarray((_density if k <= _FEW else _density_of_many)(s, shape, k))
    weight = s * density.clip(min=0.0)
    return float(weight @ (_conjugate(s) - _conjugate(np.array([truth]))) / weight.sum())


def _conjugate(s):
    """``F``."""
    with float64():
        a = to_numpy(inverse_digamma_gap(np.asarray(s)))
    safe = np.minimum(a, 1e4)
    plain = safe * np.log(safe) - safe - gammaln(safe)
    series = 0.5 * np.log(a / (2 * np.pi)) - 1 / (12 * a)  # Stirling's: the terms before it cancel
    return np.where(a > 1e4, series, plain) - a * s


def _density(s, shape, k):
    """Of the spread, by ``z(t) = n/y (0.5017 t cot(0.6407 t) - 0.6122 + 0.2645 i t)``, ``y = k s``."""
    y = (k * s)[:, None]
    t = np.pi * (2 * np.arange(_NODES // 2) + 1) / _NODES
    z = _NODES / y * (0.5017 * t / np.tan(0.6407 * t) - 0.6122 + 0.2645j * t)
    slope = _NODES / y * (0.5017 / np.tan(0.6407 * t) - 0.5017 * 0.6407 * t / np.sin(0.6407 * t) ** 2 + 0.2645j)
    return np.imag(np.exp(_log_transform(z, shape, k) + z * y) * slope).sum(axis=1)


def _density_of_many(s, shape, k):
    reach = shape * np.sqrt(np.expm1(78.0 / (k - 1)))  # |M| < |1 + z / shape|^(-(k-1)/2)
    frequencies = np.arange(0.0, reach, np.pi / (1.1 * k * s[-1]))
    transform = np.exp(_log_transform(1j * frequencies, shape, k))
    transform[0] *= 0.5
    return np.concatenate(
        [np.real(np.exp(1j * k * part[:, None] * frequencies) @ transform) for part in np.array_split(s, 32)]
    )


def _log_transform(z, shape, k):
    """``log E exp(-z k s)``; with ``w = shape + z`` and Binet's ``mu(w) = log Gamma(w) - (w - 1/2) log w + w``, it is
    ``-(k-1)/2 log w + k mu(w) - mu(k w)`` but for a constant: Stirling's terms have been cancelled by hand.
    """
    w = shape + z
    return -0.5 * (k - 1) * np.log(w / shape) + k * (_binet(w) - _binet(shape)) - _binet(k * w) + _binet(k * shape)


def _binet(w):
    w = np.asarray(w, dtype=np.complex128)
    large = np.abs(w) > 30.0
    far, near = np.where(large, w, 1.0), np.where(large, 1.0, w)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / far**2) / far**2) / far**2) / far
    return np.where(large, series, loggamma(near) - (near - 0.5) * np.log(near) + near - 0.5 * np.log(2 * np.pi))
