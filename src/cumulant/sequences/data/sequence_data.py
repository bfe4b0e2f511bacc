"""Labelled sequences as arrays: tokens by attributes, where sequences begin, and labels by number."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from cumulant import checks


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
        offsets = checks.array("offsets", self.offsets)
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
        try:
            values = np.asarray(values)
        except ValueError:
            raise ValueError(f"{name} must be numbers in rows and columns; got rows of several lengths") from None
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


def flat_labels(sizes: np.ndarray, labels: Any, whole: str = "sequence", part: str = "token") -> np.ndarray:
    """A label for each token, from such an array or from a list of labels for each sequence."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype != object and len(labels) == sizes.sum():
        return labels
    if isinstance(labels, str | bytes | Mapping) or not hasattr(labels, "__len__"):
        raise TypeError(f"y must be a list of labels for each {whole}; got {type(labels).__name__} {labels!r:.60}")
    if len(labels) != len(sizes):
        raise ValueError(f"y must have labels for each of the {len(sizes)} {whole}s; got {len(labels)}")
    found = []
    for i, (own, size) in enumerate(zip(labels, sizes.tolist(), strict=True)):
        try:
            array = np.asarray(own)
        except ValueError:  # lists of several lengths
            array = np.empty(())
        if array.ndim != 1:
            raise TypeError(
                f"y must be a list of labels for each {whole}, one for each {part}; those of {whole} {i} are "
                f"{type(own).__name__} {own!r:.60}"
            )
        if len(array) != size:
            raise ValueError(f"{whole} {i} has {size} {part}s and {len(array)} labels in y")
        if size:
            found.append(array)
    if len({array.dtype.kind in "SU" for array in found}) > 1:
        raise TypeError("y must hold strings or numbers; some of the labels are strings and some are not")
    return np.concatenate(found) if found else np.empty(0)


def numbered(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels, sorted, and the number of each label among them.

    >>> numbered(np.array(["V", "D", "V"]))
    (array(['D', 'V'], dtype='<U1'), array([1, 0, 1]))
    """
    try:
        classes, numbers = np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise TypeError(
            f"y must hold strings or numbers, which can be sorted; got labels of {', '.join(kinds)}"
        ) from None
    if classes.dtype.kind == "f" and not np.all(np.isfinite(classes)):
        raise ValueError("y must hold strings or finite numbers; some of the labels are NaN or infinite")
    return classes, numbers
