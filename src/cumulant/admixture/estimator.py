"""Population structure and topics as a scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cumulant import checks, files, randomness
from cumulant.admixture.data import Corpus
from cumulant.admixture.fitting import DEFAULTS, fit_by, subject_of
from cumulant.admixture.genotypes import as_corpus
from cumulant.admixture.held_out import held_out_likelihood, memberships_given
from cumulant.admixture.model import AdmixtureModel
from cumulant.certificates import Certificate
from cumulant.errors import CertificateError, FileFormatError

_SWEEPS = 500  # over the components of a new individual
_ARRAYS = ("memberships_", "memberships_sd_", "frequencies_", "distance_", "level_", "locus_starts_")
_NUMBERS = ("mode_share_", "evidence_", "evidence_error_", "elbo_", "seed_")


class Admixture(TransformerMixin, BaseEstimator):
    """Individuals made of populations, or documents made of topics: memberships, frequencies and their uncertainty.

    The model is that of STRUCTURE and of latent Dirichlet allocation: see `AdmixtureModel`.

    Parameters
    ----------
    n_components : int
        The number of populations or topics; `choose_components` compares several.
    method : str
        ``"collapsed_gibbs"`` (Markov chains over the components of the tokens), ``"gibbs"`` (chains over frequencies
        and memberships too, as in STRUCTURE), ``"mean_field"`` (fast, with a certified lower bound on the evidence,
        uncertainty too small), ``"ais"`` (particles annealed from the prior, with the evidence, its error and a
        certified lower bound) or ``"variational_smc"`` (particles that choose their own path, and
        then are annealed to the posterior).
    membership_prior, allele_prior : float
        Between 1e-100 and 1e8: the parameters of the symmetric Dirichlet distributions of memberships and frequencies.
    options : mapping, optional
        Settings of the method: ``draws, chains, burn_in, thin`` of Markov chains, with ``exchange`` for ``"gibbs"``;
        ``n_starts, max_sweeps, tol, draws`` of mean field; those of `annealed_evidence`, ``n_particles, n_temperatures,
        n_sweeps, exchange, n_islands``, and of `variational_evidence`, ``n_particles, n_steps, finish, safeguard,
        exchange, pilot, n_islands``.
    random_state : int, Generator or None
    n_jobs : int, optional
        Threads; answers do not depend on it.
    verbose : bool, optional
        A progress bar on the terminal, by methods with chains or particles; None: once the fit has lasted a second.

    Attributes
    ----------
    memberships_, memberships_sd_ : array (individuals, components)
        Posterior means and standard deviations within one mode: that of the draw with the largest likelihood.
    mode_share_ : float
        The share of all draws that belong to this mode. Where it is well below one, rely on `distance_` and `level_`.
    frequencies_ : array (components, columns)
        Mean frequencies in the same mode; the columns of locus ``l`` are ``locus_starts_[l]`` to
        ``locus_starts_[l + 1]``.
    distance_, level_ : array (individuals, individuals), (individuals,)
        Posterior means of the admixture distance and level over all draws, whatever components are called.
    evidence_, evidence_error_ : float or None
        An estimate of ``log p(w)`` and its standard error, by annealing and variational SMC.
    elbo_ : float or None
        A lower bound on ``log p(w)``, by mean field.
    certificate_ : Certificate or None
        Of the lower bound on ``log p(w)``, by mean field, annealing, and variational SMC with a ``pilot``;
        ``verify(X)`` issues it again from the data.
    result_ : object
        What the method returned: chains, draws, particles or a fit; None after `load`. That of ``"collapsed_gibbs"``
        has ``result_.r_hat`` of the chains, and ``result_.status`` says whether Ctrl-C ended them early.
    alleles_ : list of arrays or None
        The allele values of each locus, in the order of the columns.

    Examples
    --------
    >>> from cumulant.admixture import Admixture
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.integers(0, 3, (10, 8, 2)), rng.integers(2, 6, (10, 8, 2))  # individuals, loci, copies
    >>> model = Admixture(2, method="gibbs", random_state=0).fit(np.concatenate([first, second]))
    >>> bool(model.distance_[0, 1] < 0.2 and model.distance_[0, 15] > 0.7)
    True
    >>> model.transform(first[:1]).shape
    (1, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        method: str = "collapsed_gibbs",
        membership_prior: float = 0.1,
        allele_prior: float = 0.1,
        options: Mapping[str, Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
    ):
        self.n_components, self.method = n_components, method
        self.membership_prior, self.allele_prior = membership_prior, allele_prior
        self.options, self.random_state, self.n_jobs, self.verbose = options, random_state, n_jobs, verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from genotypes (individuals, loci, copies), counts (documents, words), `Genotypes` or a `Corpus`.

        Alleles are whole numbers from 0 on, -1 or NaN where a call is missing.
        """
        checks.choice("method", self.method, DEFAULTS)
        options = dict(DEFAULTS[self.method])
        if self.options is not None:
            checks.instance("options", self.options, Mapping, "a mapping of names to values")
        checks.keywords(f"options of method={self.method!r}", self.options or {}, options)
        corpus, self.alleles_ = as_corpus("X", X)
        model = self._model(corpus)
        self.seed_ = self._seed()
        progress = None if self.verbose is None else f"Admixture, K = {self.n_components}" if self.verbose else False
        found = fit_by(self.method, model, {**options, **(self.options or {})}, self.seed_, self.n_jobs, progress)
        mode = found.draws.mode(model)
        self.memberships_, self.memberships_sd_ = mode.memberships, mode.memberships_sd
        self.frequencies_, self.mode_share_ = mode.frequencies, mode.share
        self.distance_, self.level_ = found.draws.distance, found.draws.level
        self.evidence_, self.evidence_error_, self.elbo_ = found.evidence, found.evidence_error, found.elbo
        self.certificate_, self.result_, self._answer = found.certificate, found.result, found.answer
        self.locus_starts_ = np.array(corpus.locus_starts)
        return self

    def verify(self, X: Any, y: Any = None) -> Certificate:
        """Issue the certificate again from the data that were learnt from: see `Certificate.verify`."""
        check_is_fitted(self)
        if self.certificate_ is None:
            raise CertificateError(f"method={self.method!r} has no certificate", "there is a certificate")
        model = self._model(as_corpus("X", X)[0])
        options = {**DEFAULTS[self.method], **(self.options or {})}
        return self.certificate_.verify(subject_of(self.method, model, options, self.seed_, self._answer))

    def transform(self, X: Any) -> np.ndarray:
        """Mean memberships of new individuals with the frequencies of the fit, by Gibbs sampling; alleles that the fit
        did not see count as missing.
        """
        corpus = self._new(X)
        return memberships_given(
            corpus, self.frequencies_, self._prior(), n_sweeps=_SWEEPS, seed=self.seed_, n_jobs=self.n_jobs
        ).mean

    def score_samples(self, X: Any, *, n_particles: int = 50, rng: Any = 0) -> np.ndarray:
        """Estimates of ``log p(w_d)`` of new individuals given the frequencies of the fit, memberships integrated out;
        ``exp`` of it is unbiased. See `held_out_likelihood`, which also gives errors.
        """
        corpus, prior = self._new(X), self._prior()
        return held_out_likelihood(
            corpus, self.frequencies_, prior, n_particles=n_particles, rng=rng, n_jobs=self.n_jobs
        ).documents

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> Path:
        """Write the fitted estimator to an `.npz` file (no pickle), which `load` reads; draws are not written."""
        check_is_fitted(self)
        parameters = self.get_params() | {"random_state": self.seed_, "options": dict(self.options or {})}
        fitted: dict[str, Any] = {name: getattr(self, name) for name in _NUMBERS}
        fitted["certificate"] = None if self.certificate_ is None else self.certificate_.to_json()
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {f"answer/{i}": each for i, each in enumerate(self._answer)}
        if self.alleles_ is not None:
            arrays["alleles"] = np.concatenate(self.alleles_)
        return files.save(path, type(self).__name__, arrays, {"parameters": parameters, "fitted": fitted})

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read what `save` wrote."""
        saved = files.load(path, cls.__name__)
        try:
            new, fitted = cls(**saved.settings["parameters"]), saved.settings["fitted"]
            for name in _ARRAYS:
                setattr(new, name, saved.arrays[name])
            for name in _NUMBERS:
                setattr(new, name, fitted[name])
            text = fitted["certificate"]
            new.certificate_ = None if text is None else Certificate.from_json(text)
            answers = sum(name.startswith("answer/") for name in saved.arrays)
            new._answer, new.result_ = tuple(saved.arrays[f"answer/{i}"] for i in range(answers)), None
            values = saved.arrays.get("alleles")
            new.alleles_ = None if values is None else np.split(values, new.locus_starts_[1:-1])
        except (KeyError, TypeError, ValueError) as problem:
            raise FileFormatError(f"{path} does not hold an Admixture of this version: {problem}") from problem
        return new

    # Helpers ----------------------------------------------------------------------------------------------------------

    def _model(self, corpus: Corpus) -> AdmixtureModel:
        return AdmixtureModel(corpus, self.n_components, self.membership_prior, self.allele_prior)

    def _prior(self) -> np.ndarray:
        return np.full(len(self.frequencies_), float(self.membership_prior))

    def _seed(self) -> int:
        state = self.random_state
        return int(state.randint(2**31)) if isinstance(state, np.random.RandomState) else randomness.seed(state)

    def _new(self, X: Any) -> Corpus:
        """The corpus of new data, with the columns of the fit."""
        check_is_fitted(self)
        corpus, _ = as_corpus("X", X, self.alleles_, new=True)
        if not np.array_equal(corpus.locus_starts, self.locus_starts_):
            raise ValueError(
                f"X must have the {self.locus_starts_.size - 1} loci and {self.locus_starts_[-1]} columns of the fit; "
                f"it has {corpus.n_loci} and {corpus.n_words}"
            )
        return corpus

    def __sklearn_tags__(self) -> Any:
        """Genotypes have three axes, counts may be sparse, and calls may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = True
        return tags
