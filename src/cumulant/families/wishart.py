"""The Wishart family of random covariance matrices, and the inverse Wishart."""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.families.base import family
from cumulant.families.cholesky import (
    correlation_pivots,
    diagonal,
    factorise,
    far_excess,
    gram,
    inverse_of_lower,
    log_det,
    near_or_far,
    positive_definite,
    symmetric_part,
    trace_excess,
    transpose,
    whiten,
)
from cumulant.families.multigamma import (
    inverse_multigamma_gap,
    log_multigamma,
    multigamma_divergence,
    multigamma_gap,
    multigamma_rest,
)
from cumulant.families.multivariate_normal import check_shape, check_size, floats
from cumulant.families.rows import ByRows
from cumulant.geometry.symmetric import unvech, vech


@family
class Wishart(ByRows):
    """Positive definite matrices ``x`` of `size` ``d``, with ``n > d - 1`` degrees of freedom and scale ``V``.

    The usual parameters are ``dof`` ``n`` and ``scale`` ``V``. For a whole ``n``, the distribution of the sum of
    ``z z^T`` over ``n`` normal vectors ``z`` with covariance ``V``; ``E x = n V``.

    ``T(x) = (log det x, vech(x))``, ``theta = (n / 2, vech(-B))`` with ``B = V^-1 / 2``,
    ``A(theta) = log Gamma_d(n / 2) - n / 2 log det B``, ``mu = (digamma_d(n / 2) - log det B, vech(n V))``,
    base measure ``det(x)^(-(d+1)/2)``. With ``d = 1`` it is the gamma family.

    The mean map is inverted through the one number ``log det E x - E log det x``, which depends on ``n`` alone and is
    also what is kept of data; densities, entropies and divergences do not cancel for a large ``n``.

    Examples
    --------
    >>> fam = Wishart(size=2)
    >>> theta = fam.natural(dof=4.0, scale=[[1.0, 0.5], [0.5, 1.0]])
    >>> fam.usual(fam.to_natural(fam.to_mean(theta)))["dof"].round(9)
    np.float64(4.0)
    >>> fam.log_prob([[2.0, 0.0], [0.0, 2.0]], theta)
    np.float64(-4.6223267...)
    """

    size: int

    support = "x a symmetric, positive definite matrix"
    usual_domain = "a finite dof > size - 1 and a symmetric, positive definite scale"
    domain = "theta[0] > (size - 1) / 2 (half the degrees of freedom) and unvech(theta[1:]) negative definite"
    mean_domain = "M = unvech(mu[1:]) positive definite and mu[0] < log det(M) (Jensen's inequality for E log det x)"

    def __post_init__(self):
        check_size(self.size)

    @property
    def dim(self):
        return 1 + self.size * (self.size + 1) // 2

    @property
    def event_shape(self):
        return (self.size, self.size)

    def statistics(self, x):
        matrix = symmetric_part(x)
        return _joined(log_det(factorise(matrix)[0]), matrix)

    def log_base(self, x):
        return -0.5 * (self.size + 1) * log_det(factorise(symmetric_part(x))[0])

    def log_partition(self, theta):
        half, factor, _ = _factored(theta)
        return log_multigamma(half, self.size) - half * log_det(factor)

    def natural(self, *, dof, scale):
        half, scale = self._checked(dof, scale)
        return _joined(half, -gram(factorise(2 * scale)[1]))

    def usual(self, theta):
        half, _, inverse = _factored(theta)
        return {"dof": 2 * half, "scale": 0.5 * gram(inverse)}

    def to_mean(self, theta):
        half, _, inverse = _factored(theta)
        return _joined(self._mean_log_det(theta), half[..., None, None] * gram(inverse))

    def conjugate(self, mu):
        return conjugate_from_gap(self._from_mean(mu)[..., 0], self.size)

    def expected_log_base(self, theta):
        return -0.5 * (self.size + 1) * self._mean_log_det(theta)

    def entropy(self, theta):
        return entropy_from_half(theta[..., 0], self.size) - self.expected_log_base(theta)

    def _log_density(self, x, theta):
        matrix = symmetric_part(x)
        half, factor, _ = _factored(theta)
        ratio = transpose(factor) @ (matrix @ factor)  # B x, as a symmetric matrix
        return log_density(log_det(factorise(matrix)[0]), ratio, half)

    def kl(self, theta, other):
        def near(theta, other):
            half, _, inverse = _factored(theta)
            return near_divergence(half, inverse, other[..., 0], unvech(theta[..., 1:] - other[..., 1:]))

        def far(theta, other):
            return far_divergence(_factored(theta), _factored(other))

        return near_or_far(near, far, *jnp.broadcast_arrays(theta, other))

    def in_domain(self, theta):
        finite = jnp.all(jnp.isfinite(theta), axis=-1)
        return finite & (theta[..., 0] > 0.5 * (self.size - 1)) & positive_definite(-unvech(theta[..., 1:]))

    def in_mean_domain(self, mu):
        return jnp.all(jnp.isfinite(mu), axis=-1) & (self._from_mean(mu)[..., 0] > 0)

    def in_support(self, x):
        return jnp.all(jnp.isfinite(x), axis=(-2, -1)) & positive_definite(symmetric_part(x))

    def _example_point(self):
        return np.eye(self.size)

    def _draw(self, key, theta, shape):
        half, _, inverse = _factored(theta)
        return gram(transpose(bartlett(key, half, self.size, shape)) @ inverse)

    def _checked(self, dof, scale):
        dof, scale = floats(dof, scale)
        check_shape("scale", scale, (self.size, self.size))
        batch = jnp.broadcast_shapes(dof.shape, scale.shape[:-2])
        return jnp.broadcast_to(0.5 * dof, batch), jnp.broadcast_to(symmetric_part(scale), (*batch, *scale.shape[-2:]))

    def _mean_log_det(self, theta):
        half, factor, _ = _factored(theta)
        return mean_log_det(half, factor)

    # Central coordinates: (log det E x - E log det x, vech(E x)).

    def _central(self, x, weights):
        return central_of_matrices(symmetric_part(x), weights)

    def _merge(self, first, second, share):
        return merge_matrices(first, second, share)

    def _from_mean(self, mu):
        return mu.at[..., 0].set(log_det(factorise(unvech(mu[..., 1:]))[0]) - mu[..., 0])

    def _central_to_mean(self, central):
        return self._from_mean(central)  # it is its own inverse

    def _central_to_natural(self, central):
        half = inverse_multigamma_gap(central[..., 0], self.size)
        return _joined(half, -half[..., None, None] * gram(factorise(unvech(central[..., 1:]))[1]))

    def _estimable(self, central):
        return spread_out_matrices(central)

    def _obstacle(self, central, count):
        return all_equal(count)


@family
class InverseWishart(Wishart):
    """Positive definite matrices ``x`` whose inverse is Wishart with ``n`` degrees of freedom and scale ``Psi^-1``.

    The usual parameters are ``dof`` ``n`` and ``scale`` ``Psi``. It is the Wishart family seen through
    ``T(x) = (-log det x, vech(x^-1))``: ``theta = (n / 2, vech(-Psi / 2))``, the same ``A`` and the same base measure
    ``det(x)^(-(d+1)/2)``. ``E x = Psi / (n - d - 1)`` for ``n > d + 1``.

    Examples
    --------
    >>> fam = InverseWishart(size=2)
    >>> theta = fam.natural(dof=5.0, scale=[[2.0, 0.0], [0.0, 1.0]])
    >>> fam.log_prob([[1.0, 0.0], [0.0, 1.0]], theta)
    np.float64(-4.0899157...)
    """

    mean_domain = "M = unvech(mu[1:]) positive definite and mu[0] < log det(M) (Jensen's inequality for E log det x^-1)"

    def statistics(self, x):
        factor, inverse = factorise(symmetric_part(x))
        return _joined(-log_det(factor), gram(inverse))

    def natural(self, *, dof, scale):
        half, scale = self._checked(dof, scale)
        return _joined(half, -0.5 * scale)

    def usual(self, theta):
        return {"dof": 2 * theta[..., 0], "scale": -2 * unvech(theta[..., 1:])}

    def expected_log_base(self, theta):
        return 0.5 * (self.size + 1) * self._mean_log_det(theta)

    def _log_density(self, x, theta):
        half, factor, _ = _factored(theta)
        root, root_inverse = factorise(symmetric_part(x))
        return inverse_log_density(root, root_inverse, half, factor)

    def _draw(self, key, theta, shape):
        half, factor, _ = _factored(theta)
        return inverse_wishart(key, half, factor, shape)

    def _central(self, x, weights):
        return central_of_matrices(gram(factorise(symmetric_part(x))[1]), weights)


def _joined(number, matrix):
    return jnp.concatenate([number[..., None], vech(matrix)], axis=-1)


def _factored(theta):
    """``n / 2``, and the factor of ``B`` with its inverse."""
    return theta[..., 0], *factorise(-unvech(theta[..., 1:]))


# What the families of random matrices share: `half` is n / 2, `factor` is that of B -----------------------------------


def conjugate_from_gap(gap, size):
    """``A*`` as a function of ``log det E x - E log det x``."""
    return -entropy_from_half(inverse_multigamma_gap(gap, size), size)


def mean_log_det(half, factor):
    """``E log det x = digamma_d(n / 2) - log det B``."""
    size = factor.shape[-1]
    return size * jnp.log(half) - multigamma_gap(half, size)[0] - log_det(factor)


def entropy_from_half(half, size):
    """``A - <theta, mu> = log Gamma_d(a) - a digamma_d(a) + a d``, the entropy relative to the base measure."""
    return multigamma_rest(half, size) + half * multigamma_gap(half, size)[0]


def log_density(log_det_x, ratio, half):
    """The log density at ``x`` from ``log det x`` and a symmetric matrix similar to ``B x``.

    ``-(d + 1) / 2 log det x - a [trace E - log det(I + E)] - G(a)`` with ``I + E = B x / a``, ``a = n / 2``: the two
    large terms, which cancel, are gone.
    """
    size = ratio.shape[-1]
    ratio = ratio / half[..., None, None]
    excess = trace_excess(ratio - jnp.eye(size, dtype=ratio.dtype), factorise(ratio)[0])
    return -0.5 * (size + 1) * log_det_x - half * excess - multigamma_rest(half, size)


def inverse_log_density(root, root_inverse, half, factor):
    """The log density of the inverse Wishart at the matrix with these factors."""
    return log_density(log_det(root), gram(root_inverse @ factor), half)


def near_divergence(half, inverse, other_half, change):
    """``KL`` between two Wishart distributions, `change` being the other ``B`` minus the first, and squared pivots.

    ``D_G(b, a) + b [trace F - log det(I + F)]`` with ``I + F = (a / b) B^-1 B'``: both terms are positive, and small
    when the distributions are near.
    """
    a, b = half[..., None, None], other_half[..., None, None]
    ratio = (a * whiten(inverse, change) + (a - b) * jnp.eye(inverse.shape[-1], dtype=inverse.dtype)) / b
    root, _ = factorise(ratio + jnp.eye(inverse.shape[-1], dtype=inverse.dtype))
    value = multigamma_divergence(other_half, half, inverse.shape[-1]) + other_half * trace_excess(ratio, root)
    return value, diagonal(root) ** 2


def far_divergence(first, second):
    """The same of distributions that are far apart, from their ``n / 2`` and the factor of ``B`` with its inverse."""
    (half, factor, inverse), (other_half, other_factor, _) = first, second
    excess = far_excess(factor, inverse, other_factor, half / other_half)
    return multigamma_divergence(other_half, half, factor.shape[-1]) + other_half * excess


def bartlett(key, half, size, shape):
    """Lower triangular ``R`` with ``R R^T`` Wishart of ``B = I`` (Bartlett 1933)."""
    normal_key, gamma_key = jax.random.split(key)
    batch = (*shape, *half.shape)
    normals = jax.random.normal(normal_key, (*batch, size, size), dtype=half.dtype) * np.sqrt(0.5)
    shapes = half[..., None] - 0.5 * np.arange(size).astype(half.dtype)
    logs = jax.random.loggamma(gamma_key, shapes, (*batch, size), dtype=half.dtype)
    # A tiny shape draws numbers below the smallest float: they are kept positive.
    pivots = jnp.maximum(jnp.exp(0.5 * logs), jnp.sqrt(jnp.finfo(half.dtype).tiny))
    return jnp.tril(normals, -1) + pivots[..., None] * jnp.eye(size, dtype=half.dtype)


def inverse_wishart(key, half, factor, shape):
    """Draws ``(*shape, *batch, d, d)`` of the inverse Wishart with ``B = Psi / 2``."""
    return gram(inverse_of_lower(bartlett(key, half, factor.shape[-1], shape)) @ transpose(factor))


def central_of_matrices(matrices, weights):
    """``(log det E x - E log det x, vech(E x))`` of matrices on the first axis."""
    weights = weights[..., None, None]
    mean = jnp.sum(weights * matrices, axis=0)
    mean = mean + jnp.sum(weights * (matrices - mean), axis=0)  # a second pass takes the rounding of the first away
    excess = trace_excess(whiten(factorise(mean)[1], matrices - mean))
    return _joined(jnp.sum(weights[..., 0, 0] * excess, axis=0), mean)


def merge_matrices(first, second, share):
    """The central coordinates of a mixture: the gaps, and what the two means add to them."""
    merged = first + share[..., None] * (second - first)
    apart = whiten(factorise(unvech(merged[..., 1:]))[1], unvech(second[..., 1:] - first[..., 1:]))
    weight = share[..., None, None]
    between = (1 - share) * trace_excess(-weight * apart) + share * trace_excess((1 - weight) * apart)
    return merged.at[..., 0].add(between)


def spread_out_matrices(central):
    """Whether the matrices differ by more than the rounding of their mean."""
    mean = unvech(central[..., 1:])
    worst = jnp.min(correlation_pivots(mean), axis=-1)  # NaN where the mean is singular: then False
    rounding = 8 * mean.shape[-1] * jnp.finfo(central.dtype).eps / worst
    return jnp.all(jnp.isfinite(central), axis=-1) & (central[..., 0] > rounding**2)


def all_equal(count):
    """Why data whose spread is rounding have no estimate."""
    return f"all {count:g} observations are equal, and the likelihood keeps growing as dof goes to infinity"
