"""How well predicted label sequences agree with the true ones: token by token, and chunk by chunk as conlleval counts.

A chunk is a run of tokens with one type, written with a prefix on each label: ``B-NP I-NP O``. Precision is the part of
the predicted chunks that are true ones, recall the part of the true chunks that were predicted, and ``F1 = 2 P R / (P +
R)``. A chunk is right only if its first token, its last token and its type are.

References: Tjong Kim Sang and Veenstra (1999), "Representing text chunks", EACL; Tjong Kim Sang and Buchholz (2000),
"Introduction to the CoNLL-2000 shared task: chunking", CoNLL, and its program conlleval.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cumulant import checks

__all__ = ["Chunk", "ChunkCounts", "ChunkScores", "Confusion", "chunk_scores", "chunks", "confusion", "token_accuracy"]

_PREFIXES = {"IOB1": "IB", "IOB2": "BI", "IOE1": "IE", "IOE2": "IE", "IOBES": "BIES"}


class Chunk(NamedTuple):
    """Tokens `start` to `end - 1` of a sequence, of one type."""

    type: str
    start: int
    end: int


class ChunkCounts(NamedTuple):
    """How many chunks are true, how many were predicted, and how many of these are right."""

    true: int
    predicted: int
    right: int

    @property
    def precision(self) -> float:
        """``right / predicted``; 0 if nothing was predicted."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """``right / true``; 0 if there is nothing to find."""
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, ``2 right / (true + predicted)``; 0 if nothing is right."""
        return 2 * self.right / (self.true + self.predicted) if self.right else 0.0


@dataclass(frozen=True)
class ChunkScores:
    """The answer of `chunk_scores`: counts over all chunks and for each type, and the tokens with the right label.

    `print` shows it in the form of conlleval.
    """

    counts: ChunkCounts
    by_type: dict[str, ChunkCounts]
    n_tokens: int
    n_right_tokens: int

    @property
    def precision(self) -> float:
        """The part of the predicted chunks that are right."""
        return self.counts.precision

    @property
    def recall(self) -> float:
        """The part of the true chunks that were predicted."""
        return self.counts.recall

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return self.counts.f1

    @property
    def accuracy(self) -> float:
        """The part of the tokens that have the right label."""
        return self.n_right_tokens / self.n_tokens

    def __str__(self):
        c = self.counts
        lines = [
            f"processed {self.n_tokens} tokens with {c.true} phrases; "
            f"found: {c.predicted} phrases; correct: {c.right}.",
            f"accuracy: {100 * self.accuracy:6.2f}%; {_percentages(c)}",
        ]
        return "\n".join(
            lines + [f"{type_:>17}: {_percentages(of)}  {of.predicted}" for type_, of in self.by_type.items()]
        )


def _percentages(counts: ChunkCounts) -> str:
    return (
        f"precision: {100 * counts.precision:6.2f}%; recall: {100 * counts.recall:6.2f}%; FB1: {100 * counts.f1:6.2f}"
    )


class Confusion(NamedTuple):
    """The answer of `confusion`: ``matrix[i, j]`` tokens have the label ``labels[i]`` and were given ``labels[j]``."""

    labels: list[str]
    matrix: np.ndarray

    def __str__(self):
        rows = [["true \\ predicted", *self.labels]]
        rows += [[label, *map(str, row)] for label, row in zip(self.labels, self.matrix, strict=True)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def chunks(labels: Iterable[str], scheme: str = "IOB2") -> list[Chunk]:
    """The chunks of one sequence of labels, by the rules of conlleval.

    Each token that is not ``O`` belongs to a chunk. Between two such tokens one chunk ends and another begins if their
    types differ, if the first has the prefix ``E`` or ``S``, or if the second has ``B`` or ``S``. So an ``I`` after
    ``O``, or after another type, begins a chunk though no ``B`` says so: no sequence of labels is wrong.

    These rules read all schemes alike, and `scheme` only says which prefixes may occur. In ``IOB2`` each chunk begins
    with ``B`` and in ``IOE2`` it ends with ``E``; in ``IOB1`` and ``IOE1`` this is so only next to another chunk of the
    same type. ``IOBES`` has ``S`` for a chunk of a single token; conlleval itself does not know this scheme. The type
    is what follows the first hyphen; it is empty in ``B``, ``I`` and so on without hyphen.

    Examples
    --------
    >>> chunks(["B-NP", "I-NP", "B-NP", "O", "I-VP", "I-PP"])
    [Chunk(type='NP', start=0, end=2), Chunk(type='NP', start=2, end=3), Chunk(type='VP', start=4, end=5),
     Chunk(type='PP', start=5, end=6)]
    >>> chunks(["I-NP", "E-NP", "I-NP", "E-NP"], scheme="IOE2")
    [Chunk(type='NP', start=0, end=2), Chunk(type='NP', start=2, end=4)]
    """
    checks.choice("scheme", scheme, _PREFIXES)
    if isinstance(labels, str):
        raise TypeError(f"labels must be a sequence of labels; got the string {labels!r}")
    return _chunks(checks.instance("labels", labels, Iterable, "a sequence of labels"), scheme, "labels")


def _chunks(labels: Iterable[str], scheme: str, name: str) -> list[Chunk]:
    """The chunks of the labels of an argument with this name."""
    found: list[Chunk] = []
    start, before, type_before = 0, "O", ""
    t = -1
    for t, label in enumerate(labels):
        prefix, type_ = _parts(label, scheme, name)
        boundary = type_ != type_before or before in "ES" or prefix in "BS"
        if before != "O" and (prefix == "O" or boundary):
            found.append(Chunk(type_before, start, t))
        if prefix != "O" and (before == "O" or boundary):
            start = t
        before, type_before = prefix, type_
    if before != "O":
        found.append(Chunk(type_before, start, t + 1))
    return found


def chunk_scores(y_true: Iterable[Iterable[str]], y_pred: Iterable[Iterable[str]], scheme: str = "IOB2") -> ChunkScores:
    """Precision, recall and F1 of predicted chunks, over all types and for each; the chunks are those of `chunks`.

    The numbers over all types count chunks, not types (they are micro-averages). `by_type` is sorted by type.

    Examples
    --------
    >>> y_true = [["B-NP", "I-NP", "B-VP", "O"], ["B-NP", "B-VP"]]
    >>> y_pred = [["B-NP", "I-NP", "B-VP", "B-VP"], ["I-NP", "I-NP"]]
    >>> scores = chunk_scores(y_true, y_pred)
    >>> scores.by_type["NP"]
    ChunkCounts(true=2, predicted=2, right=1)
    >>> print(scores)
    processed 6 tokens with 4 phrases; found: 4 phrases; correct: 2.
    accuracy:  50.00%; precision:  50.00%; recall:  50.00%; FB1:  50.00
                   NP: precision:  50.00%; recall:  50.00%; FB1:  50.00  2
                   VP: precision:  50.00%; recall:  50.00%; FB1:  50.00  2
    """
    checks.choice("scheme", scheme, _PREFIXES)
    true, predicted, right = Counter(), Counter(), Counter()
    n_tokens = n_right = 0
    for labels, guesses in _pairs(y_true, y_pred):
        n_tokens += len(labels)
        n_right += sum([label == guess for label, guess in zip(labels, guesses, strict=True)])
        there, said = _chunks(labels, scheme, "y_true"), _chunks(guesses, scheme, "y_pred")
        true.update([chunk.type for chunk in there])
        predicted.update([chunk.type for chunk in said])
        right.update([chunk.type for chunk in set(there).intersection(said)])
    by_type = {t: ChunkCounts(true[t], predicted[t], right[t]) for t in sorted(true.keys() | predicted.keys())}
    return ChunkScores(ChunkCounts(true.total(), predicted.total(), right.total()), by_type, n_tokens, n_right)


def token_accuracy(y_true: Iterable[Iterable[str]], y_pred: Iterable[Iterable[str]]) -> float:
    """The part of all tokens whose predicted label is the true one. Long sequences count more than short ones.

    >>> token_accuracy([["a", "b", "a"], ["b"]], [["a", "b", "b"], ["b"]])
    0.75
    """
    right = n = 0
    for labels, guesses in _pairs(y_true, y_pred):
        right += sum([label == guess for label, guess in zip(labels, guesses, strict=True)])
        n += len(labels)
    return right / n


def confusion(y_true: Iterable[Iterable[str]], y_pred: Iterable[Iterable[str]]) -> Confusion:
    """Which labels were taken for which: the sorted labels, and a matrix of counts with a row for each true label.

    The diagonal sums to the number of right tokens, and row ``i`` to the number of tokens whose label is ``labels[i]``.

    Examples
    --------
    >>> labels, matrix = confusion([["a", "b", "a"], ["b"]], [["a", "b", "c"], ["b"]])
    >>> labels
    ['a', 'b', 'c']
    >>> matrix
    array([[1, 0, 1],
           [0, 2, 0],
           [0, 0, 0]])
    """
    seen = Counter()
    for labels, guesses in _pairs(y_true, y_pred):
        seen.update(zip(labels, guesses, strict=True))
    names = sorted({str(label) for pair in seen for label in pair})
    place = {label: i for i, label in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=np.int64)
    for (label, guess), count in seen.items():
        matrix[place[label], place[guess]] = count
    return Confusion(names, matrix)


def _parts(label: Any, scheme: str, name: str) -> tuple[str, str]:
    """The prefix of a label and its type."""
    if not isinstance(label, str):
        raise TypeError(f"{name} must hold strings; got {label!r:.60}")
    prefixes = _PREFIXES[scheme]
    prefix, _, type_ = label.partition("-")
    if len(prefix) != 1 or not (prefix in prefixes or label == "O"):
        wanted = ", ".join(f"{letter}-type" for letter in prefixes)
        raise ValueError(f"{name} must be of the scheme {scheme}, which has O, {wanted}; got {str(label)!r}")
    return prefix, type_


def _pairs(y_true: Iterable[Iterable[str]], y_pred: Iterable[Iterable[str]]) -> list[tuple[list[str], list[str]]]:
    """The true and predicted labels of each sequence, after looking that they belong together."""
    y_true, y_pred = _sequences(y_true, "y_true"), _sequences(y_pred, "y_pred")
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences and y_pred has {len(y_pred)}")
    for i, (labels, guesses) in enumerate(zip(y_true, y_pred, strict=True)):
        if len(labels) != len(guesses):
            raise ValueError(f"sequence {i} has {len(labels)} labels in y_true and {len(guesses)} in y_pred")
    if not any(y_true):
        raise ValueError("y_true and y_pred have no tokens: there is nothing to compare")
    return list(zip(y_true, y_pred, strict=True))


def _sequences(y: Iterable[Iterable[str]], name: str) -> list[list[str]]:
    y = list(checks.instance(name, y, Iterable, "a list of sequences of labels"))
    for i, labels in enumerate(y):
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise TypeError(f"{name} must be a list of sequences of labels; sequence {i} is {labels!r}")
    y = [list(labels) for labels in y]
    for i, labels in enumerate(y):
        for t, label in enumerate(labels):
            if not isinstance(label, str):
                raise TypeError(f"the labels of {name} must be strings; label {t} of sequence {i} is {label!r}")
    return y
