"""How many steps a theorem asks for, before any is taken."""

import dataclasses
import math

import numpy as np

from cumulant.certificates import Assumption, Certificate, by_construction, check
from cumulant.errors import CertificateError
from cumulant.optim import Composite, RobbinsMonro, rates, schedules
from cumulant.sampling import Target
from cumulant.variational.estimators import EnergyGradient, EntropyGradient
from cumulant.variational.gaussians import FullRank
from cumulant.variational.objective import projected_problem, proximal_problem
from cumulant.variational.whitening import laplace


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """A run that a theorem vouches for.

    ``optim.run(plan.solver, plan.problem, plan.start, max_steps=plan.steps, tol=None)`` carries it out.

    Attributes
    ----------
    steps : int
        Gradients to take, one draw each.
    promise : Certificate
        In expectation over the draws: how far the answer is from the best Gaussian after that many.
    solver, problem, start
        What to run.
    """

    steps: int
    promise: Certificate
    solver: RobbinsMonro
    problem: Composite
    start: np.ndarray

    def __str__(self):
        return f"{self.steps:,} steps of {type(self.solver.gradients).__name__}\n{self.promise}"


def plan(target: Target, accuracy: float = 0.1, method: str = "prox") -> Plan:
    """Steps, step sizes and their theorem for a Gaussian within `accuracy` nats of the best one, in expectation.

    Needs `smoothness` and a positive `strong_convexity` of the target (`gaussian`, `logistic_regression` and so on know
    theirs). Theorems are about the worst case: the steps are many, and `fit` usually needs far fewer.

    Parameters
    ----------
    target : Target
    accuracy : float
        A bound on the expected ``KL(q | p) - min KL``.
    method : str
        ``"prox"``: proximal steps, triangular factor, the weighted average of the iterates (theorem 8). ``"proj"``:
        projected steps, symmetric factor, the last iterate, decreasing steps; ``KL(q | p) - min KL <= M |w - w*|^2`` on
        the set projected on (theorem 10 of Domke, Garrigos and Gower 2023).

    Examples
    --------
    >>> from cumulant import variational as vi
    >>> ahead = plan(vi.gaussian([1.0, -1.0], [[1.0, 0.3], [0.3, 0.5]]), accuracy=0.5)
    >>> ahead.steps > 1000, ahead.promise.kind, ahead.promise.upper <= 0.5
    (True, 'in expectation', True)
    """
    if method not in ("prox", "proj"):
        raise ValueError(f"method must be 'prox' or 'proj'; got {method!r}")
    if not (math.isfinite(accuracy) and accuracy > 0):
        raise ValueError(f"accuracy must be a positive number of nats; got {accuracy}")
    M, mu, d = target.smoothness, float(target.strong_convexity), target.dim
    if M is None:
        raise CertificateError("no plan: the smoothness of the target is not known", assumption="smoothness")
    known = f"mu = {mu:.6g}, M = {M:.6g}"
    strong = check(mu > 0, "minus the log-density is strongly convex and smooth", known)
    if target.constants_are != "checked":
        strong = Assumption(strong.text, "assumed", f"as given: {known}")
    mode = laplace(target).mode
    off = float(np.linalg.norm(np.asarray(target.gradient(mode)))) / mu  # how far the computed mode may be off
    q = FullRank(d, "triangular" if method == "prox" else "symmetric")
    floor = float(M) ** -0.5
    start = q.pack(mode, floor)
    # |w* - (mode, 0)|^2 <= d / mu and w_0 = (mode, floor I): |w_0 - w*| is at most the sum of the two distances.
    apart = d / mu
    far = (math.sqrt(apart) + math.sqrt(d) * floor + off) ** 2
    grounds = (
        strong,
        by_construction("the draws are independent"),
        check(True, "the start is near the mode", f"within {off:.2g}"),
    )
    draws = np.random.default_rng(0).normal(size=(32, d))
    if method == "prox":
        moment = EnergyGradient().second_moment(d, float(M), apart)
        steps = max(math.ceil(((2 * moment.a * far + moment.b) / accuracy) ** 2 / moment.a), 2)
        size = 1 / math.sqrt(moment.a * steps)
        bound = rates.proximal_sgd_average(float(M), moment, size, steps, far)
        discount = rates.average_discount(moment.a, size, proximal=True)
        solver = RobbinsMonro(size, EnergyGradient(), average=True, discount=discount)
        problem, theorem = proximal_problem(target, q, draws), "theorem 8"
    else:
        moment = EntropyGradient().second_moment(d, float(M), apart)
        first, second = 16 * math.floor(2 * moment.a / mu**2) ** 2 * far, 16 * moment.b / mu**2
        steps = math.ceil(_least(first * M, second * M, accuracy))
        bound = float(M) * float(rates.projected_sgd_decaying(mu, moment, steps, far))
        solver = RobbinsMonro(schedules.Switching(mu / (2 * moment.a), 2 / mu), EntropyGradient())
        problem, theorem = projected_problem(target, q, draws, floor), "theorem 10 and the smoothness of the objective"
    promise = Certificate(
        "E KL(q | p) - min KL",
        bound,
        f"Domke, Garrigos and Gower 2023, {theorem}",
        grounds,
        kind="in expectation",
        slack=1e-9 * bound,
        details={"steps": steps, "a": moment.a, "b": moment.b, "|w_0 - w*|^2": far},
    )
    return Plan(steps, promise, solver, problem, start)


def _least(first: float, second: float, accuracy: float) -> float:
    """The smallest ``T`` with ``first / T^2 + second / T <= accuracy``."""
    return (second + math.sqrt(second**2 + 4 * accuracy * first)) / (2 * accuracy) * (1 + 1e-12)
