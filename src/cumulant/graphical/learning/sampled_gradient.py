"""Projected gradient steps whose gradients come from chains."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.certificates import Certificate
from cumulant.errors import CertificateError
from cumulant.graphical.learning.planner import SamplingPlan
from cumulant.optim.protocol import Solver

__all__ = ["SampledGradient", "SampledState"]


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
        ``"uniform"`` (fresh chains in every iteration), ``"data"`` (contrastive divergence, Hinton 2002) or
        ``"persistent"`` (chains continue, Tieleman 2008).
    step_size : float
        ``s``; constant for ``"uniform"``, else ``s / (1 + 5 k / iterations)``.
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
        value, gradient = problem.at_zero()
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
        size = self.step_size if self.starts == "uniform" else self.step_size / (1.0 + 5.0 * k / self.plan.iterations)
        path[k + 1], errors[k + 1] = problem.project(theta - size * gradient)
        return SampledState(path, errors, k + 1, x, value, gradient, draw)

    def solution(self, problem: Any, state: SampledState) -> np.ndarray:
        """The answer."""
        path, k = state.path, state.count
        if self.average == "last" or k == 0:
            return path[k].copy()
        if self.average == "all":
            return path[1 : k + 1].mean(axis=0)
        return problem.project(path[(k + 1) // 2 : k + 1].mean(axis=0))[0]

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
