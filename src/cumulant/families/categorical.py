"""The categorical family: one of K classes, in K - 1 parameters."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, xlogy

from cumulant.families.base import ExponentialFamily, family
from cumulant.families.special import expm1_excess, log1p_excess

__all__ = ["Categorical", "divergence_of_classes", "log_weights", "with_last"]


def with_last(mu):
    """All K probabilities from the first K - 1."""
    return jnp.concatenate([mu, 1 - jnp.sum(mu, axis=-1, keepdims=True)], axis=-1)


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
    close = jnp.sum(p * expm1_excess(moved), axis=-1) - log1p_excess(jnp.sum(p * jnp.expm1(moved), axis=-1))

    def log_total(logs):
        return jax.nn.softplus(logsumexp(jnp.where(likeliest, -jnp.inf, logs), axis=-1))

    far = log_total(second) - log_total(first) - jnp.sum(p * change, axis=-1)
    return jnp.maximum(jnp.where(jnp.any(change > 1.0, axis=-1), far, close), 0.0)


@family
class Categorical(ExponentialFamily):
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

    support = "x in {0, ..., K - 1}"
    usual_domain = "probabilities that are positive and add up to 1"
    domain = "theta finite (log odds against the last class)"
    mean_domain = "mu > 0 and sum(mu) < 1 (every class has positive probability)"
    discrete = True

    def __post_init__(self):
        if not self.categories >= 2:
            raise ValueError(f"categories must be at least 2; got {self.categories}")

    @property
    def dim(self):
        return self.categories - 1

    def statistics(self, x):
        return jax.nn.one_hot(x.astype(int), self.categories - 1, dtype=x.dtype)

    def log_base(self, x):
        return jnp.zeros_like(x)

    def log_partition(self, theta):
        return logsumexp(log_weights(theta), axis=-1)

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
        return jax.nn.softmax(log_weights(theta), axis=-1)[..., :-1]

    def to_natural(self, mu):
        return jnp.log(mu) - jnp.log1p(-jnp.sum(mu, axis=-1, keepdims=True))

    def conjugate(self, mu):
        p = with_last(mu)
        return jnp.sum(xlogy(p, p), axis=-1)

    def kl(self, theta, other):
        return divergence_of_classes(log_weights(theta), log_weights(other))

    def bregman(self, theta, other):
        return self.kl(other, theta)

    def expected_log_base(self, theta):
        return jnp.zeros_like(theta[..., 0])

    def in_mean_domain(self, mu):
        return jnp.all(mu > 0, axis=-1) & (jnp.sum(mu, axis=-1) < 1)

    def in_support(self, x):
        return (x >= 0) & (x < self.categories) & (x == jnp.floor(x))

    def _example_point(self):
        return np.zeros(())

    def _draw(self, key, theta, shape):
        return jax.random.categorical(key, log_weights(theta), axis=-1, shape=(*shape, *theta.shape[:-1]))

    def _estimable(self, central):
        rounding = 4 * self.categories * jnp.finfo(central.dtype).eps
        return jnp.all(central > 0, axis=-1) & (1 - jnp.sum(central, axis=-1) > rounding)

    def _obstacle(self, central, count):
        return unseen_class(central, count)


def unseen_class(central, count):
    """The reason for which frequencies with a zero among them have no finite estimate."""
    absent = int(np.argmin(np.append(central, 1 - np.sum(central))))
    return f"class {absent} was never seen in {count:g} observations, and its log probability goes to minus infinity"
