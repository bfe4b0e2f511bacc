"""Checks that the constants given to a rate make sense."""

from typing import Any

import numpy as np

from cumulant import checks

_MEANING = {"s": ", the step size,", "tau": ", the step size,", "smallest": ", a non-zero singular value,"}
_UNUSED: Any = object()


def constants(L: Any = _UNUSED, mu: Any = _UNUSED, **others: Any) -> None:
    """Refuse constants that no function has: ``L <= 0``, ``mu`` outside ``[0, L]``, a negative or infinite quantity."""
    if L is not _UNUSED:
        checks.positive("L, the smoothness constant,", L)
    if mu is not _UNUSED and not (checks.number("mu", mu) >= 0 and (L is _UNUSED or mu <= L)):
        raise ValueError(f"mu, the strong convexity constant, must be between 0 and L; got mu = {mu}, L = {L}")
    for name, value in others.items():
        if not np.all(np.isfinite(array := checks.real_array(name, value, finite=False)) & (array >= 0)):
            raise ValueError(f"{name} must be finite and not negative; got {value}")


def positive(**values: Any) -> None:
    """Refuse what is not positive and finite."""
    for name, value in values.items():
        checks.positive(f"{name}{_MEANING.get(name, '')}", value)


def ratio(top: Any, bottom: Any) -> Any:
    """``top / bottom``, infinite where `bottom` is zero: there the theorem says nothing yet."""
    bottom = np.asarray(bottom, dtype=np.float64)
    return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), np.inf)[()]


def steps(k: Any) -> np.ndarray:
    """Step counts as floats."""
    k = checks.real_array("k, the number of steps,", k, finite=False)
    if not np.all(k >= 0):
        raise ValueError(f"k, the number of steps, must not be negative; got {k}")
    return k
