"""The primal and the dual of a sum of smooth losses with an l2 penalty, and the certificate they make together.

``P(w) = weight sum_i phi_i(<a_i, w>) + l2 |w|^2 / 2`` has the dual ``D(u) = -weight sum_i phi_i*(u_i) - l2 |w(u)|^2 /
2``, ``w(u) = -(weight / l2) sum_i a_i u_i``: a slope ``u_i`` for each row, in the domain of ``phi_i*``. For every pair
``P(w) >= D(u)``; at the optimum ``u_i = phi_i'(<a_i, w>)``. Rows may have several scores, and then ``u_i`` is a vector.

`LeastSquares`, `Logistic`, `MarginLoss` and `MultinomialLogistic` have such a dual as they are; `DualProblem` is for a
loss of your own, and for other strongly convex penalties ``l2 r(w)``: then ``D(u) = -weight sum_i phi_i*(u_i) - l2
r*(v(u))`` with ``v(u) = -(weight / l2) sum_i a_i u_i``, and ``w(u) = grad r*(v(u))``.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.certificates import Certificate, assume, by_construction, check, issuer
from cumulant.optim.problems.base import array, is_concrete, matrix, not_negative, problem_type, static, widen
from cumulant.optim.problems.enclosures import UNIT, Enclosure, enclose
from cumulant.optim.problems.margin_problems import MarginLoss
from cumulant.optim.problems.penalties import ElasticNet
from cumulant.optim.problems.row_sums import RowSums, squares_are_finite
from cumulant.precision import precise


@problem_type
class DualProblem(RowSums):
    """``P(w) = (1/n) sum_i phi(<a_i, w>; target_i) + l2 |w|^2 / 2`` for a smooth convex loss of your own.

    Or ``+ l2 r(w)`` for a penalty ``r`` that is strongly convex with constant one (Shalev-Shwartz and Zhang 2014).

    Parameters
    ----------
    A : array or SciPy sparse matrix (n, p)
    targets : array (n, ...)
        What the loss of each row is given besides its score.
    loss : object
        With ``value(score, target)`` and ``conjugate(slope, target) = max_s slope * s - value(s, target)``, JAX
        functions of one row (infinite off the domain), and ``smoothness``, a Lipschitz constant of the slope in the
        Euclidean norm. It must be hashable: a frozen dataclass is.
    l2 : float
        Positive.
    outputs : int, optional
        Scores of a row; ``w`` then has the shape ``(p, outputs)``. One score, and ``w`` a vector, by default.
    reduction : str
        ``"mean"``, or ``"sum"`` without the ``1/n``.
    regulariser : object, optional
        The ``r`` in place of ``|w|^2 / 2``, with `value(w)` and ``conjugate_point(v) = grad r*(v)``, both in JAX, and
        hashable. It must be strongly convex with constant one: `ElasticNet(l1, 1.0)` is, and makes the penalty
        ``l2 (l1 |w|_1 + |w|^2 / 2)``.

    Examples
    --------
    >>> from cumulant import optim
    >>> @dataclass(frozen=True)
    ... class PseudoHuber:
    ...     smoothness = 1.0
    ...     def value(self, score, target):
    ...         return jnp.sqrt(1 + (score - target) ** 2) - 1
    ...     def conjugate(self, slope, target):
    ...         return slope * target + 1 - jnp.sqrt(jnp.maximum(1 - slope**2, 0.0))
    >>> A, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 2.0, 9.0]
    >>> result = optim.run(optim.DualCoordinateAscent(), DualProblem(A, y, PseudoHuber(), 0.1), [0.0, 0.0], rng=0)
    >>> result.status, result.x.round(3)
    ('converged', array([1.586, 2.303]))
    >>> sparse = DualProblem(A, y, PseudoHuber(), 0.1, regulariser=optim.ElasticNet(5.0, 1.0))
    >>> round(float(sparse.value([0.0, 2.0])), 3)        # (0.414 + 0 + 6.071) / 3 + 0.1 (5 * 2 + 2)
    3.362
    """

    A: Any
    targets: Any
    loss: Any = static()
    l2: Any = 1.0
    outputs: int | None = static(None)
    reduction: str = static("mean")
    regulariser: Any = static(None)

    def __post_init__(self):
        if self.reduction not in ("mean", "sum"):
            raise ValueError(f"reduction must be 'mean' or 'sum'; got {self.reduction!r}")
        for need in ("value", "conjugate", "smoothness"):
            if not hasattr(self.loss, need):
                raise TypeError(f"loss must have value, conjugate and smoothness; {self.loss!r} has no {need}")
        _check_regulariser(self.regulariser)
        if not is_concrete(self.A, self.targets, self.l2):
            return
        A, targets = matrix(self.A, "A"), array(self.targets, "targets", np.ndim(self.targets))
        if np.ndim(targets) == 0 or A.shape[0] != targets.shape[0]:
            raise ValueError(f"A must have one row for each target; got shapes {A.shape} and {np.shape(targets)}")
        not_negative(self.l2, "l2")
        not_negative(self.loss.smoothness, "smoothness of the loss")
        squares_are_finite(A)
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "targets", targets)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``w``."""
        return (self.A.shape[1],) if self.outputs is None else (self.A.shape[1], self.outputs)

    @property
    def largest_curvature(self) -> float:
        """The smoothness of the loss."""
        return float(self.loss.smoothness)

    @property
    def smoothness(self) -> Any:
        """``L = sigma_max^2 smoothness(phi) weight + l2``; not known for another regulariser."""
        return super().smoothness if self.regulariser is None else None

    @property
    def _on_host(self) -> bool:
        return False  # the loss is yours, in JAX

    def _losses(self, scores):
        return jnp.sum(jax.vmap(self.loss.value)(scores, self.targets))

    @precise
    def conjugate(self, theta):
        """``F*(theta) = weight sum phi*(theta_i / weight)`` of the loss ``F`` of the scores."""
        return self.weight * jnp.sum(jax.vmap(self.loss.conjugate)(theta / self.weight, self.targets))

    def enclosed_slopes(self, x: Any) -> Enclosure:
        """The slopes with an allowance for their rounding."""
        x = enclose(x)
        slopes = np.asarray(self.slopes(x.value)) / self.weight
        moved = self.largest_curvature * np.linalg.norm(self.enclosed_scores(x).error.reshape(len(slopes), -1), axis=1)
        return enclose(slopes, 64 * UNIT * np.abs(slopes) + moved.reshape(-1, *[1] * (slopes.ndim - 1)))

    def enclosed_gradient(self, x: Any) -> Enclosure:
        """The gradient with an allowance for its rounding in float64; the loss is yours, so this is not a theorem."""
        x = enclose(x)
        gradient, A, size = np.asarray(self.gradient(x.value)), abs(self.host_A), np.abs(x.value)
        largest = self.weight * self.largest_curvature * float(self.singular_values[0]) ** 2 + float(self.l2)
        sums = (sum(A.shape) + 64) * UNIT * (A.T @ np.abs(np.asarray(self.slopes(x.value))) + largest * size)
        return enclose(gradient, sums + largest * float(np.linalg.norm(x.error)))

    def enclosed_loss(self, x: Any) -> Enclosure:
        """The sum of the losses with an allowance for its rounding."""
        x = enclose(x)
        scores, slopes = self.enclosed_scores(x), np.abs(np.asarray(self.slopes(x.value))) / self.weight
        each = np.asarray(_rows_of(self.loss.value, scores.value, self.targets))
        moved = np.sum(
            (slopes + float(self.loss.smoothness) * scores.error) * scores.error, axis=tuple(range(1, slopes.ndim))
        )
        return self.enclosed_weight * enclose(each, 64 * UNIT * np.abs(each) + moved).sum()

    def enclosed_dual(self, slopes: np.ndarray) -> tuple[Enclosure, Enclosure]:
        """The conjugate of the losses with an allowance for its rounding, and ``weight A^T slopes``."""
        each = np.asarray(_rows_of(self.loss.conjugate, slopes, self.targets))
        size = np.abs(each) + np.sum(np.abs(slopes), axis=tuple(range(1, slopes.ndim)))
        conjugate = self.enclosed_weight * enclose(each, np.where(np.isfinite(each), 64 * UNIT * size, 0.0)).sum()
        return conjugate, self.pulled_back(slopes)


@precise(static=("function",))
def _rows_of(function, first, second):
    return jax.vmap(function)(first, second)


def _check_regulariser(regulariser: Any) -> None:
    if regulariser is None:
        return
    for need in ("value", "conjugate_point"):
        if not hasattr(regulariser, need):
            raise TypeError(f"regulariser must have value and conjugate_point; {regulariser!r} has no {need}")
    if isinstance(regulariser, ElasticNet) and not regulariser.l2 >= 1:
        raise ValueError(
            "regulariser must be strongly convex with constant one: ElasticNet needs l2 >= 1 here, and the strength of "
            f"the penalty is the l2 of the problem; got {regulariser.l2}"
        )


@dataclass(frozen=True)
class _OfMargin:
    """A loss of the margin as a loss of the score and the sign."""

    loss: Any

    @property
    def smoothness(self) -> float:
        return float(self.loss.largest_curvature)

    def value(self, score, target):
        return self.loss.value(target * score)

    def conjugate(self, slope, target):
        return self.loss.conjugate(target * slope)


def dual_of(problem: Any) -> DualProblem:
    """A `DualProblem` as it is; a `MarginLoss` with a loss of your own as one."""
    if isinstance(problem, DualProblem):
        return problem
    if isinstance(problem, MarginLoss):
        return DualProblem(problem.A, problem.y, _OfMargin(problem.loss), problem.l2, None, problem.reduction)
    raise TypeError(
        "dual coordinate ascent takes LeastSquares, Logistic, MarginLoss, MultinomialLogistic or DualProblem; got "
        f"{type(problem).__name__}"
    )


def primal_point(problem: Any, theta: Any) -> np.ndarray:
    """``w = -A^T theta / l2``, the weights that belong to slopes ``theta_i = weight u_i``.

    With a regulariser ``r`` in place of ``|w|^2 / 2``: ``w = grad r*(-A^T theta / l2)``.

    Shalev-Shwartz and Zhang (2013, equation 3).

    >>> from cumulant import optim
    >>> problem = optim.LeastSquares([[1.0], [2.0]], [1.0, 1.0], l2=1.0)
    >>> primal_point(problem, problem.slopes([3 / 7])).round(6)           # at the solution: itself
    array([0.428571])
    """
    return _image(problem, _combined(problem, theta))


def _combined(problem: Any, theta: Any) -> np.ndarray:
    """``v = -A^T theta / l2``."""
    return np.asarray(-(problem.host_A.T @ np.asarray(theta)) / float(problem.l2))


def _image(problem: Any, v: np.ndarray) -> np.ndarray:
    return v if problem.regulariser is None else _conjugate_point(problem.regulariser, v)


@precise(static=("regulariser",))
def _conjugate_point(regulariser, v):
    return regulariser.conjugate_point(v)


@precise(static=("regulariser",))
def _conjugate(regulariser, v):
    """``r*(v) = <v, z> - r(z)`` at its maximiser ``z``."""
    z = regulariser.conjugate_point(v)
    return jnp.vdot(v, z) - regulariser.value(z)


def dual_value(problem: Any, theta: Any) -> float:
    """``D = -F*(theta) - |A^T theta|^2 / (2 l2)``; minus infinity off the domain.

    With a regulariser ``r``: ``D = -F*(theta) - l2 r*(-A^T theta / l2)`` (Fenchel and Rockafellar).

    Shalev-Shwartz and Zhang (2013, equation 2).

    >>> from cumulant import optim
    >>> problem = optim.LeastSquares([[1.0], [2.0]], [1.0, 1.0], l2=1.0)
    >>> x = np.array([3 / 7])                                         # the solution
    >>> round(dual_value(problem, problem.slopes(x)), 9), round(float(problem.value(x)), 9)
    (0.178571429, 0.178571429)
    """
    v, regulariser = _combined(problem, theta), problem.regulariser
    conjugate = float(np.vdot(v, v)) / 2 if regulariser is None else float(_conjugate(regulariser, v))
    return -float(problem.conjugate(np.asarray(theta))) - float(problem.l2) * conjugate


@issuer
def certify_duality(problem: Any, answer: Any) -> Certificate:
    """``P(x) - P* <= P(x) - D(theta)``: weak duality, for ``answer = (x, theta)`` with any slopes ``theta``.

    Slopes outside the domain of the conjugate by rounding are moved into it. (Fenchel's inequality, row by row:
    Shalev-Shwartz and Zhang 2013.)

    >>> from cumulant import optim
    >>> problem = optim.LeastSquares([[1.0], [2.0]], [1.0, 1.0], l2=1.0)
    >>> x = np.array([0.5])                                              # f(x) = 0.1875, f* = 0.178571
    >>> round(certify_duality(problem, (x, problem.slopes(x))).bound, 6)    # |grad f(x)|^2 / (2 l2)
    0.03125
    """
    wide, (x, theta) = widen(problem), answer
    x, l2 = np.asarray(x, dtype=np.float64), float(wide.l2)
    penalised = check(l2 > 0, "the objective has an l2 penalty", f"l2 = {l2:g}")
    loss = wide.enclosed_loss(x)
    conjugate, pulled = wide.enclosed_dual(wide.dual_slopes(theta))
    penalty, support = _penalties(wide.regulariser, l2, x, pulled)
    gap = loss + penalty + conjugate + support
    feasible = check(np.isfinite(gap.upper), "the slopes are in the domain of the conjugate")
    bound = max(float(gap.value), 0.0)
    slack = max(float(gap.upper) - bound, 0.0)
    ours = wide.constants_are == "checked"
    return Certificate(
        "f(x) - f*",
        bound,
        "weak duality (Fenchel-Rockafellar) at the slopes of the ascent",
        (
            penalised,
            feasible,
            by_construction("objective and dual are computed from the data in float64")
            if ours
            else assume("the conjugates are those of loss and penalty", "the loss is yours"),
        ),
        slack=slack,
        details={"value": float((loss + penalty).value), "|x - x*|": float(np.sqrt(2 * (bound + slack) / l2))},
    )


def _penalties(regulariser: Any, l2: float, x: np.ndarray, pulled: Enclosure) -> tuple[Enclosure, Enclosure]:
    """``l2 r(x)`` and ``l2 r*(-A^T theta / l2)``."""
    if regulariser is None:
        return enclose(x).square().sum() * (enclose(l2) * 0.5), pulled.square().sum() / (enclose(l2) * 2.0)
    v = -pulled / l2
    if type(regulariser) is ElasticNet:
        return regulariser.enclosed_value(x) * l2, regulariser.enclosed_conjugate(v) * l2
    value, support = float(regulariser.value(x)), float(_conjugate(regulariser, v.value))
    point = np.abs(_conjugate_point(regulariser, v.value))
    size = abs(support) + float(np.sum(np.abs(v.value) * point))
    return enclose(value, 64 * UNIT * abs(value)) * l2, enclose(
        support, 64 * UNIT * size + float(np.sum(v.error * point))
    ) * l2
