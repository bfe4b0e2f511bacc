"""How much work a run may do, by the clock or by count, so that what the clock ended can be repeated to the bit."""

import time
from dataclasses import dataclass, field
from typing import Any

from cumulant import checks
from cumulant.sampling.chains import require_counts


class Stopped(Exception):  # noqa: N818  (it is no error)
    """There is no room for one more piece of work."""


class Expired(Exception):  # noqa: N818
    """The time ended within a piece of work, which then counts for nothing."""


@dataclass
class Ledger:
    """Pieces of work so far, and whether there is room for more.

    What a run has found must depend on the pieces that were finished and on nothing else. Then the number of them,
    given as `max_work`, repeats it, whatever the clock says.
    """

    time_limit: float | None
    max_work: int | None
    work: int = 0
    started: float = field(default_factory=time.monotonic)

    def late(self, seconds: float = 0.0) -> bool:
        """Whether the clock says stop, now or before some seconds have passed."""
        if self.max_work is not None or self.time_limit is None:
            return False
        return time.monotonic() - self.started + seconds >= self.time_limit

    def more(self, seconds: float = 0.0) -> None:
        """Begin one more piece of work, or raise `Stopped`: also where it cannot be interrupted and takes too long."""
        if self.late(seconds) or (self.max_work is not None and self.work >= self.max_work):
            raise Stopped
        self.work += 1

    def begin(self) -> None:
        """The same for what was predicted to take less than the whole limit: it is begun even if getting there, and
        compiling, has used the time up.
        """
        if self.max_work is not None:
            self.more()
        else:
            self.work += 1

    def alive(self) -> None:
        """Raise `Expired` where the time has ended within a piece."""
        if self.late():
            raise Expired

    def forget(self) -> None:
        """The last piece was not finished."""
        self.work -= 1


def check_limits(time_limit: Any, max_memory: Any, max_work: Any = None) -> None:
    """Refuse limits that are none."""
    if time_limit is not None and not checks.number("time_limit", time_limit) >= 0:
        raise ValueError(f"time_limit must be a number of seconds that is not negative, or None; got {time_limit!r}")
    if not checks.number("max_memory", max_memory) > 0:
        raise ValueError(f"max_memory must be a positive number of bytes; got {max_memory!r}")
    if max_work is not None:
        require_counts(max_work=(max_work, 0))
