"""What `run` asks of an engine and what it gets back."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cumulant.certificates import Certificate
from cumulant.errors import CertificateError


class Window(NamedTuple):
    """Which steps to take, and what to watch for.

    At most the steps ``first`` to ``first + length``, recording at multiples of ``every``; where ``grows`` is not 0, of
    twice as many steps each time that the number of steps has doubled, from ``2 * grows`` records on. The run has
    reached its target when ``bound <= tol * max(|value|, scale)``; a negative ``tol`` is never reached. It ends before
    that when the solver says that no further step makes progress (``stuck``), when the ``residual`` is at most
    ``still``, where it may be zero within rounding, or at most ``small``, which the caller asked for; both are negative
    where that is not to be looked at. ``fresh`` asks for the row of step 0.
    """

    first: int
    length: int
    every: int
    tol: float
    scale: float
    still: float = -1.0
    fresh: bool = False
    grows: int = 0
    small: float = -1.0

    def interval(self, step: int) -> tuple[int, float]:
        """The steps between records after `step`, and for how many more steps they stay the same."""
        if not self.grows:
            return self.every, math.inf
        doublings = max((step // (self.grows * self.every)).bit_length() - 1, 0)
        return self.every << doublings, 2 * (self.grows * self.every << doublings) - step

    def to_next_record(self, step: int) -> int:
        """How many steps after `step` the next record is due."""
        every, _ = self.interval(step)
        return every - step % every


class Advance(NamedTuple):
    """What came of it: recorded rows as columns, the steps done, and why the engine ended before the window did."""

    rows: dict[str, np.ndarray]
    done: int
    reached: bool
    diverged: bool
    still: bool = False


def judge(row: Mapping[str, Any], window: Window) -> tuple[Any, Any, Any]:
    """Whether a record is finite, reaches the target, and says that the run may end before it does; also if traced."""
    value, bound = row["value"], row["bound"]
    fine = (row["healthy"] > 0) & (value == value) & (bound == bound)
    enough = (bound <= window.tol * abs(value)) | (bound <= window.tol * window.scale)
    small = row.get("residual", np.inf) <= window.small
    return fine, (window.tol >= 0) & enough, is_still(row, window.still) | small


def is_still(row: Mapping[str, Any], still: float) -> Any:
    """Whether a record says that no further step makes progress; also of traced numbers."""
    stop = still >= 0
    return stop & ((row.get("stuck", 0.0) != 0) | (row.get("residual", np.inf) <= still))


def certified_bound(certify: Callable[[], Certificate]) -> float:
    """The bound that a certificate gives, or infinity where it is refused."""
    try:
        return certify().upper
    except CertificateError:
        return np.inf
