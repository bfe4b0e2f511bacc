"""What draws of memberships and frequencies come to: one mode with its uncertainty, and summaries without labels."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.optimize import linear_sum_assignment

from cumulant.admixture.likelihood_kernels import log_likelihoods
from cumulant.admixture.model import AdmixtureModel, Counts
from cumulant.admixture.summaries import mean_distance, mean_level

_SAME_MODE = 0.15  # of the mean total variation that the noise within a mode leaves
_CORE, _AT_LEAST = 0.05, 10  # the share of the draws, and the number, whose mean is the first guess of a mode
_ROUNDS = 2
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

        Names are matched by the memberships (the assignment problem). Draws of one mode differ too: few tokens leave
        memberships uncertain. With ``d_s`` the total variation between the memberships of draw ``s`` and the mean of
        the nearest draws, averaged over the ``D`` documents, and ``v`` its median over these, a draw belongs to the
        mode where ``d_s <= v + 0.15 (1 - v) + 0.5 / sqrt(D)``. The last term bounds the deviation of a mean of ``D``
        numbers between 0 and 1.
        """
        tried = np.unique(np.linspace(0, len(self.weights) - 1, _CANDIDATES).astype(int))
        tried = tried[self.weights[tried] > 0] if (self.weights[tried] > 0).any() else np.array([self.weights.argmax()])
        corpus = model.corpus
        found = log_likelihoods(corpus.document, corpus.word, self.memberships[tried], self.frequencies[tried])
        order, away = self._around(self.memberships[tried[int(np.argmax(found))]])
        near = np.argsort(away, kind="stable")  # the nearest draws: their mean has less noise than a single one
        enough = int(np.searchsorted(np.cumsum(self.weights[near]), _CORE)) + 1
        shares = np.zeros_like(self.weights)
        some = near[: max(enough, _AT_LEAST)]
        shares[some] = self.weights[some]
        order, away = self._around(np.tensordot(shares / shares.sum(), self._named(order), axes=1))
        typical = _median(away, shares)
        limit = typical + _SAME_MODE * (1.0 - typical) + 0.5 / np.sqrt(corpus.n_documents)
        for _ in range(_ROUNDS):
            inside = np.where(away <= limit, self.weights, 0.0)
            shares = inside if inside.any() else shares
            order, away = self._around(np.tensordot(shares / shares.sum(), self._named(order), axes=1))
        share = float(shares.sum())
        tau, beta = self._named(order), np.take_along_axis(self.frequencies, order[:, :, None], 1)
        w = shares / share
        mean = np.tensordot(w, tau, axes=1)
        deviation = np.sqrt(np.tensordot(w, (tau - mean) ** 2, axes=1))
        by_size = np.argsort(-mean.sum(axis=0), kind="stable")
        return Mode(mean[:, by_size], deviation[:, by_size], np.tensordot(w, beta, axes=1)[by_size], min(share, 1.0))

    def _around(self, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each draw, which of its components is each one of the reference (S, K), and how far it is away (S,)."""
        overlap = np.einsum("dk,sdl->skl", reference, self.memberships)
        order = np.array([linear_sum_assignment(-each)[1] for each in overlap])
        return order, 0.5 * np.abs(self._named(order) - reference).sum(axis=2).mean(axis=1)

    def _named(self, order: np.ndarray) -> np.ndarray:
        return np.take_along_axis(self.memberships, order[:, None], 2)


def _median(values: np.ndarray, weights: np.ndarray) -> float:
    """The smallest value that has half of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(below, 0.5 * below[-1])]])


@dataclasses.dataclass(frozen=True, eq=False)
class Mode:
    """Means and standard deviations of memberships ``(D, K)``, mean frequencies ``(K, W)``, and the share of all draws
    that are of this mode. Components are ordered by their share of all documents.
    """

    memberships: np.ndarray
    memberships_sd: np.ndarray
    frequencies: np.ndarray
    share: float
