"""Learning the fourteen probabilities from networks by expectation maximisation: `fit_em`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cumulant import checks, optim, randomness
from cumulant.certificates import Certificate, Subject, by_construction, check, issuer, rounding
from cumulant.relational.elimination import LARGEST, log_joint_table, log_total
from cumulant.relational.expectation_maximisation import (
    E_STEPS,
    EMState,
    ExpectationMaximisation,
    NetworkPosterior,
    Settings,
)
from cumulant.relational.model import SmokersModel, options_of, posterior_by
from cumulant.relational.network import Network, networks_of
from cumulant.relational.parameters import (
    DEFAULT_START,
    N_PARAMETERS,
    RULES,
    Counts,
    checked_fixed,
    checked_parameters,
    checked_prior,
)

_WORDS = {"max_steps": "stopped at max_iter", "time_limit": "stopped by the clock"}


@dataclass(frozen=True, eq=False)
class EMResult:
    """Probabilities learned from networks whose latent variables are hidden.

    Attributes
    ----------
    model : SmokersModel
        With the probabilities of the iteration that has the largest objective among those whose messages settled; of
        the last one where none did, and for a Markov chain.
    objective : float or None
        ``sum log p(network | theta)`` plus the log-density of the prior up to its constant, for approximate E-steps
        with minus the Bethe free energy in place of the first; None for a Markov chain.
    history : array (iterations + 1,)
        The objective at `thetas`; empty for a Markov chain.
    settled : array of bool (iterations + 1,)
        Whether the messages of each E-step settled; where they did not, the objective means little. Empty for a Markov
        chain.
    thetas : array (iterations + 1, 14)
        The probabilities at the start and after each M-step.
    counts : Counts
        The expected counts of the E-step at `theta`. ``counts.trials`` says how much data there is on each rule: an
        estimate with few trials is the prior's.
    status : str
        ``"stationary"`` (the objective changed by no more than `tol`, relatively, between two E-steps whose messages
        settled), ``"max_steps"``, ``"time_limit"`` or ``"interrupted"``.
    e_step : str
    starts : array (runs,)
        The objective that each start came to.
    certificate : Certificate or None
        With ``e_step="exact"``: that the posterior density is not below that at the start. No other E-step has one.
    """

    model: SmokersModel
    objective: float | None
    history: np.ndarray
    settled: np.ndarray = field(repr=False)
    thetas: np.ndarray = field(repr=False)
    counts: Counts = field(repr=False)
    status: str
    e_step: str
    starts: np.ndarray = field(repr=False)
    settings: Settings = field(repr=False)
    nets: list[Network] = field(repr=False)
    certificate: Certificate | None = field(default=None, repr=False)

    @property
    def theta(self) -> np.ndarray:
        """The learned probabilities."""
        return self.model.theta

    @property
    def e_steps_converged(self) -> bool | None:
        """Whether the messages of all E-steps settled; None for a Markov chain."""
        return bool(self.settled.all()) if self.settled.size else None

    @property
    def subject(self) -> Subject:
        """What the certificate is about: ``result.certificate.verify(result.subject)``."""
        return Subject(self.nets, self)

    def __str__(self):
        end = _WORDS.get(self.status, self.status)
        head = f"EM with {self.e_step} E-steps: {end} after {len(self.thetas) - 1} iterations"
        if self.objective is not None:
            kind = "log posterior" if self.e_step == "exact" else "Bethe estimate of the log posterior"
            head += f", {kind} {self.objective:.6g}"
        if self.e_steps_converged is False:
            head += "; messages of some E-step did NOT settle"
        rows = [
            f"{k:2d}  {self.theta[k]:.4f}  {RULES[k].name}  ({self.counts.trials[k]:.1f} trials)"
            for k in range(N_PARAMETERS)
        ]
        return "\n".join([head, *rows])


def fit_em(
    nets: Any,
    *,
    e_step: str = "loopy",
    alpha: Any = 4.0,
    beta: Any = 4.0,
    start: Any = None,
    n_restarts: int = 0,
    max_iter: int = 50,
    tol: float = 1e-6,
    fixed: Mapping[Any, float] | None = None,
    influence: str = "independent",
    warm_start: bool = True,
    n_sweeps: int = 20,
    e_step_options: Mapping[str, Any] | None = None,
    rng: Any = None,
    time_limit: float | None = None,
    checkpoint: Any = None,
    progress: Any = None,
    n_jobs: int | None = None,
) -> EMResult:
    """Maximum a posteriori by expectation maximisation: beliefs given ``theta``, then ``theta`` given expected counts.

    The M-step is ``theta_k = (alpha - 1 + successes_k) / (alpha + beta - 2 + trials_k)``. With exact E-steps the
    posterior density never falls (Dempster, Laird and Rubin 1977). With messages the fixed points are those where the
    derivative of the Bethe free energy plus the prior is zero, and nothing is guaranteed on the way (Heskes, Zoeter and
    Wiegerinck 2004). With Gibbs sampling, counts of short runs are averaged, with weights ``1 / t`` in the second half
    of the iterations (Delyon, Lavielle and Moulines 1999).

    Parameters
    ----------
    nets : Network or sequence of them
        Latents, if any, are not looked at.
    e_step : {"loopy", "double_loop", "exact", "gibbs"}
        As for `SmokersModel.posterior`; exact for at most 20 people.
    alpha, beta : float or array (14,)
        Of the Beta prior of every rule, or of each, more than 1, so that no rule becomes impossible.
    start : array (14,), optional
        By default probabilities that tell the rules apart, those of ties scaled to the observed density. Where rules
        agree the first E-step says nothing about who is independent.
    n_restarts : int
        Further runs from random starts; the one with the largest objective is returned.
    max_iter, tol : int, float
        A run ends when the objective changes by no more than `tol` times its size; by Gibbs sampling after `max_iter`.
    fixed : mapping, optional
        Values of rules, by number or name, that are not learned: ``{0: 1.0}`` is the model where everybody is
        independent, ``{0: 0.0}`` the one where nobody is.
    warm_start : bool
        Start messages, or Markov chains, where those of the last iteration ended.
    n_sweeps : int
        Sweeps of an E-step by Gibbs sampling.
    e_step_options : mapping, optional
        Further options of the E-step, such as ``damping``.
    rng
        For random starts and Gibbs sampling.
    time_limit : float, optional
        Seconds after which no iteration is begun.
    checkpoint, progress
        As for `optim.run`: a file that the run is saved to and resumed from; a bar on the terminal. Ctrl-C ends the run
        with what it has.
    n_jobs : int, optional
        Threads, over networks. The answer does not depend on their number.

    Examples
    --------
    >>> truth = SmokersModel([.5, .1, .02, .3, .1, .15, .1, .4, .5, .5, .3, .05, .9, .5])
    >>> result = fit_em([truth.sample(30, seed) for seed in range(4)])
    >>> result.status, result.e_steps_converged, bool(abs(result.theta[0] - 0.5) < 0.2)
    ('stationary', True, True)
    """
    found = networks_of(nets)
    checks.choice("e_step", e_step, E_STEPS)
    prior = checked_prior(alpha, beta)
    checks.whole("max_iter", max_iter)
    checks.whole("n_restarts", n_restarts, 0)
    checks.whole("n_sweeps", n_sweeps)
    checks.not_negative("tol", tol)
    if time_limit is not None:
        checks.positive("time_limit, in seconds,", time_limit, finite=False)
    if e_step == "gibbs" and n_restarts:
        raise ValueError("n_restarts needs an objective to compare runs by, which e_step='gibbs' has not")
    if checkpoint is not None and n_restarts:
        raise ValueError("checkpoint is of one run: it cannot be given with n_restarts")
    checks.choice("influence", influence, ("independent", "ordered"))
    checks.keywords(f"e_step_options with e_step={e_step!r}", e_step_options or (), options_of(posterior_by(e_step)))
    settings = Settings(*prior, checked_fixed(fixed), influence)
    first = default_start(found) if start is None else checked_parameters("start", start)
    if 0 not in settings.fixed and not 0.0 < first[0] < 1.0:
        raise ValueError(
            "start[0], independent, must be strictly between 0 and 1, where the density of its prior is positive, or "
            f"be fixed; got {first[0]:g}"
        )
    seed = randomness.seed(rng)
    generator = np.random.default_rng(seed)
    starts = [first, *(_random_start(first, generator) for _ in range(n_restarts))]
    options: dict[str, Any] = {"pairs": False}
    if e_step == "double_loop":
        options["trace"] = False
    if e_step == "gibbs":
        options |= {"n_sweeps": n_sweeps, "burn_in": n_sweeps, "n_chains": 2}
    problem = NetworkPosterior(found, settings, e_step, options | dict(e_step_options or {}), n_jobs)
    solver = ExpectationMaximisation(warm_start, max_iter // 2 if e_step == "gibbs" else None)
    ends = time.perf_counter() + (np.inf if time_limit is None else time_limit)
    runs: list[EMResult] = []
    for each in starts:
        left = ends - time.perf_counter()
        if runs and (left <= 0 or runs[-1].status == "interrupted"):
            break
        run = optim.run(
            solver,
            problem,
            settings.hold(each),
            max_steps=max_iter,
            tol=None,
            residual_tol=None if e_step == "gibbs" else float(tol),
            progress=progress,
            time_limit=None if time_limit is None else max(left, 1e-3),
            checkpoint=checkpoint,
            rng=seed,
        )
        runs.append(_result(problem, run))
    if e_step == "gibbs":
        return runs[0]
    objectives = np.array([run.objective for run in runs], dtype=np.float64)
    best = replace(runs[_chosen(objectives, np.array([run.settled.any() for run in runs]))], starts=objectives)
    return replace(best, certificate=certify_ascent(found, best)) if e_step == "exact" else best


def _result(problem: NetworkPosterior, run: optim.Result) -> EMResult:
    """The iteration with the largest objective of settled messages; for Markov chains the last one."""
    trace = run.trace
    thetas = np.stack([trace[f"theta_{k}"] for k in range(N_PARAMETERS)], axis=1)
    history, settled = -trace.value, trace["settled"].astype(bool)
    if problem.estimated:
        history, settled = np.zeros(0), np.zeros(0, bool)
    best = _chosen(history, settled) if history.size else len(trace) - 1
    if isinstance(run.state, EMState) and np.array_equal(run.state.x, thetas[best]):
        counts = run.state.counts
    else:
        counts = problem.expect(thetas[best], seeds=problem.seeds(np.random.default_rng(run.work))).counts
    return EMResult(
        model=SmokersModel(thetas[best], problem.settings.influence),
        objective=float(history[best]) if history.size else None,
        history=history,
        settled=settled,
        thetas=thetas,
        counts=counts,
        status=run.status,
        e_step=problem.e_step,
        starts=np.zeros(0),
        settings=problem.settings,
        nets=list(problem.nets),
    )


def _chosen(objectives: np.ndarray, settled: np.ndarray) -> int:
    """The largest objective among those of messages that settled; else the last."""
    if not settled.any():
        return objectives.size - 1
    return int(np.argmax(np.where(settled, objectives, -np.inf)))


@issuer
def certify_ascent(nets: list[Network], result: EMResult) -> Certificate:
    """That exact EM ended with a posterior density not below that of its start, both summed over all states anew."""
    values, size = [], 0.0
    for theta in (result.thetas[0], result.theta):
        model = SmokersModel(theta, result.settings.influence)
        parts = [log_total(log_joint_table(model, net)) for net in nets]
        values.append(sum(parts) + result.settings.log_prior(theta))
        size += sum(map(abs, parts)) + abs(result.settings.log_prior(theta))
    people = max(net.n_people for net in nets)
    return Certificate(
        "log p(theta_start | networks) - log p(theta | networks)",
        values[0] - values[1],
        "expectation maximisation never lowers the posterior density (Dempster, Laird and Rubin 1977)",
        (
            check(
                people <= LARGEST or result.settings.fixed.get(0) in (0.0, 1.0),
                "all states of who is independent are summed over",
                f"at most {people} people",
            ),
            by_construction("the M-step is the exact maximiser: modes of Beta distributions"),
        ),
        slack=rounding(size, terms=4096.0 * people**2),
        details={"log posterior at start": values[0], "log posterior": values[1]},
    )


def default_start(nets: list[Network]) -> np.ndarray:
    """Probabilities that tell the rules apart; those of ties are scaled to the observed density."""
    theta = np.array(DEFAULT_START)
    pairs = sum(len(net.pairs) for net in nets)
    density = (sum(net.n_ties for net in nets) + 1.0) / (pairs + 2.0)
    theta[1:7] = np.clip(theta[1:7] * density / theta[1:7].mean(), 1e-4, 0.9)
    return theta


def _random_start(first: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Odds of the first start times log-normal factors."""
    odds = np.log(first[1:]) - np.log1p(-first[1:]) + generator.normal(size=N_PARAMETERS - 1)
    return np.concatenate([generator.uniform(0.2, 0.8, 1), 1.0 / (1.0 + np.exp(-odds))])
