"""Mean field of an admixture: a product of Dirichlet distributions, and the lower bound on ``log p(w)`` it gives."""

import dataclasses
import math
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln

from cumulant import checks, randomness
from cumulant.admixture.mean_field_kernels import responsibilities
from cumulant.admixture.model import AdmixtureModel
from cumulant.admixture.two_stage import TwoStageGibbs
from cumulant.certificates import Certificate, Subject, assume, by_construction, check, issuer, recipe_of, rounding

_GIBBS = "Gibbs' inequality: log p(w) = E_q log p(x, w) + H(q) + KL(q || p) >= E_q log p(x, w) + H(q)"
_START_SWEEPS = 100  # of the chain that finds a start
_UNITS = 32.0  # units in the last place that a log-gamma or a digamma may be wrong by


@dataclasses.dataclass(frozen=True, eq=False)
class MeanFieldFit:
    """The best product ``q = prod Dirichlet(beta_k | xi_k) prod Dirichlet(tau_d | rho_d) prod Categorical(z_di)``.

    Attributes
    ----------
    model : AdmixtureModel
    frequency_parameters : array (K, W)
        ``xi``.
    membership_parameters : array (D, K)
        ``rho``.
    elbo : float
        ``E_q log p(x, w) + H(q) <= log p(w)``.
    certificate : Certificate
        That bound with its rounding, about the ``q`` at hand, whether it has `converged` or not.
    trace : array
        The bound after each sweep of the best start; it never falls.
    elbos : array
        The bounds that the starts reached.
    """

    model: AdmixtureModel
    frequency_parameters: np.ndarray
    membership_parameters: np.ndarray
    elbo: float
    certificate: Certificate
    trace: np.ndarray
    elbos: np.ndarray
    converged: bool

    @property
    def subject(self) -> Subject:
        """What the certificate speaks of: the model and ``(xi, rho)``."""
        return Subject(self.model, (self.frequency_parameters, self.membership_parameters))

    @property
    def memberships(self) -> np.ndarray:
        """``E_q tau``, shape (D, K)."""
        return self.membership_parameters / self.membership_parameters.sum(axis=1, keepdims=True)

    @property
    def frequencies(self) -> np.ndarray:
        """``E_q beta``, shape (K, W)."""
        xi = self.frequency_parameters
        return xi / self.model._spread(self.model._by_locus(xi))

    def __str__(self):
        end = "converged" if self.converged else "not converged"
        return f"log p(w) >= {self.elbo:.6g}  ({len(self.trace)} sweeps, {end})"


def mean_field(
    model: AdmixtureModel, *, n_starts: int = 8, max_sweeps: int = 2000, tol: float = 1e-8, rng: Any = 0
) -> MeanFieldFit:
    """Coordinate ascent on the evidence lower bound from several starts; the best is kept.

    A sweep sets ``q(z_di = k)`` proportional to ``exp(E_q log beta_kj + E_q log tau_dk)`` and then the parameters of
    the Dirichlet distributions to the priors plus the expected counts. Each is the exact maximiser given the other, so
    that the bound never falls; the bound has many local maxima, and equal responsibilities are a saddle point.

    Parameters
    ----------
    model : AdmixtureModel
    n_starts : int
        Short chains of two-stage Gibbs with exchanges, whose counts added to the priors are the first parameters.
        Ascent from noise ends in worse maxima.
    max_sweeps, tol : int, float
        A start ends where the bound rises by less than `tol` times its size in a sweep.
    rng : int, Generator or None

    References
    ----------
    Blei, Ng and Jordan (2003), "Latent Dirichlet allocation"; Carbonetto (2009), figure 3.11.

    Examples
    --------
    >>> from cumulant.admixture import Corpus
    >>> fit = mean_field(AdmixtureModel(Corpus.from_counts([[2, 1, 0], [0, 1, 2]]), 2, 0.7, 0.5))
    >>> round(fit.elbo, 6), fit.converged  # log p(w) is -7.584500
    (-9.406236, True)
    """
    checks.instance("model", model, AdmixtureModel, "an AdmixtureModel")
    checks.whole("n_starts", n_starts)
    checks.whole("max_sweeps", max_sweeps)
    checks.positive("tol", tol)
    seed, best, reached = randomness.seed(rng), None, []
    ascent, sampler = _Ascent(model), TwoStageGibbs(exchange=True)
    chains = sampler.init(model, model.starts(n_starts, None, seed), seed)
    starts = model.counts(sampler.advance(model, chains, 0, _START_SWEEPS, 1)[0].x)
    for words, documents in zip(*starts, strict=True):
        xi, rho = model.allele_prior + words, model.membership_prior + documents
        trace, converged = [], False
        while len(trace) < max_sweeps and not converged:
            xi, rho, value = ascent.sweep(xi, rho)
            converged = bool(trace) and value - trace[-1] <= tol * abs(value)
            trace.append(value)
        value = ascent.sweep(xi, rho)[2]  # the bound of the parameters themselves: a sweep reports those it was given
        reached.append(value)
        if best is None or value > best[0]:
            best = value, xi, rho, np.array([*trace[1:], value]), converged
    assert best is not None
    _, xi, rho, trace, converged = best
    certificate = certify_mean_field(model, (xi, rho))
    return MeanFieldFit(model, xi, rho, -certificate.upper, certificate, trace, np.array(reached), converged)


class _Ascent:
    """The arrays that all sweeps of a model share."""

    def __init__(self, model: AdmixtureModel):
        self.model, self.table = model, model.corpus.counts()
        self.indptr, self.words = self.table.indptr.astype(np.int64), self.table.indices.astype(np.int64)
        self.score = np.empty(model.n_components)

    def sweep(self, xi: np.ndarray, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """The next parameters, and the bound of the given ones."""
        model = self.model
        log_frequencies, log_members = _expected_logs(model, xi, rho)
        of_words = np.full(xi.T.shape, float(model.allele_prior))
        of_documents = np.full(rho.shape, float(model.membership_prior))
        value = responsibilities(
            self.indptr, self.words, self.table.data, log_members, np.ascontiguousarray(log_frequencies.T),
            self.score, of_documents, of_words,
        )  # fmt: skip
        value += sum(each.sum() for each in _dirichlet_terms(model, xi, rho, log_frequencies, log_members))
        return np.ascontiguousarray(of_words.T), of_documents, float(value)


def _expected_logs(model: AdmixtureModel, xi: np.ndarray, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (
        digamma(xi) - model._spread(digamma(model._by_locus(xi))),
        digamma(rho) - digamma(rho.sum(axis=1, keepdims=True)),
    )


def _dirichlet_terms(model, xi, rho, log_frequencies, log_members) -> list[np.ndarray]:
    """The bound without its sum over tokens, as terms to be added: ``log B(xi) - log B(eta*) + E log beta (eta* - xi)``
    and the same for memberships.
    """
    eta, nu, k = model.allele_prior, model.membership_prior, model.n_components
    sizes = np.diff(model.corpus.locus_starts)
    return [
        gammaln(xi) - gammaln(eta),
        gammaln(eta * sizes) - gammaln(model._by_locus(xi)),
        log_frequencies * (eta - xi),
        gammaln(rho) - gammaln(nu),
        gammaln(nu * k) - gammaln(rho.sum(axis=1)),
        log_members * (nu - rho),
    ]


@issuer
def certify_mean_field(model: AdmixtureModel, answer: Any) -> Certificate:
    """``-log p(w) <= -ELBO`` from the tokens and ``answer = (xi, rho)``, by exact summation of terms in float64.

    The ``z`` of ``q`` are the best ones for these parameters: any positive parameters give a bound.
    """
    xi, rho = (np.asarray(each, dtype=np.float64) for each in answer)
    corpus, k = model.corpus, model.n_components
    shapes = xi.shape == (k, corpus.n_words) and rho.shape == (corpus.n_documents, k)
    positive = shapes and np.isfinite(xi).all() and np.isfinite(rho).all() and xi.min() > 0 and rho.min() > 0
    valid = check(positive, "the parameters of q are positive, one for each word and document of each component")
    log_frequencies, log_members = _expected_logs(model, xi, rho)
    table = corpus.counts().tocoo()
    document, word = table.coords
    scores = log_members[document] + log_frequencies.T[word]
    top = scores.max(axis=1)
    tokens = table.data * (top + np.log(np.exp(scores - top[:, None]).sum(axis=1)))
    parts = [tokens, *_dirichlet_terms(model, xi, rho, log_frequencies, log_members)]
    value = math.fsum(np.concatenate([part.ravel() for part in parts]))
    return Certificate(
        "-log p(w)",
        -value,
        _GIBBS,
        (
            valid,
            by_construction("q is a product of Dirichlet distributions and of the best distribution of each component"),
            assume(f"log-gamma and digamma are computed to {_UNITS:g} units in the last place"),
        ),
        slack=_slack(model, xi, rho),
        recipe=recipe_of(certify_mean_field),
        details={"components": float(k), "tokens": float(corpus.n_tokens)},
    )


def _slack(model: AdmixtureModel, xi: np.ndarray, rho: np.ndarray) -> float:
    """What rounding may add: every term of the bound is made of log-gammas, and of digammas times parameters, whose
    sizes are added up here; a locus is summed first.
    """
    sizes, largest = [], 0.0
    for given, total, prior in (
        (xi, model._by_locus(xi), model.allele_prior),
        (rho, rho.sum(axis=1, keepdims=True), model.membership_prior),
    ):
        width = given.shape[-1]
        for each, parameters in ((given, given + prior), (total, total + width * prior)):
            slope = np.abs(digamma(each)) + 1.0
            sizes.append(np.abs(gammaln(each)) + slope * parameters)
            largest = max(largest, float(slope.max()))
        sizes.append(np.full(given.shape, abs(gammaln(prior)) + abs(gammaln(width * prior))))
    tokens = model.corpus.n_tokens * (4.0 * largest + model.n_components)
    return float(rounding(*sizes, tokens, terms=_UNITS + max(xi.shape[-1], rho.shape[-1])))
