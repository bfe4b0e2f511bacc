"""What `run` asks of an engine and what it gets back."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cumulant.certificates import Certificate
from cumulant.errors import CertificateError

__all__ = ["Advance", "Window", "certified_bound"]


class Window(NamedTuple):
    """Which steps to take, and what to watch for.

    Steps ``first`` to ``first + length``, recording at multiples of ``every``. The run has reached its target when
    ``bound <= tol * max(|value|, scale)``; a negative ``tol`` is never reached. ``fresh`` asks for the row of step 0.
    """

    first: int
    length: int
    every: int
    tol: float
    scale: float
    fresh: bool = False


class Advance(NamedTuple):
    """What came of it: recorded rows as columns, the steps done, whether the target was reached or the run diverged."""

    rows: dict[str, np.ndarray]
    done: int
    reached: bool
    diverged: bool


def certified_bound(certify: Callable[[], Certificate]) -> float:
    """The bound that a certificate gives, or infinity where it is refused."""
    try:
        return certify().upper
    except CertificateError:
        return np.inf
