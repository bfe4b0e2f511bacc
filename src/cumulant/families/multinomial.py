"""The multinomial family: how often each of K classes was seen in a known number of trials."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlogy

from cumulant.families.base import ExponentialFamily, family
from cumulant.families.categorical import Categorical, divergence_of_classes, log_weights, unseen_class, with_last
from cumulant.families.factorials import expected_log_factorial
from cumulant.families.inverses import count_deviance, log_factorial_rest

__all__ = ["Multinomial"]


@family
class Multinomial(ExponentialFamily):
    """Counts ``x`` of K classes in a known number of ``trials``, with probabilities ``probabilities``.

    ``T(x)`` is ``x`` without its last entry, ``theta_k = log(p_k / p_{K-1})``, ``A(theta) = trials log(1 + sum exp
    theta_k)``, ``mu_k = trials p_k``, base measure ``trials! / prod x_k!``.

    Examples
    --------
    >>> fam = Multinomial(trials=4, categories=3)
    >>> theta = fam.natural(probabilities=[0.5, 0.25, 0.25])
    >>> float(np.exp(fam.log_prob([2, 1, 1], theta)).round(12))
    0.1875
    """

    trials: int
    categories: int

    support = "x whole, not negative, with sum(x) = trials"
    usual_domain = "probabilities that are positive and add up to 1"
    domain = "theta finite (log odds against the last class)"
    mean_domain = "mu > 0 and sum(mu) < trials (every class has positive probability)"
    discrete = True

    def __post_init__(self):
        if not (isinstance(self.trials, int | np.integer) and self.trials >= 1):
            raise ValueError(f"trials must be a whole number, at least 1; got {self.trials}")
        if not self.categories >= 2:
            raise ValueError(f"categories must be at least 2; got {self.categories}")

    @property
    def dim(self):
        return self.categories - 1

    @property
    def event_shape(self):
        return (self.categories,)

    @property
    def _one(self):
        return Categorical(self.categories)

    def statistics(self, x):
        return x[..., :-1]

    def log_base(self, x):
        return gammaln(jnp.asarray(self.trials + 1.0, dtype=x.dtype)) - jnp.sum(gammaln(x + 1), axis=-1)

    def log_partition(self, theta):
        return self.trials * self._one.log_partition(theta)

    def natural(self, *, probabilities):
        return self._one.natural(probabilities=probabilities)

    def usual(self, theta):
        return {"probabilities": jax.nn.softmax(log_weights(theta), axis=-1)}

    def to_mean(self, theta):
        return self.trials * self._one.to_mean(theta)

    def to_natural(self, mu):
        return jnp.log(mu) - jnp.log(self.trials - jnp.sum(mu, axis=-1, keepdims=True))

    def conjugate(self, mu):
        p = with_last(mu / self.trials)
        return self.trials * jnp.sum(xlogy(p, p), axis=-1)

    def log_prob(self, x, theta):
        inside = self.in_support(x)
        safe = self._inside(x, inside)
        logs = jax.nn.log_softmax(log_weights(theta), axis=-1) + np.log(self.trials)
        all_trials = jnp.asarray(float(self.trials), dtype=theta.dtype)
        each = count_deviance(safe, logs) + log_factorial_rest(safe)
        return jnp.where(inside, log_factorial_rest(all_trials) - jnp.sum(each, axis=-1), -jnp.inf)

    def kl(self, theta, other):
        return self.trials * divergence_of_classes(log_weights(theta), log_weights(other))

    def bregman(self, theta, other):
        return self.kl(other, theta)

    def expected_log_base(self, theta):
        p, n = jax.nn.softmax(log_weights(theta), axis=-1), self.trials
        each = expected_log_factorial(lambda t: n * jnp.log1p(p * jnp.expm1(-t)), n * p)
        return gammaln(jnp.asarray(n + 1.0, dtype=theta.dtype)) - jnp.sum(each, axis=-1)

    def in_mean_domain(self, mu):
        return jnp.all(mu > 0, axis=-1) & (jnp.sum(mu, axis=-1) < self.trials)

    def in_support(self, x):
        return jnp.all((x >= 0) & (x == jnp.floor(x)), axis=-1) & (jnp.sum(x, axis=-1) == self.trials)

    def _example_point(self):
        return np.append(np.zeros(self.categories - 1), self.trials)

    def _draw(self, key, theta, shape):
        p = jax.nn.softmax(log_weights(theta), axis=-1)
        size = (*shape, *p.shape)
        counts = jax.random.multinomial(
            key, jnp.full(size[:-1], self.trials, dtype=theta.dtype), p, shape=size, dtype=theta.dtype
        )
        return jnp.round(counts).astype(int)

    def _estimable(self, central):
        rounding = 4 * self.categories * jnp.finfo(central.dtype).eps
        return jnp.all(central > 0, axis=-1) & (1 - jnp.sum(central, axis=-1) / self.trials > rounding)

    def _obstacle(self, central, count):
        return unseen_class(central / self.trials, count)
