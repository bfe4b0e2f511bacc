"""Gaussian approximations ``q_w = N(m, C C^T)`` as one array ``w`` of parameters.

The layout of ``w`` is isometric: ``|w|^2 = |m|^2 + |C|_F^2``, so that gradient steps, proximal maps and projections in
``w`` are those in ``(m, C)`` that the theorems speak of. Gradients are projected on the structure of ``C``.
"""

import dataclasses
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from cumulant import geometry
from cumulant.precision import precise
from cumulant.pytrees import pytree

_STATIC: Any = {"static": True}
FACTORS = ("triangular", "symmetric")


@dataclasses.dataclass(frozen=True)
class Gaussian:
    """What all Gaussian approximations share; `FullRank`, `Diagonal`, `Isotropic` and `LowRank` say what ``C`` may be.

    Methods take ``w`` and are plain JAX; ``u`` holds standard normal vectors, one a row: ``(n, noise_dim)``.
    """

    dim: int = dataclasses.field(metadata=_STATIC)

    convex_floor: ClassVar[bool] = True  # whether {sigma_min(C) >= floor} is convex, so that one may project on it

    def __post_init__(self):
        if isinstance(self.dim, bool) or not isinstance(self.dim, int | np.integer) or self.dim < 1:
            raise ValueError(f"dim must be a whole number, at least 1; got {self.dim!r}")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``w``."""
        raise NotImplementedError

    @property
    def noise_dim(self) -> int:
        """The number of columns of ``C``: of standard normal variables that a draw takes."""
        return self.dim

    def pack(self, mean: Any, factor: Any) -> np.ndarray:
        """``w`` from a mean and a factor ``C``, which must have the structure of this family."""
        raise NotImplementedError

    def mean(self, w):
        """``m``."""
        raise NotImplementedError

    def factor(self, w):
        """``C`` as a matrix."""
        raise NotImplementedError

    def apply(self, w, u):
        """``C u``, row by row."""
        raise NotImplementedError

    def solve_transposed(self, w, u):
        """``C^-T u``, row by row: minus the score of ``q_w`` at ``m + C u``."""
        raise NotImplementedError

    def pull_back(self, g, u):
        """The mean over rows of the gradients in ``w`` of ``phi(m + C u)``, ``g = grad phi``: ``(g, proj(g u^T))``."""
        raise NotImplementedError

    def log_det(self, w):
        """``log det C``; NaN or infinite where ``C`` is degenerate."""
        raise NotImplementedError

    def log_det_gradient(self, w):
        """The gradient of `log_det` in ``w``: ``(0, proj(C^-T))``."""
        raise NotImplementedError

    def prox(self, w, step):
        """``argmin_v -step log det C(v) + |v - w|^2 / 2``."""
        raise NotImplementedError

    def project(self, w, floor):
        """The nearest ``v`` with ``C(v)`` symmetric and its eigenvalues at least `floor`."""
        raise NotImplementedError

    def raised(self, w, floor):
        """The nearest ``v`` with the diagonal of ``C(v)`` at least `floor`; eigenvalues where ``C`` is symmetric."""
        return self.project(w, floor)

    def moved(self, w, origin, root):
        """The parameters of ``origin + root v`` for ``v ~ q_w``; `root` must leave the structure of ``C`` as it is."""
        raise NotImplementedError

    def deviations(self, w):
        """The standard deviations of the coordinates."""
        raise NotImplementedError

    # Derived ----------------------------------------------------------------------------------------------------------

    def place(self, w, u):
        """``m + C u``: draws of ``q_w``."""
        return self.mean(w) + self.apply(w, u)

    def covariance(self, w):
        """``C C^T``."""
        C = self.factor(w)
        return C @ C.T

    def negative_entropy(self, w):
        """``E log q_w = -log det C - (d / 2) (1 + log 2 pi)``."""
        return -self.log_det(w) - self.dim / 2 * (1 + math.log(2 * math.pi))

    def log_prob_at(self, w, u):
        """``log q_w(m + C u)``."""
        return -self.log_det(w) - self.dim / 2 * math.log(2 * math.pi) - jnp.sum(u * u, axis=-1) / 2

    @precise
    def log_prob(self, w, z):
        """``log q_w(z)`` at points, one a row."""
        return -self.log_det(w) - self.dim / 2 * math.log(2 * math.pi) - self.quadratic(w, z - self.mean(w)) / 2

    def quadratic(self, w, x):
        """``<x, S^-1 x>`` row by row, ``S`` the covariance."""
        raise NotImplementedError


def _matrix(factor: Any, dim: int) -> np.ndarray:
    C = np.asarray(factor, dtype=np.float64)
    C = C * np.eye(dim) if C.ndim == 0 else C
    if C.shape != (dim, dim) or not np.all(np.isfinite(C)):
        raise ValueError(f"factor must be a finite matrix of shape ({dim}, {dim}), or a number; got shape {C.shape}")
    return C


def _mean(mean: Any, dim: int) -> np.ndarray:
    m = np.asarray(mean, dtype=np.float64)
    m = np.full(dim, m) if m.ndim == 0 else m
    if m.shape != (dim,) or not np.all(np.isfinite(m)):
        raise ValueError(f"mean must be {dim} finite numbers, or one for all; got shape {m.shape}")
    return m


@pytree
@dataclasses.dataclass(frozen=True)
class FullRank(Gaussian):
    """Any covariance: ``w = [m | C]`` of shape ``(d, d + 1)``.

    ``factor="triangular"``: ``C`` lower triangular with a positive diagonal, for proximal steps; the set ``sigma_min(C)
    >= floor`` is not convex then. ``factor="symmetric"``: ``C`` symmetric positive definite, for projected steps. Every
    Gaussian has one of each (Domke, Garrigos and Gower 2023, lemma 15).

    >>> q = FullRank(2)
    >>> w = q.pack([1.0, 2.0], [[2.0, 0.0], [1.0, 1.0]])
    >>> q.covariance(w)
    array([[4., 2.],
           [2., 2.]])
    """

    kind: str = dataclasses.field(default="triangular", metadata=_STATIC)

    def __post_init__(self):
        super().__post_init__()
        if self.kind not in FACTORS:
            raise ValueError(f"kind must be one of {', '.join(FACTORS)}; got {self.kind!r}")

    @property
    def convex_floor(self) -> bool:
        """Whether ``{sigma_min(C) >= floor}`` is convex."""
        return self.kind == "symmetric"

    @property
    def shape(self) -> tuple[int, ...]:
        """``(d, d + 1)``."""
        return (self.dim, self.dim + 1)

    def pack(self, mean: Any, factor: Any) -> np.ndarray:
        """``[m | C]``."""
        C = _matrix(factor, self.dim)
        structured = np.array_equal(C, np.tril(C)) if self.kind == "triangular" else np.array_equal(C, C.T)
        if not structured or not np.all(np.diagonal(C) > 0 if self.kind == "triangular" else np.linalg.eigvalsh(C) > 0):
            raise ValueError(
                f"factor must be {'lower ' if self.kind == 'triangular' else ''}{self.kind} and positive definite"
            )
        return np.concatenate([_mean(mean, self.dim)[:, None], C], axis=1)

    def mean(self, w):
        """The first column."""
        return w[:, 0]

    def factor(self, w):
        """The other columns."""
        return w[:, 1:]

    def apply(self, w, u):
        """``C u``."""
        return u @ w[:, 1:].T

    def solve_transposed(self, w, u):
        """``C^-T u``, by substitution where ``C`` is triangular."""
        C = w[:, 1:]
        if self.kind == "triangular":
            return solve_triangular(C, u.T, trans=1, lower=True).T
        return jnp.linalg.solve(C, u.T).T

    def pull_back(self, g, u):
        """``[g | proj(g u^T)]``."""
        n = g.shape[0]
        return jnp.concatenate([jnp.sum(g, axis=0)[:, None], self._structured(g.T @ u)], axis=1) / n

    def log_det(self, w):
        """The sum of the logarithms of the diagonal, or of the eigenvalues."""
        C = w[:, 1:]
        values = jnp.diagonal(C) if self.kind == "triangular" else jnp.linalg.eigvalsh(C)
        return jnp.sum(jnp.log(jnp.where(values > 0, values, jnp.nan)))

    def log_det_gradient(self, w):
        """``[0 | diag(1 / C_ii)]`` or ``[0 | C^-1]``."""
        C = w[:, 1:]
        G = jnp.diag(1 / jnp.diagonal(C)) if self.kind == "triangular" else self._structured(jnp.linalg.inv(C))
        return jnp.concatenate([jnp.zeros_like(w[:, :1]), G], axis=1)

    def prox(self, w, step):
        """By `geometry.proximal.negative_log_det`."""
        C = geometry.proximal.negative_log_det(w[:, 1:], step, structure=self.kind)
        return jnp.concatenate([w[:, :1], C], axis=1)

    def project(self, w, floor):
        """Eigenvalues of the symmetric part below `floor` are raised to it."""
        if self.kind != "symmetric":
            raise ValueError("projections need kind='symmetric': triangular factors above a floor are not a convex set")
        C = geometry.projections.positive_semidefinite(self._structured(w[:, 1:]), floor)
        return jnp.concatenate([w[:, :1], C], axis=1)

    def raised(self, w, floor):
        """Diagonal entries, or eigenvalues, below `floor` are raised to it."""
        if self.kind == "symmetric":
            return self.project(w, floor)
        shifted = np.eye(self.dim, self.dim + 1, k=1, dtype=bool)
        return jnp.where(shifted, jnp.maximum(w, floor), w)

    def moved(self, w, origin, root):
        """For a lower triangular `root`; a symmetric ``C`` is not kept: use `triangular` first."""
        return np.concatenate([(origin + root @ w[:, 0])[:, None], root @ w[:, 1:]], axis=1)

    def deviations(self, w):
        """The norms of the rows of ``C``."""
        return np.linalg.norm(w[:, 1:], axis=1)

    def quadratic(self, w, x):
        """``|C^-1 x|^2``."""
        solve = solve_triangular if self.kind == "triangular" else jnp.linalg.solve
        return jnp.sum((solve(w[:, 1:], x.T, **({"lower": True} if self.kind == "triangular" else {}))) ** 2, axis=0)

    def _structured(self, G):
        return jnp.tril(G) if self.kind == "triangular" else (G + G.T) / 2


@pytree
@dataclasses.dataclass(frozen=True)
class Diagonal(Gaussian):
    """Independent coordinates: ``w = [m | c]`` of shape ``(d, 2)``, ``C = diag(c)``.

    >>> q = Diagonal(2)
    >>> q.covariance(q.pack(0.0, [1.0, 2.0]))
    array([[1., 0.],
           [0., 4.]])
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """``(d, 2)``."""
        return (self.dim, 2)

    def pack(self, mean: Any, factor: Any) -> np.ndarray:
        """``[m | c]``, from positive scales."""
        c = _mean(factor, self.dim)
        if not np.all(c > 0):
            raise ValueError("scales must be positive")
        return np.stack([_mean(mean, self.dim), c], axis=1)

    def mean(self, w):
        """The first column."""
        return w[:, 0]

    def factor(self, w):
        """``diag(c)``."""
        return (jnp if isinstance(w, jax.Array) else np).diag(w[:, 1])

    def apply(self, w, u):
        """``c u``."""
        return w[:, 1] * u

    def solve_transposed(self, w, u):
        """``u / c``."""
        return u / w[:, 1]

    def pull_back(self, g, u):
        """``[g | g u]``."""
        return jnp.stack([jnp.mean(g, axis=0), jnp.mean(g * u, axis=0)], axis=1)

    def log_det(self, w):
        """``sum log c``."""
        return jnp.sum(jnp.log(jnp.where(w[:, 1] > 0, w[:, 1], jnp.nan)))

    def log_det_gradient(self, w):
        """``[0 | 1 / c]``."""
        return jnp.stack([jnp.zeros_like(w[:, 0]), 1 / w[:, 1]], axis=1)

    def prox(self, w, step):
        """By `geometry.proximal.negative_log`."""
        return jnp.stack([w[:, 0], geometry.proximal.negative_log(w[:, 1], step)], axis=1)

    def project(self, w, floor):
        """Scales below `floor` are raised to it."""
        return jnp.stack([w[:, 0], jnp.maximum(w[:, 1], floor)], axis=1)

    def moved(self, w, origin, root):
        """For a vector `root` of positive numbers."""
        return np.stack([origin + root * w[:, 0], root * w[:, 1]], axis=1)

    def deviations(self, w):
        """``c``."""
        return w[:, 1]

    def quadratic(self, w, x):
        """``|x / c|^2``."""
        return jnp.sum((x / w[:, 1]) ** 2, axis=-1)


@pytree
@dataclasses.dataclass(frozen=True)
class Isotropic(Gaussian):
    """One scale for all coordinates: ``w = (m, sqrt(d) c)`` of shape ``(d + 1,)``, ``C = c I``.

    >>> q = Isotropic(4)
    >>> w = q.pack(0.0, 0.5)
    >>> float(w[-1]), float(q.covariance(w)[0, 0])
    (1.0, 0.25)
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """``(d + 1,)``."""
        return (self.dim + 1,)

    def pack(self, mean: Any, factor: Any) -> np.ndarray:
        """``(m, sqrt(d) c)``."""
        c = np.asarray(factor, dtype=np.float64)
        if c.ndim or not (np.isfinite(c) and c > 0):
            raise ValueError(f"the factor of an isotropic Gaussian is one positive number; got {factor!r}")
        return np.append(_mean(mean, self.dim), math.sqrt(self.dim) * c)

    def mean(self, w):
        """All but the last entry."""
        return w[:-1]

    def factor(self, w):
        """``c I``."""
        return self._scale(w) * np.eye(self.dim)

    def apply(self, w, u):
        """``c u``."""
        return self._scale(w) * u

    def solve_transposed(self, w, u):
        """``u / c``."""
        return u / self._scale(w)

    def pull_back(self, g, u):
        """``(g, <g, u> / sqrt(d))``."""
        return jnp.append(jnp.mean(g, axis=0), jnp.mean(jnp.sum(g * u, axis=1)) / math.sqrt(self.dim))

    def log_det(self, w):
        """``d log c``."""
        scale = self._scale(w)
        return self.dim * jnp.log(jnp.where(scale > 0, scale, jnp.nan))

    def log_det_gradient(self, w):
        """``(0, d / w_last)``."""
        return jnp.append(jnp.zeros_like(w[:-1]), self.dim / w[-1])

    def prox(self, w, step):
        """By `geometry.proximal.negative_log`, of ``-d log w_last``."""
        return jnp.append(w[:-1], geometry.proximal.negative_log(w[-1:], step, self.dim))

    def project(self, w, floor):
        """A scale below `floor` is raised to it."""
        return jnp.append(w[:-1], jnp.maximum(w[-1], math.sqrt(self.dim) * floor))

    def moved(self, w, origin, root):
        """For a positive number `root`."""
        return np.append(origin + root * w[:-1], root * w[-1])

    def deviations(self, w):
        """``c``, for every coordinate."""
        return np.full(self.dim, self._scale(w))

    def quadratic(self, w, x):
        """``|x / c|^2``."""
        return jnp.sum(x**2, axis=-1) / self._scale(w) ** 2

    def _scale(self, w):
        return w[-1] / math.sqrt(self.dim)
