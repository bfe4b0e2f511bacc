"""The record of a run: one row each time it was looked at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Trace:
    """Columns of equal length, one entry per record; the first is at step 0.

    Attributes
    ----------
    steps : array of int
        How many steps had been taken.
    seconds : array
        Wall-clock time since the start, compilation included. Where several records fall into one compiled call, the
        time of the inner ones is interpolated.
    value : array
        The objective.
    bound : array
        An upper bound on the distance to the optimum; infinity where the solver knows none.
    extra : mapping of str to array
        Whatever else the solver measures, by name. Also available as ``trace["name"]``.

    Examples
    --------
    >>> trace = Trace(np.array([0, 1]), np.array([0.0, 0.1]), np.array([4.0, 1.0]), np.array([5.0, 2.0]))
    >>> len(trace), trace["value"]
    (2, array([4., 1.]))
    >>> print(trace)
           steps      seconds        value        bound
               0            0            4            5
               1          0.1            1            2
    """

    steps: np.ndarray
    seconds: np.ndarray
    value: np.ndarray
    bound: np.ndarray
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def from_columns(cls, columns: Mapping[str, np.ndarray]) -> "Trace":
        """From a table that has at least the four columns every trace has."""
        rest = {name: column for name, column in columns.items() if name not in _COLUMNS}
        return cls(*(columns[name] for name in _COLUMNS), extra=rest)

    def columns(self) -> dict[str, np.ndarray]:
        """All columns by name."""
        return {name: getattr(self, name) for name in _COLUMNS} | dict(self.extra)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns()[name]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[dict[str, float]]:
        """Row by row, as dictionaries."""
        columns = self.columns()
        return ({name: column[i] for name, column in columns.items()} for i in range(len(self)))

    def __str__(self):
        """A table of at most ten rows, spread over the run."""
        columns = self.columns()
        shown = np.unique(np.linspace(0, len(self) - 1, min(len(self), 10)).round().astype(int))
        lines = [" ".join(f"{name:>12}" for name in columns)]
        lines += [" ".join(f"{column[i]:>12.6g}" for column in columns.values()) for i in shown]
        return "\n".join(lines)


_COLUMNS = ("steps", "seconds", "value", "bound")


class Recorder:
    """Collects pieces of columns as a run goes; `table` puts them together."""

    def __init__(self, columns: Mapping[str, np.ndarray] | None = None):
        self._pieces: list[Mapping[str, np.ndarray]] = [] if columns is None else [columns]

    def add(self, rows: Mapping[str, np.ndarray]) -> None:
        """Append rows given as columns."""
        if len(rows["steps"]):
            self._pieces.append(rows)

    def forget_after(self, steps: int) -> None:
        """Drop the rows beyond a step."""
        table = self.table()
        self._pieces = [{name: column[table["steps"] <= steps] for name, column in table.items()}]

    def table(self) -> dict[str, np.ndarray]:
        """All rows so far, as columns. Kept in one piece, so that asking often costs little."""
        if len(self._pieces) > 1:
            names = self._pieces[0].keys()
            self._pieces = [{name: np.concatenate([piece[name] for piece in self._pieces]) for name in names}]
        return dict(self._pieces[0]) if self._pieces else {}
