"""How fast the barrier is let go: the centring parameter ``sigma_k`` in ``mu_k = sigma_k gap / m``.

``sigma = 0`` aims at the solution, ``sigma = 1`` at the central path without coming closer to the solution. From the
linear equations of a step, for affine constraints, the gap after it is exactly ``(1 - a (1 - sigma)) gap - a^2 <J dx,
dz>``: with steps ``1/k`` and constant ``sigma`` it falls as ``k^-(1 - sigma)``, with ``sigma_k -> 0`` as ``1/k``.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp

from cumulant.precision import precise
from cumulant.pytrees import pytree


def _number(value: Any, name: str, low: float, high: float) -> None:
    if isinstance(value, bool | str) or (isinstance(value, int | float) and not low <= value <= high):
        raise ValueError(f"{name} must be between {low:g} and {high:g}; got {value!r}")


@pytree
@dataclasses.dataclass(frozen=True)
class ConstantSigma:
    """``sigma_k = sigma``.

    Carbonetto (2009, section 2.2.3).

    >>> ConstantSigma(0.5)(7)
    0.5
    """

    sigma: Any = 0.5

    def __post_init__(self):
        _number(self.sigma, "sigma", 0.0, 1.0)

    def __call__(self, k):
        """The parameter of step ``k = 0, 1, 2, ...``."""
        return self.sigma


@pytree
@dataclasses.dataclass(frozen=True)
class PowerSigma:
    """``sigma_k = (k + 1)^-power`` for ``k = 0, 1, 2, ...``: the first step only centres.

    Carbonetto (2009, section 2.2.3).

    >>> PowerSigma(1.0)(3)
    0.25
    """

    power: Any = 0.9

    def __post_init__(self):
        _number(self.power, "power", 0.0, 100.0)

    def __call__(self, k):
        """The parameter of step ``k``."""
        return (k + 1.0) ** -self.power


@pytree
@dataclasses.dataclass(frozen=True)
class MehrotraSigma:
    """``sigma = (gap after a full step with mu = 0 / gap)^exponent``, and never above the `ceiling` schedule.

    A second linear system is solved for it. Mehrotra (1992) takes the exponent 3; with noisy gradients about 2 worked
    better for Carbonetto (2009, section 2.2.3), who doubts that the rule is worth its price there. Nothing makes the
    rule tend to zero on its own: that is what the ceiling is for.

    >>> rule = MehrotraSigma(3.0)
    >>> rule.sigma(2.0, 1.0), rule(0)
    (np.float64(0.125), 1.0)
    """

    exponent: Any = 2.0
    ceiling: Any = dataclasses.field(default_factory=PowerSigma)

    def __post_init__(self):
        _number(self.exponent, "exponent", 0.0, 100.0)
        if not callable(self.ceiling):
            raise TypeError(f"ceiling must be a schedule such as PowerSigma(); got {self.ceiling!r}")

    def __call__(self, k):
        """The ceiling of step ``k``."""
        return self.ceiling(k)

    @precise
    def sigma(self, gap, gap_after):
        """``(gap_after / gap)^exponent``."""
        return (jnp.maximum(gap_after, 0.0) / gap) ** self.exponent


@precise
def barrier_from_gap(sigma, slack, z):
    """``mu = sigma <s, z> / m`` (Carbonetto 2009, equation 2.18).

    >>> barrier_from_gap(0.5, [1.0, 1.0], [1.0, 3.0])
    np.float64(1.0)
    """
    return sigma * jnp.vdot(slack, z) / slack.size
