"""How many iterations, chains and updates learning by Gibbs sampling needs, and what a run of that size guarantees.

Learning minimises ``f(theta) = A(theta) - <theta, mean statistic> + l2/2 |theta|^2`` over a convex set in which Gibbs
sampling mixes as ``d(v) <= C alpha^v``, by ``K`` projected gradient steps of length ``1 / L``, each with ``M`` fresh
chains of ``v`` updates. ``R`` bounds the statistics about some centre, ``|T(x) - c| <= R``: only differences count.

Two forms of the strongly convex results exist. ``"published"`` is Domke (2015), theorem 6 and corollary 9, as printed;
``"corrected"`` puts right two factors in it: the mean of ``M`` vectors of length at most ``R`` concentrates as
``R / sqrt(M)`` (the printed ``sqrt(R / 2M)`` has the wrong dimension and is violated), and errors of size ``r`` leave
a distance ``r / l2`` (the printed ``r L / l2`` drops a ``1 / L``). Only the corrected form certifies anything.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from cumulant import checks
from cumulant.graphical.mixing.certificates import Mixing, open_unit
from cumulant.sampling.chains import require_counts

Mode = Literal["corrected", "published"]

_EXACT = Mixing(1.0, -1e6)  # of a sampler whose first update is a draw from the model


@dataclass(frozen=True)
class SamplingPlan:
    """``iterations`` K, ``chains`` M and ``updates`` v (of single sites), and what was asked of them.

    `work` is ``K M v``; `work_bound` the formula's value before rounding up, with ``1 / (1 - alpha)`` for
    ``-1 / log(alpha)``.

    Examples
    --------
    >>> SamplingPlan(46, 151, 515).work
    3577190
    """

    iterations: int
    chains: int
    updates: int
    kind: str = ""
    work_bound: float = math.nan
    real: tuple[float, float, float] = field(default=(math.nan, math.nan, math.nan), repr=False)

    def __post_init__(self):
        require_counts(iterations=(self.iterations, 1), chains=(self.chains, 1), updates=(self.updates, 0))

    @property
    def work(self) -> int:
        """Updates of single sites in all."""
        return int(self.iterations) * int(self.chains) * int(self.updates)


def lipschitz(R: float, l2: float = 0.0, kind: str = "tight") -> float:
    """A constant ``L`` with ``|grad f(x) - grad f(y)| <= L |x - y|``.

    ``"tight"``: ``R^2 + l2``, as the covariance of ``T`` is at most ``R^2``. ``"published"``: ``4 R^2 + l2`` (Domke
    2015, theorem 1), which is valid and four times as long a run.

    >>> lipschitz(5.0, 1.0), lipschitz(5.0, 1.0, "published")
    (26.0, 101.0)
    """
    _positive(R=R)
    _not_negative(l2=l2)
    checks.choice("kind", kind, ("tight", "published"))
    return (1.0 if kind == "tight" else 4.0) * R * R + l2


def gradient_error_bound(M: int, delta: float, R: float, mixing: Mixing | None = None, v: float = math.inf) -> float:
    """With probability ``1 - delta`` the error of the estimated gradient is at most
    ``(R / sqrt M)(1 + sqrt(2 log(1 / delta))) + 2 R C alpha^v``.

    The first term is bounded differences on the norm of the mean of ``M`` independent vectors, the second the bias of
    chains that ran ``v`` steps (Domke 2015, lemma 29).

    >>> round(gradient_error_bound(100, 0.1, 24**0.5), 3)
    1.541
    """
    _positive(M=M, R=R)
    open_unit(delta, "delta")
    noise = R / math.sqrt(M) * (1.0 + math.sqrt(2.0 * math.log(1.0 / delta)))
    return noise + (0.0 if mixing is None else 2.0 * R * _tail(mixing, v))


def total_error_bound(K: int, M: int, delta: float, R: float) -> float:
    """With probability ``1 - delta`` the mean over ``K`` steps of ``|sampling error| - 2 R / sqrt M`` is at most
    ``(2 R / 3 K)(log(1/delta) + sqrt(log(1/delta)^2 + 9 K log(1/delta) / M))`` (Domke 2015, theorem 23).

    >>> round(total_error_bound(46, 1533, 0.1, 24**0.5), 6)
    0.336287
    """
    _positive(K=K, M=M, R=R)
    log = math.log(1.0 / open_unit(delta, "delta"))
    return 2.0 * R / (3.0 * K) * (log + math.sqrt(log * log + 9.0 * K * log / M))


def bound_convex(
    plan: SamplingPlan,
    *,
    R: float,
    L: float,
    distance: float,
    delta: float,
    mixing: Mixing | float | None,
    done: int | None = None,
) -> float:
    """With probability ``1 - delta``: ``f(mean of the iterates) - f* <=`` this; ``|theta_0 - theta*| <= distance``.

    The smallest of three: Domke (2015), theorem 2 (where ``M >= 3 K / log(1 / delta)``), the same with the sharper
    ``E |error| <= R / sqrt M``, and a union bound over the iterations, which needs no condition on ``M``. The
    sampling errors are differences of a martingale: Freedman's inequality takes the place of Bernstein's. `mixing` is
    None where draws are exact, and a number where each is within that total variation. A run that ended after `done` of
    the planned iterations has the union bound, which holds for all of them at once.
    """
    return min(_convex_forms(plan, R, L, distance, delta, mixing, done).values())


def _convex_forms(plan, R, L, distance, delta, mixing, done=None) -> dict[str, float]:
    _positive(R=R, L=L)
    _not_negative(distance=distance)
    K, M, v = _done(plan, done), plan.chains, plan.updates
    log = math.log(1.0 / open_unit(delta, "delta"))
    start, bias = L * distance / (4.0 * R), K * _tail(mixing, v)
    factor = 8.0 * R * R / (K * L)
    spread = 1.0 + math.sqrt(2.0 * math.log(plan.iterations / delta))
    forms = {"union": factor * (start + K / (2.0 * math.sqrt(M)) * spread + bias) ** 2}
    if plan.iterations == K and M * log >= 3.0 * K:
        forms["published"] = factor * (start + log + K / math.sqrt(M) + bias) ** 2
        forms["tight"] = factor * (start + log + K / (2.0 * math.sqrt(M)) + bias) ** 2
    return forms


def bound_strongly_convex(
    plan: SamplingPlan,
    *,
    R: float,
    L: float,
    l2: float,
    distance: float,
    delta: float,
    mixing: Mixing | None,
    mode: Mode = "corrected",
    done: int | None = None,
) -> float:
    """With probability ``1 - delta``: ``|theta_K - theta*| <=`` this, `distance` bounding ``|theta_0 - theta*|``.

    ``(1 - l2/L)^K distance + (1/l2)((R / sqrt M)(1 + sqrt(2 log(K / delta))) + 2 R C alpha^v)``; for
    ``mode="published"`` the form printed in Domke (2015), theorem 6, which certifies nothing. `mixing` is None where
    draws are exact. The noise term holds for all planned iterations at once, so that a run that ended after `done` of
    them has the bound with ``(1 - l2/L)^done``.
    """
    _positive(R=R, L=L, l2=l2)
    _not_negative(distance=distance)
    _consistent(L, l2)
    _mode(mode)
    K, M, v = _done(plan, done), plan.chains, plan.updates
    spread = 1.0 + math.sqrt(2.0 * math.log(plan.iterations / open_unit(delta, "delta")))
    bias = 2.0 * R * _tail(mixing, v)
    shrink = (1.0 - l2 / L) ** K * distance
    if mode == "published":
        return shrink + L / l2 * (math.sqrt(R / (2.0 * M)) * spread + bias)
    return shrink + (R / math.sqrt(M) * spread + bias) / l2


def plan_convex(
    eps: float,
    delta: float,
    *,
    R: float,
    L: float,
    distance: float,
    mixing: Mixing | None,
    betas: tuple[float, float, float] = (0.66, 0.33, 0.01),
) -> SamplingPlan:
    """A plan after which ``f(mean of the iterates) - f* <= eps`` with probability ``1 - delta``.

    Domke (2015), theorems 4 and 5, with ``M`` and ``v`` from the rounded ``K`` and ``M >= 3 K / log(1/delta)``: the
    work grows as ``eps^-3``.

    Examples
    --------
    >>> mixing = Mixing(16.0, -(1 - 4 * math.tanh(0.2)) / 16)
    >>> plan = plan_convex(1.0, 0.1, R=24**0.5, L=96.0, distance=0.2 * 24**0.5, mixing=mixing)
    >>> plan.iterations, plan.chains, plan.updates
    (232, 4261, 795)
    """
    _positive(eps=eps, R=R, L=L)
    mixing = _required(mixing)
    _not_negative(distance=distance)
    b1, b2, b3 = _betas(betas)
    log = math.log(1.0 / open_unit(delta, "delta"))
    a, c, target = L * distance / (4.0 * R) + log, mixing.constant, eps * L / (8.0 * R * R)
    real = (
        a * a / (b1 * b1 * target),
        (a / (b1 * b2 * target)) ** 2,
        max(math.log(a * c / (b1 * b3 * target)) / -mixing.log_rate, 0.0),
    )
    K = max(math.ceil(real[0]), 1)
    M = max(math.ceil(K / (b2 * b2 * target)), math.ceil(3.0 * K / log))
    v = math.ceil(max(math.log(math.sqrt(K) * c / (b3 * math.sqrt(target))), 0.0) / -mixing.log_rate)
    far = max(distance, 4.0 * R / L * log)
    work = 32.0 * L * R**2 * far**4 / (b1**4 * b2**2 * eps**3 * (1.0 - mixing.rate))
    work *= math.log(4.0 * far * R * c / (b1 * b3 * eps))
    return SamplingPlan(K, M, v, f"f - f* <= {eps:g} with probability {1 - delta:g}", work, real)


def plan_strongly_convex(
    eps: float,
    delta: float,
    *,
    R: float,
    L: float,
    l2: float,
    distance: float,
    mixing: Mixing | None,
    betas: tuple[float, float, float] | None = None,
    mode: Mode = "corrected",
    updates: Literal["log", "gap"] = "log",
) -> SamplingPlan:
    """A plan after which ``|theta_K - theta*| <= eps`` with probability ``1 - delta``; work grows as ``eps^-2``.

    ``K = (L / l2) log(distance / (b1 eps))``, ``M = (b / (b2 eps))^2 (1 + sqrt(2 log(K / delta)))^2`` and
    ``v = log(c / (b3 eps)) / -log(alpha)`` with ``b = R / l2`` and ``c = 2 R C / l2`` (Domke 2015, corollary 9,
    corrected); ``M`` and ``v`` use the rounded ``K``.

    Parameters
    ----------
    mixing : Mixing or None
        None where draws are exact.
    betas : three positive numbers that add up to 1, optional
        How the error is shared between distance, noise and bias; ``(0.146, 0.707, 0.146)`` without it.
    mode : str
        ``"published"`` for the plan as printed, with ``b = (L / l2) sqrt(R / 2)`` and ``c = 2 L R C / l2``: not
        enough for what it claims.
    updates : str
        ``"log"`` divides by ``-log(alpha)``, ``"gap"`` by ``1 - alpha`` as printed.

    Examples
    --------
    >>> mixing = Mixing(16.0, -(1 - 4 * math.tanh(0.2)) / 16)
    >>> known = dict(R=24**0.5, L=10.0, l2=1.0, distance=0.4 * 24**0.5, mixing=mixing, betas=(0.01, 0.9, 0.09))
    >>> plan = plan_strongly_convex(2.0, 0.1, **known)
    >>> plan.iterations, plan.chains, plan.updates
    (46, 151, 515)
    """
    _positive(eps=eps, R=R, L=L, l2=l2)
    mixing = _required(mixing)
    _not_negative(distance=distance)
    _consistent(L, l2)
    _mode(mode)
    checks.choice("updates", updates, ("log", "gap"))
    noise = 1.0 / math.sqrt(2.0)
    b1, b2, b3 = _betas(((1.0 - noise) / 2.0, noise, (1.0 - noise) / 2.0) if betas is None else betas)
    open_unit(delta, "delta")
    if mode == "corrected":
        b, c = R / l2, 2.0 * R * mixing.constant / l2
    else:
        b, c = L / l2 * math.sqrt(R / 2.0), 2.0 * L * R * mixing.constant / l2
    K_real = max(L / l2 * math.log(max(distance, 1e-300) / (b1 * eps)), 1.0)
    K = max(math.ceil(K_real), 1)
    M_real = (b / (b2 * eps)) ** 2 * (1.0 + math.sqrt(2.0 * math.log(K / delta))) ** 2
    log_needed = math.log(c / (b3 * eps))
    v_real = max(log_needed, 0.0) / (1.0 - mixing.rate if updates == "gap" else -mixing.log_rate)
    v = math.ceil(v_real)
    work = K_real * (b / (b2 * eps)) ** 2 * (1.0 + math.sqrt(2.0 * math.log(K_real / delta))) ** 2
    work *= max(log_needed, 0.0) / (1.0 - mixing.rate)
    kind = f"|theta - theta*| <= {eps:g} with probability {1 - delta:g}" + (
        ", as printed" if mode == "published" else ""
    )
    return SamplingPlan(K, max(math.ceil(M_real), 1), v, kind, work, (K_real, M_real, v_real))


def lower_bound_work_convex(a: float, b: float, c: float, eps: float, mixing: Mixing) -> float:
    """No plan with ``(a + b K / sqrt M + K c alpha^v)^2 / K <= eps`` does less than
    ``(a^4 b^2 / eps^3) log(a c / eps) / -log(alpha)`` updates (Domke 2015, theorem 3).
    """
    _positive(a=a, b=b, c=c, eps=eps)
    return a**4 * b**2 / eps**3 * max(math.log(a * c / eps), 0.0) / -mixing.log_rate


def lower_bound_work_strongly_convex(
    a: float, b: float, c: float, eps: float, delta: float, contraction: float, mixing: Mixing
) -> float:
    """No plan with ``contraction^K a + (b / sqrt M) sqrt(log(K / delta)) + c alpha^v <= eps`` does less work than
    this (Domke 2015, theorem 7).
    """
    _positive(a=a, b=b, c=c, eps=eps)
    checks.fraction("contraction", contraction)
    rate = -math.log(contraction)
    steps = math.log(a / eps) / rate
    if steps <= 0 or c <= eps:
        return 0.0
    log = max(math.log(steps / open_unit(delta, "delta")), 0.0)
    return b * b / eps**2 * steps * math.log(c / eps) / -mixing.log_rate * log


def _done(plan: SamplingPlan, done: int | None) -> int:
    if done is not None and not 1 <= done <= plan.iterations:
        raise ValueError(f"done must be at least 1 and at most the {plan.iterations} planned iterations; got {done}")
    return plan.iterations if done is None else done


def _consistent(L: float, l2: float) -> None:
    if l2 > L:
        raise ValueError(f"L must be at least l2, the curvature that l2/2 |theta|^2 alone has; got L = {L}, l2 = {l2}")


def _required(mixing: Mixing | None) -> Mixing:
    """How chains mix; without an answer, draws are exact."""
    return _EXACT if mixing is None else checks.instance("mixing", mixing, Mixing, "a Mixing, or None")


def _tail(mixing: Mixing | float | None, v: float) -> float:
    if mixing is None:
        return 0.0
    if not isinstance(mixing, Mixing):
        return float(mixing)
    return math.exp(min(math.log(mixing.constant) + mixing.log_rate * v, 0.0))  # a distance is at most 1


def _betas(betas: Any) -> tuple[float, float, float]:
    b = tuple(float(x) for x in betas)
    if len(b) != 3 or min(b) <= 0 or not math.isclose(sum(b), 1.0, abs_tol=1e-9):
        raise ValueError(f"betas must be three positive numbers that add up to 1; got {betas}")
    return b


def _mode(mode: str) -> None:
    if mode not in ("corrected", "published"):
        raise ValueError(f"mode must be 'corrected' or 'published'; got {mode!r}")


def _positive(**values: float) -> None:
    for name, value in values.items():
        checks.positive(name, value)


def _not_negative(**values: float) -> None:
    for name, value in values.items():
        checks.not_negative(name, value)
