"""What an entropy is: a Legendre function, its conjugate, and the divergence it generates.

The calculus is written once, here, for all of them: the derivative of `value` is `gradient`, that of `gradient` is
`hessian_apply`, those of the conjugate are `conjugate_gradient` and the inverse Hessian, and the derivatives of the
divergence ``D(x|y) = psi(x) - psi(y) - <grad psi(y), x - y>`` are ``grad psi(x) - grad psi(y)`` in ``x`` and
``-hess psi(y)[x - y]`` in ``y``. JAX is told these rules, so that derivatives are exact and free of NaN where the
formulas branch or eigenvalues tie.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from scipy.special import roots_jacobi

from cumulant.geometry._calling import Requirement, public_function
from cumulant.pytrees import pytree

_FORMED = Requirement(lambda a: a["self"].form, lambda value, a: a["self"]._formed(value))
_IN_CLOSURE = Requirement(lambda a: a["self"].closure, lambda value, a: a["self"]._in_closure(value))
HAS_GRADIENT = Requirement(
    lambda a: _entropy(a).closure if _entropy(a).event_ndim == 1 else _entropy(a).interior,
    lambda value, a: _entropy(a)._has_gradient(value),
)
_INTERIOR = Requirement(lambda a: a["self"].interior, lambda value, a: a["self"]._in_interior(value))
_IN_DUAL = Requirement(lambda a: a["self"].conjugate_closure, lambda value, a: a["self"]._in_conjugate_closure(value))


def entropy_type(cls: type) -> type:
    """Mark a frozen dataclass as an entropy: a pytree whose fields with ``metadata={"static": True}`` are settings."""
    return pytree(cls)


def _entropy(arguments: dict) -> "Entropy":
    return arguments["self"] if "self" in arguments else arguments["entropy"]


def _event(arguments: dict) -> None:
    """Every point has the axes of an event (vectors on the last, matrices on the last two), of equal sizes."""
    entropy = arguments["self"]
    n = entropy.event_ndim
    shapes = {name: np.shape(value) for name, value in arguments.items() if name != "self"}
    for name, shape in shapes.items():
        if len(shape) < n or (n == 2 and shape[-1] != shape[-2]):
            kind = "vectors on the last axis" if n == 1 else "square matrices on the last two axes"
            raise ValueError(f"{name} must be {kind} for {entropy}; got shape {shape}")
    if len({shape[len(shape) - n :] for shape in shapes.values()}) > 1:
        given = ", ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
        raise ValueError(f"points of {entropy} must have equal sizes; got {given}")


class Entropy:
    """A strictly convex function ``psi``, smooth inside its domain and steep at its boundary (of Legendre type).

    Then ``grad psi`` is a bijection from the interior of the domain to that of the conjugate
    ``psi*(u) = sup_x <u, x> - psi(x)``, with inverse ``grad psi*`` (Rockafellar 1970, theorem 26.5). `value` and
    `conjugate` are ``+inf`` outside their domains. Gradients outside are refused; on the boundary those of vectors are
    infinite, so that a mirror step keeps a zero at zero.

    Points have vectors on the last axis (matrices on the last two for spectral entropies) and are batched over leading
    axes.

    Attributes
    ----------
    event_ndim : int
        1 for entropies of vectors, 2 for entropies of symmetric matrices.
    """

    event_ndim: int = 1

    @public_function(shapes=_event, x=_FORMED)
    def value(self, x):
        """``psi(x)``, ``+inf`` outside the domain; shape of the batch."""
        return _value(self, x)

    @public_function(shapes=_event, x=(_FORMED, HAS_GRADIENT))
    def gradient(self, x):
        """``grad psi(x)``: the dual coordinates of ``x``, infinite for coordinates on the boundary."""
        return _gradient(self, x)

    @public_function(shapes=_event, u=_FORMED)
    def conjugate(self, u):
        """``psi*(u) = sup_x <u, x> - psi(x)``, ``+inf`` outside its domain; shape of the batch."""
        return _conjugate(self, u)

    @public_function(shapes=_event, u=(_FORMED, _IN_DUAL))
    def conjugate_gradient(self, u):
        """``grad psi*(u) = (grad psi)^-1(u)``: from dual coordinates back to points."""
        return _conjugate_gradient(self, u)

    @public_function(shapes=_event, x=(_FORMED, _INTERIOR), v=_FORMED)
    def hessian_apply(self, x, v):
        """``hess psi(x)[v]``, at points ``x`` of the interior."""
        return self._hessian_apply(x, v)

    @public_function(shapes=_event, x=(_FORMED, _IN_CLOSURE), v=_FORMED)
    def inverse_hessian_apply(self, x, v):
        """``hess psi(x)^-1 [v]``: the direction of the mirror flow for a gradient ``v``."""
        return self._inverse_hessian_apply(x, v)

    @public_function(shapes=_event, x=_FORMED, y=(_FORMED, _IN_CLOSURE))
    def divergence(self, x, y):
        """``D(x|y) = psi(x) - psi(y) - <grad psi(y), x - y> >= 0``, zero exactly where ``x = y``; shape of the batch.

        Computed without cancellation: relative accuracy is kept when ``x`` is close to ``y``. On the boundary it is the
        limit: ``+inf`` for ``y_i = 0 < x_i``, and 0 for ``x_i = y_i = 0`` where ``psi(0)`` is finite.
        """
        return _divergence(self, x, y)

    @public_function(shapes=_event)
    def in_domain(self, x):
        """Whether ``psi(x)`` is finite; shape of the batch."""
        return self._in_domain(x)

    @public_function(shapes=_event)
    def in_conjugate_domain(self, u):
        """Whether ``psi*(u)`` is finite; shape of the batch."""
        return self._in_conjugate_domain(u)

    # What a kind of entropy must state, in words for messages that say "must be ...": what every argument must be,
    # where points must lie, where for a Hessian to exist, and where dual coordinates must lie.

    form: str = "free of NaN"
    closure: str = "finite"
    conjugate_closure: str = "finite"

    @property
    def interior(self) -> str:
        """Where points must lie for a Hessian to exist."""
        return self.closure

    # And in plain JAX.

    _value: Any
    _gradient: Any
    _conjugate: Any
    _conjugate_gradient: Any
    _hessian_apply: Any
    _inverse_hessian_apply: Any
    _divergence: Any
    _in_domain: Any
    _in_conjugate_domain: Any
    _in_closure: Any
    _in_interior: Any
    _in_conjugate_closure: Any

    def _rise(self, x, y) -> Any:
        """``grad psi(x) - grad psi(y)``, without cancellation where the entropy can."""
        return self._gradient(x) - self._gradient(y)

    def _formed(self, value) -> Any:
        return ~jnp.isnan(value)

    def _has_gradient(self, x) -> Any:
        return self._in_closure(x)


# The calculus -------------------------------------------------------------------------------------------------------


def _ruled(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The method `name` as a function whose derivative in the points is `rule(entropy, points, tangents)`."""

    def plain(entropy, *points):
        return getattr(entropy, name)(*points)

    function = jax.custom_jvp(plain)

    def derivative(primals, tangents):
        entropy, *points = primals
        varies = any(not isinstance(each, SymbolicZero) for each in jax.tree.leaves(tangents[0]))
        tangents = jax.tree.map(_instantiate, tangents)
        slope = rule(entropy, points, tangents[1:])
        if varies:  # a parameter of the entropy, the points being held
            slope = slope + jax.jvp(lambda e: plain(e, *points), (entropy,), (tangents[0],))[1]
        return function(entropy, *points), slope

    function.defjvp(derivative, symbolic_zeros=True)
    return function


def _instantiate(tangent: Any) -> Any:
    if not isinstance(tangent, SymbolicZero):
        return tangent
    aval: Any = tangent.aval
    return jnp.zeros(aval.shape, aval.dtype)


def _pair(entropy, a, b):
    """``<a, b>`` over the axes of an event."""
    return jnp.sum(a * b, axis=tuple(range(-entropy.event_ndim, 0)))


_value = _ruled("_value", lambda e, at, d: _pair(e, _gradient(e, at[0]), d[0]))
_gradient = _ruled("_gradient", lambda e, at, d: e._hessian_apply(at[0], d[0]))
_conjugate = _ruled("_conjugate", lambda e, at, d: _pair(e, _conjugate_gradient(e, at[0]), d[0]))
_conjugate_gradient = _ruled(
    "_conjugate_gradient", lambda e, at, d: e._inverse_hessian_apply(_conjugate_gradient(e, at[0]), d[0])
)
_rise = _ruled("_rise", lambda e, at, d: e._hessian_apply(at[0], d[0]) - e._hessian_apply(at[1], d[1]))
_divergence = _ruled(
    "_divergence",
    lambda e, at, d: _pair(e, _rise(e, at[0], at[1]), d[0]) - _pair(e, e._hessian_apply(at[1], at[0] - at[1]), d[1]),
)


# Separable entropies ------------------------------------------------------------------------------------------------


def _rule(power: int):
    """Six nodes of Gauss's rule on [0, 1] for the weight ``(1 - r)^power``, and their weights."""
    nodes, weights = roots_jacobi(6, power, 0)
    return (nodes + 1) / 2, weights / 2 ** (power + 1)


DIVERGENCE_RULE, RISE_RULE = _rule(1), _rule(0)

NEAR = 0.15  # in units of the distance to the nearest singularity of psi'': there six nodes reach the rounding unit


def integral(rule, function, start, step):
    """The integral over ``0 < r < 1`` of ``function(start + r step)`` times the weight of the rule."""
    start, step = jnp.broadcast_arrays(start, step)
    nodes, weights = (each.astype(start.dtype) for each in rule)
    values = function(start + nodes.reshape(-1, *(1,) * start.ndim) * step)
    return jnp.sum(weights.reshape(-1, *(1,) * (values.ndim - 1)) * values, axis=0)


class Separable(Entropy):
    """An entropy ``psi(x) = sum_i psi_i(x_i)`` over the last axis, given by its scalar pieces.

    Close points use ``D(x|y) = (x - y)^2 int_0^1 (1 - r) psi''(y + r (x - y)) dr``, whose integrand is positive, by
    Gauss quadrature; others the closed form `_far_divergence`, in which little cancels.
    """

    origin: float = 1.0  # where psi and psi' vanish: psi(x) = D(x|origin)

    positive: bool = False  # whether the domain is a half line rather than the line

    # The scalar pieces, beside `_gradient` and `_conjugate_gradient`. `_reach(y)` is how far around ``y`` the
    # quadrature may go, before the factor `NEAR`.

    _curvature: Any
    _conjugate_piece: Any
    _far_divergence: Any
    _reach: Any

    def _inverse_curvature(self, x) -> Any:
        return 1 / self._curvature(x)

    def _far_rise(self, x, y) -> Any:
        return self._gradient(x) - self._gradient(y)

    def _inside(self, x) -> Any:
        return jnp.isfinite(x)

    def _inside_conjugate(self, u) -> Any:
        return jnp.isfinite(u)

    # What follows.

    def _near(self, x, y):
        return jnp.abs(x - y) <= NEAR * self._reach(y)

    def _secant(self, x, y):
        """``(psi'(x) - psi'(y)) / (x - y)``, and ``psi''(x)`` where they coincide."""
        gap = x - y
        near = integral(RISE_RULE, self._curvature, y, gap)
        return jnp.where(self._near(x, y), near, self._far_rise(x, y) / jnp.where(gap == 0, 1.0, gap))

    def _rise(self, x, y):
        near = (x - y) * integral(RISE_RULE, self._curvature, y, x - y)
        return jnp.where(x == y, 0.0, jnp.where(self._near(x, y), near, self._far_rise(x, y)))

    def _pieces(self, x, y):
        """The divergences of the scalars."""
        gap = x - y
        near = gap * (gap * integral(DIVERGENCE_RULE, self._curvature, y, gap))  # gap**2 could underflow
        d = jnp.where(x == y, 0.0, jnp.where(self._near(x, y), near, self._far_divergence(x, y)))
        return jnp.where(self._inside(x), d, jnp.inf)

    def _divergence(self, x, y):
        return jnp.sum(self._pieces(x, y), axis=-1)

    def _value(self, x):
        return self._divergence(x, jnp.full_like(x, self.origin))

    def _conjugate(self, u):
        return jnp.sum(jnp.where(self._inside_conjugate(u), self._conjugate_piece(u), jnp.inf), axis=-1)

    def _hessian_apply(self, x, v):
        return self._curvature(x) * v

    def _inverse_hessian_apply(self, x, v):
        return self._inverse_curvature(x) * v

    def _in_domain(self, x):
        return jnp.all(self._inside(x), axis=-1)

    def _in_conjugate_domain(self, u):
        return jnp.all(self._inside_conjugate(u), axis=-1)

    @property
    def closure(self) -> str:
        """Where points must lie."""
        return "non-negative and finite" if self.positive else "finite"

    @property
    def interior(self) -> str:
        """Where points must lie for a Hessian to exist."""
        return "positive and finite" if self.positive else "finite"

    def _in_closure(self, x):
        return jnp.isfinite(x) & (x >= 0) if self.positive else jnp.isfinite(x)

    def _in_interior(self, x):
        return jnp.isfinite(x) & (x > 0) if self.positive else jnp.isfinite(x)

    def _in_conjugate_closure(self, u):
        return self._inside_conjugate(u)
