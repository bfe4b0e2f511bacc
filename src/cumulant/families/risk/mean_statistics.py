"""Drawing the mean statistic of ``n`` observations without drawing the observations.

The mean statistic is all that an estimate sees of the data. Where its distribution is known (gamma, normal and
chi-squared, Wishart by Bartlett's decomposition, multinomial) a data set of a million points costs one draw.
"""

import functools
from typing import Any

import jax
import numpy as np

from cumulant.errors import DomainError
from cumulant.families.base import ExponentialFamily
from cumulant.families.bernoulli import Bernoulli, Binomial, Geometric, NegativeBinomial
from cumulant.families.categorical import Categorical, Multinomial
from cumulant.families.gamma_type import GammaType
from cumulant.families.normal import Normal, NormalKnownVariance
from cumulant.families.poisson import Poisson
from cumulant.precision import float64, to_numpy
from cumulant.randomness import generator

__all__ = ["sample_central", "sample_mean_statistic"]

_BLOCK = 1 << 22  # raw observations held at once by the fallback


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
    central = sample_central(family, theta, whole("n", n), whole("trials", trials), generator(rng))
    with float64():
        return np.asarray(to_numpy(family._central_to_mean(jax.numpy.asarray(central))))


def whole(name: str, value: Any) -> int:
    """`value` as a positive int, or an error that names it."""
    if np.ndim(value) != 0 or not (np.isfinite(value) and value >= 1 and value == int(value)):
        raise ValueError(f"{name} must be a whole number of at least 1; got {value}")
    return int(value)


def natural_parameter(family: ExponentialFamily, theta: Any) -> np.ndarray:
    """One natural parameter of `family`, checked."""
    theta = np.asarray(theta, dtype=np.float64)
    if theta.shape != (family.dim,):
        raise DomainError(
            f"theta must be one natural parameter of {family}, shape ({family.dim},); got shape {theta.shape}"
        )
    family._require_domain(theta)
    return theta


@functools.singledispatch
def sample_central(family: Any, theta: np.ndarray, n: int, trials: int, rng: np.random.Generator) -> np.ndarray:
    """The same draws in the family's central coordinates, in which nothing cancels; registered for each family."""
    size = max(1, _BLOCK // (n * max(1, int(np.prod(family.event_shape)))))
    parts = []
    for start in range(0, trials, size):
        count = min(size, trials - start)
        x = family.sample(theta, (n, count), rng=rng)
        with float64():
            parts.append(to_numpy(_average(family, jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), x))))
    return np.concatenate(parts)


@jax.jit
def _average(family, x):
    n = jax.tree.leaves(x)[0].shape[0]
    return family._central(x, jax.numpy.full((n, 1), 1.0 / n))


@sample_central.register
def _(family: GammaType, theta, n, trials, rng):
    return rng.gamma(n * family.alpha, size=(trials, 1)) / (n * -theta)


@sample_central.register
def _(family: Normal, theta, n, trials, rng):  # the log-normal is a normal
    variance = -0.5 / theta[1]
    mean = theta[0] * variance + np.sqrt(variance / n) * rng.standard_normal(trials)
    # One observation has no spread, and chi-squared with no degree of freedom is zero.
    squares = rng.chisquare(n - 1, size=trials) if n > 1 else np.zeros(trials)
    return np.stack([mean, variance * squares / n], axis=-1)


@sample_central.register
def _(family: NormalKnownVariance, theta, n, trials, rng):
    return theta * family.variance + np.sqrt(family.variance / n) * rng.standard_normal((trials, 1))


@sample_central.register
def _(family: Categorical, theta, n, trials, rng):
    p = family.usual(theta)["probabilities"]
    return rng.multinomial(n, p / p.sum(), size=trials)[:, :-1] / n


@sample_central.register
def _(family: Multinomial, theta, n, trials, rng):
    p = family.usual(theta)["probabilities"]
    return rng.multinomial(n * family.trials, p / p.sum(), size=trials)[:, :-1] / n


@sample_central.register(Bernoulli)
@sample_central.register(Binomial)
def _(family, theta, n, trials, rng):
    return rng.binomial(n * family.trials, float(family.usual(theta)["probability"]), size=(trials, 1)) / n


@sample_central.register
def _(family: Poisson, theta, n, trials, rng):
    return rng.poisson(n * np.exp(theta), size=(trials, 1)) / n


@sample_central.register(Geometric)
@sample_central.register(NegativeBinomial)
def _(family, theta, n, trials, rng):
    return rng.negative_binomial(n * family.successes, float(family.usual(theta)["probability"]), size=(trials, 1)) / n


def wishart(scale: np.ndarray, n: int, trials: int, rng: np.random.Generator) -> np.ndarray:
    """Sums ``sum_i x_i x_i^T`` of `n` draws of ``N(0, scale)``: Bartlett's triangle, or the draws if they are few."""
    d = scale.shape[0]
    root = np.linalg.cholesky(scale)
    if n < d:
        x = root @ rng.standard_normal((trials, d, n))
        return x @ np.swapaxes(x, -1, -2)
    triangle = np.tril(rng.standard_normal((trials, d, d)), -1)
    diagonal = np.sqrt(rng.chisquare(n - np.arange(d), size=(trials, d)))
    triangle[:, np.arange(d), np.arange(d)] = diagonal
    x = root @ triangle
    return x @ np.swapaxes(x, -1, -2)
