"""The normal family in several dimensions, mean and covariance unknown; and the algebra that its relatives share."""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.families.base import family
from cumulant.families.cholesky import (
    LARGE,
    columns_last,
    correlation_pivots,
    diagonal,
    factorise,
    factors_last,
    far_excess,
    gram,
    log_det,
    near_or_far,
    positive_definite,
    product_last,
    symmetric_part,
    times,
    trace_excess,
    transpose,
    whiten,
)
from cumulant.families.rows import ByRows, in_chunks
from cumulant.families.special import excess
from cumulant.geometry.symmetric import unvech, vech

_LOG_2PI = float(np.log(2 * np.pi))


@family
class MultivariateNormal(ByRows):
    """Vectors ``x`` of `size` ``d`` with mean ``m`` and covariance matrix ``S``; ``P = S^-1`` is the precision matrix.

    ``T(x) = (x, vech(x x^T))``, ``theta = (P m, vech(-P / 2))``, ``A(theta) = m^T P m / 2 - log det(P) / 2``,
    ``mu = (m, vech(S + m m^T))``, ``A*(mu) = -log det(S) / 2 - d / 2``, base measure ``(2 pi)^(-d/2)``.

    Statistics are kept as (mean, centred covariance), so that estimates do not cancel when ``|m|`` is much larger than
    the spread; divergences are accurate relative to themselves, however close the two members are.

    Examples
    --------
    >>> fam = MultivariateNormal(size=2)
    >>> theta = fam.natural(mean=[1.0, 1.0], covariance=[[2.0, 1.0], [1.0, 2.0]])
    >>> fam.to_mean(theta)  # the mean, and the second moments with sqrt 2 off the diagonal
    array([1.        , 1.        , 3.        , 2.82842712, 3.        ])
    >>> fam.entropy(theta)
    np.float64(3.3871832107...)
    """

    size: int

    support = "x real, a vector"
    usual_domain = "a finite mean and a symmetric, positive definite covariance"
    domain = "theta finite, and unvech(theta[size:]) negative definite (minus half the precision matrix)"
    mean_domain = "unvech(mu[size:]) - mu[:size] mu[:size]^T positive definite (the covariance matrix)"

    def __post_init__(self):
        check_size(self.size)

    @property
    def dim(self):
        return self.size + self.size * (self.size + 1) // 2

    @property
    def event_shape(self):
        return (self.size,)

    @property
    def constant_log_base(self):
        return -0.5 * self.size * _LOG_2PI

    def statistics(self, x):
        return jnp.concatenate([x, vech(outer(x, x))], axis=-1)

    def log_partition(self, theta):
        shift, matrix = self._split(theta)
        factor, inverse = factorise(-2 * matrix)
        return 0.5 * (jnp.sum(times(inverse, shift) ** 2, axis=-1) - log_det(factor))

    def natural(self, *, mean, covariance):
        mean, covariance = floats(mean, covariance)
        check_shape("mean", mean, (self.size,))
        check_shape("covariance", covariance, (self.size, self.size))
        batch = jnp.broadcast_shapes(mean.shape[:-1], covariance.shape[:-2])
        return natural_from(jnp.broadcast_to(mean, (*batch, self.size)), symmetric_part(covariance))

    def usual(self, theta):
        mean, _, inverse = self._moments(theta)
        return {"mean": mean, "covariance": gram(inverse)}

    def to_mean(self, theta):
        mean, _, inverse = self._moments(theta)
        return jnp.concatenate([mean, vech(gram(inverse) + outer(mean, mean))], axis=-1)

    def conjugate(self, mu):
        _, covariance = self._split(self._from_mean(mu))
        return -0.5 * (log_det(factorise(covariance)[0]) + self.size)

    def entropy(self, theta):
        return 0.5 * (self.size * (1 + _LOG_2PI) - log_det(factorise(-2 * self._split(theta)[1])[0]))

    def _inside(self, x, inside):
        return x  # what is computed from a NaN is not looked at, and a copy of the data takes a quarter of the time

    def _log_density(self, x, theta):
        if theta.ndim > 1 and x.shape[:-1] == theta.shape[:-1] and self.size <= LARGE:
            flat = in_chunks(self._log_density_rows, x.reshape(-1, self.size), theta.reshape(-1, self.dim))
            return flat.reshape(x.shape[:-1])
        mean, factor, _ = self._moments(theta)
        return log_density(x - mean, factor)

    def _log_density_rows(self, x, theta):
        """A parameter per point. Below the precision stands ``P m``, whose row of the factor is then ``L^T m``."""
        shift, matrix = self._split(theta)
        columns = columns_last(jnp.moveaxis(jnp.concatenate([-2 * matrix, shift[:, None, :]], axis=-2), 0, -1))
        x = x.T
        value = jnp.full_like(x[0], -0.5 * self.size * _LOG_2PI)
        for j, column in enumerate(columns):
            standard = jnp.sum(column[:-1] * x[j:], axis=0) - column[-1]
            value = value + jnp.log(column[0]) - 0.5 * standard**2
        return value

    def kl(self, theta, other):
        near = self._near_divergence if self.size <= LARGE else self._near_divergence_large
        return near_or_far(near, self._far_divergence, *jnp.broadcast_arrays(theta, other))

    def _far_divergence(self, theta, other):
        mean, factor, inverse = self._moments(theta)
        shift, matrix = self._split(other)
        other_factor, other_inverse = factorise(-2 * matrix)
        apart = times(other_inverse, shift + 2 * times(matrix, mean))
        return 0.5 * (jnp.sum(apart**2, axis=-1) + far_excess(factor, inverse, other_factor))

    def _near_divergence(self, theta, other):
        flat = [jnp.moveaxis(vector, -1, 0) for vector in (theta, other - theta)]
        shift, matrix = flat[0][: self.size], self._matrix_first(flat[0])
        change = self._matrix_first(flat[1])  # of the precision matrix
        _, inverse = factors_last(matrix)
        inverse_transposed = jnp.swapaxes(inverse, 0, 1)
        mean = product_last(inverse_transposed, product_last(inverse, shift[:, None]))
        step = flat[1][: self.size, None] - product_last(change, mean)  # other precision times difference of the means
        ratio = product_last(product_last(inverse, change), inverse_transposed)
        below = jnp.swapaxes(product_last(inverse, step), 0, 1)
        identity = np.eye(self.size, dtype=theta.dtype).reshape(self.size, self.size, *(1,) * (ratio.ndim - 2))
        value, left, pivots = 0.0, jnp.zeros_like(ratio[0]), []
        for j, column in enumerate(columns_last(jnp.concatenate([ratio + identity, below]))):
            value = value + excess(ratio[j, j] - left[j]) + left[j] + column[-1] ** 2  # see `trace_excess`
            left = left.at[j + 1 :].add(column[1:-1] ** 2)
            pivots.append(column[0] ** 2)
        return 0.5 * value, jnp.stack(pivots, axis=-1)

    def _matrix_first(self, vector):
        """The matrix of a parameter, minus two times, when the batch comes last."""
        return -2 * jnp.moveaxis(unvech(jnp.moveaxis(vector[self.size :], 0, -1)), (-2, -1), (0, 1))

    def _near_divergence_large(self, theta, other):
        mean, _, inverse = self._moments(theta)
        shift, change = self._split(other - theta)
        change = -2 * change  # of the precision matrix
        step = shift - times(change, mean)  # the other precision times the difference of the means
        ratio = whiten(inverse, change)
        root, root_inverse = factorise(ratio + jnp.eye(self.size, dtype=ratio.dtype))
        apart = times(root_inverse, times(inverse, step))
        return 0.5 * (jnp.sum(apart**2, axis=-1) + trace_excess(ratio, root)), diagonal(root) ** 2

    def in_domain(self, theta):
        return jnp.all(jnp.isfinite(theta), axis=-1) & positive_definite(-2 * self._split(theta)[1])

    def in_mean_domain(self, mu):
        return jnp.all(jnp.isfinite(mu), axis=-1) & positive_definite(self._split(self._from_mean(mu))[1])

    def _draw(self, key, theta, shape):
        mean, _, inverse = self._moments(theta)
        return mean + spread_out(jax.random.normal(key, (*shape, *mean.shape), dtype=theta.dtype), inverse)

    def _split(self, vector):
        """The vector and the matrix that a parameter is made of."""
        return vector[..., : self.size], unvech(vector[..., self.size :])

    def _moments(self, theta):
        """The mean, and the factor of the precision matrix with its inverse."""
        shift, matrix = self._split(theta)
        factor, inverse = factorise(-2 * matrix)
        return times(transpose(inverse), times(inverse, shift)), factor, inverse

    # Central coordinates: (mean, covariance), merged by the parallel form of Welford's update.

    def _central(self, x, weights):
        mean = jnp.sum(weights[..., None] * x, axis=0)
        # A second pass takes the rounding of the first away.
        mean = mean + jnp.sum(weights[..., None] * (x - mean), axis=0)
        return jnp.concatenate([mean, vech(second_moment(x - mean, weights))], axis=-1)

    def _merge(self, first, second, share):
        share, step = share[..., None], second - first
        merged = first + share * step
        apart = step[..., : self.size]
        return merged.at[..., self.size :].add(share * (1 - share) * vech(outer(apart, apart)))

    def _from_mean(self, mu):
        mean = mu[..., : self.size]
        return jnp.concatenate([mean, mu[..., self.size :] - vech(outer(mean, mean))], axis=-1)

    def _central_to_mean(self, central):
        mean = central[..., : self.size]
        return jnp.concatenate([mean, central[..., self.size :] + vech(outer(mean, mean))], axis=-1)

    def _central_to_natural(self, central):
        return natural_from(*self._split(central))

    def _estimable(self, central):
        return full_rank(*self._split(central))

    def _obstacle(self, central, count):
        mean, covariance = self._split(np.asarray(central))
        return why_not_full_rank(mean, covariance, count, self.size + 1)


# Arguments ------------------------------------------------------------------------------------------------------------


def check_size(size) -> None:
    """Refuse a `size` that is no whole number of coordinates."""
    checks.whole("size", size)


def check_shape(name, value, shape) -> None:
    """Refuse a parameter whose trailing axes are not `shape`."""
    if value.shape[-len(shape) :] != shape:
        raise ValueError(f"{name} must have shape (..., {', '.join(map(str, shape))}); got {value.shape}")


def floats(*values):
    """Arguments as arrays of one floating type: the caller's, and floats for integers."""
    dtype = jnp.result_type(float, *values)
    return tuple(jnp.asarray(value, dtype=dtype) for value in values)


# Mathematics ----------------------------------------------------------------------------------------------------------


def log_density(apart, factor):
    """The log density of a normal, `apart` from its mean, by a triangular ``L`` with ``L L^T`` the precision matrix."""
    standard = jnp.einsum("...i,...ij->...j", apart, factor)
    return -0.5 * (jnp.sum(standard**2, axis=-1) + apart.shape[-1] * _LOG_2PI - log_det(factor))


def outer(x, y):
    """``x y^T``."""
    return x[..., :, None] * y[..., None, :]


def second_moment(apart, weights):
    """The weighted sum of outer products of the rows."""
    return jnp.einsum("n...i,n...j->...ij", weights[..., None] * apart, apart)


def natural_from(mean, covariance):
    """The natural parameter of a mean and a covariance."""
    precision = gram(factorise(covariance)[1])
    precision = jnp.broadcast_to(precision, (*mean.shape[:-1], *precision.shape[-2:]))
    return jnp.concatenate([times(precision, mean), -0.5 * vech(precision)], axis=-1)


def spread_out(standard, inverse):
    """Standard normal vectors as vectors whose precision matrix has a factor with this inverse: ``R^T z``."""
    return jnp.einsum("...i,...ij->...j", standard, inverse)


def _rank_floor(mean, covariance, xp):
    """What of a column, relative to its variance, may be rounding: of the sums, and of the observations themselves."""
    eps = xp.finfo(covariance.dtype).eps
    variances = xp.diagonal(covariance, 0, -2, -1)
    constant_columns = ~(variances > (4 * eps * mean) ** 2)
    away = xp.max(mean**2 / xp.where(constant_columns, xp.inf, variances), axis=-1)
    return constant_columns, 64 * covariance.shape[-1] * eps + 16 * eps**2 * away


def full_rank(mean, covariance):
    """Whether a covariance is positive definite beyond the rounding of data with this mean."""
    constant_columns, floor = _rank_floor(mean, covariance, jnp)
    pivots = correlation_pivots(covariance)
    return ~jnp.any(constant_columns, axis=-1) & jnp.all(pivots > floor[..., None], axis=-1)


def why_not_full_rank(mean, covariance, count, needed):
    """The reason for which a covariance matrix estimated from data is singular."""
    growing = "the likelihood keeps growing as the covariance becomes singular"
    if count < needed:
        few = (
            f"{count:g} observations are too few for a covariance matrix in dimension {len(mean)}, which needs {needed}"
        )
        return f"{few}: {growing}"
    constant_columns, floor = _rank_floor(mean, covariance, np)
    if np.any(constant_columns):
        return f"column {int(np.argmax(constant_columns))} of the {count:g} observations is constant, and {growing}"
    spread = np.sqrt(np.diagonal(covariance))
    correlation = covariance / np.outer(spread, spread)
    for j in range(1, len(mean)):
        slopes = np.linalg.lstsq(correlation[:j, :j], correlation[:j, j], rcond=None)[0]
        if 1 - slopes @ correlation[:j, j] <= 2 * floor:
            used = ", ".join(str(i) for i in np.flatnonzero(np.abs(slopes) > np.sqrt(floor)))
            return f"column {j} of the {count:g} observations is a linear combination of columns {used}, and {growing}"
    return f"the covariance of the {count:g} observations is singular to rounding, and {growing}"
