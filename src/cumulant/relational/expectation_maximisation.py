"""Expectation maximisation as a solver of `optim.run`: the log-posterior of the parameters, and the method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import xlog1py, xlogy

from cumulant.certificates import Certificate
from cumulant.errors import CertificateError
from cumulant.optim.protocol import Problem, Solver
from cumulant.relational.elimination import exact, gibbs
from cumulant.relational.messages import State, double_loop, loopy
from cumulant.relational.model import SmokersModel
from cumulant.relational.network import Network
from cumulant.relational.parameters import N_PARAMETERS, Counts, Settings
from cumulant.threads import side_by_side

E_STEPS = ("loopy", "double_loop", "exact", "gibbs")


class Expectations(NamedTuple):
    """What an E-step finds, over all networks."""

    counts: Counts
    log_likelihood: float | None
    settled: bool
    messages: tuple[State, ...]


@dataclass(frozen=True, eq=False)
class NetworkPosterior(Problem):
    """``-sum log p(network | theta) - log p(theta)``, up to a constant; with messages its Bethe estimate.

    By Gibbs sampling there is no value of it: `value` is then that of ``-E[log p(networks, latents, theta)]`` under the
    counts of the last E-steps, which says only that a run is finite.
    """

    nets: Sequence[Network]
    settings: Settings
    e_step: str
    options: Mapping[str, Any]
    n_jobs: int | None = None

    shape: ClassVar[tuple[int]] = (N_PARAMETERS,)

    @property
    def estimated(self) -> bool:
        """Whether counts come from Markov chains."""
        return self.e_step == "gibbs"

    def expect(self, theta: np.ndarray, before: tuple[State, ...] = (), seeds: Any = None) -> Expectations:
        """The E-step, several networks at a time; messages begin where `before` ended."""
        model = SmokersModel(theta, self.settings.influence)

        def work(i):
            if self.e_step == "exact":
                return exact(model, self.nets[i], **self.options)
            if self.e_step == "gibbs":
                return gibbs(model, self.nets[i], **{**self.options, "rng": int(seeds[i]), "n_jobs": 1})
            method = loopy if self.e_step == "loopy" else double_loop
            return method(model, self.nets[i], **{**self.options, "start": before[i] if before else None})

        found = side_by_side(work, len(self.nets), self.n_jobs)
        return Expectations(
            sum((each.counts for each in found), Counts.zeros()),
            None if self.estimated else sum(each.require_log_likelihood() for each in found),
            all(each.settled for each in found),
            tuple(each.state for each in found if each.state is not None),
        )

    def seeds(self, generator: np.random.Generator | None) -> Any:
        """A seed for the Markov chains of each network; None where there are none."""
        return generator.integers(2**62, size=len(self.nets)) if self.estimated and generator is not None else None

    def value(self, x: Any) -> float:
        """The E-step at ``x`` from uniform messages."""
        if self.estimated:
            raise TypeError("the likelihood is not known to a Markov chain: use another e_step")
        found = self.expect(np.asarray(x, dtype=np.float64))
        assert found.log_likelihood is not None
        return -found.log_likelihood - self.settings.log_prior(np.asarray(x))

    def value_after(self, theta: np.ndarray, found: Expectations) -> float:
        """The value where the E-step has been done."""
        likelihood = found.log_likelihood
        if likelihood is None:
            successes, failures = found.counts.successes, found.counts.trials - found.counts.successes
            likelihood = float((xlogy(successes, theta) + xlog1py(failures, -theta)).sum())
        return -likelihood - self.settings.log_prior(theta)


class EMState(NamedTuple):
    """The parameters and the E-step there."""

    x: np.ndarray
    value: float
    change: float
    settled: bool
    steps: int
    successes: np.ndarray
    trials: np.ndarray
    messages: tuple[State, ...]
    generator: np.random.Generator | None

    @property
    def counts(self) -> Counts:
        """What the next M-step is of."""
        return Counts(self.successes, self.trials)


@dataclass(frozen=True)
class ExpectationMaximisation(Solver):
    """An M-step and an E-step at its answer; see `fit_em`.

    Parameters
    ----------
    warm_start : bool
        Begin messages where those of the last step ended.
    average_after : int, optional
        The step after which counts are averaged with weights ``1 / t``, for E-steps by Markov chains.
    """

    warm_start: bool = True
    average_after: int | None = None

    backend: ClassVar[str] = "host"
    every: ClassVar[int | None] = 1

    def init(self, problem: NetworkPosterior, x0: np.ndarray, rng: Any) -> EMState:
        """The E-step at the start."""
        generator = np.random.default_rng(rng) if problem.estimated else None
        return self._state(problem, x0, problem.expect(x0, seeds=problem.seeds(generator)), None, generator)

    def step(self, problem: NetworkPosterior, state: EMState) -> EMState:
        """The M-step, and the E-step there."""
        x = problem.settings.maximise(state.counts)
        before = state.messages if self.warm_start else ()
        found = problem.expect(x, before, problem.seeds(state.generator))
        return self._state(problem, x, found, state, state.generator)

    def measure(self, problem: NetworkPosterior, state: EMState) -> dict[str, float]:
        """The value, how much it changed relatively between settled messages, whether these settled, and ``theta``."""
        parameters = {f"theta_{k}": value for k, value in enumerate(state.x)}
        return {"value": state.value, "residual": state.change, "settled": state.settled} | parameters

    def certify(self, problem: NetworkPosterior, state: EMState) -> Certificate:
        """None: the objective may have other local maxima."""
        raise CertificateError(
            "expectation maximisation ends in a stationary point, and how far it is from the maximum is not known",
            "the objective is convex",
        )

    def _state(
        self, problem: NetworkPosterior, x: np.ndarray, found: Expectations, before: EMState | None, generator: Any
    ) -> EMState:
        value, change, counts, steps = problem.value_after(x, found), np.inf, found.counts, 0
        if before is not None:
            steps = before.steps + 1
            if self.average_after is not None:
                share = 1.0 / max(1, steps - self.average_after + 1)
                counts = before.counts.mixed_with(counts, share)
            if not problem.estimated and found.settled and before.settled:
                change = abs(value - before.value) / max(abs(value), 1.0)
        return EMState(
            x, value, change, found.settled, steps, counts.successes, counts.trials, found.messages, generator
        )
