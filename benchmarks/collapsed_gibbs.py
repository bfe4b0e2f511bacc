"""Collapsed Gibbs sampling of topics against tomotopy and the package `lda`, all of them on one thread.

The corpus has 200,000 tokens in 1,000 documents, drawn from 20 topics over 5,000 words with frequencies that fall off
like those of a language. Priors are 0.1 and stay fixed on all sides. Times are of the processor, per million tokens,
after 40 sweeps from random components; the peers build their models before the clock starts (`lda` cannot, so that its
time is the difference of a long and a short run). The same answer: the perplexity of the training tokens under the
frequencies and memberships of the last sweep, over a few seeds, must agree within five standard errors or 1 %.
"""

import logging
import time

import numpy as np

from benchmarks.timing import Row
from cumulant.admixture import CollapsedGibbs, CollapsedPosterior, Corpus

_REPEATS = 5
_WARM, _SWEEPS = 40, 20
_PRIOR = 0.1


def run() -> list[Row]:
    peers = {"tomotopy, 1 worker": (Tomotopy, {4: 1.0, 50: 1.0, 500: 2.0}), "lda": (Lda, {4: 2.0, 50: 5.0})}
    corpus, rows = documents(), []
    for name, (peer, bars) in peers.items():
        try:
            __import__(peer.package)
        except ImportError:
            print(f"collapsed_gibbs: left out; {peer.package} is not installed: pip install {peer.package}")
            continue
        for k, bar in bars.items():
            if k < 100:
                agree(corpus, k, peer, name)
            rows.append(compare(corpus, k, peer, name, bar))
    return rows


def documents(n_documents=1000, length=200, n_words=5000, n_topics=20) -> Corpus:
    """A synthetic corpus."""
    rng = np.random.default_rng(0)
    fall_off = 1.0 / np.arange(1, n_words + 1)
    topics = rng.dirichlet(0.05 * n_words * fall_off / fall_off.sum() + 1e-3, size=n_topics)
    members = rng.dirichlet(np.full(n_topics, 0.1), size=n_documents)
    counts = np.array([rng.multinomial(length, row) for row in members @ topics])
    return Corpus.from_counts(counts[:, counts.any(axis=0)])  # the peers know no words that do not occur


class Ours:
    """A chain, warmed up."""

    def __init__(self, corpus: Corpus, k: int, seed: int, warm: int = _WARM):
        self.posterior = CollapsedPosterior(corpus, k, _PRIOR, _PRIOR)
        self.sampler = CollapsedGibbs(n_jobs=1)
        self.state = self.sampler.init(self.posterior, self.posterior.starts(1, None, seed), seed)
        self.sweep(warm)

    def sweep(self, n: int) -> None:
        self.state, _ = self.sampler.advance(self.posterior, self.state, 0, n, 1)

    def seconds(self, n: int) -> float:
        """Of the processor, for `n` sweeps."""
        begun = time.process_time()
        self.sweep(n)
        return time.process_time() - begun

    def distributions(self) -> tuple[np.ndarray, np.ndarray]:
        """Memberships (documents, K) and frequencies (K, words)."""
        corpus, z = self.posterior.corpus, self.state.x[0]
        n = np.full((corpus.n_documents, self.posterior.n_components), _PRIOR)
        m = np.full((self.posterior.n_components, corpus.n_words), _PRIOR)
        np.add.at(n, (corpus.document, z), 1.0)
        np.add.at(m, (z, corpus.word), 1.0)
        return n / n.sum(axis=1, keepdims=True), m / m.sum(axis=1, keepdims=True)


class Tomotopy:
    package = "tomotopy"

    def __init__(self, corpus: Corpus, k: int, seed: int, warm: int = _WARM):
        import tomotopy

        self.corpus = corpus
        self.model = tomotopy.LDAModel(k=k, alpha=_PRIOR, eta=_PRIOR, seed=seed)
        self.model.optim_interval = 0
        for words in np.split(corpus.word, np.cumsum(corpus.lengths)[:-1]):
            self.model.add_doc([str(word) for word in words])
        self.model.train(warm, workers=1)

    def seconds(self, n: int) -> float:
        begun = time.process_time()
        self.model.train(n, workers=1)
        return time.process_time() - begun

    def distributions(self) -> tuple[np.ndarray, np.ndarray]:
        frequencies = np.zeros((self.model.k, self.corpus.n_words))
        columns = [int(word) for word in self.model.used_vocabs]
        for k in range(self.model.k):
            frequencies[k, columns] = self.model.get_topic_word_dist(k)
        return np.array([document.get_topic_dist() for document in self.model.docs]), frequencies


class Lda:
    package = "lda"

    def __init__(self, corpus: Corpus, k: int, seed: int, warm: int = _WARM):
        logging.getLogger("lda").setLevel(logging.ERROR)
        self.counts, self.k, self.seed = corpus.counts().toarray().astype(int), k, seed
        self.warm = warm

    def _fit(self, n: int):
        import lda

        model = lda.LDA(self.k, n_iter=n, alpha=_PRIOR, eta=_PRIOR, random_state=self.seed, refresh=10**6)
        return model.fit(self.counts)

    def seconds(self, n: int) -> float:
        times = []
        for sweeps in (1, n + 1):
            begun = time.process_time()
            self._fit(sweeps)
            times.append(time.process_time() - begun)
        return times[1] - times[0]

    def distributions(self) -> tuple[np.ndarray, np.ndarray]:
        model = self._fit(self.warm)
        return model.doc_topic_, model.topic_word_


def agree(corpus: Corpus, k: int, peer, name: str, sweeps=150, seeds=4) -> None:
    """The perplexity of the training tokens on both sides."""

    def perplexity(side, seed):
        members, frequencies = side(corpus, k, seed, sweeps).distributions()
        return np.exp(-np.log((members[corpus.document] * frequencies[:, corpus.word].T).sum(axis=1)).mean())

    ours, theirs = ([perplexity(side, seed) for seed in range(1, seeds + 1)] for side in (Ours, peer))
    error = np.sqrt((np.var(ours, ddof=1) + np.var(theirs, ddof=1)) / seeds)
    gap = abs(np.mean(ours) - np.mean(theirs))
    print(f"  perplexity at K = {k}: {np.mean(ours):.1f}, {name} {np.mean(theirs):.1f}, s.e. of the gap {error:.1f}")
    if gap > max(5.0 * error, 0.01 * np.mean(ours)):
        raise AssertionError(
            f"K = {k}: the perplexities of the two sides differ by {gap:.2g}, standard error {error:.2g}"
        )


def compare(corpus: Corpus, k: int, peer, name: str, bar: float) -> Row:
    """Processor seconds for a million tokens on both sides, alternating."""
    ours, theirs = Ours(corpus, k, 1), peer(corpus, k, 1)
    per_million = 1e6 / (_SWEEPS * corpus.n_tokens)
    times = np.array([[side.seconds(_SWEEPS) * per_million for side in (ours, theirs)] for _ in range(_REPEATS)])
    ratios = times[:, 1] / times[:, 0]
    row = Row(
        f"collapsed Gibbs, K = {k}, a million tokens",
        name,
        float(np.median(times[:, 0])),
        float(np.median(times[:, 1])),
        float(np.median(ratios)),
        (ratios.min(), ratios.max()),
        bar,
    )
    print(row, flush=True)
    return row


if __name__ == "__main__":
    run()
