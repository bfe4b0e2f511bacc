"""The entropies of vectors: Euclidean, Shannon, Burg, the power family between and around them, and the hypentropy.

`csiszar` is the other divergence an entropy generates, the expectation of ``psi`` at the ratio of two measures.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from cumulant.geometry._calling import NON_NEGATIVE, public_function
from cumulant.geometry.entropy import Separable, _divergence, entropy_type
from cumulant.precision import any_jax


@entropy_type
@dataclass(frozen=True)
class Euclidean(Separable):
    """``psi(x) = |x|^2 / 2`` on all of space: gradients are points, ``D(x|y) = |x - y|^2 / 2``.

    >>> float(Euclidean().divergence([1.0, 2.0], [2.0, 1.0]))
    1.0
    """

    origin = 0.0

    def _gradient(self, x):
        return x

    def _curvature(self, x):
        return jnp.ones_like(x)

    def _conjugate_gradient(self, u):
        return u

    def _conjugate_piece(self, u):
        return u * u / 2

    def _far_divergence(self, x, y):
        return (x - y) ** 2 / 2

    def _reach(self, y):
        return jnp.zeros_like(y)  # the closed form is exact everywhere


class _PowerType(Separable):
    """What the power family shares; `alpha` is part of the program, so each branch below is settled in advance.

    ``psi_alpha(x) = (|x|^alpha - alpha (x - 1) - 1) / (alpha (alpha - 1))``, ``psi'' = |x|^(alpha - 2)``. The
    divergence is homogeneous, ``D(c x|c y) = c^alpha D(x|y)``: points are first divided by the larger of the two.
    """

    alpha: Any

    @property
    def positive(self) -> bool:
        """Whether the domain is the half line (``alpha <= 1``) rather than the line."""
        return self.alpha <= 1

    @property
    def conjugate_closure(self) -> str:
        """Where dual coordinates must lie."""
        return f"below {1 / (1 - self.alpha):g}" if self.alpha < 1 else "less than infinity"

    @property
    def recession(self) -> float:
        """``lim psi(s) / s`` as ``s`` grows: what `csiszar` charges for mass where there should be none."""
        return 1 / (1 - self.alpha) if self.alpha < 1 else math.inf

    def _gradient(self, x):
        p = self.alpha - 1
        if self.positive:
            return _power_log(jnp.log(x), p)
        beside = x <= 0
        return jnp.where(beside, (_signed_power(x, p) - 1) / p, _power_log(jnp.log(jnp.where(beside, 1.0, x)), p))

    def _curvature(self, x):
        return _power(jnp.abs(x), self.alpha - 2)

    def _inverse_curvature(self, x):
        return _power(jnp.abs(x), 2 - self.alpha)

    def _conjugate_gradient(self, u):
        p = self.alpha - 1
        if p == 0:
            return jnp.exp(u)
        z = p * u  # sign(x) |x|^p = 1 + z
        small = jnp.abs(z) < _SMALL
        return jnp.where(small, jnp.exp(_log1p(jnp.where(small, z, 0.0)) / p), _signed_power(1 + z, 1 / p))

    def _conjugate_piece(self, u):
        p = self.alpha - 1
        if p == 0:
            return jnp.expm1(u)
        return _power_log(_log1p(p * u) / p, self.alpha)

    def _reach(self, y):
        return jnp.abs(y) * min(1.0, 4 / max(abs(self.alpha - 2), 1.0))  # steep powers need closer nodes

    def _inside(self, x):
        if self.alpha > 1:
            return jnp.isfinite(x)
        return jnp.isfinite(x) & (x >= 0 if self.alpha > 0 else x > 0)

    def _inside_conjugate(self, u):
        if self.alpha >= 1:
            return u < jnp.inf
        z = (1 - self.alpha) * u
        return z <= 1 if self.alpha < 0 else z < 1

    def _in_conjugate_closure(self, u):
        return u < jnp.inf if self.alpha >= 1 else (1 - self.alpha) * u < 1

    def _far_rise(self, x, y):
        p = self.alpha - 1
        top = jnp.maximum(jnp.abs(x), jnp.abs(y))
        same = _power(top, p) * (
            _power_log(_log_ratio(jnp.abs(x), top), p) - _power_log(_log_ratio(jnp.abs(y), top), p)
        )
        if self.positive:
            return same
        apart = self._gradient(x) - self._gradient(y)
        return jnp.where((x > 0) & (y > 0), same, jnp.where((x < 0) & (y < 0), -same, apart))

    def _far_divergence(self, x, y):
        a = self.alpha
        if not self.positive:  # D(-x|-y) = D(x|y)
            x, y = jnp.where(y < 0, -x, x), jnp.abs(y)
        top = jnp.maximum(jnp.abs(x), y)
        top = jnp.where(top > 0, top, 1.0)
        r, s = jnp.abs(x) / top, y / top
        log_r, log_s = _log_ratio(jnp.abs(x), top), _log_ratio(y, top)
        tangent = jnp.exp((a - 1) * log_s) * (r - s) if a != 1 else r - s
        if a >= 0.5:
            rise = _power_log(log_r, a - 1) - _power_log(log_s, a - 1)
            d = (jnp.where(r > 0, r * rise, 0.0) - tangent) / a
        else:
            d = (_power_log(log_r, a) - _power_log(log_s, a) - tangent) / (a - 1)
        if not self.positive:
            apart = (_power(r, a) + (a - 1) * _power(s, a) + a * r * _power(s, a - 1)) / (a * (a - 1))
            d = jnp.where(x < 0, apart, d)
        at_zero = 1 / (a * (a - 1)) if a > 1 else jnp.inf
        return _power(top, a) * jnp.where(y == 0, at_zero, d)


@entropy_type
@dataclass(frozen=True)
class Shannon(_PowerType):
    """``psi(x) = sum x log x - x + 1`` on ``x >= 0``, with ``0 log 0 = 0``; ``D(x|y) = sum x log(x / y) - x + y`` (KL).

    ``grad psi = log x``, ``grad psi* = exp u``: mirror descent is the multiplicative (exponentiated gradient) update.

    >>> float(Shannon().divergence([1.0, 2.0], [2.0, 1.0]))      # log 2
    0.693147180559945...
    """

    alpha = 1.0


@entropy_type
@dataclass(frozen=True)
class Burg(_PowerType):
    """``psi(x) = sum -log x + x - 1`` on ``x > 0``; ``D(x|y) = sum x / y - log(x / y) - 1`` (Itakura-Saito).

    ``grad psi = 1 - 1 / x``, ``grad psi* = 1 / (1 - u)`` for ``u < 1``. `NegativeLog` is the same without the affine
    part.

    >>> float(Burg().divergence([1.0, 2.0], [2.0, 1.0]))
    0.5
    """

    alpha = 0.0

    def _gradient(self, x):
        return (x - 1) / x

    def _conjugate_gradient(self, u):
        return 1 / (1 - u)


@entropy_type
@dataclass(frozen=True)
class NegativeLog(Burg):
    """``psi(x) = -sum log x`` on ``x > 0``: Burg's entropy less an affine function, with the same divergence.

    ``grad psi = -1 / x``, ``psi*(u) = sum -1 - log(-u)``, ``grad psi* = -1 / u`` for ``u < 0``.

    >>> NegativeLog().gradient([1.0, 2.0])
    array([-1. , -0.5])
    """

    conjugate_closure = "negative"

    def _value(self, x):
        return jnp.sum(jnp.where(self._inside(x), -jnp.log(x), jnp.inf), axis=-1)

    def _gradient(self, x):
        return -1 / x

    def _conjugate_gradient(self, u):
        return -1 / u

    def _conjugate_piece(self, u):
        return -1 - jnp.log(-u)

    def _inside_conjugate(self, u):
        return (u < 0) & (u > -jnp.inf)

    def _in_conjugate_closure(self, u):
        return u < 0


@entropy_type
@dataclass(frozen=True)
class Power(_PowerType):
    """``psi(x) = sum (|x|^alpha - alpha (x - 1) - 1) / (alpha (alpha - 1))`` (Peyré 2021, equation 28).

    The domain is the line for ``alpha > 1`` and the half line otherwise. `Burg` and `Shannon` are the limits at 0 and
    1, and are what ``Power(0.0)`` and ``Power(1.0)`` compute; ``Power(2.0)`` is ``|x - 1|^2 / 2``. Accuracy does not
    suffer near those values. The flow of ``x = z^b`` is a mirror flow of ``Power(2 / b)``.

    Parameters
    ----------
    alpha : float
        The exponent; part of the compiled program.

    Examples
    --------
    >>> [round(float(Power(a).divergence([1.0, 2.0], [2.0, 1.0])), 9) for a in (2.0, 1.5, 0.5, -1.0)]
    [1.0, 0.828427125, 0.585786438, 0.375]
    """

    alpha: float = field(metadata={"static": True})

    def __post_init__(self):
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, int | float | np.floating | np.integer):
            raise TypeError(f"alpha of Power must be a number known in advance; got {type(self.alpha).__name__}")
        if not math.isfinite(self.alpha):
            raise ValueError(f"alpha of Power must be finite; got {self.alpha}")
        object.__setattr__(self, "alpha", float(self.alpha))


@entropy_type
@dataclass(frozen=True)
class Hypentropy(Separable):
    """``psi(x) = sum x asinh(x / beta) - sqrt(x^2 + beta^2) + beta`` on all of space (Ghai, Hazan and Singer 2020).

    ``grad psi = asinh(x / beta)``, ``grad psi* = beta sinh u``, ``psi'' = 1 / sqrt(x^2 + beta^2)``: Euclidean (scaled
    by ``1 / beta``) near zero, a signed Shannon entropy far from it. It is the geometry of ``x = u^2 - v^2`` with
    ``beta = 2 u_0 v_0``.

    Parameters
    ----------
    beta : float or array
        Positive; an array gives each coordinate its own.

    Examples
    --------
    >>> h = Hypentropy(2.0)
    >>> h.conjugate_gradient(h.gradient([-3.0, 0.5]))
    array([-3. ,  0.5])
    """

    beta: Any

    origin = 0.0

    def __post_init__(self):
        if isinstance(self.beta, list | tuple):
            object.__setattr__(self, "beta", np.asarray(self.beta, dtype=np.float64))
        if isinstance(self.beta, int):
            object.__setattr__(self, "beta", float(self.beta))
        concrete = isinstance(self.beta, float | np.ndarray | np.generic) and not any_jax(self.beta)
        if concrete and not (np.all(np.isfinite(self.beta)) and np.all(np.asarray(self.beta) > 0)):
            raise ValueError(f"beta of Hypentropy must be positive and finite; got {self.beta}")

    def _gradient(self, x):
        return jnp.arcsinh(x / self.beta)

    def _curvature(self, x):
        return 1 / jnp.hypot(x, self.beta)

    def _inverse_curvature(self, x):
        return jnp.hypot(x, self.beta)

    def _conjugate_gradient(self, u):
        return self.beta * jnp.sinh(u)

    def _conjugate_piece(self, u):
        return 2 * self.beta * jnp.sinh(u / 2) ** 2

    def _far_rise(self, x, y):
        # asinh(a) - asinh(b) as one asinh where the signs agree; beta^2 drops out of its argument.
        same = x * y > 0
        x_, y_ = jnp.where(same, x, 1.0), jnp.where(same, y, 1.0)
        together = jnp.arcsinh((x_ - y_) * (x_ + y_) / (x_ * jnp.hypot(y_, self.beta) + y_ * jnp.hypot(x_, self.beta)))
        return jnp.where(same, together, self._gradient(x) - self._gradient(y))

    def _far_divergence(self, x, y):
        return x * self._far_rise(x, y) - (x - y) * ((x + y) / (jnp.hypot(x, self.beta) + jnp.hypot(y, self.beta)))

    def _reach(self, y):
        return jnp.hypot(y, self.beta)  # psi'' is singular at +-i beta


def _normalised(arguments: dict) -> None:
    entropy = arguments["entropy"]
    if not isinstance(entropy, _PowerType) or isinstance(entropy, NegativeLog):
        raise TypeError(
            "entropy of csiszar must have its zero minimum at one: Shannon, Burg or Power (Power(2.0) gives the "
            f"chi-square divergence); got {entropy!r}"
        )
    shapes = [np.shape(arguments[name]) for name in ("x", "y")]
    if any(len(shape) == 0 for shape in shapes) or shapes[0][-1] != shapes[1][-1]:
        raise ValueError(
            f"x and y must be vectors of one size on the last axis; got shapes {shapes[0]} and {shapes[1]}"
        )


@public_function(objects=("entropy",), shapes=_normalised, x=NON_NEGATIVE, y=NON_NEGATIVE)
def csiszar(entropy, x, y):
    """The Csiszár divergence ``sum_{y_i > 0} y_i psi(x_i / y_i) + psi'_inf sum_{y_i = 0} x_i`` of ``x, y >= 0``.

    ``psi'_inf = lim psi(s) / s`` is infinite for ``alpha >= 1`` and ``1 / (1 - alpha)`` below. Jointly convex. It
    equals the Bregman divergence only for Shannon; with Burg it is ``KL(y|x)``. (Csiszár 1967; Peyré 2021, remark 9.)

    Examples
    --------
    >>> float(csiszar(Burg(), [1.0, 2.0], [2.0, 1.0]))           # KL(y|x) = log 2
    0.693147180559945...
    >>> float(csiszar(Burg(), [0.5, 0.5], [1.0, 0.0]))           # -log(1/2): mass where y has none costs one a unit
    0.693147180559945...
    """
    empty = y == 0
    safe = jnp.where(empty, 1.0, y)
    # y psi(x / y) = y^(1 - alpha) D(x|y), which keeps the accuracy of D when x is close to y.
    pieces = _power(safe, 1 - entropy.alpha) * _divergence(
        entropy, jnp.where(empty, 1.0, x)[..., None], safe[..., None]
    )
    beyond = entropy.recession * x if entropy.alpha < 1 else jnp.where(x > 0, jnp.inf, 0.0)
    return jnp.sum(jnp.where(empty, beyond, pieces), axis=-1)


# Powers and logarithms that keep their accuracy ---------------------------------------------------------------------

_SMALL = 0.3


def _power_log(log_x, p: float):
    """``(x^p - 1) / p``, and ``log x`` at ``p = 0``."""
    return jnp.expm1(p * log_x) / p if p != 0 else log_x


def _log1p(z):
    """``log|1 + z|``. XLA's own loses two digits in float64 around -0.41, where the plain logarithm loses none."""
    return jnp.where(jnp.abs(z) < _SMALL, jnp.log1p(jnp.clip(z, -_SMALL, _SMALL)), jnp.log(jnp.abs(1 + z)))


def _power(x, p: float):
    """``x^p`` for ``x >= 0``."""
    if p in (0, 1, 2, -1, -2):
        return x ** int(p)
    return x**p


def _log_ratio(x, top):
    """``log(x / top)`` for ``0 <= x <= top``, also where the ratio underflows."""
    ratio = x / top
    return jnp.where(ratio > jnp.finfo(ratio.dtype).tiny, jnp.log(ratio), jnp.log(x) - jnp.log(top))


def _signed_power(x, p: float):
    """``sign(x) |x|^p``."""
    return jnp.sign(x) * jnp.abs(x) ** p
