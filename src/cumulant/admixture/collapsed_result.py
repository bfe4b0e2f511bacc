"""What collapsed Gibbs sampling comes to: means within each chain, diagnostics, a file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cumulant import checks, files
from cumulant.admixture.collapsed_posterior import CollapsedPosterior
from cumulant.admixture.collapsed_sampler import CollapsedChains
from cumulant.admixture.data import Corpus, Counts
from cumulant.errors import FileFormatError
from cumulant.sampling import Draws

_KIND = "collapsed Gibbs sampling"


class Sums(NamedTuple):
    """Sums over the draws of each chain, whose number is the first axis.

    ``n_dk`` and its square (chains, documents, K); ``m_kj / (sum eta + t_k)`` (chains, words, K) and
    ``1 / (sum eta + t_k)`` (chains, loci, K).
    """

    members: np.ndarray
    squares: np.ndarray
    frequencies: np.ndarray
    inverse: np.ndarray

    @classmethod
    def zeros(cls, posterior: CollapsedPosterior, chains: int) -> Sums:
        """Of no draws."""
        corpus, k = posterior.corpus, posterior.n_components
        whole, real = np.int64, np.float64
        shapes = (
            (corpus.n_documents, whole),
            (corpus.n_documents, whole),
            (corpus.n_words, real),
            (corpus.n_loci, real),
        )
        return cls(*(np.zeros((chains, size, k), kind) for size, kind in shapes))


@dataclasses.dataclass(frozen=True, eq=False)
class CollapsedResult:
    """Chains of collapsed Gibbs sampling.

    The components of one chain are not those of another: chains number them as they like, and may be at different
    modes. Means are therefore of a single chain, by default the one with the largest mean of ``log p(z, w)``, and never
    of several.

    Attributes
    ----------
    posterior : CollapsedPosterior
    log_joint : array (chains, draws)
        ``log p(z, w)`` at every draw.
    status : str
        `"max_steps"` if all sweeps were made, `"interrupted"`, `"time_limit"`.
    assignments : array (chains, draws, tokens), optional
        The component of every token at every draw, if they were kept.
    state : CollapsedChains
        Where the chains are: `state.x` (chains, tokens) and `state.sweeps`.
    """

    posterior: CollapsedPosterior
    state: CollapsedChains
    burn_in: int
    thin: int
    status: str
    log_joint: np.ndarray
    sums: Sums
    assignments: np.ndarray | None = None

    def __repr__(self):
        chains, draws = self.log_joint.shape
        return (
            f"CollapsedResult({self.posterior.n_components} components, {chains} chains of {draws} draws, "
            f"{self.state.sweeps} sweeps, {self.status!r})"
        )

    @property
    def draws(self) -> Draws:
        """``log p(z, w)`` as draws: `r_hat`, `effective_sample_size`, `to_arviz`."""
        settings = {"seed": self.state.seed, "burn_in": self.burn_in, "thin": self.thin}
        return Draws(self.log_joint[:, :, None], "collapsed_gibbs", settings, variables={"log_joint": ()})

    @property
    def r_hat(self) -> float:
        """Split R-hat of ``log p(z, w)``: above about 1.01 the chains are at different modes, or still on their way."""
        return float(self.draws.r_hat("log_joint"))

    @property
    def effective_sample_size(self) -> float:
        """Of ``log p(z, w)``, over all chains."""
        return float(self.draws.effective_sample_size("log_joint"))

    @property
    def best_chain(self) -> int:
        """The chain with the largest mean of ``log p(z, w)``."""
        return int(self.log_joint.mean(axis=1).argmax())

    def memberships(self, chain: int | None = None) -> np.ndarray:
        """``E[tau_dk | w]`` (documents, K): the mean of ``(nu_k + n_dk) / (sum nu + N_d)`` over a chain."""
        chain, draws = self._chain(chain)
        prior, total = self._concentrations()
        return (prior + self.sums.members[chain] / draws) / total

    def memberships_sd(self, chain: int | None = None) -> np.ndarray:
        """Standard deviations of the memberships given the words (documents, K).

        ``tau_d`` given ``z`` is Dirichlet: its variance on average, plus the variance of its mean over the draws.
        """
        chain, draws = self._chain(chain)
        prior, total = self._concentrations()
        first, second = self.sums.members[chain] / draws, self.sums.squares[chain] / draws
        mean, square = (prior + first) / total, (prior**2 + 2 * prior * first + second) / total**2
        within = (mean - square) / (total + 1.0)
        return np.sqrt(np.maximum(within + square - mean**2, 0.0))

    def frequencies(self, chain: int | None = None) -> np.ndarray:
        """``E[beta_kj | w]`` (K, words): the mean of ``(eta_j + m_kj) / (sum eta + t_k)`` over the draws of a chain.

        The words of each locus sum to one.
        """
        chain, draws = self._chain(chain)
        prior = self.posterior.word_prior[:, None] * self.sums.inverse[chain][self.posterior.corpus.locus]
        return ((prior + self.sums.frequencies[chain]) / draws).T

    def counts(self, chain: int, draw: int) -> Counts:
        """The counts of one draw, where assignments were kept."""
        if self.assignments is None:
            raise ValueError("the assignments of single draws were not kept: ask for them by keep=True")
        return Counts.of(self.posterior.corpus, self.posterior.n_components, self.assignments[chain, draw])

    def _concentrations(self) -> tuple[np.ndarray, np.ndarray]:
        prior = self.posterior.document_prior
        return prior, (prior.sum() + self.posterior.corpus.lengths)[:, None]

    def _chain(self, chain: int | None) -> tuple[int, int]:
        chains, draws = self.log_joint.shape
        if draws == 0:
            raise ValueError(f"there are no draws: the run ended after {self.state.sweeps} of {self.burn_in} sweeps")
        if chain is None:
            return self.best_chain, draws
        if not isinstance(chain, int | np.integer) or not -chains <= chain < chains:
            raise ValueError(f"chain must be a whole number below {chains}, the number of chains; got {chain!r:.60}")
        return int(chain), draws

    def save(self, path: str | os.PathLike) -> Path:
        """Write everything to a file, from which the run can be resumed."""
        posterior, corpus = self.posterior, self.posterior.corpus
        arrays: dict[str, Any] = {
            "document": corpus.document, "word": corpus.word, "locus_starts": corpus.locus_starts,
            "document_prior": posterior.document_prior, "word_prior": posterior.word_prior,
            "z": self.state.x, "log_joint": self.log_joint, **self.sums._asdict(),
        }  # fmt: skip
        if self.assignments is not None:
            arrays["assignments"] = self.assignments
        settings = {
            "n_components": posterior.n_components, "n_documents": corpus.n_documents, "sweeps": self.state.sweeps,
            "seed": self.state.seed, "burn_in": self.burn_in, "thin": self.thin, "status": self.status,
            "names": [corpus.words, corpus.documents, corpus.loci],
        }  # fmt: skip
        return files.save(path, _KIND, arrays, settings)

    @classmethod
    def load(cls, path: str | os.PathLike) -> CollapsedResult:
        """Read a file that `save` wrote."""
        saved = files.load(path, _KIND)
        try:
            return cls._from(saved.arrays, saved.settings)
        except (KeyError, TypeError, ValueError) as problem:
            raise FileFormatError(
                f"{path} does not hold collapsed Gibbs sampling of this version: {problem}"
            ) from problem

    @classmethod
    def _from(cls, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> CollapsedResult:
        names = (tuple(each) if each is not None else None for each in settings["names"])
        corpus = Corpus(
            arrays["document"], arrays["word"], settings["n_documents"], arrays["locus_starts"], *names
        )  # fmt: skip
        return cls(
            CollapsedPosterior(corpus, settings["n_components"], arrays["document_prior"], arrays["word_prior"]),
            CollapsedChains(arrays["z"], settings["sweeps"], settings["seed"]),
            settings["burn_in"],
            settings["thin"],
            settings["status"],
            arrays["log_joint"],
            Sums(*(arrays[name] for name in Sums._fields)),
            arrays.get("assignments"),
        )

    def resume(
        self, n_sweeps: int, *, progress: Any = None, time_limit: float | None = None, n_jobs: int | None = None
    ) -> CollapsedResult:
        """`n_sweeps` more, a burn-in that was cut short among them: bit for bit what a longer run comes to."""
        from cumulant.admixture.collapsed import run_chains

        return run_chains(
            self, self.state.sweeps + checks.whole("n_sweeps", n_sweeps), progress, time_limit, n_jobs
        )  # fmt: skip
