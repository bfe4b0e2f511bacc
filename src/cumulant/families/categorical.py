"""One of K classes, in K - 1 parameters: the categorical family, and the multinomial counts of several draws."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp, xlogy

from cumulant import checks
from cumulant.families.base import ExponentialFamily, family
from cumulant.families.factorials import expected_log_factorial
from cumulant.families.inverses import count_deviance, log_factorial_rest, log_gamma
from cumulant.families.special import excess, expm1_excess
from cumulant.families.tails import table_log_tails


def log_weights(theta):
    """All K log weights: the reference class, the last one, has zero."""
    return jnp.concatenate([theta, jnp.zeros_like(theta[..., :1])], axis=-1)


def divergence_of_classes(first, second):
    """``KL`` of two distributions on K classes from their log weights ``(..., K)``, accurate relative to itself.

    With ``d`` the change of the log weights against that of the most likely class of the first, it is
    ``log E exp(d) - E d = E [exp(d) - 1 - d] - [m - log(1 + m)]``, ``m = E [exp(d) - 1]``, of which at most a factor K
    cancels; where some ``d`` is large, the difference of the two log partition functions against that class.
    """
    first, second = jnp.broadcast_arrays(first, second)
    likeliest = jax.nn.one_hot(jnp.argmax(first, axis=-1), first.shape[-1], dtype=bool)

    def against(logs):
        return logs - jnp.sum(jnp.where(likeliest, logs, 0.0), axis=-1, keepdims=True)

    first, second = against(first), against(second)
    change = jnp.where(likeliest, 0.0, second - first)
    p = jax.nn.softmax(first, axis=-1)
    moved = jnp.minimum(change, 1.0)
    close = jnp.sum(p * expm1_excess(moved), axis=-1) - excess(jnp.sum(p * jnp.expm1(moved), axis=-1))

    def log_total(logs):
        return jax.nn.softplus(logsumexp(jnp.where(likeliest, -jnp.inf, logs), axis=-1))

    far = log_total(second) - log_total(first) - jnp.sum(p * change, axis=-1)
    return jnp.maximum(jnp.where(jnp.any(change > 1.0, axis=-1), far, close), 0.0)


class _Classes(ExponentialFamily):
    """``trials`` draws of one of K classes: ``theta_k = log(p_k / p_{K-1})``, ``A(theta) = trials log(1 + sum exp
    theta_k)``, ``mu_k = trials p_k``.
    """

    categories: int
    trials: int
    usual_domain = "probabilities that are positive and add up to 1"
    domain = "theta finite (log odds against the last class)"
    discrete = True

    def __post_init__(self):
        checks.whole("trials", self.trials)
        checks.whole("categories", self.categories, 2)

    @property
    def dim(self):
        return self.categories - 1

    def log_partition(self, theta):
        return self.trials * logsumexp(log_weights(theta), axis=-1)

    def natural(self, *, probabilities):
        p = jnp.asarray(probabilities)
        if p.shape[-1:] != (self.categories,):
            raise ValueError(f"probabilities must have {self.categories} entries on the last axis; got shape {p.shape}")
        total = jnp.sum(p, axis=-1, keepdims=True)
        logs = jnp.log(jnp.where(jnp.abs(total - 1) <= 1e-6, p, jnp.nan))
        return logs[..., :-1] - logs[..., -1:]

    def usual(self, theta):
        return {"probabilities": jax.nn.softmax(log_weights(theta), axis=-1)}

    def to_mean(self, theta):
        return self.trials * jax.nn.softmax(log_weights(theta), axis=-1)[..., :-1]

    def to_natural(self, mu):
        return jnp.log(mu) - float(np.log(self.trials)) - jnp.log1p(-jnp.sum(mu, axis=-1, keepdims=True) / self.trials)

    def conjugate(self, mu):
        first = mu / self.trials
        p = jnp.concatenate([first, 1 - jnp.sum(first, axis=-1, keepdims=True)], axis=-1)
        return self.trials * jnp.sum(xlogy(p, p), axis=-1)

    def kl(self, theta, other):
        return self.trials * divergence_of_classes(log_weights(theta), log_weights(other))

    # The probabilities are Dirichlet under the conjugate density.

    def _concentrations(self, total, count):
        return jnp.concatenate([total, self.trials * count - jnp.sum(total, axis=-1, keepdims=True)], axis=-1)

    def _log_conjugate_normaliser(self, total, count):
        each = self._concentrations(total, count)
        return jnp.sum(log_gamma(each), axis=-1) - log_gamma(self.trials * count)

    def _draw_conjugate(self, key, total, count, shape):
        each = self._concentrations(total, count)
        logs = jax.random.loggamma(key, each, (*shape, self.categories), dtype=total.dtype)
        return logs[..., :-1] - logs[..., -1:]

    def in_mean_domain(self, mu):
        return jnp.all(mu > 0, axis=-1) & (jnp.sum(mu, axis=-1) < self.trials)

    def _estimable(self, central):
        rounding = 4 * self.categories * jnp.finfo(central.dtype).eps
        return jnp.all(central > 0, axis=-1) & (1 - jnp.sum(central, axis=-1) / self.trials > rounding)

    def _obstacle(self, central, count):
        absent = int(np.argmin(np.append(central, self.trials - np.sum(central))))
        return (
            f"class {absent} was never seen in {count:g} observations, and its log probability goes to minus infinity"
        )


@family
class Categorical(_Classes):
    """A class ``x`` in {0, ..., K - 1} with probabilities ``probabilities``; the last class is the reference.

    ``T(x)`` is the one-hot vector without its last entry, ``theta_k = log(p_k / p_{K-1})``,
    ``A(theta) = log(1 + sum exp theta_k)``, ``mu_k = p_k``, ``A*(mu) = sum_k p_k log p_k`` over all K classes.

    Examples
    --------
    >>> fam = Categorical(3)
    >>> theta = fam.natural(probabilities=[0.5, 0.3, 0.2])
    >>> fam.to_mean(theta), fam.entropy(theta)
    (array([0.5, 0.3]), np.float64(1.029653014...))
    """

    categories: int

    trials = 1
    support = "x in {0, ..., K - 1}"
    mean_domain = "mu > 0 and sum(mu) < 1 (every class has positive probability)"
    constant_log_base = 0.0

    def statistics(self, x):
        return jax.nn.one_hot(x.astype(int), self.categories - 1, dtype=x.dtype)

    @property
    def ends(self):
        return (0.0, self.categories - 1.0)

    def _log_tails(self, x, theta):
        return table_log_tails(x, jax.nn.log_softmax(log_weights(theta), axis=-1))

    def in_support(self, x):
        return (x >= 0) & (x < self.categories) & (x == jnp.floor(x))

    def _example_point(self):
        return np.zeros(())

    def _draw(self, key, theta, shape):
        return jax.random.categorical(key, log_weights(theta), axis=-1, shape=(*shape, *theta.shape[:-1]))


@family
class Multinomial(_Classes):
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
    mean_domain = "mu > 0 and sum(mu) < trials (every class has positive probability)"

    @property
    def event_shape(self):
        return (self.categories,)

    def statistics(self, x):
        return x[..., :-1]

    def log_base(self, x):
        return gammaln(jnp.asarray(self.trials + 1.0, dtype=x.dtype)) - jnp.sum(gammaln(x + 1), axis=-1)

    def expected_log_base(self, theta):
        p, n = jax.nn.softmax(log_weights(theta), axis=-1), self.trials
        each = expected_log_factorial(lambda t: n * jnp.log1p(p * jnp.expm1(-t)), n * p)
        return gammaln(jnp.asarray(n + 1.0, dtype=theta.dtype)) - jnp.sum(each, axis=-1)

    def in_support(self, x):
        return jnp.all((x >= 0) & (x == jnp.floor(x)), axis=-1) & (jnp.sum(x, axis=-1) == self.trials)

    def _log_density(self, x, theta):
        logs = jax.nn.log_softmax(log_weights(theta), axis=-1) + np.log(self.trials)
        all_trials = jnp.asarray(float(self.trials), dtype=theta.dtype)
        each = count_deviance(x, logs) + log_factorial_rest(x)
        return log_factorial_rest(all_trials) - jnp.sum(each, axis=-1)

    def _example_point(self):
        return np.append(np.zeros(self.categories - 1), self.trials)

    def _draw(self, key, theta, shape):
        p = jax.nn.softmax(log_weights(theta), axis=-1)
        size = (*shape, *p.shape)
        counts = jax.random.multinomial(
            key, jnp.full(size[:-1], self.trials, dtype=theta.dtype), p, shape=size, dtype=theta.dtype
        )
        return jnp.round(counts).astype(int)
