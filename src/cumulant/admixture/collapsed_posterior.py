"""The components of all tokens given the words, frequencies and memberships integrated out: a target of chains."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from cumulant import checks
from cumulant.admixture.collapsed_kernels import log_rising
from cumulant.admixture.data import Corpus, require_prior, start_components, token_components


class TokenOrder(NamedTuple):
    """Tokens sorted by word, by document within a word.

    ``order[i]`` is the place in the corpus of the ``i``-th, and ``place`` the inverse of that permutation.
    """

    order: np.ndarray
    place: np.ndarray
    word_starts: np.ndarray
    document: np.ndarray
    document_starts: np.ndarray
    locus: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class CollapsedPosterior:
    """``p(z | w)``, with

        p(z, w) = prod_d B(nu + n_d) / B(nu)  prod_kl B(eta_l + m_kl) / B(eta_l),

    where ``n_dk`` counts the tokens of document ``d`` in component ``k``, ``m_klj`` those of word ``j`` of locus ``l``,
    and ``B(a) = prod Gamma(a_i) / Gamma(sum a_i)`` (Griffiths and Steyvers 2004). A text has one locus.

    Parameters
    ----------
    corpus : Corpus
    n_components : int
    document_prior : float or array (components,)
        ``nu``, the parameter of the Dirichlet distribution of memberships.
    word_prior : float or array (words,)
        ``eta``, that of the frequencies of words in every component.

    Examples
    --------
    >>> corpus = Corpus.from_counts([[2, 1, 0], [0, 1, 2]])
    >>> posterior = CollapsedPosterior(corpus, 2, document_prior=0.7, word_prior=0.5)
    >>> bool(posterior.log_joint([0, 0, 0, 1, 1, 1]) > posterior.log_joint([0, 1, 0, 1, 0, 1]))
    True
    """

    corpus: Corpus
    n_components: int
    document_prior: Any = 0.1
    word_prior: Any = 0.1

    def __post_init__(self):
        checks.instance("corpus", self.corpus, Corpus, "a Corpus; Corpus.from_counts makes one from a matrix of counts")
        checks.whole("n_components", self.n_components)
        if self.corpus.n_words == 0:
            raise ValueError("corpus has no words: its vocabulary is empty")
        for name, size in (("document_prior", self.n_components), ("word_prior", self.corpus.n_words)):
            object.__setattr__(self, name, require_prior(name, getattr(self, name), size))

    @functools.cached_property
    def locus_prior(self) -> np.ndarray:
        """The sum of `word_prior` over the words of each locus."""
        return np.bincount(self.corpus.locus, weights=self.word_prior, minlength=self.corpus.n_loci)

    @functools.cached_property
    def tokens(self) -> TokenOrder:
        """The tokens by words."""
        corpus = self.corpus
        order = np.argsort(corpus.word, kind="stable")
        by_word = np.bincount(corpus.word, minlength=corpus.n_words)
        return TokenOrder(
            order,
            np.argsort(order).astype(np.int32),
            np.concatenate([[0], np.cumsum(by_word)]).astype(np.int64),
            np.ascontiguousarray(corpus.document[order], np.int32),
            np.concatenate([[0], np.cumsum(corpus.lengths)]).astype(np.int64),
            corpus.locus.astype(np.int64),
        )

    @functools.cached_property
    def _constant(self) -> float:
        total = self.document_prior.sum()
        documents = gammaln(total + self.corpus.lengths) - gammaln(total)
        return float(self.n_components * gammaln(self.locus_prior).sum() - documents.sum())

    def totals(self, z: np.ndarray) -> np.ndarray:
        """How many tokens of each locus each component has: (loci, components)."""
        shape = (self.corpus.n_loci, self.n_components)
        at = self.tokens.locus[self.corpus.word] * self.n_components + z
        return np.bincount(at, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int32)

    def log_joint(self, z: Any) -> float:
        """``log p(z, w)`` for the components of all tokens, in the order of the corpus."""
        z = np.array(token_components("z", z, self.corpus, self.n_components), np.int32).reshape(-1)
        tokens, k = self.tokens, self.n_components
        seen, none = np.zeros(k, np.int32), np.zeros(k)
        documents = np.zeros(self.corpus.n_documents)
        words = log_rising(tokens.word_starts, z[tokens.order], self.word_prior, none, seen)
        members = log_rising(tokens.document_starts, z, documents, self.document_prior, seen)
        shares = gammaln(self.locus_prior[:, None] + self.totals(z)).sum()
        return float(words + members - shares + self._constant)

    # As a target of Markov chains -------------------------------------------------------------------------------------

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The variables of a draw: the component of every token."""
        return {"z": (self.corpus.n_tokens,)}

    def starts(self, chains: int, start: Any, seed: int) -> np.ndarray:
        """The components of all tokens at the start of each chain: drawn uniformly where `start` is None."""
        return start_components(self.corpus, self.n_components, chains, start, seed)
