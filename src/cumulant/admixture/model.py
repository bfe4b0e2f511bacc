"""The posterior of an admixture, and the exponential family that leads to it from distributions that can be drawn from.

Tokens ``i`` of document ``d`` have a word ``w_di`` and a component ``z_di``. Component ``k`` has frequencies ``beta_kl
~ Dirichlet(eta*)`` of the words of each locus ``l``, document ``d`` has memberships ``tau_d ~ Dirichlet(nu*)``, and
``z_di ~ tau_d``, ``w_di ~ beta_{z_di}``. With ``m_kj`` the tokens of word ``j`` in component ``k``, ``n_dk`` those of
document ``d``, and ``c_j = sum_k m_kj``, the family is

    log p(x; theta) = sum (nu* + n_dk - 1) log tau_dk + sum (eta_kj - 1) log beta_kj
                      + phi sum m_kj log beta_kj + gamma sum (c_j - m_kj) log beta_kj - c(theta),

with ``theta = (eta, phi, gamma)``, none negative. The posterior is ``(eta*, 1, 0)``. Wherever ``phi = gamma`` the
words say nothing about the components, ``beta_k ~ Dirichlet(eta_k + phi c)`` and ``z_di ~ tau_d``: such members are
drawn exactly.

Reference: Carbonetto (2009), "New probabilistic inference algorithms that harness the strengths of variational and
Monte Carlo methods", section 3.5; Blei, Ng and Jordan (2003); Pritchard, Stephens and Donnelly (2000).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from cumulant import checks
from cumulant.admixture.data import Corpus, Counts, require_prior, start_components
from cumulant.admixture.two_stage_kernels import assign_population, draw_population, sweep_population
from cumulant.threads import cores, in_parts, side_by_side


class Parameters(NamedTuple):
    """A member of the family: ``eta (K, W)``, or one number for all of it, ``phi`` and ``gamma``."""

    eta: Any
    phi: float
    gamma: float


class Logs(NamedTuple):
    """Logarithms of frequencies ``(..., K, W)`` and of memberships ``(..., D, K)``: parameters near zero make numbers
    that only their logarithms can hold.
    """

    frequencies: np.ndarray
    memberships: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class AdmixtureModel:
    """Memberships and frequencies given the words of a corpus.

    Parameters
    ----------
    corpus : Corpus
    n_components : int
    membership_prior, allele_prior : float
        ``nu*`` and ``eta*``, the parameters of the symmetric Dirichlet distributions of memberships and frequencies.

    Examples
    --------
    >>> corpus = Corpus.from_counts([[2, 1, 0], [0, 1, 2]])
    >>> model = AdmixtureModel(corpus, 2, membership_prior=0.7, allele_prior=0.5)
    >>> bool(model.log_joint([0, 0, 0, 1, 1, 1]) > model.log_joint([0, 1, 0, 1, 0, 1]))
    True
    """

    corpus: Corpus
    n_components: int
    membership_prior: float = 0.1
    allele_prior: float = 0.1

    def __post_init__(self):
        checks.instance("corpus", self.corpus, Corpus, "a Corpus")
        checks.whole("n_components", self.n_components)
        for name in ("membership_prior", "allele_prior"):
            require_prior(name, checks.number(name, getattr(self, name)))
        if self.corpus.n_tokens == 0:
            raise ValueError("corpus has no tokens: there is nothing to learn from")

    # The family -------------------------------------------------------------------------------------------------------

    @property
    def posterior(self) -> Parameters:
        """The member that is the posterior: ``(eta*, 1, 0)``."""
        return Parameters(self.allele_prior, 1.0, 0.0)

    @functools.cached_property
    def totals(self) -> np.ndarray:
        """``c_j``, how often each word occurs."""
        return np.bincount(self.corpus.word, minlength=self.corpus.n_words)

    def shapes_of(self, words: np.ndarray, theta: Parameters) -> np.ndarray:
        """``A = eta + phi m + gamma (c - m)``: given the components of the tokens, ``beta_kl ~ Dirichlet(A_kl)``."""
        return theta.eta + (theta.phi - theta.gamma) * words + theta.gamma * self.totals

    def log_marginal(self, words: np.ndarray, theta: Parameters) -> np.ndarray:
        """``sum_kl log B(A_kl)`` for counts ``(..., K, W)``: with the part of the documents, the logarithm of the
        unnormalised probability of the components of the tokens.
        """
        if np.ndim(theta.eta) == 0 and theta.gamma == 0:  # few different counts: their log-gammas are looked up
            logs = gammaln(theta.eta + theta.phi * np.arange(int(words.max(initial=0)) + 1))[words]
            sizes = np.diff(self.corpus.locus_starts)
            totals = theta.eta * sizes + theta.phi * self._by_locus(words)
            return logs.sum(axis=(-1, -2)) - gammaln(totals).sum(axis=(-1, -2))
        totals = self._by_locus(self.shapes_of(words, theta))
        return self._of_shapes(gammaln, words, theta).sum(axis=(-1, -2)) - gammaln(totals).sum(axis=(-1, -2))

    @property
    def magnitude(self) -> float:
        """At least the sum of the sizes of the log-gammas in `log_marginal` at the posterior, whatever the counts. They
        cancel where the prior is large.
        """
        sizes = np.diff(self.corpus.locus_starts)
        ends = [(self.allele_prior, self.totals), (self.allele_prior * sizes, self._by_locus(self.totals))]
        each = [np.maximum(np.abs(gammaln(prior)), np.abs(gammaln(prior + most))).sum() for prior, most in ends]
        return float(self.n_components * sum(each))

    def log_document_part(self, documents: np.ndarray) -> np.ndarray:
        """``sum_d log B(nu* + n_d)`` for counts ``(..., D, K)``: the same for all members of the family."""
        total = self.membership_prior * self.n_components + documents.sum(axis=-1)
        return (gammaln(self.membership_prior + documents).sum(axis=-1) - gammaln(total)).sum(axis=-1)

    def log_normaliser(self, theta: Parameters) -> float:
        """``c(theta)`` where it is known: ``sum_k log B(eta_k + phi c) + sum_d log B(nu*)`` for ``phi = gamma``."""
        if theta.phi != theta.gamma:
            raise ValueError(f"c(theta) is known where phi = gamma; got phi = {theta.phi}, gamma = {theta.gamma}")
        none = np.zeros((self.n_components, self.corpus.n_words), np.int64)
        empty = np.zeros((self.corpus.n_documents, self.n_components))
        return float(self.log_marginal(none, theta) + self.log_document_part(empty))

    @property
    def log_constant(self) -> float:
        """``sum_k log B(eta*) + sum_d log B(nu*)``: ``log p(w) = c(theta*) - log_constant``."""
        return self.log_normaliser(Parameters(self.allele_prior, 0.0, 0.0))

    def log_joint(self, z: Any) -> np.ndarray:
        """``log p(z, w)`` for components ``(..., tokens)`` of the tokens, with the rest integrated out."""
        counts = self.counts(z)
        return self.log_marginal(counts.words, self.posterior) + self.log_document_part(counts.documents) - (
            self.log_constant
        )  # fmt: skip

    def moments(self, words: np.ndarray, theta: Parameters) -> Parameters:
        """``E[t | z]``: of ``log beta_kj``, of ``sum m_kj log beta_kj`` and of ``sum (c_j - m_kj) log beta_kj``."""
        totals = self._by_locus(self.shapes_of(words, theta))
        return self._statistics(words, self._of_shapes(digamma, words, theta) - self._spread(digamma(totals)))

    def covariance_product(self, words: np.ndarray, theta: Parameters, delta: Parameters) -> Parameters:
        """``Cov[t | z] delta`` by ``O(KW)`` operations for each row of counts."""
        totals = self._by_locus(self.shapes_of(words, theta))
        u = delta.eta + delta.phi * words + delta.gamma * (self.totals - words)
        spread = self._spread(_trigamma(totals) * self._by_locus(u))
        return self._statistics(words, self._of_shapes(_trigamma, words, theta) * u - spread)

    def _of_shapes(self, function: Callable[[np.ndarray], np.ndarray], words: np.ndarray, theta: Parameters) -> Any:
        """``function(shapes_of(words, theta))``. A count of word ``j`` is one of ``0, ..., c_j``: with many particles
        these values are computed once and looked up.
        """
        starts, column, count = self._possible_counts
        n_components, n_words = words.shape[-2:]
        if words.size <= 2 * n_components * count.size:
            return function(self.shapes_of(words, theta))
        eta = np.broadcast_to(np.float64(theta.eta), (n_components, n_words))[:, column]
        table = function(eta + (theta.phi - theta.gamma) * count + theta.gamma * self.totals[column])
        return table.ravel()[words + (count.size * np.arange(n_components)[:, None] + starts)]

    @functools.cached_property
    def _possible_counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the counts of each word begin in a table of all of them, and the word and the count of each entry."""
        sizes = self.totals + 1
        starts = np.cumsum(sizes) - sizes
        column = np.repeat(np.arange(sizes.size), sizes)
        return starts, column, np.arange(column.size) - starts[column]

    def _statistics(self, words: np.ndarray, logs: np.ndarray) -> Parameters:
        inside = (words * logs).sum(axis=(-1, -2))
        return Parameters(logs, inside, (self.totals * logs).sum(axis=(-1, -2)) - inside)

    def _by_locus(self, values: np.ndarray) -> np.ndarray:
        """Sums over the words of each locus."""
        return np.add.reduceat(values, self.corpus.locus_starts[:-1], axis=-1)

    def _spread(self, values: np.ndarray) -> np.ndarray:
        """A number of each locus at all its words."""
        return values[..., self.corpus.locus]

    # Draws ------------------------------------------------------------------------------------------------------------

    def counts(self, z: Any) -> Counts:
        """The counts of components ``(..., tokens)`` of the tokens."""
        return Counts.of(self.corpus, self.n_components, z)

    def draw_parameters(
        self, counts: Counts, theta: Parameters, seed: int, step: int, n_jobs: int | None = None
    ) -> Logs:
        """Frequencies and memberships of each particle given its counts ``(n, K, W), (n, D, K)``."""
        eta = np.ascontiguousarray(np.broadcast_to(np.float64(theta.eta), counts.words.shape[1:]))
        logs = Logs(np.empty(counts.words.shape), np.empty(counts.documents.shape))
        totals = self.totals.astype(np.float64)

        def work(first, last):
            draw_population(
                counts.words[first:last], counts.documents[first:last], self.corpus.locus_starts, totals, eta,
                float(theta.phi), float(theta.gamma), float(self.membership_prior), seed, first, step,
                logs.frequencies[first:last], logs.memberships[first:last],
            )  # fmt: skip

        in_parts(work, len(counts.words), n_jobs)
        return logs

    def draw_counts(self, logs: Logs, theta: Parameters, seed: int, step: int, n_jobs: int | None = None) -> Counts:
        """Counts of each particle given its frequencies and memberships: ``P(z_di = k)`` is proportional to
        ``tau_dk beta_kj^(phi - gamma)``.
        """
        counts = Counts.zeros(self.corpus, self.n_components, len(logs.frequencies))

        def work(first, last):
            assign_population(
                self.corpus.document, self.corpus.word, logs.frequencies[first:last], logs.memberships[first:last],
                float(theta.phi - theta.gamma), seed, first, step,
                counts.words[first:last], counts.documents[first:last],
            )  # fmt: skip

        in_parts(work, len(counts.words), n_jobs)
        return counts

    def sweep(
        self, counts: Counts, theta: Parameters, n_sweeps: int, seed: int, step: int, *, exchange: bool = False,
        n_jobs: int | None = None,
    ) -> tuple[Counts, Logs]:  # fmt: skip
        """Both blocks after sweeps: `draw_parameters` and `draw_counts` of steps `step`, `step` + 1, ...

        With `exchange` a sweep ends with proposals to exchange two components in all tokens of a document. Memberships
        hold the tokens of a document together, so that sweeps alone rarely move a whole document.
        """
        new = Counts(*(np.array(each) for each in counts))
        logs = Logs(np.empty(new.words.shape), np.empty(new.documents.shape))
        eta = np.ascontiguousarray(np.broadcast_to(np.float64(theta.eta), counts.words.shape[1:]))
        rest = (self.totals.astype(np.float64), eta, float(theta.phi), float(theta.gamma), float(self.membership_prior))
        edges = np.linspace(0, len(new.words), min(cores(n_jobs), len(new.words)) + 1).astype(int)

        def work(part):
            some = slice(edges[part], edges[part + 1])
            sweep_population(
                self.corpus.document, self.corpus.word, self.corpus.locus_starts, *rest, new.words[some],
                new.documents[some], logs.frequencies[some], logs.memberships[some], n_sweeps, exchange, seed,
                some.start, step,
            )  # fmt: skip

        if edges.size == 2:
            work(0)
        else:  # draws are functions of (seed, particle, step): they do not depend on the parts
            side_by_side(work, edges.size - 1, n_jobs)
        return new, logs

    def draw_exactly(self, n: int, theta: Parameters, seed: int, n_jobs: int | None = None) -> tuple[Counts, Logs]:
        """Joint draws of a member with ``phi = gamma``."""
        if theta.phi != theta.gamma:
            raise ValueError(f"a member is drawn exactly where phi = gamma; got {theta.phi} and {theta.gamma}")
        logs = self.draw_parameters(Counts.zeros(self.corpus, self.n_components, n), theta, seed, 0, n_jobs)
        return self.draw_counts(logs, theta, seed, 0, n_jobs), logs

    # As a target of Markov chains -------------------------------------------------------------------------------------

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The variables of a draw."""
        k = self.n_components
        return {"memberships": (self.corpus.n_documents, k), "frequencies": (k, self.corpus.n_words)}

    def starts(self, chains: int, start: Any, seed: int) -> np.ndarray:
        """The component of every token at the start of each chain: by default drawn uniformly."""
        return start_components(self.corpus, self.n_components, chains, start, seed)


def _trigamma(x: np.ndarray) -> np.ndarray:
    return polygamma(1, x)
