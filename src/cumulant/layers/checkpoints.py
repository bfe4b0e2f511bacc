"""Which states to keep while going back through a long recursion, and what that costs in steps done again.

A schedule is a list of moves. A move takes the state kept at a place, advances it some steps, and either keeps what
comes out at another place or takes one step of the backward pass from there.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from cumulant import checks

BACK = -1  # in place of the place where a state is kept


class CheckpointCost(NamedTuple):
    """Steps done again in the backward pass, and the largest number of states kept at once.

    Griewank and Walther (2008, chapter 12).

    >>> checkpoint_cost(8).extra_steps, checkpoint_cost(8).stored_states
    (12, 4)
    """

    extra_steps: int
    stored_states: int


def checkpoint_cost(n_steps: int, checkpoint: str = "bisection", slots: int | None = None) -> CheckpointCost:
    """What a schedule costs, counted on the schedule itself.

    ``"bisection"``: advance to the middle, go back through the right half, then through the left:
    ``(t/2) log2 t`` steps again and ``log2 t + 1`` states for ``t`` a power of two (Peyré 2021, section 10.6).
    ``"binomial"`` with that number of places: the fewest steps that they allow (`binomial_steps`).

    >>> [checkpoint_cost(t) for t in (8, 64, 1024)] == [(12, 4), (192, 7), (5120, 11)]
    True
    >>> checkpoint_cost(1024, "binomial", slots=11)
    CheckpointCost(extra_steps=3641, stored_states=11)
    """
    moves = schedule(n_steps, checkpoint, slots)
    kept = {int(place) for place in moves[:, 2] if place != BACK} | {0}
    return CheckpointCost(int(moves[:, 1].sum()), len(kept))


def binomial_steps(n_steps: int, slots: int) -> int:
    """The least number of steps done again when that many states are kept, the first among them.

    ``r t - C(s + r, r - 1)`` with the smallest ``r`` such that ``C(s + r, s) >= t`` (Griewank and Walther 2000,
    proposition 1).

    >>> binomial_steps(8, 1), binomial_steps(8, 8)
    (28, 7)
    """
    if checks.whole("n_steps", n_steps) == 1:
        return 0
    checks.whole("slots", slots)
    r = next(r for r in range(n_steps + 1) if math.comb(slots + r, slots) >= n_steps)
    return r * n_steps - math.comb(slots + r, r - 1)


@functools.cache
def schedule(n_steps: int, checkpoint: str = "bisection", slots: int | None = None) -> np.ndarray:
    """The moves (place it starts from, steps to advance, place to keep it at or `BACK`), one to a row.

    >>> schedule(2).tolist()
    [[0, 1, 1], [1, 0, -1], [0, 0, -1]]
    """
    checks.whole("n_steps", n_steps)
    if checkpoint not in ("bisection", "binomial"):
        raise ValueError(f"checkpoint must be 'bisection' or 'binomial'; got {checkpoint!r}")
    if checkpoint == "bisection" and slots is not None:
        raise ValueError("slots is for checkpoint='binomial': bisection keeps log2(n_steps) + 1 states")
    if slots is None:
        slots = math.ceil(math.log2(n_steps)) + 1
    checks.whole("slots", slots)
    moves: list[tuple[int, int, int]] = []
    # Pieces still to go back through, the next one last: their length, and the place of the state they start from.
    pieces = [(n_steps, 0)]
    while pieces:
        length, place = pieces.pop()
        free = slots - place
        if length == 1 or free == 1:
            moves.extend((place, advance, BACK) for advance in range(length - 1, -1, -1))
            continue
        half = length // 2 if checkpoint == "bisection" else _binomial_split(length, free)
        moves.append((place, half, place + 1))
        pieces += [(half, place), (length - half, place + 1)]
    return np.array(moves, dtype=np.int32)


def _binomial_split(length: int, slots: int) -> int:
    """How far to advance before the next state is kept (Griewank and Walther 2000)."""
    r = next(r for r in range(length + 1) if math.comb(slots + r, slots) >= length)
    least = max(math.comb(slots + r - 2, slots) if r >= 2 else 1, length - math.comb(slots - 1 + r, slots - 1))
    return min(max(least, 1), length - 1)
