"""Losses of the margin ``m = y <a, x>`` of a classifier: small when the sign is right, and convex.

Each knows its slope with the range of its values, its curvature with its largest value, and its conjugate
``phi*(u) = max_m u m - phi(m)``, finite on the range of the slope, which is what duality gaps are made of.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special


def _elementwise(formula: Callable) -> Callable[[Any, Any], Any]:
    """A formula ``(self, numbers, numpy, special)`` by JAX for JAX arrays, and by NumPy in float64 for all else."""

    @functools.wraps(formula)
    def call(self, numbers):
        if isinstance(numbers, jax.Array):
            return formula(self, numbers, jnp, jax.scipy.special)
        with np.errstate(all="ignore"):  # as in JAX
            return formula(self, np.asarray(numbers, dtype=np.float64), np, scipy.special)[()]

    del call.__wrapped__  # whose signature is not that of the method
    return call


@dataclasses.dataclass(frozen=True)
class LogisticLoss:
    """``phi(m) = log(1 + exp(-m))``; ``phi* (u) = s log s + (1 - s) log(1 - s)`` at ``s = -u`` in [0, 1].

    The loss of logistic regression (Peyré 2021, section 3); its conjugate is minus the entropy of a coin.

    >>> LogisticLoss().value(0.0).round(5), LogisticLoss().slope(0.0)
    (np.float64(0.69315), np.float64(-0.5))
    """

    slope_range: ClassVar[tuple[float, float]] = (-1.0, 0.0)
    largest_curvature: ClassVar[float] = 0.25
    self_concordance: ClassVar[float | None] = 1.0  # |phi'''| <= phi''

    @_elementwise
    def value(self, margin, xp, special):
        """``phi(m)``."""
        return xp.logaddexp(0.0, -margin)

    @_elementwise
    def slope(self, margin, xp, special):
        """``phi'(m)``."""
        return -special.expit(-margin)

    @_elementwise
    def curvature(self, margin, xp, special):
        """``phi''(m)``."""
        return special.expit(margin) * special.expit(-margin)

    @_elementwise
    def conjugate(self, u, xp, special):
        """``phi*(u)``; infinite off [-1, 0]."""
        s = xp.clip(-u, 0.0, 1.0)
        return xp.where((u <= 0) & (u >= -1), special.xlogy(s, s) + special.xlog1py(1 - s, -s), xp.inf)


@dataclasses.dataclass(frozen=True)
class SquaredHingeLoss:
    """``phi(m) = max(1 - m, 0)^2 / 2``; ``phi*(u) = u + u^2 / 2`` for ``u <= 0``.

    The loss of the l2 support vector machine (Cortes and Vapnik 1995).

    >>> SquaredHingeLoss().value([-1.0, 0.0, 2.0]), SquaredHingeLoss().slope(0.0)
    (array([2. , 0.5, 0. ]), np.float64(-1.0))
    """

    slope_range: ClassVar[tuple[float, float]] = (-math.inf, 0.0)
    largest_curvature: ClassVar[float] = 1.0
    self_concordance: ClassVar[float | None] = None

    @_elementwise
    def value(self, margin, xp, special):
        """``phi(m)``."""
        return xp.maximum(1 - margin, 0.0) ** 2 / 2

    @_elementwise
    def slope(self, margin, xp, special):
        """``phi'(m)``."""
        return -xp.maximum(1 - margin, 0.0)

    @_elementwise
    def curvature(self, margin, xp, special):
        """``phi''(m)``, where it exists; from the right at ``m = 1``."""
        return xp.where(margin < 1, 1.0, 0.0)

    @_elementwise
    def conjugate(self, u, xp, special):
        """``phi*(u)``; infinite for ``u > 0``."""
        return xp.where(u <= 0, u + u**2 / 2, xp.inf)


@dataclasses.dataclass(frozen=True)
class SmoothedHingeLoss:
    """The hinge ``max(1 - m, 0)`` with a parabola in place of its corner, over a length `width`.

    ``phi(m) = (1 - m)^2 / (2 width)`` for ``1 - width <= m <= 1``, zero above and ``1 - m - width / 2`` below: the
    Moreau envelope of the hinge (Shalev-Shwartz and Zhang 2013, equation 9). ``phi*(u) = u + width u^2 / 2`` on
    [-1, 0].

    >>> SmoothedHingeLoss(0.5).value([-1.0, 0.75, 2.0])
    array([1.75  , 0.0625, 0.    ])
    """

    width: float = 1.0

    slope_range: ClassVar[tuple[float, float]] = (-1.0, 0.0)
    self_concordance: ClassVar[float | None] = None

    def __post_init__(self):
        if not 0 < self.width < math.inf:
            raise ValueError(f"width of the smoothed hinge must be positive and finite; got {self.width}")

    @property
    def largest_curvature(self) -> float:
        """``1 / width``."""
        return 1.0 / self.width

    @_elementwise
    def value(self, margin, xp, special):
        """``phi(m)``."""
        short = xp.maximum(1 - margin, 0.0)
        return xp.where(short <= self.width, short**2 / (2 * self.width), short - self.width / 2)

    @_elementwise
    def slope(self, margin, xp, special):
        """``phi'(m)``."""
        return -xp.clip((1 - margin) / self.width, 0.0, 1.0)

    @_elementwise
    def curvature(self, margin, xp, special):
        """``phi''(m)``, where it exists."""
        return xp.where((margin < 1) & (margin > 1 - self.width), 1 / self.width, 0.0)

    @_elementwise
    def conjugate(self, u, xp, special):
        """``phi*(u)``; infinite off [-1, 0]."""
        return xp.where((u <= 0) & (u >= -1), u + self.width * u**2 / 2, xp.inf)
