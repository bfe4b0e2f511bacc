"""Gradient estimators of variational inference: oracles for `optim`, with the constants of their noise.

With ``z = m + C u`` and ``pi = -grad log p(z)`` (Domke, Garrigos and Gower 2023, equations 5, 7 and 9):

    energy   (pi, proj(pi u^T))                                  estimates grad l
    entropy  (pi, proj(pi u^T - C^-T))                           estimates grad (l + h)
    STL      (pi - C^-T u, proj((pi - C^-T u) u^T))              estimates grad (l + h), without noise at an exact fit
    score    phi(z) grad_w log q_w(z)                            for comparison; no theorem bounds its noise
"""

import dataclasses
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.optim.gradients import Noise
from cumulant.optim.rates import SecondMoment
from cumulant.pytrees import pytree

_STATIC: Any = {"static": True}


@dataclasses.dataclass(frozen=True)
class _Reparameterised:
    """The mean of `batch` gradients at independent draws; `antithetic` takes them in pairs ``u, -u``.

    With `rows`, each draw has its own rows of the data, drawn with replacement and scaled up: for targets that are sums
    over rows (`Regression`, `SumTarget`).
    """

    batch: int = dataclasses.field(default=1, metadata=_STATIC)
    antithetic: bool = dataclasses.field(default=False, metadata=_STATIC)
    rows: int | None = dataclasses.field(default=None, metadata=_STATIC)

    estimates: ClassVar[str] = "grad (l + h)"

    def __post_init__(self):
        if isinstance(self.batch, bool) or not isinstance(self.batch, int) or self.batch < 1:
            raise ValueError(f"batch must be a whole number, at least 1; got {self.batch!r}")
        if self.antithetic and self.batch % 2:
            raise ValueError(f"antithetic draws come in pairs: batch must be even; got {self.batch}")
        if self.rows is not None and (isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1):
            raise ValueError(f"rows must be a whole number, at least 1, or None for all; got {self.rows!r}")

    def __call__(self, problem: Any, w, step, key):
        """The estimate at ``w``, from fresh draws."""
        if self.rows is None:
            return self.at(problem, w, self.draw(key, problem.gaussian.noise_dim, w.dtype))
        if not hasattr(problem.target, "at_rows"):
            raise TypeError("rows needs a target that is a sum over rows: a regression, or SumTarget")
        for_rows, for_draws = jax.random.split(key)
        u = self.draw(for_draws, problem.gaussian.noise_dim, w.dtype)
        return self.at(problem, w, u, jax.random.randint(for_rows, (self.batch, self.rows), 0, problem.target.n_rows))

    def draw(self, key: Any, dim: int, dtype: Any):
        """Standard normal vectors, one a row."""
        if not self.antithetic:
            return jax.random.normal(key, (self.batch, dim), dtype)
        half = jax.random.normal(key, (self.batch // 2, dim), dtype)
        return jnp.concatenate([half, -half])

    def at(self, problem: Any, w, u, rows=None):
        """The mean of the estimates for these standard normal vectors, and these rows of the data, if not all."""
        raise NotImplementedError

    def _variance(self, dim: int, M: float, mu: float) -> Noise:
        """Theorem 1 of the difference of two gradients, and at ``w*`` the smaller of theorem 1 and of what follows.

        With ``rho(u) = grad phi(z) - grad phi(m)``: ``|rho|^2 <= M <rho, C u>`` as ``phi = -log p`` is convex, and at
        ``w*`` the mean gradient is zero and ``E tr(C^T H C) = d``, so that Stein's identity gives ``E |rho|^2 <= M d``
        and ``E |u|^2 |rho|^2 <= M (2 d + E |u|^2 tr(C^T H C))``; the trace is between ``mu |C|^2`` and ``M |C|^2``,
        which bounds its covariance with ``|u|^2``. With ``|E rho|^2 = x M d``, ``E (1 + |u|^2) |rho - E rho|^2`` is
        larger by at most ``M d (1 - x - d x + 2 sqrt(2 d x (1 - x)))``. The mean of the gradient in ``C``, of norm at
        least ``d / |C|``, is no noise.
        """
        if not 0 < mu <= M:
            raise ValueError(f"mu and M must be positive, mu <= M; got mu = {mu}, M = {M}")
        independent = self.batch / 2 if self.antithetic else self.batch
        kappa = M / mu
        first = (dim + 3) * M * kappa
        # 1 - (d + 1) x + 2 sqrt(2 d x (1 - x)) is largest at x = (1 - 1 / sqrt(1 + 8 d / (d + 1)^2)) / 2.
        largest = (1 - dim) / 2 + math.sqrt((dim + 1) ** 2 + 8 * dim) / 2
        second = M * (dim + 2 + largest + math.sqrt(dim / 2) * (kappa - 1) / math.sqrt(kappa))
        return Noise((dim + 3) * M**2 / independent, dim * (min(first, second) - mu) / independent)


def _potential_gradients(problem, w, u, rows=None):
    """``-grad log p`` at the draws."""
    z = problem.gaussian.place(w, u)
    if rows is None:
        return -jax.vmap(jax.grad(problem.target.at))(z)
    return -jax.vmap(jax.grad(problem.target.at_rows))(z, rows)


@pytree
@dataclasses.dataclass(frozen=True)
class EnergyGradient(_Reparameterised):
    """``(pi, proj(pi u^T))``: unbiased for the gradient of the energy ``l``; the entropy is left to a proximal map.

    With `standardised` the energy of a standard normal target, whose gradient is ``w``, is not sampled but exact:
    ``(pi - z, proj((pi - z) u^T)) + w``. Where the target is nearly standard normal, as after whitening, little noise
    is left.

    >>> from cumulant import variational as vi
    >>> vi.EnergyGradient().second_moment(2, 2.7817378, 1.5)
    SecondMoment(a=77.380..., b=116.070...)
    """

    standardised: bool = dataclasses.field(default=False, metadata=_STATIC)

    estimates: ClassVar[str] = "grad l"

    def at(self, problem: Any, w, u, rows=None):
        """``(pi, proj(pi u^T))``."""
        g = _potential_gradients(problem, w, u, rows)
        if not self.standardised:
            return problem.gaussian.pull_back(g, u)
        return problem.gaussian.pull_back(g - problem.gaussian.place(w, u), u) + w

    def second_moment(self, dim: int, M: float, distance_squared: float) -> SecondMoment:
        """``a = 2 (d + 3) M^2``, ``b = a |w* - (z, 0)|^2``, ``z`` the mode; everywhere (theorem 2).

        `distance_squared` is at least ``|w* - (z, 0)|^2``, which is at most ``d / mu``.
        """
        if self.standardised:
            raise ValueError("theorem 2 bounds the noise of the plain energy gradient: standardised=False")
        a = 2 * (dim + 3) * M**2
        return SecondMoment(a, a * distance_squared)

    def variance(self, dim: int, M: float, mu: float) -> Noise:
        """``(a, b)``: the standard deviation at ``w`` is at most ``sqrt(b) + sqrt(a) |w - w*|``; everywhere.

        ``a = (d + 3) M^2`` and ``b = d M min((d + 3) k, d + 2 + (1 - d + sqrt((d + 1)^2 + 8 d)) / 2 + sqrt(d / 2) (k -
        1) / sqrt(k)) - d mu``, ``k = M / mu``, over the number of independent draws; for targets that are
        ``mu``-strongly log-concave and ``M``-smooth.

        >>> EnergyGradient(batch=2).variance(2, 1.0, 1.0)
        Noise(a=2.5, b=4.0)
        """
        return self._variance(dim, M, mu)


@pytree
@dataclasses.dataclass(frozen=True)
class EntropyGradient(_Reparameterised):
    """``(pi, proj(pi u^T - C^-T))``: unbiased for the gradient of ``l + h``."""

    def at(self, problem: Any, w, u, rows=None):
        """``(pi, proj(pi u^T - C^-T))``."""
        q = problem.gaussian
        return q.pull_back(_potential_gradients(problem, w, u, rows), u) - q.log_det_gradient(w)

    def second_moment(self, dim: int, M: float, distance_squared: float) -> SecondMoment:
        """``a = 4 (d + 3) M^2``, ``b = a |w* - (z, 0)|^2 + 2 d M``, ``z`` the mode; on ``W_M`` (theorem 3)."""
        a = 4 * (dim + 3) * M**2
        return SecondMoment(a, a * distance_squared + 2 * dim * M)

    def variance(self, dim: int, M: float, mu: float) -> Noise:
        """That of `EnergyGradient`: the gradient of the entropy has no noise."""
        return self._variance(dim, M, mu)


@pytree
@dataclasses.dataclass(frozen=True)
class StickingTheLanding(_Reparameterised):
    """``(pi - C^-T u, proj((pi - C^-T u) u^T))``: the gradient of ``log q_v(z) - log p(z)`` with ``v = w`` held fixed.

    Unbiased for the gradient of ``l + h``; its noise vanishes where ``q_w`` equals the target (Roeder, Wu and Duvenaud
    2017).
    """

    def at(self, problem: Any, w, u, rows=None):
        """``(pi - C^-T u, proj((pi - C^-T u) u^T))``."""
        q = problem.gaussian
        return q.pull_back(_potential_gradients(problem, w, u, rows) - q.solve_transposed(w, u), u)

    def second_moment(
        self, dim: int, M: float, distance_squared: float, residual_smoothness: float | None = None
    ) -> SecondMoment:
        """``a = 4 (d + 3) (K^2 + 2 M^2)``, ``b = 4 (d + 3) K^2 |w* - (z, 0)|^2``, on ``W_M`` (theorem 4).

        ``K = residual_smoothness`` is the smoothness of ``log p - log q_{w*}``: at most ``2 M``, the default, and 0 for
        a Gaussian target. ``z`` is a stationary point of that function, not the mode.
        """
        K = 2 * M if residual_smoothness is None else residual_smoothness
        if not 0 <= K <= 2 * M:
            raise ValueError(f"residual_smoothness must be between 0 and 2 M = {2 * M:.6g}; got {K}")
        return SecondMoment(4 * (dim + 3) * (K**2 + 2 * M**2), 4 * (dim + 3) * K**2 * distance_squared)


@pytree
@dataclasses.dataclass(frozen=True)
class ScoreGradient(_Reparameterised):
    """``(log q_w(z) - log p(z)) grad_w log q_w(z)``: needs no derivative of the target; no theorem bounds its noise."""

    def at(self, problem: Any, w, u, rows=None):
        """``phi(z) (C^-T u, proj(C^-T (u u^T - I)))``."""
        if rows is not None:
            raise ValueError("score gradients take all rows")
        q = problem.gaussian
        phi = q.log_prob_at(w, u) - jax.vmap(problem.target.at)(q.place(w, u))
        scores = q.solve_transposed(w, u)
        return q.pull_back(phi[:, None] * scores, u) - jnp.mean(phi) * q.log_det_gradient(w)


def subsampled_second_moment(dim: int, row_smoothness: Any, distances_squared: Any, entropy_smoothness: float = 0.0):
    """``(a, b)`` of energy gradients at one row and one draw: ``a = 2 (d + 3) n sum M_i^2``, ``b = 2 (d + 3) n sum
    M_i^2 (|m* - z_i|^2 + |C*|_F^2)``.

    For ``-log p = sum_i f_i`` with ``f_i`` convex, ``M_i``-smooth and stationary at ``z_i`` (each with its share ``1 /
    n`` of the prior): theorem 1 of Domke, Garrigos and Gower (2023) term by term. More rows or draws keep them.
    `distances_squared` holds ``|m* - z_i|^2 + |C*|_F^2``. With `entropy_smoothness` ``M``: those of entropy gradients
    on ``W_M``, twice as large and ``2 d M`` more.

    >>> subsampled_second_moment(2, [1.0, 1.0], [1.0, 2.0])
    SecondMoment(a=40.0, b=60.0)
    """
    M, distances = (np.asarray(v, dtype=np.float64) for v in (row_smoothness, distances_squared))
    if M.ndim != 1 or M.shape != distances.shape or not np.all(np.isfinite(M) & (M >= 0) & (distances >= 0)):
        raise ValueError("row_smoothness and distances_squared must be vectors of numbers, one for each row")
    factor = 2 * (dim + 3) * len(M) * (2 if entropy_smoothness else 1)
    a, b = factor * float(np.sum(M**2)), factor * float(np.sum(M**2 * distances))
    return SecondMoment(a, b + 2 * dim * entropy_smoothness)
