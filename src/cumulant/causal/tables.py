"""Tables of two columns, as categories or as numbers: what the estimator reads."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.causal.discretise import Bins

_MOST_CATEGORIES = 50  # of a column that is not cut into bins
_LEAST_ROWS = 10


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of one column, in sorted order."""

    values: np.ndarray

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.values)

    def codes(self, values: np.ndarray) -> np.ndarray:
        """The place of each value among the categories; one that is not among them is refused."""
        known = {value: i for i, value in enumerate(self.values.tolist())}
        unseen = sorted({repr(v) for v in values.tolist() if v not in known})  # 1 and '1' are two values
        if unseen:
            more = ", ..." if len(unseen) > 5 else ""
            shown = ", ".join(map(repr, self.values[:8].tolist())) + (", ..." if self.size > 8 else "")
            raise ValueError(
                f"has categories that are not known: {', '.join(unseen[:5])}{more}; known are {shown}, those of the "
                "reference unless categories= lists them"
            )
        return np.array([known[v] for v in values.tolist()], dtype=np.int64)

    def labels(self) -> list[str]:
        """The categories as text."""
        return [str(value) for value in self.values]


def read_table(name: str, table: Any) -> tuple[tuple[str, str], list[np.ndarray]]:
    """The names and the two columns of a table: a data frame, or an array of shape (rows, 2)."""
    if hasattr(table, "columns") and hasattr(table, "iloc"):
        names = [str(each) for each in table.columns]
        columns = [np.asarray(table.iloc[:, i]) for i in range(len(names))]
    else:
        values = checks.array(name, table)
        if values.ndim != 2:
            raise ValueError(f"{name} must be a table of two columns, shape (rows, 2); got shape {values.shape}")
        names, columns = ["X", "Y"], list(values.T)
    if len(columns) != 2:
        raise ValueError(f"{name} must have two columns, the two variables; got {len(columns)}")
    if len(columns[0]) < _LEAST_ROWS:
        raise ValueError(f"{name} must have at least {_LEAST_ROWS} rows; got {len(columns[0])}")
    for label, column in zip(names, columns, strict=False):
        missing = np.array([value is None or value != value for value in column.tolist()])
        if np.any(missing):
            raise ValueError(
                f"{name} has {int(missing.sum())} missing values in column {label!r}, the first in row "
                f"{int(np.argmax(missing))}: drop these rows or fill them first"
            )
    return (names[0], names[1]), columns


def read_all(reference: Any, transfers: Any) -> tuple[tuple[str, str], list[np.ndarray], list[list[np.ndarray]]]:
    """The reference and each of the transfers, one table or a sequence of them."""
    names, columns = read_table("reference", reference)
    if names[0] == names[1]:
        raise ValueError(f"reference must have two names for its columns; both are {names[0]!r}")
    several = isinstance(transfers, np.ndarray) and transfers.ndim == 3
    if isinstance(transfers, list | tuple):
        several = not transfers or any(np.ndim(each) != 1 for each in transfers)  # else its rows are those of one table
    tables: list[Any] = list(transfers) if several else [transfers]
    if not tables:
        raise ValueError("transfers must be at least one table from after a change; got none")
    found = []
    for i, table in enumerate(tables):
        label = f"transfers[{i}]" if several else "transfers"
        theirs, columns_there = read_table(label, table)
        if hasattr(table, "columns") and hasattr(reference, "columns") and theirs != names:
            raise ValueError(f"{label} must have the columns {names}, in this order; got {theirs}")
        found.append(columns_there)
    return names, columns, found


def learn_column(
    name: str, values: np.ndarray, n_bins: int | None, categories: Any, strategy: str
) -> Bins | Categories:
    """How a column becomes categories: by bins; those that are given; or each value is one."""
    if n_bins is not None and categories is not None:
        raise ValueError(f"column {name!r} can have n_bins or categories, not both")
    if categories is not None:
        given = Categories(np.array(list(categories), dtype=object))
        if given.size < 2 or len(set(given.values.tolist())) < given.size:
            raise ValueError(f"categories of column {name!r} must be at least two different values; got {categories!r}")
        with checks.about(f"column {name!r} of reference"):
            given.codes(values)
        return given
    if n_bins is not None:
        with checks.about(f"column {name!r} of reference"):
            return Bins.learn(checks.real_array("values", values, ndim=1), n_bins, strategy)
    try:
        kinds = np.array(sorted(set(values.tolist()), key=lambda value: (str(type(value)), value)), dtype=object)
    except TypeError as problem:
        raise TypeError(f"column {name!r} of reference has values that cannot be categories: {problem}") from None
    if len(kinds) < 2:
        raise ValueError(f"column {name!r} of reference has the one value {kinds[0]!r}: it must have at least two")
    if len(kinds) > _MOST_CATEGORIES:
        raise ValueError(
            f"column {name!r} of reference has {len(kinds)} different values: for numbers set n_bins, how many bins "
            f"they are cut into, or family='normal'; as categories there may be {_MOST_CATEGORIES}"
        )
    return Categories(kinds)


def encode(label: str, name: str, column: Bins | Categories, values: np.ndarray, outside: str) -> np.ndarray:
    """The categories of values of a later table."""
    with checks.about(f"column {name!r} of {label}"):
        if isinstance(column, Bins) and outside == "error" and column.beyond(values) > 0:
            low, high = column.edges[0], column.edges[-1]
            raise ValueError(
                f"{column.beyond(values):.1%} of the values are outside of the range of the reference, {low:.4g} to "
                f"{high:.4g}; outside='outer' counts them in the outer bins"
            )
        return column.codes(values)
