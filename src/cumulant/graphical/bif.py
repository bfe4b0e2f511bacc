"""BIF files: Bayesian networks in the interchange format of 1998, read and written."""

import math
import os
import re
from typing import Any

import numpy as np

from cumulant.errors import FileFormatError
from cumulant.files import write_atomically
from cumulant.graphical.bayes_net import BayesNet, normalised
from cumulant.graphical.uai import TextFile

_LARGEST_FILE, _LARGEST_TABLE = 2**28, 2**26
_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(r'"[^"\n]*"|[{}()\[\],;|]|[^\s{}()\[\],;|"]+|"')
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_NUMBERS = re.compile(r"[-+.\deE,\s]*;")  # what most rows of probabilities look like: read at once
_ROW = r'\s*+\(([^(){}\[\]|;"]*+)\)([-+.\deE,\s]*+);'
_ROWS, _ONE_ROW = re.compile(f"(?:{_ROW})++"), re.compile(_ROW)
_PLAIN = re.compile(r"[A-Za-z0-9_.<>=+-]+\Z")  # a name that needs no quotes
_ROWS_SUM = 1e-3  # published networks print a few digits: a row may be off by that, and is divided by its sum


class _Words(TextFile):
    """The words of a BIF file from a place in its text on; `at` is where the last one ends."""

    def __init__(self, path: str | os.PathLike):
        self.text, self.at = "", 0
        super().__init__(path, _LARGEST_FILE)
        data = self.path.read_bytes()
        try:
            self.text = data.decode("utf-8")
        except UnicodeDecodeError as problem:
            self.text, self.at = data.decode("latin-1"), problem.start
            self.refuse("holds bytes that are not text")
        if "//" in self.text or "/*" in self.text:
            self.text = _COMMENT.sub(_without_comment, self.text)

    def refuse(self, what: str) -> Any:
        self.line = 1 + self.text.count("\n", 0, self.at)
        raise FileFormatError(f"{self.path}, line {self.line}: {what}")

    def more(self) -> bool:
        """Whether a word follows."""
        return _SPACE.match(self.text, self.at).end() < len(self.text)  # type: ignore[union-attr]

    def next(self, what: str) -> str:
        found = _TOKEN.search(self.text, self.at)
        if found is None:
            self.refuse(f"the file ends where {what} should come")
        assert found is not None
        self.at = found.end()
        return found.group().strip('"')

    def expect(self, *wanted: str) -> str:
        word = self.next(" or ".join(map(repr, wanted)))
        return (
            word if word in wanted else self.refuse(f"{' or '.join(map(repr, wanted))} should come; got {word!r:.40}")
        )

    def peek(self) -> str:
        found = _TOKEN.search(self.text, self.at)
        return "" if found is None else found.group().strip('"')

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

    def rows(self, places: list[dict[str, int]], width: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The numbers and the probabilities of all rows that come next, where these are written as usual and right;
        else None: then they are read word by word, and what is wrong is refused with its line.
        """
        found = _ROWS.match(self.text, self.at)
        if found is None:
            return None
        given, numbers = zip(*_ONE_ROW.findall(found.group()), strict=True)
        states, probabilities = _columns(given, len(places)), _columns(numbers, width)
        if not states or not probabilities:
            return None
        try:
            where = sum(
                np.array([place[state] for state in column]) for place, column in zip(places, states, strict=True)
            )
            values = np.array([list(map(float, column)) for column in probabilities]).T
        except (KeyError, ValueError):
            return None
        if not (np.isfinite(values) & (values >= 0.0)).all():
            return None
        self.at = found.end()
        return np.asarray(where), values

    def numbers(self) -> list[float]:
        """Probabilities up to a semicolon."""
        found = _NUMBERS.match(self.text, self.at)
        if found is None:
            words = self.names(";")
        else:
            words, self.at = found.group()[:-1].replace(",", " ").split(), found.end()
        try:
            out = list(map(float, words))
        except ValueError:
            return self.refuse(f"a probability should come; got {next(filter(_no_number, words))!r:.40}")
        wrong = [k for k, p in enumerate(out) if not 0.0 <= p < math.inf]
        if wrong:
            self.refuse(f"a probability must not be negative, infinite or NaN; got {words[wrong[0]]}")
        return out


def _columns(texts: tuple[str, ...], count: int) -> list[list[str]]:
    """The first words of some texts, the second ones, and so on; none where a text does not have `count` words."""
    words = (" ; ".join(texts) + " ;").replace(",", " ").split()
    step = count + 1
    if len(words) != step * len(texts) or set(words[count::step]) != {";"}:
        return []
    return [words[k::step] for k in range(count)]


def _no_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return True
    return False


def _without_comment(found: re.Match) -> str:
    """A quoted name as it is; a comment as the ends of its lines, so that these keep their numbers."""
    text = found.group()
    return text if text.startswith('"') else " " + "\n" * text.count("\n")


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
    if math.prod(shape) > _LARGEST_TABLE:
        file.refuse(f"the table of {name!r} would have {math.prod(shape):.3g} entries")
    table = np.full(shape, np.nan)
    rows = table.reshape(-1, shape[-1])
    # of each parent: the part of the number of a row that a state adds
    strides = [math.prod(shape[k + 1 : -1]) for k in range(len(above))]
    places = [{state: k * step for k, state in enumerate(states[p])} for p, step in zip(above, strides, strict=True)]

    def row_of(given: list[str]) -> int:
        if len(given) != len(above) or any(state not in place for state, place in zip(given, places, strict=True)):
            file.refuse(f"{tuple(given)!s:.60} are not states of the parents {tuple(above)}")
        return sum(place[state] for state, place in zip(given, places, strict=True))

    def row() -> list[float]:
        numbers = file.numbers()
        if len(numbers) != shape[-1]:
            file.refuse(f"a row of {name!r} needs {shape[-1]} probabilities; got {len(numbers)}")
        return numbers

    file.expect("{")
    while True:
        if above and (found := file.rows(places, shape[-1])) is not None:
            rows[found[0]] = found[1]
            continue
        word = file.expect("table", "default", "(", "property", "}")
        if word == "}":
            break
        if word == "property":
            file.skip_property()
        elif word == "(":
            where = row_of(file.names(")"))
            rows[where] = row()
        elif word == "default":
            numbers = row()
            rows[np.isnan(rows).any(axis=1)] = numbers
        elif above:  # the format runs through the variable first: its states are the slowest axis
            numbers = file.numbers()
            if len(numbers) != table.size:
                file.refuse(f"the table of {name!r} needs {table.size} probabilities; got {len(numbers)}")
            table[...] = np.moveaxis(np.array(numbers).reshape(shape[-1], *shape[:-1]), 0, -1)
        else:
            rows[0] = row()
    total = table.sum(axis=-1, keepdims=True)
    if not (np.abs(total - 1.0) <= _ROWS_SUM).all():
        file.refuse(f"the probabilities of {name!r} must be given for all states of its parents and sum to one")
    tables[name], parents[name] = normalised(table), above


def write_bif(path: str | os.PathLike, net: BayesNet, name: str = "unknown") -> None:
    """Write a network as a BIF file, which `read_bif` reads back to the last digit.

    Names that other programs might not read are put in quotes. Without names of states, the states are called 0, 1, ...

    >>> import tempfile, pathlib
    >>> net = BayesNet({"side": [0.4, 0.6]}, states={"side": ["head", "tail"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "coin.bif"
    ...     write_bif(path, net)
    ...     print(path.read_text())
    network unknown {
    }
    variable side {
      type discrete [ 2 ] { head, tail };
    }
    probability ( side ) {
      table 0.4, 0.6;
    }
    <BLANKLINE>
    """
    called = {v: _quoted(v) for v in net.variables}
    states = net.states or {v: range(size) for v, size in zip(net.variables, net.cardinalities, strict=True)}
    words = {v: [_quoted(state) for state in states[v]] for v in net.variables}
    out = [f"network {_quoted(name)} {{", "}"]
    for v in net.variables:
        out += [f"variable {called[v]} {{", f"  type discrete [ {len(words[v])} ] {{ {', '.join(words[v])} }};", "}"]
    for v, table in net.tables.items():
        above = net.parents[v]
        given = f" | {', '.join(called[p] for p in above)}" if above else ""
        out.append(f"probability ( {called[v]}{given} ) {{")
        rows = (", ".join(map(repr, row)) for row in table.reshape(-1, table.shape[-1]).tolist())
        for row, place in zip(rows, np.ndindex(table.shape[:-1]), strict=True):
            key = ", ".join(words[p][k] for p, k in zip(above, place, strict=True))
            out.append(f"  ({key}) {row};" if above else f"  table {row};")
        out.append("}")
    write_atomically(path, ("\n".join(out) + "\n").encode())


def _quoted(word: Any) -> str:
    text = str(word)
    if '"' in text or "\n" in text or not text.strip():
        raise ValueError(f"a name in a BIF file must be text in one line without quotation marks; got {text!r:.40}")
    return text if _PLAIN.match(text) and text != "-" else f'"{text}"'
