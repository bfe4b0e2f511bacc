"""Tokens as users have them, and the columns that their attributes get.

A token is a mapping of names to values, a list of names, or a row of numbers. In a mapping a number is a weight, a
string means the attribute ``name=value``, True the name alone and False nothing; a list of strings is several strings,
and a mapping inside puts its name and ``=`` in front of the names in it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from numbers import Real
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from cumulant.sequences.data.sequence_data import SequenceData, flat_labels

_ACCEPTED = (
    "X must be a list of sequences, and a sequence is a list of tokens or an array (length, attributes); a token is "
    "{name: value}, [name, ...] or a row of numbers"
)


class Vocabulary:
    """Attribute names by column, learned from sequences of tokens; or columns by number.

    >>> vocabulary = Vocabulary.learn([[{"word": "Walk", "capital": True, "length": 4}], [["end"]]])
    >>> vocabulary.names
    ['word=Walk', 'capital', 'length', 'end']
    >>> vocabulary.encode([[{"word": "Run", "capital": True, "length": 3.0}]]).features.toarray()
    array([[0., 1., 3., 0.]])
    """

    def __init__(self, names: Iterable[str] | None, size: int):
        self.names = None if names is None else list(names)
        self.size = size
        self._columns = {} if self.names is None else {name: i for i, name in enumerate(self.names)}

    @classmethod
    def learn(cls, X: Any) -> "Vocabulary":
        """The vocabulary of `X`, in order of first occurrence; of arrays and `SequenceData`, their columns."""
        if isinstance(X, SequenceData):
            return cls(None, X.features.shape[1])
        lengths = sequence_lengths(X)
        if not lengths.any():
            raise ValueError(f"X has no tokens to learn from ({len(lengths)} sequences): {_ACCEPTED}")
        width = _row_length(X[int(np.flatnonzero(lengths)[0])][0])
        if width is not None:
            return cls(None, width)
        columns: dict[str, int] = {}
        for i, sequence in enumerate(X):
            for t, token in enumerate(_listed(sequence)):
                for name in _attributes(token, i, t)[0]:
                    columns.setdefault(name, len(columns))
        return cls(columns, len(columns))

    def encode(self, X: Any, y: Any = None) -> SequenceData:
        """`X` as `SequenceData`, without the sequences that have no tokens; names that are not known are left out."""
        if isinstance(X, SequenceData):
            if y is not None:
                X = replace(X, labels=flat_labels(X.lengths, y))
            if X.features.shape[1] != self.size:
                raise ValueError(f"X has {X.features.shape[1]} attributes, and {self.size} were expected")
            return X
        lengths = sequence_lengths(X)
        if not lengths.any():
            raise ValueError(f"X has no tokens ({len(lengths)} sequences)")
        features = self._rows(X) if self.names is None else self._named(X, lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths[lengths > 0])])
        return SequenceData(features, offsets, None if y is None else flat_labels(lengths, y))

    def _rows(self, X):
        arrays = []
        for i, sequence in enumerate(X):
            if len(sequence) == 0:
                continue
            try:
                array: Any = np.asarray(sequence)
            except ValueError:  # rows of several lengths
                array = np.empty(0)
            if array.ndim != 2 or array.shape[1] != self.size or array.dtype.kind not in "biuf":
                got = f"an array of shape {sequence.shape}" if isinstance(sequence, np.ndarray) else _shown(sequence)
                raise ValueError(
                    f"sequence {i} of X must have shape (length, {self.size}) and hold numbers, like those that were "
                    f"learned from; got {got}"
                )
            arrays.append(array)
        return np.concatenate(arrays)

    def _named(self, X, lengths):
        get = self._columns.get
        indices: list[int] = []
        values: list[float] = []
        indptr = [0]
        for i, sequence in enumerate(X):
            for t, token in enumerate(_listed(sequence)):
                for name, value in zip(*_attributes(token, i, t), strict=True):
                    column = get(name)
                    if column is not None:
                        indices.append(column)
                        values.append(value)
                indptr.append(len(indices))
        weights = np.asarray(values, dtype=np.float64)
        for bad in np.flatnonzero(~np.isfinite(weights)):
            row = int(np.searchsorted(indptr, bad, side="right")) - 1
            i = int(np.searchsorted(np.cumsum(lengths), row, side="right"))
            name = list(self._columns)[indices[bad]]
            raise ValueError(f"attribute {name!r} of sequence {i} of X must be finite; got {weights[bad]}")
        return sparse.csr_matrix((weights, indices, indptr), shape=(len(indptr) - 1, self.size))

    def restrict(self, columns: np.ndarray) -> "Vocabulary":
        """The vocabulary of some of the columns."""
        return Vocabulary(None if self.names is None else [self.names[c] for c in columns], len(columns))


def sequence_lengths(X: Any) -> np.ndarray:
    """The number of tokens of each sequence. What is not a list of sequences is refused.

    >>> sequence_lengths([[["the"], ["dog"]], []])
    array([2, 0])
    """
    if isinstance(X, SequenceData):
        return X.lengths
    if not _is_list(X):
        raise TypeError(f"{_ACCEPTED}; got {_shown(X)}")
    if isinstance(X, np.ndarray) and X.dtype != object and X.ndim != 3:
        raise ValueError(f"{_ACCEPTED}; got an array of shape {X.shape} (one sequence is written [x])")
    for i, sequence in enumerate(X):
        if not _is_list(sequence):
            raise TypeError(f"sequence {i} of X is {_shown(sequence)}: {_ACCEPTED} (one sequence is written [x])")
        if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "biuf" and sequence.ndim != 2:
            raise ValueError(f"sequence {i} of X is an array of shape {sequence.shape}: {_ACCEPTED}")
    return np.array([len(sequence) for sequence in X], dtype=np.int64)


def _is_list(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.60}"


def _row_length(token: Any) -> int | None:
    """The number of attributes of a row of numbers; None for names."""
    if isinstance(token, np.ndarray):
        return len(token) if token.ndim == 1 and token.dtype.kind in "biuf" else None
    row = isinstance(token, list | tuple) and len(token) and isinstance(token[0], Real)
    return len(token) if row and not isinstance(token[0], bool) else None


def _listed(sequence: Any) -> Any:
    return sequence.tolist() if isinstance(sequence, np.ndarray) and sequence.dtype.kind not in "biuf" else sequence


def _attributes(token: Any, i: int, t: int) -> tuple[Sequence[str], list[float]]:
    """The names and weights of token `t` of sequence `i`."""
    if isinstance(token, list | tuple | AbstractSet):
        names = token if isinstance(token, list | tuple) else sorted(token, key=str)  # in an order that does not change
        for name in names:
            if not isinstance(name, str):
                _refuse_token(token, f"attribute names must be strings; got {_shown(name)}", i, t)
        return names, [1.0] * len(names)
    if not isinstance(token, Mapping):
        _refuse_token(token, "it must be {name: value} or [name, ...]", i, t)
    names, values = [], []
    for name, value in token.items():
        if not isinstance(name, str):
            _refuse_token(token, f"attribute names must be strings; got {_shown(name)}", i, t)
        if type(value) is float:
            names.append(name)
            values.append(value)
        elif isinstance(value, str):
            names.append(f"{name}={value}")
            values.append(1.0)
        elif isinstance(value, bool | np.bool_):
            names += [name] * bool(value)
            values += [1.0] * bool(value)
        elif isinstance(value, Real):
            names.append(name)
            values.append(_weight(value))
        elif isinstance(value, Mapping | list | tuple | AbstractSet):
            inner, weights = _attributes(value, i, t)
            names += [f"{name}={part}" for part in inner]
            values += weights
        else:
            what = "must be a number, a string, True, False, a list of strings or a mapping"
            _refuse_token(token, f"attribute {name!r} {what}; got {_shown(value)}", i, t)
    return names, values


def _weight(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf  # refused as not finite


def _refuse_token(token: Any, why: str, i: int, t: int) -> NoReturn:
    nested = " (one sequence is written [x])" if isinstance(token, str) else ""
    raise TypeError(f"token {t} of sequence {i} of X is {_shown(token)}: {why}{nested}")
