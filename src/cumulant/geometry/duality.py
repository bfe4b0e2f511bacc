"""Convex duality: conjugates, Fenchel gaps, Bregman divergences of any function, and Fenchel's dual problem.

A *pair* is anything with `value(x)` and `conjugate(u)`: every entropy, the functions of `conjugate_pairs`, and `Pair`
for your own. Weak duality makes each gap below non-negative; whether it can reach zero depends on the problem, so it is
computed, never assumed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.certificates import Certificate, assume, by_construction, check, issuer, rounding
from cumulant.errors import NotConvergedError
from cumulant.geometry._calling import FINITE, NOT_NAN, public_function, vectors
from cumulant.geometry._newton import damped_newton
from cumulant.geometry.entropy import Entropy
from cumulant.precision import precise
from cumulant.pytrees import pytree

__all__ = [
    "ConvexFunction",
    "FenchelDual",
    "Pair",
    "bregman",
    "certify_fenchel_gap",
    "conjugate",
    "fenchel_dual",
    "fenchel_gap",
]


class ConvexFunction:
    """A closed convex function of vectors on the last axis, with its conjugate ``f*(u) = sup_x <u, x> - f(x)``.

    Both are extended-valued: ``+inf`` outside their domains. A subclass states `_value` and `_conjugate` in plain JAX.
    """

    known = True  # whether the conjugate is ours to vouch for

    @public_function(shapes=vectors("x"), x=NOT_NAN)
    def value(self, x):
        """``f(x)``; shape of the batch."""
        return self._value(x)

    @public_function(shapes=vectors("u"), u=NOT_NAN)
    def conjugate(self, u):
        """``f*(u)``; shape of the batch."""
        return self._conjugate(u)

    def _value(self, x) -> Any:
        raise NotImplementedError

    def _conjugate(self, u) -> Any:
        raise NotImplementedError


_STATIC = {"static": True}


@pytree
@dataclass(frozen=True)
class Pair(ConvexFunction):
    """Your own pair: two functions of vectors on the last axis, written in JAX. That they are conjugate is your word.

    >>> pair = Pair(lambda x: jnp.sum(jnp.exp(x), axis=-1), lambda u: jnp.sum(u * jnp.log(u) - u, axis=-1))
    >>> float(fenchel_gap(pair, [0.0, 1.0], [1.0, 1.0]).round(12))                     # e - 2
    0.718281828459
    """

    function: Callable = field(metadata=_STATIC)
    conjugate_function: Callable = field(metadata=_STATIC)

    known = False

    def _value(self, x):
        return self.function(x)

    def _conjugate(self, u):
        return self.conjugate_function(u)


@pytree
@dataclass(frozen=True)
class _Swapped(ConvexFunction):
    """The conjugate of a pair, as a pair."""

    original: Any

    @property
    def known(self) -> bool:
        return _is_known(self.original)

    def _value(self, x):
        return self.original.conjugate(x)

    def _conjugate(self, u):
        return self.original.value(u)


def _found(arguments: dict, answer: Any) -> None:
    if np.any(np.isnan(np.asarray(answer))):
        raise NotConvergedError(
            "conjugate: no maximum of <u, x> - f(x) was found. Either f*(u) is infinite, or f is not smooth and "
            "strictly convex, or the start is too far: give another"
        )


@pytree
@dataclass(frozen=True)
class _Numeric(ConvexFunction):
    """The conjugate of a smooth strictly convex function, by Newton's method from `start`."""

    function: Callable = field(metadata=_STATIC)
    max_steps: int = field(metadata=_STATIC)
    start: Any

    known = False  # the maximum found is a lower bound on the conjugate

    @public_function(shapes=vectors("x"), after=_found, x=FINITE)
    def value(self, x):
        """The conjugate at ``x``."""
        return _maximum(self, x)

    def _conjugate(self, u):
        return self.function(u) if u.ndim == 1 else jnp.vectorize(self.function, signature="(p)->()")(u)


def _maximise(numeric, u):
    """The conjugate and its maximiser; NaN where the gradient does not reach ``u``."""
    f = numeric.function
    start = jnp.asarray(numeric.start, u.dtype)

    def one(target):
        def evaluate(x):
            value, g = jax.value_and_grad(f)(x)
            return value - target @ x, g - target, jnp.linalg.norm(target) + jnp.linalg.norm(g)

        x, _ = damped_newton(evaluate, jax.hessian(f), start, numeric.max_steps)
        value, g, _ = evaluate(x)
        found = jnp.linalg.norm(g) <= np.sqrt(jnp.finfo(u.dtype).eps) * (1 + jnp.linalg.norm(target))
        return jnp.where(found, -value, jnp.nan), x

    values, points = jax.vmap(one)(u.reshape(-1, u.shape[-1]))
    return values.reshape(u.shape[:-1]), points.reshape(u.shape)


@jax.custom_jvp
def _maximum(numeric, u):
    return _maximise(numeric, u)[0]


@_maximum.defjvp
def _(primals, tangents):
    value, x = _maximise(*primals)
    return value, jnp.sum(x * tangents[1], axis=-1)  # the gradient of a conjugate is the maximiser


def conjugate(f: Any, start: Any = None, *, max_steps: int = 200) -> ConvexFunction:
    """The conjugate ``f*(u) = sup_x <u, x> - f(x)`` as a pair whose own conjugate is ``f`` again.

    Parameters
    ----------
    f : a pair, or a function of one vector written in JAX
        A pair (an entropy, say) is exchanged exactly. For a plain function, smooth and strictly convex, the maximum is
        found by Newton's method from `start`, and refused with `NotConvergedError` (NaN while being traced) where it is
        not found.
    start : array, for a plain function
        A point inside the domain of ``f``.

    Examples
    --------
    >>> from cumulant.geometry import Shannon
    >>> float(conjugate(Shannon()).value([1.0, 0.0]).round(9))                          # e - 1
    1.718281828
    >>> smooth = conjugate(lambda x: jnp.sum(jnp.cosh(x)), start=[0.0, 0.0])
    >>> float(smooth.value([1.0, 0.0]).round(9))                                       # asinh(1) - sqrt 2 - 1
    -1.532839975
    """
    if isinstance(f, _Swapped):
        return f.original
    if hasattr(f, "value") and hasattr(f, "conjugate"):
        return _Swapped(f)
    if not callable(f):
        raise TypeError(f"f must be a pair or a function of one vector; got {type(f).__name__}")
    if start is None:
        raise ValueError("start must be given for a plain function: a point inside the domain of f")
    return _Numeric(f, max_steps, start if isinstance(start, jax.Array) else np.asarray(start, dtype=np.float64))


def fenchel_gap(f: Any, x: Any, u: Any) -> Any:
    """``f(x) + f*(u) - <u, x> >= 0``, zero exactly where ``u`` is a subgradient of ``f`` at ``x`` (Fenchel-Young).

    For an entropy it is the divergence ``D(x|grad f*(u))``, and computed as such, without cancellation.

    >>> from cumulant.geometry import Euclidean
    >>> float(fenchel_gap(Euclidean(), [1.0, 2.0], [1.0, 0.0]))
    2.0
    """
    return _entropy_gap(f, x, u) if isinstance(f, Entropy) else _pair_gap(f, x, u)


def _gap_shapes(arguments: dict) -> None:
    vectors("x", "u")(arguments)
    if np.shape(arguments["x"])[-1] != np.shape(arguments["u"])[-1]:
        raise ValueError(
            f"x and u must have equal sizes; got shapes {np.shape(arguments['x'])} and {np.shape(arguments['u'])}"
        )


@public_function(x=NOT_NAN, u=NOT_NAN)
def _entropy_gap(f, x, u):
    inside = f.in_conjugate_domain(u)
    origin = f.gradient(
        jnp.ones_like(u) if f.event_ndim == 1 else jnp.broadcast_to(np.eye(u.shape[-1], dtype=u.dtype), u.shape)
    )
    safe = jnp.where(inside.reshape(*inside.shape, *(1,) * f.event_ndim), u, origin)
    return jnp.where(inside, f.divergence(x, f.conjugate_gradient(safe)), jnp.inf)


@public_function(shapes=_gap_shapes, x=NOT_NAN, u=NOT_NAN)
def _pair_gap(f, x, u):
    return f.value(x) + f.conjugate(u) - jnp.sum(x * u, axis=-1)


def bregman(f: Any) -> Callable:
    """The divergence ``D(x, y) = f(x) - f(y) - <grad f(y), x - y>`` of an entropy, a pair, or a function in JAX.

    The function takes one vector; the divergence is batched. An entropy's own `divergence` loses no digits for close
    points; that of another function is computed as it is written.

    >>> distance = bregman(lambda x: jnp.sum(x**4))
    >>> float(distance([2.0], [1.0]))
    11.0
    """
    if isinstance(f, Entropy):
        return f.divergence
    function = f.value if hasattr(f, "value") else f
    if not callable(function):
        raise TypeError(f"f must be an entropy, a pair or a function of one vector; got {type(f).__name__}")

    def one(x, y):
        value, gradient = jax.value_and_grad(function)(y)
        return function(x) - value - gradient @ (x - y)

    @precise
    def over_the_batch(x, y):
        return jnp.vectorize(one, signature="(p),(p)->()")(x, y)

    def divergence(x, y):
        x, y = (each if isinstance(each, jax.Array) else np.asarray(each, dtype=np.float64) for each in (x, y))
        return over_the_batch(x, y)

    return divergence


# Fenchel's dual problem ---------------------------------------------------------------------------------------------


def _fits(name: str, axis: int) -> Callable[[dict], None]:
    def shapes(arguments):
        vectors(name)(arguments)
        size, given = np.shape(arguments["self"].A)[axis], np.shape(arguments[name])[-1]
        if size != given:
            shape = np.shape(arguments["self"].A)
            raise ValueError(f"{name} must have {size} entries on its last axis, as A has shape {shape}; got {given}")

    return shapes


def _fits_both(arguments: dict) -> None:
    _fits("x", 1)(arguments)
    _fits("y", 0)(arguments)


@pytree
@dataclass(frozen=True)
class FenchelDual:
    """``min_x f(x) + g(A x)`` and its dual ``max_y -f*(-A^T y) - g*(y)``; made by `fenchel_dual`."""

    f: Any
    g: Any
    A: Any

    @public_function(shapes=_fits("x", 1), x=NOT_NAN)
    def primal(self, x):
        """``f(x) + g(A x)``."""
        return self.f.value(x) + self.g.value(x @ self.A.T)

    @public_function(shapes=_fits("y", 0), y=NOT_NAN)
    def dual(self, y):
        """``-f*(-A^T y) - g*(y)``: a lower bound on the primal problem, ``-inf`` where ``y`` is not feasible."""
        return -self.f.conjugate(-(y @ self.A)) - self.g.conjugate(y)

    @public_function(shapes=_fits_both, x=NOT_NAN, y=NOT_NAN)
    def gap(self, x, y):
        """``primal(x) - dual(y) >= 0``: how far each can be from optimal. It need not reach zero."""
        return self.primal(x) - self.dual(y)

    def certify(self, x, y) -> Certificate:
        """`certify_fenchel_gap` of one point ``x`` and one dual point ``y``."""
        return certify_fenchel_gap(self, (x, y))


@issuer
def certify_fenchel_gap(given: FenchelDual, answer: tuple[Any, Any]) -> Certificate:
    """How far ``x`` of ``answer = (x, y)`` can be from optimal: ``primal(x) - dual(y)``, by weak duality.

    Refused where either value is infinite. ``A x`` and ``A^T y`` are known within rounding, and ``g`` and ``f*`` are
    bounded over the boxes that contain them. The dual value is that of ``y`` scaled down by a few units of rounding,
    which is feasible where ``y`` is within rounding of a ball. Where the set has no interior (a simplex), that ``y`` is
    feasible is assumed.
    """
    x, y = (np.asarray(each, dtype=np.float64) for each in answer)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"x and y must be one point each; got shapes {x.shape} and {y.shape}")
    problem = _in_numpy(given)
    f, g, A = problem.f, problem.g, problem.A
    unit = (8.0 + sum(A.shape)) * 2.0**-52
    primal, dual = float(problem.primal(x)), float(problem.dual(y))
    above = _largest_near(g.value, A @ x, unit * (np.abs(A) @ np.abs(x)))
    magnitude = np.abs(A).T @ np.abs(y)
    size = float(np.max(np.abs(y @ A), initial=0.0))
    shrink = min(4.0 * unit * (1.0 + (float(np.max(magnitude, initial=0.0)) / size if size > 0 else 0.0)), 0.5)
    inside = (1.0 - shrink) * y
    below = -_largest_near(f.conjugate, -(inside @ A), unit * magnitude) - float(g.conjugate(inside))
    settled = np.isfinite(below)
    below = below if settled else dual
    feasible = "y is feasible"
    grounds = [
        check(np.isfinite(primal) and np.isfinite(above), "x is feasible", f"f(x) + g(A x) = {primal:.6g}"),
        check(np.isfinite(dual), feasible, f"-f*(-A^T y) - g*(y) = {dual:.6g}"),
    ]
    if not settled:
        grounds[1] = assume(feasible, "it is so within rounding, and its set has no interior")
    vouch = by_construction if _is_known(f) and _is_known(g) else assume
    # Values at the reflected points show the size of terms that cancel in the values themselves.
    terms = [(f.value, x), (g.value, A @ x), (f.conjugate, y @ A), (g.conjugate, y)]
    values = np.array([float(function(sign * point)) for function, point in terms for sign in (1.0, -1.0)])
    slack = rounding(values[np.isfinite(values)], primal, dual, terms=8.0 + sum(A.shape)) + 2.0**-1000
    return Certificate(
        quantity="f(x) + g(A x) - inf",
        bound=max(primal - dual, 0.0),
        theorem="weak duality (Fenchel 1949; Rockafellar 1970, theorem 31.1)",
        assumptions=(*grounds, vouch("f* and g* are the conjugates of f and g")),
        slack=slack + max(float(f.value(x)) + above - primal, 0.0) + max(dual - below, 0.0),
        details={"primal": primal, "dual": dual},
    )


def _largest_near(function: Callable, point: np.ndarray, error: np.ndarray) -> float:
    """An upper bound on a convex function over ``point +- error``: the mean of its values at steps along the axes.

    ``point + d`` is the mean over ``i`` of ``point + p d_i e_i``.
    """
    largest = np.empty(point.size)
    for i in range(0, point.size, 256):
        rows = np.arange(i, min(i + 256, point.size))
        step = np.zeros((rows.size, point.size))
        step[np.arange(rows.size), rows] = point.size * error[rows]
        largest[rows] = np.maximum(function(point + step), function(point - step))
    return max(float(function(point)), float(largest.mean()))


def _in_numpy(problem):
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), problem)


def _is_known(f) -> bool:
    return isinstance(f, Entropy) or bool(getattr(f, "known", False))


def fenchel_dual(f: Any, g: Any, A: Any) -> FenchelDual:
    """The problem ``min_x f(x) + g(A x)`` with its dual ``max_y -f*(-A^T y) - g*(y)``, for two pairs and a matrix.

    Every dual value is below every primal value (weak duality); equality of the best of each needs a qualification
    condition, such as a point inside the domain of ``f`` that `A` maps inside that of ``g`` (Rockafellar 1970, theorem
    31.1).

    Examples
    --------
    The lasso, and the dual point that its residual gives:

    >>> from cumulant.geometry.conjugate_pairs import Norm, SquaredError
    >>> A, b = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([1.0, 2.0, 3.0])
    >>> lasso = fenchel_dual(Norm(1, weight=1.0), SquaredError(b), A)
    >>> x = np.array([0.0, 27 / 56])
    >>> print(lasso.certify(x, A @ x - b))
    f(x) + g(A x) - inf <= 0  [deterministic, rounding ...]
      by weak duality (Fenchel 1949; Rockafellar 1970, theorem 31.1)
      primal = 0.491071, dual = 0.491071
      ✓ x is feasible (checked: f(x) + g(A x) = 0.491071)
      ✓ y is feasible (checked: -f*(-A^T y) - g*(y) = 0.491071)
      = f* and g* are the conjugates of f and g (by construction)
    """
    for name, each in (("f", f), ("g", g)):
        if not (hasattr(each, "value") and hasattr(each, "conjugate")):
            raise TypeError(f"{name} must be a pair, with value and conjugate; got {type(each).__name__}")
    A = A if isinstance(A, jax.Array) else np.asarray(A, dtype=np.float64)
    if A.ndim != 2:
        raise ValueError(f"A must be a matrix; got shape {A.shape}")
    return FenchelDual(f, g, A)
