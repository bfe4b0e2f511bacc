"""Learning by conditional likelihoods as a problem: of each variable, or of each joined pair, given the rest."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cumulant.graphical.learning.conditional_likelihood import block_likelihood
from cumulant.graphical.learning.problem import LearningProblem
from cumulant.graphical.learning.pseudo_likelihood import Objective, composite_likelihood, pseudo_likelihood
from cumulant.graphical.pairwise import Ising

__all__ = ["ConditionalProblem"]


@dataclass(frozen=True)
class ConditionalProblem(LearningProblem):
    """Minimise ``-mean over data of sum_b log p(x_b | rest) + l2/2 |theta|^2`` over blocks ``b``.

    `blocks` are ``"variables"`` (the pseudo-likelihood, Besag 1975) or ``"pairs"`` that share a table (a composite
    likelihood, Lindsay 1988). A certificate of this objective says nothing about the likelihood.
    """

    blocks: Literal["variables", "pairs"] = "variables"

    @property
    def objective(self) -> str:
        """What the objective is called in certificates."""
        return "-pseudo-likelihood" if self.blocks == "variables" else "-composite likelihood"

    @property
    def smoothness(self) -> None:
        """Unknown: that of the likelihood does not hold here."""
        return None

    @cached_property
    def _pairs(self) -> np.ndarray:
        return self.edges if isinstance(self.model, Ising) else self.model.structure.edges

    @cached_property
    def _unpenalised(self) -> Objective:
        """Spins have formulas of their own, all else goes by tables."""
        assert self.data is not None
        if isinstance(self.model, Ising):
            make = pseudo_likelihood if self.blocks == "variables" else composite_likelihood
            return make(self.data, self.edges)
        singles = [[v] for v in range(self.n)]
        blocks = singles if self.blocks == "variables" else self._pairs.tolist()
        return block_likelihood(self.model.family, self.data, blocks)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and its gradient."""
        value, gradient = self._unpenalised(self.full(theta))
        return value + 0.5 * self.l2 * float(theta @ theta), gradient[self.free] + self.l2 * theta

    def gradient_rounding(self, theta: np.ndarray) -> float:
        """How far rounding can take the computed gradient from the true one: as of the likelihood, for each of the
        blocks in which a parameter occurs, plus the rounding of the mean over the data.
        """
        assert self.data is not None
        degree = np.bincount(self._pairs.ravel(), minlength=1).max() if len(self._pairs) else 0
        blocks = 2.0 if self.blocks == "variables" else 2.0 * float(degree + 1)
        once = super().gradient_rounding(theta)
        return blocks * (once + 4.0 * 2.0**-53 * len(self.data) * float(np.sqrt(self.free.size)) * self.R)
