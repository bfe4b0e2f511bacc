"""The methods of `graphical.fit`, each an object of settings."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar, Literal, NotRequired, TypedDict, Unpack

import numpy as np

from cumulant import randomness
from cumulant.errors import CertificateError
from cumulant.graphical.learning.chains import SubgraphChains
from cumulant.graphical.learning.mcmc import SampledGradient, SampledProblem, answer_of, certify_sampled_fit, constants
from cumulant.graphical.learning.planner import SamplingPlan, plan_convex, plan_strongly_convex
from cumulant.graphical.learning.problem import Fit, LearningProblem, SampledRun
from cumulant.graphical.mixing.projected_gradient import SpectralProjectedGradient
from cumulant.optim.driver.checkpoints import Checkpoint
from cumulant.optim.driver.result import Result, Snapshot
from cumulant.optim.driver.run import run
from cumulant.optim.solvers.lbfgs import LBFGS
from cumulant.sampling.chains import require_counts

_BLOCK = 100  # iterations of L-BFGS in one step


class RunSettings(TypedDict):
    """What ends or shows a run, as `optim.run` names it."""

    callback: NotRequired[Callable[[Snapshot], Any] | None]
    progress: NotRequired[Any]
    time_limit: NotRequired[float | None]
    checkpoint: NotRequired[str | PathLike | Checkpoint | None]


@dataclass(frozen=True)
class MaximumLikelihood:
    """Gradients by elimination, for models of small width: L-BFGS, or in a set spectral projected gradient.

    With ``l2 > 0`` the gap ``f(theta) - f*`` is certified (see `certify_gap`); without, nothing is.

    Parameters
    ----------
    tol : float
        The certified gap aimed at, relative to the objective.
    max_steps : int
        Iterations.
    """

    tol: float = 1e-10
    max_steps: int = 5000

    name: ClassVar[str] = "exact"
    objective: ClassVar[str] = "likelihood"

    def fit(
        self, problem: LearningProblem, *, rng: Any = None, n_jobs: int | None = None, **running: Unpack[RunSettings]
    ):
        """Minimise; nothing is drawn."""
        require_counts(max_steps=(self.max_steps, 1))
        block = 1 if problem.fast_set is not None else min(_BLOCK, int(self.max_steps))
        solver = SpectralProjectedGradient() if problem.fast_set is not None else LBFGS(iterations=block)
        steps = -(-int(self.max_steps) // block)
        result = run(solver, problem, np.zeros(problem.shape), max_steps=steps, tol=self.tol, **running)
        certificate, refusal = result.certificate, result.refusal
        if certificate is None:
            value, gradient = problem.value_and_gradient(result.x)
            if problem.l2 == 0:
                refusal = (
                    "no certificate: without l2 the objective is not strongly convex; the largest entry of its "
                    f"gradient is {float(np.abs(gradient).max(initial=0.0)):.3g}"
                )
        else:
            value = certificate.details["value"]
        return Fit(
            problem.bind(result.x), certificate, self.name, refusal, result.status, value=value, seconds=result.seconds,
            trace=result.trace, problem=problem,
        )  # fmt: skip


@dataclass(frozen=True)
class PseudoLikelihood(MaximumLikelihood):
    """The conditional likelihoods of all variables given the rest (Besag 1975), by L-BFGS.

    The certificate is about that objective: it says nothing about the likelihood.
    """

    name: ClassVar[str] = "pseudo_likelihood"
    objective: ClassVar[str] = "pseudo_likelihood"


@dataclass(frozen=True)
class CompositeLikelihood(MaximumLikelihood):
    """The conditional likelihoods of all pairs that share a table, given the rest (Lindsay 1988), by L-BFGS.

    The certificate is about that objective: it says nothing about the likelihood.
    """

    name: ClassVar[str] = "composite"
    objective: ClassVar[str] = "composite"


@dataclass(frozen=True)
class MCMC:
    """Projected gradient with gradients from Gibbs sampling in a fast-mixing set (Domke 2015).

    ``theta_k = project(theta_{k-1} - g_k / L)``, ``g_k`` from fresh chains. With ``l2 > 0`` the last
    iterate is the answer and ``|theta - theta*| <= eps`` is certified; without (and ``fields=False``), the mean of the
    iterates and ``f(theta) - f* <= eps``; each with probability ``1 - delta``, by as many iterations, chains and
    updates as that needs. A run that ends early is certified for the iterations it made. For models whose tables have
    at most two variables, in a set; and, with ``l2 > 0``, for a `families.SampledFamily`, whose own sampler takes the
    place of chains.

    Parameters
    ----------
    eps, delta : float
        The accuracy, and the probability of missing it.
    plan : SamplingPlan, optional
        What to run instead of the plan for `eps`; the certificate says what it is good for.
    smoothness : float, optional
        ``L``. Without it the smaller of two that are proved: ``R^2 + l2``, and what the spectral gap of Gibbs sampling
        in the set gives, which does not grow with the model. A smaller one makes a faster run whose certificate says
        that ``L`` is assumed. One below the curvature at zero, ``l2`` included, is refused.
    max_work : float
        Refuse a plan of more updates than this.
    starts : str
        Where the fresh chains of every iteration begin: ``"uniform"``, all states equally likely, or ``"data"``,
        observations drawn with replacement. The theorem has any start, so that the guarantee is the same; from the data
        chains have less far to go.
    """

    eps: float = 0.1
    delta: float = 0.1
    plan: SamplingPlan | None = None
    smoothness: float | None = None
    max_work: float = 3e10
    starts: Literal["uniform", "data"] = "uniform"

    name: ClassVar[str] = "mcmc"
    objective: ClassVar[str] = "likelihood"

    def fit(
        self,
        problem: SampledProblem,
        *,
        rng: Any = None,
        n_jobs: int | None = None,
        steps: int | None = None,
        **running: Unpack[RunSettings],
    ) -> Fit:
        """Plan, run, and certify; `steps` repeats a run that ended before its plan."""
        if self.starts not in ("uniform", "data"):
            raise ValueError(f"starts must be 'uniform' or 'data'; got {self.starts!r}")
        if self.starts == "data" and (problem.data is None or isinstance(problem.chains, SubgraphChains)):
            raise ValueError("starts='data' needs the data themselves, and chains over the variables: Gibbs sampling")
        known = constants(problem, problem.smoothness_in_set if self.smoothness is None else self.smoothness)
        plan, strong = self.plan, problem.l2 > 0
        if plan is None and strong:
            room = self.eps - problem.bias / problem.l2
            if not room > 0:
                raise CertificateError(
                    f"eps = {self.eps:g} cannot be reached: the bias of the sampler alone can move theta by "
                    f"{problem.bias / problem.l2:.3g}",
                    "draws are near enough to the model",
                )
            plan = plan_strongly_convex(room, self.delta, l2=problem.l2, **known)
        elif plan is None:
            if problem.bias > 0:
                raise CertificateError("without l2, draws with a bias need a plan: give one", "draws have no bias")
            plan = plan_convex(self.eps, self.delta, **known)
        if plan.work > self.max_work:
            raise CertificateError(
                f"eps = {self.eps:g} and delta = {self.delta:g} need {plan.work:.3g} updates, more than "
                f"max_work = {self.max_work:.3g}: raise eps, l2 or max_work, or give a plan (this one: "
                f"{plan.iterations} iterations, {plan.chains} chains, {plan.updates} updates)",
                "enough work is allowed",
            )
        seed = randomness.seed(rng)
        solver = SampledGradient(plan, self.starts, 1.0 / known["L"], "last" if strong else "all", n_jobs)
        result = _sampled(solver, problem, seed, running, steps)
        path, errors = _path(result)
        record = SampledRun(seed, self.delta, known["L"], errors, self.starts)
        found = Fit(
            problem.bind(answer_of(problem, path)), None, self.name, "", result.status, plan, path, record,
            seconds=result.seconds, trace=result.trace, problem=problem,
        )  # fmt: skip
        certificate = certify_sampled_fit(problem, found)
        reached = self.plan is None and result.status == "max_steps" and certificate.upper <= self.eps
        return replace(found, certificate=certificate, status="converged" if reached else result.status)


@dataclass(frozen=True)
class ContrastiveDivergence:
    """Stochastic gradient with short chains that start at data (Hinton 2002). Nothing is certified.

    Steps are ``step_size / (1 + 5 k / iterations)``; the answer is the mean of the second half of the iterates.

    Parameters
    ----------
    iterations : int
    sweeps : int
        Updates of each chain in one iteration, over the number of variables.
    chains : int
    step_size : float
    """

    iterations: int = 300
    sweeps: int = 1
    chains: int = 500
    step_size: float = 0.2

    name: ClassVar[str] = "contrastive_divergence"
    objective: ClassVar[str] = "likelihood"
    starts: ClassVar[Literal["data", "persistent"]] = "data"
    refusal: ClassVar[str] = (
        "no certificate: contrastive divergence runs chains from the data for a few updates, and the bias of its "
        "gradient is unknown"
    )

    def fit(
        self, problem: LearningProblem, *, rng: Any = None, n_jobs: int | None = None, **running: Unpack[RunSettings]
    ) -> Fit:
        """Run all iterations."""
        if self.starts == "data" and problem.data is None:
            raise ValueError(f"method={self.name!r} needs the data themselves: chains start at them")
        plan = SamplingPlan(self.iterations, self.chains, self.sweeps * problem.n, "no guarantee")
        solver = SampledGradient(plan, self.starts, self.step_size, "second half", n_jobs)
        result = _sampled(solver, problem, rng, running)
        return Fit(
            problem.bind(result.x), None, self.name, self.refusal, result.status, plan, _path(result)[0],
            seconds=result.seconds, trace=result.trace, problem=problem,
        )  # fmt: skip


@dataclass(frozen=True)
class PersistentChains(ContrastiveDivergence):
    """Stochastic gradient with chains that continue from iteration to iteration (Tieleman 2008). Nothing is certified.

    Settings are those of `ContrastiveDivergence`.
    """

    name: ClassVar[str] = "persistent"
    starts: ClassVar[Literal["data", "persistent"]] = "persistent"
    refusal: ClassVar[str] = (
        "no certificate: persistent chains are not started afresh, and the theorem needs independent ones"
    )


Method = MaximumLikelihood | MCMC | ContrastiveDivergence

METHODS: dict[str, type[Method]] = {
    kind.name: kind
    for kind in (
        MCMC,
        MaximumLikelihood,
        PseudoLikelihood,
        CompositeLikelihood,
        ContrastiveDivergence,
        PersistentChains,
    )
}


def method_named(method: str | Method) -> Method:
    """The method itself, or the one of that name with its default settings."""
    if isinstance(method, Method):
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, or its settings; got {method!r}")
    return METHODS[method]()


def _sampled(
    solver: SampledGradient, problem: SampledProblem, rng: Any, running: RunSettings, steps: int | None = None
) -> Result:
    K = int(solver.plan.iterations)
    steps = K if steps is None else steps
    return run(
        solver, problem, np.zeros(problem.shape), max_steps=steps, tol=None, rng=rng, every=max(1, K // 1000), **running
    )


def _path(result: Result) -> tuple[np.ndarray, np.ndarray]:
    """The iterates that were made, and the errors of their projections."""
    if result.state is None:
        raise KeyboardInterrupt("the run was interrupted in the middle of a step, and its path is lost")
    made = result.state.count + 1
    return result.state.path[:made].copy(), result.state.errors[:made].copy()
