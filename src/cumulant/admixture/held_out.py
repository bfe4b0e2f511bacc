"""New documents under the frequencies of a fitted model: memberships, and the probability of their words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cumulant import checks, randomness
from cumulant.admixture.data import Corpus, require_prior
from cumulant.admixture.fold_in_kernels import fold_in, left_to_right
from cumulant.sampling import log_mean_exp
from cumulant.threads import in_parts


class Memberships(NamedTuple):
    """Posterior means and standard deviations (documents, K)."""

    mean: np.ndarray
    sd: np.ndarray


class HeldOut(NamedTuple):
    """An estimate of the log-probability of words, and its standard error.

    `documents` has ``log p(w_d)`` of each document, `errors` the standard errors of these, `n_tokens` the number of
    words in all.
    """

    documents: np.ndarray
    errors: np.ndarray
    n_tokens: int

    @property
    def per_word(self) -> float:
        """The mean log-probability of a word; NaN where there are none."""
        return float(self.documents.sum() / self.n_tokens) if self.n_tokens else np.nan

    @property
    def standard_error(self) -> float:
        """Of `per_word`. Documents with the same words share their random numbers, and so their errors."""
        if not self.n_tokens:
            return np.nan
        pairs, times = np.unique(np.stack([self.documents, self.errors]), axis=1, return_counts=True)
        return float(np.sqrt(((times * pairs[1]) ** 2).sum()) / self.n_tokens)

    @property
    def perplexity(self) -> float:
        """``exp(-per_word)``."""
        return float(np.exp(-self.per_word))


def memberships_given(
    corpus: Corpus,
    frequencies: Any,
    document_prior: Any,
    *,
    n_sweeps: int = 100,
    burn_in: int = 20,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Memberships:
    """The memberships of documents, frequencies (K, words) known: by Gibbs sampling of the components of their tokens.

    A document of no words has the prior.
    """
    starts, word, table, prior = _given(corpus, frequencies, document_prior)
    k, longest = prior.size, int(corpus.lengths.max(initial=0))
    mean, square = np.zeros((2, corpus.n_documents, k))

    def work(first, last):
        z, counts = np.zeros(longest, np.int32), np.zeros(k, np.int32)
        part = slice(first, last)
        fold_in(
            starts[first : last + 1], word, table, prior, seed, burn_in, n_sweeps, z, counts, np.zeros(k),
            mean[part], square[part],
        )  # fmt: skip

    in_parts(work, corpus.n_documents, n_jobs)
    return Memberships(mean, np.sqrt(np.maximum(square - mean**2, 0.0)))


def held_out_likelihood(
    corpus: Corpus,
    frequencies: Any,
    document_prior: Any,
    *,
    n_particles: int = 10,
    n_runs: int = 4,
    n_moves: int = 5,
    rng: int | np.random.Generator | None = 0,
    n_jobs: int | None = None,
) -> HeldOut:
    """``log p(w_d)`` of documents given frequencies (K, words), memberships and components summed out: an estimate.

    The left-to-right estimator (Wallach, Murray, Salakhutdinov and Mimno 2009; Buntine 2009), as sequential Monte
    Carlo: ``exp`` of each run is unbiased for ``p(w_d)``. `n_runs` independent runs of `n_particles` are averaged, and
    their spread is the standard error, by the delta method; the logarithm of the average is too small on average.
    `document_prior` is a positive number, or one for each component.

    Examples
    --------
    >>> corpus, frequencies = Corpus.from_counts([[2, 1]]), np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> found = held_out_likelihood(corpus, frequencies, np.array([0.5, 0.5]), n_particles=100)
    >>> exact = np.log(sum(w * (0.9 * t + 0.2 * (1 - t)) ** 2 * (0.1 * t + 0.8 * (1 - t)) for w, t in [
    ...     (1 / 1000, np.sin(np.pi / 2 * (i + 0.5) / 1000) ** 2) for i in range(1000)]))  # Beta(1/2, 1/2)
    >>> bool(abs(found.documents[0] - exact) < 5 * found.errors[0])
    True
    """
    checks.whole("n_particles", n_particles)
    checks.whole("n_runs", n_runs, 2)
    checks.whole("n_moves", n_moves, 0)
    starts, word, table, prior = _given(corpus, frequencies, document_prior)
    k, longest, seed = prior.size, int(corpus.lengths.max(initial=0)), randomness.seed(rng)
    values = np.zeros((n_runs, corpus.n_documents))

    def work(first, last):
        z, copies = np.zeros((2, n_particles, longest), np.int32)
        counts, counts_copy = np.zeros((2, n_particles, k), np.int32)
        for run in range(n_runs):
            left_to_right(
                starts[first : last + 1], word, table, prior, n_moves, seed, run, z, counts,
                np.zeros(n_particles), np.zeros(n_particles, np.int32), np.zeros(k), copies, counts_copy,
                values[run, first:last],
            )  # fmt: skip

    in_parts(work, corpus.n_documents, n_jobs)
    logs, errors = np.zeros((2, corpus.n_documents))
    for d, column in enumerate(values.T):
        impossible = column.max() == -np.inf  # a word that no component has: known without an error
        logs[d], errors[d] = (-np.inf, 0.0) if impossible else log_mean_exp(column)
    return HeldOut(logs, errors, corpus.n_tokens)


def _given(
    corpus: Corpus, frequencies: Any, document_prior: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Where documents begin, their words, frequencies (words, K), and the prior of memberships (K,)."""
    checks.instance("corpus", corpus, Corpus, "a Corpus")
    table = checks.real_array("frequencies", frequencies, ndim=2)
    if corpus.n_words != table.shape[1]:
        raise ValueError(f"corpus must have {table.shape[1]} words, as the frequencies; it has {corpus.n_words}")
    sums = np.add.reduceat(table, corpus.locus_starts[:-1], axis=1)
    if not len(table) or table.min() < 0 or np.abs(sums - 1.0).max() > 1e-6:
        raise ValueError("frequencies must have rows, none negative, that sum to one over the words of each locus")
    prior = require_prior("document_prior", document_prior, len(table))
    starts = np.concatenate([[0], np.cumsum(corpus.lengths)]).astype(np.int64)
    return starts, corpus.word, np.ascontiguousarray(table.T), prior
