"""Feature templates: from the columns of a sentence to the names of the attributes of each token.

The language is that of CRF++ (Kudo 2005), with a few functions more. A template has a line for each attribute::

    # the word before, and the pair of it and the current one
    U01:%x[-1,0]
    U05:%x[-1,0]/%x[0,0]

``%x[row,column]`` is a column of the token `row` places away, and the rest of the line is copied: at the word "shares"
after "London" the second line gives the attribute ``U05:London/shares``.

* Before the sentence stand the tokens ``_B-1``, ``_B-2``, ... and after it ``_B+1``, ``_B+2``, ..., as in CRF++, so
  that every token has one attribute a line. CRF++ stops at rows -4 and 4; here any row will do.
* Lines that begin with ``#`` and blank lines are left out, as are blanks around a line. All others begin with ``U``,
  which is part of the name, or with ``B``.
* ``B`` alone, or ``B`` with fixed text, stands for the transitions between labels, which a chain always has here: it is
  accepted and adds nothing. ``B`` with a ``%`` would make transitions depend on the words: it is refused.
* Two lines may give the same name, as ``U:%x[-1,0]`` and ``U:%x[1,0]`` do (a bag of words). A token can then have an
  attribute twice, and it counts twice.

Beyond CRF++, these functions of a column are known, with the same tokens outside the sentence:

=========================  ===============================================================  =========================
``%lower[row,column]``     in lower case                                                    ``Mid-1990s -> mid-1990s``
``%prefix[row,column,n]``  the first n characters, or all if there are fewer                ``%prefix[0,0,3] -> Mid``
``%suffix[row,column,n]``  the last n characters, or all if there are fewer                 ``%suffix[0,0,3] -> 90s``
``%shape[row,column]``     capitals ``X``, small letters ``x``, digits ``d``, others kept   ``Xxx-ddddx``
``%runs[row,column]``      the shape with runs of one character cut to one                  ``Xx-dx``
``%isupper[row,column]``   1 if the letters, of which there are some, are capitals, else 0  ``0``
``%istitle[row,column]``   1 if a capital starts each run of letters and only there         ``1``
``%isdigit[row,column]``   1 if all characters are digits, else 0                           ``0``
=========================  ===============================================================  =========================
"""

import functools
import itertools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cumulant.errors import FileFormatError
from cumulant.sequences.data.conll import read_text

__all__ = ["CHUNKING", "NER", "Template", "template"]


class _Piece(NamedTuple):
    """A function of a column, seen from `row` tokens away."""

    function: str
    size: int  # of a prefix or suffix, else 0
    column: int
    row: int


class _Line(NamedTuple):
    """Fixed texts with pieces between them: one text more than pieces."""

    texts: tuple[str, ...]
    pieces: tuple[_Piece, ...]


@functools.lru_cache(maxsize=1 << 16)
def _shape(word: str) -> str:
    return "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word)


@functools.lru_cache(maxsize=1 << 16)
def _runs(word: str) -> str:
    shape = _shape(word)
    return shape[:1] + "".join([c for before, c in itertools.pairwise(shape) if c != before])


_FUNCTIONS: dict[str, Callable[[Iterable[str], int], list[str]]] = {
    "x": lambda words, _: list(words),
    "lower": lambda words, _: [word.lower() for word in words],
    "prefix": lambda words, n: [word[:n] for word in words],
    "suffix": lambda words, n: [word[-n:] for word in words],
    "shape": lambda words, _: [_shape(word) for word in words],
    "runs": lambda words, _: [_runs(word) for word in words],
    "isupper": lambda words, _: ["1" if word.isupper() else "0" for word in words],
    "istitle": lambda words, _: ["1" if word.istitle() else "0" for word in words],
    "isdigit": lambda words, _: ["1" if word.isdigit() else "0" for word in words],
}
_SIZED = ("prefix", "suffix")
_CALL = re.compile(r"%([a-z]+)\[([^\]]*)\]")
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


@dataclass(frozen=True)
class Template:
    r"""A template in the language of this module; calling it on a sentence gives the attribute names of each token.

    Parameters
    ----------
    text : str
        The lines of the template.
    name : str
        What error messages call it.

    Raises
    ------
    FileFormatError
        For a line that cannot be understood, with its number.

    Examples
    --------
    >>> pairs = Template("U01:%x[-1,0]\nU05:%x[-1,0]/%x[0,0]\nU11:%suffix[0,0,2]|%x[1,1]\nB")
    >>> for attributes in pairs([("London", "JJ"), ("shares", "NNS"), ("closed", "VBD")]):
    ...     print(attributes)
    ['U01:_B-1', 'U05:_B-1/London', 'U11:on|NNS']
    ['U01:London', 'U05:London/shares', 'U11:es|VBD']
    ['U01:shares', 'U05:shares/closed', 'U11:ed|_B+1']
    >>> len(pairs), pairs.n_columns
    (3, 2)
    """

    text: str
    name: str = field(default="template", compare=False)
    _lines: tuple[_Line, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        lines = []
        for number, line in enumerate(self.text.split("\n"), start=1):
            try:
                parsed = _parsed(line.strip())
            except ValueError as problem:
                raise FileFormatError(f"{self.name}, line {number}: {problem}") from None
            if parsed is not None:
                lines.append(parsed)
        if not lines:
            raise FileFormatError(f"{self.name} has no line that begins with U: it would give no attributes")
        object.__setattr__(self, "_lines", tuple(lines))

    @functools.cached_property
    def n_columns(self) -> int:
        """How many columns a token must have at least."""
        return max((piece.column + 1 for line in self._lines for piece in line.pieces), default=0)

    def __len__(self) -> int:
        """How many attributes each token gets."""
        return len(self._lines)

    def __call__(self, sentence: Sequence[Sequence[str]]) -> list[list[str]]:
        """The attribute names of each token of a sentence, in the order of the lines.

        The names of a corpus take far more memory than the corpus: turn them into numbers sentence by sentence.
        """
        n = len(sentence)
        if n == 0:
            return []
        columns = _columns(sentence, self.n_columns)
        made: dict[tuple[str, int, int], list[str]] = {}
        return list(map(list, zip(*[_filled(line, columns, made, n) for line in self._lines], strict=True)))


def _parsed(line: str) -> _Line | None:
    """A line of a template; None for one that adds no attribute."""
    if not line or line.startswith("#"):
        return None
    if line[0] not in "UB":
        raise ValueError(f"a line must begin with U, B or #; got {line!r}")
    if line[0] == "B":
        if "%" in line:
            raise ValueError(
                f"transitions cannot depend on the words, as {line!r} asks; B alone stands for transitions"
            )
        return None
    texts, pieces, end = [], [], 0
    for call in _CALL.finditer(line):
        texts.append(line[end : call.start()])
        pieces.append(_piece(call))
        end = call.end()
    texts.append(line[end:])
    for text in texts:
        if "%" in text:
            raise ValueError(f"expected a function such as %x[0,0] at {text[text.index('%') :]!r}")
    return _Line(tuple(texts), tuple(pieces))


def _piece(call: re.Match) -> _Piece:
    function, arguments = call[1], call[2].split(",")
    if function not in _FUNCTIONS:
        raise ValueError(f"there is no function %{function}; there are {', '.join('%' + name for name in _FUNCTIONS)}")
    usage = f"%{function}[row,column,n]" if function in _SIZED else f"%{function}[row,column]"
    if len(arguments) != (3 if function in _SIZED else 2) or not all(map(_INTEGER.fullmatch, arguments)):
        raise ValueError(f"expected {usage} with whole numbers; got {call[0]!r}")
    row, column, size = (*map(int, arguments), 0)[:3]
    if column < 0:
        raise ValueError(f"the column must be 0 or more; got {call[0]!r}")
    if function in _SIZED and size < 1:
        raise ValueError(f"the number of characters must be 1 or more; got {call[0]!r}")
    return _Piece(function, size, column, row)


def _columns(sentence: Sequence[Sequence[str]], needed: int) -> list[tuple[str, ...]]:
    """The sentence by columns, those that are needed."""
    for t, token in enumerate(sentence):
        if isinstance(token, str):
            raise TypeError(f"token {t} must be a tuple of columns, such as ({token!r},); got the string {token!r}")
        if len(token) < needed:
            raise ValueError(f"the template needs {needed} columns; token {t} has {len(token)}: {tuple(token)!r}")
    columns = [tuple([token[column] for token in sentence]) for column in range(needed)]
    for column in columns:
        try:
            "".join(column)  # the fastest way to learn that all are strings
        except TypeError:
            t = next(t for t, word in enumerate(column) if not isinstance(word, str))
            raise TypeError(f"the columns of token {t} must be strings; got {tuple(sentence[t])!r}") from None
    return columns


def _seen(
    piece: _Piece, columns: list[tuple[str, ...]], made: dict[tuple[str, int, int], list[str]], n: int
) -> list[str]:
    """What a piece is at each of the n tokens; `made` keeps each function of each column."""
    function, size, column, row = piece
    key = (function, size, column)
    values = made.get(key)
    if values is None:
        values = made[key] = _FUNCTIONS[function](columns[column], size)
    if row == 0:
        return values
    if row < 0:
        return [f"_B{k}" for k in range(row, row + min(-row, n))] + values[: max(n + row, 0)]
    return values[row:] + [f"_B+{k}" for k in range(max(row - n, 0) + 1, row + 1)]


def _filled(
    line: _Line, columns: list[tuple[str, ...]], made: dict[tuple[str, int, int], list[str]], n: int
) -> list[str]:
    """The attribute that a line gives at each token; one, two and three pieces are spelt out for speed."""
    texts = line.texts
    seen = [_seen(piece, columns, made, n) for piece in line.pieces]
    if len(seen) == 1:
        first, last = texts
        return [f"{first}{a}{last}" for a in seen[0]]
    if len(seen) == 2:
        first, second, last = texts
        return [f"{first}{a}{second}{b}{last}" for a, b in zip(*seen, strict=True)]
    if len(seen) == 3:
        first, second, third, last = texts
        return [f"{first}{a}{second}{b}{third}{c}{last}" for a, b, c in zip(*seen, strict=True)]
    rows = zip(*seen, strict=True) if seen else [()] * n
    return ["".join([text + value for text, value in zip(texts, (*row, ""), strict=True)]) for row in rows]


CHUNKING = Template(
    """
# Words (column 0) in a window of five, and pairs with the neighbours
Uw[-2]=%x[-2,0]
Uw[-1]=%x[-1,0]
Uw[0]=%x[0,0]
Uw[1]=%x[1,0]
Uw[2]=%x[2,0]
Uw[-1]|w[0]=%x[-1,0]|%x[0,0]
Uw[0]|w[1]=%x[0,0]|%x[1,0]
# Parts of speech (column 1) in the same window, and all pairs and triples of neighbours in it
Upos[-2]=%x[-2,1]
Upos[-1]=%x[-1,1]
Upos[0]=%x[0,1]
Upos[1]=%x[1,1]
Upos[2]=%x[2,1]
Upos[-2]|pos[-1]=%x[-2,1]|%x[-1,1]
Upos[-1]|pos[0]=%x[-1,1]|%x[0,1]
Upos[0]|pos[1]=%x[0,1]|%x[1,1]
Upos[1]|pos[2]=%x[1,1]|%x[2,1]
Upos[-2]|pos[-1]|pos[0]=%x[-2,1]|%x[-1,1]|%x[0,1]
Upos[-1]|pos[0]|pos[1]=%x[-1,1]|%x[0,1]|%x[1,1]
Upos[0]|pos[1]|pos[2]=%x[0,1]|%x[1,1]|%x[2,1]
""",
    "the template CHUNKING",
)
"""The 19 attributes of the CoNLL-2000 tutorial of CRFsuite, for words (column 0) and parts of speech (column 1).

There an attribute that reaches out of the sentence is left out, here it has ``_B-1`` and so on for the missing words.
"""

NER = Template(
    """
# The word (column 0)
Uw[0]=%x[0,0]
Ulower[0]=%lower[0,0]
Uprefix1=%prefix[0,0,1]
Uprefix2=%prefix[0,0,2]
Uprefix3=%prefix[0,0,3]
Uprefix4=%prefix[0,0,4]
Usuffix1=%suffix[0,0,1]
Usuffix2=%suffix[0,0,2]
Usuffix3=%suffix[0,0,3]
Usuffix4=%suffix[0,0,4]
Ushape[0]=%shape[0,0]
Uruns[0]=%runs[0,0]
Uisupper[0]=%isupper[0,0]
Uistitle[0]=%istitle[0,0]
Uisdigit[0]=%isdigit[0,0]
# Its neighbours
Ulower[-2]=%lower[-2,0]
Ulower[-1]=%lower[-1,0]
Ulower[1]=%lower[1,0]
Ulower[2]=%lower[2,0]
Ulower[-1]|lower[0]=%lower[-1,0]|%lower[0,0]
Ulower[0]|lower[1]=%lower[0,0]|%lower[1,0]
Uruns[-1]=%runs[-1,0]
Uruns[1]=%runs[1,0]
Uruns[-1]|runs[0]|runs[1]=%runs[-1,0]|%runs[0,0]|%runs[1,0]
# Parts of speech (column 1)
Upos[-2]=%x[-2,1]
Upos[-1]=%x[-1,1]
Upos[0]=%x[0,1]
Upos[1]=%x[1,1]
Upos[2]=%x[2,1]
Upos[-1]|pos[0]=%x[-1,1]|%x[0,1]
Upos[0]|pos[1]=%x[0,1]|%x[1,1]
""",
    "the template NER",
)
"""31 usual attributes for finding names in text, for words (column 0) and parts of speech (column 1).

They are the word, its lower case, prefixes, suffixes, shape and case, and the words and parts of speech around it.
"""

_BUILT_IN = {"chunking": CHUNKING, "ner": NER}


def template(source: str | os.PathLike | Template) -> Template:
    r"""The template that `source` names: ``"chunking"``, ``"ner"``, a file, or the text of a template itself.

    A string is taken for text if it has several lines or begins with U and has a ``%``.

    Examples
    --------
    >>> len(template("chunking"))
    19
    >>> template("chunking")([("London", "JJ")])[0][5:7]
    ['Uw[-1]|w[0]=_B-1|London', 'Uw[0]|w[1]=London|_B+1']
    >>> template("U00:%shape[0,0]")([("Mid-1990s",)])
    [['U00:Xxx-ddddx']]
    """
    if isinstance(source, Template):
        return source
    if isinstance(source, str):
        if source in _BUILT_IN:
            return _BUILT_IN[source]
        if "\n" in source or (source.startswith("U") and "%" in source):
            return Template(source)
    elif not isinstance(source, os.PathLike):
        raise TypeError(f"a template must be a name, a file or a text; got {type(source).__name__}")
    if not Path(source).exists():
        raise ValueError(
            f"{str(source)!r} is neither a file nor the text of a template nor one of {', '.join(map(repr, _BUILT_IN))}"
        )
    return Template(read_text(source), str(source))
