"""The expected divergence by simulation, for any family, with error bars that admit where they mean nothing."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.families.base import ExponentialFamily
from cumulant.families.risk._arguments import natural_parameter, whole
from cumulant.families.risk.theories import strength_of, theory
from cumulant.families.statistics import ConjugatePrior
from cumulant.precision import float64, to_numpy
from cumulant.randomness import generator


@dataclass(frozen=True)
class MonteCarloRisk:
    """Simulated divergences ``KL(truth || estimate)`` for each sample size, summed up.

    Attributes
    ----------
    n : array
        Sample sizes; all that follows has this shape (`quantiles` one more axis, for the levels).
    value : array
        The mean over trials; infinite where the expectation is known to be, or where a trial had no estimate at all.
    standard_error : array
        Of the mean; infinite where the variance of the divergence is known to be infinite.
    reliable : array of bool
        Whether the error bar means something: two moments are known to be finite or, where nothing is known, the
        largest values do not look otherwise (Hill's estimate of the tail index above 2). With fewer than four finite
        moments it is still a poor estimate, and deviations of four standard errors are not rare: see `tail_index`.
    quantiles, levels : array
        Values that the divergence stays below in that share of the trials: they exist however heavy the tail.
    tail_index : array
        The supremum of the finite moments: known, or estimated where `tail_known` is false.
    trials : int
    """

    n: np.ndarray
    value: Any
    standard_error: Any
    reliable: Any
    quantiles: np.ndarray
    levels: np.ndarray
    tail_index: Any
    tail_known: bool
    trials: int


def monte_carlo_risk(
    family: ExponentialFamily,
    theta_star: Any,
    n: Any,
    prior: ConjugatePrior | None = None,
    *,
    trials: int = 10_000,
    levels: Any = (0.05, 0.5, 0.95),
    rng: Any = None,
) -> MonteCarloRisk:
    """Simulate the divergence ``KL(p_{theta*} || p_{theta_n})`` of the MLE, or of the posterior mode under `prior`.

    Parameters
    ----------
    family, theta_star
        The family and the natural parameter of the truth, shape ``(dim,)``.
    n : int or array of int
        Sample sizes.
    prior : ConjugatePrior, optional
        None: the maximum-likelihood estimate.
    trials : int
        Data sets per sample size.
    levels : sequence of float
        Levels of the quantiles.
    rng : int, numpy.random.Generator or None

    Examples
    --------
    >>> from cumulant.families import NormalKnownMean
    >>> risk = monte_carlo_risk(NormalKnownMean(), [-0.5], [3, 10], trials=2000, rng=0)
    >>> risk.reliable  # with three observations the variance of the divergence is infinite
    array([False,  True])
    >>> bool(abs(risk.value[1] - 0.07334) < 3 * risk.standard_error[1])  # the exact risk
    True
    """
    theta_star = natural_parameter(family, theta_star)
    sizes = np.asarray(n)
    levels = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    if not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"levels must be strictly between 0 and 1; got {levels}")
    trials, rng = whole("trials", trials), generator(rng)
    strength = strength_of(prior)
    rows = [
        _summary(family, theta_star, whole("n", each), prior, strength, trials, levels, rng) for each in sizes.ravel()
    ]
    value, error, reliable, index, quantiles = (np.asarray(column) for column in zip(*rows, strict=True))
    known = tail_index(family, 1, strength) is not None
    return MonteCarloRisk(
        n=sizes,
        value=value.reshape(sizes.shape)[()],
        standard_error=error.reshape(sizes.shape)[()],
        reliable=reliable.reshape(sizes.shape)[()],
        quantiles=quantiles.reshape(*sizes.shape, levels.size),
        levels=levels,
        tail_index=index.reshape(sizes.shape)[()],
        tail_known=known,
        trials=trials,
    )


def _summary(family, theta_star, n, prior, strength, trials, levels, rng):
    kl = divergences(family, theta_star, simulated_estimates(family, theta_star, n, prior, trials, rng))
    index = tail_index(family, n, strength)
    known = index is not None
    if index is None:
        index = estimated_tail_index(kl)
    # No interpolation: between a finite and an infinite value there is nothing.
    quantiles = np.quantile(kl, levels, method="inverted_cdf")
    if np.any(np.isinf(kl)) or (known and index <= 1):
        return np.inf, np.inf, False, index, quantiles
    deviation = float(np.std(kl, ddof=1)) if trials > 1 else np.inf
    heavy = index <= 2
    return float(np.mean(kl)), np.inf if known and heavy else deviation / np.sqrt(trials), not heavy, index, quantiles


def simulated_estimates(family, theta_star, n, prior, trials, rng) -> np.ndarray:
    """Estimates from `trials` data sets of size `n`, shape ``(trials, dim)``; NaN where a data set has none."""
    central = theory(family).sample_central(theta_star, n, trials, rng)
    anchor = None if prior is None else prior.as_statistics(family)
    with float64():
        if anchor is None:
            return to_numpy(_estimates(family, central))
        share = np.float64(n) / (np.float64(anchor.count) + n)
        return to_numpy(_estimates(family, _merged(family, anchor.central, central, share)))


def divergences(family, theta_star, estimates) -> np.ndarray:
    """``KL(p_{theta*} || p_theta)`` for each estimate; infinite where there is none."""
    with float64():
        return to_numpy(_divergences(family, jnp.asarray(theta_star), jnp.asarray(estimates)))


@jax.jit
def _merged(family, anchor, central, share):
    return family._merge(jnp.broadcast_to(anchor, central.shape), central, jnp.broadcast_to(share, central.shape[:-1]))


@jax.jit
def _estimates(family, central):
    fine = family._estimable(central)
    # Where nothing can be estimated, solve for some estimable point instead: the answer is not used.
    safe = jnp.where(fine[:, None], central, central[jnp.argmax(fine)])
    return jnp.where(
        (fine & family.in_domain(family._central_to_natural(safe)))[:, None], family._central_to_natural(safe), jnp.nan
    )


@jax.jit
def _divergences(family, theta_star, estimates):
    fine = jnp.all(jnp.isfinite(estimates), axis=-1)
    safe = jnp.where(fine[:, None], estimates, theta_star)
    return jnp.where(fine, family.kl(jnp.broadcast_to(theta_star, safe.shape), safe), jnp.inf)


def sample_mean_statistic(family: ExponentialFamily, theta: Any, n: int, trials: int, rng: Any = None) -> np.ndarray:
    """Mean statistics ``(1/n) sum T(x_i)`` of `trials` data sets of `n` observations each, shape ``(trials, dim)``.

    Drawn directly for gamma-type families, normals, counts and classes; otherwise computed from raw observations.

    Examples
    --------
    >>> from cumulant.families import Exponential
    >>> draws = sample_mean_statistic(Exponential(), [-2.0], n=100, trials=1000, rng=0)
    >>> draws.shape, abs(draws.mean() - 0.5) < 0.01
    ((1000, 1), np.True_)
    """
    theta = natural_parameter(family, theta)
    central = theory(family).sample_central(theta, whole("n", n), whole("trials", trials), generator(rng))
    with float64():
        return np.asarray(to_numpy(family._central_to_mean(jnp.asarray(central))))


def tail_index(family: Any, n: float, strength: float) -> float | None:
    """The supremum of the ``q`` for which ``E KL^q`` is finite, or None where it is not known.

    At most 1: the risk is infinite. At most 2: it is finite, but an average over simulations has no standard error.
    `strength` is that of the prior, whose mean is inside the domain; 0 is the MLE.

    Examples
    --------
    >>> from cumulant.families import NormalKnownMean
    >>> tail_index(NormalKnownMean(), 3, 0.0)
    1.5
    """
    return theory(family).tail_index(n, strength)


def estimated_tail_index(values: np.ndarray) -> float:
    """Hill's estimate of the tail index from the largest ``sqrt(len)`` values: an indication, not a proof.

    >>> rng = np.random.default_rng(0)
    >>> 1.2 < estimated_tail_index(rng.pareto(1.5, 100_000) + 1) < 1.8
    True
    """
    finite = np.sort(values[np.isfinite(values) & (values > 0)])
    k = int(np.sqrt(finite.size))
    if k < 2:
        return np.inf
    logs = np.log(finite[-k - 1 :])
    spread = float(np.mean(logs[1:] - logs[0]))
    return 1.0 / spread if spread > 0 else np.inf
