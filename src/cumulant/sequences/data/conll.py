"""CoNLL column files: a token a line, its columns apart by blanks, an empty line between sentences.

Also the two functions through which every text file of this package is read and written: `read_text` and `write_text`.
"""

import gzip
import os
import sys
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from cumulant.errors import FileFormatError
from cumulant.files import write_atomically

__all__ = ["read_conll", "read_text", "write_conll", "write_text"]

_MARK = "\ufeff"
_DOCUMENT = "-DOCSTART-"


def read_conll(
    path: str | os.PathLike,
    *,
    columns: Sequence[int] | None = None,
    separator: str | None = None,
    comment: str | None = None,
    encoding: str = "utf-8",
) -> list[list[tuple[str, ...]]]:
    r"""The sentences of a column file: lists of tokens, each the tuple of its columns.

    One or more blank lines end a sentence; the last one needs none. Every token must have as many columns as the first.
    A line whose first column is ``-DOCSTART-`` marks a new document in the CoNLL-2003 files: it ends a sentence, may
    have any number of columns, and is dropped. Lines may end in the manner of any system.

    Parameters
    ----------
    path : str or path
        The file; gzipped if its name ends in ``.gz``; ``"-"`` is standard input.
    columns : sequence of int, optional
        Which columns to keep, in which order; negative ones count from the last. All of them without it.
    separator : str, optional
        What stands between columns, exactly; a column may then be empty. Without it any run of spaces and tabs does,
        and no other kind of white space.
    comment : str, optional
        Lines that begin so are dropped: ``"#"`` for CoNLL-U. Without it no line is a comment, for ``#`` is a word in
        the CoNLL-2000 files.
    encoding : str
        The encoding of the file.

    Raises
    ------
    FileFormatError
        For a line with another number of columns, a file without tokens, one that is not text in `encoding`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "train.txt"
    ...     _ = path.write_text("London JJ B-NP\nshares NNS I-NP\n\nAt IN B-PP\n")
    ...     read_conll(path), read_conll(path, columns=(0, -1))[0]
    ([[('London', 'JJ', 'B-NP'), ('shares', 'NNS', 'I-NP')], [('At', 'IN', 'B-PP')]],
     [('London', 'B-NP'), ('shares', 'I-NP')])
    """
    _check_separator(separator)
    if comment is not None and not comment:
        raise ValueError("comment must be what comments begin with, such as '#', or None; got an empty string")
    if columns is not None and (isinstance(columns, str) or not columns):
        raise ValueError(f"columns must be one or more column numbers, such as (0, -1); got {columns!r}")
    name = "standard input" if path == "-" else str(path)
    sentences: list[list[tuple[str, ...]]] = []
    sentence: list[tuple[str, ...]] = []
    width, first = 0, 0
    for number, line in enumerate(read_text(path, encoding).split("\n"), start=1):
        if comment is not None and line.startswith(comment):
            continue
        fields = _fields(line, separator)
        if not fields or _starts_document(fields):
            if sentence:
                sentences.append(sentence)
                sentence = []
            continue
        if not width:
            width, first = len(fields), number
            for column in columns or ():
                if not -width <= column < width:
                    raise ValueError(f"columns has {column}; {name} has {width} columns, 0 to {width - 1}")
        elif len(fields) != width:
            raise FileFormatError(
                f"{name}, line {number}: {_counted(len(fields))} ({line!r}) where the first token, on line {first}, "
                f"has {width}"
            )
        sentence.append(tuple(fields) if columns is None else tuple([fields[column] for column in columns]))
    if sentence:
        sentences.append(sentence)
    if not sentences:
        raise FileFormatError(
            f"{name} holds no token: it is empty or has only blank lines, comments and document marks"
        )
    return sentences


def write_conll(
    path: str | os.PathLike,
    sentences: Iterable[Sequence[Sequence[str]]],
    *,
    separator: str | None = None,
    encoding: str = "utf-8",
) -> None:
    r"""Write sentences so that `read_conll`, with the same separator and encoding, gives them back.

    A space separates the columns where no `separator` is given. The file is written whole or not at all. What could not
    be read back is refused: an empty sentence, tokens of different widths, a column that is empty or holds a blank.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "tagged.txt"
    ...     write_conll(path, [[("London", "B-NP"), ("shares", "I-NP")], [("At", "B-PP")]])
    ...     path.read_text()
    'London B-NP\nshares I-NP\n\nAt B-PP\n\n'
    """
    _check_separator(separator)
    between = " " if separator is None else separator
    lines: list[str] = []
    width = None
    for i, sentence in enumerate(sentences):
        if len(sentence) == 0:
            raise ValueError(f"sentence {i} has no token: a file of columns cannot hold it")
        for t, token in enumerate(sentence):
            if isinstance(token, str) or not all(isinstance(column, str) for column in token):
                raise TypeError(f"token {t} of sentence {i} must be a sequence of strings; got {token!r}")
            width = len(token) if width is None else width
            if len(token) != width:
                raise ValueError(f"token {t} of sentence {i} has {_counted(len(token))}, the first one {width}")
            line = between.join(token)
            fields = _fields(line, separator)
            if not fields or fields != list(token) or _starts_document(fields) or "\n" in line or "\r" in line:
                what = "spaces and tabs" if separator is None else repr(separator)
                raise ValueError(
                    f"token {t} of sentence {i} is {tuple(token)!r}, which cannot be read back with {what} as separator"
                )
            lines.append(line)
        lines.append("")
    if not lines:
        raise ValueError("there are no sentences to write")
    write_text(path, "\n".join(lines) + "\n", encoding)


def read_text(path: str | os.PathLike, encoding: str = "utf-8") -> str:
    """The text of a file, of a gzipped one (``.gz``) or of standard input (``-``).

    A byte-order mark is taken off and every line ends in a newline character, whatever system wrote the file. Bytes
    that are not text in `encoding` raise `FileFormatError` with the line they are on.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "windows.txt"
    ...     _ = path.write_bytes(b"one\\r\\ntwo")
    ...     read_text(path).split()
    ['one', 'two']
    """
    if path == "-":
        name, data = "standard input", sys.stdin.buffer.read()
    else:
        name, path = str(path), Path(path)
        if not path.exists():
            raise FileNotFoundError(f"no such file: {path}")
        data = path.read_bytes()
        if path.suffix == ".gz":
            try:
                data = gzip.decompress(data)
            except (OSError, EOFError, zlib.error) as problem:
                raise FileFormatError(f"{name} is not a gzipped file, or is cut short ({problem})") from problem
    try:
        text = data.decode(encoding)
    except LookupError as problem:
        raise ValueError(f"encoding must be one that Python knows, such as 'utf-8'; got {encoding!r}") from problem
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise FileFormatError(
            f"{name}, line {line}: byte 0x{data[problem.start]:02x} is not text in {encoding}; give the encoding of "
            "the file, such as encoding='latin-1'"
        ) from problem
    return text.removeprefix(_MARK).replace("\r\n", "\n").replace("\r", "\n")


def write_text(path: str | os.PathLike, text: str, encoding: str = "utf-8") -> None:
    r"""Write text, whole or not at all; `read_text` gives it back if it has no carriage return.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(pathlib.Path(folder) / "note.txt", "één\n")
    ...     read_text(pathlib.Path(folder) / "note.txt")
    'één\n'
    """
    if text.startswith(_MARK):
        text = _MARK + text  # the reader takes one off
    try:
        data = text.encode(encoding)
    except LookupError as problem:
        raise ValueError(f"encoding must be one that Python knows, such as 'utf-8'; got {encoding!r}") from problem
    except UnicodeEncodeError as problem:
        line = text.count("\n", 0, problem.start) + 1
        raise ValueError(
            f"line {line} has {text[problem.start]!r}, which cannot be written in {encoding}; nothing was written"
        ) from problem
    write_atomically(path, data)


def _fields(line: str, separator: str | None) -> list[str]:
    """The columns of a line; none for a blank one."""
    if separator is None:
        return [field for field in line.replace("\t", " ").split(" ") if field]
    return line.split(separator) if line.strip(" \t") else []


def _starts_document(fields: list[str]) -> bool:
    return fields[0].startswith(_DOCUMENT) and fields[0].split(" ")[0].split("\t")[0] == _DOCUMENT


def _counted(n: int) -> str:
    return f"{n} column" if n == 1 else f"{n} columns"


def _check_separator(separator: str | None) -> None:
    if separator is not None and (not isinstance(separator, str) or not separator or "\n" in separator):
        raise ValueError(f"separator must be a string such as '\\t', or None for any blanks; got {separator!r}")
