"""Step sizes as functions of the step: ``schedule(k)`` is the step size of step ``k = 0, 1, 2, ...``.

Each is a frozen dataclass whose numbers are data, so that a sweep over them compiles once.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from cumulant.precision import any_jax
from cumulant.pytrees import pytree

__all__ = ["Constant", "InverseCount", "InverseSqrt", "InverseTime", "Stages", "Switching", "as_schedule"]


def _schedule(cls: type) -> type:
    return pytree(dataclasses.dataclass(frozen=True)(cls))


def _check(name: str, value: Any, zero: bool = False) -> None:
    """Refuse a bad number; what is being traced or is a placeholder cannot be looked at."""
    if isinstance(value, bool | str) or (isinstance(value, int | float) and not (value > 0 or (zero and value == 0))):
        raise ValueError(f"{name} of a schedule must be {'zero or positive' if zero else 'positive'}; got {value!r}")


@_schedule
class Constant:
    """``tau_k = tau``.

    >>> Constant(0.1)(7)
    0.1
    """

    tau: float

    def __post_init__(self):
        _check("tau", self.tau)

    def __call__(self, k):
        """The size of step ``k``."""
        return self.tau


@_schedule
class InverseTime:
    """``tau_k = tau / (1 + k / k0)``: the classical schedule of stochastic gradient descent (Peyré 2021, equation 49).

    >>> InverseTime(0.05, 100)(400)
    0.01
    """

    tau: float
    k0: float = 1.0

    def __post_init__(self):
        _check("tau", self.tau)
        _check("k0", self.k0)

    def __call__(self, k):
        """The size of step ``k``."""
        return self.tau / (1 + k / self.k0)


@_schedule
class InverseSqrt:
    """``tau_k = tau / (1 + sqrt(k / k0))``: the slower schedule that goes with averaging (Peyré 2021, section 8.4).

    >>> round(float(InverseSqrt(0.05, 100)(400)), 6)
    0.016667
    """

    tau: float
    k0: float = 1.0

    def __post_init__(self):
        _check("tau", self.tau)
        _check("k0", self.k0)

    def __call__(self, k):
        """The size of step ``k``."""
        sqrt = jnp.sqrt if any_jax(k, self) else np.sqrt  # of a Python number in float64, by the rule of precision
        return self.tau / (1 + sqrt(k / self.k0))


@_schedule
class InverseCount:
    """``tau_k = 1 / (n0 + k + 1)``: with it, stochastic mirror descent on a likelihood *is* the MAP estimate.

    `n0` is the strength of the conjugate prior, any number at least 0; 0 gives maximum likelihood (Le Priol 2021,
    section 5.3).

    >>> InverseCount(2)(0), InverseCount(2)(1)
    (0.3333333333333333, 0.25)
    """

    n0: float = 0.0

    def __post_init__(self):
        _check("n0", self.n0, zero=True)

    def __call__(self, k):
        """The size of step ``k``."""
        return 1.0 / (self.n0 + (k + 1))


@_schedule
class Switching:
    """``tau_k = min(limit, scale (2 k + 1) / (k + 1)^2)``: constant at first, then like ``2 scale / k``.

    With the largest step that a rate allows as `limit` and ``1 / mu`` (proximal) or ``2 / mu`` (projected) as `scale`,
    the error goes down like ``1 / k`` at any time (Domke, Garrigos and Gower 2023, theorem 31).

    >>> Switching(0.1, 1.0)(0), Switching(0.1, 1.0)(99)
    (0.1, 0.0199)
    """

    limit: float
    scale: float

    def __post_init__(self):
        _check("limit", self.limit)
        _check("scale", self.scale)

    def __call__(self, k):
        """The size of step ``k``."""
        minimum = jnp.minimum if any_jax(k, self) else min
        return minimum(self.limit, self.scale * (2 * k + 1) / (k + 1) ** 2)


@_schedule
class Stages:
    """``tau_k = sizes[j]`` for ``ends[j - 1] <= k < ends[j]``; the last size goes on (`rates.plan_stages`).

    >>> Stages(np.array([0.5, 0.1]), np.array([2.0, 4.0]))(2)
    0.1
    """

    sizes: Any
    ends: Any

    def __call__(self, k):
        """The size of step ``k``."""
        xp: Any = jnp if any_jax(k, self) else np
        stage = xp.minimum(xp.sum(k >= xp.asarray(self.ends)), len(self.sizes) - 1)
        size = xp.asarray(self.sizes)[stage]
        return size if xp is jnp else float(size)


def as_schedule(step: Any, name: str = "step_size") -> Any:
    """A schedule as it is; a number as a constant one.

    >>> as_schedule(0.5)
    Constant(tau=0.5)
    """
    if callable(step):
        return step
    if isinstance(step, bool) or not isinstance(step, int | float) or not step > 0:
        raise ValueError(f"{name} must be a positive number or a schedule; got {step!r}")
    return Constant(float(step))
