"""Lower bounds of a search: mean field over single variables and over blocks, and annealed estimates."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from cumulant.certificates import rounding
from cumulant.graphical.bounds.around import sum_around
from cumulant.graphical.bounds.context import Context
from cumulant.graphical.bounds.feasible import possible_state
from cumulant.graphical.bounds.partition import Partition
from cumulant.graphical.exact.elimination import largest_entries, slack_of_elimination
from cumulant.graphical.messages.incidence import Incidence, normalise
from cumulant.graphical.messages.mean_field import slack_of_mean_field
from cumulant.graphical.messages.mean_field_kernels import ascend, free_energy
from cumulant.graphical.messages.simple_bounds import improve_state
from cumulant.graphical.messages.structured_blocks import block_choices
from cumulant.graphical.messages.structured_mean_field import Blocks
from cumulant.graphical.samplers.annealed import annealed
from cumulant.randomness import generator
from cumulant.sampling import lower_from_estimates

_DENSE = 2.0**20  # bytes of a block for a second of time, where there are no cuts: one pass cannot be interrupted
_BELIEFS = 5.0e7  # entries of a pass for the tables of a block in a second
_SWEEPS = 25  # of mean field over one partition
_EVEN = 0.1  # of all states that have equal probabilities, from which naive mean field has a second, random start
_VISITS = 2.0e5  # entries that naive mean field looks at between two looks at the clock
_FIRST, _LAST = range(5), range(5, 64)  # rounds of the search for a possible state, before all else and at the end
_AROUND, _AROUND_WITHOUT_CLOCK = 1.0e6, 1.6e7  # entries of a sum around a state: for a second of time, or in all
_SUMS = 8  # around states, each drawn from the last sum
_ESTIMATES, ROUNDS = 128, 6  # of annealing
_FIRST_ROUND = 2.0e8  # visits of a factor in the first round of annealing; each round has twice those of the last


@dataclass
class LowerBounds:
    """Mean field for a search: distributions that are improved from one stage to the next."""

    context: Context
    q: np.ndarray | None = None  # distributions of single variables, those of the best lower bound, one after the other
    choices: Iterator[list[np.ndarray]] | None = None  # of blocks, where there are no cuts
    seen: dict[bytes, Blocks | None] = field(default_factory=dict)  # over which mean field was; None: to its end
    state: np.ndarray | None = None  # one that is possible, where some are not

    def possible(self, last: bool = False) -> bool:
        """Look for a possible state, whose weight alone is a bound; False where there is none, which settles ``log Z``.

        In most models one is found at once, and some time is enough for a start; the `last` time it may take the rest.
        """
        context, theta = self.context, np.array(self.context.theta)
        own = context.tables.theta[int(context.tables.structure.table_starts[-1]) :]
        prefer, rounds = np.where(np.isneginf(own), 0.0, own), _LAST if last else _FIRST
        state, settled = possible_state(context.structure, theta, context.seed, context.ledger.more, rounds, prefer)
        if state is None:
            if settled:
                context.bracket.settle(-np.inf, "a search that refutes every state", 0.0)
            return not settled
        self.state = improve_state(context.structure, theta, state)
        layout = Incidence.of(context.structure)
        self.offer_q(self.certain(layout), theta, layout, "the weight of one state")
        return True

    def around(self, sums: int = _SUMS) -> None:
        """Sums over the states that agree with the possible state on some variables, until two bring nothing more."""
        context, limit = self.context, self.context.ledger.time_limit
        if self.state is None:
            return
        entries = min(_AROUND_WITHOUT_CLOCK if limit is None else _AROUND * limit, context.bytes / 64)
        slack, idle = slack_of_elimination(context.structure, context.theta), 0
        for r in range(sums):
            context.ledger.more()
            found = sum_around(
                context.structure, context.theta, self.state, max(entries, 1.0), context.bytes,
                (context.seed + r) % 2**63, context.ledger.alive, context.n_jobs,
            )  # fmt: skip
            reason = f"the sum over the states that agree with a possible one on {len(found.given)} variables"
            idle = 0 if context.bracket.offer_lower(found.value, reason, slack) else idle + 1
            self.state = found.drawn
            if idle == 2 or not found.given:
                return

    def certain(self, layout: Incidence) -> np.ndarray:
        """Probabilities that are one at the possible state."""
        q = np.zeros(int(layout.node_starts[-1]))
        q[layout.node_starts[:-1] + self.state] = 1.0
        return q

    def naive(self) -> None:
        """Naive mean field, where some states are impossible also from one that is not."""
        context = self.context
        layout, theta = Incidence.of(context.structure), np.array(context.theta)
        starts, tables = layout.node_starts, context.tables
        own = tables.theta[int(tables.structure.table_starts[-1]) :]
        fields = np.where(np.isneginf(own), -50.0, own)
        q = normalise(fields, starts) if context.memory.q is None else context.memory.q.copy()
        self.ascend(q, theta, layout)
        if self.state is not None:
            self.ascend(self.certain(layout), theta, layout)
        elif context.bracket.lower > -np.inf:
            # without fields equal probabilities are stationary, however strong the couplings
            even = np.abs(q - normalise(np.zeros(fields.size), starts)) < 1e-3
            if even.mean() > _EVEN and context.memory.q is None:
                draws = generator(context.seed).standard_exponential(fields.size)
                self.ascend(normalise(np.log(draws), starts), theta, layout)

    def ascend(self, q: np.ndarray, theta: np.ndarray, layout: Incidence) -> None:
        """Sweeps from `q`, which is changed, until they bring less than a thousandth of the width."""
        visits = float((np.diff(layout.table_starts) * np.diff(layout.first) ** 2).sum())
        sweeps = int(np.clip(_VISITS / max(visits, 1.0), 1, 20))
        value, bracket = -np.inf, self.context.bracket
        for _ in range(20):
            self.context.ledger.more()
            ascend(q, np.empty(q.size), theta, sweeps, 1e-6, np.empty(sweeps), tuple(layout))
            last, value = value, self.offer_q(q, theta, layout, "naive mean field (Gibbs' inequality)")
            if value - last < 1e-3 * min(bracket.upper - bracket.lower, 1e3) or value == last:
                return

    def offer_q(self, q: np.ndarray, theta: np.ndarray, layout: Incidence, reason: str) -> float:
        """The bound of independent variables."""
        value, size = free_energy(q, theta, tuple(layout))
        if np.isfinite(value):
            slack = slack_of_mean_field(layout, size)
            if self.context.bracket.offer_lower(value, reason, slack) or self.q is None:
                self.q = q.copy()
        return float(value)

    def over_blocks(self, cuts: list[Partition], sweeps: int = _SWEEPS) -> None:
        """Mean field over the blocks of each partition, or over others where there is none; few `sweeps` are for the
        first of them only.
        """
        context = self.context
        for cut in cuts:
            self.structured([block.variables for block in cut.blocks], sweeps)
        if not cuts:
            blocks = context.memory.blocks
            if self.choices is None:
                memory = context.bytes_in_time(_DENSE)
                self.choices = block_choices(context.structure, context.theta, memory, context.ledger.alive)
            for parts in blocks:
                self.structured(parts, sweeps)
            while sweeps == _SWEEPS or not blocks:
                context.ledger.more()
                parts = next(self.choices, None)
                if parts is None:
                    return
                blocks.append(parts)
                self.structured(parts, sweeps)

    def structured(self, parts: list[np.ndarray], sweeps: int = _SWEEPS) -> None:
        """Sweeps over blocks, once for a partition, from the best distributions so far, until they bring less than a
        thousandth of a nat.
        """
        context, key = self.context, np.concatenate([np.append(part, -1) for part in parts]).tobytes()
        joint = self.seen.get(key)
        if joint is None:
            if key in self.seen:
                return
            context.ledger.more()
            joint = Blocks(
                context.structure, context.theta, parts, context.bytes, context.n_jobs, context.ledger.alive,
                context.memory.known,
            )  # fmt: skip
            if self.q is None:
                joint.begin(None)
            else:
                joint.begin_from(self.q)
            self.seen[key] = joint
        value, reason = -np.inf, f"structured mean field over {len(parts)} blocks (Gibbs' inequality)"
        longest = max(order.entries for order in joint.orders) / _BELIEFS
        for _ in range(sweeps):
            context.ledger.more(longest)
            joint.sweep()
            last, (value, slack) = value, joint.bound()
            if context.bracket.offer_lower(value, reason, slack):
                self.q = np.concatenate(joint.single())
            if len(parts) == 1 or value - last < 1e-3 or value == last:
                self.seen[key] = None
                return
        if sweeps == _SWEEPS:
            self.seen[key] = None


def anneal(context: Context, round_: int, delta: float) -> None:
    """A round of estimates, twice as long as the last, with half of what is left of `delta`."""
    context.ledger.more()
    tables, bracket, limit = context.tables, context.bracket, context.ledger.time_limit
    visits = _ESTIMATES * max(tables.structure.scopes.size, 1)
    most = _FIRST_ROUND * (1.0 if limit is None else min(1.0, 0.1 * limit))
    steps = int(np.clip(most / visits, 64, 2000)) * 2**round_
    estimates, _ = annealed(tables, _ESTIMATES, steps, (context.seed + round_) % 2**63, context.n_jobs)
    value = lower_from_estimates(estimates, delta * 0.5 ** (round_ + 1))
    top = estimates.max()
    if np.isfinite(value):
        size = float(np.abs(estimates[np.isfinite(estimates)]).max())
        size += largest_entries(context.structure, context.theta)[0]
        slack = rounding(size, terms=8.0 * (tables.structure.n_factors + 8) + steps)
        reason = f"{_ESTIMATES} annealed estimates (Markov's inequality)"
        bracket.offer_lower(min(value, bracket.upper), reason, slack, likely=True)
        bracket.estimate = float(top + np.log(np.mean(np.exp(estimates - top))))
