"""Latent Dirichlet allocation of texts as a scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from cumulant import checks, files
from cumulant.admixture.collapsed import collapsed_gibbs
from cumulant.admixture.collapsed_posterior import CollapsedPosterior
from cumulant.admixture.data import Corpus, Counts
from cumulant.admixture.held_out import HeldOut, Memberships, held_out_likelihood, memberships_given
from cumulant.admixture.prior_estimation import symmetric_prior

_KIND = "LDA"
_ROUNDS = 10  # estimates of the priors during the burn-in
_FITTED = ("components_", "memberships_", "memberships_sd_", "document_prior_", "word_prior_")


class LDA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Topics of documents (Blei, Ng and Jordan 2003), by exact collapsed Gibbs sampling.

    A document has memberships ``tau_d ~ Dirichlet(document_prior)``, a topic has frequencies of words ``beta_k ~
    Dirichlet(word_prior)``; each word of a document is of topic ``k`` with probability ``tau_dk``, and word ``j`` of
    that topic with probability ``beta_kj``. Estimates are posterior means over the draws of one chain: topics have no
    order, those of different chains do not correspond, and nothing is averaged over chains.

    Parameters
    ----------
    n_components : int
        The number of topics.
    document_prior, word_prior : float, or array (topics,) and (words,)
    method : {"collapsed_gibbs"}
    n_sweeps, burn_in, thin : int
        After `burn_in` sweeps over all tokens, every `thin`-th of `n_sweeps` is a draw.
    n_chains : int
        With several, the one with the largest mean of ``log p(z, w)`` is taken, and ``result_.r_hat`` compares them.
    optimise_priors : bool
        Estimate both priors, one number each, by Minka's fixed point in the first half of the burn-in.
    random_state : int, RandomState or None
        The same number gives the same answer, whatever `n_jobs`.
    n_jobs : int, optional
        Threads, for chains and for new documents.

    Attributes
    ----------
    components_ : array (topics, words)
        Posterior means of the frequencies; rows sum to one.
    memberships_, memberships_sd_ : array (documents, topics)
        Posterior means and standard deviations of the memberships of the documents that were fitted.
    document_prior_, word_prior_ : arrays
        The priors that were used.
    result_ : CollapsedResult
        All chains: ``result_.r_hat``, ``result_.log_joint``, ``result_.save``.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> texts = ["cat dog cat", "dog cat dog cat", "stock bond stock", "bond stock bond", "cat stock"]
    >>> vectoriser = CountVectorizer()
    >>> model = LDA(2, n_sweeps=400, burn_in=100, random_state=0).fit(vectoriser.fit_transform(texts))
    >>> sorted(sorted(words) for words in model.top_words(2, vectoriser.get_feature_names_out()))
    [['bond', 'stock'], ['cat', 'dog']]
    >>> model.transform(vectoriser.transform(["dog dog dog cat"])).shape
    (1, 2)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        document_prior: Any = 0.1,
        word_prior: Any = 0.1,
        method: str = "collapsed_gibbs",
        n_sweeps: int = 500,
        burn_in: int = 500,
        thin: int = 10,
        n_chains: int = 1,
        optimise_priors: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.n_components = n_components
        self.document_prior = document_prior
        self.word_prior = word_prior
        self.method = method
        self.n_sweeps = n_sweeps
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.optimise_priors = optimise_priors
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> LDA:
        """Fit the topics of documents: counts (documents, words), dense or sparse, or a `Corpus`."""
        checks.choice("method", self.method, ("collapsed_gibbs",))
        corpus = self._corpus(X, reset=True)
        if corpus.n_tokens == 0:
            raise ValueError("X has no words at all: there is nothing to learn from")
        checks.whole("thin", self.thin)
        if checks.whole("n_sweeps", self.n_sweeps) < self.thin:
            raise ValueError(f"n_sweeps must be at least thin, {self.thin}, for a single draw; got {self.n_sweeps}")
        self._seed = int(check_random_state(self.random_state).randint(2**31))
        priors, start, burn_in = (self.document_prior, self.word_prior), None, self.burn_in
        if self.optimise_priors:
            priors, start, done = self._estimate_priors(corpus, priors)
            burn_in -= done
        self.result_ = self._run(corpus, priors, self.n_sweeps, burn_in, self.thin, start, self._seed)
        if self.result_.log_joint.shape[1] == 0:  # interrupted before the first draw: there is no answer
            raise KeyboardInterrupt
        posterior = self.result_.posterior
        self.document_prior_, self.word_prior_ = posterior.document_prior, posterior.word_prior
        self.components_ = self.result_.frequencies()
        self.memberships_, self.memberships_sd_ = self.result_.memberships(), self.result_.memberships_sd()
        self._words = corpus.words
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Posterior means of the memberships of documents (documents, topics), topics held at `components_`.

        An answer depends on the document and the seed of the fit, not on the other documents.
        """
        return self.memberships(X).mean

    def memberships(self, X: Any, *, n_sweeps: int = 100, burn_in: int = 20) -> Memberships:
        """Posterior means and standard deviations of the memberships of documents, topics held at `components_`."""
        corpus = self._fitted_corpus(X)
        checks.whole("n_sweeps", n_sweeps)
        checks.whole("burn_in", burn_in, 0)
        settings = {"n_sweeps": n_sweeps, "burn_in": burn_in, "seed": self._seed, "n_jobs": self.n_jobs}
        return memberships_given(corpus, self.components_, self.document_prior_, **settings)

    def log_likelihood(self, X: Any, *, n_particles: int = 10, n_runs: int = 4) -> HeldOut:
        """The log-probability of documents given `components_`, with its standard error: see `held_out_likelihood`."""
        corpus = self._fitted_corpus(X)
        settings = {"n_particles": n_particles, "n_runs": n_runs, "rng": self._seed, "n_jobs": self.n_jobs}
        return held_out_likelihood(corpus, self.components_, self.document_prior_, **settings)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-probability of a word of these documents: an estimate, whose error `log_likelihood` gives."""
        return self.log_likelihood(X).per_word

    def perplexity(self, X: Any) -> float:
        """``exp(-score(X))``: an estimate."""
        return self.log_likelihood(X).perplexity

    def top_words(self, n: int = 10, names: Sequence[str] | None = None) -> list[list[str]]:
        """The `n` most frequent words of each topic, first the most frequent.

        Names are those of the columns: `names`, or those of the data frame or corpus that was fitted, or numbers.
        """
        check_is_fitted(self, "components_")
        checks.whole("n", n)
        if names is not None and not hasattr(names, "__len__"):
            raise TypeError(f"names must be a list of words; got {names!r:.60}")
        known = names if names is not None else getattr(self, "feature_names_in_", self._words)
        if known is None:
            known = [str(j) for j in range(self.components_.shape[1])]
        if len(known) != self.components_.shape[1]:
            raise ValueError(f"names must name the {self.components_.shape[1]} words; got {len(known)}")
        return [[str(known[j]) for j in np.argsort(-row, kind="stable")[:n]] for row in self.components_]

    def save(self, path: str | os.PathLike) -> Path:
        """Write the fitted model to a file, which `load` reads; the chains are saved by ``result_.save``."""
        check_is_fitted(self, "components_")
        settings = {"parameters": _plain(self.get_params()), "seed": self._seed, "words": self._words}
        if hasattr(self, "feature_names_in_"):
            settings["features"] = list(map(str, self.feature_names_in_))  # type: ignore[attr-defined]
        return files.save(path, _KIND, {name: getattr(self, name) for name in _FITTED}, settings)

    @classmethod
    def load(cls, path: str | os.PathLike) -> LDA:
        """Read a model that `save` wrote."""
        saved = files.load(path, _KIND)
        model = cls(**saved.settings["parameters"])
        for name in _FITTED:
            setattr(model, name, saved.arrays[name])
        words = saved.settings["words"]
        model._seed, model._words = saved.settings["seed"], tuple(words) if words is not None else None
        model.n_features_in_ = model.components_.shape[1]
        if "features" in saved.settings:
            model.feature_names_in_ = np.array(saved.settings["features"], dtype=object)  # type: ignore[attr-defined]
        return model

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def _fitted_corpus(self, X: Any) -> Corpus:
        check_is_fitted(self, "components_")
        return self._corpus(X, reset=False)

    def _corpus(self, X: Any, *, reset: bool) -> Corpus:
        if isinstance(X, Corpus):
            if X.n_loci != 1:
                raise ValueError(f"X must be a text, with one locus; it has {X.n_loci}")
            if reset:
                self.n_features_in_ = X.n_words
            elif X.n_words != self.n_features_in_:
                raise ValueError(f"X has {X.n_words} features, but LDA is expecting {self.n_features_in_} features")
            return X
        table = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        check_non_negative(table, "LDA")
        return Corpus.from_counts(table)

    def _run(self, corpus, priors, n_sweeps, burn_in, thin, start, seed):
        return collapsed_gibbs(
            corpus, self.n_components, document_prior=priors[0], word_prior=priors[1], n_sweeps=n_sweeps,
            burn_in=burn_in, thin=thin, n_chains=self.n_chains, init=start, rng=seed, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _estimate_priors(self, corpus: Corpus, priors: tuple[Any, Any]) -> tuple[tuple[Any, Any], Any, int]:
        """Both priors, from the components of all chains at a few moments of the burn-in; where chains then are, and
        how many sweeps that took. One number for all topics does not depend on how a chain numbers them.
        """
        piece, start = max(1, checks.whole("burn_in", self.burn_in, 0) // (2 * _ROUNDS)), None
        first = CollapsedPosterior(corpus, self.n_components, *priors)
        estimates = float(first.document_prior.mean()), float(first.word_prior.mean())
        for step in range(_ROUNDS):
            run = self._run(corpus, estimates, piece, 0, piece, start, self._seed + 1 + step)
            if run.status == "interrupted":
                raise KeyboardInterrupt
            start = run.state.x
            counts = Counts.of(corpus, self.n_components, start)
            estimates = (
                symmetric_prior(counts.documents.reshape(-1, self.n_components), estimates[0]),
                symmetric_prior(counts.words.reshape(-1, corpus.n_words), estimates[1]),
            )
        return estimates, start, min(_ROUNDS * piece, self.burn_in)


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON has them; a generator is left out."""
    plain = {}
    for name, value in parameters.items():
        if name == "random_state" and not isinstance(value, int | np.integer):
            value = None
        plain[name] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    return plain
