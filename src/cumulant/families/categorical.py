"""The categorical family: one of K classes, in K - 1 parameters."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, xlogy

from cumulant.families.base import ExponentialFamily, family

__all__ = ["Categorical", "log_weights", "with_last"]


def with_last(mu):
    """All K probabilities from the first K - 1."""
    return jnp.concatenate([mu, 1 - jnp.sum(mu, axis=-1, keepdims=True)], axis=-1)


def log_weights(theta):
    """All K log weights: the reference class, the last one, has zero."""
    return jnp.concatenate([theta, jnp.zeros_like(theta[..., :1])], axis=-1)


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
