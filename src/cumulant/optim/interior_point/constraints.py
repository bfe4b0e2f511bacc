"""Sets given by inequalities ``c(x) <= 0``, with all that an interior-point method asks of them.

Every set has `value`, `jacobian` and products with it, `lagrangian_hessian` (``sum_i z_i hess c_i``) and `max_step`.
Where the structure of the set allows, `solve` costs less than a dense factorisation. A point is strictly feasible when
every ``c_i(x) < 0``; its *slacks* are ``s = -c(x) > 0``.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.optim.interior_point.linear_algebra import (
    dense_curvature,
    solve_quasi_definite,
    spd_solve,
)
from cumulant.optim.problems.base import array, is_concrete
from cumulant.optim.problems.enclosures import TINY, UNIT, Enclosure, dot, enclose, smallest_eigenvalue
from cumulant.precision import precise
from cumulant.pytrees import pytree

_BACKTRACK, _FLOOR = 0.75, 1e-12
_HALVINGS = 64
_OF_ARRAYS = (
    "value", "jacobian", "jacobian_apply", "jacobian_transpose", "lagrangian_hessian", "solve", "max_step", "project",
    "multipliers", "reach", "lift", "advance",
)  # fmt: skip


def _precise_methods(cls: type) -> type:
    for name in _OF_ARRAYS:
        if name in vars(cls):
            setattr(cls, name, precise(vars(cls)[name]))
    return cls


@dataclass_transform(frozen_default=True, eq_default=False)
def constraint_type(cls: type) -> type:
    """Class decorator: a frozen dataclass and a pytree, whose functions of arrays obey the rule of precision."""
    return pytree(dataclasses.dataclass(frozen=True, eq=False)(_precise_methods(cls)))


@precise
def room(positive, direction):
    """The largest ``a`` with ``positive + a direction >= 0``: the least ``-v / dv`` over ``dv < 0``, else infinity.

    >>> room([1.0, 2.0], [-4.0, 1.0])
    np.float64(0.25)
    """
    falls = direction < 0
    return jnp.min(jnp.where(falls, positive / -jnp.where(falls, direction, -1.0), jnp.inf), initial=jnp.inf)


def joined(pieces: list[Enclosure]) -> Enclosure:
    """One after the other."""
    return Enclosure(np.concatenate([p.value for p in pieces]), np.concatenate([p.error for p in pieces]))


@_precise_methods
class Constraints:
    """What the sets of this file share. `affine` says whether ``c`` is affine, so that slacks can be carried along.

    A subclass gives `value` and, unless automatic differentiation will do, `jacobian` and the rest.

    Carbonetto (2009, equation 2.2).

    >>> isinstance(Bounds(0.0), Constraints), Bounds(0.0).affine
    (True, True)
    """

    affine: ClassVar[bool] = False
    convexity: ClassVar[str] = "assumed"  # how it is known that every c_i is convex

    def value(self, x: Any) -> Any:
        """``c(x)``."""
        raise NotImplementedError

    def value_rounding(self, x: Any) -> Any:
        """What two ways to compute `value` in the precision of ``x`` may differ by."""
        return jnp.zeros((), x.dtype)

    def settle(self, x: Any) -> Any:
        """``x`` moved off the boundary by a rounding error, where that can be done in closed form."""
        return x

    def advance(self, x: Any, direction: Any, step: Any) -> Any:
        """``x + step direction`` and `step`, halved until every ``c_i < 0`` whatever the rounding; zero if that fails.

        So a strictly feasible ``x`` stays one, for directions of any size.
        """

        def at(step):
            return self.settle(x + step * direction)

        def outside(carry):
            # Of the point itself, not of the expression it came from, which a compiler may round another way.
            _, point, halvings = carry
            return ~jnp.all(self.value(point) < -self.value_rounding(point)) & (halvings < _HALVINGS)

        def shorter(carry):
            return carry[0] / 2, at(carry[0] / 2), carry[2] + 1

        step = jnp.asarray(step, x.dtype)
        step, point, halvings = jax.lax.while_loop(outside, shorter, (step, at(step), jnp.zeros((), int)))
        return jnp.where(halvings < _HALVINGS, point, x), jnp.where(halvings < _HALVINGS, step, 0.0)

    def enclosed_value(self, x: np.ndarray) -> Enclosure:
        """``c(x)`` in float64 with a bound on its error; by default an allowance, not a theorem."""
        c, J = np.asarray(self.value(x)), np.abs(np.asarray(self.jacobian(x)))
        return enclose(c, 64 * UNIT * (np.abs(c) + J @ np.abs(x)) + TINY)

    def enclosed_pull(self, x: np.ndarray, z: np.ndarray) -> Enclosure:
        """``J(x)^T z`` with a bound on its error; by default an allowance."""
        pulled, J = np.asarray(self.jacobian_transpose(x, z)), np.abs(np.asarray(self.jacobian(x)))
        return enclose(pulled, (64 + len(z)) * UNIT * (J.T @ np.abs(z)) + TINY)

    def negative_curvature(self, x: np.ndarray, z: np.ndarray) -> float:
        """``<z, c>`` plus this times ``|x|^2 / 2`` is convex, whatever the rounding of the test for it."""
        return 0.0

    def enclosed_reach(self, x: np.ndarray, slope: Enclosure) -> Enclosure:
        """The maximum of ``<slope, x - y>`` over the set, from above: infinite unless it is known to be bounded."""
        return enclose(0.0 if np.all((slope.value == 0) & (slope.error == 0)) else np.inf)

    def jacobian(self, x: Any) -> Any:
        """``J(x)``, dense, one row for each constraint."""
        return jax.jacfwd(self.value)(x)

    def jacobian_apply(self, x: Any, v: Any) -> Any:
        """``J(x) v``."""
        return self.jacobian(x) @ v

    def jacobian_transpose(self, x: Any, u: Any) -> Any:
        """``J(x)^T u``."""
        return self.jacobian(x).T @ u

    def lagrangian_hessian(self, x: Any, z: Any) -> Any:
        """``sum_i z_i hess c_i(x)``: a matrix, or zero where ``c`` is affine."""
        return jnp.zeros((), x.dtype)

    def solve(self, x: Any, z: Any, curvature: Any, weights: Any, right: Any) -> Any:
        """``(W + J^T diag(weights) J)^-1 right``, with ``W`` the curvature plus `lagrangian_hessian`.

        The curvature is a number, a diagonal or a matrix.
        """
        W, J = dense_curvature(curvature, x.size) + self.lagrangian_hessian(x, z), self.jacobian(x)
        dx = spd_solve(W + (J.T * weights) @ J, right)
        # Where the weights span more than the precision, Cholesky breaks down; the quasi-definite system does not.
        fine = jnp.all(jnp.isfinite(dx))
        return jax.lax.cond(fine, lambda: dx, lambda: solve_quasi_definite(W, J, weights, right))

    def max_step(self, x: Any, slack: Any, direction: Any, ceiling: Any, fraction: Any = 0.995) -> Any:
        """The longest step along `direction`, at most `ceiling`, that stays strictly inside.

        Affine constraints: ``fraction`` of the way to the boundary, in closed form. Others: `ceiling` times 0.75 as
        often as it takes, and zero where 1e-12 of it is still too long.
        """
        if self.affine:
            return jnp.minimum(ceiling, fraction * room(slack, -self.jacobian_apply(x, direction)))
        return self._backtrack(x, direction, ceiling)

    def _backtrack(self, x, direction, ceiling):
        """What is shorter than `ceiling` by powers of 0.75 and inside as far as `value` can tell."""

        def outside(carry):
            a, tried = carry
            inside = jnp.all(self.value(x + a * direction) < 0)
            return ~inside & (tried > _FLOOR)

        def shorter(carry):
            return carry[0] * _BACKTRACK, carry[1] * _BACKTRACK

        a, tried = jax.lax.while_loop(outside, shorter, (jnp.asarray(ceiling, x.dtype), jnp.ones((), x.dtype)))
        return jnp.where(tried > _FLOOR, a, 0.0)

    def lift(self, x: Any, slack: Any, least: Any) -> Any:
        """``x`` and its slacks with those below `least` raised to about that, where ``x`` can be moved in closed form;
        else as they are.
        """
        return x, slack

    def project(self, x: Any) -> Any:
        """The nearest point of the set, where there is a closed form."""
        raise TypeError(f"{type(self).__name__} has no projection in closed form: see dykstra for intersections")

    def multipliers(self, x: Any, gradient: Any) -> Any:
        """Multipliers ``z >= 0`` with ``gradient + J^T z`` as near to zero as they can be made from ``x`` alone.

        Those of the central path, ``mu / s`` with the best ``mu``, corrected by least squares in proportion to
        themselves. Any ``z >= 0`` gives a valid bound; these give a tight one near the central path.
        """
        s = -self.value(x)
        J = self.jacobian(x)
        ray = J.T @ (1 / s)
        size = jnp.vdot(ray, ray)
        mu = jnp.maximum(-jnp.vdot(gradient, ray) / jnp.where(size > 0, size, 1.0), 0.0)
        first = mu / s
        scaled = J.T * first
        correction = jnp.linalg.lstsq(scaled, -(gradient + J.T @ first))[0]
        return jnp.maximum(first * (1 + correction), 0.0)

    def reach(self, x: Any, slope: Any) -> Any:
        """The maximum of ``<slope, x - y>`` over the set: infinite unless the set is known to be bounded."""
        return jnp.where(jnp.all(slope == 0), 0.0, jnp.inf)

    def diameter(self, n: int) -> float:
        """A bound on the distance of two points of the set, ``n`` being the number of variables."""
        return float("inf")


@constraint_type
class Bounds(Constraints):
    """``lower <= x <= upper``; a bound may be infinite, entry by entry, and is then no constraint at all.

    ``c(x) = (lower - x, x - upper)`` over the finite bounds, in this order; ``J^T S J`` is diagonal.

    Carbonetto (2009, equation 2.2).

    >>> Bounds(0.0).value([1.0, 2.0])
    array([-1., -2.])
    """

    lower: Any = 0.0
    upper: Any = None
    below: tuple[int, ...] | None = dataclasses.field(default=None, init=False, metadata={"static": True})
    above: tuple[int, ...] | None = dataclasses.field(default=None, init=False, metadata={"static": True})

    affine: ClassVar[bool] = True
    convexity: ClassVar[str] = "by construction"

    def __post_init__(self):
        if self.lower is None and self.upper is None:
            raise ValueError("lower and upper of Bounds must not both be None")
        for name, index, bad in (("lower", "below", np.inf), ("upper", "above", -np.inf)):
            bound = getattr(self, name)
            if bound is None or not is_concrete(bound):
                continue
            host = np.asarray(bound, dtype=np.float64)
            if host.ndim > 1:
                raise ValueError(f"{name} of Bounds must be a number or a vector; got shape {host.shape}")
            if np.any(np.isnan(host) | (host == bad)):
                raise ValueError(f"{name} of Bounds must not be NaN or {bad}")
            finite = np.isfinite(host)
            if not finite.all():
                if host.ndim == 0 or not finite.any():
                    bound = None
                else:
                    object.__setattr__(self, index, tuple(np.flatnonzero(finite).tolist()))
            object.__setattr__(self, name, bound if bound is None or isinstance(bound, jax.Array) else host)
        if self.lower is None and self.upper is None:
            raise ValueError("at least one bound of Bounds must be finite")
        if self.lower is not None and self.upper is not None and is_concrete(self.lower, self.upper):
            low, high = np.broadcast_arrays(np.asarray(self.lower), np.asarray(self.upper))
            if np.any(low >= high):
                raise ValueError(f"lower must be below upper; got {low[low >= high][0]} and {high[low >= high][0]}")

    def _sides(self, x):
        """For each side there is: its sign, the bound as a vector, and the coordinates it is on."""
        found, xp = [], np if isinstance(x, np.ndarray) else jnp
        for sign, bound, index in ((-1.0, self.lower, self.below), (1.0, self.upper, self.above)):
            if bound is not None:
                where = slice(None) if index is None else np.array(index)
                found.append((sign, xp.broadcast_to(xp.asarray(bound, x.dtype), x.shape)[where], where))
        return found

    def _cut(self, x, u):
        """The same with what belongs to each side of a vector ``u`` over the constraints."""
        pieces, start = [], 0
        for sign, bound, where in self._sides(x):
            pieces.append((sign, u[start : start + bound.size], where))
            start += bound.size
        return pieces

    def value(self, x):
        """``(lower - x, x - upper)``, the finite ones."""
        return jnp.concatenate([sign * (x[where] - bound) for sign, bound, where in self._sides(x)])

    def jacobian(self, x):
        """Rows of the identity, with signs."""
        return jnp.concatenate([sign * jnp.eye(x.size, dtype=x.dtype)[where] for sign, _, where in self._sides(x)])

    def jacobian_apply(self, x, v):
        """``(-v, v)``."""
        return jnp.concatenate([sign * v[where] for sign, _, where in self._sides(x)])

    def jacobian_transpose(self, x, u):
        """``u_upper - u_lower``."""
        total = jnp.zeros_like(x)
        for sign, piece, where in self._cut(x, u):
            total = total.at[where].add(sign * piece)
        return total

    def solve(self, x, z, curvature, weights, right):
        """A division where the curvature is a number or a diagonal; else Cholesky."""
        diagonal = jnp.zeros_like(x)
        for _, piece, where in self._cut(x, weights):
            diagonal = diagonal.at[where].add(piece)
        if jnp.ndim(curvature) < 2:
            return right / (curvature + diagonal)
        return spd_solve(curvature + jnp.diag(diagonal), right)

    def settle(self, x):
        """Coordinates that reached their bound, or passed it, put beside it."""
        tiny = jnp.finfo(x.dtype).tiny
        for sign, bound, where in self._sides(x):
            beside = jnp.nextafter(bound, jnp.asarray(-sign * jnp.inf, x.dtype))
            if sign < 0:
                x = x.at[where].max(jnp.maximum(beside, bound + tiny))
            else:
                x = x.at[where].min(jnp.minimum(beside, bound - tiny))
        return x

    def enclosed_value(self, x):
        """``(lower - x, x - upper)``, each rounded once."""
        return joined([(enclose(x[where]) - bound) * sign for sign, bound, where in self._sides(x)])

    def enclosed_pull(self, x, z):
        """``z_upper - z_lower``."""
        total = enclose(np.zeros_like(x))
        for sign, share, where in self._cut(x, z):
            piece = np.zeros_like(x)
            piece[where] = sign * share
            total = total + piece
        return total

    def enclosed_reach(self, x, slope):
        """``sum_j max over y_j of slope_j (x_j - y_j)``; infinite where that way is open."""
        far = [np.full_like(x, np.inf), np.full_like(x, np.inf)]
        for sign, bound, where in self._sides(x):
            far[int(sign > 0)][where] = np.maximum(-sign * (x[where] - bound), 0.0) * (1 + 4 * UNIT)
        down, up = far
        most = np.maximum(slope.value + slope.error, 0.0), np.maximum(slope.error - slope.value, 0.0)
        if np.any((most[0] > 0) & np.isinf(down) | (most[1] > 0) & np.isinf(up)):
            return enclose(np.inf)
        down, up = (np.where(np.isinf(each), 0.0, each) for each in far)
        exact = enclose(np.maximum(slope.value, 0.0)) * down + enclose(np.maximum(-slope.value, 0.0)) * up
        return exact.widened(slope.error * np.maximum(down, up)).sum()

    def lift(self, x, slack, least):
        """Each coordinate moved off its bound; where the bounds are nearer than `least`, still between them."""
        push = -self.jacobian_transpose(x, jnp.maximum(least - slack, 0.0))
        x, slack, nearest = x + push, slack - self.jacobian_apply(x, push), jnp.full_like(x, jnp.inf)
        # Beside a small slack the sum of many steps has no digits left: the coordinate is the nearer bound + slack.
        for (sign, bound, where), (_, piece, _) in zip(self._sides(x), self._cut(x, slack), strict=True):
            x = x.at[where].set(jnp.where(piece < nearest[where], bound - sign * piece, x[where]))
            nearest = nearest.at[where].min(piece)
        return x, slack

    def project(self, x):
        """Each coordinate clipped."""
        x = x if self.lower is None else jnp.maximum(x, self.lower)
        return x if self.upper is None else jnp.minimum(x, self.upper)

    def multipliers(self, x, gradient):
        """``z`` that cancels the gradient wherever a bound can: the positive part below, the negative part above."""
        return jnp.concatenate([jnp.maximum(-sign * gradient[where], 0.0) for sign, _, where in self._sides(x)])

    def reach(self, x, slope):
        """``sum_j max over y_j of slope_j (x_j - y_j)``; infinite where that way is open."""
        low, high = jnp.full_like(x, -jnp.inf), jnp.full_like(x, jnp.inf)
        for sign, bound, where in self._sides(x):
            low, high = (low.at[where].set(bound), high) if sign < 0 else (low, high.at[where].set(bound))
        far = jnp.where(slope > 0, x - low, jnp.where(slope < 0, high - x, 0.0))
        return jnp.sum(jnp.where(slope == 0, 0.0, jnp.abs(slope) * jnp.where(slope == 0, 0.0, far)))

    def diameter(self, n):
        """The diagonal of the box."""
        if self.lower is None or self.upper is None:
            return float("inf")
        return float(np.linalg.norm(np.broadcast_to(np.asarray(self.upper) - np.asarray(self.lower), (n,))))


@constraint_type
class LinearConstraints(Constraints):
    """``A x <= b``: ``c(x) = A x - b``, ``J = A``.

    Carbonetto (2009, equation 2.2).

    >>> LinearConstraints([[1.0, 1.0]], [1.0]).value([0.25, 0.25])
    array([-0.5])
    """

    A: Any
    b: Any
    sizes: Any = dataclasses.field(default=None, init=False)  # of the rows: the sums of their absolute values

    affine: ClassVar[bool] = True
    convexity: ClassVar[str] = "by construction"

    def __post_init__(self):
        if not is_concrete(self.A, self.b):
            return
        A, b = array(self.A, "A", 2), array(self.b, "b", 1)
        if A.shape[0] != b.size or A.shape[1] == 0:
            raise ValueError(f"A must have one row for each entry of b; got shapes {A.shape} and {b.shape}")
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "b", b)
        object.__setattr__(self, "sizes", abs(A).sum(axis=1))

    def value(self, x):
        """``A x - b``."""
        return self.A @ x - self.b

    def value_rounding(self, x):
        """In proportion to the sum of the absolute values in a row times the largest of ``x``, plus ``|b|``."""
        sizes = jnp.sum(jnp.abs(self.A), axis=1) if self.sizes is None else jnp.asarray(self.sizes)
        return (x.size + 4) * jnp.finfo(x.dtype).eps * (sizes * jnp.max(jnp.abs(x)) + jnp.abs(jnp.asarray(self.b)))

    def enclosed_value(self, x):
        """``A x - b`` with a bound on its error."""
        return dot(np.asarray(self.A, dtype=np.float64), x) - np.asarray(self.b, dtype=np.float64)

    def enclosed_pull(self, x, z):
        """``A^T z`` with a bound on its error."""
        return dot(np.asarray(self.A, dtype=np.float64).T, z)

    def jacobian(self, x):
        """``A``."""
        return jnp.asarray(self.A)


@constraint_type
class QuadraticConstraints(Constraints):
    """``<P_i x, x> / 2 + <q_i, x> + r_i <= 0`` with positive semi-definite ``P_i``.

    Carbonetto (2009, equation 2.2).

    Parameters
    ----------
    P : array (m, n, n)
        Symmetric (up to rounding: then ``(P_i + P_i^T) / 2`` is taken); zero matrices give linear constraints.
    q : array (m, n)
    r : array (m,)

    Examples
    --------
    ``x_1 >= 0`` and ``x_2 >= x_1^2``:

    >>> P = [[[0.0, 0.0], [0.0, 0.0]], [[2.0, 0.0], [0.0, 0.0]]]
    >>> QuadraticConstraints(P, [[-1.0, 0.0], [0.0, -1.0]], [0.0, 0.0]).value(np.array([1.0, 2.0])).tolist()
    [-1.0, -1.0]
    """

    P: Any
    q: Any
    r: Any

    convexity: ClassVar[str] = "checked"

    def __post_init__(self):
        if not is_concrete(self.P, self.q, self.r):
            return
        P, q, r = array(self.P, "P", 3), array(self.q, "q", 2), array(self.r, "r", 1)
        m, n = q.shape
        if P.shape != (m, n, n) or r.shape != (m,) or m == 0:
            raise ValueError(f"P, q, r must have shapes (m, n, n), (m, n), (m,); got {P.shape}, {q.shape}, {r.shape}")
        host = np.asarray(P, dtype=np.float64)
        size = np.max(np.abs(host), axis=(1, 2), initial=0.0)
        eps = float(np.finfo(P.dtype).eps)
        mirrored = host.transpose(0, 2, 1)
        if np.any(np.max(np.abs(host - mirrored), axis=(1, 2), initial=0.0) > 16 * eps * size):
            raise ValueError("each matrix of P must be symmetric: use (P + P.T) / 2, which gives the same function")
        if np.any(host != mirrored):
            P = P / 2 + P.transpose(0, 2, 1) / 2
        least = np.linalg.eigvalsh(np.asarray(P, dtype=np.float64))[:, 0]
        if np.any(least < -8 * n * eps * size):
            i = int(np.argmin(least))
            raise ValueError(f"P[{i}] must be positive semi-definite; its least eigenvalue is {least[i]:.3g}")
        for name, each in (("P", P), ("q", q), ("r", r)):
            object.__setattr__(self, name, each)

    def value(self, x):
        """``<P_i x, x> / 2 + <q_i, x> + r_i``."""
        return (self.P @ x) @ x / 2 + self.q @ x + self.r

    def jacobian(self, x):
        """Rows ``P_i x + q_i``."""
        return self.P @ x + self.q

    def lagrangian_hessian(self, x, z):
        """``sum_i z_i P_i``."""
        return jnp.tensordot(z, jnp.asarray(self.P), axes=1)

    def max_step(self, x, slack, direction, ceiling, fraction=0.995):
        """In closed form: the root of ``c + a b + a^2 e / 2``, with ``b = J d`` and ``e = <P d, d> >= 0``."""
        b, e = self.jacobian(x) @ direction, jnp.maximum((self.P @ direction) @ direction, 0.0)
        root = jnp.sqrt(b * b + 2 * e * slack)
        # Each of the two forms of the root, where it does not cancel.
        rising = 2 * slack / jnp.where(b > 0, b + root, 1.0)
        falling = jnp.where(e > 0, (root - b) / jnp.where(e > 0, e, 1.0), jnp.inf)
        step = jnp.minimum(ceiling, fraction * jnp.min(jnp.where(b > 0, rising, falling)))
        return self._backtrack(x, direction, step)  # against rounding, very near to the boundary

    def value_rounding(self, x):
        """In proportion to the sum of the absolute values that are added up."""
        size, P = jnp.abs(x), jnp.abs(jnp.asarray(self.P))
        total = (P @ size) @ size / 2 + jnp.abs(jnp.asarray(self.q)) @ size + jnp.abs(jnp.asarray(self.r))
        return (2 * x.size + 8) * jnp.finfo(x.dtype).eps * total

    def _products(self, x):
        P = np.asarray(self.P, dtype=np.float64)
        flat = dot(P.reshape(-1, P.shape[2]), x)
        return Enclosure(flat.value.reshape(P.shape[:2]), flat.error.reshape(P.shape[:2]))

    def enclosed_value(self, x):
        """``<P_i x, x> / 2 + <q_i, x> + r_i`` with a bound on its error."""
        linear = dot(np.asarray(self.q, dtype=np.float64), x) + np.asarray(self.r, dtype=np.float64)
        return (self._products(x) * x).sum(axis=1) * 0.5 + linear

    def enclosed_pull(self, x, z):
        """``sum_i z_i (P_i x + q_i)`` with a bound on its error."""
        return ((self._products(x) + np.asarray(self.q, dtype=np.float64)) * z[:, None]).sum(axis=0)

    def negative_curvature(self, x, z):
        """``sum_i z_i`` times what the eigenvalues of ``P_i`` may be below zero."""
        P = np.asarray(self.P, dtype=np.float64)
        rounded = [UNIT * float(np.max(np.abs(each).sum(axis=1))) for each in P]  # of P, where it was symmetrised
        exact = [not np.any(each - np.diag(np.diagonal(each))) for each in P]
        least = [smallest_eigenvalue(P[i]) - (0.0 if exact[i] else rounded[i]) for i in range(len(P))]
        return float(np.sum(z * np.maximum(-np.array(least), 0.0))) * (1 + len(z) * UNIT)


@constraint_type
class SmoothConstraints(Constraints):
    """``function(x, data) <= 0``, entry by entry, for a module-level JAX function that returns a vector.

    Derivatives are automatic. That each entry is convex is your word: without it no bound of this package holds.

    Carbonetto (2009, equation 2.2).

    >>> def disc(x, data):
    ...     return jnp.sum(x * x, keepdims=True) - data
    >>> SmoothConstraints(disc, 1.0).value(jnp.array([0.5, 0.0])).tolist()
    [-0.75]
    """

    function: Callable[[Any, Any], Any] = dataclasses.field(metadata={"static": True})
    data: Any = ()

    def __post_init__(self):
        if not callable(self.function):
            raise TypeError(f"function must be a function of (x, data); got {type(self.function).__name__}")

    def value(self, x):
        """``function(x, data)``."""
        return self.function(x, self.data)

    def value_rounding(self, x):
        """An allowance: 64 units in the last place of ``c(x)`` and of its derivative along ``x``."""
        c, along = jax.jvp(self.value, (x,), (x,))
        return 64 * jnp.finfo(x.dtype).eps * (jnp.abs(c) + jnp.abs(along))

    def lagrangian_hessian(self, x, z):
        """By automatic differentiation of ``<z, c(x)>``."""
        return jax.hessian(lambda y: jnp.vdot(z, self.function(y, self.data)))(x)
