"""Labelled sequences as arrays: tokens by attributes, where sequences begin, and labels by number."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True, eq=False)
class SequenceData:
    """Sequences of tokens: a row of `features` for each, and sequence ``i`` is the rows ``offsets[i]:offsets[i+1]``.

    Parameters
    ----------
    features : CSR matrix or array (N, A)
        Numbers for each token and attribute. A CSR matrix of float64 is used as it is, without a copy.
    offsets : array of int (n + 1,)
        Where sequences begin, from 0 to N. Every sequence has at least one token.
    labels : array (N,), optional
        A label for each token: numbers or strings.

    Examples
    --------
    >>> data = SequenceData([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], offsets=[0, 2, 3], labels=[0, 1, 1])
    >>> data
    2 sequences, 3 tokens, 2 attributes, 4 values, with labels
    """

    features: Any
    offsets: Any
    labels: Any = None

    def __post_init__(self):
        object.__setattr__(self, "features", csr_matrix(self.features, "features"))
        offsets = np.asarray(self.offsets)
        tokens = self.features.shape[0]
        if offsets.ndim != 1 or offsets.size < 2 or offsets.dtype.kind not in "iu":
            raise ValueError(f"offsets must be whole numbers, one more than there are sequences; got {offsets!r:.80}")
        if offsets[0] != 0 or offsets[-1] != tokens or np.any(np.diff(offsets) < 1):
            raise ValueError(
                f"offsets must rise from 0 to the number of tokens ({tokens}), by at least one for each sequence; "
                f"they run from {offsets[0]} to {offsets[-1]} with a smallest step of {np.diff(offsets).min()}"
            )
        object.__setattr__(self, "offsets", np.ascontiguousarray(offsets, dtype=np.int64))
        if self.labels is not None:
            labels = np.asarray(self.labels)
            if labels.shape != (tokens,):
                raise ValueError(f"labels must be one for each of the {tokens} tokens; got shape {labels.shape}")
            object.__setattr__(self, "labels", labels)

    @classmethod
    def from_attributes(cls, x: Any, offsets: Any, y: Any = None, sizes: Any = None) -> "SequenceData":
        """Numbered attributes: ``x[t, c]`` is the value of template ``c`` at token ``t``, counted from 1; 0 is none.

        Each column has its own vocabulary, of ``sizes[c]`` values (by default the largest that occurs), and the matrix
        one indicator for each. Numbers beyond `sizes` are left out: give it for data that come after the first.

        >>> SequenceData.from_attributes([[1, 2], [0, 1]], [0, 2]).features.toarray()
        array([[1., 0., 1.],
               [0., 1., 0.]])
        """
        x = np.asarray(x)
        if x.ndim != 2 or x.dtype.kind not in "iu" or (x.size and x.min() < 0):
            raise ValueError(
                f"x must be whole numbers, not negative, a row for each token; got {x.dtype} of shape {x.shape}"
            )
        sizes = x.max(axis=0, initial=0) if sizes is None else np.asarray(sizes)
        if sizes.shape != x.shape[1:]:
            raise ValueError(f"sizes must be one for each of the {x.shape[1]} columns of x; got shape {sizes.shape}")
        sizes = sizes.astype(np.int64)
        known = (x > 0) & (x <= sizes)
        token, column = np.nonzero(known)
        indices = (np.cumsum(sizes) - sizes - 1)[column] + x[token, column]
        counts = np.count_nonzero(known, axis=1)
        matrix = sparse.csr_matrix(
            (np.ones(len(token)), indices, np.concatenate([[0], np.cumsum(counts)])), shape=(len(x), int(sizes.sum()))
        )
        return cls(matrix, offsets, y)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each sequence."""
        return np.diff(self.offsets)

    def __getitem__(self, which: Any) -> "SequenceData":
        """Some of the sequences: a slice, a mask or indices."""
        chosen = np.atleast_1d(np.arange(len(self))[which])
        if chosen.size == 0:
            raise ValueError("no sequence was chosen")
        tokens = np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in chosen])
        offsets = np.concatenate([[0], np.cumsum(self.lengths[chosen])])
        return replace(
            self,
            features=self.features[tokens],
            offsets=offsets,
            labels=None if self.labels is None else self.labels[tokens],
        )

    def split(self, values: Any) -> list:
        """Values for each token, as a list of one array for each sequence."""
        return np.split(np.asarray(values), self.offsets[1:-1])

    def __repr__(self):
        tokens, attributes = self.features.shape
        labelled = "" if self.labels is None else ", with labels"
        return f"{len(self)} sequences, {tokens} tokens, {attributes} attributes, {self.features.nnz} values{labelled}"


def csr_matrix(values: Any, name: str) -> Any:
    """A CSR matrix of finite float64, without a copy where `values` is one."""
    if not sparse.issparse(values):
        values = np.asarray(values)
        if values.ndim != 2 or values.dtype.kind not in "biuf":
            raise ValueError(f"{name} must be numbers in rows and columns; got {values.dtype} of shape {values.shape}")
    matrix: Any = values if isinstance(values, sparse.csr_matrix) else sparse.csr_matrix(values)
    matrix = matrix.astype(np.float64, copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not np.all(np.isfinite(matrix.data)):
        raise ValueError(f"{name} must be finite; they hold NaN or infinity")
    return matrix


class Vocabulary:
    """Attribute names by column, learned from sequences of names or of ``{name: value}``; or columns by number.

    >>> vocabulary = Vocabulary.learn([[["walk", "end"], {"walk": 2.0}]])
    >>> vocabulary.names
    ['walk', 'end']
    >>> vocabulary.encode([[["end", "unseen"]]]).features.toarray()
    array([[0., 1.]])
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
        first = _first_token(X)
        if not isinstance(first, Mapping | list | tuple) or (first and _is_number(next(iter(first)))):
            return cls(None, np.asarray(X[0]).shape[1])
        columns: dict[str, int] = {}
        for sequence in X:
            for token in sequence:
                for name in token:
                    columns.setdefault(name, len(columns))
        return cls(columns, len(columns))

    def encode(self, X: Any, y: Any = None) -> SequenceData:
        """`X` as `SequenceData`; names that the vocabulary does not know are left out."""
        if isinstance(X, SequenceData):
            if y is not None:
                X = replace(X, labels=flat_labels(X.lengths, y))
            if X.features.shape[1] != self.size:
                raise ValueError(f"X has {X.features.shape[1]} attributes, and {self.size} were expected")
            return X
        lengths = np.array([len(sequence) for sequence in X], dtype=np.int64)
        if lengths.size == 0 or lengths.min() == 0:
            which = "X holds no sequences" if lengths.size == 0 else f"sequence {int(lengths.argmin())} of X is empty"
            raise ValueError(f"{which}: every sequence needs at least one token")
        labels = None if y is None else flat_labels(lengths, y)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return SequenceData(self._dense(X) if self.names is None else self._named(X), offsets, labels)

    def _dense(self, X):
        arrays = [np.asarray(sequence) for sequence in X]
        for i, array in enumerate(arrays):
            if array.ndim != 2 or array.shape[1] != self.size:
                raise ValueError(
                    f"sequence {i} of X must have shape (length, {self.size}), like the first; got {array.shape}"
                )
        return np.concatenate(arrays)

    def _named(self, X):
        get = self._columns.get
        indices: list[int] = []
        values: list[float] = []
        indptr = [0]
        for i, sequence in enumerate(X):
            for token in sequence:
                if isinstance(token, Mapping):
                    for name, value in token.items():
                        column = get(name)
                        if column is not None:
                            indices.append(column)
                            values.append(_number(value, name, i))
                else:
                    known = [column for column in map(get, token) if column is not None]
                    indices.extend(known)
                    values.extend([1.0] * len(known))
                indptr.append(len(indices))
        shape = (len(indptr) - 1, self.size)
        return sparse.csr_matrix((np.asarray(values, dtype=np.float64), indices, indptr), shape=shape)

    def restrict(self, columns: np.ndarray) -> "Vocabulary":
        """The vocabulary of some of the columns."""
        return Vocabulary(None if self.names is None else [self.names[c] for c in columns], len(columns))


def _first_token(X: Any) -> Any:
    if not isinstance(X, Sequence | np.ndarray) or len(X) == 0:
        raise ValueError(f"X must be a list of sequences or SequenceData; got {type(X).__name__} {X!r:.60}")
    if len(X[0]) == 0:
        raise ValueError("sequence 0 of X is empty: every sequence needs at least one token")
    return X[0][0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _number(value: Any, name: str, i: int) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"attribute {name!r} of sequence {i} must be a number; got {value!r}") from None


def flat_labels(sizes: np.ndarray, labels: Any, whole: str = "sequence", part: str = "token") -> np.ndarray:
    """A label for each token, from such an array or from a list of labels for each sequence."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype != object and len(labels) == sizes.sum():
        return labels
    if len(labels) != len(sizes):
        raise ValueError(f"labels must be given for each of the {len(sizes)} {whole}s; got {len(labels)}")
    for i, (own, size) in enumerate(zip(labels, sizes, strict=True)):
        if len(own) != size:
            raise ValueError(f"{whole} {i} has {size} {part}s and {len(own)} labels")
    return np.concatenate([np.asarray(own) for own in labels])
