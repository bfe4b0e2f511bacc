"""Tokens of documents: words of texts, or the allele copies of individuals at several loci."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from cumulant import checks
from cumulant.admixture.two_stage_kernels import count_tokens

MISSING = -1  # a call that was not made
_LEAST_PRIOR, _LARGEST_PRIOR = 1e-100, 1e8  # beyond them, differences of log-gammas overflow or have no digits left


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

    def __post_init__(self):
        checks.whole("n_documents", self.n_documents, 0)
        starts = _whole_numbers("locus_starts", self.locus_starts, np.int64)
        text = starts.size == 2 and starts[-1] == 0  # without any words
        if starts.size < 2 or starts[0] != 0 or ((np.diff(starts) <= 0).any() and not text):
            raise ValueError(f"locus_starts must increase from 0, with every locus having a column; got {starts}")
        for name, below in (("document", self.n_documents), ("word", int(starts[-1]))):
            values = _whole_numbers(name, getattr(self, name), np.int32)
            if values.size and not (values.min() >= 0 and values.max() < below):
                raise ValueError(f"{name} must be from 0 to {below - 1}; got {values.min()} to {values.max()}")
            object.__setattr__(self, name, values)
        if self.document.size != self.word.size:
            raise ValueError(
                f"document and word must be of the same tokens; got {self.document.size}, {self.word.size}"
            )
        if (np.diff(self.document) < 0).any():  # kernels walk through the documents one after the other
            raise ValueError("document must be in increasing order: sort the tokens by their documents")
        object.__setattr__(self, "locus_starts", starts)
        for name, size in (("words", self.n_words), ("documents", self.n_documents), ("loci", self.n_loci)):
            names = getattr(self, name)
            if names is not None and len(names) != size:
                raise ValueError(f"{name} must have {size} names; got {len(names)}")

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

    @functools.cached_property
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
            table: Any = scipy.sparse.csr_array(counts)
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
        names = tuple(map(str, words)) if words is not None else None
        return cls(document, word, table.shape[0], np.array([0, table.shape[1]]), names)

    @classmethod
    def from_genotypes(cls, genotypes: Any, *, n_alleles: Sequence[int] | None = None) -> Corpus:
        """Allele copies from an array (individuals, loci, copies) of allele numbers 0, 1, ...; -1 is a missing call.

        `n_alleles` is the number of alleles of each locus; by default one more than the largest that is seen.
        """
        array = checks.real_array("genotypes", genotypes, ndim=3)
        if (array < MISSING).any() or (array >= 2**31).any() or (array != np.round(array)).any():
            raise ValueError("genotypes must be allele numbers 0, 1, 2, ... below 2**31, or -1 for a missing call")
        array = array.astype(np.int64)
        largest = array.max(axis=(0, 2), initial=0) + 1
        sizes = np.maximum(largest, 1) if n_alleles is None else checks.real_array("n_alleles", n_alleles)
        if sizes.shape != largest.shape or (sizes < largest).any() or (sizes != np.round(sizes)).any():
            raise ValueError(
                f"n_alleles must have a number for each of the {largest.size} loci, above every allele number there"
            )
        starts = np.concatenate([[0], np.cumsum(sizes.astype(np.int64))])
        column = array + starts[:-1][None, :, None]
        known = (array != MISSING).reshape(array.shape[0], -1)
        document = np.repeat(np.arange(array.shape[0]), known.sum(axis=1))
        return cls(document, column.reshape(array.shape[0], -1)[known], array.shape[0], starts)


class Counts(NamedTuple):
    """Tokens of each word in each component ``(..., K, W)``, and of each component in each document ``(..., D, K)``.

    They are all that a model sees of the components of the tokens.
    """

    words: np.ndarray
    documents: np.ndarray

    @classmethod
    def zeros(cls, corpus: Corpus, n_components: int, n: int) -> Counts:
        """Of no tokens, `n` times."""
        shapes = (n_components, corpus.n_words), (corpus.n_documents, n_components)
        return cls(*(np.zeros((n, *shape), np.int32) for shape in shapes))

    @classmethod
    def of(cls, corpus: Corpus, n_components: int, z: Any) -> Counts:
        """Of components ``(..., tokens)`` of the tokens."""
        array = token_components("z", z, corpus, n_components)
        rows = np.ascontiguousarray(array, np.int32).reshape(math.prod(array.shape[:-1]), corpus.n_tokens)
        counts = cls.zeros(corpus, n_components, len(rows))
        count_tokens(rows, corpus.document, corpus.word, counts.words, counts.documents)
        return cls(*(each.reshape(*array.shape[:-1], *each.shape[1:]) for each in counts))


def start_components(corpus: Corpus, n_components: int, chains: int, start: Any, seed: int) -> np.ndarray:
    """The component of every token at the start of each chain, (chains, tokens): drawn uniformly where `start` is None,
    else `start` for all chains or a row for each.
    """
    shape = (chains, corpus.n_tokens)
    if start is None:
        rows = [np.random.default_rng([seed, c]).integers(n_components, size=shape[1]) for c in range(chains)]
        return np.array(rows, np.int32).reshape(shape)
    given = token_components("init", start, corpus, n_components)
    if given.shape not in (shape[1:], shape):
        raise ValueError(f"init must have shape {shape[1:]} or {shape}; got {given.shape}")
    return np.array(np.broadcast_to(given, shape), np.int32)


def token_components(name: str, value: Any, corpus: Corpus, n_components: int) -> np.ndarray:
    """Components ``(..., tokens)`` of the tokens of a corpus, whole numbers below `n_components`."""
    array = checks.array(name, value)
    if array.shape[-1:] != (corpus.n_tokens,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be whole numbers, a component for each of the {corpus.n_tokens} tokens; got {array.dtype} of "
            f"shape {array.shape}"
        )
    if array.size and not (array.min() >= 0 and array.max() < n_components):
        raise ValueError(f"{name} must be components from 0 to {n_components - 1}; got {array.min()} to {array.max()}")
    return array


def require_prior(name: str, value: Any, size: int = 1) -> np.ndarray:
    """Parameters ``(size,)`` of a Dirichlet distribution from a number for all of them, or one for each."""
    prior = checks.real_array(name, value)
    if prior.shape not in ((), (size,)) or not ((prior >= _LEAST_PRIOR) & (prior <= _LARGEST_PRIOR)).all():
        many = f", or {size} of them" if size > 1 else ""
        raise ValueError(
            f"{name} must be a number between {_LEAST_PRIOR:g} and {_LARGEST_PRIOR:g}{many}; got {value!s:.80}"
        )
    return np.array(np.broadcast_to(prior, (size,)))


def _whole_numbers(name: str, value: Any, kind: Any) -> np.ndarray:
    array = checks.array(name, value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a vector of whole numbers; got {array.dtype} of shape {array.shape}")
    if array.size and max(-int(array.min()), int(array.max())) > np.iinfo(kind).max:
        raise ValueError(f"{name} must be below 2**{8 * np.dtype(kind).itemsize - 1}; got {array.max()}")
    return np.ascontiguousarray(array, kind)
