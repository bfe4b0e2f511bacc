"""The line search of one update of dual ascent as functions of the step, in NumPy: for looking, not for training."""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from cumulant import checks
from cumulant.sequences.regularised import TINY, Regularised, dot

__all__ = ["BlockSearch", "block_search"]


@dataclass(frozen=True)
class BlockSearch:
    """``f(gamma) = H(mu_i + gamma (nu_i - mu_i)) - (l2 n / 2) |w + gamma v|^2``, less its last term at 0.

    ``f(gamma) - f(0)`` is ``n`` times what the dual gains by the step ``gamma`` of sequence ``i`` (Le Priol 2021,
    equation 3.22). The slope is ``KL(mu || nu) + KL(nu || mu)`` at 0 and ``-l2 n |v|^2`` at 1: the root is between.
    """

    mu: np.ndarray  # of cliques and then of separators
    nu: np.ndarray
    sign: np.ndarray  # 1 of cliques, -1 of separators
    gain: float  # -l2 n <w, v>
    curvature_of_weights: float  # l2 n |v|^2

    def _at(self, gamma: float) -> tuple[np.ndarray, np.ndarray]:
        step = self.nu - self.mu
        return np.maximum(self.mu + gamma * step, TINY), step  # a marginal of zero: its change is as small

    def value(self, gamma: float) -> float:
        """``f``."""
        m, _ = self._at(gamma)
        return float(self.sign @ entr(m) + gamma * (self.gain - 0.5 * gamma * self.curvature_of_weights))

    def slope(self, gamma: float) -> float:
        """``f'`` from logarithms of marginals."""
        m, step = self._at(gamma)
        return float(self.gain - self.sign @ (step * np.log(m)) - gamma * self.curvature_of_weights)

    def slope_by_divergences(self, gamma: float) -> float:
        """``f' = KL(mu || nu) + KL(nu || m) - KL(mu || m) - gamma l2 n |v|^2``: nothing large cancels."""
        m, step = self._at(gamma)
        return float(
            self.sign @ (step * (np.log(np.maximum(self.nu, TINY)) - np.log(m))) - gamma * self.curvature_of_weights
        )

    def curvature(self, gamma: float) -> float:
        """``f''``."""
        m, step = self._at(gamma)
        return float(-self.sign @ (step**2 / m) - self.curvature_of_weights)


def block_search(problem: Regularised, mu: Any, i: int) -> BlockSearch:
    """The line search of sequence or graph `i` at the marginals `mu`, which must be positive, and their weights.

    Examples
    --------
    >>> from cumulant.sequences import ChainProblem, SequenceData
    >>> problem = ChainProblem(SequenceData([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 2, 3], [0, 1, 0]), 2)
    >>> search = block_search(problem, problem.start(0.1), 0)
    >>> search.slope(0.0) > 0 > search.slope(1.0)
    True
    """
    checks.instance("problem", problem, Regularised, "a ChainProblem or TreeProblem")
    if problem.l1:
        raise ValueError("block_search needs l1 = 0: with an l1 penalty the dual is not quadratic in the weights")
    i = operator.index(i)
    if not 0 <= i < problem.n_terms:
        raise ValueError(f"i must be the number of a sequence or graph, from 0 to {problem.n_terms - 1}; got {i}")
    mu = problem.checked_marginals(mu, name="mu")
    w = problem.weights_of(problem.residual(mu))
    nu = problem.conjugate_marginals(w)
    cliques, separators = problem._block(mu, i)
    ends, below = problem._block(nu, i)
    moved = type(mu)(*(np.array(part, dtype=np.float64) for part in mu))
    problem._put(moved, nu, i)
    v = (problem.residual(moved) - problem.residual(mu)) / problem.l2
    sign = np.concatenate([np.ones(len(cliques)), -np.ones(len(separators))])
    scale = problem.scale
    return BlockSearch(
        np.concatenate([cliques, separators]).astype(np.float64),
        np.concatenate([ends, below]).astype(np.float64),
        sign,
        -scale * dot(w, v),
        scale * dot(v, v),
    )
