r"""The text format of CRFsuite: a token a line, ``label TAB attribute TAB attribute:value ...``.

An empty line ends a sequence. In names and labels ``\:`` stands for a colon and ``\\`` for a backslash; a backslash
before anything else is itself. An attribute without value, or with an empty one, has the value 1.

Reference: Okazaki (2007), CRFsuite, manual, "Format of training/tagging data"; release 0.12.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cumulant.errors import FileFormatError
from cumulant.sequences.data.conll import read_text, write_text

__all__ = ["read_crfsuite", "write_crfsuite"]

Item = dict[str, float]

_NAME = re.compile(r"(?:\\[\\:]|[^:])*")
_ESCAPED = re.compile(r"\\([\\:])")


def read_crfsuite(path: str | os.PathLike, *, encoding: str = "utf-8") -> tuple[list[list[Item]], list[list[str]]]:
    r"""The attributes and labels of a file in CRFsuite's format: ``X[i][t]`` is ``{name: value}``, ``y[i][t]`` a label.

    An attribute that a token has twice counts with the sum of its values, which is what CRFsuite makes of it. The usual
    ``__BOS__`` and ``__EOS__`` are attributes like others. `path` is a file, gzipped if it ends in ``.gz``, or ``"-"``
    for standard input.

    Where CRFsuite would go on with something else than was meant, the file is refused: a value that is not a finite
    number (read as 0 there), a second colon, a label with a colon that is not escaped (lost there), a line that begins
    with a tab (its first attribute becomes the label). A first column that begins with ``@`` is a declaration; CRFsuite
    knows ``@weight:2``, the weight of the next sequence. Weights other than 1 are refused, since the answer has no
    place for them, as are all other declarations.

    Raises
    ------
    FileFormatError
        With the line, for all of the above, and for a file without tokens.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "train.crfsuite"
    ...     _ = path.write_text("B-NP\tw=London\tlength:6\nI-NP\tw=shares\n\nO\tw=\\:\n")
    ...     X, y = read_crfsuite(path)
    >>> X
    [[{'w=London': 1.0, 'length': 6.0}, {'w=shares': 1.0}], [{'w=:': 1.0}]]
    >>> y
    [['B-NP', 'I-NP'], ['O']]
    """
    source = "standard input" if path == "-" else str(path)
    known: dict[str, str] = {}  # each name is kept once: a corpus repeats them millions of times
    X: list[list[Item]] = []
    y: list[list[str]] = []
    items: list[Item] = []
    labels: list[str] = []
    for number, line in enumerate(read_text(path, encoding).split("\n"), start=1):
        if not line:
            if items:
                X.append(items)
                y.append(labels)
                items, labels = [], []
            continue
        first, *fields = line.split("\t")
        try:
            if first.startswith("@"):
                _check_declaration(first)
                continue
            label = _label(first)
            items.append(_item(line, fields, known))
            labels.append(known.setdefault(label, label))
        except ValueError as problem:
            raise FileFormatError(f"{source}, line {number}: {problem}") from None
    if items:
        X.append(items)
        y.append(labels)
    if not X:
        raise FileFormatError(f"{source} holds no token: it is empty or has only blank lines")
    return X, y


def write_crfsuite(
    path: str | os.PathLike,
    X: Iterable[Sequence[Mapping[str, float] | Iterable[str]]],
    y: Iterable[Sequence[str]],
    *,
    encoding: str = "utf-8",
) -> None:
    r"""Write attributes and labels so that `read_crfsuite`, and CRFsuite, read the same.

    Each ``X[i][t]`` is a mapping of names to finite numbers, or the names alone, which then count 1 each. Numbers are
    written with all their digits. The file is written whole or not at all. What the format cannot hold is refused: an
    empty sequence, an empty name, a tab or the end of a line in a name, a label that is blank or begins with ``@``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "train.crfsuite"
    ...     write_crfsuite(path, [[{"w=10:30": 1.0, "length": 5}, ["w=on"]]], [["B-NP", "O"]])
    ...     path.read_text()
    'B-NP\tw=10\\:30\tlength:5.0\nO\tw=on\n\n'
    """
    X, y = list(X), list(y)
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} sequences and y has {len(y)}")
    if not X:
        raise ValueError("X and y have no sequences: there is nothing to write")
    lines: list[str] = []
    for i, (items, labels) in enumerate(zip(X, y, strict=True)):
        if len(items) != len(labels):
            raise ValueError(f"sequence {i} has {len(items)} tokens in X and {len(labels)} labels in y")
        if len(items) == 0:
            raise ValueError(f"sequence {i} has no token: the format cannot hold it")
        for t, (item, label) in enumerate(zip(items, labels, strict=True)):
            where = f"token {t} of sequence {i}"
            lines.append("\t".join([_written_label(label, where), *_written_item(item, where)]))
        lines.append("")
    write_text(path, "\n".join(lines) + "\n", encoding)


def _label(field: str) -> str:
    if not field.strip():
        raise ValueError("the line begins with a tab or a blank: its label is missing")
    if ":" not in field and "\\" not in field:
        return field
    if _name_end(field) < len(field):
        raise ValueError(rf"the label {field!r} has a colon, and CRFsuite would lose it: write it as '\:'")
    return _ESCAPED.sub(r"\1", field)


def _item(line: str, fields: list[str], known: dict[str, str]) -> Item:
    """The attributes of a line; the short way where no name has a value or an escape and none comes twice."""
    if ":" not in line and "\\" not in line:
        item = dict.fromkeys(map(known.setdefault, fields, fields), 1.0)
        if len(item) == len(fields) and "" not in item:
            return item
    item = {}
    for field in fields:
        if field:  # CRFsuite takes several tabs for one
            name, value = _attribute(field)
            item[known.setdefault(name, name)] = item.get(name, -0.0) + value  # 0.0 would lose the sign of -0.0
    return item


def _attribute(field: str) -> tuple[str, float]:
    end = _name_end(field)
    name, value = _ESCAPED.sub(r"\1", field[:end]), field[end + 1 :]
    if not name:
        raise ValueError(f"the attribute {field!r} has no name")
    if not value:
        return name, 1.0
    if ":" in value:
        raise ValueError(rf"the attribute {field!r} has two colons: write one that belongs to the name as '\:'")
    return name, _number(value, f"the attribute {field!r}")


def _name_end(field: str) -> int:
    """Where the first colon is that is not escaped, or the end."""
    match = _NAME.match(field)
    return match.end() if match else 0


def _number(text: str, what: str) -> float:
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{what} must have a finite number after its colon; it has {text!r}")
    return value


def _check_declaration(field: str) -> None:
    name, _, value = field.partition(":")
    if name != "@weight":
        raise ValueError(f"{name!r} is a declaration that CRFsuite does not know; a label cannot begin with '@'")
    if _number(value, "the declaration @weight") != 1.0:
        raise ValueError(f"sequences cannot have weights other than 1; this one declares {value}")


def _written_label(label: Any, where: str) -> str:
    if not isinstance(label, str):
        raise TypeError(f"the label of {where} must be a string; got {label!r}")
    if not label.strip() or label.startswith("@"):
        raise ValueError(f"the label of {where} is {label!r}: it may not be blank or begin with '@'")
    return _escaped(label, "label", where)


def _written_item(item: Any, where: str) -> list[str]:
    if isinstance(item, str):
        raise TypeError(f"the attributes of {where} must be a mapping or a list of names; got the string {item!r}")
    if not isinstance(item, Mapping):
        return [_escaped(name, "attribute", where) for name in item]
    fields = []
    for name, value in item.items():
        try:
            number = math.nan if isinstance(value, str) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"the attribute {name!r} of {where} must have a finite number as its value; got {value!r}")
        field = _escaped(name, "attribute", where)
        fields.append(field if number == 1.0 else f"{field}:{number!r}")
    return fields


def _escaped(name: Any, kind: str, where: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the {kind}s of {where} must be strings; got {name!r}")
    if not name or "\t" in name or "\n" in name or "\r" in name:
        raise ValueError(f"the {kind} {name!r} of {where} is empty or holds a tab or the end of a line")
    return name.replace("\\", "\\\\").replace(":", "\\:")
