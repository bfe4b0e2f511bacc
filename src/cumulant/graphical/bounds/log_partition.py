"""An interval that contains ``log Z``, whatever the model: exact where it fits, else the best bounds time allows."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cumulant.certificates import Certificate, Interval, by_construction, recipe_of, rounding, verifier
from cumulant.errors import CertificateError, DomainError, TooWide
from cumulant.graphical.bounds.annealed import annealed, lower_from_estimates
from cumulant.graphical.bounds.conditioning import conditioned, cutset
from cumulant.graphical.bounds.mini_bucket import fitting
from cumulant.graphical.bounds.partition import Partition, good_order, partitions, strengths, with_fields
from cumulant.graphical.bounds.reweighted import LANES, Combination, Tables, tighten
from cumulant.graphical.bounds.spanning import cover
from cumulant.graphical.exact.elimination import MAX_MEMORY
from cumulant.graphical.messages.structured_mean_field import structured_mean_field
from cumulant.randomness import seed as seed_of

__all__ = ["bound_log_partition", "bound_marginals"]

_SPEED = 2.0e8  # entries of an elimination in a second, to decide whether an exact answer can be had in time
_WITHOUT_CLOCK = 2.0**34  # entries that an exact answer may take where there is no time limit
_COPIES = (4, 8, 16)  # of the combination for the upper bound: a few first, more while there is time
_MANY = 5000  # variables from which blocks are not looked for: trees only
_ESTIMATES, _ROUNDS = 128, 6  # of annealing
_FIRST_ROUND = 2.0e8  # visits of a factor in the first round of annealing; each round has twice those of the last
_LEAST = 2**16  # bytes that are always allowed: those of single factors and of trees come on top


def bound_log_partition(
    model: Any,
    *,
    time_limit: float | None = 10.0,
    max_memory: int = MAX_MEMORY,
    max_work: int | None = None,
    exact: bool = True,
    sampling: bool = False,
    delta: float = 1e-6,
    rng: Any = 0,
    n_jobs: int | None = None,
) -> Interval:
    """An interval that contains ``log Z``, with a certificate; the longer it may work, the narrower it is.

    * *Exact*, up to rounding, where elimination fits into `max_memory`, or where it does once some variables are given
      values, over all of which is then summed, and where that can be done in about the time allowed.
    * *Above*: ``log Z <= sum_k w_k log Z_k(z_k / w_k)`` (Hölder) over copies of the model cut into wide blocks, each
      at another place, or into clusters joined by trees; shares and weights are optimised (see `reweighted`).
    * *Below*: ``E_q <theta, T> + H(q)`` for independent blocks, each solved exactly (see `structured_mean_field`).
    * *Above and below* by weighted mini-buckets (see `mini_bucket_bound`): at once where there are no good cuts or
      factors join three variables or more, else when the others have come to an end.
    * *Below, with probability* ``1 - delta``, where `sampling`: annealed importance sampling gives independent unbiased
      estimates of ``Z``, and Markov's inequality says how far their order statistics can be above it.

    Without `sampling` the interval is certain: nothing random enters its proof, and nothing has to have converged. It
    is widened by an allowance for rounding (``certificate.slack``).

    Parameters
    ----------
    model : DiscreteModel
        With or without evidence.
    time_limit : float or None
        Seconds. It is looked at between pieces of work, and so is overrun by at most one of them; None: no limit.
    max_memory : int
        Bytes that tables may take; 64 KiB, and what the factors themselves and spanning trees of them need, are
        always taken.
    max_work : int, optional
        Pieces of work instead of seconds: ``certificate.details["work"]`` of a run that the clock ended, with all else
        as it was, gives the same interval again.
    exact : bool
        Whether to look for an exact answer first.
    sampling : bool
        Whether bounds that hold with probability ``1 - delta`` may be used.
    rng : int, Generator or None
        For starts of mean field and for annealing.

    Examples
    --------
    >>> from cumulant.graphical import grid, spin_glass
    >>> model = spin_glass(grid(10, 10), coupling=0.5, field=0.5, rng=0)
    >>> narrow = bound_log_partition(model)                      # 10 x 10 is no problem: exact
    >>> narrow.width < 1e-9
    True
    >>> wide = bound_log_partition(model, max_memory=2**14, max_work=20, exact=False)
    >>> model.log_partition() in wide and wide.width < 3.0
    True
    """
    _check(time_limit, max_memory, max_work, delta)
    seed = seed_of(rng)
    run = _Run(model, time_limit, int(max_memory), max_work, exact, sampling, delta, seed, n_jobs)
    return run.go()


def _check(time_limit, max_memory, max_work, delta) -> None:
    if time_limit is not None and not time_limit >= 0:
        raise ValueError(f"time_limit must be a number of seconds that is not negative, or None; got {time_limit!r}")
    if isinstance(max_memory, bool) or not max_memory > 0:
        raise ValueError(f"max_memory must be a positive number of bytes; got {max_memory!r}")
    if max_work is not None and (isinstance(max_work, bool) or not isinstance(max_work, int) or max_work < 0):
        raise ValueError(f"max_work must be a whole number that is not negative, or None; got {max_work!r}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be strictly between 0 and 1; got {delta!r}")


@dataclass
class _Run:
    """One call: the bounds so far, and the ledger of work."""

    model: Any
    time_limit: float | None
    max_memory: int
    max_work: int | None
    look: bool  # for an exact answer
    sampling: bool
    delta: float
    seed: int
    n_jobs: int | None
    lower: float = -np.inf
    upper: float = np.inf
    slack: float = 0.0
    why: dict[str, str] = field(default_factory=dict)
    estimate: float | None = None
    likely: bool = False  # whether the lower bound holds with probability 1 - delta only
    work: int = 0

    def __post_init__(self):
        self.started = time.monotonic()
        self.structure, self.theta, self.left = self.model._restricted()
        states = int(self.structure.cardinalities.sum())
        if 8 * states > max(self.max_memory, _LEAST):
            raise TooWide(
                f"a number for each of the {states} states of the variables is {8 * states / 2**20:.0f} MiB, more than "
                f"max_memory = {self.max_memory / 2**20:g} MiB"
            )
        self.tables = Tables.of(self.structure, self.theta)

    # The ledger ------------------------------------------------------------------------------------------------------

    def more(self) -> bool:
        """Whether there is room for one more piece of work; if so it is written down."""
        if self.max_work is not None:
            room = self.work < self.max_work
        else:
            room = self.time_limit is None or time.monotonic() - self.started < self.time_limit
        self.work += room
        return room

    def begin(self) -> bool:
        """Room for what was predicted to take less than the whole limit: it is begun even if getting there, and
        compiling, has used the time up.
        """
        if self.max_work is not None:
            return self.more()
        self.work += 1
        return True

    def offer_lower(self, value: float, why: str, slack: float = 0.0, likely: bool = False) -> None:
        if value - slack > self.lower:
            self.lower, self.likely, self.why["lower"] = value - slack, likely, why
            self.slack = max(self.slack, slack)

    def offer_upper(self, value: float, why: str, slack: float) -> None:
        if value + slack < self.upper:
            self.upper, self.why["upper"] = value + slack, why
            self.slack = max(self.slack, slack)

    # The stages ------------------------------------------------------------------------------------------------------

    def go(self) -> Interval:
        self.simple()
        if self.upper == -np.inf:
            self.lower = self.estimate = -np.inf
        elif self.structure.n_variables == 0:
            self.why = dict.fromkeys(("lower", "upper"), "exact: no variable is left")
        else:
            plan = None
            if self.look:
                most = _WITHOUT_CLOCK if self.time_limit is None else _SPEED * self.time_limit
                plan = cutset(self.structure, self.max_memory, most)
            if plan is None or plan[0] or not self.exact(plan):
                self.search(plan)
        return self.answer()

    def simple(self) -> None:
        """Every table by its largest entry, and by its mean at equal probabilities (Jensen)."""
        structure, theta, total = self.tables.structure, self.tables.theta, 0.0
        sizes = [*np.diff(structure.table_starts).tolist(), *structure.cardinalities.tolist()]
        above, below, size = self.tables.constant, self.tables.constant, abs(self.tables.constant)
        for table in np.split(theta, np.cumsum(sizes)[:-1]) if sizes else []:
            above += float(table.max())
            below += float(table.mean())
            size += float(np.abs(table[np.isfinite(table)]).sum())
        total = float(np.log(structure.cardinalities).sum())
        slack = rounding(size, total, terms=theta.size + 8.0)
        if above == -np.inf:
            self.upper, self.why["upper"] = -np.inf, "an impossible table"
            return
        self.offer_upper(above + total, "the largest entry of each table", slack)
        self.offer_lower(below + total if np.isfinite(below) else -np.inf, "Jensen at the uniform law", slack)

    def exact(self, plan: Any) -> bool:
        """Elimination, or a sum of eliminations; False where there was no room for all of it."""
        given, order = plan
        report = self.more if given else self.begin
        value, slack, complete = conditioned(
            self.structure, self.theta, given, order, self.max_memory, report, self.n_jobs
        )
        how = "elimination" if not given else f"elimination given {len(given)} variables, summed over their states"
        if complete:
            size = float(np.abs(self.theta[np.isfinite(self.theta)]).sum())
            slack += rounding(size, terms=8.0)
            self.slack, self.estimate = slack, value
            self.lower, self.upper = value - slack, value + slack
            self.why = {"lower": f"exact: {how}", "upper": f"exact: {how}"}
            self.likely = False
        else:
            self.offer_lower(value, f"a part of the sum over states: {how}", slack)
        return complete

    def search(self, plan: Any) -> None:
        """Bounds from above and below in turn, until they no longer move or there is no more room.

        The first of each come before an exact answer by `plan`, so that there is something if the clock ends that.
        """
        many = self.structure.n_variables > _MANY
        memory = max(self.max_memory, _LEAST) // LANES
        strength = strengths(self.tables.structure, self.tables.theta)
        # mini-buckets come last where there are cuts to make and factors of two variables only, since blocks do better
        # then, and on very large models, where one evaluation takes seconds
        wide, early = np.diff(self.tables.structure.scope_starts).max(initial=0) > 2, False
        known, rounds = 0, 0
        for n_copies in _COPIES:
            if known and not self.more():  # to look for more cuts is a piece of work
                return
            cuts: list[Partition] = []
            if strength.size and not many:
                cuts = partitions(self.tables.structure, self.tables.theta, memory, n_copies)
            if known and len(cuts) <= known:
                break
            combination = self.combination(cuts, strength, memory)
            if not known and not self.first(combination, cuts, plan):
                return
            if not self.below(cuts[max(known, 1) :]):
                return
            if self.sampling and rounds < _ROUNDS:
                if not self.more():
                    return
                self.anneal(rounds)
                rounds += 1
            if not known:
                early = wide or not (cuts or many)
                if early and not self.split():
                    return
            if not self.improve(combination, self.about(combination, cuts), catch_up=early and not known):
                return
            known = len(cuts)
            if not known:
                break
        if not early and not self.split():
            return
        while self.sampling and rounds < _ROUNDS and self.more():
            self.anneal(rounds)
            rounds += 1

    def first(self, combination: Combination, cuts: list[Partition], plan: Any) -> bool:
        """One bound from above, one from below, and then the exact answer; False where that ends the search."""
        if not self.more():
            return False
        value, _, slack = combination.bound(np.zeros(combination.dim))
        self.offer_upper(value, self.about(combination, cuts), slack)
        if value == -np.inf:
            self.lower = self.estimate = -np.inf
            return False
        if not self.below(cuts[:1] or [None]):
            return False
        return plan is None or not self.exact(plan)

    def split(self) -> bool:
        """Mini-buckets, from above and then from below, each until ten evaluations bring less than a hundredth of the
        width; False where there is no more room.
        """
        order = good_order(self.tables.structure).order
        for sign in (1, -1):
            if not self.more():
                return False
            made, _ = fitting(self.tables, order, sign, max(self.max_memory, _LEAST))
            why, best = f"Hölder in mini-buckets ({len(made.splits)} buckets split)", [np.inf]

            def report(value, slack, sign=sign, why=why, best=best):
                if sign > 0:
                    self.offer_upper(value, why, slack)
                else:
                    self.offer_lower(-value, why, slack)
                best.append(min(best[-1], value + slack))
                stuck = len(best) > 11 and best[-11] - best[-1] < 0.01 * max(self.upper - self.lower, 1e-9)
                return math.isfinite(value) and not stuck and self.more()

            if made.exact:
                value, _, slack = made.bound(np.zeros(0))
                report(value, slack)
            else:
                tighten(made, report)
        return True

    def combination(self, cuts: list[Partition], strength: np.ndarray, memory: int) -> Combination:
        copies = [(cut.kept, cut.part) for cut in cuts]
        missing = np.ones(self.tables.structure.n_factors, dtype=bool)
        for kept, _ in copies:
            missing[kept] = False
        bits = min(12.0, math.log2(max(memory, 64)) - 6.0)
        copies += cover(self.tables.structure, strength, missing, memory, bits)
        if not copies:  # no factor joins variables
            none = np.zeros(0, np.int64)
            copies = [(none, with_fields(self.tables.structure, none))]
        return Combination(self.tables, copies, LANES * memory, self.n_jobs)

    def about(self, combination: Combination, cuts: list[Partition]) -> str:
        trees = combination.n_copies - len(cuts)
        words = [f"{len(cuts)} cut into {cuts[0].n_blocks} blocks"] if cuts else []
        words += [f"{trees} trees of clusters"] if trees else []
        return f"Hölder over {combination.n_copies} copies ({', '.join(words)})"

    def below(self, cuts: Sequence[Partition | None]) -> bool:
        """Structured mean field on each partition; False where there is no more room."""
        for i, cut in enumerate(cuts):
            if not self.more():
                return False
            blocks = None
            if cut is not None:
                blocks = [self.left[cut.labels == b] for b in range(cut.n_blocks)]
            found = structured_mean_field(
                self.model, blocks=blocks, max_memory=max(self.max_memory, _LEAST),
                n_starts=1 if cut is not None else 3, max_sweeps=25, tol=1e-3,
                rng=(self.seed + i) % 2**63, n_jobs=self.n_jobs,
            )  # fmt: skip
            self.offer_lower(found.bound, f"structured mean field over {len(found.blocks)} blocks")
        return True

    def improve(self, combination: Combination, why: str, catch_up: bool = False) -> bool:
        """Optimise shares and weights until ten evaluations bring less than a hundredth of the width: to what is known,
        or, where these copies have to `catch_up` with another bound first, to their own.
        """
        best: list[float] = []

        def report(value, slack):
            self.offer_upper(value, why, slack)
            best.append(min([value + slack, *best[-1:]]) if catch_up else self.upper)
            stuck = len(best) > 10 and best[-11] - best[-1] < 0.01 * max(self.upper - self.lower, 1e-9)
            return not stuck and self.more()

        if not self.more():
            return False
        tighten(combination, report)
        return self.max_work is None or self.work < self.max_work

    def anneal(self, round_: int) -> None:
        """A round of estimates, twice as long as the last, with half of what is left of `delta`."""
        visits = _ESTIMATES * max(self.tables.structure.scopes.size, 1)
        steps = int(np.clip(_FIRST_ROUND / visits, 64, 2000)) * 2**round_
        estimates = annealed(self.tables, _ESTIMATES, steps, (self.seed + round_) % 2**63, self.n_jobs)
        share = self.delta * 0.5 ** (round_ + 1)
        value = lower_from_estimates(estimates, share)
        top = estimates.max()
        if np.isfinite(value):
            slack = rounding(float(np.abs(estimates).max()), terms=8.0 * (self.tables.structure.n_factors + 8))
            self.offer_lower(min(value, self.upper), f"{_ESTIMATES} annealed estimates", slack, likely=True)
            self.estimate = float(top + np.log(np.mean(np.exp(estimates - top))))

    # The answer ------------------------------------------------------------------------------------------------------

    def answer(self) -> Interval:
        lower, upper = min(self.lower, self.upper), self.upper
        guess = self.estimate
        if guess is None:
            guess = 0.5 * (lower + upper) if np.isfinite(lower) else upper
        guess = min(max(guess, lower), upper)
        exact = self.why.get("upper", "").startswith("exact")
        theorem = (
            self.why["upper"]
            if exact
            else f"above by {self.why.get('upper', 'nothing')}; below by {self.why.get('lower', 'nothing')}"
        )
        assumptions = [by_construction("the shares of the copies add up to theta and their weights to one")]
        if exact:
            assumptions = [by_construction("every state is in exactly one term of the sum")]
        elif self.likely:
            assumptions.append(by_construction("the annealed estimates are independent and unbiased", "Neal 2001"))
        assumptions.append(by_construction("rounding stays within the allowance", f"{self.slack:.2g}, included"))
        details = {
            "work": self.work,
            "max_memory": self.max_memory,
            "seed": self.seed,
            "exact": self.look,
            "sampling": self.sampling,
            "time_limit": math.inf if self.time_limit is None else self.time_limit,
        }
        certificate = Certificate(
            "log Z", Interval(lower, upper, guess), theorem, tuple(assumptions),
            kind="with probability" if self.likely else "deterministic", delta=self.delta if self.likely else None,
            recipe=recipe_of(replay), details=details,
        )  # fmt: skip
        return Interval(lower, upper, guess, certificate)


@verifier
def replay(model: Any, interval: Interval) -> float:
    """The upper end again, by the same work on the model; a `CertificateError` where the lower end comes out lower."""
    certificate = interval.certificate
    if certificate is None:
        raise CertificateError("this interval has no certificate to replay")
    settings = certificate.details
    limit = settings["time_limit"]
    again = bound_log_partition(
        model,
        time_limit=None if limit == math.inf else limit,
        max_memory=int(settings["max_memory"]),
        max_work=int(settings["work"]),
        exact=bool(settings["exact"]),
        sampling=bool(settings["sampling"]),
        delta=certificate.delta or 1e-6,
        rng=int(settings["seed"]),
    )
    if not again.lower >= interval.lower:
        raise CertificateError(f"the lower end was {interval.lower:.17g} and is {again.lower:.17g} when replayed")
    return again.upper


def bound_marginals(model: Any, variables: Any = None, **settings: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Bounds on the probability of each state of some variables: pairs of arrays, lower and upper ends.

    ``p(x_i = a) = Z_a / sum_b Z_b``, where ``Z_a`` has ``x_i`` given the value ``a``. It rises with ``Z_a`` and falls
    with the others, so that intervals for their logarithms, found by `bound_log_partition` with the same `settings` for
    each, make one for it.

    Examples
    --------
    >>> from cumulant.graphical import grid, spin_glass
    >>> model = spin_glass(grid(4, 4), coupling=0.5, field=0.5, rng=0)
    >>> low, high = bound_marginals(model, [3])[0]
    >>> p = model.marginals()[3]
    >>> bool(np.all((low <= p) & (p <= high)))
    True
    """
    wanted = range(model.n_variables) if variables is None else [int(v) for v in variables]
    out = []
    for v in wanted:
        if not 0 <= v < model.n_variables:
            raise ValueError(f"variables must be numbers from 0 to {model.n_variables - 1}; got {v}")
        size = int(model.cardinalities[v])
        if v in model.evidence:
            certain = (np.arange(size) == model._evidence[v]).astype(float)
            out.append((certain, certain.copy()))
            continue
        each = [bound_log_partition(model.given({v: model._value(v, a)}), **settings) for a in range(size)]
        low, high = np.array([i.lower for i in each]), np.array([i.upper for i in each])
        if not (high > -np.inf).any():
            raise DomainError("every state is impossible: there is no distribution")
        out.append(_probabilities(low, high))
    return out


def _probabilities(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on ``Z_a / sum_b Z_b`` from bounds on the logarithms; -inf is the logarithm of zero."""
    top = high.max()
    least, most = np.exp(low - top), np.exp(high - top)
    with np.errstate(invalid="ignore"):  # 0 / 0 is where nothing is known
        lower = np.where(least > 0, least / (least + (most.sum() - most)), 0.0)
        upper = np.where(most > 0, most / (most + (least.sum() - least)), 0.0)
    return np.maximum(lower - 1e-15, 0.0), np.minimum(upper + 1e-15, 1.0)
