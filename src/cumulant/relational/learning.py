"""Learning the fourteen probabilities from networks by expectation maximisation: `fit_em`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlog1py, xlogy

from cumulant import checks, randomness
from cumulant.certificates import Certificate, Subject, by_construction, check, issuer, rounding
from cumulant.relational.elimination import LARGEST, exact, gibbs, log_joint_table, log_total
from cumulant.relational.messages import double_loop, loopy
from cumulant.relational.model import SmokersModel, options_of, posterior_by
from cumulant.relational.network import Network, networks_of
from cumulant.relational.parameters import DEFAULT_START, N_PARAMETERS, RULES, Counts, checked_parameters
from cumulant.relational.posterior import Posterior
from cumulant.threads import side_by_side

E_STEPS = ("loopy", "double_loop", "exact", "gibbs")
_WORDS = {
    "converged": "converged",
    "max_steps": "stopped at max_iter",
    "time_limit": "stopped by the clock",
}


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
    history : array (iterations,)
        The objective before each M-step; empty for a Markov chain.
    settled : array of bool (iterations,)
        Whether the messages of each E-step settled; where they did not, the objective means little. Empty for a Markov
        chain.
    thetas : array (iterations + 1, 14)
        The probabilities at the start and after each M-step.
    counts : Counts
        The expected counts of the E-step at `theta`. ``counts.trials`` says how much data there is on each rule: an
        estimate with few trials is the prior's.
    status : str
        ``"converged"`` (the objective changed by less than `tol`, relatively, between two E-steps whose messages
        settled), ``"max_steps"`` or ``"time_limit"``.
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
    def converged(self) -> bool:
        """Whether `status` is ``"converged"``."""
        return self.status == "converged"

    @property
    def subject(self) -> Subject:
        """What the certificate is about: ``result.certificate.verify(result.subject)``."""
        return Subject(self.nets, self)

    def __str__(self):
        head = f"EM with {self.e_step} E-steps: {_WORDS[self.status]} after {len(self.thetas) - 1} iterations"
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


class Settings(NamedTuple):
    """The prior and what is held fixed."""

    alpha: float
    beta: float
    fixed: dict[int, float]
    influence: str

    def log_prior(self, theta: np.ndarray) -> float:
        """The Beta densities of the rules that are learned, up to their constants."""
        free = [k for k in range(N_PARAMETERS) if k not in self.fixed]
        return float((xlogy(self.alpha - 1.0, theta[free]) + xlog1py(self.beta - 1.0, -theta[free])).sum())

    def maximise(self, counts: Counts) -> np.ndarray:
        """The M-step."""
        return self.hold(counts.map_estimate(self.alpha, self.beta))

    def hold(self, theta: np.ndarray) -> np.ndarray:
        """With the fixed values in their places."""
        theta = theta.copy()
        for k, value in self.fixed.items():
            theta[k] = value
        return theta


def fit_em(
    nets: Any,
    *,
    e_step: str = "loopy",
    alpha: float = 4.0,
    beta: float = 4.0,
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
    alpha, beta : float
        Of the Beta prior of every rule, more than 1, so that no rule becomes impossible.
    start : array (14,), optional
        By default probabilities that tell the rules apart, those of ties scaled to the observed density. Where rules
        agree the first E-step says nothing about who is independent.
    n_restarts : int
        Further runs from random starts; the one with the largest objective is returned.
    max_iter, tol : int, float
        A run ends when the objective changes by no more than `tol` times its size.
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
    n_jobs : int, optional
        Threads, over networks. The answer does not depend on their number.

    Examples
    --------
    >>> truth = SmokersModel([.5, .1, .02, .3, .1, .15, .1, .4, .5, .5, .3, .05, .9, .5])
    >>> result = fit_em([truth.sample(30, seed) for seed in range(4)])
    >>> result.status, result.e_steps_converged, bool(abs(result.theta[0] - 0.5) < 0.2)
    ('converged', True, True)
    """
    found = networks_of(nets)
    checks.choice("e_step", e_step, E_STEPS)
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not (np.isfinite(checks.number(name, value)) and value > 1.0):
            raise ValueError(
                f"{name} must be finite and more than 1, so that no rule becomes impossible; got {value!r}"
            )
    checks.whole("max_iter", max_iter)
    checks.whole("n_restarts", n_restarts, 0)
    checks.whole("n_sweeps", n_sweeps)
    checks.not_negative("tol", tol)
    if time_limit is not None:
        checks.positive("time_limit, in seconds,", time_limit, finite=False)
    if e_step == "gibbs" and n_restarts:
        raise ValueError("n_restarts needs an objective to compare runs by, which e_step='gibbs' has not")
    checks.choice("influence", influence, ("independent", "ordered"))
    checks.keywords(f"e_step_options with e_step={e_step!r}", e_step_options or (), options_of(posterior_by(e_step)))
    settings = Settings(float(alpha), float(beta), _fixed(fixed), influence)
    first = default_start(found) if start is None else checked_parameters("start", start)
    if 0 not in settings.fixed and not 0.0 < first[0] < 1.0:
        raise ValueError(
            "start[0], independent, must be strictly between 0 and 1, where the density of its prior is positive, or "
            f"be fixed; got {first[0]:g}"
        )
    generator = np.random.default_rng(randomness.seed(rng))
    starts = [first, *(_random_start(first, generator) for _ in range(n_restarts))]
    options = {"pairs": False, **({"trace": False} if e_step == "double_loop" else {}), **(e_step_options or {})}
    ends = time.perf_counter() + (np.inf if time_limit is None else time_limit)
    if e_step == "gibbs":
        return _stochastic(found, settings, first, max_iter, n_sweeps, options, generator, ends, n_jobs)
    runs = [
        _run(found, e_step, settings, settings.hold(each), max_iter, float(tol), options, warm_start, ends, n_jobs)
        for each in starts
        if each is first or time.perf_counter() < ends
    ]
    objectives = np.array([run.history[_chosen(run.history, run.settled)] for run in runs])
    best = replace(runs[_chosen(objectives, np.array([run.settled.any() for run in runs]))], starts=objectives)
    return replace(best, certificate=certify_ascent(found, best)) if e_step == "exact" else best


def _run(
    nets: list[Network], e_step: str, settings: Settings, theta: np.ndarray, max_iter: int, tol: float, options: dict,
    warm_start: bool, ends: float, n_jobs: int | None,
) -> EMResult:  # fmt: skip
    before: list[Posterior] | None = None
    thetas, history, counts, settled, status = [theta], [], [], [], "max_steps"
    for iteration in range(max_iter + 1):
        model = SmokersModel(thetas[-1], settings.influence)
        beliefs = e_steps(model, nets, e_step, before if warm_start else None, options, n_jobs)
        before = beliefs
        history.append(sum(each.require_log_likelihood() for each in beliefs) + settings.log_prior(thetas[-1]))
        counts.append(sum((each.counts for each in beliefs), Counts.zeros()))
        settled.append(all(each.settled for each in beliefs))
        if all(settled[-2:]) and iteration and abs(history[-1] - history[-2]) <= tol * max(abs(history[-1]), 1.0):
            status = "converged"
            break
        if iteration == max_iter:
            break
        if iteration and time.perf_counter() > ends:
            status = "time_limit"
            break
        thetas.append(settings.maximise(counts[-1]))
    best = _chosen(np.array(history), np.array(settled))
    return EMResult(
        SmokersModel(thetas[best], settings.influence), history[best], np.array(history), np.array(settled),
        np.array(thetas), counts[best], status, e_step, np.zeros(0), settings, nets,
    )  # fmt: skip


def _chosen(objectives: np.ndarray, settled: np.ndarray) -> int:
    """The largest objective among those of messages that settled; else the last."""
    if not settled.any():
        return objectives.size - 1
    return int(np.argmax(np.where(settled, objectives, -np.inf)))


def e_steps(
    model: SmokersModel, nets: list[Network], e_step: str, before: list[Posterior] | None, options: dict,
    n_jobs: int | None,
) -> list[Posterior]:  # fmt: skip
    """Beliefs of all networks, several at a time."""

    def work(i):
        if e_step == "exact":
            return exact(model, nets[i], **options)
        start = None if before is None else before[i]
        return (loopy if e_step == "loopy" else double_loop)(model, nets[i], start=start, **options)

    return side_by_side(work, len(nets), n_jobs)


def _stochastic(
    nets: list[Network], settings: Settings, theta: np.ndarray, max_iter: int, n_sweeps: int, options: dict,
    generator: np.random.Generator, ends: float, n_jobs: int | None,
) -> EMResult:  # fmt: skip
    thetas, average, status, half = [settings.hold(theta)], Counts.zeros(), "max_steps", max_iter // 2
    seeds = generator.integers(2**62, size=(max_iter, len(nets)))
    for t in range(max_iter):
        model = SmokersModel(thetas[-1], settings.influence)

        def work(i, model=model, t=t):
            return gibbs(
                model, nets[i], **{"n_sweeps": n_sweeps, "burn_in": n_sweeps, "n_chains": 2, **options},
                rng=int(seeds[t, i]), n_jobs=1,
            ).counts  # fmt: skip

        counts = sum(side_by_side(work, len(nets), n_jobs), Counts.zeros())
        weight = 1.0 / max(1, t - half + 1)
        average = Counts(
            (1 - weight) * average.successes + weight * counts.successes,
            (1 - weight) * average.trials + weight * counts.trials,
        )
        thetas.append(settings.maximise(average))
        if time.perf_counter() > ends and t + 1 < max_iter:
            status = "time_limit"
            break
    return EMResult(
        SmokersModel(thetas[-1], settings.influence), None, np.zeros(0), np.zeros(0, bool), np.array(thetas), average,
        status, "gibbs", np.zeros(0), settings, nets,
    )  # fmt: skip


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


def _fixed(fixed: Mapping[Any, float] | None) -> dict[int, float]:
    out: dict[int, float] = {}
    names = [rule.name for rule in RULES]
    for key, value in (fixed or {}).items():
        if isinstance(key, str):
            k = names.index(checks.choice("a key of fixed", key, names))
        else:
            k = checks.whole("a key of fixed", key, 0)
            if k >= N_PARAMETERS:
                raise ValueError(f"a key of fixed must be a rule from 0 to {N_PARAMETERS - 1}; got {key}")
        theta = np.full(N_PARAMETERS, 0.5)
        theta[k] = checks.number(f"fixed[{key!r}]", value)
        checked_parameters("fixed", theta)
        out[k] = float(value)
    return out
