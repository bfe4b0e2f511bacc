"""Constants that no natural parameter holds, fitted by profile likelihood.

`NegativeBinomial(successes)`, `WeibullKnownShape(shape)`, `ParetoKnownMinimum(minimum)` and
`LaplaceKnownCentre(centre)` are exponential families once the constant is known, and not before. The profile likelihood
of the constant is the likelihood at its best, over all natural parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln, logsumexp

from cumulant.errors import DomainError, NoEstimateError
from cumulant.families.base import ExponentialFamily
from cumulant.families.bernoulli import NegativeBinomial
from cumulant.families.estimate import Estimate, standard_deviations
from cumulant.families.gamma_type import LaplaceKnownCentre, ParetoKnownMinimum, WeibullKnownShape

_FAR = 30.0  # in units of log: an interval that reaches so far is called infinite


@dataclass(frozen=True, eq=False)
class Profile:
    """A constant of a family and its natural parameter, fitted together.

    Attributes
    ----------
    name : str
        Of the constant.
    value : float
        Its maximum-likelihood value.
    interval : tuple of float
        Where the profile log likelihood is within half a chi-squared quantile of its maximum: an approximation for
        large samples (Wilks 1938). The upper end for `NegativeBinomial` may be infinite: a Poisson distribution is then
        among the plausible ones. For `ParetoKnownMinimum` the interval is exact.
    level : float
        The nominal coverage of the interval.
    estimate : Estimate
        Of the family with the constant at its value. Its standard errors take the constant as known; its `aic` and
        `bic` charge for it.
    """

    name: str
    value: float
    interval: tuple[float, float]
    level: float
    estimate: Estimate

    @property
    def family(self) -> ExponentialFamily:
        """The family, with the constant at its value."""
        return self.estimate.family

    def __str__(self):
        low, high = self.interval
        line = (
            f"  {self.name} = {self.value:.6g}   {100 * self.level:g}%: [{low:.6g}, {high:.6g}] by profile likelihood"
        )
        return f"{self.estimate}\n{line}"


def profile(family: type[ExponentialFamily], x: Any, *, level: float = 0.95) -> Profile:
    """Fit the constant of a family by profile likelihood, with an interval.

    Parameters
    ----------
    family : class
        `NegativeBinomial`, `WeibullKnownShape`, `ParetoKnownMinimum` or `LaplaceKnownCentre`: the class, not an
        instance.
    x : array (n,)
        The observations.
    level : float
        The nominal coverage of the interval.

    Notes
    -----
    Each profile likelihood has one maximum: of the negative binomial where the variance of the counts exceeds their
    mean, and none otherwise (Levin and Reeds 1977); of the Weibull because ``log sum x^k`` is convex in ``k``. The
    maximum is found as the one change of sign of the derivative.

    Examples
    --------
    >>> fit = profile(NegativeBinomial, [0, 0, 1, 7, 2, 0, 12, 3])
    >>> round(fit.value, 4)
    0.5299
    """
    standard_deviations(level)  # an error if there is no such level
    found = _PROFILES.get(family)
    if found is None:
        names = ", ".join(each.__name__ for each in _PROFILES)
        instead = {"GammaKnownShape": "Gamma", "NormalKnownMean": "Normal", "NormalKnownVariance": "Normal"}
        name = getattr(family, "__name__", repr(family))
        advice = f"; {instead[name]}() fits both" if name in instead else ""
        raise TypeError(f"family must be one of the classes {names}; got {name}{advice}")
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 1 or x.size < 2 or not np.isfinite(x).all():
        raise DomainError(f"x must be a vector of at least two finite observations; got shape {x.shape}")
    name, fit = found
    value, interval = fit(x, level)
    estimate = family(**{name: value}).estimate(x)
    return Profile(name, value, interval, level, replace(estimate, chosen=(name,)))


def _negative_binomial(x, level):
    if not ((x >= 0) & (x == np.floor(x))).all():
        raise DomainError(f"data of NegativeBinomial must have {NegativeBinomial.support}")
    mean, n = x.mean(), x.size
    if not x.var() > mean:
        raise NoEstimateError(
            f"no finite number of successes maximises the likelihood: the variance {x.var():.6g} of the counts does "
            f"not exceed their mean {mean:.6g}, and the likelihood keeps growing towards that of Poisson()"
        )
    values, counts = np.unique(x, return_counts=True)

    def log_likelihood(r):
        rises = counts @ (gammaln(values + r) - gammaln(values + 1)) - n * gammaln(r)
        return rises - n * (r * np.log1p(mean / r) + mean * np.log1p(r / mean))

    def score(r):
        return counts @ (digamma(values + r) - digamma(r)) - n * np.log1p(mean / r)

    best = _only_root(score, mean * mean / (x.var() - mean))
    return best, _positive_ends(log_likelihood, best, level)


def _weibull(x, level):
    if not (x > 0).all():
        raise DomainError(f"data of WeibullKnownShape must have {WeibullKnownShape.support}; got {x.min():g}")
    logs, n = np.log(x) - np.log(x).mean(), x.size
    if not np.ptp(logs) > 1e-12:
        raise NoEstimateError(f"no finite shape maximises the likelihood: all {n} observations are equal")

    def log_likelihood(k):
        return n * (np.log(k) - logsumexp(k * logs) + np.log(n) - 1 - np.log(x).mean())

    def score(k):
        return 1 / k - np.average(logs, weights=np.exp(k * (logs - logs.max())))

    best = _only_root(score, 1.2 / logs.std())
    return best, _positive_ends(log_likelihood, best, level)


def _pareto(x, level):
    """The smallest observation. ``(n - 1) log(x_(1) / minimum) n / sum log(x / x_(1))`` has the F distribution with 2
    and ``2 n - 2`` degrees of freedom, whatever the exponent (Malik 1970): the interval is exact.
    """
    smallest = float(x.min())
    if not smallest > 0:
        raise DomainError(f"data of ParetoKnownMinimum must be positive; got {smallest:g}")
    spread = np.log(x / smallest).mean()
    return smallest, (float(smallest * np.exp(-spread * np.expm1(-np.log1p(-level) / (x.size - 1)))), smallest)


def _laplace(x, level):
    best, scale = float(np.median(x)), float(np.abs(x - np.median(x)).mean())
    if not scale > 0:
        raise NoEstimateError(f"no finite scale maximises the likelihood: all {x.size} observations are equal")
    ends = _ends(lambda y: -x.size * np.log(np.abs(x - best - scale * y).mean()), level)
    return best, (best + scale * ends[0], best + scale * ends[1])


class _Constant(NamedTuple):
    name: str
    fit: Callable


_PROFILES: dict[type, _Constant] = {
    NegativeBinomial: _Constant("successes", _negative_binomial),
    WeibullKnownShape: _Constant("shape", _weibull),
    ParetoKnownMinimum: _Constant("minimum", _pareto),
    LaplaceKnownCentre: _Constant("centre", _laplace),
}


def _only_root(score, guess):
    """The zero of a function that changes from positive to negative once on the positive numbers."""
    low = high = guess
    while score(low) <= 0:
        low /= 2
    while score(high) >= 0:
        high *= 2
    root: Any = brentq(score, low, high, xtol=1e-300, rtol=np.float64(1e-14))
    return float(root)


def _positive_ends(log_likelihood, best, level):
    low, high = _ends(lambda y: log_likelihood(best * np.exp(y)), level)
    return float(best * np.exp(low)), float(best * np.exp(high))


def _ends(log_likelihood, level):
    """Where a function with its maximum at zero is half a chi-squared quantile lower, on both sides; infinite where
    that is farther than thirty.
    """
    threshold = log_likelihood(0.0) - 0.5 * standard_deviations(level) ** 2

    def end(sign):
        inner, outer = 0.0, 0.01
        while log_likelihood(sign * outer) > threshold:
            inner, outer = outer, 2 * outer
            if outer > _FAR:
                return sign * np.inf
        root: Any = brentq(lambda y: log_likelihood(sign * y) - threshold, inner, outer)
        return sign * float(root)

    return end(-1), end(1)
