"""Joint tables: one axis for each variable, one entry for each state of all of them together."""

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.errors import TooWide

LARGEST = 2**24  # entries of a joint table: 128 MiB of float64


def distribution(p: Any, name: str = "p") -> np.ndarray:
    """A table of float64 probabilities from one of probabilities or counts: not negative, and divided by its sum."""
    table = checks.real_array(name, p, finite=False)
    if table.ndim == 0 or table.size == 0:
        raise ValueError(f"{name} must be a table with one axis for each variable; got shape {table.shape}")
    if not np.isfinite(table).all() or (table < 0).any():
        raise ValueError(f"{name} must hold finite numbers that are not negative; its smallest entry is {table.min()}")
    total = table.sum()
    if not (total > 0 and np.isfinite(total)):
        raise ValueError(f"{name} must have a positive finite sum; it sums to {total}")
    return table / total


def names_of_axes(table: np.ndarray, variables: Sequence[Hashable] | None, nodes: Iterable[Hashable]) -> tuple:
    """The variable of each axis: `variables`, or 0, 1, 2, ... where none are given. They must include the `nodes`."""
    names = tuple(range(table.ndim)) if variables is None else tuple(variables)
    if len(names) != table.ndim or len(set(names)) != len(names):
        raise ValueError(f"variables must name each of the {table.ndim} axes of the table once; got {names}")
    missing = [node for node in nodes if node not in names]
    if missing:
        hint = "" if variables is not None else " (name the axes of the table with variables=)"
        raise ValueError(f"{missing[0]!r} is not a variable of the table, whose axes are {names}{hint}")
    return names


def axes_of(names: Sequence[Hashable], wanted: Iterable[Hashable]) -> tuple[int, ...]:
    """The axis of each wanted variable."""
    return tuple(names.index(each) for each in wanted)


def require_room(shape: Sequence[int], limit: int, advice: str) -> None:
    """Refuse a joint table of more than `limit` entries."""
    size = math.prod(shape)
    if size > limit:
        raise TooWide(
            f"the joint table of {len(shape)} variables has {size:.3g} entries, above max_states = {limit}: {advice}"
        )
