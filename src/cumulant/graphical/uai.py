"""UAI files: models (`MARKOV`, `BAYES`), evidence, and results (`PR`, `MAR`), read and written.

A file is read line by line and never trusted: what it announces is compared with what it holds before space is made for
it, and every refusal names the line.
"""

import errno
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.errors import FileFormatError
from cumulant.files import write_atomically
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.factor_graph import FactorGraph
from cumulant.graphical.structure import Structure

_LARGEST_MODEL, _LARGEST_EVIDENCE, _LARGEST_RESULT = 2**30, 2**26, 2**28  # bytes
_WORD, _DIGIT = re.compile(rb"\S+"), re.compile("[1-9]")


class TextFile:
    """A plain file of at most `largest` bytes, and the line that is being read."""

    def __init__(self, path: str | os.PathLike, largest: int):
        checks.instance("path", path, (str, os.PathLike), "the path of a file")
        self.path, self.line = Path(path), 1
        if not self.path.exists():
            raise FileNotFoundError(errno.ENOENT, "path names no file", str(self.path))
        self.size = self.path.stat().st_size
        if not self.path.is_file():
            raise FileFormatError(f"path must name a file: {self.path} is not a plain file")
        if self.size > largest:
            self.refuse(f"the file has {self.size} bytes; at most {largest} are read")

    def refuse(self, what: str) -> Any:
        """Raise `FileFormatError`, naming the line."""
        raise FileFormatError(f"{self.path}, line {self.line}: {what}")


class _Tokens(TextFile):
    """The words of a text file, one after the other."""

    def __init__(self, path: str | os.PathLike, largest: int):
        super().__init__(path, largest)
        self.left = self.size  # no more than one word in two bytes can follow
        self.words = self._read()

    def _read(self) -> Iterator[str]:
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                self.line = number
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")  # the mark that some editors put first
                if not line.isascii():
                    self.refuse("holds bytes that are not text")
                for found in _WORD.finditer(line):  # one at a time: a line may be the whole file
                    self.left -= found.end() - found.start() + 1
                    yield found.group().decode("ascii")

    def word(self, what: str) -> str:
        word = next(self.words, None)
        return self.refuse(f"the file ends where {what} should come") if word is None else word

    def whole(self, what: str, low: int, high: int) -> int:
        word = self.word(what)
        if not (word.isascii() and word.isdigit() and len(word) <= 18):
            self.refuse(f"{what} must be a whole number; got {word!r:.40}")
        if not low <= int(word) <= high:
            self.refuse(f"{what} must be from {low} to {high}; got {word}")
        return int(word)

    def count(self, what: str, low: int = 0) -> int:
        """How many things follow, of at least one word each."""
        number = self.whole(what, low, 10**18 - 1)
        if number > self.left // 2 + 1:
            self.refuse(f"{what} is {number}, more than the rest of the file can hold")
        return number

    def number(self, what: str) -> float:
        word = self.word(what)
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or "_" in word:
            self.refuse(f"{what} must be a finite number; got {word!r:.40}")
        if value == 0.0 and _DIGIT.search(word.lower().partition("e")[0]):
            self.refuse(f"{what} is too small for a number, and zero would make it impossible; got {word!r:.40}")
        return value

    def end(self) -> None:
        word = next(self.words, None)
        if word is not None:
            self.refuse(f"the file should end here; got {word!r:.40}")


def read_uai(path: str | os.PathLike, evidence: str | os.PathLike | None = None) -> FactorGraph:
    """The model of a UAI file, ``MARKOV`` or ``BAYES``, with the evidence of an evidence file where one is named.

    Raises `FileFormatError`, naming the line, for what is malformed or truncated; a table that is larger than the file
    can hold is refused before space is made for it.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "coin.uai"
    ...     _ = path.write_text("MARKOV 1 2 1 1 0 2 0.25 0.5")
    ...     read_uai(path).marginals()
    [array([0.33333333, 0.66666667])]
    """
    file = _Tokens(path, _LARGEST_MODEL)
    kind = file.word("MARKOV or BAYES")
    if kind not in ("MARKOV", "BAYES"):
        file.refuse(f"the first word must be MARKOV or BAYES; got {kind!r:.40}")
    n = file.count("the number of variables")
    cardinalities = [file.whole(f"the number of states of variable {v}", 1, 2**31) for v in range(n)]
    n_factors = file.count("the number of factors")
    scopes = []
    for f in range(n_factors):
        width = file.count(f"the number of variables of factor {f}")
        scope = [file.whole(f"a variable of factor {f}", 0, n - 1) for _ in range(width)]
        if len(set(scope)) < width:
            file.refuse(f"factor {f} names a variable twice: {tuple(scope)!s:.60}")
        scopes.append(scope)
    tables = [np.zeros(0)]
    for f, scope in enumerate(scopes):
        size = math.prod(cardinalities[v] for v in scope)
        entries = file.count(f"the number of entries of factor {f}")
        if entries != size:
            file.refuse(f"factor {f} over {tuple(scope)!s:.60} must have {size} entries; got {entries}")
        what = f"an entry of factor {f}"
        table = np.empty(entries)
        for j in range(entries):
            table[j] = file.number(what)
            if table[j] < 0:
                file.refuse(f"{what} must not be negative; got {table[j]}")
        tables.append(table)
    file.end()
    with np.errstate(divide="ignore"):  # log 0 = -inf says that the state is impossible
        theta = np.log(np.concatenate(tables))
    model = FactorGraph.from_flat(Structure(np.array(cardinalities, dtype=np.int64), scopes), theta)
    return model if evidence is None else model.given(read_evidence(evidence, cardinalities))


def write_uai(path: str | os.PathLike, model: DiscreteModel, kind: str = "MARKOV") -> None:
    """Write a model: the exponentials of its tables, which must be numbers, and zero only where a state is impossible.

    Logarithms above 709 or below -708 are refused, as the file would hold another model; `save` keeps them. Evidence
    goes to a file of its own: `write_evidence`. With `kind` ``"BAYES"`` each factor must be a conditional distribution
    of the last variable of its scope, and each variable the last of one.
    """
    if kind not in ("MARKOV", "BAYES"):
        raise ValueError(f"kind must be 'MARKOV' or 'BAYES'; got {kind!r}")
    sizes = model.structure.cardinalities.tolist()  # hidden variables included
    lines = [kind, str(len(sizes)), " ".join(map(str, sizes))]
    factors = model.factors
    tables = []
    for f, (_, table) in enumerate(factors):
        with np.errstate(over="ignore", under="ignore"):  # looked for right after
            tables.append(np.exp(table))
        lost = np.isinf(tables[-1]) | ((tables[-1] < np.finfo(float).tiny) & (table > -np.inf))
        if lost.any():
            raise ValueError(
                f"factor {f} has the logarithm {table[lost].flat[0]}: its exponential is not a number in a UAI file "
                "(save keeps logarithms)"
            )
    if kind == "BAYES":
        _check_bayes(model, factors, tables)
    lines += [str(len(factors)), *(" ".join(map(str, (len(scope), *scope))) for scope, _ in factors)]
    for table in tables:
        lines += ["", str(table.size), " ".join(map(repr, table.ravel().tolist()))]
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def _check_bayes(model, factors, tables) -> None:
    children = [scope[-1] for scope, _ in factors if scope]
    if sorted(children) != list(range(model.n_variables)) or len(children) < len(factors):
        raise ValueError("kind 'BAYES' needs one factor for each variable, which is the last of its scope")
    for (scope, _), table in zip(factors, tables, strict=True):
        if not np.allclose(table.sum(axis=-1), 1.0, atol=1e-8):
            raise ValueError(
                f"kind 'BAYES' needs conditional distributions; the factor over {scope} does not sum to one"
            )


def read_evidence(path: str | os.PathLike, cardinalities: Sequence[int] | None = None) -> dict[int, int]:
    """The evidence ``{variable: state}`` of a UAI evidence file.

    Both forms are read: the number of variables and then pairs, and the same after a first line with the number of
    samples, which must be one. An empty file is refused: no evidence is written as 0.
    """
    file = _Tokens(path, _LARGEST_EVIDENCE)
    numbers, lines = [], []
    while (word := next(file.words, None)) is not None:
        if not (word.isascii() and word.isdigit() and len(word) <= 18):
            file.refuse(f"evidence must be whole numbers; got {word!r:.40}")
        numbers.append(int(word))
        lines.append(file.line)
    if not numbers:
        file.refuse("the file is empty: evidence begins with the number of variables, 0 where there is none")
    at = 0
    if len(numbers) != 1 + 2 * numbers[0]:
        if numbers[0] != 1 or len(numbers) < 2 or len(numbers) != 2 + 2 * numbers[1]:
            file.refuse(
                f"{numbers[0]} pairs of a variable and a state are announced; {len(numbers) - 1} numbers follow"
            )
        at = 1
    out: dict[int, int] = {}
    for k in range(at + 1, len(numbers), 2):
        file.line = lines[k]
        v, x = numbers[k], numbers[k + 1]
        if cardinalities is not None and v >= len(cardinalities):
            file.refuse(f"there is no variable {v}: the model has {len(cardinalities)}")
        if cardinalities is not None and x >= cardinalities[v]:
            file.refuse(f"variable {v} has no state {x}: it has {cardinalities[v]}")
        if out.get(v, x) != x:
            file.refuse(f"variable {v} is given two states, {out[v]} and {x}")
        out[v] = x
    return out


def write_evidence(path: str | os.PathLike, evidence: Mapping[int, int]) -> None:
    """Write evidence, states numbered from 0: that of an `Ising` model after `to_factor_graph`, which numbers its spins
    so.
    """
    for v, x in evidence.items():
        if v < 0 or x < 0:
            raise ValueError(f"evidence must have variables and states numbered from 0; got {x} for variable {v}")
    numbers = [len(evidence), *(int(number) for pair in sorted(evidence.items()) for number in pair)]
    write_atomically(path, (" ".join(map(str, numbers)) + "\n").encode())


def write_result(path: str | os.PathLike, result: float | Sequence[Any]) -> None:
    """Write ``log Z`` (natural; a ``PR`` file holds it to the base 10), or the marginals of all variables (``MAR``)."""
    if isinstance(result, int | float | np.number):
        text = f"PR\n{float(result) / math.log(10.0)!r}\n"
    else:
        parts = [" ".join(map(repr, [len(p), *np.asarray(p, dtype=np.float64).tolist()])) for p in result]
        text = "\n".join(["MAR", " ".join([str(len(parts)), *parts])]) + "\n"
    write_atomically(path, text.encode())


def read_result(path: str | os.PathLike) -> float | list[np.ndarray]:
    """What `write_result` wrote: natural ``log Z`` of a ``PR`` file, the marginals of a ``MAR`` file."""
    file = _Tokens(path, _LARGEST_RESULT)
    kind = file.word("PR or MAR")
    if kind == "PR":
        word = file.word("log10 Z")
        if word in ("-inf", "-Infinity"):
            return -np.inf
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            file.refuse(f"log10 Z must be a number; got {word!r:.40}")
        file.end()
        return value * math.log(10.0)
    if kind != "MAR":
        file.refuse(f"the first word must be PR or MAR; got {kind!r:.40}")
    out = []
    for v in range(file.count("the number of variables")):
        size = file.count(f"the number of states of variable {v}", 1)
        out.append(np.array([file.number(f"a probability of variable {v}") for _ in range(size)]))
    file.end()
    return out
