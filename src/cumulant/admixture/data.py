"""Tokens of documents: words of texts, or the allele copies of individuals at several loci."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from cumulant import checks

MISSING = -1  # a call that was not made


@dataclasses.dataclass(frozen=True, eq=False)
class Corpus:
    """Tokens, document after document.

    Documents are texts or individuals, tokens are words or allele copies. The words of locus ``l`` are the columns
    ``locus_starts[l]`` to ``locus_starts[l + 1]``, so that every component has one simplex for each locus; a text has a
    single one.

    Attributes
    ----------
    document, word : array (tokens,) of int32
        The document of each token, in increasing order, and its column.
    n_documents : int
    locus_starts : array (loci + 1,) of int64
    words, documents, loci : tuple of str, optional
        Names of columns, documents and loci.

    Examples
    --------
    >>> corpus = Corpus.from_counts([[2, 1, 0], [0, 1, 2]])
    >>> corpus.document, corpus.word, corpus.n_words
    (array([0, 0, 0, 1, 1, 1], dtype=int32), array([0, 0, 1, 1, 2, 2], dtype=int32), 3)
    >>> two_loci = Corpus.from_genotypes([[[0, 1], [0, 0]], [[1, 1], [2, -1]]])  # individuals x loci x copies
    >>> two_loci.locus_starts, two_loci.word
    (array([0, 2, 5]), array([0, 1, 2, 2, 1, 1, 4], dtype=int32))
    """

    document: np.ndarray
    word: np.ndarray
    n_documents: int
    locus_starts: np.ndarray
    words: tuple[str, ...] | None = None
    documents: tuple[str, ...] | None = None
    loci: tuple[str, ...] | None = None

    @property
    def n_tokens(self) -> int:
        """The number of tokens."""
        return self.word.size

    @property
    def n_words(self) -> int:
        """The number of columns, over all loci."""
        return int(self.locus_starts[-1])

    @property
    def n_loci(self) -> int:
        """The number of loci; 1 for a text."""
        return self.locus_starts.size - 1

    @property
    def locus(self) -> np.ndarray:
        """The locus of each column."""
        return np.repeat(np.arange(self.n_loci), np.diff(self.locus_starts))

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each document."""
        return np.bincount(self.document, minlength=self.n_documents)

    def counts(self) -> scipy.sparse.csr_array:
        """How often each word is in each document: a sparse matrix (documents, words)."""
        ones = np.ones(self.n_tokens)
        shape = (self.n_documents, self.n_words)
        return scipy.sparse.coo_array((ones, (self.document, self.word)), shape=shape).tocsr()

    @classmethod
    def from_counts(cls, counts: Any, *, words: Sequence[str] | None = None) -> Corpus:
        """A text from a matrix (documents, words) of whole numbers, dense or sparse."""
        if scipy.sparse.issparse(counts):
            table = scipy.sparse.csr_array(counts)
            table.sum_duplicates()
        else:
            table = scipy.sparse.csr_array(checks.real_array("counts", counts, ndim=2))
        data = np.asarray(table.data, dtype=np.float64)
        wrong = ~np.isfinite(data) | (data < 0) | (data != np.round(data))
        if wrong.any():
            raise ValueError(f"counts must be whole numbers, not negative; got {data[wrong][0]}")
        if data.sum() >= 2**31:
            raise ValueError(f"counts must add up to less than 2**31 tokens; they add up to {data.sum():.4g}")
        table.eliminate_zeros()
        times = np.asarray(table.data, dtype=np.int64)
        document = np.repeat(np.repeat(np.arange(table.shape[0]), np.diff(table.indptr)), times)
        word = np.repeat(table.indices, times)
        if words is not None and len(words) != table.shape[1]:
            raise ValueError(f"words must have a name for each of the {table.shape[1]} columns; got {len(words)}")
        return cls(
            document.astype(np.int32),
            word.astype(np.int32),
            table.shape[0],
            np.array([0, table.shape[1]]),
            tuple(map(str, words)) if words is not None else None,
        )

    @classmethod
    def from_genotypes(cls, genotypes: Any, *, n_alleles: Sequence[int] | None = None) -> Corpus:
        """Allele copies from an array (individuals, loci, copies) of allele numbers 0, 1, ...; -1 is a missing call.

        `n_alleles` is the number of alleles of each locus; by default one more than the largest that is seen.
        """
        array = checks.real_array("genotypes", genotypes, ndim=3)
        if (array < MISSING).any() or (array != np.round(array)).any():
            raise ValueError("genotypes must be allele numbers 0, 1, 2, ..., or -1 for a missing call")
        array = array.astype(np.int64)
        largest = array.max(axis=(0, 2), initial=0) + 1
        sizes = np.maximum(largest, 1) if n_alleles is None else np.asarray(n_alleles, dtype=np.int64)
        if sizes.shape != largest.shape or (sizes < largest).any():
            raise ValueError(
                f"n_alleles must have a number for each of the {largest.size} loci, above every allele number there"
            )
        starts = np.concatenate([[0], np.cumsum(sizes)])
        column = array + starts[:-1][None, :, None]
        known = (array != MISSING).reshape(array.shape[0], -1)
        document = np.repeat(np.arange(array.shape[0]), known.sum(axis=1))
        word = column.reshape(array.shape[0], -1)[known]
        return cls(document.astype(np.int32), word.astype(np.int32), array.shape[0], starts)
