"""Exact expected Kullback-Leibler divergence ``E KL(p_truth || p_estimate)`` after ``n`` observations.

The estimate is the maximum-likelihood one, or the mode of the posterior (in natural coordinates) under a conjugate
prior of mean ``mu0`` and strength ``n0``: ``mu_n = (n0 mu0 + sum T(x_i)) / (n0 + n)``. All functions broadcast their
arguments against each other, return infinity where the expectation is infinite, and are accurate to about 1e-13.

References
----------
Le Priol (2021), thesis, chapter 5. The posterior-mode risks and the risk of the full normal family are not there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cumulant.families.risk._arguments import grid, integers
from cumulant.families.risk.quadrature import gamma_blocks
from cumulant.families.special import excess_numpy, log_minus_digamma


class Split(NamedTuple):
    """The bias-variance split of an expected divergence: ``total = bias + variance`` (Le Priol 2021, theorem 5.5.2).

    With ``theta~ = E theta_n``: bias is ``KL(truth || theta~)``, variance is ``E KL(theta~ || theta_n)``.
    """

    total: Any
    bias: Any
    variance: Any


def risk_mle_gamma(n: Any, alpha: Any) -> Any:
    """Risk of the MLE in a family with ``A(theta) = -alpha log(-theta)``: a variance, a rate, a scale.

    ``alpha (1/(n alpha - 1) + digamma(n alpha) - log(n alpha))``, infinite for ``n alpha <= 1`` (Le Priol 2021, 5.49).
    It does not depend on the truth.

    Parameters
    ----------
    n : array
        Number of observations.
    alpha : array
        1/2 for the variance of a normal, 1 for the exponential, Laplace, Pareto, Weibull and Rayleigh families, the
        shape for gamma.

    Examples
    --------
    >>> risk_mle_gamma([2, 3, 5, 100], 0.5).round(6)
    array([     inf, 0.815512, 0.226766, 0.005187])
    """
    n, alpha = grid(positive=("alpha",), n=n, alpha=alpha)
    return _without_prior(n * alpha, np.ones_like(n), alpha, _divergence)[()]


def risk_map_gamma(n: Any, n0: Any, ratio: Any, alpha: Any) -> Any:
    """Risk of the posterior mode in a family with ``A(theta) = -alpha log(-theta)``, by quadrature to rounding error.

    ``alpha E phi(z)``, ``phi(z) = z - 1 - log z``, ``z = mu*/mu_n = (n0 + n) / (n0 r + n G)`` where ``alpha n G`` is
    ``Gamma(n alpha, 1)``. Infinite only where there is no prior (``n0 r = 0``) and ``n alpha <= 1``.

    Parameters
    ----------
    n : array
        Number of observations; 0 is the prior alone.
    n0 : array
        Strength of the prior, in observations; 0 is the MLE.
    ratio : array
        ``r = mu0 / mu*``, prior mean over true mean.
    alpha : array
        See `risk_mle_gamma`.

    Examples
    --------
    The whole plane of priors in one call:

    >>> risk_map_gamma(5, np.array([[0.1], [1.0]]), np.array([1.0, 2.0, 3.0]), 0.5).round(5)
    array([[0.19121, 0.16362, 0.14275],
           [0.08941, 0.04596, 0.03877]])
    """
    return expectation_map_gamma(n, n0, ratio, alpha, _divergence)


def symmetrised_risk_map_gamma(n: Any, n0: Any, ratio: Any, alpha: Any) -> Any:
    """``E [KL(truth || estimate) + KL(estimate || truth)]``, which the bounds of Le Priol (2021) are about.

    ``alpha E (z - 1)^2 / z``, with the arguments of `risk_map_gamma`. For the MLE: ``alpha / (n alpha - 1)``.

    >>> float(symmetrised_risk_map_gamma(5, 1, 1, 0.5).round(6))
    0.15568
    """
    return expectation_map_gamma(n, n0, ratio, alpha, _both_ways)


def expected_inverse(n: Any, n0: Any, ratio: Any, alpha: Any) -> Any:
    """``E[mu*/mu_n] = E[theta_n/theta*]``, how far the natural parameter is off on average.

    ``(n0 + n) alpha e^b E_{n alpha}(b)`` with ``b = alpha n0 r`` and the exponential integral ``E_p``
    (Le Priol 2021, 5.77), with the arguments of `risk_map_gamma`. For the MLE: ``n alpha / (n alpha - 1)``.

    >>> float(expected_inverse(1, 1, 1, 0.5).round(6))
    1.311359
    """
    return expectation_map_gamma(n, n0, ratio, alpha, _inverse)


def bias_variance_gamma(n: Any, n0: Any, ratio: Any, alpha: Any) -> Split:
    """The bias-variance split of `risk_map_gamma`: bias ``alpha phi(E z)``, variance ``alpha (log E z - E log z)``.

    For the MLE (``n0 = 0``) the bias is ``alpha (1/(n alpha - 1) + log(1 - 1/(n alpha)))``, of order ``1/n^2``, and
    the variance ``alpha (digamma(n alpha) - log(n alpha - 1))`` (Le Priol 2021, 5.115-5.118). Where the risk is
    infinite, so are both parts.

    >>> split = bias_variance_gamma([5, 10], 0, 1, 0.5)
    >>> split.bias.round(6), split.variance.round(6)
    (array([0.077921, 0.013428]), array([0.148846, 0.059912]))
    """
    n, n0, ratio, alpha = grid(positive=("alpha",), n=n, n0=n0, ratio=ratio, alpha=alpha)
    inverse = np.asarray(expected_inverse(n, n0, ratio, alpha))
    bias = alpha * excess_numpy(inverse - 1.0)
    variance = np.where(n == 0, 0.0, expectation_map_gamma(n, n0, ratio, alpha, _spread, inverse))
    return Split((bias + variance)[()], bias[()], variance[()])


# Families of gamma type: E f(z) for z = mu*/mu_n. Integrands are given z - 1, which is known without cancellation.


def _divergence(excess, alpha, _):
    return alpha * excess_numpy(excess)


def _both_ways(excess, alpha, _):
    endless = np.isinf(excess)
    finite = np.where(endless, 0.0, excess)
    return np.where(endless, np.inf, alpha * finite * (finite / (1.0 + finite)))


def _inverse(excess, alpha, _):
    return 1.0 + excess


def _spread(excess, alpha, centre):
    """``alpha phi(z / centre)``, whose mean is ``alpha (log E z - E log z)`` when the centre is ``E z``."""
    known = np.isfinite(centre)
    scaled = (np.where(known, excess, 0.0) - (np.where(known, centre, 1.0) - 1.0)) / np.where(known, centre, 1.0)
    return np.where(known, alpha * excess_numpy(scaled), np.inf)


def expectation_map_gamma(n: Any, n0: Any, ratio: Any, alpha: Any, integrand: Callable, centre: Any = 1.0) -> Any:
    """``E integrand(z - 1, alpha, centre)`` for ``z = mu*/mu_n``, with the arguments of `risk_map_gamma`.

    The integrands of this file also have closed forms without a prior; others need ``n0 r > 0`` or ``n = 0``.
    """
    n, n0, ratio, alpha = grid(positive=("alpha",), n=n, n0=n0, ratio=ratio, alpha=alpha)
    answer = np.empty(n.size)
    flat = [each.ravel() for each in (n, n0, ratio, alpha, np.broadcast_to(centre, n.shape))]
    n_, n0_, r, al, c = flat
    a = n0_ * r
    alone, bare = (n_ == 0), (n_ > 0) & (a == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # No data: mu_n = mu0. With neither data nor prior there is no estimate at all, as bad as mu_n = 0.
        excess = np.where(n0_[alone] > 0, (1.0 - r[alone]) / r[alone], np.inf)
        answer[alone] = integrand(excess, al[alone], c[alone])
        factor = (n0_[bare] + n_[bare]) / n_[bare]
    answer[bare] = _without_prior(n_[bare] * al[bare], factor, al[bare], integrand, c[bare])
    rest = np.flatnonzero(~(alone | bare))
    for index, t, weight in gamma_blocks(n_[rest] * al[rest], a[rest] * al[rest]):
        each = rest[index]
        m, m0, ratio_, prior = n_[each, None], n0_[each, None], r[each, None], a[each, None]
        with np.errstate(over="ignore"):  # a risk beyond 1e308 is infinite
            excess = (m0 * (1.0 - ratio_) - m * np.expm1(t)) / (prior + m * np.exp(t))
            value = integrand(excess, al[each, None], c[each, None])
            # Where the density has died, the integrand may be infinite.
            answer[each] = np.sum(np.multiply(weight, value, where=weight > 0, out=np.zeros_like(weight)), axis=1)
    return answer.reshape(n.shape)[()]


def _without_prior(p, factor, alpha, integrand, centre=None):
    """``z = factor p / W``, ``W ~ Gamma(p, 1)``: closed forms; `factor` is ``(n0 + n) / n``, 1 for the MLE."""
    finite = p > 1.0
    p = np.where(finite, p, 2.0)
    tail = 1.0 / (p - 1.0)
    if integrand is _divergence:
        value = alpha * (excess_numpy(factor - 1.0) + factor * tail - log_minus_digamma(p))
    elif integrand is _both_ways:
        value = alpha * ((factor - 1.0) ** 2 / factor + factor * tail)
    elif integrand is _inverse:
        value = factor * (1.0 + tail)
    elif integrand is _spread:  # E z is factor p / (p - 1), and log E z - E log z does not depend on the factor
        value = alpha * (np.log1p(tail) - log_minus_digamma(p))
    elif p.size == 0:
        return p
    else:
        raise NotImplementedError(f"{integrand.__name__} has no closed form without a prior")
    return np.where(finite, value, np.inf)


# Normal families ----------------------------------------------------------------------------------------------------


def risk_mle_covariance(n: Any, d: Any) -> Any:
    """Risk of the maximum-likelihood covariance of a ``d``-dimensional normal with known mean.

    ``p/(n-d-1) + (sum_{i<d} digamma((n-i)/2) - d log(n/2)) / 2``, ``p = d(d+1)/2``; infinite for ``n <= d + 1``
    (Le Priol 2021, 5.58). For ``d = 1`` it is `risk_mle_gamma` with ``alpha = 1/2``.

    >>> risk_mle_covariance([3, 4, 15], 2).round(6)
    array([     inf, 2.53649 , 0.144868])
    """
    n, d = integers(n=n, d=d)
    finite = n > d + 1
    n = np.where(finite, n, d + 2)
    value = d * (d + 1) / 2 / (n - d - 1) - 0.5 * log_determinant_gap(n, 0.0, d)
    return np.where(finite, value, np.inf)[()]


def risk_mle_normal(n: Any, d: Any = 1) -> Any:
    """Risk of the maximum-likelihood mean and covariance of a ``d``-dimensional normal.

    ``(d(d+3)/(n-d-2) + sum_{i<d} digamma((n-1-i)/2) - d log(n/2)) / 2``, infinite for ``n <= d + 2``. From the
    independence of the sample mean and covariance, and ``E S^-1 = Sigma^-1 n/(n-d-2)``.

    >>> risk_mle_normal([3, 4, 10]).round(6)
    array([     inf, 1.671671, 0.175431])
    """
    n, d = integers(n=n, d=d)
    finite = n > d + 2
    n = np.where(finite, n, d + 3)
    value = 0.5 * (d * (d + 3) / (n - d - 2) - log_determinant_gap(n, 1.0, d))
    return np.where(finite, value, np.inf)[()]


def risk_mle_isotropic(n: Any, d: Any) -> Any:
    """Risk of the maximum-likelihood mean and common variance of ``d`` independent normal coordinates.

    With ``v_n = v* chi2_{d(n-1)} / (n d)`` independent of the mean:
    ``(d/2) ((n + 1) d/(d (n-1) - 2) - 1 + digamma(d (n-1)/2) - log(n d/2))``; infinite for ``d (n - 1) <= 2``. For
    ``d = 1`` it is `risk_mle_normal`.

    >>> risk_mle_isotropic([2, 3, 10], 2).round(6)
    array([     inf, 2.324172, 0.213056])
    """
    n, d = integers(n=n, d=d)
    degrees = d * (n - 1)
    finite = degrees > 2
    n, degrees = np.where(finite, n, 4.0), np.where(finite, degrees, 3.0 * d)
    gap = log_minus_digamma(degrees / 2) - np.log1p(-1.0 / n)
    return np.where(finite, 0.5 * d * ((2 * d + 2) / (degrees - 2) - gap), np.inf)[()]


def log_determinant_gap(n, lost, d):
    """``sum_{i<d} [log(n/2) - digamma((n - lost - i)/2)]``, term by term so that large ``n`` loses no digits.

    ``E log det`` of a Wishart matrix over ``n``, with `lost` degrees of freedom spent on the mean.
    """
    total = np.zeros(np.shape(n))
    for i in range(int(np.max(d, initial=1.0))):
        here = i < d
        degrees = np.where(here, n - lost - i, 1.0)
        gap = log_minus_digamma(degrees / 2) - np.log1p(-(lost + i) / np.where(here, n, lost + i + 1.0))
        total = total + np.where(here, gap, 0.0)
    return total


def risk_map_quadratic(n: Any, n0: Any, d: Any, distance: Any) -> Any:
    """Risk of the posterior mode where ``A*`` is quadratic: the mean of a normal with known covariance.

    ``(n d + n0^2 D^2) / (2 (n + n0)^2)`` with ``D = |mu* - mu0|`` in the metric of the inverse covariance
    (Le Priol 2021, 5.26); ``d/(2n)`` for the MLE. With no data and no prior: infinite.

    >>> float(risk_map_quadratic(3, 1, 2, 1.0))
    0.21875
    """
    n, n0, d, distance = grid(positive=("d",), n=n, n0=n0, d=d, distance=distance)
    total = n + n0
    some = total > 0
    total = np.where(some, total, 1.0)
    return np.where(some, 0.5 * (n / total * (d / total) + (n0 / total * distance) ** 2), np.inf)[()]
