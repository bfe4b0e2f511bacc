"""How far a point can be from the minimum of ``F = f + R``, from the point and the data alone.

Three bounds, each for the problems it fits; the smallest is given:

* *strong convexity*: ``f(z) >= f(x) + <g, z - x> + mu/2 |z - x|^2`` for all ``z``, so ``F(x) - F* <= R(x) - min_z [<g,
  z - x> + mu/2 |z - x|^2 + R(z)]``, attained at ``z = prox(x - g / mu, 1 / mu)``. Without a penalty ``|g|^2 / (2 mu)``
  (Polyak 1963), and for ridge regression the duality gap;
* *linearisation*: the same with ``mu = 0``, ``<g, x> + R(x) + R*(-g)``, finite where ``R`` grows faster than any linear
  function or lives on a bounded set (Frank and Wolfe 1956);
* *duality*: where ``f(x) = F(A x)``, weak duality ``F* >= -F*(theta) - R*(-A^T theta)`` (Fenchel-Rockafellar) at
  ``theta = c grad F(A x)``, with the largest ``c <= 1`` that makes it feasible (El Ghaoui, Viallon and Rabbani 2012).
"""

import contextlib
import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.certificates import Assumption, Certificate, assume, check, issuer
from cumulant.errors import CertificateError
from cumulant.optim.certify.self_concordance import certify_self_concordance
from cumulant.optim.certify.strong_convexity import (
    accuracy,
    certain_strong_convexity,
    certify_strong_convexity,
    convexity,
    enclosed_gradient,
    refuse_estimates,
)
from cumulant.optim.problems.base import point, widen
from cumulant.optim.problems.composite import parts
from cumulant.optim.problems.enclosures import UNIT, Enclosure, dot, enclose
from cumulant.optim.problems.margin_problems import Logistic, MarginLoss
from cumulant.optim.problems.penalties import NoPenalty, Penalty
from cumulant.optim.problems.proximal_map import is_known
from cumulant.optim.problems.row_sums import RowSums
from cumulant.optim.protocol import Problem

__all__ = ["Knowledge", "certify_optimality", "knowledge", "running_bound"]


_FEW = 1000  # coordinates up to which the Hessian is looked at besides the gradient


class Knowledge(NamedTuple):
    """What a solver keeps of the constants of a problem, to compute bounds as it goes."""

    strong_convexity: Any
    convex: Any


def knowledge(problem: Any) -> Knowledge:
    """The constants, looked up once: inside a compiled program they cannot be."""
    return Knowledge(
        jnp.asarray(certain_strong_convexity(parts(problem)[0]), dtype=float), jnp.asarray(bool(problem.convex))
    )


def _has_dual(smooth: Any) -> bool:
    return isinstance(smooth, RowSums)


def _bounds(problem, x, mu, convex):
    """``F(x)`` and the three bounds, in JAX and without their rounding; infinite where one does not apply."""
    smooth, penalty = parts(problem)
    value, g = smooth.value_and_gradient(x)
    here = penalty.value(x)
    safe = jnp.where(mu > 0, mu, 1.0)
    z = penalty.prox(x - g / safe, 1 / safe)
    move = z - x
    strong = here - penalty.value(z) - jnp.vdot(g, move) - mu * jnp.vdot(move, move) / 2
    if isinstance(penalty, NoPenalty):
        strong = jnp.vdot(g, g) / (2 * safe)
    strong = jnp.where(mu > 0, jnp.maximum(strong, 0.0), jnp.inf)
    scale = penalty.dual_scale(-g, jnp.zeros_like(g))
    corner = penalty.conjugate_point(-scale * g)
    conjugate = -scale * jnp.vdot(g, corner) - penalty.value(corner)
    linear = jnp.where(convex & (scale == 1), jnp.vdot(g, x) + here + conjugate, jnp.inf)
    dual = jnp.inf
    if _has_dual(smooth):
        theta = scale * smooth.slopes(x)
        dual = jnp.where(smooth.l2 == 0, value + here + smooth.conjugate(theta) + conjugate, jnp.inf)
    return value + here, jnp.stack([strong, jnp.maximum(linear, 0.0), jnp.maximum(dual, 0.0)])


def running_bound(problem: Any, x: Any, known: Knowledge) -> tuple[Any, Any]:
    """``F(x)`` and the smallest of the bounds, inside a compiled program; rounding is not allowed for."""
    mu = known.strong_convexity.astype(x.dtype)
    value, bounds = _bounds(problem, x, mu, known.convex)
    return value, jnp.where(jnp.isnan(bounds), jnp.inf, bounds).min()


@dataclasses.dataclass(frozen=True)
class _OwnPenalty(Penalty):
    """A penalty of the user's, whose word is taken for its value, its proximal map and its conjugate."""

    penalty: Any

    def enclosed_value(self, x):
        return self._rounded(float(self.penalty.value(x)))

    def enclosed_conjugate(self, u):
        if float(self.penalty.dual_scale(u.value, u.error)) < 1:
            return enclose(np.inf)
        z = np.asarray(self.penalty.conjugate_point(u.value))
        return dot(u, z) - self._rounded(float(self.penalty.value(z)))

    def nearest_dual(self, u):
        return float(self.penalty.dual_scale(u, np.zeros_like(u))) * u

    @staticmethod
    def _rounded(value):
        return enclose(value, 64 * UNIT * abs(value))


class _Bound(NamedTuple):
    """A bound on the gap, the theorem it comes from, and what that needs."""

    gap: Enclosure
    theorem: str
    assumptions: tuple[Assumption, ...]


def _strong(smooth: Any, penalty: Any, prox: Any, x: np.ndarray, g: Enclosure) -> _Bound | None:
    """``max_z R(x) - R(z) - <g, z - x> - mu/2 |z - x|^2``, from above.

    With any ``z`` and ``d = -g - mu (z - x)``, split into ``d = u + e`` with ``R*(u)`` finite, it is at most ``R(x) -
    <g, z - x> - mu/2 |z - x|^2 + R*(u) - <u, z> + |e|^2 / (2 mu)``: no exact proximal point is needed.
    """
    mu = certain_strong_convexity(smooth)
    if not mu > 0:
        return None
    if not 1 / mu < np.inf:
        return None
    step = x - g.value / mu
    z = np.asarray(prox(step, 1 / mu) if np.all(np.isfinite(step)) else step, dtype=np.float64)
    if not np.all(np.isfinite(z)):
        return None
    move = enclose(z) - x
    d = -g - move * mu
    u = penalty.nearest_dual(d.value)
    rest = (d - u).square().sum() / (enclose(mu) * 2.0)
    gap = penalty.enclosed_value(x) - (g * move).sum() - move.square().sum() * (enclose(mu) * 0.5)
    gap = gap + penalty.enclosed_conjugate(enclose(u)) - (enclose(u) * z).sum() + rest
    strong = Assumption("the smooth part is strongly convex", smooth.constants_are, f"mu = {mu:.6g}")
    return _Bound(gap, "strong convexity at the proximal point, Polyak 1963", (strong,))


def _linear(smooth: Any, penalty: Any, x: np.ndarray, g: Enclosure) -> _Bound | None:
    """``<g, x> + R(x) + R*(-g)``."""
    if not smooth.convex:
        return None
    conjugate = penalty.enclosed_conjugate(-g)
    if not np.isfinite(conjugate.value):
        return None
    gap = penalty.enclosed_value(x) + (g * x).sum() + conjugate
    convex, paid = convexity(smooth, "the smooth part is convex")
    if paid > 0:
        reach = penalty.reach(x)
        gap = gap + (enclose(reach).square() * (paid / 2) if np.isfinite(reach) else enclose(np.inf))
    return _Bound(gap, "linearisation: <g, x> + R(x) + R*(-g), Frank and Wolfe 1956", (convex,))


def _dual(smooth: Any, penalty: Any, scale_of: Any, x: np.ndarray) -> _Bound | None:
    """``F(A x) + R(x) + F*(theta) + R*(-A^T theta)`` at the slopes of ``x``, scaled until they are feasible."""
    if not _has_dual(smooth) or float(smooth.l2) != 0:
        return None
    slopes = smooth.dual_slopes(smooth.weight * smooth.enclosed_slopes(x).value)
    conjugate, pulled = smooth.enclosed_dual(slopes)
    feasible = penalty.enclosed_conjugate(-pulled)
    scale = 1.0
    if not np.isfinite(feasible.value):
        # Short of the largest scale by what the rounding of the scaled point can be.
        scale = float(scale_of(-pulled.value, 2 * pulled.error)) * (1 - 64 * UNIT)
        conjugate, pulled = smooth.enclosed_dual(smooth.shrunk_slopes(slopes, scale))
        feasible = penalty.enclosed_conjugate(-pulled)
    gap = smooth.enclosed_loss(x) + penalty.enclosed_value(x) + conjugate + feasible
    assumptions = [
        convexity(smooth, "the smooth part is convex")[0],
        check(True, "the dual point is feasible, whatever the rounding", f"scaled by {scale:.6g}"),
    ]
    if smooth.constants_are != "checked":
        assumptions.append(assume("the conjugate is that of the loss", "the loss is yours"))
    return _Bound(gap, "Fenchel duality gap at the scaled residual, El Ghaoui et al. 2012", tuple(assumptions))


def _in_set(penalty: Any, x: np.ndarray) -> Assumption:
    """That ``x`` is in the set, up to the rounding of its own precision. The bounds hold for it as it is."""
    wide = x.astype(np.float64)
    nearest = np.asarray(penalty.feasible(wide))
    miss = float(np.max(np.abs(wide - nearest), initial=0.0))
    eps = float(np.finfo(x.dtype if x.dtype.kind == "f" else np.float64).eps)
    size = max(float(np.max(np.abs(wide), initial=0.0)), float(np.max(np.abs(nearest))))
    return check(miss <= 64 * eps * x.size * size, "x is in the set, up to rounding", f"off by {miss:.2g}")


@issuer
def certify_optimality(problem: Any, x: Any) -> Certificate:
    """The smallest bound on ``F(x) - F*`` that the problem allows.

    Refused where none of them says anything, naming what is missing: for logistic regression without a penalty, for
    instance, a minimiser. The bounds speak of ``x`` as it is, also where it is off a set by its own rounding. (Strong
    convexity: Polyak 1963; duality: Rockafellar 1970; the Newton decrement: Bach 2010.)

    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[1.0, 0.0], [0.0, 10.0]], [0.0, 0.0])
    >>> certify_optimality(problem, [1.0, 0.0]).bound                    # f(x) - f* = 1/2
    0.5
    """
    checks.instance("problem", problem, Problem, "an optim.Problem")
    check(np.all(np.isfinite(point(problem, x))), "x is finite")
    given_x = np.asarray(x)
    if isinstance(parts(problem)[1], NoPenalty):
        return _certify_smooth(problem, x)
    refuse_estimates(problem)
    smooth, given = parts(widen(problem))
    own = not is_known(given)
    penalty = _OwnPenalty(given) if own else given
    grounds = [_in_set(given, given_x)] if given.is_set else []
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        g = enclosed_gradient(smooth, x)
        attempts = (
            _strong(smooth, penalty, given.prox, x, g),
            _linear(smooth, penalty, x, g),
            _dual(smooth, penalty, given.dual_scale, x),
        )
        found = [each for each in attempts if each is not None and np.isfinite(each.gap.upper)]
    if not found:
        mu = certain_strong_convexity(smooth)
        raise CertificateError(
            f"no certificate: it was not shown that the objective is strongly convex (mu = {mu:.6g}), and {given} "
            "gives no finite dual bound here",
            assumption="the objective is strongly convex",
        )
    best = min(found, key=lambda each: float(each.gap.upper))
    if own:
        grounds.append(assume("value, proximal map and conjugate are those of one penalty", "the penalty is yours"))
    grounds.append(accuracy(smooth, "the bound is computed from the data in float64"))
    bound = max(float(best.gap.value), 0.0)
    return Certificate(
        "f(x) - f*",
        bound,
        best.theorem,
        (*best.assumptions, *grounds),
        slack=max(float(best.gap.upper) - bound, 0.0),
    )


def _certify_smooth(problem: Any, x: Any) -> Certificate:
    concordant = isinstance(problem, Logistic | MarginLoss) and problem.loss.self_concordance is not None
    if concordant and not float(problem.strong_convexity) > 0:
        return certify_self_concordance(problem, x)
    found = [certify_strong_convexity(problem, x)]
    if concordant and np.size(x) <= _FEW:
        with contextlib.suppress(CertificateError):  # the bound from strong convexity stands
            found.append(certify_self_concordance(problem, x))
    return min(found, key=lambda certificate: certificate.upper)
