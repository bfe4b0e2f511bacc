"""Texts as bags of words: the formats of LDA-C and of the UCI repository."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
import scipy.sparse

from cumulant.admixture.data import Corpus
from cumulant.errors import FileFormatError
from cumulant.sequences.data.conll import read_text


def read_ldac(path: str | os.PathLike, vocabulary: str | os.PathLike | None = None) -> Corpus:
    """A corpus in the format of LDA-C: a line ``M word:count word:count ...`` for each document.

    ``M`` is the number of different words; words count from 0. `vocabulary` is a file with one word in a line. Either
    may be gzipped.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "corpus.dat"
    ...     _ = path.write_text("2 0:2 3:1\\n0\\n1 1:4\\n")
    ...     corpus = read_ldac(path)
    >>> corpus.counts().toarray()
    array([[2., 0., 0., 1.],
           [0., 0., 0., 0.],
           [0., 4., 0., 0.]])
    """
    triplets, documents = [], 0
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        parts = line.split()
        if not parts:
            continue
        where = f"{path}, line {number}"
        if len(parts) - 1 != _whole(parts[0], where):
            raise FileFormatError(f"{where}: {parts[0]} different words are announced and {len(parts) - 1} follow")
        for part in parts[1:]:
            word, colon, count = part.partition(":")
            if not colon:
                raise FileFormatError(f"{where}: {part!r} is not of the form word:count")
            triplets.append((documents, _whole(word, where), _whole(count, where)))
        documents += 1
    return _corpus(path, triplets, documents, None, vocabulary)


def read_uci(path: str | os.PathLike, vocabulary: str | os.PathLike | None = None) -> Corpus:
    """A corpus in the format of the UCI bags of words: the numbers of documents, of words and of entries, a line each,
    then a line ``document word count`` for each entry, both counted from 1.

    `vocabulary` is a file with one word in a line. Either may be gzipped.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "docword.txt"
    ...     _ = path.write_text("2\\n3\\n2\\n1 1 2\\n2 3 1\\n")
    ...     corpus = read_uci(path)
    >>> corpus.counts().toarray()
    array([[2., 0., 0.],
           [0., 0., 1.]])
    """
    lines = [(number, line.split()) for number, line in enumerate(read_text(path).split("\n"), start=1) if line.strip()]
    if len(lines) < 3 or any(len(parts) != 1 for _, parts in lines[:3]):
        raise FileFormatError(f"{path} must begin with three lines: the numbers of documents, of words and of entries")
    documents, words, entries = (_whole(parts[0], f"{path}, line {number}") for number, parts in lines[:3])
    if len(lines) - 3 != entries:
        raise FileFormatError(f"{path} announces {entries} entries and has {len(lines) - 3}")
    triplets = []
    for number, parts in lines[3:]:
        where = f"{path}, line {number}"
        if len(parts) != 3:
            raise FileFormatError(f"{where}: {' '.join(parts)!r} is not of the form document word count")
        document, word, count = (_whole(part, where) for part in parts)
        if not (1 <= document <= documents and 1 <= word <= words):
            raise FileFormatError(f"{where}: there are {documents} documents and {words} words, counted from 1")
        triplets.append((document - 1, word - 1, count))
    return _corpus(path, triplets, documents, words, vocabulary)


def _whole(text: str, where: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) >= 2**31:
        raise FileFormatError(f"{where}: {text!r:.40} is not a whole number below 2**31")
    return int(text)


def _corpus(
    path: str | os.PathLike,
    triplets: Iterable[tuple[int, int, int]],
    documents: int,
    n_words: int | None,
    vocabulary: str | os.PathLike | None,
) -> Corpus:
    table = np.array(list(triplets), dtype=np.int64).reshape(-1, 3)
    seen = int(table[:, 1].max(initial=-1)) + 1
    names = None
    if vocabulary is not None:
        names = read_text(vocabulary).rstrip("\n").split("\n")
        if len(names) < seen or n_words not in (None, len(names)):
            raise FileFormatError(f"{vocabulary} has {len(names)} words, {path} has {n_words or seen}")
        n_words = len(names)
    shape = (documents, seen if n_words is None else n_words)
    return Corpus.from_counts(scipy.sparse.coo_array((table[:, 2], (table[:, 0], table[:, 1])), shape), words=names)
