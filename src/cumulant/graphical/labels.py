"""What variables and states are called: the one place where names become numbers, and numbers names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.errors import DomainError


class NamedList(list):
    """One entry for each variable: by its number, as in any list, or by its name.

    >>> NamedList([0.1, 0.9], ("rain", "wet"))["wet"]
    0.9
    """

    def __init__(self, entries: Any, names: tuple[str, ...]):
        super().__init__(entries)
        self.names = names

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"there is no variable {key!r}; there are {', '.join(self.names)!s:.200}")
            key = self.names.index(key)
        return super().__getitem__(key)


@dataclass(frozen=True)
class Labels:
    """Names of variables and of their states; numbers can still be used.

    A variable is meant by its name or by its number, a state by its name or by its value in data: 0, 1, 2, ..., or
    what `values` says (-1 and 1 for spins).

    Attributes
    ----------
    cardinalities : tuple of int
        How many states each variable has.
    names : tuple of str or None
        One for each variable.
    states : tuple of tuples of str or None
        One for each state of each variable.
    values : tuple of int or None
        What states are called in data where they have no names; 0, 1, 2, ... without it.
    """

    cardinalities: tuple[int, ...]
    names: tuple[str, ...] | None = None
    states: tuple[tuple[str, ...], ...] | None = None
    values: tuple[int, ...] | None = None

    @classmethod
    def of(cls, cardinalities: Any, names: Any = None, states: Any = None, values: Any = None) -> "Labels":
        """From what a user gives: `states` may be one list for all variables, one for each, or a mapping of variables
        to lists.
        """
        sizes = tuple(np.asarray(cardinalities, dtype=np.int64).tolist())
        if names is not None:
            names = _strings(names, "names must be a string for each variable")
            if len(names) != len(sizes):
                raise ValueError(f"names must have one name for each of the {len(sizes)} variables; got {len(names)}")
        plain = cls(sizes, names, None, values)
        if states is None:
            return plain
        if isinstance(states, Mapping):
            given = {plain.variable(v): some for v, some in states.items()}
            missing = [plain.name(v) for v in range(len(sizes)) if v not in given]
            if missing:
                raise ValueError(f"states has no entry for variable {missing[0]!r}")
            each = [given[v] for v in range(len(sizes))]
        else:
            one = all(isinstance(state, str) for state in states) and not isinstance(states, str)
            each = [states] * len(sizes) if one else list(states)
        if len(each) != len(sizes):
            raise ValueError(f"states must be a list for each of the {len(sizes)} variables; got {len(each)}")
        read = []
        for v, some in enumerate(each):
            read.append(_strings(some, f"states of variable {plain.name(v)!r} must be strings"))
            if len(read[v]) != sizes[v]:
                raise ValueError(
                    f"states of variable {plain.name(v)!r} must be {sizes[v]} names; got {len(read[v])}: {read[v]}"
                )
        return cls(sizes, names, tuple(read), values)

    @cached_property
    def _sizes(self) -> np.ndarray:
        return np.array(self.cardinalities, dtype=np.int64)

    def name(self, v: int) -> Any:
        """What variable number `v` is called."""
        return v if self.names is None or v >= len(self.names) else self.names[v]

    def variable(self, v: Any) -> int:
        """The number of a variable that is meant by its name or number."""
        n = len(self.cardinalities)
        if isinstance(v, str) and self.names is not None and v in self.names:
            return self.names.index(v)
        if isinstance(v, bool) or not isinstance(v, int | np.integer) or not 0 <= v < n:
            called = f"{', '.join(self.names)!s:.200}, or " if self.names is not None else ""
            raise ValueError(f"there is no variable {v!r}: there are {called}the variables from 0 to {n - 1}")
        return int(v)

    def variables(self, several: Any) -> list[int]:
        """The numbers of different variables."""
        wanted = [self.variable(v) for v in several]
        if len(set(wanted)) < len(wanted):
            raise ValueError(f"variables must be different; got {list(several)}")
        return wanted

    def allowed(self, v: int) -> tuple:
        """What the states of variable number `v` are called."""
        if self.states is not None:
            return self.states[v]
        return self.values or tuple(range(self.cardinalities[v]))

    def state(self, v: int, value: Any) -> int:
        """The number of a state of variable number `v` that is meant by its name or value."""
        if isinstance(value, str) and self.states is not None and value in self.states[v]:
            return self.states[v].index(value)
        numbers = self.values or range(self.cardinalities[v])
        if isinstance(value, bool | str | bytes) or getattr(value, "shape", ()) or value not in numbers:
            raise DomainError(
                f"variable {self.name(v)!r} has no state {value!r}: its states are {self.allowed(v)!s:.120}"
            )
        return list(numbers).index(value)

    def value(self, v: int, state: int) -> Any:
        """What a state of variable number `v` is called; the inverse of `state`."""
        return self.allowed(v)[state]

    def number(self, state: int) -> int:
        """The number that stands for a state in data, whatever it is called."""
        return state if self.values is None else self.values[state]

    def numbers(self, states: np.ndarray) -> np.ndarray:
        """The same for an array of states."""
        return states if self.values is None else np.array(self.values)[states]

    def encode(self, x: Any, name: str = "x") -> np.ndarray:
        """Data as states 0, 1, 2, ...: an array with the variables on its last axis, or a data frame or mapping with a
        column for each variable. A `DomainError` names a value that is no state; `name` is what a user calls the data.
        """
        if isinstance(x, Mapping) or hasattr(x, "columns"):
            x = self._columns(x, name)
        x = checks.array(name, x)
        n = len(self.cardinalities)
        if x.ndim == 0 or x.shape[-1] != n:
            raise ValueError(f"{name} must have the {n} variables on its last axis; got shape {x.shape}")
        if x.dtype.kind in "OU" and self.states is not None:
            flat = x.reshape(-1, n)
            with checks.about(name):
                found = [[self.state(v, value) for v, value in enumerate(row)] for row in flat.tolist()]
            return np.array(found, dtype=np.int64).reshape(x.shape)
        whole = x.astype(np.int64) if x.dtype.kind in "iubf" else None
        if whole is None or (x.dtype.kind == "f" and not np.array_equal(whole, x)):
            raise TypeError(f"{name} must hold whole numbers, the states of the variables; got dtype {x.dtype}")
        if self.values is not None:
            values = np.array(self.values)
            whole = np.searchsorted(values, whole)
            wrong = values[np.minimum(whole, values.size - 1)] != x
        else:
            wrong = (whole < 0) | (whole >= self._sizes)
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            with checks.about(name):
                self.state(place[-1], x[place].item())
        return whole

    def _columns(self, x: Any, name: str) -> np.ndarray:
        with checks.about(name):
            found = {self.variable(column): x[column] for column in (x if isinstance(x, Mapping) else x.columns)}
        missing = [self.name(v) for v in range(len(self.cardinalities)) if v not in found]
        if missing:
            raise ValueError(f"{name} must have a column for each variable; {missing[0]!r} is missing")
        parts = [np.asarray(found[v]) for v in range(len(self.cardinalities))]
        kind = object if any(part.dtype.kind in "OU" for part in parts) else None
        return np.stack([np.asarray(part, dtype=kind) for part in parts], axis=-1)

    def decode(self, states: np.ndarray, variables: Sequence[int] | None = None) -> np.ndarray:
        """States 0, 1, 2, ... as they are called; the inverse of `encode`. The last axis are all variables, or
        `variables`.
        """
        if self.states is None:
            return self.numbers(states)
        which = range(len(self.cardinalities)) if variables is None else variables
        longest = max((len(state) for some in self.states for state in some), default=1)
        out = np.empty(states.shape, dtype=f"<U{longest}")
        for k, v in enumerate(which):
            out[..., k] = np.array(self.states[v])[states[..., k]]
        return out

    def by_name(self, entries: Any) -> Any:
        """A list with one entry for each variable, which names can be used on where there are any."""
        return entries if self.names is None else NamedList(entries, self.names)

    def settings(self) -> dict[str, Any]:
        """What a file keeps of the names."""
        states = None if self.states is None else [list(some) for some in self.states]
        return {"names": None if self.names is None else list(self.names), "states": states}


def _strings(some: Any, rule: str) -> tuple[str, ...]:
    found = tuple(some)
    if isinstance(some, str) or any(not isinstance(each, str) for each in found):
        raise ValueError(f"{rule}, as whole numbers mean positions; got {some!r:.80}")
    if len(set(found)) < len(found):
        twice = next(each for each in found if found.count(each) > 1)
        raise ValueError(f"{rule}, all different; {twice!r} comes twice")
    return found
