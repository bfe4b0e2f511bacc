"""When each table of an elimination exists: what a pass needs in memory is known, to the byte, before it starts.

A forward pass frees a message once it is used. A backward pass needs the messages again: it keeps those that cross from
one segment of the steps to the next, and recomputes the others segment by segment (checkpointing; Griewank 1992).
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cumulant.graphical.exact.program import Program

FORWARD, BACKWARD = 0, 1


class Event(NamedTuple):
    """One step, forward or backward, and where the tables that it makes begin."""

    kind: int
    step: int
    places: tuple[tuple[int, int], ...]  # (table, offset)


@dataclass(frozen=True)
class Schedule:
    """Events in their order, and the entries of the space they need."""

    events: tuple[Event, ...]
    entries: int
    segments: int


def plan(program: Program, backward: bool, beliefs: bool, limit: int) -> Schedule:
    """A schedule with the fewest segments that needs at most `limit` entries, or the smallest there is.

    It is found once for a program: models that differ in their numbers only share it.
    """
    key = (backward, beliefs, limit)
    if key not in program.schedules:
        program.schedules[key] = _plan(program, backward, beliefs, limit)
    return program.schedules[key]


def _plan(program: Program, backward: bool, beliefs: bool, limit: int) -> Schedule:
    sequence = _sequence(program)
    fixed = _fixed(program, beliefs)
    if not backward:
        return _simulate(program, sequence, 1, fixed, False)
    best, segments = None, 1
    while segments <= max(1, len(sequence)):
        found = _simulate(program, sequence, segments, fixed, True)
        if found.entries <= limit:
            return found
        if best is None or found.entries < best.entries:
            best = found
        segments *= 2
    assert best is not None
    return best


def _fixed(program: Program, beliefs: bool) -> int:
    """Entries of factors, of their beliefs where these are wanted, and of the marginals."""
    factors = int(program.lengths[: program.n_factors].sum())
    return factors * (2 if beliefs else 1) + int(program.structure.cardinalities.sum())


def _sequence(program: Program) -> list[int]:
    """Steps with their sources before them, one part of the tree after the other, the part with most memory first."""
    n, n_factors = program.n_steps, program.n_factors
    need = np.zeros(n)
    children = [[t - n_factors for t in program.terms_of(s) if t >= n_factors] for s in range(n)]
    for s in range(n):  # steps are numbered with sources first
        children[s].sort(key=lambda c: program.lengths[n_factors + c] - need[c])
        held = 0.0
        for c in children[s]:
            need[s] = max(need[s], held + need[c])
            held += program.lengths[n_factors + c]
        need[s] = max(need[s], held + program.lengths[n_factors + s])
    sequence = []
    for root in program.roots.tolist():
        waiting = [(root, False)]
        while waiting:
            s, ready = waiting.pop()
            if ready:
                sequence.append(s)
            else:
                waiting.append((s, True))
                waiting += [(c, False) for c in reversed(children[s])]
    return sequence


class _Space:
    """First-fit allocation: free blocks, sorted by their beginning."""

    def __init__(self, begin: int):
        self.end = self.top = begin
        self.free: list[tuple[int, int]] = []
        self.taken: dict[tuple[int, int], tuple[int, int]] = {}

    def take(self, key: tuple[int, int], size: int) -> int:
        for i, (begin, room) in enumerate(self.free):
            if room >= size:
                self.free[i : i + 1] = [(begin + size, room - size)] if room > size else []
                break
        else:
            grows = self.free and sum(self.free[-1]) == self.top  # the last free block, which is at the end
            begin = self.free.pop()[0] if grows else self.top
            self.top = begin + size
            self.end = max(self.end, self.top)
        self.taken[key] = (begin, size)
        return begin

    def give(self, key: tuple[int, int]) -> None:
        begin, size = self.taken.pop(key)
        at = bisect_left(self.free, (begin, size))
        first, last = at, at
        if at < len(self.free) and begin + size == self.free[at][0]:
            size, last = size + self.free[at][1], at + 1
        if at > 0 and sum(self.free[at - 1]) == begin:
            begin, size, first = self.free[at - 1][0], self.free[at - 1][1] + size, at - 1
        self.free[first:last] = [(begin, size)]


def _simulate(program: Program, sequence: list[int], segments: int, fixed: int, backward: bool) -> Schedule:
    n_factors, lengths = program.n_factors, program.lengths
    size = np.cumsum([lengths[n_factors + s] for s in sequence])
    segment_of = np.zeros(program.n_steps, dtype=np.int64)
    segment_of[sequence] = np.minimum((size - 1) * segments // max(int(size[-1]), 1), segments - 1) if sequence else 0
    messages = [[t for t in program.terms_of(s) if t >= n_factors] for s in range(program.n_steps)]
    parts: list[list[int]] = [[] for _ in range(segments)]
    for s in sequence:
        parts[segment_of[s]].append(s)
    space, events = _Space(fixed), []

    def forward(part, keep):
        for s in part:
            if (0, n_factors + s) in space.taken:
                continue  # a checkpoint
            place = space.take((0, n_factors + s), int(lengths[n_factors + s]))
            events.append(Event(FORWARD, s, ((n_factors + s, place),)))
            for t in () if keep else messages[s]:
                if not backward or segment_of[t - n_factors] == segment_of[s]:
                    space.give((0, t))

    def back(part):
        for s in reversed(part):
            own = n_factors + s
            places = []
            if (1, own) not in space.taken:
                places.append((own, space.take((1, own), int(lengths[own]))))  # a root
            places += [(t, space.take((1, t), int(lengths[t]))) for t in messages[s]]
            events.append(Event(BACKWARD, s, tuple(places)))
            space.give((1, own))
            for t in messages[s]:
                space.give((0, t))

    for part in parts[:-1]:
        forward(part, keep=False)
    if not backward:
        forward(parts[-1], keep=False)
    else:
        for part in reversed(parts):
            forward(part, keep=True)
            back(part)
    return Schedule(tuple(events), space.end, segments)
