"""How the benchmarks measure: alternate the two sides, take medians, report the ratio with its spread."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Row:
    """One line of the table: the peer's time over ours; `bar` is what we promise."""

    name: str
    peer: str
    ours: float
    theirs: float
    ratio: float
    spread: tuple[float, float]
    bar: float

    @property
    def reached(self) -> bool:
        return self.ratio >= self.bar

    def __str__(self):
        low, high = self.spread
        verdict = "reached" if self.reached else "MISSED"
        return (
            f"{self.name:44s} {self.peer:28s} {1e3 * self.ours:10.2f} ms {1e3 * self.theirs:10.2f} ms"
            f"   x{self.ratio:7.2f} [{low:.2f}, {high:.2f}]   bar x{self.bar:g} {verdict}"
        )


def race(name: str, peer: str, ours: Callable, theirs: Callable, *, bar: float = 1.0, repeats: int = 7) -> Row:
    """Warm both up (compilation is not counted for either), then alternate; the ratio is the median of the paired
    ratios.
    """
    ours(), theirs()
    mine, its = [], []
    for _ in range(repeats):
        mine.append(seconds(ours))
        its.append(seconds(theirs))
    ratios = np.array(its) / np.array(mine)
    row = Row(
        name,
        peer,
        float(np.median(mine)),
        float(np.median(its)),
        float(np.median(ratios)),
        (ratios.min(), ratios.max()),
        bar,
    )
    print(row, flush=True)
    return row


def seconds(work: Callable) -> float:
    """The wall-clock time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
