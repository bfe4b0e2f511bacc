"""Islands: independent populations over one bridge, by threads, and what they say together."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from cumulant import checks, randomness
from cumulant.certificates import Certificate, Interval, assume, by_construction, check, issuer, recipe_of
from cumulant.errors import CumulantError
from cumulant.particles.bridges import Bridge, on_the_word_of
from cumulant.particles.cluster import run_on_cluster
from cumulant.particles.engine import Outcome, Settings, run_population
from cumulant.particles.exchange import run_exchanging
from cumulant.particles.result import ParticleResult, rounding_slack
from cumulant.sampling.annealing import lower_from_estimates
from cumulant.sampling.diagnostics import log_mean_exp
from cumulant.threads import side_by_side


@dataclasses.dataclass(frozen=True, eq=False)
class Runs:
    """What can be run again: a bridge, the settings, the seeds of the islands that came back, the probability that the
    claim fails, how many islands were lost, and after how many steps they communicate, if they do.
    """

    bridge: Bridge
    settings: Settings
    seeds: tuple[int, ...]
    delta: float
    lost: int = 0
    exchange: int | None = None

    def again(self, n_jobs: int | None = None) -> list[Outcome]:
        """All islands, from their seeds."""
        if self.exchange:
            return run_exchanging(_on_one_thread(self.bridge), self.settings, self.seeds, self.exchange)[0]
        return _run_islands(self.bridge, self.settings, self.seeds, n_jobs)

    def estimates(self, outcomes: Sequence[Outcome]) -> np.ndarray:
        """Logarithms of independent unbiased estimates of ``Z``: one for each island, or one for each particle where
        particles never met (no resampling was allowed); one alone where islands communicate.
        """
        if self.exchange:
            return np.array([_log_mean([outcome.log_z for outcome in outcomes])])
        return np.concatenate([outcome.independent for outcome in outcomes])


def run(
    bridge: Bridge,
    n_particles: int,
    *,
    n_islands: int = 1,
    resampling: str = "stratified",
    ess_threshold: float = 0.5,
    chain_length: int = 1,
    exchange: int | None = None,
    ancestry: bool = False,
    pilot: bool = False,
    delta: float = 0.05,
    method: str = "particles",
    total: int | None = None,
    rng: Any = None,
    progress: Any = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    client: Any = None,
) -> ParticleResult:
    """Run populations over a bridge: the function that all methods of this package share.

    Parameters
    ----------
    bridge : Bridge
    n_particles : int
        In each island.
    n_islands : int
        Independent populations. Their average is the estimate; with several, the certificate of ``log Z`` is tight.
    resampling, ess_threshold
        A method of `sampling.resample`, done where the effective size falls below ``ess_threshold * n_particles``.
    chain_length : int
        Above one: waste-free moves. ``n_particles / chain_length`` particles are resampled at every step, and all
        states of the chains that begin with them are kept (Dau and Chopin 2022). The estimate is unbiased as before.
    exchange : int, optional
        Let islands communicate, after every so many steps: where their estimates of ``Z`` are uneven (an effective
        number below half), whole islands are resampled by them (Vergé and others 2015). For paths that are given. The
        mean of the islands stays unbiased, but it is one estimate and not several: the certificate is that of a single
        island, and the error is not known but from other runs.
    ancestry : bool
        Keep the ancestors of every step in the draws.
    pilot : bool
        Let a first population design the path, and run the islands over that path with fresh particles. The estimate is
        then unbiased, and the certificate holds, for bridges whose path is not fixed.
    delta : float
        The probability with which the certified lower bound may fail.
    n_jobs : int, optional
        Threads, over islands or over the particles of a single one.
    client : distributed.Client, optional
        Run the islands on the workers of a Dask cluster instead. The answer is the same. An island whose workers were
        lost again and again is left out of the answer, which says so (`ParticleResult.lost`).
    """
    if isinstance(bridge, type) or not isinstance(bridge, Bridge):
        raise TypeError(
            f"bridge must be a Bridge: an object with begin, advance, move, kinds, draws; got {bridge!r:.60}"
        )
    checks.instance("ancestry", ancestry, bool, "True or False")
    settings = Settings(n_particles, resampling, ess_threshold, ancestry, chain_length)
    checks.whole("n_islands", n_islands)
    checks.fraction("delta", delta)
    checks.instance("pilot", pilot, bool, "True or False")
    if time_limit is not None:
        checks.positive("time_limit", time_limit)
    if exchange is not None:
        checks.whole("exchange", exchange)
    seed = randomness.seed(rng)
    seeds = island_seeds(seed, n_islands)
    if pilot and not bridge.fixed:
        first = run_population(bridge, settings, _pilot_seed(seed), title=method, time_limit=time_limit)
        if first.status != "converged" or first.log_z == -np.inf:
            why = first.status if first.status != "converged" else "every particle had weight zero"
            raise CumulantError(f"the pilot run did not reach the end of its path ({why}): there is none to use")
        bridge = bridge.frozen(first)  # type: ignore[attr-defined]
    lost = 0
    if exchange is not None:
        if not bridge.fixed:
            raise ValueError(
                "exchange needs a path that is given, so that all islands are at the same distribution: give "
                "temperatures, or pilot=True"
            )
        several = {"n_jobs": n_jobs, "client": client, "time_limit": time_limit}
        outcomes, seeds = run_exchanging(_on_one_thread(bridge), settings, seeds, exchange, **several)
        lost = n_islands - len(seeds)
    elif client is not None:
        work = functools.partial(_island, _on_one_thread(bridge), settings, time_limit)
        found = run_on_cluster(client, work, seeds)
        seeds = tuple(seed for seed, outcome in zip(seeds, found, strict=True) if outcome is not None)
        outcomes, lost = [outcome for outcome in found if outcome is not None], n_islands - len(seeds)
    elif n_islands == 1:
        outcomes = [
            run_population(
                bridge, settings, seeds[0], progress=progress, title=method, total=total, time_limit=time_limit
            )
        ]
    else:
        outcomes = _run_islands(bridge, settings, seeds, n_jobs, time_limit=time_limit)
    if not outcomes:
        raise CumulantError("every island was lost with its worker: there is no answer")
    runs = Runs(bridge, settings, seeds, delta, lost, exchange)
    ended = all(outcome.status == "converged" for outcome in outcomes)
    again = not (exchange and lost)  # who was lost when, and so what the others exchanged, cannot be run again
    certificate = _certificate(runs, outcomes) if bridge.fixed and ended and again else None
    return ParticleResult(method, bridge, settings, seed, outcomes, certificate, runs)


def island_seeds(seed: int, n_islands: int) -> tuple[int, ...]:
    """The seed of each island: that of the ``i``-th does not depend on how many there are."""
    return tuple(int(np.random.default_rng([seed, i]).integers(2**63)) for i in range(n_islands))


def _pilot_seed(seed: int) -> int:
    return int(np.random.default_rng([seed, 2**32]).integers(2**63))


def _run_islands(
    bridge: Bridge, settings: Settings, seeds: Sequence[int], n_jobs: int | None, *, time_limit: float | None = None
) -> list[Outcome]:
    work = functools.partial(_island, _on_one_thread(bridge), settings, time_limit)
    return side_by_side(lambda i: work(seeds[i]), len(seeds), n_jobs)


def _island(bridge: Bridge, settings: Settings, time_limit: float | None, seed: int) -> Outcome:
    return run_population(bridge, settings, seed, time_limit=time_limit)


def _on_one_thread(bridge: Bridge) -> Bridge:
    """An island has one thread: those of a pool must not wait for each other."""
    return dataclasses.replace(bridge, n_jobs=1) if hasattr(bridge, "n_jobs") else bridge  # type: ignore[type-var]


def _log_mean(logs: Sequence[float]) -> float:
    return log_mean_exp(logs)[0] if max(logs) > -np.inf else -np.inf


@issuer
def lower_bound(given: Runs, answer: Any) -> Certificate:
    """The certificate of some runs, from runs with the same seeds: `answer` are the estimates that are claimed."""
    outcomes = given.again()
    found, claimed = given.estimates(outcomes), np.asarray(answer, dtype=np.float64)
    check(
        found.shape == claimed.shape and np.allclose(found, claimed, rtol=1e-9, atol=1e-9),
        "the estimates are those of these seeds",
    )
    return _certificate(given, outcomes)


def _certificate(runs: Runs, outcomes: Sequence[Outcome]) -> Certificate:
    found, name = runs.estimates(outcomes), type(runs.bridge).__name__
    fixed = check(runs.bridge.fixed, "the path of distributions does not depend on the particles")
    return Certificate(
        "log Z",
        Interval(lower_from_estimates(found, runs.delta), np.inf),
        "Markov's inequality on independent unbiased estimates of Z (Gogate, Bidyuk and Dechter 2007)",
        (
            fixed,
            by_construction("each estimate of Z is unbiased", "sequential Monte Carlo on a fixed path"),
            assume("random numbers are independent and uniform, and no setting was chosen by what they led to"),
            *on_the_word_of(runs.bridge, f"the draws, weights and moves of {name} are those of its path"),
            *getattr(runs.bridge, "assumptions", ()),
            *([assume("islands were lost whatever their estimates were")] if runs.lost else []),
        ),
        kind="with probability",
        delta=runs.delta,
        slack=rounding_slack(outcomes, runs.bridge),
        recipe=recipe_of(lower_bound),
        details={"estimates": float(found.size)},
    )
