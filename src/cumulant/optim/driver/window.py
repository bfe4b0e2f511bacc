"""What `run` asks of an engine and what it gets back."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cumulant.certificates import Certificate
from cumulant.errors import CertificateError

__all__ = ["Advance", "Window", "certified_bound", "is_still"]


class Window(NamedTuple):
    """Which steps to take, and what to watch for.

    Steps ``first`` to ``first + length``, recording at multiples of ``every``. The run has reached its target when
    ``bound <= tol * max(|value|, scale)``; a negative ``tol`` is never reached. It makes no further progress when the
    solver says so (``stuck``) or when the ``residual`` is at most ``still``, which is negative where that is not to be
    looked at. ``fresh`` asks for the row of step 0.
    """

    first: int
    length: int
    every: int
    tol: float
    scale: float
    still: float = -1.0
    fresh: bool = False


class Advance(NamedTuple):
    """What came of it: recorded rows as columns, the steps done, and why the engine ended before the window did."""

    rows: dict[str, np.ndarray]
    done: int
    reached: bool
    diverged: bool
    still: bool = False


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
