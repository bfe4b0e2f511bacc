"""What draws of memberships and frequencies come to: one mode with its uncertainty, and summaries without labels."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.optimize import linear_sum_assignment

from cumulant.admixture.likelihood_kernels import log_likelihoods
from cumulant.admixture.model import AdmixtureModel, Counts
from cumulant.admixture.summaries import mean_distance, mean_level

_SAME_MODE = 0.25  # the mean total variation between memberships of two draws of one mode
_CANDIDATES = 64  # draws of which the likelihood is computed, to find the mode


@dataclasses.dataclass(frozen=True, eq=False)
class MembershipDraws:
    """Draws of memberships ``(S, D, K)`` and frequencies ``(S, K, W)`` with weights ``(S,)`` that sum to one."""

    memberships: np.ndarray
    frequencies: np.ndarray
    weights: np.ndarray

    @classmethod
    def of_counts(
        cls, model: AdmixtureModel, counts: Counts, weights: np.ndarray, seed: int, n_jobs: int | None
    ) -> MembershipDraws:
        """Draws given counts, each of its own."""
        logs = model.draw_parameters(counts, model.posterior, seed, 0, n_jobs)
        return cls(np.exp(logs.memberships), np.exp(logs.frequencies), weights)

    @property
    def distance(self) -> np.ndarray:
        """The mean admixture distance of each pair of documents."""
        return mean_distance(self.memberships, self.weights)

    @property
    def level(self) -> np.ndarray:
        """The mean admixture level of each document; 0 where there is one component."""
        if self.memberships.shape[2] == 1:
            return np.zeros(self.memberships.shape[1])
        return mean_level(self.memberships, self.weights)

    def mode(self, model: AdmixtureModel) -> Mode:
        """The draws around the one with the largest likelihood, with the same names of components.

        Names are matched by the memberships (the assignment problem). Draws that stay more than 0.25 away on average
        over the documents, in total variation, belong to other modes and are left out.
        """
        tried = np.unique(np.linspace(0, len(self.weights) - 1, _CANDIDATES).astype(int))
        tried = tried[self.weights[tried] > 0] if (self.weights[tried] > 0).any() else np.array([self.weights.argmax()])
        corpus = model.corpus
        found = log_likelihoods(corpus.document, corpus.word, self.memberships[tried], self.frequencies[tried])
        reference = self.memberships[tried[int(np.argmax(found))]]
        order = self._matched(reference)
        close = self._close(order, reference)
        shares = np.where(close, self.weights, 0.0)
        reference = np.tensordot(shares / shares.sum(), np.take_along_axis(self.memberships, order[:, None], 2), axes=1)
        order = self._matched(reference)
        shares = np.where(self._close(order, reference), self.weights, 0.0)
        share = float(shares.sum())
        if share == 0:  # no draw is near the mean of the first mode: keep that one
            shares, share = np.where(close, self.weights, 0.0), float(self.weights[close].sum())
        tau = np.take_along_axis(self.memberships, order[:, None], 2)
        beta = np.take_along_axis(self.frequencies, order[:, :, None], 1)
        w = shares / share
        mean = np.tensordot(w, tau, axes=1)
        deviation = np.sqrt(np.tensordot(w, (tau - mean) ** 2, axes=1))
        by_size = np.argsort(-mean.sum(axis=0), kind="stable")
        return Mode(mean[:, by_size], deviation[:, by_size], np.tensordot(w, beta, axes=1)[by_size], share)

    def _matched(self, reference: np.ndarray) -> np.ndarray:
        """For each draw, which of its components is each one of the reference: (S, K)."""
        overlap = np.einsum("dk,sdl->skl", reference, self.memberships)
        return np.array([linear_sum_assignment(-each)[1] for each in overlap])

    def _close(self, order: np.ndarray, reference: np.ndarray) -> np.ndarray:
        tau = np.take_along_axis(self.memberships, order[:, None], 2)
        return 0.5 * np.abs(tau - reference).sum(axis=2).mean(axis=1) < _SAME_MODE


@dataclasses.dataclass(frozen=True, eq=False)
class Mode:
    """Means and standard deviations of memberships ``(D, K)``, mean frequencies ``(K, W)``, and the share of all draws
    that are of this mode. Components are ordered by their share of all documents.
    """

    memberships: np.ndarray
    memberships_sd: np.ndarray
    frequencies: np.ndarray
    share: float
