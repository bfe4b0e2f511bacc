"""One search for an interval around ``log Z``: bounds from both sides, cheap ones first, while there is room."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cumulant.certificates import rounding
from cumulant.errors import TooWide
from cumulant.graphical.bounds.annealed import annealed, lower_from_estimates
from cumulant.graphical.bounds.blocks import BlockCombination, Moved
from cumulant.graphical.bounds.conditioning import conditioned, cutset
from cumulant.graphical.bounds.feasible import possible_state
from cumulant.graphical.bounds.ledger import Expired, Ledger, Stopped
from cumulant.graphical.bounds.mini_bucket import fitting
from cumulant.graphical.bounds.partition import Limits, Partition, good_order, partitions, strengths, with_fields
from cumulant.graphical.bounds.reweighted import LANES, Combination, Tables, tighten
from cumulant.graphical.bounds.spanning import cover
from cumulant.graphical.messages.incidence import Incidence, normalise
from cumulant.graphical.messages.mean_field_kernels import ascend, free_energy
from cumulant.graphical.messages.structured_blocks import block_choices
from cumulant.graphical.messages.structured_mean_field import Blocks
from cumulant.graphical.structure import Structure
from cumulant.randomness import generator

__all__ = ["Memory", "Search"]

_SPEED = 1.2e8  # entries of an elimination in a second, to decide whether an exact answer can be had in time
_WITHOUT_CLOCK = 2.0**34  # entries that an exact answer may take where there is no time limit
_MARGINALS = 6.0e7  # entries of a pass for marginals in a second, on one of the lanes
_EVALUATIONS = 20.0  # of the first combination, that the time should be enough for
_COPIES = (4, 8, 16)  # of the combination for the upper bound: a few first, more while there is time
_CUT = 0.25  # of the strength of all factors that a cut may cost: beyond, trees of clusters are better
_LARGE = 300  # variables from which cheap bounds come before the question whether an exact answer fits
_MANY = 50_000  # variables from which blocks are not looked for: trees only
_MINI = 2.0**20  # bytes of mini-buckets for a second of time, which lets them be evaluated some tens of times
_DENSE = 2.0**20  # bytes of a block for a second of time, where there are no cuts: one pass cannot be interrupted
_FITTING = 4e-4  # seconds to find them, for each table
_SWEEPS = 25  # of mean field over one partition
_EVEN = 0.1  # of all states that have equal probabilities, from which naive mean field has a second, random start
_VISITS = 2.0e5  # entries that naive mean field looks at between two looks at the clock
_REPAIRS = 100_000  # in the search for a possible state
_ESTIMATES, _ROUNDS = 128, 6  # of annealing
_FIRST_ROUND = 2.0e8  # visits of a factor in the first round of annealing; each round has twice those of the last
_LEAST = 2**16  # bytes that are always allowed: those of single factors and of trees come on top


@dataclass
class Memory:
    """What one search may leave for the next on a model of the same structure: shapes with their plans, cuts, blocks,
    and where shares and distributions came to.
    """

    known: dict[Structure, Structure] = field(default_factory=dict)
    cuts: dict[int, list[Partition]] = field(default_factory=dict)
    others: dict[int, list] = field(default_factory=dict)
    blocks: list[list[np.ndarray]] = field(default_factory=list)
    point: np.ndarray | None = None
    q: np.ndarray | None = None


@dataclass
class Search:
    """The bounds so far, and how they came about.

    Every bound is offered when a piece of work is finished, so that the interval is a function of their number.
    """

    structure: Structure
    theta: np.ndarray
    ledger: Ledger
    max_memory: int
    look: bool  # for an exact answer
    sampling: bool
    delta: float
    seed: int
    n_jobs: int | None
    memory: Memory = field(default_factory=Memory)
    lower: float = -np.inf
    upper: float = np.inf
    slack: float = 0.0
    why: dict[str, str] = field(default_factory=dict)
    estimate: float | None = None
    likely: bool = False  # whether the lower bound holds with probability 1 - delta only
    q: np.ndarray | None = None  # distributions of single variables, those of the best lower bound, one after the other
    choices: Iterator[list[np.ndarray]] | None = None  # of blocks, where there are no cuts
    seen: dict[bytes, Blocks | None] = field(default_factory=dict)  # over which mean field was; None: to its end

    def __post_init__(self):
        states = int(self.structure.cardinalities.sum())
        if 8 * states > max(self.max_memory, _LEAST):
            raise TooWide(
                f"a number for each of the {states} states of the variables is {8 * states / 2**20:.0f} MiB, more than "
                f"max_memory = {self.max_memory / 2**20:g} MiB"
            )
        self.tables = Tables.of(self.structure, self.theta)
        self.strength = strengths(self.tables.structure, self.tables.theta)

    def offer_lower(self, value: float, why: str, slack: float = 0.0, likely: bool = False) -> bool:
        """Take a bound from below if it is better, and say whether it is."""
        better = value - slack > self.lower
        if better:
            self.lower, self.likely, self.why["lower"] = value - slack, likely, why
            self.slack = max(self.slack, slack)
        return better

    def offer_upper(self, value: float, why: str, slack: float) -> None:
        """Take a bound from above if it is better."""
        if value + slack < self.upper:
            self.upper, self.why["upper"] = value + slack, why
            self.slack = max(self.slack, slack)

    # The stages ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """All stages, as far as there is room."""
        self.simple()
        if self.upper == -np.inf:
            self.lower = self.estimate = -np.inf
        elif self.structure.n_variables == 0:
            self.why = dict.fromkeys(("lower", "upper"), "exact: no variable is left")
        else:
            try:
                self.stages()
            except Stopped:
                pass
            except Expired:
                self.ledger.forget()

    def stages(self) -> None:
        """An exact answer at once where that is quick to see; else a bound from above, one from below, an exact answer
        where there may be one, and then better bounds.
        """
        large = self.structure.n_variables > _LARGE
        plan = None
        if self.look and not large:
            plan = self.plan(lambda: None)
            if plan is not None and not plan[0] and self.exact(plan):
                return
        if not self.trees():
            return
        self.naive()
        if self.look and large:
            self.ledger.more()
            plan = self.plan(self.ledger.alive)
        if plan is not None and self.exact(plan):
            return
        self.better()

    def plan(self, alive: Callable[[], None]) -> Any:
        """Variables to be given values and an order for the others, or None where that takes too long."""
        limit = self.ledger.time_limit
        return cutset(self.structure, self.max_memory, _WITHOUT_CLOCK if limit is None else _SPEED * limit, alive)

    def simple(self) -> None:
        """Every table by its largest entry, and by its mean at equal probabilities (Jensen)."""
        structure, theta = self.tables.structure, self.tables.theta
        sizes = np.concatenate([np.diff(structure.table_starts), structure.cardinalities])
        above = below = self.tables.constant
        if sizes.size:
            starts = np.cumsum(sizes) - sizes
            above += float(np.maximum.reduceat(theta, starts).sum())
            below += float((np.add.reduceat(theta, starts) / sizes).sum())
        total = float(np.log(structure.cardinalities).sum())
        size = abs(self.tables.constant) + float(np.abs(theta[np.isfinite(theta)]).sum())
        slack = rounding(size, total, terms=theta.size + 8.0)
        if above == -np.inf:
            self.upper, self.why["upper"] = -np.inf, "an impossible table"
            return
        self.offer_upper(above + total, "the largest entry of each table", slack)
        self.offer_lower(below + total if np.isfinite(below) else -np.inf, "Jensen at the uniform law", slack)

    def exact(self, plan: Any) -> bool:
        """Elimination, or a sum of eliminations; True, as it stops by raising."""
        given, order = plan
        how = "elimination" if not given else f"elimination given {len(given)} variables, summed over their states"
        begin = self.ledger.more if given else self.ledger.begin
        value, slack = -np.inf, 0.0
        for value, slack in conditioned(self.structure, self.theta, given, order, self.max_memory, begin, self.n_jobs):
            self.offer_lower(value, f"a part of the sum over states: {how}", slack)
        slack += rounding(self.theta[np.isfinite(self.theta)], terms=8.0)
        self.slack, self.estimate = slack, value
        self.lower, self.upper = value - slack, value + slack
        self.why = {"lower": f"exact: {how}", "upper": f"exact: {how}"}
        self.likely = False
        return True

    # Above -----------------------------------------------------------------------------------------------------------

    def trees(self) -> bool:
        """One bound from above by few spanning trees with equal shares; False where the model turns out impossible."""
        dense = self.tables.structure.n_factors > 4 * self.structure.n_variables  # so many trees: clusters are better
        if not self.once(self.combination([], None if dense else 0.0), None):
            self.lower = self.estimate = -np.inf
            return False
        return True

    def once(self, combination: BlockCombination, point: np.ndarray | None) -> bool:
        """One evaluation; False where it says that the model is impossible."""
        self.ledger.more()
        value, _, slack = combination.bound(np.zeros(combination.dim) if point is None else point)
        self.offer_upper(value, self.about(combination), slack)
        return value > -np.inf

    def better(self) -> None:
        """Better bounds from above and below in turn, until they no longer move."""
        structure = self.tables.structure
        # mini-buckets come last where there are cuts to make and factors of two variables only, since blocks do better
        # then, and on very large models, where one evaluation takes seconds
        many = structure.n_variables > _MANY
        wide, early = np.diff(structure.scope_starts).max(initial=0) > 2, False
        cuts: list[Partition] = []
        rounds, combination, point = 0, None, self.memory.point
        if self.sampling:
            self.anneal(rounds)
            rounds += 1
        for n_copies in _COPIES:
            known, cuts = len(cuts), [] if many else self.cuts(n_copies)
            if known and len(cuts) <= known:
                break
            first = combination is None
            early = early or (first and (wide or not (cuts or many)))
            earlier, combination = combination, self.combination(cuts, None)
            if earlier is not None:
                assert point is not None
                point = combination.from_shares(earlier, point)
            elif point is not None and point.size != combination.dim:
                point = None
            if first:  # something from both sides, before either is brought to its end
                self.below(cuts[:1], 1)
                if cuts:
                    self.once(combination, point)
            if early and first:
                self.split()
            self.below(cuts[:1] if first else cuts)
            if self.sampling and rounds < _ROUNDS and not first:
                self.anneal(rounds)
                rounds += 1
            point = self.improve(combination, point, catch_up=early and first, keep=first)
            if not cuts:
                break
            if first:
                self.below(cuts)
        if not early:
            self.split()
        while self.sampling and rounds < _ROUNDS:
            self.anneal(rounds)
            rounds += 1

    def cuts(self, n_copies: int) -> list[Partition]:
        """Partitions for so many copies; with a time limit, such that it is enough for a number of evaluations."""
        if n_copies not in self.memory.cuts:
            self.ledger.more()
            limit = self.ledger.time_limit
            entries = math.inf
            if limit is not None:
                entries = max(limit * _MARGINALS * LANES / (_COPIES[0] * _EVALUATIONS), 1e4)
            limits = Limits(self.bytes // LANES, entries, self.ledger.alive, self.memory.known)
            found = partitions(self.tables.structure, self.tables.theta, limits, n_copies) if self.strength.size else []
            worth = _CUT * float(self.strength.sum())
            self.memory.cuts[n_copies] = [cut for cut in found if cut.cost <= worth]
        return self.memory.cuts[n_copies]

    @property
    def bytes(self) -> int:
        """The memory for tables."""
        return max(self.max_memory, _LEAST)

    def combination(self, cuts: list[Partition], bits: float | None) -> BlockCombination:
        """Copies cut into blocks, and trees of clusters of so many bits for the factors that all of them cut."""
        key, memory = len(cuts) if bits is None else -1, self.bytes // LANES
        if key not in self.memory.others:
            self.ledger.more()
            missing = np.ones(self.tables.structure.n_factors, dtype=bool)
            for cut in cuts:
                missing[cut.kept] = False
            few = bits is not None
            if bits is None:
                bits = min(12.0, math.log2(max(memory, 64)) - 6.0)
            others = cover(self.tables.structure, self.strength, missing, memory, bits, self.ledger.alive, few)
            if not cuts and not others:  # no factor joins variables
                none = np.zeros(0, np.int64)
                others = [(none, with_fields(self.tables.structure, none))]
            self.memory.others[key] = others
        return BlockCombination(
            self.tables, cuts, self.memory.others[key], LANES * memory, self.ledger.alive, self.n_jobs
        )

    def about(self, combination: BlockCombination) -> str:
        """In words."""
        cuts = combination.cuts
        trees = combination.n_copies - len(cuts)
        words = [f"{len(cuts)} cut into {cuts[0].n_blocks} blocks"] if cuts else []
        words += [f"{trees} trees of clusters"] if trees else []
        return f"Hölder over {combination.n_copies} copies ({', '.join(words)})"

    def improve(
        self, combination: BlockCombination, start: np.ndarray | None, catch_up: bool = False, keep: bool = False
    ) -> np.ndarray:
        """Optimise shares and weights until ten evaluations bring less than a hundredth of the width: to what is known,
        or, where these copies have to `catch_up` with another bound first, to their own. Returns the best point, and
        may `keep` it for other searches.
        """
        why, best = self.about(combination), []
        watched = _Watched(combination, np.zeros(combination.dim) if start is None else start)

        def report(value, slack):
            self.offer_upper(value, why, slack)
            if keep:
                self.memory.point = watched.best
            best.append(min([value + slack, *best[-1:]]) if catch_up else self.upper)
            stuck = len(best) > 10 and best[-11] - best[-1] < 0.01 * max(self.upper - self.lower, 1e-9)
            if not stuck:
                self.ledger.more()
            return not stuck

        self.ledger.more()
        tighten(watched, report)
        return watched.best

    def split(self) -> None:
        """Mini-buckets, from above and then from below, each until ten evaluations bring less than a hundredth of the
        width; none where to find them, which cannot be interrupted, would take too much of the time.
        """
        limit, memory = self.ledger.time_limit, self.bytes
        if limit is not None:
            tables = self.tables.structure.n_factors + self.tables.structure.n_variables
            if _FITTING * tables > max(0.1 * limit, 0.4):
                return
            memory = int(min(memory, max(_MINI * limit, _LEAST)))
        self.ledger.more()
        order = good_order(self.tables.structure, self.ledger.alive).order
        for sign in (1, -1):
            self.ledger.more()
            made, _ = fitting(self.tables, order, sign, memory)
            why, best = f"Hölder in mini-buckets ({len(made.splits)} buckets split)", [np.inf]

            def report(value, slack, sign=sign, why=why, best=best):
                if sign > 0:
                    self.offer_upper(value, why, slack)
                else:
                    self.offer_lower(-value, why, slack)
                best.append(min(best[-1], value + slack))
                stuck = len(best) > 11 and best[-11] - best[-1] < 0.01 * max(self.upper - self.lower, 1e-9)
                if math.isfinite(value) and not stuck:
                    self.ledger.more()
                return math.isfinite(value) and not stuck

            if made.exact:
                value, _, slack = made.bound(np.zeros(0))
                report(value, slack)
            else:
                tighten(made, report)

    # Below -----------------------------------------------------------------------------------------------------------

    def naive(self) -> None:
        """Naive mean field; from a possible state, whose weight alone is a bound, where it finds none itself."""
        layout, theta = Incidence.of(self.structure), np.array(self.theta)
        starts = layout.node_starts
        fields = np.zeros(int(starts[-1]))
        own = self.tables.theta[int(self.tables.structure.table_starts[-1]) :]
        fields[:] = np.where(np.isneginf(own), -50.0, own)
        q = normalise(fields, starts) if self.memory.q is None else self.memory.q.copy()
        self.ascend(q, theta, layout)
        if self.lower > -np.inf:
            # without fields equal probabilities are stationary, however strong the couplings
            even = np.abs(q - normalise(np.zeros(fields.size), starts)) < 1e-3
            if even.mean() > _EVEN and self.memory.q is None:
                draws = generator(self.seed).standard_exponential(fields.size)
                self.ascend(normalise(np.log(draws), starts), theta, layout)
            return
        self.ledger.more()
        start = np.array([int(np.argmax(each)) for each in layout.split(q)], dtype=np.int64)
        state = possible_state(self.structure, theta, start, self.seed, self.ledger.alive, _REPAIRS)
        if state is not None:
            q[:] = 0.0
            q[starts[:-1] + state] = 1.0
            self.offer_q(q, theta, layout, "the weight of one state")
            self.ascend(q, theta, layout)

    def ascend(self, q: np.ndarray, theta: np.ndarray, layout: Incidence) -> None:
        """Sweeps from `q`, which is changed, until they bring less than a thousandth of the width."""
        visits = float((np.diff(layout.table_starts) * np.diff(layout.first) ** 2).sum())
        sweeps = int(np.clip(_VISITS / max(visits, 1.0), 1, 20))
        value = -np.inf
        for _ in range(20):
            self.ledger.more()
            ascend(q, theta, sweeps, 1e-6, np.empty(sweeps), tuple(layout))
            last, value = value, self.offer_q(q, theta, layout, "naive mean field")
            if value - last < 1e-3 * min(self.upper - self.lower, 1e3) or value == last:
                return

    def offer_q(self, q: np.ndarray, theta: np.ndarray, layout: Incidence, why: str) -> float:
        """The bound of independent variables."""
        value, size = free_energy(q, theta, tuple(layout))
        terms = float(layout.table_starts[-1] + layout.node_starts[-1] + np.diff(layout.first).max(initial=0))
        if np.isfinite(value) and (self.offer_lower(value, why, rounding(size, terms=terms)) or self.q is None):
            self.q = q.copy()
        return float(value)

    def below(self, cuts: list[Partition], sweeps: int = _SWEEPS) -> None:
        """Mean field over the blocks of each partition, or over others where there is none; few `sweeps` are for the
        first of them only.
        """
        for cut in cuts:
            self.structured([block.variables for block in cut.blocks], sweeps)
        if not cuts:
            if self.choices is None:
                limit, memory = self.ledger.time_limit, self.bytes
                if limit is not None:
                    memory = int(min(memory, max(_DENSE * limit, _LEAST)))
                self.choices = block_choices(self.structure, self.theta, memory, self.ledger.alive)
            for parts in self.memory.blocks:
                self.structured(parts, sweeps)
            while sweeps == _SWEEPS or not self.memory.blocks:
                self.ledger.more()
                parts = next(self.choices, None)
                if parts is None:
                    return
                self.memory.blocks.append(parts)
                self.structured(parts, sweeps)

    def structured(self, parts: list[np.ndarray], sweeps: int = _SWEEPS) -> None:
        """Sweeps over blocks, once for a partition, from the best distributions so far, until they bring less than a
        thousandth of a nat.
        """
        key = np.concatenate([np.append(part, -1) for part in parts]).tobytes()
        joint = self.seen.get(key)
        if joint is None:
            if key in self.seen:
                return
            self.ledger.more()
            joint = Blocks(
                self.structure, self.theta, parts, self.bytes, self.n_jobs, self.ledger.alive, self.memory.known
            )
            if self.q is None:
                joint.begin(None)
            else:
                joint.begin_from(self.q)
            self.seen[key] = joint
        value = -np.inf
        for _ in range(sweeps):
            self.ledger.more()
            joint.sweep()
            last, (value, slack) = value, joint.bound()
            if self.offer_lower(value, f"structured mean field over {len(parts)} blocks", slack):
                self.q = np.concatenate(joint.single())
            if len(parts) == 1 or value - last < 1e-3 or value == last:
                self.seen[key] = None
                return
        if sweeps == _SWEEPS:
            self.seen[key] = None

    def anneal(self, round_: int) -> None:
        """A round of estimates, twice as long as the last, with half of what is left of `delta`."""
        self.ledger.more()
        visits = _ESTIMATES * max(self.tables.structure.scopes.size, 1)
        limit = self.ledger.time_limit
        most = _FIRST_ROUND * (1.0 if limit is None else min(1.0, 0.1 * limit))
        steps = int(np.clip(most / visits, 64, 2000)) * 2**round_
        estimates = annealed(self.tables, _ESTIMATES, steps, (self.seed + round_) % 2**63, self.n_jobs)
        share = self.delta * 0.5 ** (round_ + 1)
        value = lower_from_estimates(estimates, share)
        top = estimates.max()
        if np.isfinite(value):
            slack = rounding(float(np.abs(estimates).max()), terms=8.0 * (self.tables.structure.n_factors + 8))
            self.offer_lower(min(value, self.upper), f"{_ESTIMATES} annealed estimates", slack, likely=True)
            self.estimate = float(top + np.log(np.mean(np.exp(estimates - top))))


class _Watched(Moved):
    """A bound that remembers the best point."""

    def __init__(self, combination: Combination, point: np.ndarray):
        super().__init__(combination, point)
        self.best, self.value = point, np.inf

    def bound(self, x: np.ndarray) -> tuple[float, np.ndarray, float]:
        value, gradient, slack = super().bound(x)
        if value + slack < self.value:
            self.best, self.value = self.point + x, value + slack
        return value, gradient, slack
