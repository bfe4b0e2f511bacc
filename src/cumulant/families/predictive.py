"""The distribution of the next observation under a conjugate prior or posterior."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import randomness
from cumulant.errors import DomainError
from cumulant.families._calling import observations
from cumulant.families.base import ExponentialFamily
from cumulant.families.statistics import ConjugatePrior
from cumulant.precision import float64, to_numpy


@dataclass(frozen=True, eq=False)
class Predictive:
    """The next observation under a `ConjugatePrior`, its natural parameter integrated out.

    With ``Z(s, n) = int exp(<s, theta> - n A(theta)) dtheta``, the prior of mean ``mu0`` and strength ``n0`` has
    normaliser ``Z(n0 mu0, n0)``, and ``p(x) = h(x) Z(n0 mu0 + T(x), n0 + 1) / Z(n0 mu0, n0)``. ``Z`` has a closed form
    for

    ==============================================  =================================================
    family                                          its predictive distribution
    ==============================================  =================================================
    `Bernoulli`, `Binomial`                         beta-binomial
    `Categorical`, `Multinomial`                    Dirichlet-multinomial
    `Poisson`                                       negative binomial
    `Geometric`, `NegativeBinomial`                 beta-negative-binomial
    `Exponential`                                   Lomax
    the others with ``A = -alpha log(-theta)``      ``T(x)`` is beta prime (for `NormalKnownMean`, Student's t)
    `NormalKnownVariance`                           normal
    `Normal`; `LogNormal`                           Student's t; its exponential
    ==============================================  =================================================

    A posterior predictive distribution is that of the posterior: ``prior.posterior(family.collect(x))``.

    References
    ----------
    Diaconis and Ylvisaker 1979, "Conjugate priors for exponential families".

    Examples
    --------
    Three successes in three trials, under a uniform prior of the probability: Laplace's rule of succession.

    >>> from cumulant.families import Bernoulli
    >>> prior = ConjugatePrior(mean=[0.5], strength=2.0)
    >>> posterior = prior.posterior(Bernoulli().collect([1, 1, 1]))
    >>> np.exp(posterior.predictive(Bernoulli()).log_prob(1)).round(12)
    np.float64(0.8)
    """

    family: ExponentialFamily
    prior: ConjugatePrior

    def __post_init__(self):
        strength, mean = np.asarray(self.prior.strength, dtype=np.float64), np.asarray(self.prior.mean)
        if strength.ndim or mean.ndim != 1:
            raise DomainError(f"a predictive distribution takes one prior; got a mean of shape {mean.shape}")
        if not strength > 0:
            raise DomainError(f"a prior of strength {strength:g} has no predictive distribution: it is not proper")
        self.prior.as_statistics(self.family)  # an error if the mean is not one of the family

    @property
    def mean(self) -> np.ndarray:
        """``E T(x)``, which is the mean of the prior."""
        return np.asarray(self.prior.mean, dtype=np.float64)

    def log_prob(self, x: Any) -> Any:
        """``log p(x)``, ``x`` of shape ``(*batch, *event_shape)``; minus infinity outside the support."""
        x = observations(x, self.family.event_shape)
        self.family._check_event(x)
        with float64():
            return to_numpy(_log_prob(self.family, x, *self._prior_sums()))

    def sample(self, n: int = 1, *, rng: Any = None) -> Any:
        """`n` draws, shape ``(n, *event_shape)``: a natural parameter from the prior for each, and an observation."""
        if n < 0:
            raise ValueError(f"n must not be negative; got {n}")
        key = randomness.key(rng)
        with float64():
            return to_numpy(_sample(self.family, key, *self._prior_sums(), n))

    def _prior_sums(self):
        strength = np.float64(self.prior.strength)
        return strength * self.mean, strength


@jax.jit
def _log_prob(family, x, total, count):
    inside = family.in_support(x)
    x = family._inside(x, inside)
    after = family._log_conjugate_normaliser(total + family.statistics(x), count + 1)
    change = after - family._log_conjugate_normaliser(total, count)
    return jnp.where(inside, family.log_base(x) + change, -jnp.inf)


@jax.jit(static_argnames="n")
def _sample(family, key, total, count, n):
    first, second = jax.random.split(key)
    return family._draw(second, family._draw_conjugate(first, total, count, (n,)), ())
