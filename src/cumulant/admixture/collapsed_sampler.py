"""Collapsed Gibbs sampling as a sampler of `cumulant.sampling`."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant import checks, randomness
from cumulant.admixture.collapsed_kernels import dense_sweeps, sparse_sweeps
from cumulant.admixture.collapsed_posterior import CollapsedPosterior
from cumulant.threads import side_by_side

_METHODS = ("auto", "dense", "sparse")
_MOST_DENSE = 200  # components up to which adding all of them up is faster than the tree


class CollapsedChains(NamedTuple):
    """Chains over the components of tokens ``x`` (chains, tokens), in the order of the corpus, and the sweeps done."""

    x: np.ndarray
    sweeps: int
    seed: int


@dataclasses.dataclass(frozen=True)
class CollapsedGibbs:
    """Sweeps in which every token draws its component from its conditional distribution given all others:

        P(z_di = k | rest) ~ (nu_k + n_dk) (eta_j + m_kj) / (sum_j eta_j + t_k),

    the counts without the token itself, ``t_k`` those of its locus. It leaves ``p(z | w)`` as it is, exactly: `"dense"`
    adds up all components, `"sparse"` those that the document has and a tree for the rest (Yu and others 2015);
    `"auto"` takes the faster one. Chain ``c`` depends on the seed and on ``c`` only.

    Examples
    --------
    >>> from cumulant import sampling
    >>> from cumulant.admixture import CollapsedPosterior, Corpus
    >>> posterior = CollapsedPosterior(Corpus.from_counts([[5, 0], [0, 5]]), 2)
    >>> draws = sampling.sample(CollapsedGibbs(), posterior, 100, chains=2, rng=0)
    >>> bool(draws.mean(lambda z: z[:, 0] == z[:, 1]) > 0.9)
    True
    """

    method: str = "auto"
    n_jobs: int | None = None
    backend: ClassVar[str] = "host"

    def __post_init__(self):
        checks.choice("method", self.method, _METHODS)

    def init(self, target: CollapsedPosterior, x0: Any, rng: Any) -> CollapsedChains:
        """Chains at ``x0``, one row each."""
        return CollapsedChains(np.array(x0, np.int32), 0, randomness.seed(rng))

    def step(self, target: CollapsedPosterior, state: CollapsedChains) -> CollapsedChains:
        """One sweep of every chain, in place."""
        return self.advance(target, state, 0, 1, 1)[0]

    def advance(
        self, target: CollapsedPosterior, state: CollapsedChains, n: int, burn_in: int, thin: int
    ) -> tuple[CollapsedChains, np.ndarray]:
        """``burn_in + n * thin`` sweeps in place, and the `n` draws of each chain."""
        sweeps = state.sweeps + burn_in + n * thin
        if sweeps >= 2**32:
            raise ValueError(f"burn_in + n * thin must be below 2**32 sweeps; got {sweeps}")
        found = np.empty((len(state.x), n, state.x.shape[1]), np.int32)

        def work(chain):
            z = state.x[chain]
            self._sweep(target, z, state.seed, chain, state.sweeps, burn_in)
            for draw in range(n):
                self._sweep(target, z, state.seed, chain, state.sweeps + burn_in + draw * thin, thin)
                found[chain, draw] = z

        side_by_side(work, len(state.x), self.n_jobs)
        return state._replace(sweeps=sweeps), found

    def report(self, state: CollapsedChains) -> dict[str, Any]:
        """There are no proposals to report of."""
        return {}

    def _sweep(self, target: CollapsedPosterior, z: np.ndarray, seed: int, chain: int, first: int, n: int) -> None:
        """Sweeps ``first, ..., first + n - 1`` of one chain, in place: a function of its state and these numbers."""
        k, tokens, corpus = target.n_components, target.tokens, target.corpus
        if n == 0 or k == 1 or z.size == 0:
            return
        by_word, totals = z[tokens.order], target.totals(z)
        data = (tokens.word_starts, tokens.document, tokens.locus, target.word_prior, target.locus_prior)
        run = (seed, chain, first, n, 1.0 / (target.locus_prior[:, None] + totals), np.zeros(k, np.int32))
        if self.method == "dense" or (self.method == "auto" and k <= _MOST_DENSE):
            padding = -k % 4
            counts = np.zeros((corpus.n_documents, k + padding), np.int32)
            prior = np.append(target.document_prior, np.zeros(padding))
            dense_sweeps(*data, prior, by_word, counts, totals, *run, np.zeros(k + padding))
        else:
            starts = np.concatenate([[0], np.cumsum(np.minimum(corpus.lengths + 1, k))]).astype(np.int64)
            lists = (
                tokens.place,
                tokens.document_starts,
                starts,
                np.zeros(corpus.n_documents, np.int32),
                *np.zeros((2, int(starts[-1])), np.int32),
            )
            work = (np.empty(k), np.zeros(2 << (k - 1).bit_length()))
            sparse_sweeps(*data, target.document_prior, by_word, *lists, totals, *run, *work)
        z[tokens.order] = by_word
