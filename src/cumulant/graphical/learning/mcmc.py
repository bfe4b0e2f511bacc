"""Projected gradient steps whose gradients come from chains; what a run of them proves, and doing it again."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.certificates import Assumption, Certificate, assume, by_construction, check, issuer, rounding
from cumulant.errors import CertificateError
from cumulant.graphical.learning.planner import SamplingPlan, bound_convex, bound_strongly_convex
from cumulant.graphical.learning.problem import Fit, LearningProblem
from cumulant.graphical.learning.sampled_family import SampledFamilyProblem
from cumulant.optim.protocol import Solver

SampledProblem = LearningProblem | SampledFamilyProblem


class SampledState(NamedTuple):
    """The iterates so far, how far their projections can be off, the chains, and an estimate of the objective."""

    path: np.ndarray
    errors: np.ndarray
    count: int
    chains: np.ndarray
    value: float  # at the iterate before the last
    gradient: np.ndarray  # there
    generator: np.random.Generator


@dataclass(frozen=True)
class SampledGradient(Solver):
    """``theta_k = project(theta_{k-1} - s_k g_k)`` with ``g_k`` from chains of Gibbs sampling: `plan.chains` of them,
    `plan.updates` updates each.

    The recorded value is an estimate: the exact objective at zero plus the integral of the sampled gradient along the
    path, by the trapezoidal rule.

    Parameters
    ----------
    plan : SamplingPlan
    starts : str
        ``"uniform"`` or ``"data"`` (fresh chains in every iteration, from uniform states or from observations drawn
        with replacement; with few updates the latter is contrastive divergence, Hinton 2002), or ``"persistent"``
        (chains continue, Tieleman 2008).
    step_size : float
        ``s``; ``s / (1 + 5 k / iterations)`` where the answer is the mean of the second half.
    average : str
        Which iterates make the answer: ``"last"``, ``"all"`` after the start, or the ``"second half"``.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    """

    plan: SamplingPlan
    starts: Literal["uniform", "data", "persistent"]
    step_size: float
    average: Literal["last", "all", "second half"]
    n_jobs: int | None = None

    backend: ClassVar[str] = "host"

    def init(self, problem: Any, x0: np.ndarray, rng: Any) -> SampledState:
        """At the projection of `x0`."""
        draw, K = randomness.generator(rng), self.plan.iterations
        path, errors = np.zeros((K + 1, x0.size)), np.zeros(K + 1)
        path[0], errors[0] = problem.project(x0)
        chains = np.zeros((0, 0)) if self.starts == "uniform" else problem.chains.uniform(draw, self.plan.chains)
        value, gradient = problem.at_start()
        return SampledState(path, errors, 0, chains, value, gradient, draw)

    def step(self, problem: Any, state: SampledState) -> SampledState:
        """One gradient, one projection."""
        path, errors, k, x, value, before, draw = state
        if self.starts == "uniform":
            x = problem.chains.uniform(draw, self.plan.chains)
        elif self.starts == "data":
            assert problem.data is not None
            x = problem.chains.at(problem.data[draw.integers(0, len(problem.data), self.plan.chains)])
        theta = path[k]
        mean = problem.chains.run(x, theta, self.plan.updates, int(draw.integers(2**63)), self.n_jobs)
        gradient = mean - problem.mean + problem.l2 * theta
        if k > 0:
            value += 0.5 * float((before + gradient) @ (theta - path[k - 1]))
        size = self.step_size / (1.0 + 5.0 * k / self.plan.iterations if self.average == "second half" else 1.0)
        path[k + 1], errors[k + 1] = problem.project(theta - size * gradient)
        return SampledState(path, errors, k + 1, x, value, gradient, draw)

    def solution(self, problem: Any, state: SampledState) -> np.ndarray:
        """The answer."""
        path, k = state.path, state.count
        if self.average == "last" or k == 0:
            return path[k].copy()
        if self.average == "all":
            return path[1 : k + 1].mean(axis=0)
        return path[(k + 1) // 2 : k + 1].mean(axis=0)  # in the set, which is convex

    def measure(self, problem: Any, state: SampledState) -> dict[str, float]:
        """An estimate of the objective at the last iterate, and the norm of the sampled gradient."""
        k = state.count
        move = state.path[k] - state.path[k - 1] if k else np.zeros(state.path.shape[1])
        return {
            "value": state.value + float(state.gradient @ move),
            "gradient_norm": float(np.linalg.norm(state.gradient)),
        }

    def certify(self, problem: Any, state: SampledState) -> Certificate:
        """The certificate is about the whole run, and `fit` issues it."""
        raise CertificateError("no certificate: it is issued for the whole run", "the run has ended")


@issuer
def certify_sampled_fit(problem: SampledProblem, fit: Fit) -> Certificate:
    """What a fit by ``"mcmc"`` proves: ``|theta - theta*|`` with ``l2 > 0``, else ``f(theta) - f*``.

    The constants (``R``, ``L``, the distance to the optimum, the rate of mixing) and the bound of the plan come from
    the problem; where fresh chains of Gibbs sampling began does not matter, as mixing is counted from the worst start.
    Every iterate must lie in the set, the first be the projection of zero, and the answer be the last of them (with
    ``l2 > 0``) or their mean: `CertificateError` where that is not so. That the steps in between are what the chains
    gave is not seen from here; `replay` does them again.
    """
    plan, run, path = fit.plan, fit.run, fit.path
    if plan is None or run is None or path is None:
        raise CertificateError(f"this is no fit by sampling with a guarantee: its method is {fit.method!r}")
    done = len(path) - 1
    check(
        1 <= done <= plan.iterations and path.shape[1:] == problem.shape and run.errors.shape == (len(path),),
        "the path is one of the plan",
        f"{done} of {plan.iterations} iterations",
    )
    check((path[0] == problem.project(np.zeros(problem.shape))[0]).all(), "the run starts at zero")
    answer = np.array_equal(problem.full(answer_of(problem, path)), fit.model.theta)
    check(answer, "the model is what the path ends in")
    mixing, grounds = problem.sampling(path)
    known = {**constants(problem, run.smoothness), "mixing": mixing}
    strong, errors = problem.l2 > 0, run.errors
    if strong:
        bound = bound_strongly_convex(plan, l2=problem.l2, delta=run.delta, done=done, **known)
        bound += (float(errors.max(initial=0.0)) * known["L"] + problem.bias) / problem.l2
    else:
        farther = known["distance"] + 2.0 * float(errors.sum()) + float(np.linalg.norm(errors))
        biased = {"mixing": problem.bias / (2.0 * known["R"])} if problem.bias > 0 else {}
        bound = bound_convex(plan, delta=run.delta, done=done, **{**known, "distance": farther, **biased})
    return Certificate(
        "|theta - theta*|" if strong else "f(theta) - f*",
        bound,
        "projected gradient with sampled gradients: Domke 2015, " + ("theorem 6, corrected" if strong else "theorem 2"),
        (*grounds, _smooth(problem, known["L"], run.smoothness)),
        kind="with probability",
        delta=run.delta,
        slack=rounding(bound, known["distance"], terms=64.0 + done),
        details={
            **({} if mixing is None or mixing.kappa is None else {"kappa": mixing.kappa}),
            "L": known["L"],
            "R": known["R"],
            "distance from start at most": known["distance"],
        },
    )


def replay(fit: Fit, *, problem: SampledProblem | None = None, n_jobs: int | None = None) -> Fit:
    """Do a fit by ``"mcmc"`` again from its seed; `CertificateError` where anything comes out differently.

    The chains are the same bit for bit, whatever `n_jobs`; projections pass through BLAS, and the path may differ by
    1e-9 of its length on another machine. Returns the new fit with its own certificate, which is then computed from
    nothing but the problem (`fit.problem`, unless one is given), the seed and the plan.

    Examples
    --------
    >>> from cumulant.graphical import MCMC, FastMixing, SamplingPlan, fit
    >>> settings = {"mixing": FastMixing(0.5, "box"), "l2": 1.0, "fields": False}
    >>> found = fit([0.3], [(0, 1)], method=MCMC(plan=SamplingPlan(5, 20, 10)), rng=7, **settings)
    >>> replay(found).certificate == found.certificate
    True
    """
    from cumulant.graphical.learning.methods import MCMC

    if fit.plan is None or fit.run is None or fit.path is None:
        raise ValueError(f"fit must be one by method='mcmc'; got {fit.method!r}")
    run, given = fit.run, fit.problem if problem is None else problem
    method = MCMC(
        delta=run.delta,
        plan=fit.plan,
        smoothness=given.smoothness if run.smoothness is None else run.smoothness,
        max_work=math.inf,
        starts=run.starts,  # type: ignore
    )
    again = method.fit(given, rng=fit.run.seed, n_jobs=n_jobs, steps=len(fit.path) - 1)
    assert again.path is not None
    same = again.path.shape == fit.path.shape and np.allclose(again.path, fit.path, rtol=0.0, atol=1e-9)
    if not (same and np.allclose(again.model.theta, fit.model.theta, rtol=0.0, atol=1e-9)):
        raise CertificateError(
            f"the run cannot be repeated: seed {fit.run.seed} gives another path", "the run is what its seed gives"
        )
    return replace(again, status=fit.status)


def constants(problem: SampledProblem, smoothness: float | None) -> dict[str, Any]:
    """``R``, ``L``, a bound on ``|theta*|`` and the mixing of the set: what the theorems are about.

    A `smoothness` below what the Hessian at zero shows is refused; without one (runs of earlier versions that were
    given none) it is ``R^2 + l2``, which they used.
    """
    mixing, distance = problem.sampling(np.zeros((0, *problem.shape)))[0], problem.distance_from_start()
    if not math.isfinite(distance):
        raise CertificateError(
            "no certificate: without l2 a bound on |theta*| is needed, and fields are not bounded: give l2 > 0, or "
            "fields=False where there is a set",
            "a bound on |theta_0 - theta*|",
        )
    least = problem.least_smoothness
    if smoothness is not None and not (math.isfinite(smoothness) and smoothness >= least * (1.0 - 1e-12)):
        raise ValueError(
            f"smoothness must be finite and at least {least:.6g}, the largest curvature that is certain at theta = 0 "
            f"(l2 included); got {smoothness}. Without it, the proved {problem.smoothness_in_set:.6g} is used"
        )
    L = problem.smoothness if smoothness is None else float(smoothness)
    return {"R": problem.R, "L": L, "distance": distance, "mixing": mixing}


def answer_of(problem: SampledProblem, path: np.ndarray) -> np.ndarray:
    """The last iterate with ``l2 > 0``, else their mean."""
    return path[-1] if problem.l2 > 0 else path[1:].mean(axis=0)


def _smooth(problem: SampledProblem, L: float, given: float | None) -> Assumption:
    proved = problem.smoothness_in_set
    if proved <= L:
        why = "R^2 + l2" if proved == problem.smoothness else "l2 and the spectral gap of Gibbs sampling"
        return by_construction("the gradient is L-Lipschitz on the set", f"L = {L:g} >= {proved:g}, by {why}")
    return assume("the gradient is L-Lipschitz on the set", f"L = {given:g} was given; {proved:g} is proved")
