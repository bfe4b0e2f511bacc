"""Directions: von Mises on the circle, von Mises-Fisher on the sphere in any dimension."""

from math import lgamma, log, pi

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.families.base import ExponentialFamily, family
from cumulant.families.bessel import inverse_mean_length, log_0f1, log_0f1_excess, mean_complement, mean_length
from cumulant.families.inverses import implicit_inverse
from cumulant.families.tails import von_mises_log_tails


class _Directional(ExponentialFamily):
    """``A(theta) = log 0F1(; d/2; |theta|^2 / 4)`` with the uniform distribution on the sphere as the base."""

    size: int
    domain = "theta finite (concentration times direction)"
    mean_domain = "|mu| < 1"

    @property
    def dim(self):
        return self.size

    @property
    def constant_log_base(self):
        return lgamma(self.size / 2) - log(2.0) - self.size / 2 * log(pi)

    def log_partition(self, theta):
        return log_0f1(self.size / 2 - 1, jnp.sum(theta**2, axis=-1))

    def to_mean(self, theta):
        return theta * mean_length(self.size, jnp.sum(theta**2, axis=-1, keepdims=True))

    def to_natural(self, mu):
        return implicit_inverse(_invert, self, mu)

    # Differences of log partition functions are of log_0f1 - kappa, which grows like a logarithm.

    def entropy(self, theta):
        s = jnp.sum(theta**2, axis=-1)
        rest = log_0f1_excess(self.size / 2 - 1, s) + jnp.sqrt(s) * mean_complement(self.size, s)
        small = self.log_partition(theta) - s * mean_length(self.size, s)
        return jnp.where(s > 100.0, rest, small) - self.constant_log_base

    def kl(self, theta, other):
        theta, other = jnp.broadcast_arrays(theta, other)
        s, t = jnp.sum(theta**2, axis=-1), jnp.sum(other**2, axis=-1)
        large = s > 100.0
        kappa, other_kappa = jnp.sqrt(jnp.where(large, s, 1.0)), jnp.sqrt(jnp.where(t > 0, t, 1.0))
        axis = theta / kappa[..., None]
        along = jnp.sum(axis * other, axis=-1)
        across = jnp.sum((other - along[..., None] * axis) ** 2, axis=-1)
        turned = jnp.where(along > 0, across / (other_kappa + jnp.abs(along)), other_kappa - along)
        complement = mean_complement(self.size, jnp.where(large, s, 101.0))
        order = self.size / 2 - 1
        rests = log_0f1_excess(order, jnp.where(t > 0, t, 1.0)) - log_0f1_excess(order, jnp.where(large, s, 1.0))
        far = rests + (other_kappa - kappa) * complement + (1 - complement) * turned
        mean = theta * mean_length(self.size, s)[..., None]
        near = self.log_partition(other) - self.log_partition(theta) - jnp.sum(mean * (other - theta), axis=-1)
        return jnp.maximum(jnp.where(large & (t > 0), far, near), 0.0)

    def in_mean_domain(self, mu):
        return jnp.linalg.norm(mu, axis=-1) < 1

    def _estimable(self, central):
        return jnp.linalg.norm(central, axis=-1) < 1 - 8 * jnp.finfo(central.dtype).eps

    def _obstacle(self, central, count):
        return f"all {count:g} directions are equal, and the likelihood keeps growing with the concentration"


def _invert(family, mu):
    length = jnp.linalg.norm(mu, axis=-1, keepdims=True)
    # For a tiny mean, theta = size * mu: the ratio kappa / |mu| has the limit `size`.
    safe = jnp.where(length > 1e-150, length, 0.5)
    return mu * jnp.where(length > 1e-150, inverse_mean_length(family.size, safe) / safe, float(family.size))


def _cosines(key, kappa, size, shape):
    """``1 - <x, direction>`` of von Mises-Fisher draws, by Wood's rejection (1994), without cancellation.

    At least two in three proposals are accepted, whatever the concentration.
    """
    kappa = jnp.broadcast_to(kappa, shape)
    m = size - 1
    b = m / (2 * kappa + jnp.sqrt(4 * kappa**2 + m**2))
    x0 = (1 - b) / (1 + b)

    def propose(state):
        key, versine, done, count = state
        key, first, second = jax.random.split(key, 3)
        z = jax.random.beta(first, m / 2, m / 2, shape, dtype=kappa.dtype)
        trial = 2 * b * z / (1 - (1 - b) * z)
        # kappa w + m log(1 - x0 w) against its value at w = x0; 1 - x0 = 2 b / (1 + b).
        ratio = (2 * b / (1 + b) + x0 * trial) * (1 + b) ** 2 / (4 * b)
        level = kappa * (2 * b / (1 + b) - trial) + m * jnp.log(ratio)
        accepted = level >= jnp.log(jax.random.uniform(second, shape, dtype=kappa.dtype))
        return key, jnp.where(done, versine, trial), done | accepted, count + 1

    start = (key, jnp.zeros(shape, kappa.dtype), jnp.zeros(shape, bool), 0)
    return jax.lax.while_loop(lambda s: ~jnp.all(s[2]) & (s[3] < 1000), propose, start)[1]


@family
class VonMisesFisher(_Directional):
    """Unit vectors ``x`` in ``size`` dimensions around ``direction`` with ``concentration`` ``kappa``.

    ``T(x) = x``, ``theta = kappa direction``, ``A(theta) = log[Gamma(d/2) (2/kappa)^(d/2 - 1) I_{d/2-1}(kappa)]``,
    ``mu = (I_{d/2}(kappa) / I_{d/2-1}(kappa)) direction``, base measure uniform on the sphere. Any dimension and any
    concentration, zero included, to full precision.

    Examples
    --------
    >>> fam = VonMisesFisher(3)
    >>> theta = fam.natural(direction=[0.0, 0.6, 0.8], concentration=5.0)
    >>> fam.to_natural(fam.to_mean(theta)).round(12)
    array([0., 3., 4.])
    """

    size: int

    support = "|x| = 1"
    on_surface = True
    usual_domain = "a direction of length 1 and a concentration that is not negative"

    def __post_init__(self):
        checks.whole("size", self.size, 2)

    @property
    def event_shape(self):
        return (self.size,)

    def statistics(self, x):
        return x

    def natural(self, *, direction, concentration):
        unit = jnp.abs(jnp.linalg.norm(direction, axis=-1) - 1) <= 1e-6
        return jnp.where(
            (unit & (concentration >= 0))[..., None], direction * jnp.asarray(concentration)[..., None], jnp.nan
        )

    def usual(self, theta):
        kappa = jnp.linalg.norm(theta, axis=-1, keepdims=True)
        first = jnp.zeros(self.size).at[0].set(1.0)  # no direction is preferred at zero: the first axis stands for all
        direction = jnp.where(kappa > 0, theta / jnp.where(kappa > 0, kappa, 1.0), first)
        return {"direction": direction, "concentration": kappa[..., 0]}

    def in_support(self, x):
        return jnp.abs(jnp.linalg.norm(x, axis=-1) - 1) <= 64 * jnp.finfo(x.dtype).eps * self.size

    def _example_point(self):
        return np.eye(self.size)[0]

    def _draw(self, key, theta, shape):
        first, second = jax.random.split(key)
        parts = VonMisesFisher.usual.__wrapped__(self, theta)  # type: ignore[attr-defined]
        direction, kappa = parts["direction"], parts["concentration"]
        size = (*shape, *kappa.shape)
        versine = _cosines(first, kappa, self.size, size)[..., None]
        tangent = jax.random.normal(second, (*size, self.size), dtype=theta.dtype)
        tangent = tangent - jnp.sum(tangent * direction, axis=-1, keepdims=True) * direction
        tangent = tangent / jnp.linalg.norm(tangent, axis=-1, keepdims=True)
        x = (1 - versine) * direction + jnp.sqrt(versine * (2 - versine)) * tangent
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


@family
class VonMises(_Directional):
    """Angles ``x`` (any real number, taken modulo a full turn) around ``direction`` with ``concentration`` ``kappa``.

    ``T(x) = (cos x, sin x)``, ``theta = kappa (cos direction, sin direction)``, ``A(theta) = log I_0(kappa)``,
    ``mu = (I_1(kappa) / I_0(kappa)) (cos direction, sin direction)``, base measure ``1 / (2 pi)`` on one turn.

    The distribution function cuts the circle opposite to ``direction``: `cdf` is one half there, and `quantile` lies
    within half a turn of it.

    Examples
    --------
    >>> fam = VonMises()
    >>> fam.usual(fam.mle([0.1, 0.3, -0.2, 0.2]))["direction"].round(4)
    np.float64(0.1008)
    """

    size = 2
    support = "x real (an angle)"
    usual_domain = "a finite direction and a concentration that is not negative"

    def statistics(self, x):
        return jnp.stack([jnp.cos(x), jnp.sin(x)], axis=-1)

    def natural(self, *, direction, concentration):
        direction, kappa = jnp.broadcast_arrays(direction, concentration)
        theta = jnp.stack([kappa * jnp.cos(direction), kappa * jnp.sin(direction)], axis=-1)
        return jnp.where(kappa[..., None] >= 0, theta, jnp.nan)

    def usual(self, theta):
        return {
            "direction": jnp.arctan2(theta[..., 1], theta[..., 0]),
            "concentration": jnp.linalg.norm(theta, axis=-1),
        }

    def _log_density(self, x, theta):
        s = jnp.sum(theta**2, axis=-1)
        angle = x - jnp.arctan2(theta[..., 1], theta[..., 0])
        return self.constant_log_base - 2 * jnp.sqrt(s) * jnp.sin(0.5 * angle) ** 2 - log_0f1_excess(0.0, s)

    def _log_tails(self, x, theta):
        turn = x - jnp.arctan2(theta[..., 1], theta[..., 0])
        turn = turn - 2 * np.pi * jnp.round(turn / (2 * np.pi))
        return von_mises_log_tails(turn, jnp.linalg.norm(theta, axis=-1))

    def _point(self, y, theta):
        return jnp.arctan2(theta[..., 1], theta[..., 0]) + 2 * jnp.arctan(y), np.log(2.0) - jnp.log1p(y * y)

    def _draw(self, key, theta, shape):
        first, second = jax.random.split(key)
        kappa, direction = jnp.linalg.norm(theta, axis=-1), jnp.arctan2(theta[..., 1], theta[..., 0])
        size = (*shape, *kappa.shape)
        versine = _cosines(first, kappa, 2, size)
        angle = 2 * jnp.arcsin(jnp.sqrt(jnp.clip(versine / 2, 0.0, 1.0)))
        x = direction + jnp.where(jax.random.bernoulli(second, 0.5, size), angle, -angle)
        return jnp.arctan2(jnp.sin(x), jnp.cos(x))
