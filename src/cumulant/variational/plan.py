"""How many steps a theorem asks for, before any is taken."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from cumulant import checks
from cumulant.certificates import Assumption, Certificate, Subject, by_construction, check, issuer
from cumulant.errors import CertificateError
from cumulant.optim import Composite, RobbinsMonro, rates, schedules
from cumulant.optim.gradients import Noise
from cumulant.sampling import Target
from cumulant.variational.estimators import EnergyGradient, EntropyGradient
from cumulant.variational.gaussians import FullRank
from cumulant.variational.objective import projected_problem, proximal_problem
from cumulant.variational.whitening import laplace

METHODS = ("prox", "proj")
_UNIT = 2.0**-52


class Route(NamedTuple):
    """What a plan does: steps of ``sizes[j]``, ``lengths[j]`` of them, from ``N(mean, scale^2 I)``.

    `averaged`: the answer is the mean of the iterates of the last stage; otherwise it is the last iterate.
    """

    method: str
    sizes: np.ndarray
    lengths: np.ndarray
    averaged: bool
    mean: np.ndarray
    scale: float


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """A run that a theorem vouches for.

    ``optim.run(plan.solver, plan.problem, plan.start, max_steps=plan.steps, tol=None)`` carries it out.

    Attributes
    ----------
    steps : int
        Gradients to take, one draw each.
    promise : Certificate
        In expectation over the draws: how far the answer is from the best Gaussian after that many. It is recomputed by
        ``plan.promise.verify(plan.subject)``.
    solver, problem, start
        What to run.
    subject : Subject
        The target and the `Route`.
    """

    steps: int
    promise: Certificate
    solver: RobbinsMonro
    problem: Composite
    start: np.ndarray
    subject: Subject

    def __str__(self):
        return f"{self.steps:,} steps of {type(self.solver.gradients).__name__}\n{self.promise}"


def plan(target: Target, accuracy: float = 0.1, method: str = "prox") -> Plan:
    """Steps, step sizes and their theorem for a Gaussian within `accuracy` nats of the best one, in expectation.

    Needs `smoothness` and a positive `strong_convexity` of the target (`gaussian`, `logistic_regression` and so on know
    theirs). Steps are constant in stages, each as long as the bound allows; at the end the last iterate is the answer,
    or the mean of those of a last stage, whichever needs fewer steps. Theorems are about the worst case: the steps are
    many, and `fit` usually needs far fewer.

    Parameters
    ----------
    target : Target
    accuracy : float
        A bound on the expected ``KL(q | p) - min KL``.
    method : str
        ``"prox"``: proximal steps, triangular factor, energy gradients. ``"proj"``: projected steps, symmetric factor,
        entropy gradients (Domke, Garrigos and Gower 2023, algorithms 1 and 2).

    Examples
    --------
    >>> from cumulant import variational as vi
    >>> ahead = plan(vi.gaussian([1.0, -1.0], [[1.0, 0.3], [0.3, 0.5]]), accuracy=0.5)
    >>> 100 < ahead.steps < 1000, ahead.promise.kind, ahead.promise.upper <= 0.5
    (True, 'in expectation', True)
    """
    checks.instance("target", target, Target, "a Target, as Target(log_density, dim) makes")
    checks.choice("method", method, METHODS)
    checks.positive("accuracy", accuracy)
    _, M, mu = _constants(target)
    at_mode = laplace(target)
    floor = M**-0.5
    start = Route(method, np.ones(1), np.ones(1), False, at_mode.mode, floor)
    smooth, noise = _noise(target, method)
    route = _fewest_steps(start, mu, smooth, noise, _distance_squared(target, start), accuracy * (1 - 1e-6), M)
    q = FullRank(target.dim, "triangular" if method == "prox" else "symmetric")
    draws = np.random.default_rng(0).normal(size=(32, target.dim))
    make = proximal_problem if method == "prox" else projected_problem
    steps = int(route.lengths.sum())
    solver = RobbinsMonro(
        schedules.Stages(route.sizes, np.cumsum(route.lengths)),
        EnergyGradient() if method == "prox" else EntropyGradient(),
        average=route.averaged,
        burn_in=steps - int(route.lengths[-1]),
    )
    subject = Subject(target, route)
    return Plan(
        steps,
        certify_plan(*subject),
        solver,
        make(target, q, draws, floor),
        q.pack(at_mode.mode, floor),
        subject,
    )


@issuer
def certify_plan(given: Target, answer: Route) -> Certificate:
    """``E KL(q | p) - min KL`` at the end of a `Route`, from the constants of the target.

    The last iterate: ``M E |w - w*|^2``, as ``KL`` is ``2 M``-smooth where no diagonal entry (or eigenvalue) of ``C``
    is below ``1 / sqrt(M)``, and stationary at ``w*``. The mean of a stage: `rates.staged_sgd_average`.
    """
    grounds, M, mu = _constants(given)
    smooth, noise = _noise(given, answer.method)
    far = _distance_squared(given, answer)
    sizes, lengths = (np.asarray(v, dtype=np.float64) for v in (answer.sizes, answer.lengths))
    whole = check(np.all(lengths == np.floor(lengths)) and np.all(lengths >= 1), "stages have whole numbers of steps")
    try:
        if answer.averaged:
            before = rates.staged_sgd(mu, smooth, noise, sizes[:-1], lengths[:-1], far)
            e = float(before[-1]) if len(before) else far
            bound = rates.staged_sgd_average(mu, smooth, noise, float(sizes[-1]), float(lengths[-1]), e)
        else:
            bound = M * float(rates.staged_sgd(mu, smooth, noise, sizes, lengths, far)[-1])
    except ValueError as refusal:
        raise CertificateError(f"no certificate: {refusal}", assumption="step sizes") from refusal
    return Certificate(
        "E KL(q | p) - min KL",
        bound,
        "Domke, Garrigos and Gower 2023, proofs of theorems 7 and 10 with the variance of the gradients",
        (*grounds, by_construction("the draws are independent"), whole),
        kind="in expectation",
        slack=1e-9 * bound,
        details={
            "steps": float(lengths.sum()),
            "a": noise.a,
            "b": noise.b,
            "|w_0 - w*|^2": far,
        },
    )


def _constants(target: Target) -> tuple[tuple[Assumption, ...], float, float]:
    """What is known about the target, ``M`` and ``mu``."""
    M, mu = target.smoothness, float(target.strong_convexity)
    if M is None:
        raise CertificateError("no plan: the smoothness of the target is not known", assumption="smoothness")
    known = f"mu = {mu:.6g}, M = {float(M):.6g}"
    strong = check(mu > 0, "minus the log-density is strongly convex and smooth", known)
    if target.constants_are != "checked":
        strong = Assumption(strong.text, "assumed", f"as given: {known}")
    return (strong,), float(M), mu


def _noise(target: Target, method: str) -> tuple[float, Noise]:
    """The smoothness of what gradients are taken of, and their noise."""
    M, mu, d = float(target.smoothness or math.inf), float(target.strong_convexity), target.dim
    if method == "prox":
        return M, EnergyGradient().variance(d, M, mu)
    return 2 * M, EntropyGradient().variance(d, M, mu)


def _distance_squared(target: Target, route: Route) -> float:
    """At least ``|w_0 - w*|^2``.

    With the mode ``z``: ``|m* - z|^2 + |C*|_F^2 <= d / mu``, and no diagonal entry (eigenvalue) of ``C*`` is below ``1
    / sqrt(M)``, so that ``|w* - (z, c I)|^2 <= d / mu - 2 c d / sqrt(M) + c^2 d``. The start is within ``|grad| / mu``.
    """
    M, mu, d = float(target.smoothness or math.inf), float(target.strong_convexity), target.dim
    c = route.scale
    gradient = float(np.linalg.norm(np.asarray(target.gradient(route.mean))))
    rounding = 1024 * d * _UNIT * M * (float(np.linalg.norm(route.mean)) + math.sqrt(d / mu))
    near = max(d * (1 / mu - 2 * c / math.sqrt(M) + c**2), 64 * _UNIT * d / mu)
    return (math.sqrt(near) + (gradient + rounding) / mu) ** 2


def _fewest_steps(start: Route, mu: float, smooth: float, noise: Noise, far: float, accuracy: float, M: float) -> Route:
    """Stages until the last iterate is good enough; or fewer of them and the mean of one more, where that saves a
    fifth of the steps: the bound on the last iterate is the one that is closer to what happens.
    """
    sizes, lengths = rates.plan_stages(mu, smooth, noise, far, accuracy / M)
    bounds = np.append(far, rates.staged_sgd(mu, smooth, noise, sizes, lengths, far))
    best, fewest = start._replace(sizes=sizes, lengths=lengths), 0.8 * float(lengths.sum())
    for k, e in enumerate(bounds[:-1]):
        v = (math.sqrt(noise.b) + math.sqrt(noise.a * e)) ** 2
        step = min(accuracy / (2 * v), 1 / smooth)
        if step * v > e * mu * (2 - step * mu):  # the bound on the distance would grow
            continue
        n = max(math.ceil(e / (2 * step * (accuracy - step * v))), 1)
        if lengths[:k].sum() + n < fewest:
            fewest = lengths[:k].sum() + n
            best = start._replace(sizes=np.append(sizes[:k], step), lengths=np.append(lengths[:k], n), averaged=True)
    return best
