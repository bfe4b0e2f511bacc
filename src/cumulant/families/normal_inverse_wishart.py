"""Joint distributions of a mean and a covariance: normal-inverse-Wishart, and normal-inverse-gamma on the line.

They are the conjugate priors of the normal families whose two parameters are both unknown.
"""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.errors import DomainError
from cumulant.families.base import family
from cumulant.families.cholesky import (
    factorise,
    gram,
    log_det,
    near_or_far,
    positive_definite,
    symmetric_part,
    times,
    transpose,
)
from cumulant.families.multigamma import inverse_multigamma_gap, log_multigamma
from cumulant.families.multivariate_normal import check_shape, check_size, floats, outer
from cumulant.families.rows import ByRows
from cumulant.families.special import phi
from cumulant.families.wishart import (
    all_equal,
    central_of_matrices,
    conjugate_from_gap,
    entropy_from_half,
    far_divergence,
    inverse_log_density,
    inverse_wishart,
    mean_log_det,
    merge_matrices,
    near_divergence,
    spread_out_matrices,
)
from cumulant.geometry.symmetric import unvech, vech

_LOG_2PI = float(np.log(2 * np.pi))


class _NormalInverse(ByRows):
    """All that depends on parameters only: the same for matrices and, with `size` 1, for numbers.

    Parameters are split into ``(n / 2, k m0, B + k m0 m0^T / 2, k / 2)`` with ``B = Psi / 2``.
    """

    size: int

    @property
    def dim(self):
        return 2 + self.size + self.size * (self.size + 1) // 2

    def log_partition(self, theta):
        half, _, strength, factor, _ = self._parts(theta)
        return log_multigamma(half, self.size) - half * log_det(factor) - 0.5 * self.size * jnp.log(strength)

    def to_mean(self, theta):
        half, mean, strength, factor, inverse = self._parts(theta)
        matrix = half[..., None, None] * gram(inverse)
        pull = times(matrix, mean)
        square = self.size / strength + jnp.sum(pull * mean, axis=-1)
        return _joined(mean_log_det(half, factor), pull, matrix, square)

    def conjugate(self, mu):
        gap, _, _, spread = self._split(self._from_mean(mu))
        return conjugate_from_gap(gap, self.size) + 0.5 * self.size * (jnp.log(self.size / spread) - 1)

    def expected_log_base(self, theta):
        half, _, _, factor, _ = self._parts(theta)
        return 0.5 * ((self.size + 2) * mean_log_det(half, factor) - self.size * _LOG_2PI)

    def entropy(self, theta):
        half, _, strength, _, _ = self._parts(theta)
        relative = entropy_from_half(half, self.size) + 0.5 * self.size * (1 - jnp.log(strength))
        return relative - self.expected_log_base(theta)

    def kl(self, theta, other):
        return near_or_far(self._near_divergence, self._far_divergence, *jnp.broadcast_arrays(theta, other))

    def _far_divergence(self, theta, other):
        (half, mean, strength, *factors), (other_half, other_mean, other_strength, *other_factors) = (
            self._parts(theta), self._parts(other)
        )  # fmt: skip
        apart = half * jnp.sum(times(factors[1], other_mean - mean) ** 2, axis=-1)
        normal = self.size * phi(other_strength / strength) + other_strength * apart
        return far_divergence((half, *factors), (other_half, *other_factors)) + 0.5 * normal

    def _near_divergence(self, theta, other):
        half, mean, strength, _, inverse = self._parts(theta)
        other_half, other_mean, other_strength, _, _ = self._parts(other)
        _, pull, matrix, minus = self._split(theta)
        _, other_pull, other_matrix, other_minus = self._split(other)
        shift = other_pull - pull
        step = (shift + 2 * (other_minus - minus)[..., None] * mean) / other_strength[..., None]  # of the mean
        growth = outer(shift, other_mean) + outer(pull, step)  # of strength times mean mean^T
        change = (matrix - other_matrix) - 0.25 * (growth + transpose(growth))
        apart = jnp.sum(times(inverse, step) ** 2, axis=-1)
        normal = self.size * phi(other_strength / strength) + other_strength * half * apart
        value, pivots = near_divergence(half, inverse, other_half, change)
        forgotten = (other_strength / strength)[..., None]  # in the step of the mean, where it is small
        return value + 0.5 * normal, jnp.concatenate([pivots, forgotten], axis=-1)

    def in_domain(self, theta):
        half, _, matrix, minus = self._split(theta)
        fine = jnp.all(jnp.isfinite(theta), axis=-1) & (half > 0.5 * (self.size - 1)) & (minus < 0)
        return fine & positive_definite(-matrix - self._between(theta))

    def in_mean_domain(self, mu):
        gap, _, _, spread = self._split(self._from_mean(mu))
        return jnp.all(jnp.isfinite(mu), axis=-1) & (gap > 0) & (spread > 0)

    def _split(self, vector):
        """The four parts of a parameter: a number, a vector, a matrix, a number."""
        return (
            vector[..., 0],
            vector[..., 1 : 1 + self.size],
            unvech(vector[..., 1 + self.size : -1]),
            vector[..., -1],
        )

    def _between(self, theta):
        """``k m0 m0^T / 2``."""
        pull = theta[..., 1 : 1 + self.size]
        return -0.25 * outer(pull, pull) / theta[..., -1, None, None]

    def _parts(self, theta):
        """``n / 2``, the mean, its pseudo-count, and the factor of ``B`` with its inverse."""
        half, pull, matrix, minus = self._split(theta)
        return half, -0.5 * pull / minus[..., None], -2 * minus, *factorise(-matrix - self._between(theta))

    def _natural(self, half, mean, matrix, strength):
        batch = jnp.broadcast_shapes(half.shape, mean.shape[:-1], matrix.shape[:-2], strength.shape)
        pull = strength[..., None] * mean
        matrix = jnp.broadcast_to(matrix + 0.5 * outer(pull, mean), (*batch, self.size, self.size))
        pull = jnp.broadcast_to(pull, (*batch, self.size))
        return _joined(jnp.broadcast_to(half, batch), pull, -matrix, jnp.broadcast_to(-0.5 * strength, batch))

    # On data: a mean vector and a covariance matrix, or two numbers.

    def _pair(self, x):
        """The two parts of an observation as a vector and a matrix."""
        return x

    def statistics(self, x):
        mean, covariance = self._pair(x)
        factor, inverse = factorise(symmetric_part(covariance))
        precision = gram(inverse)
        pull = times(precision, mean)
        return _joined(-log_det(factor), pull, precision, jnp.sum(pull * mean, axis=-1))

    def log_base(self, x):
        factor, _ = factorise(symmetric_part(self._pair(x)[1]))
        return -0.5 * ((self.size + 2) * log_det(factor) + self.size * _LOG_2PI)

    def _log_density(self, x, theta):
        mean, covariance = self._pair(x)
        half, centre, strength, factor, _ = self._parts(theta)
        root, inverse = factorise(symmetric_part(covariance))
        distance = strength * jnp.sum(times(inverse, mean - centre) ** 2, axis=-1)
        normal = distance + log_det(root) + self.size * (_LOG_2PI - jnp.log(strength))
        return inverse_log_density(root, inverse, half, factor) - 0.5 * normal

    def _draw(self, key, theta, shape):
        half, centre, strength, factor, _ = self._parts(theta)
        first, second = jax.random.split(key)
        covariance = inverse_wishart(first, half, factor, shape)
        standard = jax.random.normal(second, (*shape, *centre.shape), dtype=theta.dtype)
        mean = centre + times(factorise(covariance)[0], standard) / jnp.sqrt(strength)[..., None]
        batch = mean.shape[:-1]
        return mean.reshape(batch + self.event_shape[0]), covariance.reshape(batch + self.event_shape[1])

    def _inside(self, x, inside):
        examples = np.zeros(self.event_shape[0]), np.eye(self.size).reshape(self.event_shape[1])
        return tuple(
            jnp.where(inside.reshape(inside.shape + (1,) * example.ndim), part, example.astype(part.dtype))
            for part, example in zip(x, examples, strict=True)
        )

    def _check_event(self, x):
        wanted = " and ".join(
            f"(..., {', '.join(map(str, shape))})" if shape else "(...)" for shape in self.event_shape
        )
        message = f"x, data of {self}, must be a tuple of two arrays of shapes {wanted}; got "
        if not isinstance(x, tuple) or len(x) != 2:
            raise DomainError(message + type(x).__name__)
        given = [np.shape(part) for part in x]
        if any(s and have[-len(s) :] != s for have, s in zip(given, self.event_shape, strict=True)):
            raise DomainError(f"{message}{given[0]} and {given[1]}")

    # Central coordinates: (log det E P - E log det P, m0, vech(E P), E (m - m0)^T P (m - m0)) for precisions P, with
    # m0 the mean of the means weighted by them.

    def _central(self, x, weights):
        mean, covariance = self._pair(x)
        precision = gram(factorise(symmetric_part(covariance))[1])
        matrices = central_of_matrices(precision, weights)
        weights = weights[..., None]
        rough = jnp.sum(weights * mean, axis=0)
        centre = rough + _solve(unvech(matrices[..., 1:]), jnp.sum(weights * times(precision, mean - rough), axis=0))
        apart = mean - centre
        spread = jnp.sum(weights * apart * times(precision, apart), axis=(0, -1))
        return jnp.concatenate([matrices[..., :1], centre, matrices[..., 1:], spread[..., None]], axis=-1)

    def _matrices(self, central):
        return jnp.concatenate([central[..., :1], central[..., 1 + self.size : -1]], axis=-1)

    def _merge(self, first, second, share):
        matrices = merge_matrices(self._matrices(first), self._matrices(second), share)
        (_, mean, matrix, spread), (_, other_mean, other_matrix, other_spread) = self._split(first), self._split(second)
        merged = unvech(matrices[..., 1:])
        apart = other_mean - mean
        ahead = _solve(merged, times(other_matrix, apart))  # times the share, how far the merged mean is from the first
        behind = _solve(merged, times(matrix, apart))
        centre = mean + share[..., None] * ahead
        within = (1 - share) * spread + share * other_spread
        first_part = share**2 * (1 - share) * jnp.sum(ahead * times(matrix, ahead), axis=-1)
        second_part = share * (1 - share) ** 2 * jnp.sum(behind * times(other_matrix, behind), axis=-1)
        spread = within + first_part + second_part
        return jnp.concatenate([matrices[..., :1], centre, matrices[..., 1:], spread[..., None]], axis=-1)

    def _from_mean(self, mu):
        mean_log, pull, matrix, square = self._split(mu)
        factor, inverse = factorise(matrix)
        half_way = times(inverse, pull)
        mean = times(transpose(inverse), half_way)
        return _joined(log_det(factor) - mean_log, mean, matrix, square - jnp.sum(half_way**2, axis=-1))

    def _central_to_mean(self, central):
        gap, mean, matrix, spread = self._split(central)
        pull = times(matrix, mean)
        return _joined(log_det(factorise(matrix)[0]) - gap, pull, matrix, spread + jnp.sum(pull * mean, axis=-1))

    def _central_to_natural(self, central):
        gap, mean, matrix, spread = self._split(central)
        half = inverse_multigamma_gap(gap, self.size)
        return self._natural(half, mean, half[..., None, None] * gram(factorise(matrix)[1]), self.size / spread)

    def _estimable(self, central):
        return spread_out_matrices(self._matrices(central)) & (self._split(central)[3] > self._rounding(central))

    def _rounding(self, central):
        """What of the spread of the means may be rounding of the means themselves."""
        _, mean, matrix, _ = self._split(central)
        return (4 * jnp.finfo(central.dtype).eps) ** 2 * jnp.sum(mean * times(matrix, mean), axis=-1)

    def _obstacle(self, central, count):
        central = jnp.asarray(central)
        if not bool(self._split(central)[3] > self._rounding(central)):
            return f"the means of all {count:g} observations are equal, and the likelihood keeps growing as kappa does"
        return all_equal(count).replace("observations", "covariances")


@family
class NormalInverseWishart(_NormalInverse):
    """Pairs ``x = (m, S)`` of a mean vector and a covariance matrix of `size` ``d``.

    ``S`` is inverse Wishart with ``dof`` ``n`` and ``scale`` ``Psi``; ``m`` given ``S`` is normal with mean ``m0``
    (``mean``) and covariance ``S / k``, where ``k`` (``kappa``) is the number of observations that the mean is worth.
    With ``P = S^-1`` and ``B = Psi / 2``: ``T(x) = (log det P, P m, vech(P), m^T P m)``,
    ``theta = (n / 2, k m0, vech(-B - k m0 m0^T / 2), -k / 2)``,
    ``A(theta) = log Gamma_d(n / 2) - n / 2 log det B - d / 2 log k``, base measure
    ``(2 pi)^(-d/2) det(S)^(-(d+2)/2)``. An observation is a tuple of two arrays, ``(..., d)`` and ``(..., d, d)``.

    Examples
    --------
    >>> fam = NormalInverseWishart(size=2)
    >>> theta = fam.natural(mean=[0.0, 1.0], kappa=2.0, dof=5.0, scale=[[2.0, 0.0], [0.0, 1.0]])
    >>> fam.log_prob(([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]), theta)
    np.float64(-5.7346...)
    """

    size: int

    support = "x = (m, S), a finite vector and a symmetric, positive definite matrix"
    usual_domain = "a finite mean, kappa > 0, dof > size - 1 and a symmetric, positive definite scale"
    domain = (
        "theta[0] > (size - 1) / 2 (half the degrees of freedom), theta[-1] < 0 (minus half of kappa), and a positive "
        "definite scale"
    )
    mean_domain = "the mean of T(x) for some distribution of x that is not concentrated (Jensen's inequality is strict)"

    def __post_init__(self):
        check_size(self.size)

    @property
    def event_shape(self):
        return ((self.size,), (self.size, self.size))

    def natural(self, *, mean, kappa, dof, scale):
        mean, kappa, dof, scale = floats(mean, kappa, dof, scale)
        check_shape("mean", mean, (self.size,))
        check_shape("scale", scale, (self.size, self.size))
        return self._natural(0.5 * dof, mean, 0.5 * symmetric_part(scale), kappa)

    def usual(self, theta):
        half, mean, strength, _, _ = self._parts(theta)
        scale = 2 * (-self._split(theta)[2] - self._between(theta))
        return {"mean": mean, "kappa": strength, "dof": 2 * half, "scale": scale}

    def in_support(self, x):
        mean, covariance = x
        finite = jnp.all(jnp.isfinite(mean), axis=-1) & jnp.all(jnp.isfinite(covariance), axis=(-2, -1))
        return finite & positive_definite(symmetric_part(covariance))


@family
class NormalInverseGamma(_NormalInverse):
    """Pairs ``x = (m, v)`` of a mean and a variance.

    ``v`` is inverse gamma with ``shape`` ``a`` and ``scale`` ``b``; ``m`` given ``v`` is normal with mean ``m0``
    (``mean``) and variance ``v / k``, where ``k`` (``kappa``) is the number of observations that the mean is worth.
    ``T(x) = (-log v, m / v, 1 / v, m^2 / v)``, ``theta = (a, k m0, -b - k m0^2 / 2, -k / 2)``,
    ``A(theta) = log Gamma(a) - a log b - log(k) / 2``, base measure ``(2 pi)^(-1/2) v^(-3/2)``. An observation is a
    tuple of two numbers or arrays.

    Examples
    --------
    >>> fam = NormalInverseGamma()
    >>> theta = fam.natural(mean=1.0, kappa=2.0, shape=3.0, scale=4.0)
    >>> fam.log_prob((1.5, 2.0), theta)
    np.float64(-2.3507913...)
    """

    size = 1
    event_shape = ((), ())
    support = "x = (m, v), a finite number and a positive one"
    usual_domain = "a finite mean, and a positive kappa, shape and scale"
    domain = "theta[0] > 0 (the shape), theta[3] < 0 (minus half of kappa) and theta[2] < theta[1]^2 / (4 theta[3])"
    mean_domain = "the mean of T(x) for some distribution of x that is not concentrated (Jensen's inequality is strict)"

    def natural(self, *, mean, kappa, shape, scale):
        mean, kappa, shape, scale = floats(mean, kappa, shape, scale)
        return self._natural(shape, mean[..., None], scale[..., None, None], kappa)

    def usual(self, theta):
        half, mean, strength, _, _ = self._parts(theta)
        scale = -theta[..., 2] - self._between(theta)[..., 0, 0]
        return {"mean": mean[..., 0], "kappa": strength, "shape": half, "scale": scale}

    def in_support(self, x):
        mean, variance = x
        return jnp.isfinite(mean) & jnp.isfinite(variance) & (variance > 0)

    def _pair(self, x):
        return x[0][..., None], x[1][..., None, None]


def _joined(first, vector, matrix, last):
    return jnp.concatenate([first[..., None], vector, vech(matrix), last[..., None]], axis=-1)


def _solve(matrix, vector):
    _, inverse = factorise(matrix)
    return times(transpose(inverse), times(inverse, vector))
