"""BIF files: Bayesian networks in the interchange format of 1998, read."""

import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from cumulant.errors import FileFormatError
from cumulant.graphical.bayes_net import BayesNet
from cumulant.graphical.uai import TextFile

_LARGEST_FILE, _LARGEST_TABLE = 2**28, 2**26
_TOKEN = re.compile(r'"[^"\n]*"|[{}()\[\],;|]|[^\s{}()\[\],;|"]+|"')
_ROWS_SUM = 1e-3  # published networks print a few digits: a row may be off by that, and is divided by its sum


class _Words(TextFile):
    def __init__(self, path: str | os.PathLike):
        super().__init__(path, _LARGEST_FILE)
        self.words, self.ahead = self._read(), []

    def _read(self) -> Iterator[tuple[str, int]]:
        with self.path.open("rb") as file:
            comment = False
            for number, raw in enumerate(file, 1):
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError:
                    raise FileFormatError(f"{self.path}, line {number}: holds bytes that are not text") from None
                line = line.split("//")[0] if not comment else line
                for found in _TOKEN.finditer(line.replace("/*", " /* ").replace("*/", " */ ")):
                    word = found.group()
                    if word in ("/*", "*/"):
                        comment = word == "/*"
                    elif not comment:
                        yield word.strip('"'), number

    def more(self) -> bool:
        if not self.ahead:
            self.ahead = [word for word in [next(self.words, None)] if word is not None]
        return bool(self.ahead)

    def next(self, what: str) -> str:
        if not self.more():
            self.refuse(f"the file ends where {what} should come")
        word, self.line = self.ahead.pop()
        return word

    def expect(self, *wanted: str) -> str:
        word = self.next(" or ".join(map(repr, wanted)))
        return (
            word if word in wanted else self.refuse(f"{' or '.join(map(repr, wanted))} should come; got {word!r:.40}")
        )

    def peek(self) -> str:
        return self.ahead[-1][0] if self.more() else ""

    def names(self, end: str) -> list[str]:
        """Names up to the closing sign, with or without commas."""
        out = []
        while (word := self.next(repr(end))) != end:
            if word in "{}()[];|":
                self.refuse(f"a name or {end!r} should come; got {word!r}")
            if word != ",":
                out.append(word)
        return out

    def skip_property(self) -> None:
        while self.next("';'") != ";":
            pass

    def numbers(self) -> list[float]:
        out = []
        for word in self.names(";"):
            try:
                out.append(float(word))
            except ValueError:
                self.refuse(f"a probability should come; got {word!r:.40}")
            if not 0.0 <= out[-1] < np.inf:
                self.refuse(f"a probability must not be negative, infinite or NaN; got {word}")
        return out


def read_bif(path: str | os.PathLike) -> BayesNet:
    """The network of a BIF file, with the names of its variables and states.

    Rows of probabilities are divided by their sum, which must be 1 to 0.001: published files print few digits.
    `FileFormatError` names the line of what is malformed.

    >>> import tempfile, pathlib
    >>> text = '''network coin {}
    ... variable side { type discrete [ 2 ] { head, tail }; }
    ... probability ( side ) { table 0.4, 0.6; }'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "coin.bif"
    ...     _ = path.write_text(text)
    ...     net = read_bif(path)
    >>> net.states, net.marginal("side")
    ({'side': ('head', 'tail')}, array([0.4, 0.6]))
    """
    file = _Words(path)
    states: dict[str, tuple[str, ...]] = {}
    parents: dict[Any, list[str]] = {}
    tables: dict[str, np.ndarray] = {}
    while file.more():
        block = file.expect("network", "variable", "probability")
        if block == "network":
            file.next("the name of the network")
            file.expect("{")
            while file.peek() == "property":
                file.skip_property()
            file.expect("}")
        elif block == "variable":
            _variable(file, states)
        else:
            _probability(file, states, parents, tables)
    missing = [name for name in states if name not in tables]
    if missing or not states:
        file.refuse(f"variable {missing[0]!r} has no probabilities" if missing else "there are no variables")
    try:
        return BayesNet({name: tables[name] for name in states}, parents, states)
    except ValueError as problem:
        return file.refuse(str(problem))


def _variable(file: _Words, states: dict) -> None:
    name = file.next("the name of a variable")
    if name in states:
        file.refuse(f"variable {name!r} comes twice")
    file.expect("{")
    found: tuple[str, ...] | None = None
    while (word := file.expect("type", "property", "}")) != "}":
        if word == "property":
            file.skip_property()
            continue
        file.expect("discrete")
        file.expect("[")
        size = file.next("the number of states")
        file.expect("]")
        file.expect("{")
        found = tuple(file.names("}"))
        if not size.isdigit() or len(size) > 9 or int(size) != len(found) or len(set(found)) < len(found):
            file.refuse(f"variable {name!r} must have {size:.12} different states; got {len(found)}")
        file.expect(";")
    if not found:
        file.refuse(f"variable {name!r} has no states")
    states[name] = found  # type: ignore[assignment]


def _probability(file: _Words, states: dict, parents: dict, tables: dict) -> None:
    file.expect("(")
    name = file.next("a variable")
    above = [] if file.expect("|", ")") == ")" else file.names(")")
    for each in (name, *above):
        if each not in states:
            file.refuse(f"there is no variable {each!r:.40}")
    if name in tables or len({name, *above}) < 1 + len(above):
        file.refuse(f"the probabilities of {name!r} come twice, or a parent does")
    shape = tuple(len(states[each]) for each in (*above, name))
    if np.prod([float(size) for size in shape]) > _LARGEST_TABLE:
        file.refuse(f"the table of {name!r} would have {np.prod([float(s) for s in shape]):.3g} entries")
    table = np.full(shape, np.nan)
    file.expect("{")
    while (word := file.expect("table", "default", "(", "property", "}")) != "}":
        if word == "property":
            file.skip_property()
            continue
        where: tuple = ()
        if word == "(":
            given = file.names(")")
            if len(given) != len(above) or any(g not in states[p] for g, p in zip(given, above, strict=True)):
                file.refuse(f"{tuple(given)!s:.60} are not states of the parents {tuple(above)}")
            where = tuple(states[p].index(g) for g, p in zip(given, above, strict=True))
        numbers = file.numbers()
        if word == "default":
            if len(numbers) != shape[-1]:
                file.refuse(f"a row of {name!r} needs {shape[-1]} probabilities; got {len(numbers)}")
            table = np.where(np.isnan(table), np.array(numbers), table)
        elif word == "table" and above:
            # the format runs through the variable first: its states are the slowest axis
            if len(numbers) != table.size:
                file.refuse(f"the table of {name!r} needs {table.size} probabilities; got {len(numbers)}")
            table = np.moveaxis(np.array(numbers).reshape(shape[-1], *shape[:-1]), 0, -1)
        else:
            if len(numbers) != shape[-1]:
                file.refuse(f"a row of {name!r} needs {shape[-1]} probabilities; got {len(numbers)}")
            table[where] = numbers
    total = table.sum(axis=-1, keepdims=True)
    if not (np.abs(total - 1.0) <= _ROWS_SUM).all():
        file.refuse(f"the probabilities of {name!r} must be given for all states of its parents and sum to one")
    tables[name], parents[name] = table / total, above
