"""Passes over the steps of an elimination, in linear numbers or in logarithms, small ones at once and large ones on
threads.
"""

import math

import numpy as np

from cumulant.errors import DomainError, TooWide
from cumulant.graphical.exact import contraction_kernels
from cumulant.graphical.exact import elimination_kernels as kernels
from cumulant.graphical.exact.program import Program
from cumulant.graphical.exact.schedule import BACKWARD, FORWARD, plan
from cumulant.threads import side_by_side

_TINY = 1e-290  # products above it have not underflown
_AT_ONCE = 2**22  # entries of all tables together up to which all are kept, and one call does all steps
_THREADS = 2**17  # entries of a step from which it is shared among threads
_PARTS = 8  # parts it is cut into, whatever the number of threads


class Pass:
    """One run over the steps, in linear numbers or in logarithms."""

    def __init__(self, program: Program, theta, linear, backward, beliefs, max_memory, n_jobs):
        self.program, self.theta, self.linear = program, theta, linear
        self.backward, self.beliefs, self.max_memory, self.n_jobs = backward, beliefs, max_memory, n_jobs
        n_tables = program.lengths.size
        sizes = program.structure.cardinalities
        self.low, self.high = np.full(n_tables, np.inf), np.zeros(n_tables)
        self.low_adjoint, self.high_adjoint = np.full(n_tables, np.inf), np.zeros(n_tables)
        self.ranges = self.low, self.high, self.low_adjoint, self.high_adjoint
        self.power, self.shift = np.zeros(n_tables, np.int64), np.zeros(program.n_factors)
        self.offsets = np.zeros(n_tables, np.int64)
        self.adjoints = np.full(n_tables + sizes.size, -1, np.int64)
        self.offsets[: program.n_factors] = program.structure.table_starts[:-1]
        self.work = self.work_space()
        self.idle = program.only_factors & (not beliefs)  # steps that the backward pass leaves out
        begin = int(program.structure.table_starts[-1])
        if beliefs:
            self.adjoints[: program.n_factors] = begin + program.structure.table_starts[:-1]
            begin *= 2
        self.adjoints[n_tables:] = begin + np.concatenate([[0], np.cumsum(sizes)])[:-1]
        self.begin = begin + int(sizes.sum())
        self.entries = self.begin + int(program.lengths[program.n_factors :].sum()) * (2 if backward else 1)

    def work_space(self) -> tuple:
        """What the kernels need beside the tables, for one contraction at a time."""
        return (
            kernels.scratch(self.program.structure.n_variables),
            contraction_kernels.work_space(),
            None if self.linear else contraction_kernels.log_space(),
        )

    def open(self, entries: int, modes: np.ndarray) -> None:
        """Make space, and put the factors there."""
        self.values, self.modes = np.empty(entries), modes
        kernels.exponentiate(
            self.theta, self.program.structure.table_starts, self.linear, self.values, self.low, self.high, self.shift
        )
        if not self.linear:
            self.low[:], self.high[:] = 1.0, 1.0

    def run(self):
        """The answers, or None where linear numbers may not do."""
        program = self.program
        modes = np.full(program.n_steps, 0 if self.linear else 1)
        if self.entries <= _AT_ONCE and 8 * self.entries <= self.max_memory:
            done = self.forward(modes)
            if done and self.backward:
                messages = program.lengths[program.n_factors :]
                places = self.offsets[program.n_factors :] + messages.sum()
                self.adjoints[program.n_factors : program.lengths.size] = np.where(self.idle, -1, places)
                done = self.advance(0, program.n_steps, BACKWARD)
        else:
            done = self.scheduled(modes)
        if not done:
            return None
        log_z = self.log_partition()
        if not self.backward or log_z == -np.inf:
            return log_z, [], np.zeros(0)
        n = program.n_factors
        if self.beliefs and self.linear and not (self.low[:n] * self.low_adjoint[:n] > _TINY).all():
            return None  # a table times what multiplies it may vanish
        return log_z, self.marginals(), self.tables() if self.beliefs else np.zeros(0)

    def advance(self, first: int, last: int, kind: int) -> bool:
        """Some steps in one call: forward (0), backward (1), or the marginals of their variables alone (2); False where
        linear numbers may not do.
        """
        return kernels.advance(
            first, last, kind, self.modes, self.values, self.offsets, self.adjoints, self.ranges, self.power,
            self.program.layout, *self.work,
        )  # fmt: skip

    def forward(self, modes: np.ndarray) -> bool:
        """The forward pass in one call, with every message kept."""
        n_factors, messages = self.program.n_factors, self.program.lengths[self.program.n_factors :]
        self.open(self.entries, modes)
        self.offsets[n_factors:] = self.begin + np.cumsum(messages) - messages
        return self.advance(0, self.program.n_steps, FORWARD)

    def keep_all(self, modes: np.ndarray) -> bool:
        """The same for `decode`, where it fits."""
        _require(8 * self.entries, self.max_memory, "all messages at once, for sampling and for best states")
        return self.forward(modes)

    def decode(self, uniforms: np.ndarray, n: int) -> np.ndarray:
        """`n` states: random ones, or the best where there are no `uniforms`."""
        states = np.zeros((n, self.program.structure.n_variables), np.int64)
        weights = np.empty(self.program.structure.cardinalities.max(initial=1))
        kernels.decode(self.linear, uniforms, states, weights, self.values, self.offsets, self.program.layout)
        return states

    # Large models: one step at a time, on several threads, in the space that the schedule found ----------------------

    def scheduled(self, modes: np.ndarray) -> bool:
        """All events of the schedule; `TooWide` before the first where they do not fit."""
        schedule = plan(self.program, self.backward, self.beliefs, self.max_memory // 8)
        _require(8 * schedule.entries, self.max_memory, "its tables")
        self.open(schedule.entries, modes)
        for event in schedule.events:
            if event.kind == FORWARD:
                self.offsets[event.places[0][0]] = event.places[0][1]
            else:
                for table, place in event.places:
                    if not self.idle[table - self.program.n_factors]:
                        self.adjoints[table] = place
                if self.idle[event.step]:
                    continue
            if not self.step(event.step, event.kind):
                return False
        return True

    def step(self, s: int, kind: int) -> bool:
        """One step forward or backward; where it is large, its contractions are shared among threads."""
        program, own = self.program, self.program.n_factors + s
        root = kind == BACKWARD and program.lengths[own] == 1
        if program.clique_sizes[s] < _THREADS or root:
            return self.advance(s, s + 1, kind)
        jobs = [(-1, own)] if kind == FORWARD else enumerate(program.terms_of(s))
        for target, table in jobs:
            place = self.offsets[table] if kind == FORWARD else self.adjoints[table]
            if place < 0:
                continue
            if not self.safe(s, target):
                return False
            low, high = self.in_parts(s, target, table)
            if self.linear:
                power, low, high = kernels.settle(self.values, place, program.lengths[table], low, high)
                if kind == FORWARD:
                    self.power[table], self.low[table], self.high[table] = power, low, high
                else:
                    self.low_adjoint[table], self.high_adjoint[table] = low, high
        return kind == FORWARD or self.advance(s, s + 1, 2)

    def safe(self, s: int, target: int) -> bool:
        """Whether the products of a contraction stay within the range of numbers."""
        return not self.linear or kernels.safe(s, target, self.ranges, self.program.layout)

    def in_parts(self, s: int, target: int, table: int) -> tuple[float, float]:
        """A contraction cut along the first axes of its target; these are its slowest, so that a part is one block."""
        program = self.program
        n_split, n_parts = 0, 1
        if table >= program.n_factors:
            scope = program.pool[program.begins[table] : program.ends[table]]
            while n_split < scope.size and n_parts < _PARTS:
                n_parts *= int(program.structure.cardinalities[scope[n_split]])
                n_split += 1
        mode = int(self.modes[s]) if target == -1 else (0 if self.linear else 1)
        found = side_by_side(
            lambda part: kernels.part_of_step(
                s, target, mode, part, n_parts, n_split, self.values, self.offsets, self.adjoints, program.layout,
                *self.work_space(),
            ),
            n_parts,
            self.n_jobs,
        )  # fmt: skip
        return min(low for low, _ in found), max(high for _, high in found)

    # Answers ---------------------------------------------------------------------------------------------------------

    def log_partition(self) -> float:
        """``log Z``, from the ends of the forward pass."""
        program = self.program
        ends = self.values[self.offsets[program.n_factors + program.roots]]
        if self.linear:
            if (ends <= 0.0).any():
                return -np.inf
            ends = np.append(np.log(ends), math.log(2.0) * self.power[program.n_factors :].sum())
        if self.shift.min(initial=0.0) == -np.inf:
            return -np.inf
        try:
            total = math.fsum(ends.tolist() + self.shift.tolist())
        except OverflowError:
            total = np.inf
        if not total < np.inf:
            largest = np.abs(self.theta[np.isfinite(self.theta)]).max(initial=0.0)
            raise DomainError(f"tables with entries of up to {largest:.3g} are too large to be added up")
        return total

    def marginals(self) -> list[np.ndarray]:
        """The distribution of each variable."""
        n_tables = self.program.lengths.size
        sizes = self.program.structure.cardinalities
        begin = int(self.adjoints[n_tables]) if sizes.size else 0
        flat = self.values[begin : begin + int(sizes.sum())]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if sizes.size else np.zeros(0, np.int64)
        flat = _normalised(flat, starts, sizes, self.linear)
        return np.split(flat, starts[1:]) if sizes.size else []

    def tables(self) -> np.ndarray:
        """The marginal tables of all factors, one after the other."""
        starts = self.program.structure.table_starts
        if starts[-1] == 0:
            return np.zeros(0)
        own, adjoint = self.values[: starts[-1]], self.values[starts[-1] : 2 * starts[-1]].copy()
        alone = np.flatnonzero(np.diff(self.program.structure.scope_starts) == 0)
        adjoint[starts[alone]] = 1.0 if self.linear else 0.0  # a factor of no variables is in no step
        belief = own * adjoint if self.linear else own + adjoint
        return _normalised(belief, starts[:-1], np.diff(starts), self.linear)


def _normalised(flat: np.ndarray, starts: np.ndarray, sizes: np.ndarray, linear: bool) -> np.ndarray:
    if not linear:
        top = np.maximum.reduceat(flat, starts)
        if not np.isfinite(top).all():  # messages that went forth and back differ by their rounding, beyond all numbers
            raise DomainError(
                "the parameters are too large for marginals: the rounding of their sums is far above differences of "
                "states; log_partition() keeps its relative accuracy"
            )
        flat = np.exp(flat - np.repeat(top, sizes))
    return flat / np.repeat(np.add.reduceat(flat, starts), sizes)


def _require(memory: float, max_memory: float, what: str) -> None:
    if memory > max_memory:
        raise TooWide(
            f"exact inference needs {megabytes(memory)} for {what}, max_memory is {megabytes(max_memory)}: raise "
            "max_memory, or ask bound_log_partition for an interval (bound_marginals for marginals)"
        )


def megabytes(count: float) -> str:
    """Bytes, readable."""
    return f"{count / 2**20:.3g} MiB" if count < 2**30 else f"{count / 2**30:.3g} GiB"
