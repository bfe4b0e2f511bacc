"""Intervals that contain the cost of optimal transport, from any potentials: a feasible plan above, duality below."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from cumulant import checks
from cumulant.certificates import (
    Assumption,
    Certificate,
    Interval,
    by_construction,
    check,
    issuer,
    rounding,
)

_LARGEST, _TINY = 1e300, float(np.finfo(np.float64).tiny)


def round_plan(plan: Any, a: Any, b: Any) -> np.ndarray:
    """A matrix near `plan`, of non-negative entries, with row sums `a` and column sums `b`.

    Rows and then columns that are too heavy are scaled down, and what is missing is spread by a rank-one matrix
    (Altschuler, Weed and Rigollet 2017, algorithm 2). It moves at most
    ``2 (|P 1 - a|_1 + |P^T 1 - b|_1)`` (their lemma 7).

    >>> rounded = round_plan([[0.3, 0.3], [0.2, 0.1]], [0.5, 0.5], [0.6, 0.4])
    >>> rounded.sum(axis=1), rounded.sum(axis=0)
    (array([0.5, 0.5]), array([0.6, 0.4]))
    """
    plan, a, b = (checks.real_array(name, each) for name, each in (("plan", plan), ("a", a), ("b", b)))
    if plan.ndim != 2 or a.shape != plan.shape[:1] or b.shape != plan.shape[1:] or not plan.size or np.any(plan < 0):
        raise ValueError(
            f"plan, a and b must be a non-negative matrix and its sums; got {plan.shape}, {a.shape}, {b.shape}"
        )
    rows = plan.sum(axis=1)
    plan = plan * np.divide(a, rows, out=np.ones_like(a), where=rows > a)[:, None]
    columns = plan.sum(axis=0)
    plan = plan * np.divide(b, columns, out=np.ones_like(b), where=columns > b)[None, :]
    short_rows = np.maximum(a - plan.sum(axis=1), 0.0)
    short_columns = np.maximum(b - plan.sum(axis=0), 0.0)
    missing = short_rows.sum()
    return plan + np.outer(short_rows, short_columns / missing) if missing > 0 else plan


class TransportProblem(NamedTuple):
    """The data of entropic optimal transport: costs ``(n, m)``, histograms ``(n,)`` and ``(m,)``, and ``eps``."""

    cost: Any
    a: Any
    b: Any
    epsilon: Any


@issuer
def certify_entropic_transport(given: TransportProblem, answer: tuple[Any, Any]) -> Certificate:
    """An interval that contains ``V = min <C, P> + eps sum P (log P - 1)``, from potentials ``(f, g)`` however good.

    Below, the dual value ``<a, f> + <b, g> - eps sum exp((f + g - C) / eps)`` (weak duality). Above, the value of the
    plan of the potentials, rounded to a feasible one by `round_plan`. Both are computed in float64 from the data; the
    interval is widened by a bound on their rounding. `b` is scaled to the sum of `a`, from which it may differ by 1e-6.

    >>> problem = TransportProblem([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]], [0.2, 0.5, 0.3], [0.6, 0.4], 0.5)
    >>> rough = certify_entropic_transport(problem, ([0.0, 0.0, 0.0], [0.0, 0.0]))
    >>> -0.713986132972 in rough.bound
    True
    """
    return _certificate("V = min <C, P> + eps sum P (log P - 1)", given, *_entropic(*given, *answer))


@issuer
def certify_transport(given: TransportProblem, answer: tuple[Any, Any]) -> Certificate:
    """An interval that contains ``min <C, P>``, the cost of transport without entropy, from entropic potentials.

    Above, the cost of the rounded plan. Below, the dual value ``<a, f> + <b, f^c>`` at the potential
    ``f^c_j = min_i C_ij - f_i``, which is feasible whatever ``f`` is. The width is of the order of
    ``eps log(n m)``: a smaller `epsilon` gives a narrower one.

    >>> problem = TransportProblem([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]], [0.2, 0.5, 0.3], [0.6, 0.4], 0.5)
    >>> 0.45 in certify_transport(problem, ([0.0, 0.0, 0.0], [0.0, 0.0])).bound
    True
    """
    return _certificate("min <C, P>", given, *_unregularised(*given, *answer))


def _masses(a, b) -> Assumption:
    """That `a` and `b` are positive and have the same sum, up to single precision."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return check(
        np.all(a > 0) and np.all(b > 0) and abs(a.sum() - b.sum()) <= 1e-6 * a.sum(),
        "a and b are positive and have the same sum, to 1e-6; b is scaled to the sum of a",
        f"{a.sum():.9g} and {b.sum():.9g}",
    )


def _certificate(quantity, problem, lower, upper, slack):
    check(lower <= upper + 2 * slack, "the bounds from below and above agree", f"{lower:.6g} and {upper:.6g}")
    upper = max(upper, lower)  # what is left is rounding, and within the slack
    return Certificate(
        quantity,
        Interval(lower - slack, upper + slack, lower),
        "weak duality, and rounding to a feasible plan, Altschuler, Weed and Rigollet 2017",
        (
            _masses(problem.a, problem.b),
            by_construction("both ends are computed from the data in float64, and moved apart by their rounding"),
        ),
    )


def _problem(cost, a, b, epsilon, f, g):
    cost, a, b, f, g = (np.asarray(each, dtype=np.float64) for each in (cost, a, b, f, g))
    if cost.ndim != 2 or a.shape != cost.shape[:1] or b.shape != cost.shape[1:]:
        raise ValueError(
            f"an interval is for one problem: cost (n, m), a (n), b (m); got {cost.shape}, {a.shape}, {b.shape}"
        )
    if f.shape != a.shape or g.shape != b.shape:
        raise ValueError(f"f and g must have the shapes of a and b; got {f.shape} and {g.shape}")
    check(np.all(np.isfinite(f)) and np.all(np.isfinite(g)), "the potentials are finite")
    _masses(a, b)
    largest = max(np.max(np.abs(f)), np.max(np.abs(g)), np.max(np.abs(cost)))
    check(largest < _LARGEST, f"costs and potentials are below {_LARGEST:g}", f"{largest:.3g}")
    # Masses between 1 and 2: products of tiny ones would underflow, and a plan lose what it has to move.
    power = math.frexp(float(a.sum()))[1] - 1
    a, b = np.ldexp(a, -power), np.ldexp(b, -power)
    b = b * (a.sum() / b.sum())  # what single precision leaves between the two would make the problem infeasible
    with np.errstate(over="ignore"):
        exponent = (f[:, None] + g[None, :] - cost) / float(np.asarray(epsilon)) - power * math.log(2.0)
    # No plan has more than the whole mass in one entry, so that capping it there keeps the rounding finite.
    plan = np.exp(np.minimum(exponent, np.log(a.sum())))
    feasible = round_plan(plan, a, b)
    return cost, a, b, float(np.asarray(epsilon)), f, g, exponent, feasible, a.sum() * largest, power


def _entropic(cost, a, b, epsilon, f, g):
    cost, a, b, epsilon, f, g, exponent, feasible, scale, power = _problem(cost, a, b, epsilon, f, g)
    logs = power * math.log(2.0)  # of the unit in which masses are counted
    with np.errstate(over="ignore", invalid="ignore"):
        mass = np.exp(exponent)
        lower = float(np.dot(a, f) + np.dot(b, g) - epsilon * mass.sum())
        doubt = float(np.sum(mass * (1 + np.abs(exponent) + abs(logs)))) * epsilon
    entropy = xlogy(feasible, feasible) + (logs - 1.0) * feasible
    upper = float(np.sum(cost * feasible) + epsilon * entropy.sum())
    if not (np.isfinite(lower) and np.isfinite(doubt)):
        lower, doubt = -np.finfo(np.float64).max, 0.0
    terms = 64 + a.size + b.size
    # A rounding error d of the mass of an entry changes its entropy by d |log d|, and |log d| is at most about 37.
    entropies = epsilon * np.abs(entropy), (40.0 + abs(logs)) * epsilon * a.sum()
    slack = rounding(np.abs(cost) * feasible, *entropies, a * f, b * g, doubt, scale, terms=terms)
    return _with_unit(lower, upper, slack + cost.size * _TINY, power)


def _unregularised(cost, a, b, epsilon, f, g):
    cost, a, b, _, f, g, _, feasible, scale, power = _problem(cost, a, b, epsilon, f, g)
    transform = np.min(cost - f[:, None], axis=0)
    lower = float(np.dot(a, f) + np.dot(b, transform))
    upper = float(np.sum(cost * feasible))
    slack = rounding(np.abs(cost) * feasible, a * f, b * transform, scale, terms=64 + a.size + b.size)
    return _with_unit(lower, upper, slack + cost.size * _TINY, power)


def _with_unit(lower, upper, slack, power):
    """Numbers in units of ``2^power`` of mass; those that would become infinite or denormal are widened."""
    with np.errstate(over="ignore"):
        lower, upper, slack = (float(np.ldexp(each, power)) for each in (lower, upper, slack))
    largest = np.finfo(np.float64).max
    return float(np.clip(lower, -largest, largest)), float(np.clip(upper, -largest, largest)), slack + _TINY
