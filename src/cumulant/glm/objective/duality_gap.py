"""The duality gap of a generalised linear model with a bound on what rounding may hide of it.

For slopes ``s`` with ``g = X^T (p s)`` and, with an intercept, ``sum_i p_i s_i = 0``, the gap is a sum of terms that
are not negative, one for each row and one for each column:

    P(x) - D(s) = sum_i p_i [phi_i(eta_i) + phi_i*(s_i) - s_i eta_i] + sum_j [R(w_j) + R*(-g_j) + g_j w_j].

Computed this way it does not cancel. Each term is convex, with a small derivative near the minimum, so that errors of
the scores and of ``g`` enter to first order by that derivative and to second order by a curvature. Slopes which satisfy
a constraint up to rounding are near slopes that satisfy it exactly: those are ``(1 - t) s`` for some of the rows, and a
row's term at them is at most ``(1 - t)`` times the one at ``s`` plus ``t phi_i(eta_i)``, by convexity. Errors of
products are those of Higham (2002, section 3.1), with sums bounded through the Cauchy-Schwarz inequality.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from cumulant.glm.objective.design import dot
from cumulant.glm.objective.problem import GLMProblem

_UNIT = 2.0**-53
_TINY = 1e-300  # more than what underflow loses


class PrimalDual(NamedTuple):
    """Weights and the dual slopes that certify them."""

    x: Any
    slopes: Any


class Gap(NamedTuple):
    """``P(x) - D(s)``, how much more it can be, and ``P(x)``."""

    bound: float
    slack: float
    value: float


class ScoreError(NamedTuple):
    """How far computed scores may be from the true ones.

    By `rows` (n,), and besides by amounts whose squares add up to at most the square of `total`, for each output; in
    one row by at most `width`.
    """

    rows: np.ndarray
    total: np.ndarray
    width: float


def score_error(problem: GLMProblem, x: np.ndarray, units: np.ndarray) -> ScoreError:
    """The error of ``X x + o``, and of `units` units in the last place of one for each row."""
    norms = problem.design.column_norms
    count = np.count_nonzero(x) if x.ndim == 1 else np.count_nonzero(x.any(axis=1))
    longest = min(count, problem.design.longest_row)
    # |sum_j X_ij x_j| <= |norms x| (sum_j X_ij^2 / norms_j^2)^(1/2), and the last sums add up to `count` over the rows.
    length = _lengths(_times_rows(norms, x))
    unit = (longest + 4) * 2.0 * _UNIT
    offset = np.abs(problem.offset) if problem.offset.ndim == 1 else np.abs(problem.offset).max(axis=1)
    rows = _UNIT * (units + 2.0 * offset)
    width = unit * math.sqrt(longest) * float(length.max()) + float(rows.max())
    return ScoreError(rows, unit * math.sqrt(count) * length, width)


def _times_rows(factors: np.ndarray, array: np.ndarray) -> np.ndarray:
    """A factor for each row."""
    return factors * array if array.ndim == 1 else factors[:, None] * array


def _lengths(array: np.ndarray) -> np.ndarray:
    """The Euclidean length of a vector, or of each column."""
    return np.sqrt(dot(array, array)) if array.ndim == 1 else np.sqrt(np.square(array).sum(axis=0))


def gradient_error(problem: GLMProblem, slope: np.ndarray, share: float = 0.0) -> np.ndarray:
    """A bound on the error of each entry of ``X^T (p s)``, and of a relative change of the slopes by `share`."""
    spread = _lengths(_times_rows(problem.weights, slope)) + problem.n_terms * _TINY
    norms = problem.design.column_norms
    return ((problem.n_terms + 8) * _UNIT + share) * (norms if slope.ndim == 1 else norms[:, None]) * spread


def value_error(problem: GLMProblem, value: float) -> float:
    """The rounding of sums in the objective, relative to it."""
    return (32 + problem.n_terms / 512) * _UNIT * abs(value)


def duality_gap(problem: GLMProblem, x: np.ndarray, slope: np.ndarray, gradient: np.ndarray | None = None) -> Gap:
    """The gap of `x` by slopes that are made feasible, or are so already where their `gradient` is given."""
    if gradient is None:
        slope, gradient = problem.feasible(slope)
    eta = problem.scores(x)
    losses, slopes = problem.loss.terms(eta)[:2]
    penalty = problem.penalty(x)
    value = dot(problem.weights, losses) + penalty
    rows, slack, lack = _rows(problem, x, eta, slope)
    # At least the losses: what a slope loses by shrinking.
    size = dot(problem.weights, np.abs(losses) + 16 * _UNIT * problem.loss.magnitude(eta, slopes))
    share = _imbalance(problem, slope, lack) if problem.design.intercept else 0.0
    error = gradient_error(problem, slope, share if slope.ndim == 1 else 0.0)
    if slope.ndim == 2:  # all means of a row may be off by `lack` of themselves, and by `share` of a probability
        error = error + (lack + share) * problem.design.column_norms[:, None] * np.linalg.norm(problem.weights)
        spread = np.log(slope.shape[1]) + eta.max(axis=1) - eta.min(axis=1)
        slack += share * dot(problem.weights, spread)
    else:
        slack += share * size
    own, more = _columns(problem, x, gradient, problem.without_intercept(error), size + penalty)
    bound = rows + own
    # The last part is that of the objective as it is reported.
    slack += more + (600 + problem.n_terms / 256) * _UNIT * bound + value_error(problem, value)
    if not share < 1:
        return Gap(np.inf, np.inf, value)
    return Gap(float(bound), float(slack) + _TINY * (1.0 + (1.0 / problem.l2 if problem.l2 else 0.0)), value)


def _rows(problem: GLMProblem, x: np.ndarray, eta: np.ndarray, slope: np.ndarray) -> tuple[float, float, float]:
    """The part of the gap that is the rows', what rounding may add to it, and how far means miss a total of one."""
    found, p = problem.loss.divergence(eta, slope), problem.weights
    bound, error = dot(p, found.value), score_error(problem, x, found.size)
    slack = dot(p, found.error)
    c = problem.loss.concordance
    if c is None and eta.ndim == 1:  # any convex function: at most the larger of the values at both ends
        ends = [problem.loss.divergence(eta + way * error.width, slope) for way in (-1.0, 1.0)]
        worst = np.maximum(*(end.value + end.error for end in ends)) - found.value
        return bound, slack + dot(p, np.maximum(worst, 0.0)), found.lack
    change, bends = np.abs(found.change), p * found.curvature
    first = dot(p * error.rows, change if eta.ndim == 1 else change.sum(axis=1))
    first += float(np.dot(_lengths(_times_rows(p, change)), error.total))
    second = dot(bends, error.rows**2) + float(bends.max()) * float(error.total.max()) ** 2
    return bound, slack + first + second * float(np.exp((c or 0.0) * error.width)), found.lack


def _imbalance(problem: GLMProblem, slope: np.ndarray, lack: float) -> float:
    """The share by which slopes, or the means of several outputs, must change to sum to zero exactly."""
    mass = _times_rows(problem.weights, slope)
    unit = (72 + np.log2(problem.n_terms)) * _UNIT
    if slope.ndim == 1:
        up, down = float(mass[mass > 0].sum()), -float(mass[mass < 0].sum())
        if up == down == 0.0:
            return 0.0
        return (abs(up - down) + 2 * unit * (up + down) + _TINY) / min(up, down) if min(up, down) > 0 else np.inf
    # Each mean becomes (1 - share) of itself plus `share` of a distribution over the classes, the same for all rows;
    # there is one if no class has more than `share` of its own observations too much.
    excess = np.abs(mass.sum(axis=0)) + (problem.n_terms * _UNIT + lack) * (np.abs(mass).sum(axis=0) + 2 * lack)
    counts = np.bincount(problem.loss.y, weights=problem.weights, minlength=slope.shape[1])
    excess = np.where((excess > 0) | (counts == 0), excess + lack * counts, 0.0)
    return float(np.max(np.where(excess > 0, 1.01 * excess / np.maximum(counts, _TINY), 0.0)))


def _columns(problem: GLMProblem, x: np.ndarray, g: np.ndarray, error: np.ndarray, most: float) -> tuple[float, float]:
    """The part of the gap that is the columns', and what an `error` of ``g`` may add to the whole; `most` is ``P``.

    With ``l2 > 0`` the conjugate of the penalty is finite everywhere. With ``l1 > 0`` it is zero where ``|g| <= l1``,
    and slopes shrunk by a share ``k`` get there at the price of ``k`` times the objective. Whichever is better.
    """
    w, l1, l2 = problem.without_intercept(x), problem.l1, problem.l2
    error = error + 4 * _UNIT * (np.abs(g) + l1)
    found = []
    if l2 > 0:
        inside = np.minimum(np.maximum(g, -l1), l1)
        moved = w + (g - inside) / l2
        own = float(np.sum(0.5 * l2 * moved * moved + np.maximum(l1 * np.abs(w) + inside * w, 0.0)))
        found.append((own, float(np.sum(error * (np.abs(moved) + 0.5 * (error / l2))))))
    if l1 > 0:
        own = float(np.sum(0.5 * l2 * w * w + np.maximum(l1 * np.abs(w) + g * w, 0.0)))
        top = float(np.max(np.abs(g) + error, initial=0.0))
        shrink = 1.0 - l1 / top * (1.0 - 4 * _UNIT) if top > l1 else 0.0
        found.append((own, float(np.sum(error * np.abs(w))) + shrink * most))
    return min(found, key=sum)
