"""Sets with a structure of their own: the bounds of an l1 penalty, the simplex, and intersections."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.optim.interior_point.constraints import Constraints, constraint_type, joined
from cumulant.optim.interior_point.linear_algebra import diagonal_plus_rank_one, spd_solve
from cumulant.optim.problems.base import is_concrete
from cumulant.optim.problems.enclosures import Enclosure, enclose


@constraint_type
class AbsoluteBounds(Constraints):
    """``|w_j| <= u_j`` for ``x = (w, u)``: ``c = (-w - u, w - u)``, the bounding variables of an l1 penalty.

    ``J^T S J`` has two-by-two blocks, so that a step with diagonal curvature costs a few divisions for each
    coordinate; with a matrix for the curvature of ``w``, ``u`` is eliminated and one factorisation of size p is left.

    Carbonetto (2009, section 2.5).

    >>> AbsoluteBounds().value([0.5, -1.0, 2.0, 3.0])          # w = (0.5, -1), u = (2, 3)
    array([-2.5, -2. , -1.5, -4. ])
    """

    affine: ClassVar[bool] = True
    convexity: ClassVar[str] = "by construction"

    def value(self, x):
        """``(-w - u, w - u)``."""
        w, u = jnp.split(x, 2)
        return jnp.concatenate([-w - u, w - u])

    def jacobian(self, x):
        """``[[-I, -I], [I, -I]]``."""
        one = jnp.eye(x.size // 2, dtype=x.dtype)
        return jnp.block([[-one, -one], [one, -one]])

    def jacobian_apply(self, x, v):
        """``(-dw - du, dw - du)``."""
        return self.value(v)

    def jacobian_transpose(self, x, u):
        """``(u_2 - u_1, -u_1 - u_2)``."""
        first, second = jnp.split(u, 2)
        return jnp.concatenate([second - first, -first - second])

    def solve(self, x, z, curvature, weights, right):
        """By two-by-two blocks, or by eliminating ``u`` where the curvature of ``w`` is a matrix."""
        p = x.size // 2
        low, high = jnp.split(weights, 2)
        total, tilt = low + high, low - high
        first, second = jnp.split(right, 2)
        if jnp.ndim(curvature) < 2:
            whole = jnp.broadcast_to(curvature, x.shape)
            a, d = whole[:p] + total, whole[p:] + total
            # a d - tilt^2 in a form that does not cancel: total^2 - tilt^2 = 4 low high.
            det = whole[:p] * whole[p:] + (whole[:p] + whole[p:]) * total + 4 * low * high
            return jnp.concatenate([(d * first - tilt * second) / det, (a * second - tilt * first) / det])
        if curvature.shape == (p, p):
            schur = curvature + jnp.diag(4 * low * high / total)
            dw = spd_solve(schur, first - tilt / total * second)
            return jnp.concatenate([dw, (second - tilt * dw) / total])
        return super().solve(x, z, curvature, weights, right)

    def settle(self, x):
        """``u`` put above ``|w|`` where it is not."""
        w, u = jnp.split(x, 2)
        size = jnp.abs(w)
        beside = jnp.maximum(jnp.nextafter(size, jnp.asarray(jnp.inf, x.dtype)), size + jnp.finfo(x.dtype).tiny)
        return jnp.concatenate([w, jnp.maximum(u, beside)])

    def enclosed_value(self, x):
        """``(-w - u, w - u)``, each rounded once."""
        w, u = np.split(x, 2)
        return joined([-enclose(w) - u, enclose(w) - u])

    def enclosed_pull(self, x, z):
        """``(z_2 - z_1, -z_1 - z_2)``, each rounded once."""
        first, second = np.split(z, 2)
        return joined([enclose(second) - first, -enclose(first) - second])

    def lift(self, x, slack, least):
        """``u`` raised."""
        low, high = jnp.split(slack, 2)
        more = jnp.maximum(least - jnp.minimum(low, high), 0.0)
        return x + jnp.concatenate([jnp.zeros_like(more), more]), slack + jnp.concatenate([more, more])

    def project(self, x):
        """``w`` and ``u`` at their mean size where ``|w| > u > -|w|``, zero where ``u <= -|w|``."""
        w, u = jnp.split(x, 2)
        size = jnp.maximum((jnp.abs(w) + u) / 2, 0.0)
        outside = jnp.abs(w) > u
        return jnp.concatenate([jnp.where(outside, jnp.sign(w) * size, w), jnp.where(outside, size, u)])


@constraint_type
class SimplexConstraints(Constraints):
    """``x >= 0``, ``sum x <= total``: the simplex without its last coordinate, which is ``total - sum x``.

    ``c = (-x, sum x - total)``. With diagonal curvature a step is a diagonal plus a matrix of rank one.

    >>> SimplexConstraints().value([0.25, 0.25]), SimplexConstraints().project([1.0, 1.0])
    (array([-0.25, -0.25, -0.5 ]), array([0.5, 0.5]))
    """

    total: Any = 1.0

    affine: ClassVar[bool] = True
    convexity: ClassVar[str] = "by construction"

    def __post_init__(self):
        if is_concrete(self.total) and not (np.ndim(self.total) == 0 and 0 < float(self.total) < np.inf):
            raise ValueError(f"total of SimplexConstraints must be positive and finite; got {self.total}")

    def value(self, x):
        """``(-x, sum x - total)``."""
        return jnp.append(-x, jnp.sum(x) - self.total)

    def value_rounding(self, x):
        """In proportion to `total` for the last constraint; the others are not rounded."""
        last = (x.size + 4) * jnp.finfo(x.dtype).eps * jnp.asarray(self.total, x.dtype)
        return jnp.append(jnp.zeros_like(x), last)

    def settle(self, x):
        """Coordinates made positive, and all of them scaled down where their sum is not below `total`."""
        x = jnp.maximum(x, jnp.finfo(x.dtype).tiny)
        most = self.total * (1 - 2 * (x.size + 4) * jnp.finfo(x.dtype).eps)
        return jnp.where(jnp.sum(x) < most, x, jnp.maximum(x * (most / jnp.sum(x)), jnp.finfo(x.dtype).tiny))

    def enclosed_value(self, x):
        """``(-x, sum x - total)`` with a bound on its error."""
        last = enclose(x).sum() - float(self.total)
        return joined([enclose(-x), Enclosure(last.value[None], last.error[None])])

    def enclosed_pull(self, x, z):
        """``z_last - z``, each rounded once."""
        return enclose(z[-1]) - z[:-1]

    def enclosed_reach(self, x, slope):
        """The maximum is at a corner."""
        lowest = enclose(np.min(slope.value), np.max(slope.error)) * float(self.total)
        return (slope * x).sum() + (-lowest).positive_part()

    def jacobian(self, x):
        """``-I`` above a row of ones."""
        return jnp.vstack([-jnp.eye(x.size, dtype=x.dtype), jnp.ones((1, x.size), x.dtype)])

    def jacobian_apply(self, x, v):
        """``(-v, sum v)``."""
        return jnp.append(-v, jnp.sum(v))

    def jacobian_transpose(self, x, u):
        """``u_last - u``."""
        return u[-1] - u[:-1]

    def solve(self, x, z, curvature, weights, right):
        """Sherman and Morrison's formula where the curvature is a number or a diagonal; else Cholesky."""
        if jnp.ndim(curvature) < 2:
            return diagonal_plus_rank_one(curvature + weights[:-1], weights[-1], right)
        return super().solve(x, z, curvature, weights, right)

    def lift(self, x, slack, least):
        """Each coordinate raised; all of them scaled down where too little is left for the last one."""
        x = x + jnp.maximum(least - slack[:-1], 0.0)
        rest = slack[-1] - jnp.sum(jnp.maximum(least - slack[:-1], 0.0))
        x = jnp.where(rest < least, x * ((self.total - least) / (self.total - rest)), x)
        return x, jnp.append(x, jnp.maximum(rest, least))

    def project(self, x):
        """The nearest point: clipped at zero, or on the face where the sum is `total`."""
        clipped = jnp.maximum(x, 0.0)
        ordered = jnp.sort(x)[::-1]
        excess = jnp.cumsum(ordered) - self.total
        count = jnp.sum(ordered - excess / jnp.arange(1, x.size + 1) > 0)
        face = jnp.maximum(x - excess[count - 1] / count, 0.0)
        return jnp.where(jnp.sum(clipped) <= self.total, clipped, face)

    def multipliers(self, x, gradient):
        """``z_last = max(0, -min g)`` and ``z = g + z_last``: they cancel the gradient exactly."""
        last = jnp.maximum(-jnp.min(gradient), 0.0)
        return jnp.append(gradient + last, last)

    def reach(self, x, slope):
        """The maximum is at a corner."""
        return jnp.vdot(slope, x) - jnp.minimum(self.total * jnp.min(slope), 0.0)

    def diameter(self, n):
        """Between two corners."""
        return float(np.sqrt(2.0) * np.asarray(self.total))


@constraint_type
class Intersection(Constraints):
    """All the constraints of several sets, in their order.

    >>> from cumulant.optim.interior_point import Bounds, LinearConstraints
    >>> both = Intersection((Bounds(0.0), LinearConstraints([[1.0, 1.0]], [1.0])))
    >>> both.value([0.25, 0.25])
    array([-0.25, -0.25, -0.5 ])
    """

    sets: tuple

    def __post_init__(self):
        if not isinstance(self.sets, tuple | list) or not self.sets:
            raise ValueError("sets of Intersection must be a tuple of constraints with at least one entry")
        object.__setattr__(self, "sets", tuple(self.sets))

    @property
    def affine(self) -> bool:
        """Whether every set is given by affine constraints."""
        return all(each.affine for each in self.sets)

    @property
    def convexity(self) -> str:
        """How it is known that every constraint is convex: as for the set of which least is known."""
        return min((each.convexity for each in self.sets), key=("assumed", "checked", "by construction").index)

    def value_rounding(self, x):
        """One after the other."""
        shapes = [jax.eval_shape(each.value, x).shape for each in self.sets]
        return jnp.concatenate(
            [jnp.broadcast_to(each.value_rounding(x), shape) for each, shape in zip(self.sets, shapes, strict=True)]
        )

    def settle(self, x):
        """By each set in turn."""
        for each in self.sets:
            x = each.settle(x)
        return x

    def enclosed_value(self, x):
        """One after the other."""
        return joined([each.enclosed_value(x) for each in self.sets])

    def _shares(self, x, u):
        """Each set with its part of a vector over all constraints."""
        ends = np.cumsum([jax.eval_shape(each.value, x).shape[0] for each in self.sets])
        return zip(self.sets, (np if isinstance(u, np.ndarray) else jnp).split(u, ends[:-1]), strict=True)

    def enclosed_pull(self, x, z):
        """Their sum."""
        total = enclose(np.zeros_like(x))
        for each, share in self._shares(x, z):
            total = total + each.enclosed_pull(x, share)
        return total

    def negative_curvature(self, x, z):
        """Their sum."""
        return sum(each.negative_curvature(x, share) for each, share in self._shares(x, z))

    def enclosed_reach(self, x, slope):
        """The least of theirs, each of which is an upper bound."""
        return min((each.enclosed_reach(x, slope) for each in self.sets), key=lambda reach: float(reach.upper))

    def value(self, x):
        """One after the other."""
        return jnp.concatenate([each.value(x) for each in self.sets])

    def jacobian(self, x):
        """One below the other."""
        return jnp.concatenate([each.jacobian(x) for each in self.sets])

    def jacobian_apply(self, x, v):
        """One after the other."""
        return jnp.concatenate([each.jacobian_apply(x, v) for each in self.sets])

    def lagrangian_hessian(self, x, z):
        """Their sum."""
        return sum((each.lagrangian_hessian(x, share) for each, share in self._shares(x, z)), jnp.zeros((), x.dtype))

    def max_step(self, x, slack, direction, ceiling, fraction=0.995):
        """The shortest of theirs."""
        step = ceiling
        for each, share in self._shares(x, slack):
            step = each.max_step(x, share, direction, step, fraction)
        return step if self.affine else self._backtrack(x, direction, step)

    def reach(self, x, slope):
        """The least of theirs, each of which is an upper bound."""
        return jnp.min(jnp.stack([each.reach(x, slope) for each in self.sets]))

    def diameter(self, n):
        """The least of theirs."""
        return min(each.diameter(n) for each in self.sets)
