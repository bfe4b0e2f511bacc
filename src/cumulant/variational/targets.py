"""Targets whose smoothness and strong log-concavity follow from the data: regressions with a Gaussian prior.

The log-densities of regressions are those of data and coefficients together, normalised: evidence bounds are bounds on
the marginal likelihood.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln

from cumulant import checks
from cumulant.certificates import check
from cumulant.errors import DomainError
from cumulant.optim.problems.enclosures import UNIT, smallest_eigenvalue
from cumulant.pytrees import pytree
from cumulant.sampling import Target


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class KnownTarget(Target):
    """A target whose constants were computed from its data, with the error of that computation counted."""

    constants_are: ClassVar[str] = "checked"


def gaussian(mean: Any, covariance: Any) -> KnownTarget:
    """``N(mean, covariance)``, normalised: what variational inference must find exactly.

    ``M`` and ``mu`` are the extreme eigenvalues of the inverse covariance.

    >>> target = gaussian([1.0, -1.0], [[1.0, 0.3], [0.3, 0.5]])
    >>> round(target.smoothness, 4), round(target.strong_convexity, 4)
    (2.7817, 0.8768)
    """
    mean = _vector(mean, "mean")
    covariance = _covariance(covariance, len(mean), "covariance")
    precision, error = _inverse(covariance)
    log_det = 2 * np.sum(np.log(np.diagonal(np.linalg.cholesky(covariance))))
    constant = -(len(mean) * np.log(2 * np.pi) + log_det) / 2
    return KnownTarget(_gaussian, len(mean), (mean, precision, constant), *_constants(precision, error))


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class Regression(KnownTarget):
    """The posterior of a regression with a Gaussian prior: losses of scores ``<x_i, z>`` plus a quadratic.

    What is expected under a Gaussian ``q`` are integrals over one dimension each: `fit` computes them instead of
    sampling. Made by `linear_regression`, `logistic_regression` and `poisson_regression`.
    """

    likelihood: str = dataclasses.field(default="normal", metadata={"static": True})

    @property
    def n_rows(self) -> int:
        """The number of observations."""
        return self.data[0].shape[0]

    def at_rows(self, z: Any, rows: Any) -> Any:
        """The log-density with the likelihood of some rows, scaled up: unbiased over rows drawn with replacement."""
        X, y, precision, constant, noise_scale = self.data
        few = (jnp.asarray(X)[rows], jnp.asarray(y)[rows], precision, constant, noise_scale)
        prior = constant - z @ precision @ z / 2
        return prior + (self.function(z, few) - prior) * (self.n_rows / rows.shape[0])


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class SumTarget(Target):
    """``log p(z) = log_prior(z) + sum_i log_likelihood(z, row_i)``: gradients may be taken from some of the rows.

    Give it to `fit` with ``estimator=EnergyGradient(batch=16, rows=100)`` or another estimator with `rows`. Made by
    `sum_target`.
    """

    log_prior: Any = dataclasses.field(default=None, metadata={"static": True})

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return jax.tree.leaves(self.data)[0].shape[0]

    def at(self, x: Any) -> Any:
        """The log-density at one vector, from all rows."""
        return self._total(x, self.data, 1.0)

    def at_rows(self, x: Any, rows: Any) -> Any:
        """The log-density with the likelihood of some rows, scaled up: unbiased over rows drawn with replacement."""
        few = jax.tree.map(lambda leaf: jnp.asarray(leaf)[rows], self.data)
        return self._total(x, few, self.n_rows / rows.shape[0])

    def _total(self, x, data, factor):
        point = self.unflatten(x) if isinstance(self.variables, tuple) else x
        terms = jax.vmap(self.function, in_axes=(None, 0))(point, data)
        return self.log_prior(point) + factor * jnp.sum(terms)


def sum_target(
    log_likelihood: Any,
    variables: Any,
    rows: Any,
    log_prior: Any,
    smoothness: float | None = None,
    strong_convexity: float = 0.0,
) -> SumTarget:
    """A target that is a prior and a sum over rows of data.

    Parameters
    ----------
    log_likelihood : callable
        A JAX function of ``(x, row)``: the contribution of one row.
    variables : int or mapping of str to shape
        As for `Target`.
    rows : pytree of arrays
        The data, one row along the first axis of every array.
    log_prior : callable
        A JAX function of ``x``.
    smoothness, strong_convexity : float
        Of ``-log p``, as for `Target`: your word.

    Examples
    --------
    >>> def log_likelihood(z, row):
    ...     return -((row["y"] - row["x"] @ z) ** 2) / 2
    >>> def log_prior(z):
    ...     return -jnp.sum(z**2) / 2
    >>> target = sum_target(log_likelihood, 2, {"x": np.eye(2), "y": np.ones(2)}, log_prior)
    >>> target.n_rows, float(target.log_density([1.0, 0.0]))
    (2, -1.0)
    """
    leaves = jax.tree.leaves(rows)
    if not leaves or any(np.ndim(leaf) == 0 for leaf in leaves) or len({len(leaf) for leaf in leaves}) != 1:
        raise ValueError("rows must be arrays with the same number of rows along their first axis")
    if not callable(log_prior):
        raise TypeError(f"log_prior must be a function of x; got {type(log_prior).__name__}")
    return SumTarget(log_likelihood, variables, rows, smoothness, strong_convexity, log_prior)


def linear_regression(X: Any, y: Any, noise_scale: float = 1.0, prior_scale: Any = 1.0) -> Regression:
    """The posterior of ``z`` with ``y ~ N(X z, noise_scale^2)`` and ``z ~ N(0, prior)``; it is Gaussian.

    The Hessian of ``-log p`` is ``prior^-1 + X^T X / noise_scale^2`` (Domke, Garrigos and Gower 2023, corollary 25).

    Parameters
    ----------
    X : array (n, d)
    y : array (n,)
    noise_scale : float
        The standard deviation of the observations.
    prior_scale : float, array (d,) or array (d, d)
        The standard deviation of the prior, one for each coordinate, or its covariance matrix.

    Examples
    --------
    >>> target = linear_regression([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]], [0.0, 0.0, 0.0], noise_scale=0.5**0.5)
    >>> round(target.strong_convexity, 9), round(target.smoothness, 9)
    (3.0, 13.0)
    """
    X, y = _rows(X, y)
    checks.positive("noise_scale", noise_scale)
    curvature = 1 / noise_scale**2
    constant = -len(y) * np.log(noise_scale * np.sqrt(2 * np.pi))
    return _regression("normal", X, y, (curvature, curvature), prior_scale, constant, noise_scale)


def logistic_regression(X: Any, y: Any, prior_scale: Any = 1.0) -> Regression:
    """The posterior of ``z`` with ``P(y = 1) = 1 / (1 + exp(-<x, z>))`` and ``z ~ N(0, prior)``.

    The Hessian of ``-log p`` is between ``prior^-1`` and ``prior^-1 + X^T X / 4`` (Domke, Garrigos and Gower 2023,
    corollary 26).

    Parameters
    ----------
    X : array (n, d)
    y : array (n,)
        Two values: 0 and 1, or -1 and 1, or False and True.
    prior_scale : float, array (d,) or array (d, d)
        The standard deviation of the prior, one for each coordinate, or its covariance matrix.

    Examples
    --------
    >>> target = logistic_regression([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]], [0, 1, 1])
    >>> round(target.strong_convexity, 9), round(target.smoothness, 9)
    (1.0, 2.5)
    """
    X, y = _rows(X, y)
    return _regression("bernoulli", X, _signs(y), (0.0, 0.25), prior_scale)


def poisson_regression(X: Any, y: Any, prior_scale: Any = 1.0) -> Regression:
    """The posterior of ``z`` with counts ``y ~ Poisson(exp(<x, z>))`` and ``z ~ N(0, prior)``.

    Strongly log-concave by its prior; not smooth.

    >>> target = poisson_regression([[1.0], [2.0]], [0, 3], prior_scale=0.5)
    >>> round(target.strong_convexity, 9), target.smoothness
    (4.0, None)
    """
    X, y = _rows(X, y)
    if not np.all((y >= 0) & (y == np.floor(y))):
        raise ValueError("y must hold counts: whole numbers, none negative")
    return _regression("poisson", X, y, (0.0, None), prior_scale, -float(np.sum(gammaln(y + 1))))


def hierarchical_logistic(X: Any, y: Any, groups: Any, prior_scale: Any = 1.0, group_scale: Any = 1.0) -> KnownTarget:
    """Logistic regressions of several groups whose coefficients scatter around common ones.

    ``theta ~ N(0, prior)``, ``z_i ~ N(theta, group)``, ``P(y = 1) = 1 / (1 + exp(-<x, z_i>))`` for the rows of group
    ``i``. The variables are ``theta`` (d,) and ``z`` (groups, d). The Hessian of ``-log p`` is between that of the
    prior and that plus ``X_i^T X_i / 4`` in the block of each group (Domke, Garrigos and Gower 2023, corollary 28).

    >>> target = hierarchical_logistic(np.zeros((3, 1)), [0, 1, 1], [0, 1, 2])
    >>> round(target.strong_convexity, 7), round(target.smoothness, 7)
    (0.2087122, 4.7912878)
    """
    X, y = _rows(X, y)
    groups = np.asarray(groups)
    if groups.shape != (len(X),):
        raise ValueError(f"groups must have an entry for each row, shape ({len(X)},); got {groups.shape}")
    levels, member = np.unique(groups, return_inverse=True)
    d, n = X.shape[1], len(levels)
    prior, prior_error = _precision(prior_scale, d, "prior_scale")
    group, group_error = _precision(group_scale, d, "group_scale")
    lower = np.kron(np.eye(n + 1), group)
    lower[:d, :d] = prior + n * group
    lower[:d, d:], lower[d:, :d] = np.tile(-group, n), np.tile(-group, n).T
    upper = lower.copy()
    for i in range(n):
        block, rows = slice((i + 1) * d, (i + 2) * d), X[member == i]
        upper[block, block] += rows.T @ rows / 4
    error = prior_error + 4 * n * group_error + UNIT * (len(X) + 4) * (np.abs(lower).sum(axis=1).max() + np.sum(X**2))
    shapes = {"theta": (d,), "z": (n, d)}
    data = (X, _signs(y), member, prior, group)
    return KnownTarget(_hierarchical, shapes, data, *_ends(lower, upper, error))


# Log-densities -------------------------------------------------------------------------------------------------------


def _gaussian(z, data):
    mean, precision, constant = data
    return constant - (z - mean) @ precision @ (z - mean) / 2


def _linear(z, data):
    X, y, precision, constant, noise_scale = data
    residual = (X @ z - y) / noise_scale
    return constant - jnp.dot(residual, residual) / 2 - z @ precision @ z / 2


def _logistic(z, data):
    X, signs, precision, constant, _ = data
    return constant - jnp.sum(jax.nn.softplus(-signs * (X @ z))) - z @ precision @ z / 2


def _poisson(z, data):
    X, y, precision, constant, _ = data
    scores = X @ z
    return constant - jnp.sum(jnp.exp(scores) - y * scores) - z @ precision @ z / 2


_DENSITIES = {"normal": _linear, "bernoulli": _logistic, "poisson": _poisson}


def _hierarchical(variables, data):
    X, signs, member, prior, group = data
    theta, z = variables["theta"], variables["z"]
    scores = jnp.sum(X * z[member], axis=1)
    scatter = z - theta
    quadratic = theta @ prior @ theta + jnp.sum((scatter @ group) * scatter)
    return -jnp.sum(jax.nn.softplus(-signs * scores)) - quadratic / 2


# Constants ------------------------------------------------------------------------------------------------------------


def _regression(
    likelihood: str,
    X: np.ndarray,
    y: np.ndarray,
    curvature: tuple[float, float | None],
    prior_scale: Any,
    constant: float = 0.0,
    noise_scale: float = 1.0,
) -> Regression:
    """Theorem 24 of Domke, Garrigos and Gower (2023): the second derivative of a row's loss is within `curvature`."""
    d = X.shape[1]
    precision, error = _precision(prior_scale, d, "prior_scale")
    constant += (np.linalg.slogdet(precision)[1] - d * np.log(2 * np.pi)) / 2  # that of the prior
    M, mu = _regression_ends(X, precision, curvature, error)
    data = (X, y, precision, float(constant), float(noise_scale))
    return Regression(_DENSITIES[likelihood], d, data, None if curvature[1] is None else M, mu, likelihood)


def _regression_ends(
    X: np.ndarray, precision: np.ndarray, curvature: tuple[float, float | None], error: float
) -> tuple[float, float]:
    least, most = curvature
    gram = X.T @ X
    lower, upper = precision + least * gram, precision + (least if most is None else most) * gram
    error += max(least, most or 0.0) * UNIT * (len(X) + 4) * float(np.sum(X**2))
    return _ends(lower, upper, error)


def checked_strong_convexity(target: Regression) -> float:
    """``mu`` of a regression computed again from its data: what its field says is the word of whoever made it.

    Raises `CertificateError` where function and data are not those of its likelihood.
    """
    X, y, precision, _, noise = (np.asarray(part, dtype=np.float64) for part in target.data)
    d = target.dim
    shapes = X.ndim == 2 and X.shape[1] == d and y.shape == X.shape[:1] and precision.shape == (d, d)
    numbers = shapes and all(np.all(np.isfinite(part)) for part in (X, y, precision, noise))
    likely = {"normal": noise > 0, "bernoulli": np.all(np.abs(y) == 1), "poisson": np.all(y >= 0)}
    fits = target.function is _DENSITIES.get(target.likelihood) and numbers and likely[target.likelihood]
    check(fits and np.array_equal(precision, precision.T), "the log-density is that of the regression's data")
    # The penalty alone is enough, and where its curvature is much smaller than that of the rows all that is certain.
    alone = _ends(precision, precision, 0.0)[1]
    if target.likelihood != "normal":
        return alone
    curvature = float(1 / noise**2)
    return max(alone, _regression_ends(X, precision, (curvature * (1 - UNIT), curvature), 0.0)[1])


def _constants(hessian: np.ndarray, error: float) -> tuple[float, float]:
    return _ends(hessian, hessian, error)


def _ends(lower: np.ndarray, upper: np.ndarray, error: float) -> tuple[float, float]:
    """``(M, mu)`` from bounds of the Hessian that are known within `error` in spectral norm: rounded outwards."""
    M, mu = -smallest_eigenvalue(-upper) + error, smallest_eigenvalue(lower) - error
    return float(M * (1 + UNIT)), float(max(mu * (1 - UNIT), 0.0))


def _precision(scale: Any, d: int, name: str) -> tuple[np.ndarray, float]:
    """The inverse of a prior covariance, and how far it may be off in spectral norm."""
    scale = checks.real_array(name, scale)
    if scale.ndim == 2:
        return _inverse(_covariance(scale, d, name))
    scales = _vector(np.broadcast_to(scale, (d,)) if scale.ndim == 0 else scale, name)
    if len(scales) != d or not np.all(scales > 0):
        raise ValueError(f"{name} must be a positive number, {d} of them, or a ({d}, {d}) covariance; got {scale}")
    precision = np.diag(scales**-2.0)
    return precision, 4 * UNIT * float(np.max(precision))


def _inverse(covariance: np.ndarray) -> tuple[np.ndarray, float]:
    """A computed inverse ``P`` of ``S``, and how far it may be off: ``|P| e / (1 - e)``, ``e = |I - S P|``."""
    precision = np.linalg.inv(covariance)
    precision = (precision + precision.T) / 2
    n = len(covariance)
    residual = np.abs(np.eye(n) - covariance @ precision) + UNIT * (n + 2) * (np.abs(covariance) @ np.abs(precision))
    size = _spectral(residual)
    if not size < 0.5:
        raise DomainError("the covariance is too close to singular for its inverse to be known in float64")
    return precision, _spectral(np.abs(precision)) * size / (1 - size) * (1 + 16 * UNIT)


def _spectral(magnitudes: np.ndarray) -> float:
    """At least the spectral norm of any matrix with entries of at most these magnitudes."""
    return float(np.sqrt(magnitudes.sum(axis=0).max() * magnitudes.sum(axis=1).max())) * (1 + len(magnitudes) * UNIT)


def _covariance(value: Any, d: int, name: str) -> np.ndarray:
    S = checks.real_array(name, value)
    if S.shape != (d, d) or not np.array_equal(S, S.T):
        raise ValueError(f"{name} must be a finite symmetric matrix of shape ({d}, {d}); got shape {S.shape}")
    if not smallest_eigenvalue(S) > 0:
        raise DomainError(f"{name} must be positive definite")
    return S


def _vector(value: Any, name: str) -> np.ndarray:
    v = checks.real_array(name, value, ndim=1)
    if v.size == 0:
        raise ValueError(f"{name} must have at least one entry; it is empty")
    return v


def _rows(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    X, y = checks.real_array("X", X, finite=False), checks.real_array("y", y, finite=False)
    if X.ndim != 2 or 0 in X.shape or not np.all(np.isfinite(X)):
        raise ValueError(f"X must be a finite matrix with at least one row and column; got shape {X.shape}")
    if y.shape != (len(X),) or not np.all(np.isfinite(y)):
        raise ValueError(f"y must be {len(X)} finite numbers, one for each row of X; got shape {y.shape}")
    return X, y


def _signs(y: np.ndarray) -> np.ndarray:
    if not (np.all((y == 0) | (y == 1)) or np.all(np.abs(y) == 1)):
        raise ValueError(f"y must hold 0 and 1, or -1 and 1; got the values {np.unique(y)[:5]}")
    return np.where(y > 0, 1.0, -1.0)
