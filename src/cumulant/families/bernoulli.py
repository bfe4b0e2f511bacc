"""Counts of successes: Bernoulli, binomial, and the waiting times geometric and negative binomial."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlog1py, xlogy

from cumulant import checks
from cumulant.families.base import ExponentialFamily, family
from cumulant.families.categorical import divergence_of_classes, log_weights
from cumulant.families.factorials import expected_log_factorial
from cumulant.families.inverses import count_deviance, log_factorial_rest, log_gamma
from cumulant.families.special import excess, expm1_excess
from cumulant.families.tails import beta_log_tails, log_one_minus_exp


class _Successes(ExponentialFamily):
    """``T(x) = x``, ``theta = logit(probability)``, ``A(theta) = trials log(1 + exp theta)``, ``mu = trials
    probability``.
    """

    trials: int
    dim = 1
    domain = "theta finite (the log odds of a probability strictly between 0 and 1)"
    discrete = True

    def statistics(self, x):
        return x[..., None]

    def log_partition(self, theta):
        return self.trials * jax.nn.softplus(theta[..., 0])

    def natural(self, *, probability):
        return (jnp.log(probability) - jnp.log1p(-probability))[..., None]

    def usual(self, theta):
        return {"probability": jax.nn.sigmoid(theta[..., 0])}

    def to_mean(self, theta):
        return self.trials * jax.nn.sigmoid(theta)

    def to_natural(self, mu):
        return jnp.log(mu) - jnp.log(self.trials - mu)

    def conjugate(self, mu):
        m, n = mu[..., 0], self.trials
        return xlogy(m, m / n) + xlog1py(n - m, -m / n)

    def kl(self, theta, other):
        return self.trials * divergence_of_classes(log_weights(theta), log_weights(other))

    @property
    def ends(self):
        return (0.0, float(self.trials))

    def _log_tails(self, x, theta):
        return -jax.nn.softplus(theta[..., 0]) + 0 * x, -jax.nn.softplus(-theta[..., 0]) + 0 * x

    # The conjugate density of theta is that of the log odds of a beta probability.

    def _log_conjugate_normaliser(self, total, count):
        a, b = total[..., 0], self.trials * count - total[..., 0]
        return log_gamma(a) + log_gamma(b) - log_gamma(a + b)

    def _draw_conjugate(self, key, total, count, shape):
        parameters = jnp.stack([total[..., 0], self.trials * count - total[..., 0]])
        logs = jax.random.loggamma(key, parameters, (*shape, 2), dtype=total.dtype)
        return logs[..., :1] - logs[..., 1:]

    def in_mean_domain(self, mu):
        return (mu[..., 0] > 0) & (mu[..., 0] < self.trials)

    def in_support(self, x):
        return (x >= 0) & (x <= self.trials) & (x == jnp.floor(x))

    def _example_point(self):
        return np.zeros(())

    def _obstacle(self, central, count):
        seen, limit = ("failures", 0) if central[0] <= 0 else ("successes", 1)
        limit = f"the likelihood keeps growing as the probability goes to {limit}"
        return f"all {count:g} observations are {seen}, and {limit}"


@family
class Bernoulli(_Successes):
    """A success ``x = 1`` or failure ``x = 0`` with the given ``probability`` of success.

    ``T(x) = x``, ``theta = logit(probability)``, ``A(theta) = log(1 + exp theta)``, ``mu = probability``,
    ``A*(mu) = mu log mu + (1 - mu) log(1 - mu)``, base measure 1.

    Examples
    --------
    >>> fam = Bernoulli()
    >>> fam.entropy(fam.natural(probability=0.5))  # log 2
    np.float64(0.6931471805...)
    """

    trials = 1
    support = "x in {0, 1}"
    constant_log_base = 0.0
    mean_domain = "0 < mu < 1"

    def _draw(self, key, theta, shape):
        return jax.random.bernoulli(key, jax.nn.sigmoid(theta[..., 0]), (*shape, *theta.shape[:-1])).astype(int)


@family
class Binomial(_Successes):
    """The number ``x`` of successes in a known number of ``trials``, each with the given ``probability``.

    ``T(x) = x``, ``theta = logit(probability)``, ``A(theta) = trials log(1 + exp theta)``, ``mu = trials probability``,
    base measure ``trials choose x``.

    Examples
    --------
    >>> fam = Binomial(trials=10)
    >>> fam.usual(fam.mle([4, 6]))
    {'probability': np.float64(0.5)}
    """

    trials: int

    support = "x in {0, ..., trials}"
    mean_domain = "0 < mu < trials"

    def __post_init__(self):
        checks.whole("trials", self.trials)

    def log_base(self, x):
        return gammaln(jnp.asarray(self.trials + 1.0, dtype=x.dtype)) - gammaln(x + 1) - gammaln(self.trials - x + 1)

    def expected_log_base(self, theta):
        p, n = jax.nn.sigmoid(theta[..., 0]), self.trials
        successes = expected_log_factorial(lambda t: n * jnp.log1p(p * jnp.expm1(-t)), n * p)
        failures = expected_log_factorial(lambda t: n * jnp.log1p((1 - p) * jnp.expm1(-t)), n * (1 - p))
        return gammaln(jnp.asarray(n + 1, dtype=theta.dtype)) - successes - failures

    def _log_density(self, x, theta):
        n = jnp.asarray(float(self.trials), dtype=theta.dtype)
        successes = count_deviance(x, jnp.log(n) - jax.nn.softplus(-theta[..., 0])) + log_factorial_rest(x)
        failures = count_deviance(n - x, jnp.log(n) - jax.nn.softplus(theta[..., 0])) + log_factorial_rest(n - x)
        return log_factorial_rest(n) - successes - failures

    def _log_tails(self, x, theta):
        success, failure = jax.nn.sigmoid(theta[..., 0]), jax.nn.sigmoid(-theta[..., 0])
        return beta_log_tails(failure, success, self.trials - x, x + 1)

    def _draw(self, key, theta, shape):
        p = jax.nn.sigmoid(theta[..., 0])
        return jax.random.binomial(key, self.trials, p, (*shape, *p.shape), dtype=theta.dtype).astype(int)


class _Waiting(ExponentialFamily):
    """``T(x) = x``, ``theta = log(1 - probability)``, ``A(theta) = -successes log(1 - exp theta)``."""

    successes: float
    dim = 1
    support = "x in {0, 1, 2, ...}"
    domain = "theta < 0 (the log probability of a failure)"
    mean_domain = "mu > 0"
    discrete = True
    ends = (0.0, np.inf)

    def statistics(self, x):
        return x[..., None]

    def log_partition(self, theta):
        return -self.successes * log_one_minus_exp(theta[..., 0])

    def natural(self, *, probability):
        return jnp.log1p(-probability)[..., None]

    def usual(self, theta):
        return {"probability": -jnp.expm1(theta[..., 0])}

    def to_mean(self, theta):
        return self.successes * jnp.exp(theta) / -jnp.expm1(theta)  # no overflow for a probability near one

    def to_natural(self, mu):
        return -jnp.log1p(self.successes / mu)

    def kl(self, theta, other):
        # With w = E x / r and m = exp(step) - 1: w (m - step) + [-w m - log(1 - w m)], both at least zero.
        first, second = theta[..., 0], other[..., 0]
        step, w = second - first, jnp.exp(first) / -jnp.expm1(first)
        growth = w * jnp.expm1(jnp.minimum(step, 1.0))
        near = (jnp.abs(growth) < 0.5) & (step < 1)
        close = w * expm1_excess(jnp.minimum(step, 1.0)) + excess(jnp.where(near, -growth, 0.0))
        far = log_one_minus_exp(first) - log_one_minus_exp(second) - w * step
        return self.successes * jnp.where(near, close, far)

    def conjugate(self, mu):
        m, r = mu[..., 0], self.successes
        return -m * jnp.log1p(r / m) - r * jnp.log1p(m / r)

    # exp theta, the probability of a failure, is beta under the conjugate density.

    def _log_conjugate_normaliser(self, total, count):
        a, b = total[..., 0], self.successes * count + 1
        return log_gamma(a) + log_gamma(b) - log_gamma(a + b)

    def _draw_conjugate(self, key, total, count, shape):
        parameters = jnp.stack([total[..., 0], self.successes * count + 1])
        logs = jax.random.loggamma(key, parameters, (*shape, 2), dtype=total.dtype)
        return jax.nn.log_sigmoid(logs[..., :1] - logs[..., 1:])

    def in_domain(self, theta):
        return jnp.isfinite(theta[..., 0]) & (theta[..., 0] < 0)

    def in_mean_domain(self, mu):
        return jnp.isfinite(mu[..., 0]) & (mu[..., 0] > 0)

    def in_support(self, x):
        return (x >= 0) & (x == jnp.floor(x)) & jnp.isfinite(x)

    def _example_point(self):
        return np.zeros(())

    def _obstacle(self, central, count):
        return (
            f"all {count:g} counts are zero, and the likelihood keeps growing as the probability of success goes to 1"
        )


@family
class Geometric(_Waiting):
    """The number ``x`` in {0, 1, 2, ...} of failures before the first success, each trial with the given
    ``probability``.

    ``T(x) = x``, ``theta = log(1 - probability)``, ``A(theta) = -log(1 - exp theta)``, ``mu = (1 - p) / p``,
    ``A*(mu) = mu log mu - (1 + mu) log(1 + mu)``, base measure 1.

    Examples
    --------
    >>> fam = Geometric()
    >>> fam.to_mean(fam.natural(probability=0.25))
    array([3.])
    """

    successes = 1.0
    constant_log_base = 0.0

    def _log_tails(self, x, theta):
        upper = theta[..., 0] * (x + 1)
        return log_one_minus_exp(upper), upper

    def _draw(self, key, theta, shape):
        exponential = jax.random.exponential(key, (*shape, *theta.shape[:-1]), dtype=theta.dtype)
        return jnp.floor(exponential / -theta[..., 0]).astype(int)


@family
class NegativeBinomial(_Waiting):
    """The number ``x`` in {0, 1, 2, ...} of failures before a known number of ``successes`` (any positive number).

    ``T(x) = x``, ``theta = log(1 - probability)``, ``A(theta) = -r log(1 - exp theta)``, ``mu = r (1 - p) / p``,
    base measure ``Gamma(x + r) / (x! Gamma(r))``. With ``r`` unknown this is no exponential family:
    ``families.profile(NegativeBinomial, x)`` fits both.

    Examples
    --------
    >>> fam = NegativeBinomial(successes=2.5)
    >>> fam.to_mean(fam.natural(probability=0.5))
    array([2.5])
    """

    successes: float

    fitting_advice = "; to fit it from data, families.profile(NegativeBinomial, x)"

    def __post_init__(self):
        checks.positive("successes", self.successes)

    def log_base(self, x):
        return gammaln(x + self.successes) - gammaln(x + 1) - gammaln(jnp.asarray(self.successes, dtype=x.dtype))

    def expected_log_base(self, theta):
        r, mean = self.successes, self.to_mean(theta)[..., 0]

        def log_laplace(t):
            return -r * jnp.log1p(-mean / r * jnp.expm1(-t))

        return expected_log_factorial(log_laplace, mean, r - 1) - expected_log_factorial(log_laplace, mean)

    def _log_density(self, x, theta):
        r = jnp.asarray(self.successes, dtype=theta.dtype)
        total = x + r
        failures = count_deviance(x, jnp.log(total) + theta[..., 0]) + log_factorial_rest(x)
        successes = count_deviance(r, jnp.log(total) + log_one_minus_exp(theta[..., 0])) + log_factorial_rest(r)
        return jnp.log(r / total) + log_factorial_rest(total) - failures - successes

    def _log_tails(self, x, theta):
        return beta_log_tails(-jnp.expm1(theta[..., 0]), jnp.exp(theta[..., 0]), self.successes, x + 1)

    def _draw(self, key, theta, shape):
        first, second = jax.random.split(key)
        size = (*shape, *theta.shape[:-1])
        rate = jax.random.gamma(first, self.successes, size, dtype=theta.dtype) / jnp.expm1(-theta[..., 0])
        return jax.random.poisson(second, rate, size)
