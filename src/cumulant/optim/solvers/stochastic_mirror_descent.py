"""Stochastic mirror descent on the likelihood of an exponential family."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import randomness
from cumulant.certificates import check
from cumulant.errors import CertificateError, DomainError
from cumulant.optim.problems.likelihoods import SampleLikelihood, certify_likelihood
from cumulant.optim.protocol import Solver
from cumulant.optim.schedules import InverseCount, as_schedule
from cumulant.pytrees import pytree


class StochasticMirrorDescentState(NamedTuple):
    """The mean parameter, which is the dual variable, and the position in the stream."""

    mean: Any
    step: Any
    key: Any
    best: Any  # the maximum-likelihood estimate of the whole sample, where there is one
    best_exists: Any


@pytree
@dataclasses.dataclass(frozen=True)
class StochasticMirrorDescent(Solver):
    """``mu_n = mu_{n-1} - gamma_n (mu_{n-1} - T(x_n))``, ``theta_n = grad A*(mu_n)``: one observation a step.

    With ``gamma_n = 1 / (n0 + n)`` this *is* the MAP estimate of a stream under the conjugate prior of mean ``mu_0``
    and strength ``n0``, exactly; with ``n0 = 0`` the first step forgets ``mu_0`` and it is the maximum likelihood (Le
    Priol 2021, section 5.3). For the numerically most careful version of that estimate see `families.StreamingMAP`.
    For other steps `rates` has what is known: `rates.smd_gap` for constant steps, `rates.smd_optimum_variance` for
    decreasing ones.

    The problem is a `SampleLikelihood`. The certificate is the exact distance ``KL(p_MLE || p_theta)`` to the
    likelihood of the whole sample. While the mean lies on the boundary of its domain (one observation of a normal
    law, an unseen category), there is no ``theta``: the value is infinite, and the run goes on.

    Parameters
    ----------
    family : ExponentialFamily
    schedule : schedule or float
        Steps in (0, 1], which keep the mean in its domain.
    order : str
        ``"stream"``: observations in the order given, round again after the last. ``"random"``: drawn with replacement.

    Examples
    --------
    >>> from cumulant import families, optim
    >>> fam, x = families.Exponential(), [2.0, 3.0, 2.0]
    >>> solver = StochasticMirrorDescent(fam, optim.InverseCount(1.0))
    >>> result = optim.run(solver, optim.SampleLikelihood.of(fam, x), fam.natural(rate=1.0), max_steps=3, tol=None)
    >>> result.x, fam.map(x, families.ConjugatePrior(mean=[1.0], strength=1.0))
    (array([-0.5]), array([-0.5]))
    """

    family: Any
    schedule: Any = dataclasses.field(default_factory=InverseCount)
    order: str = dataclasses.field(default="stream", metadata={"static": True})

    backend: ClassVar[str] = "jax"
    every: ClassVar[int] = 100

    def __post_init__(self):
        if self.order not in ("stream", "random"):
            raise ValueError(f"order must be 'stream' or 'random'; got {self.order!r}")
        if isinstance(self.schedule, bool | int | float):
            object.__setattr__(self, "schedule", as_schedule(self.schedule, "schedule"))

    def init(self, problem, x0, rng):
        """The mean parameter of ``x0``."""
        if not isinstance(problem, SampleLikelihood):
            raise TypeError(f"StochasticMirrorDescent takes a SampleLikelihood; got {type(problem).__name__}")
        if problem.family != self.family:
            raise ValueError(f"the solver is for {self.family} and the problem is a sample of {problem.family}")
        first = float(self.schedule(0))
        if not 0 < first <= 1:
            raise ValueError(
                f"steps must be in (0, 1] to keep the mean in its domain; the schedule starts with {first}"
            )
        target = np.asarray(problem.target, dtype=np.float64)
        exists = bool(self.family.in_mean_domain(target))
        best = self.family.to_natural(target) if exists else np.zeros_like(target)
        mean = self.family.to_mean(x0)
        return StochasticMirrorDescentState(mean, 0, randomness.key(rng), best.astype(mean.dtype), exists)

    def step(self, problem, state):
        """Take in one observation."""
        n = problem.statistics.shape[0]
        row, key = state.step % n, state.key
        if self.order == "random":
            key, now = jax.random.split(state.key)
            row = jax.random.randint(now, (), 0, n)
        mean = state.mean + self.schedule(state.step) * (problem.statistics[row] - state.mean)
        return state._replace(mean=mean, step=state.step + 1, key=key)

    def solution(self, problem, state):
        """``theta = grad A*(mu)``; not finite where the mean is on the boundary of its domain."""
        inside = self.family.in_mean_domain(state.mean)
        return jnp.where(inside, self.family.to_natural(state.mean), jnp.nan)

    def measure(self, problem, state):
        """The likelihood of the whole sample, and its distance to the best."""
        theta = self.solution(problem, state)
        inside = jnp.all(jnp.isfinite(theta)) & self.family.in_domain(theta)
        value = jnp.where(inside, problem.value(theta), jnp.inf)
        gap = self.family.kl(state.best, theta)
        return {"value": value, "bound": jnp.where(inside & state.best_exists, gap, jnp.inf)}

    def certify(self, problem, state):
        """The exact gap ``KL(p_MLE || p_theta)``."""
        mean = np.asarray(state.mean, dtype=np.float64)
        check(self.family.in_mean_domain(mean), "the mean parameter is inside its domain", f"mean {mean}")
        try:
            theta = self.family.to_natural(mean)
        except DomainError as problem_:
            raise CertificateError(f"no certificate: {problem_}", assumption="theta is representable") from problem_
        return certify_likelihood(problem, theta)
