"""Gaussians of many coordinates: a diagonal covariance plus one of low rank."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.pytrees import pytree
from cumulant.variational.gaussians import Gaussian, _mean

_STATIC: Any = {"static": True}


@pytree
@dataclasses.dataclass(frozen=True)
class LowRank(Gaussian):
    """``S = diag(s^2) + F F^T``: ``C = [diag(s) | F]`` of shape ``(d, d + rank)`` and ``w = [m | s | F]``.

    Nothing of size ``d^2`` is formed: determinants and solves go through ``K = I + F^T diag(s)^-2 F`` of size `rank`
    (Woodbury's identity). The entropy is not convex in ``w`` and has no proximal map, so that no rate is known: it is
    fitted by projected steps, with ``s`` above a floor (Ong, Nott and Smith 2018).

    >>> q = LowRank(3, 1)
    >>> w = q.pack(0.0, (1.0, [[1.0], [0.0], [2.0]]))
    >>> q.covariance(w)
    array([[2., 0., 2.],
           [0., 1., 0.],
           [2., 0., 5.]])
    """

    rank: int = dataclasses.field(default=5, metadata=_STATIC)

    def __post_init__(self):
        super().__post_init__()
        if isinstance(self.rank, bool) or not isinstance(self.rank, int | np.integer) or self.rank < 1:
            raise ValueError(f"rank must be a whole number, at least 1; got {self.rank!r}")

    @property
    def shape(self) -> tuple[int, ...]:
        """``(d, 2 + rank)``."""
        return (self.dim, 2 + self.rank)

    @property
    def noise_dim(self) -> int:
        """``d + rank``."""
        return self.dim + self.rank

    def pack(self, mean: Any, factor: Any) -> np.ndarray:
        """``[m | s | F]`` from a mean and ``(s, F)``, or positive scales ``s`` alone: then ``F = 0``."""
        s, F = factor if isinstance(factor, tuple) else (factor, np.zeros((self.dim, self.rank)))
        s, F = _mean(s, self.dim), np.asarray(F, dtype=np.float64)
        if not np.all(s > 0):
            raise ValueError("scales must be positive")
        if F.shape != (self.dim, self.rank) or not np.all(np.isfinite(F)):
            raise ValueError(f"F must be a finite matrix of shape ({self.dim}, {self.rank}); got shape {F.shape}")
        return np.concatenate([_mean(mean, self.dim)[:, None], s[:, None], F], axis=1)

    def mean(self, w):
        """The first column."""
        return w[:, 0]

    def factor(self, w):
        """``[diag(s) | F]``: large, for small ``d`` only."""
        xp = _numpy(w)
        return xp.concatenate([xp.diag(w[:, 1]), w[:, 2:]], axis=1)

    def apply(self, w, u):
        """``s u_1 + F u_2``."""
        return w[:, 1] * u[:, : self.dim] + u[:, self.dim :] @ w[:, 2:].T

    def solve_transposed(self, w, u):
        """``S^-1 C u``: minus the score of ``q_w`` at ``m + C u``."""
        return self._solve(w, self.apply(w, u))

    def _solve(self, w, x):
        """``S^-1 x``, row by row."""
        xp, s, F = _numpy(w), w[:, 1], w[:, 2:]
        thin = F / s[:, None] ** 2
        x = x / s**2
        return x - xp.linalg.solve(self._small(w), F.T @ x.T).T @ thin.T

    def _small(self, w):
        scaled = w[:, 2:] / w[:, 1:2]
        return _numpy(w).eye(self.rank) + scaled.T @ scaled

    def pull_back(self, g, u):
        """``[g | g u_1 | g u_2^T]``."""
        n = g.shape[0]
        ends = jnp.sum(g, axis=0)[:, None], jnp.sum(g * u[:, : self.dim], axis=0)[:, None], g.T @ u[:, self.dim :]
        return jnp.concatenate(ends, axis=1) / n

    def log_det(self, w):
        """``sum log s + log det(K) / 2``: half the logarithm of the determinant of ``S``."""
        s = jnp.where(w[:, 1] > 0, w[:, 1], jnp.nan)
        return jnp.sum(jnp.log(s)) + jnp.linalg.slogdet(self._small(w))[1] / 2

    def log_det_gradient(self, w):
        """``[0 | s diag(S^-1) | S^-1 F]``, with ``S^-1 F = diag(s)^-2 F K^-1``."""
        s, F = w[:, 1], w[:, 2:]
        thin = F / s[:, None] ** 2
        solved = jnp.linalg.solve(self._small(w), thin.T).T
        in_scale = 1 / s - s * jnp.sum(solved * thin, axis=1)
        return jnp.concatenate([jnp.zeros_like(w[:, :1]), in_scale[:, None], solved], axis=1)

    def prox(self, w, step):
        """Refused: there is no formula."""
        raise ValueError("a Gaussian of low rank has no proximal map: fit it by projected steps, method='proj'")

    def project(self, w, floor):
        """Scales below `floor` are raised to it."""
        return jnp.concatenate([w[:, :1], jnp.maximum(w[:, 1:2], floor), w[:, 2:]], axis=1)

    def moved(self, w, origin, root):
        """For a vector `root` of positive numbers."""
        return np.concatenate([(origin + root * w[:, 0])[:, None], root[:, None] * w[:, 1:]], axis=1)

    def deviations(self, w):
        """``sqrt(s^2 + |F_i|^2)``."""
        return np.linalg.norm(w[:, 1:], axis=1)

    def quadratic(self, w, x):
        """``<x, S^-1 x>``."""
        return jnp.sum(x * self._solve(w, x), axis=-1)

    def log_prob_at(self, w, u):
        """``log q_w(m + C u)``."""
        return self.log_prob(w, self.place(w, u))


def _numpy(w) -> Any:
    return jnp if isinstance(w, jax.Array) else np
