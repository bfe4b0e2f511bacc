"""Functions with conjugates in closed form, as pairs for `duality`: norms, squared error, logistic loss, log-sum-exp.

The entropies are pairs too. Membership of a set (where a conjugate is an indicator) is tested up to a few units of
rounding.
"""

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, xlogy

from cumulant.geometry.duality import ConvexFunction
from cumulant.pytrees import pytree

__all__ = ["LogSumExp", "Logistic", "Norm", "SquaredError"]

_DUAL_ORDER = {1: jnp.inf, 2: 2, jnp.inf: 1}


def _rounding(u):
    """A few units in the last place of a sum over the last axis."""
    return (8 + u.shape[-1]) * jnp.finfo(u.dtype).eps


@pytree
@dataclass(frozen=True)
class Norm(ConvexFunction):
    """``weight |x|_order`` for the orders 1, 2 and infinity; its conjugate is the indicator of ``|u|_dual <= weight``.

    >>> Norm(1, weight=2.0).value([3.0, -1.0]), Norm(1, weight=2.0).conjugate([2.0, -3.0])
    (np.float64(8.0), np.float64(inf))
    """

    order: float = field(metadata={"static": True})
    weight: Any = 1.0

    def __post_init__(self):
        if self.order not in _DUAL_ORDER:
            raise ValueError(f"order of Norm must be 1, 2 or infinity; got {self.order}")
        if isinstance(self.weight, int | float) and not 0 <= self.weight < np.inf:
            raise ValueError(f"weight of Norm must be non-negative and finite; got {self.weight}")

    def _value(self, x):
        return self.weight * jnp.linalg.norm(x, ord=self.order, axis=-1)

    def _conjugate(self, u):
        norm = jnp.linalg.norm(u, ord=_DUAL_ORDER[self.order], axis=-1)
        return jnp.where(norm <= self.weight * (1 + _rounding(u)), 0.0, jnp.inf)


@pytree
@dataclass(frozen=True)
class SquaredError(ConvexFunction):
    """``weight |x - target|_2^2 / 2``; conjugate ``|u|^2 / (2 weight) + <u, target>``.

    >>> SquaredError([1.0, 2.0]).conjugate([1.0, 1.0])
    np.float64(4.0)
    """

    target: Any = 0.0
    weight: Any = 1.0

    def __post_init__(self):
        if isinstance(self.target, list | tuple):
            object.__setattr__(self, "target", np.asarray(self.target, dtype=np.float64))
        if isinstance(self.weight, int | float) and not 0 < self.weight < np.inf:
            raise ValueError(f"weight of SquaredError must be positive and finite; got {self.weight}")

    def _value(self, x):
        return self.weight * jnp.sum((x - self.target) ** 2, axis=-1) / 2

    def _conjugate(self, u):
        return jnp.sum(u**2, axis=-1) / (2 * self.weight) + jnp.sum(u * self.target, axis=-1)


@pytree
@dataclass(frozen=True)
class Logistic(ConvexFunction):
    """``weight sum log(1 + exp(-y_i x_i))`` for labels ``y_i = +-1``.

    With ``t = -y u / weight``, which must lie in [0, 1], the conjugate is ``weight sum t log t + (1 - t) log(1 - t)``.

    >>> float(Logistic([1.0, -1.0]).value([0.0, 0.0]).round(9))                         # 2 log 2
    1.386294361
    """

    labels: Any
    weight: Any = 1.0

    def __post_init__(self):
        if isinstance(self.labels, list | tuple):
            object.__setattr__(self, "labels", np.asarray(self.labels, dtype=np.float64))
        if isinstance(self.labels, np.ndarray) and not np.all(np.abs(self.labels) == 1):
            raise ValueError("labels of Logistic must be +1 or -1")
        if isinstance(self.weight, int | float) and not 0 < self.weight < np.inf:
            raise ValueError(f"weight of Logistic must be positive and finite; got {self.weight}")

    def _value(self, x):
        return self.weight * jnp.sum(jnp.logaddexp(0.0, -self.labels * x), axis=-1)

    def _conjugate(self, u):
        t = -self.labels * u / self.weight
        inside = jnp.all((t >= -_rounding(u)) & (t <= 1 + _rounding(u)), axis=-1)
        t = jnp.clip(t, 0.0, 1.0)
        return jnp.where(inside, self.weight * jnp.sum(xlogy(t, t) + xlogy(1 - t, 1 - t), axis=-1), jnp.inf)


@pytree
@dataclass(frozen=True)
class LogSumExp(ConvexFunction):
    """``log sum exp x``; its conjugate is the negative entropy ``sum u log u`` on the simplex.

    >>> float(LogSumExp().conjugate([0.5, 0.5]).round(9))                               # -log 2
    -0.693147181
    """

    def _value(self, x):
        return logsumexp(x, axis=-1)

    def _conjugate(self, u):
        tolerance = _rounding(u)
        inside = jnp.all(u >= -tolerance, axis=-1) & (jnp.abs(jnp.sum(u, axis=-1) - 1) <= tolerance)
        u = jnp.maximum(u, 0.0)
        return jnp.where(inside, jnp.sum(xlogy(u, u), axis=-1), jnp.inf)
