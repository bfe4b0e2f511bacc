"""Penalties and sets for `Composite`: each with its proximal map, from `cumulant.geometry`, and its conjugate.

A penalty ``R`` has `value`, `prox(v, step)`, and for duality gaps `conjugate_point(u)`, a maximiser ``z`` of
``<u, z> - R(z)``, so that ``R*(u) = <u, z> - R(z)``; and `dual_scale(u, doubt)`, the largest ``c`` in [0, 1] for which
``R*`` is finite at ``c u``, whatever errors up to `doubt` the entries of ``u`` may have.

Certificates are computed on the host with bounds on the rounding: `enclosed_value(x)` (zero for a set),
`enclosed_conjugate(u)`, of which the upper end holds for every ``u`` in its enclosure, `nearest_dual(u)`, a point near
``u`` where ``R*`` is finite, and `reach(x)`, the largest distance of ``x`` to a point where ``R`` is finite.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.geometry import projections, proximal
from cumulant.optim.problems.enclosures import TINY, UNIT, Enclosure, enclose
from cumulant.precision import any_tracer, precise
from cumulant.pytrees import pytree


def _settings(name: str, *, positive: bool = False, **numbers: Any) -> None:
    for key, value in numbers.items():
        if any_tracer(value):
            continue
        value = checks.real_array(f"{key} of {name}", value, finite=False)
        if not np.all(np.isfinite(value) & ((value > 0) if positive else (value >= 0))):
            raise ValueError(f"{key} of {name} must be finite and {'positive' if positive else 'not negative'}")


def _share(limit: Any, size: Any) -> Any:
    """The largest ``c`` in [0, 1] with ``c size <= limit``, entry by entry."""
    small = size <= limit
    return jnp.min(jnp.where(small, 1.0, limit / jnp.where(small, 1.0, size)))


class Penalty:
    """What the penalties and sets of this file share: by default a set, without a penalty, that is not bounded."""

    is_set: ClassVar[bool] = False

    def feasible(self, x: Any) -> Any:
        """The nearest point where ``R`` is finite; ``x`` itself unless this is a set."""
        return x

    @precise
    def conjugate_point(self, u):
        """A maximiser of ``<u, z> - R(z)``: zero where ``R*`` is an indicator."""
        return jnp.zeros_like(u)

    @precise
    def dual_scale(self, u, doubt):
        """The largest ``c`` in [0, 1] for which ``R*`` is finite at ``c u``: one where it is finite everywhere."""
        return jnp.ones((), u.dtype)

    def enclosed_value(self, x: Any) -> Enclosure:
        """``R(x)`` with a bound on its error; zero on a set."""
        return enclose(0.0)

    def nearest_dual(self, u: np.ndarray) -> np.ndarray:
        """A point near ``u`` where ``R*`` is finite."""
        return u

    def reach(self, x: np.ndarray) -> float:
        """The largest distance of ``x`` to a point where ``R`` is finite."""
        return float("inf")


class ConvexSet(Penalty):
    """A set, whose proximal map is the projection."""

    is_set: ClassVar[bool] = True

    def prox(self, v, step):
        """The nearest point."""
        raise NotImplementedError

    def feasible(self, x: Any) -> Any:
        """The nearest point of the set."""
        return self.prox(x, 1.0)

    @precise
    def value(self, x):
        """Zero inside, infinite outside, up to rounding."""
        nearest = self.prox(x, 1.0)
        size = jnp.maximum(jnp.max(jnp.abs(x)), jnp.max(jnp.abs(nearest)))
        room = 64 * jnp.finfo(x.dtype).eps * x.shape[-1] * size
        return jnp.where(jnp.max(jnp.abs(x - nearest)) <= room, 0.0, jnp.inf)


def _feasible(inside: Any) -> Enclosure:
    """The indicator of what is known to be inside."""
    return enclose(0.0 if np.all(inside) else np.inf)


@pytree
@dataclasses.dataclass(frozen=True)
class NoPenalty(Penalty):
    """``R = 0``: what makes a smooth problem a composite one."""

    @precise
    def value(self, x):
        """Zero."""
        return jnp.zeros((), x.dtype)

    @precise
    def prox(self, v, step):
        """``v``."""
        return v

    @precise
    def dual_scale(self, u, doubt):
        """Zero unless ``u`` is."""
        return jnp.where(jnp.all(jnp.abs(u) + doubt == 0), 1.0, 0.0)

    def enclosed_conjugate(self, u: Enclosure) -> Enclosure:
        """Infinite unless ``u`` is exactly zero."""
        return _feasible((u.value == 0) & (u.error == 0))

    def nearest_dual(self, u: np.ndarray) -> np.ndarray:
        """Zero."""
        return np.zeros_like(u)


@pytree
@dataclasses.dataclass(frozen=True)
class L1(Penalty):
    """``R(x) = sum_j weight_j |x_j|``: the Lasso penalty.

    Parameters
    ----------
    weight : float or array
        One for all, or one for each coordinate. Where an entry is zero (an intercept), duality gaps are valid but do
        not go to zero: centre the data instead, or give the problem a little `l2` (Tibshirani 1996).

    Examples
    --------
    >>> L1(2.0).prox(np.array([3.0, -1.0, 0.5]), 0.5)        # soft thresholding by 2 * 0.5
    array([2., 0., 0.])
    """

    weight: Any = 1.0

    def __post_init__(self):
        _settings("L1", weight=self.weight)
        if isinstance(self.weight, list | tuple):
            object.__setattr__(self, "weight", np.asarray(self.weight, dtype=np.float64))

    @precise
    def value(self, x):
        """``R(x)``."""
        return jnp.sum(self.weight * jnp.abs(x))

    def prox(self, v, step):
        """Soft thresholding."""
        return proximal.l1(v, step, self.weight)

    @precise
    def dual_scale(self, u, doubt):
        """``min_j weight_j / |u_j|``, at most one."""
        return _share(self.weight, jnp.abs(u) + doubt)

    def enclosed_value(self, x: Any) -> Enclosure:
        """``R(x)`` with a bound on its error."""
        return (enclose(np.abs(x)) * np.asarray(self.weight, dtype=np.float64)).sum()

    def enclosed_conjugate(self, u: Enclosure) -> Enclosure:
        """Zero where every ``|u_j| <= weight_j``, else infinite."""
        return _feasible(enclose(np.abs(u.value), u.error).upper <= np.asarray(self.weight, dtype=np.float64))

    def nearest_dual(self, u: np.ndarray) -> np.ndarray:
        """Each entry clipped."""
        weight = np.asarray(self.weight, dtype=np.float64)
        return np.clip(u, -weight, weight)


@pytree
@dataclasses.dataclass(frozen=True)
class ElasticNet(Penalty):
    """``R(x) = l1 |x|_1 + l2 |x|^2 / 2`` with ``l2 > 0``; its conjugate, ``|soft(u, l1)|^2 / (2 l2)``, is finite.

    The elastic net of Zou and Hastie (2005).

    >>> ElasticNet(1.0, 1.0).prox(np.array([3.0, -1.0]), 1.0)             # soft(v, l1) / (1 + l2)
    array([1., 0.])
    """

    l1: Any = 1.0
    l2: Any = 1.0

    def __post_init__(self):
        _settings("ElasticNet", l1=self.l1)
        _settings("ElasticNet", positive=True, l2=self.l2)

    @precise
    def value(self, x):
        """``R(x)``."""
        return self.l1 * jnp.sum(jnp.abs(x)) + self.l2 * jnp.vdot(x, x) / 2

    def prox(self, v, step):
        """Soft thresholding, then shrinkage."""
        return proximal.elastic_net(v, step, self.l1, self.l2)

    @precise
    def conjugate_point(self, u):
        """``soft(u, l1) / l2``."""
        return jnp.sign(u) * jnp.maximum(jnp.abs(u) - self.l1, 0.0) / self.l2

    def enclosed_value(self, x: Any) -> Enclosure:
        """``R(x)`` with a bound on its error."""
        return enclose(np.abs(x)).sum() * float(self.l1) + enclose(x).square().sum() * (enclose(float(self.l2)) * 0.5)

    def enclosed_conjugate(self, u: Enclosure) -> Enclosure:
        """``|soft(u, l1)|^2 / (2 l2)``."""
        above = (enclose(np.abs(u.value), u.error) - float(self.l1)).positive_part()
        return above.square().sum() / (enclose(float(self.l2)) * 2.0)


@pytree
@dataclasses.dataclass(frozen=True)
class GroupLasso(Penalty):
    """``R(x) = sum_g weight_g |x_g|_2``, groups given by the number of each coordinate (Yuan and Lin 2006).

    Parameters
    ----------
    labels : array of int (p,)
        The group of each coordinate, from 0 up.
    weight : float or array
        One for all, or one for each group number.

    Examples
    --------
    >>> GroupLasso([0, 0, 1], 1.0).prox([3.0, 4.0, 0.5], 1.0)             # (3, 4) is shortened from 5 to 4
    array([2.4, 3.2, 0. ])
    """

    labels: Any
    weight: Any = 1.0

    def __post_init__(self):
        _settings("GroupLasso", weight=self.weight)
        if not any_tracer(self.labels):
            checks.real_array("labels of GroupLasso", self.labels)
            labels = np.asarray(self.labels)
            if labels.ndim != 1 or labels.dtype.kind not in "iu" or labels.min(initial=0) < 0:
                raise ValueError("labels of GroupLasso must be one whole number, 0 or more, for each coordinate")
            weight = np.asarray(self.weight, dtype=np.float64)
            if weight.ndim and weight.size <= labels.max():
                raise ValueError(f"weight of GroupLasso must have an entry for each group; got {weight.size}")
            object.__setattr__(self, "labels", labels.astype(np.int32))
            object.__setattr__(self, "weight", weight if weight.ndim else float(weight))

    def _norms(self, x):
        squares = jax.ops.segment_sum(x**2, jnp.asarray(self.labels), num_segments=x.shape[-1])
        return jnp.sqrt(squares)

    def _weights(self, like):
        weight = jnp.asarray(self.weight, dtype=like.dtype)
        return (
            jnp.broadcast_to(weight, like.shape)
            if weight.ndim == 0
            else jnp.zeros_like(like).at[: weight.size].set(weight[: like.size])
        )

    @precise
    def value(self, x):
        """``R(x)``."""
        norms = self._norms(x)
        return jnp.sum(self._weights(norms) * norms)

    def prox(self, v, step):
        """Block soft thresholding."""
        return proximal.group(v, step, self.labels, self.weight)

    @precise
    def dual_scale(self, u, doubt):
        """``min_g weight_g / |u_g|``, at most one."""
        norms = self._norms(jnp.abs(u) + doubt)
        return _share(self._weights(norms), norms)

    def _host_norms(self, x: Enclosure) -> tuple[Enclosure, np.ndarray]:
        labels = np.asarray(self.labels)
        count = int(labels.max()) + 1
        squares, terms = x.square(), int(np.bincount(labels).max())
        total = np.bincount(labels, squares.value, count)
        error = np.bincount(labels, squares.error, count) * (1 + terms * UNIT) + terms * UNIT * total
        weight = np.broadcast_to(np.asarray(self.weight, dtype=np.float64), (count,))
        return Enclosure(total, error).sqrt(), weight

    def enclosed_value(self, x: Any) -> Enclosure:
        """``R(x)`` with a bound on its error."""
        norms, weight = self._host_norms(enclose(x))
        return (norms * weight).sum()

    def enclosed_conjugate(self, u: Enclosure) -> Enclosure:
        """Zero where every ``|u_g| <= weight_g``, else infinite."""
        norms, weight = self._host_norms(u)
        return _feasible(norms.upper <= weight)

    def nearest_dual(self, u: np.ndarray) -> np.ndarray:
        """Each group shortened where it is too long, by a little more than rounding can undo."""
        norms, weight = self._host_norms(enclose(u))
        shares = np.where(
            norms.upper <= weight, 1.0, (1 - (u.size + 32) * UNIT) * weight / np.maximum(norms.upper, TINY)
        )
        return u * shares[np.asarray(self.labels)]


@pytree
@dataclasses.dataclass(frozen=True)
class Box(ConvexSet):
    """The set ``lower <= x <= upper``; bounds may be infinite.

    >>> Box(0.0, 1.0).prox(np.array([-0.5, 0.3, 2.0]), 1.0)               # of a set: the nearest point
    array([0. , 0.3, 1. ])
    """

    lower: Any = 0.0
    upper: Any = 1.0

    def __post_init__(self):
        if any_tracer(self.lower, self.upper):
            return
        ends = {"lower of Box": self.lower, "upper of Box": self.upper}
        lower, upper = (checks.real_array(name, end, finite=False) for name, end in ends.items())
        if not np.all(lower <= upper):
            raise ValueError(f"lower of Box must not be above upper; got {self.lower} and {self.upper}")
        if np.any(lower == np.inf) or np.any(upper == -np.inf):
            raise ValueError(f"lower of Box must be below infinity and upper above -infinity; got {lower} and {upper}")

    def prox(self, v, step):
        """The nearest point."""
        return projections.box(v, self.lower, self.upper)

    @precise
    def conjugate_point(self, u):
        """The corner in the direction ``u``."""
        nearest = jnp.clip(jnp.zeros_like(u), self.lower, self.upper)
        return jnp.where(u > 0, self.upper, jnp.where(u < 0, self.lower, nearest))

    @precise
    def dual_scale(self, u, doubt):
        """One where the corner is finite; zero where ``u`` points to infinity."""
        open_ = jnp.isinf(self.upper) & (u + doubt > 0) | jnp.isinf(self.lower) & (u - doubt < 0)
        return jnp.where(jnp.any(open_), 0.0, 1.0)

    def _ends(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = (np.asarray(end, dtype=np.float64) for end in (self.lower, self.upper))
        return np.broadcast_to(lower, u.shape), np.broadcast_to(upper, u.shape)

    def enclosed_conjugate(self, u: Enclosure) -> Enclosure:
        """``sum_j max(lower_j u_j, upper_j u_j)``; infinite where ``u`` may point to infinity."""
        lower, upper = self._ends(u.value)
        if np.any((u.value + u.error > 0) & np.isinf(upper) | (u.value - u.error < 0) & np.isinf(lower)):
            return enclose(np.inf)
        low, high = np.where(np.isinf(lower), 0.0, lower), np.where(np.isinf(upper), 0.0, upper)
        end = np.where(u.value > 0, high, low)
        exact = enclose(u.value) * end
        return exact.widened(u.error * np.maximum(np.abs(low), np.abs(high))).sum()

    def nearest_dual(self, u: np.ndarray) -> np.ndarray:
        """Zero where ``u`` points to infinity."""
        lower, upper = self._ends(u)
        return np.where((u > 0) & np.isinf(upper) | (u < 0) & np.isinf(lower), 0.0, u)

    def reach(self, x: np.ndarray) -> float:
        """The distance to the farthest corner."""
        lower, upper = self._ends(x)
        return float(np.linalg.norm(np.maximum(np.abs(x - lower), np.abs(upper - x)))) * (1 + (x.size + 8) * UNIT)


def NonNegative() -> Box:
    """The set ``x >= 0``.

    Unbounded, so that without strong convexity the dual bound says little: if you know that no solution exceeds some
    ``upper``, give `Box` that.

    >>> NonNegative().prox([-1.0, 2.0], 1.0)
    array([0., 2.])
    """
    return Box(0.0, np.inf)


@pytree
@dataclasses.dataclass(frozen=True)
class _Ball(ConvexSet):
    radius: Any = 1.0

    def __post_init__(self):
        _settings(type(self).__name__, positive=True, radius=self.radius)

    def reach(self, x: np.ndarray) -> float:
        """At most the norm of ``x`` plus the radius."""
        return (float(np.linalg.norm(x)) + float(self.radius)) * (1 + (x.size + 8) * UNIT)


@pytree
@dataclasses.dataclass(frozen=True)
class Simplex(_Ball):
    """The set ``{x >= 0, sum x = radius}``.

    The projection of Held, Wolfe and Crowder (1974).

    >>> Simplex().prox(np.array([0.9, 0.3, -1.0]), 1.0)
    array([0.8, 0.2, 0. ])
    """

    def prox(self, v, step):
        """The nearest point."""
        return projections.simplex(v, self.radius)

    @precise
    def conjugate_point(self, u):
        """The vertex in the direction ``u``."""
        return jnp.zeros_like(u).at[jnp.argmax(u)].set(self.radius)

    def enclosed_conjugate(self, u: Enclosure) -> Enclosure:
        """``radius max_j u_j``."""
        return enclose(np.max(u.value), np.max(u.error)) * float(self.radius)


@pytree
@dataclasses.dataclass(frozen=True)
class L1Ball(_Ball):
    """The set ``|x|_1 <= radius``.

    The projection of Duchi, Shalev-Shwartz, Singer and Chandra (2008).

    >>> L1Ball(1.0).prox(np.array([2.0, 0.5]), 1.0)
    array([1., 0.])
    """

    def prox(self, v, step):
        """The nearest point."""
        return projections.l1_ball(v, self.radius)

    @precise
    def conjugate_point(self, u):
        """The vertex in the direction ``u``."""
        largest = jnp.argmax(jnp.abs(u))
        return jnp.zeros_like(u).at[largest].set(self.radius * jnp.sign(u[largest]))

    def enclosed_conjugate(self, u: Enclosure) -> Enclosure:
        """``radius max_j |u_j|``."""
        return enclose(np.max(np.abs(u.value)), np.max(u.error)) * float(self.radius)


@pytree
@dataclasses.dataclass(frozen=True)
class L2Ball(_Ball):
    """The set ``|x|_2 <= radius``.

    >>> L2Ball(1.0).prox(np.array([3.0, 4.0]), 1.0)
    array([0.6, 0.8])
    """

    def prox(self, v, step):
        """The nearest point."""
        return projections.l2_ball(v, self.radius)

    @precise
    def conjugate_point(self, u):
        """``radius u / |u|``."""
        norm = jnp.sqrt(jnp.vdot(u, u))
        return jnp.where(norm > 0, self.radius * u / jnp.where(norm > 0, norm, 1.0), 0.0)

    def enclosed_conjugate(self, u: Enclosure) -> Enclosure:
        """``radius |u|``."""
        return u.square().sum().sqrt() * float(self.radius)


PENALTIES = (NoPenalty, L1, ElasticNet, GroupLasso, Box, Simplex, L1Ball, L2Ball)
