"""Gradient estimators of variational inference: oracles for `optim`, with the constants of their noise.

With ``z = m + C u`` and ``pi = -grad log p(z)`` (Domke, Garrigos and Gower 2023, equations 5, 7 and 9):

    energy   (pi, proj(pi u^T))                                  estimates grad l
    entropy  (pi, proj(pi u^T - C^-T))                           estimates grad (l + h)
    STL      (pi - C^-T u, proj((pi - C^-T u) u^T))              estimates grad (l + h), without noise at an exact fit
    score    phi(z) grad_w log q_w(z)                            for comparison; no theorem bounds its noise
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from cumulant.optim.rates import SecondMoment
from cumulant.pytrees import pytree

_STATIC: Any = {"static": True}


@dataclasses.dataclass(frozen=True)
class _Reparameterised:
    """The mean of `batch` gradients at independent draws; `antithetic` takes them in pairs ``u, -u``."""

    batch: int = dataclasses.field(default=1, metadata=_STATIC)
    antithetic: bool = dataclasses.field(default=False, metadata=_STATIC)

    estimates: ClassVar[str] = "grad (l + h)"

    def __post_init__(self):
        if isinstance(self.batch, bool) or not isinstance(self.batch, int) or self.batch < 1:
            raise ValueError(f"batch must be a whole number, at least 1; got {self.batch!r}")
        if self.antithetic and self.batch % 2:
            raise ValueError(f"antithetic draws come in pairs: batch must be even; got {self.batch}")

    def __call__(self, problem: Any, w, step, key):
        """The estimate at ``w``, from fresh draws."""
        return self.at(problem, w, self.draw(key, problem.gaussian.dim, w.dtype))

    def draw(self, key: Any, dim: int, dtype: Any):
        """Standard normal vectors, one a row."""
        if not self.antithetic:
            return jax.random.normal(key, (self.batch, dim), dtype)
        half = jax.random.normal(key, (self.batch // 2, dim), dtype)
        return jnp.concatenate([half, -half])

    def at(self, problem: Any, w, u):
        """The mean of the estimates for these standard normal vectors."""
        raise NotImplementedError


def _potential_gradients(problem, w, u):
    """``-grad log p`` at the draws."""
    return -jax.vmap(jax.grad(problem.target.at))(problem.gaussian.place(w, u))


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

    def at(self, problem: Any, w, u):
        """``(pi, proj(pi u^T))``."""
        g = _potential_gradients(problem, w, u)
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


@pytree
@dataclasses.dataclass(frozen=True)
class EntropyGradient(_Reparameterised):
    """``(pi, proj(pi u^T - C^-T))``: unbiased for the gradient of ``l + h``."""

    def at(self, problem: Any, w, u):
        """``(pi, proj(pi u^T - C^-T))``."""
        q = problem.gaussian
        return q.pull_back(_potential_gradients(problem, w, u), u) - q.log_det_gradient(w)

    def second_moment(self, dim: int, M: float, distance_squared: float) -> SecondMoment:
        """``a = 4 (d + 3) M^2``, ``b = a |w* - (z, 0)|^2 + 2 d M``, ``z`` the mode; on ``W_M`` (theorem 3)."""
        a = 4 * (dim + 3) * M**2
        return SecondMoment(a, a * distance_squared + 2 * dim * M)


@pytree
@dataclasses.dataclass(frozen=True)
class StickingTheLanding(_Reparameterised):
    """``(pi - C^-T u, proj((pi - C^-T u) u^T))``: the gradient of ``log q_v(z) - log p(z)`` with ``v = w`` held fixed.

    Unbiased for the gradient of ``l + h``; its noise vanishes where ``q_w`` equals the target (Roeder, Wu and Duvenaud
    2017).
    """

    def at(self, problem: Any, w, u):
        """``(pi - C^-T u, proj((pi - C^-T u) u^T))``."""
        q = problem.gaussian
        return q.pull_back(_potential_gradients(problem, w, u) - q.solve_transposed(w, u), u)

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

    def at(self, problem: Any, w, u):
        """``phi(z) (C^-T u, proj(C^-T (u u^T - I)))``."""
        q = problem.gaussian
        phi = q.log_prob_at(w, u) - jax.vmap(problem.target.at)(q.place(w, u))
        scores = q.solve_transposed(w, u)
        return q.pull_back(phi[:, None] * scores, u) - jnp.mean(phi) * q.log_det_gradient(w)
