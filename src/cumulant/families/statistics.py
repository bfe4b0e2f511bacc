"""Sufficient statistics add up: a batch, a stream, a shard and a checkpoint are one reduction.

`Statistics` is that reduction, `ConjugatePrior` is the same thing for observations that were never made, and
`StreamingMAP` is both, updated one batch at a time.
"""

import functools
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks, files
from cumulant.errors import DomainError, NoEstimateError
from cumulant.families._calling import observations
from cumulant.families.base import ExponentialFamily, Learnable
from cumulant.families.saving import describe, restore
from cumulant.precision import any_jax, any_tracer, call_precisely, float64, to_jax, to_numpy
from cumulant.pytrees import pytree

if TYPE_CHECKING:
    from cumulant.families.predictive import Predictive


@pytree
@dataclass(frozen=True, eq=False)
class Statistics:
    """The sum of the statistics of some observations, and how many there were (the sum of their weights).

    The sum is kept as a mean in the family's central coordinates (mean and variance rather than ``E x`` and ``E
    x^2``, for the normal), so that merging a million batches loses no digits. ``a + b`` is the statistics of both
    data sets.

    Examples
    --------
    >>> from cumulant.families import Poisson
    >>> a, b = Poisson().collect([1, 2]), Poisson().collect([6])
    >>> (a + b).sum, (a + b).count
    (array([9.]), np.float64(3.0))
    """

    family: Learnable
    central: Any
    count: Any

    @property
    def mean(self):
        """The mean of ``T``, a mean parameter."""
        return _answer(_to_mean, self)

    @property
    def sum(self):
        """The sum of ``T``."""
        return self.mean * self.count[..., None]

    def __add__(self, other: "Statistics") -> "Statistics":
        if not isinstance(other, Statistics):
            return NotImplemented
        if self.family != other.family:
            raise ValueError(f"statistics of {self.family} and of {other.family} do not add up")
        return replace(self, **_answer(_add, self, other))

    def mle(self):
        """The maximum-likelihood estimate of the natural parameter; `NoEstimateError` where there is none."""
        if any_tracer(self):
            return self.family._central_to_natural(self.central)
        theta, fine = fit_where_possible(self)
        if not np.all(fine):
            self._refuse(np.asarray(fine))
        return theta

    def map(self, prior: "ConjugatePrior"):
        """The mode of the posterior density of ``theta`` under `prior`; with strength zero, the maximum-likelihood
        estimate.
        """
        checks.instance("prior", prior, ConjugatePrior, "a ConjugatePrior")
        return (self + prior.as_statistics(self.family)).mle()

    def save(self, path: str | os.PathLike) -> Path:
        """Write the statistics and their family to a file; `load` reads it, and ``+`` goes on from there."""
        settings, arrays = describe(self.family)
        return files.save(path, "statistics", {"central": self.central, "count": self.count, **arrays}, settings)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Statistics":
        """Read what `save` wrote."""
        saved = files.load(path, "statistics")
        return cls(restore(saved.settings, saved.arrays), saved.arrays["central"], saved.arrays["count"][()])

    def _refuse(self, fine) -> None:
        first = tuple(np.argwhere(~np.atleast_1d(fine))[0]) if fine.ndim else ()
        where = f" (data set {', '.join(map(str, first))})" if fine.ndim else ""
        central = np.asarray(self.central)[first]
        reason = self.family._obstacle(central, float(np.broadcast_to(self.count, fine.shape)[first]))
        raise NoEstimateError(
            f"no finite maximum-likelihood estimate of {self.family} exists{where}: {reason}. "
            "A prior makes one: map(x, prior=ConjugatePrior(mean=..., strength=1.0))"
        )


def _answer(function, *statistics: Statistics):
    """`function` under the rule of precision."""
    if any_tracer(statistics):
        return function(*statistics)
    wide = not any_jax([(s.central, s.count) for s in statistics])
    return call_precisely(_compiled(function), statistics, wide=wide)


@functools.cache
def _compiled(function):
    return jax.jit(lambda arguments: function(*arguments))


def _to_mean(statistics):
    return statistics.family._central_to_mean(statistics.central)


def _add(first, second):
    count = first.count + second.count
    share = jnp.where(count > 0, second.count / jnp.where(count > 0, count, 1.0), 0.0)
    # An empty side may hold anything finite: all of the weight is then on the other.
    merged = first.family._merge(first.central, second.central, share)
    return {"central": merged, "count": count}


def _fit(statistics):
    fine = statistics.family._estimable(statistics.central)
    safe = jax.lax.stop_gradient(jnp.where(fine[..., None], statistics.central, jnp.nan))
    theta = statistics.family._central_to_natural(safe)
    return theta, fine & statistics.family.in_domain(theta) & (statistics.count > 0)


def fit_where_possible(statistics: Statistics):
    """The maximum-likelihood estimates of a batch, and which of them exist."""
    return _answer(_fit, statistics)


def collect(family: ExponentialFamily, x, weights=None) -> Statistics:
    """The statistics of observations on the first axis of `x`: shape ``(n, *batch, *event_shape)``.

    `weights` ``(n,)`` or ``(n, *batch)`` count an observation that often; they must be finite and not negative.
    """
    x = observations(x, family.event_shape)
    n = {np.shape(leaf)[0] if np.ndim(leaf) else None for leaf in jax.tree.leaves(x)}
    if len(n) != 1 or None in n:
        raise DomainError(f"x, data of {family}, must have its observations on the first axis; got a single number")
    (n,) = n
    if n == 0:
        raise NoEstimateError(f"x, data of {family}, holds no observations")
    family._check_event(x)
    if weights is not None:
        weights = to_jax(weights, "weights")
        if np.shape(weights)[:1] != (n,):
            raise ValueError(f"weights must have one entry per observation of x ({n}); got shape {np.shape(weights)}")
    if any_tracer(x, weights, family):
        central, count, _, _ = _collect(family, x, weights)
        return Statistics(family, central, count)
    wide = not any_jax(x, weights)
    if wide:
        central = family._central_of_numpy(x) if weights is None else None
        if central is not None:
            return Statistics(family, central, np.float64(n))
        weights = None if weights is None else np.asarray(weights, dtype=np.float64)
    central, count, inside, fair = call_precisely(_compiled(_collect), (family, x, weights), wide=wide)
    _check_data(family, x, inside, fair)
    return Statistics(family, central, count)


def _collect(family, x, weights):
    inside = family.in_support(x)  # (n, *batch)
    if weights is None:
        weights = jnp.ones(inside.shape[:1], dtype=jnp.result_type(float))
    if weights.ndim > inside.ndim:
        raise ValueError(f"weights must have at most the axes of the observations, {inside.shape}; got {weights.shape}")
    weights = weights.reshape(weights.shape + (1,) * (inside.ndim - weights.ndim))
    count = jnp.sum(weights, axis=0)
    fair = jnp.all(weights >= 0) & jnp.all(jnp.isfinite(weights)) & jnp.all(count > 0)
    central = family._central(x, weights / count)
    return central, jnp.broadcast_to(count, central.shape[:-1]), jnp.all(inside), fair


def _check_data(family, x, inside, fair) -> None:
    if not inside:
        outside = np.argwhere(~np.asarray(family.in_support(x)))[0]
        leaf = jax.tree.leaves(x)[0] if len(jax.tree.leaves(x)) == 1 else None
        value = "" if leaf is None else f"; got {np.asarray(leaf)[tuple(outside)]}"
        raise DomainError(f"data of {family} must have {family.support}{value} at index {tuple(map(int, outside))}")
    if not fair:
        raise ValueError("weights must be finite and not negative, and not all zero")


@pytree
@dataclass(frozen=True, eq=False)
class ConjugatePrior:
    """The conjugate prior ``p(theta) ~ exp(n0 <mu0, theta> - n0 A(theta))``, a density in ``theta`` itself.

    It weighs as much as `strength` observations whose mean statistic is `mean`. Under it ``E grad A(theta) = mean``
    (Diaconis and Ylvisaker 1979). The posterior mode is ``grad A*((n0 mu0 + sum T) / (n0 + n))``. It is the mode with
    respect to Lebesgue measure in natural coordinates; modes in other coordinates differ.

    Parameters
    ----------
    mean : array
        ``mu0``, a mean parameter of the family: the mean statistic of the imagined observations.
    strength : float
        ``n0``, their number; any number that is not negative. Zero is no prior at all.

    Examples
    --------
    >>> from cumulant.families import Bernoulli
    >>> prior = ConjugatePrior(mean=[0.5], strength=2.0)
    >>> Bernoulli().usual(Bernoulli().map([1, 1, 1], prior))
    {'probability': np.float64(0.8)}
    """

    mean: Any
    strength: Any = 1.0

    def __post_init__(self):
        if not any_jax(self.mean, self.strength):
            object.__setattr__(self, "mean", checks.real_array("mean", self.mean, finite=False))
            strength = checks.real_array("strength", self.strength, finite=False)
            if not (np.all(strength >= 0) and np.all(np.isfinite(strength))):
                raise ValueError(f"strength of a prior must be finite and not negative; got {self.strength}")

    def as_statistics(self, family: Learnable) -> Statistics:
        """The imagined observations as `Statistics`; an error if `mean` is not a mean of the family."""
        mean, strength = self.mean, self.strength
        if any_jax(mean, strength):
            mean = jnp.asarray(mean)
            return Statistics(family, family._from_mean(mean), jnp.broadcast_to(strength, mean.shape[:-1]))
        if np.shape(mean)[-1:] != (family.dim,):
            raise DomainError(
                f"mean of a prior for {family} must have {family.dim} entries; got shape {np.shape(mean)}"
            )
        if not np.all(family.in_mean_domain(mean)):
            raise family._refusal("mu", mean, {})
        with float64():
            central = to_numpy(family._from_mean(jnp.asarray(mean)))
        return Statistics(family, np.asarray(central), np.broadcast_to(np.float64(strength), np.shape(mean)[:-1])[()])

    def posterior(self, statistics: Statistics) -> "ConjugatePrior":
        """The posterior after these observations, which is conjugate again."""
        both = self.as_statistics(statistics.family) + statistics
        return ConjugatePrior(both.mean, both.count)

    def predictive(self, family: ExponentialFamily) -> "Predictive":
        """The distribution of the next observation under this prior, or posterior: see `Predictive`."""
        from cumulant.families.predictive import Predictive

        return Predictive(family, self)

    def log_density(self, family: Learnable, theta):
        """``n0 (<mu0, theta> - A(theta))``: the log density of ``theta`` up to a constant."""
        return self.strength * ((theta * self.mean).sum(-1) - family.log_partition(theta))


@dataclass(frozen=True, eq=False)
class StreamingMAP:
    """The maximum a posteriori estimate of a stream, updated batch by batch; without a prior, the maximum likelihood.

    Equal to the estimate from all data at once, in any order and in any split, and to stochastic mirror descent with
    steps ``1 / (n0 + n)``. ``a + b`` joins two streams under one prior; `save` and `load` carry one to another process.

    Examples
    --------
    >>> from cumulant.families import Exponential
    >>> s = StreamingMAP(Exponential(), ConjugatePrior(mean=[1.0], strength=1.0))
    >>> s = s.update([2.0, 3.0]).update([2.0])
    >>> s.mu, s.theta
    (array([2.]), array([-0.5]))
    """

    family: Learnable
    prior: ConjugatePrior | None = None
    statistics: Statistics | None = None

    def update(self, batch, weights=None) -> "StreamingMAP":
        """The stream with one more batch, observations on the first axis."""
        fresh = self.family.collect(batch, weights)
        return replace(self, statistics=fresh if self.statistics is None else self.statistics + fresh)

    def __add__(self, other: "StreamingMAP") -> "StreamingMAP":
        if not isinstance(other, StreamingMAP):
            return NotImplemented
        if not _same_prior(self.prior, other.prior):
            raise ValueError("two streams join under one prior: give both the same")
        if self.statistics is None or other.statistics is None:
            return replace(self, statistics=self.statistics or other.statistics)
        return replace(self, statistics=self.statistics + other.statistics)

    def save(self, path: str | os.PathLike) -> Path:
        """Write the stream, with its prior, to a file: a process that loads it goes on where this one stopped."""
        family, arrays = describe(self.family)
        if self.prior is not None:
            arrays |= {"prior mean": np.asarray(self.prior.mean), "prior strength": np.asarray(self.prior.strength)}
        if self.statistics is not None:
            arrays |= {"central": np.asarray(self.statistics.central), "count": np.asarray(self.statistics.count)}
        return files.save(path, "stream", arrays, {"family": family})

    @classmethod
    def load(cls, path: str | os.PathLike) -> "StreamingMAP":
        """Read what `save` wrote."""
        saved = files.load(path, "stream")
        arrays, family = saved.arrays, restore(saved.settings["family"], saved.arrays)
        prior = ConjugatePrior(arrays["prior mean"], arrays["prior strength"][()]) if "prior mean" in arrays else None
        statistics = Statistics(family, arrays["central"], arrays["count"][()]) if "central" in arrays else None
        return cls(family, prior, statistics)

    @property
    def count(self):
        """How many observations were seen, by weight."""
        return 0.0 if self.statistics is None else self.statistics.count

    @property
    def _total(self) -> Statistics:
        if self.prior is None and self.statistics is None:
            raise NoEstimateError(
                f"no observations of {self.family} yet, and no prior: there is nothing to estimate from"
            )
        if self.prior is None or self.statistics is None:
            return self.statistics if self.prior is None else self.prior.as_statistics(self.family)  # type: ignore[return-value]
        return self.statistics + self.prior.as_statistics(self.family)

    @property
    def mu(self):
        """The mean parameter ``(n0 mu0 + sum T) / (n0 + n)``."""
        return self._total.mean

    @property
    def theta(self):
        """The natural parameter ``grad A*(mu)``."""
        return self._total.mle()


def _same_prior(first, second) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first.mean, second.mean) and np.array_equal(first.strength, second.strength)
