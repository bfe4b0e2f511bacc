"""Two small problems for dual coordinate ascent, where all blocks can be tried: classes, and squares."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, logsumexp, softmax

from cumulant.optim import rates


@dataclass(frozen=True, eq=False)
class Classes:
    """``l2/2 |w|^2 - (1/n) sum_i log p(y_i | x_i; w)``, ``p(k | x; w) ~ exp(w_k . x)``; blocks are distributions."""

    x: np.ndarray
    labels: np.ndarray
    n_labels: int
    l2: float
    smoothness = 1.0

    @classmethod
    def random(cls, rng: np.random.Generator, n: int = 12, n_labels: int = 4, l2: float | None = None) -> "Classes":
        """`n` points of uneven lengths in three dimensions."""
        x = rng.normal(size=(n, 3)) * rng.choice([0.5, 1.0, 3.0], size=(n, 1))
        return cls(x, rng.integers(n_labels, size=n), n_labels, 1.0 / n if l2 is None else l2)

    @property
    def n(self) -> int:
        return len(self.x)

    @property
    def squared_radii(self) -> np.ndarray:
        """Of the features ``e_y x^T``."""
        return 2.0 * np.sum(self.x**2, axis=1)

    @property
    def conditions(self) -> np.ndarray:
        return rates.block_conditions(self.squared_radii, self.l2, self.smoothness)

    def weights(self, alpha: np.ndarray) -> np.ndarray:
        return (np.eye(self.n_labels)[self.labels] - alpha).T @ self.x / (self.l2 * self.n)

    def scores(self, w: np.ndarray) -> np.ndarray:
        """``s_i = -A_i^T w``."""
        scores = self.x @ w.T
        return scores - scores[np.arange(self.n), self.labels][:, None]

    def primal(self, w: np.ndarray) -> float:
        return float(self.l2 / 2 * np.sum(w**2) + np.mean(np.asarray(logsumexp(self.scores(w), axis=1))))

    def dual(self, alpha: np.ndarray) -> float:
        return float(-self.l2 / 2 * np.sum(self.weights(alpha) ** 2) + entr(alpha).sum() / self.n)

    def image(self, w: np.ndarray) -> np.ndarray:
        return softmax(self.scores(w), axis=1)

    def conjugate(self, alpha: np.ndarray) -> np.ndarray:
        """``phi_i*(alpha_i)``."""
        return -entr(alpha).sum(axis=1)

    def gaps(self, alpha: np.ndarray) -> np.ndarray:
        s = self.scores(self.weights(alpha))
        return np.maximum(np.asarray(logsumexp(s, axis=1)) + self.conjugate(alpha) - np.sum(s * alpha, axis=1), 0.0)

    def residuals(self, alpha: np.ndarray) -> np.ndarray:
        """``d_i``, not squared."""
        return np.abs(self.image(self.weights(alpha)) - alpha).sum(axis=1)

    def state(self, rng: np.random.Generator) -> np.ndarray:
        concentration = rng.choice([0.3, 1.0, 5.0])
        return rng.dirichlet(np.full(self.n_labels, concentration), size=self.n) * 0.999 + 0.001 / self.n_labels


@dataclass(frozen=True, eq=False)
class Squares:
    """``l2/2 |w|^2 + (1/n) sum_i (y_i - a_i . w)^2``: losses ``z^2``, which are 2-smooth; blocks are numbers."""

    a: np.ndarray
    y: np.ndarray
    l2: float
    smoothness = 2.0

    @classmethod
    def random(cls, rng: np.random.Generator, n: int = 12) -> "Squares":
        """`n` points of uneven lengths in three dimensions."""
        return cls(rng.normal(size=(n, 3)) * rng.choice([0.3, 1.0, 2.0], size=(n, 1)), rng.normal(size=n), 1.0 / n)

    @property
    def n(self) -> int:
        return len(self.a)

    @property
    def conditions(self) -> np.ndarray:
        return rates.block_conditions(np.sum(self.a**2, axis=1), self.l2, self.smoothness)

    def weights(self, alpha: np.ndarray) -> np.ndarray:
        return alpha @ self.a / (self.l2 * self.n)

    def dual(self, alpha: np.ndarray) -> float:
        w = self.weights(alpha)
        return float(-self.l2 / 2 * w @ w - np.mean(alpha**2 / 4 - alpha * self.y))

    def image(self, w: np.ndarray) -> np.ndarray:
        return 2.0 * (self.y - self.a @ w)

    def residuals(self, alpha: np.ndarray) -> np.ndarray:
        return np.abs(self.image(self.weights(alpha)) - alpha)

    def gaps(self, alpha: np.ndarray) -> np.ndarray:
        return self.residuals(alpha) ** 2 / 4.0

    def best(self) -> float:
        """``D*``, at the solution of the normal equations."""
        matrix = self.l2 * np.eye(self.a.shape[1]) + 2.0 * self.a.T @ self.a / self.n
        w = np.linalg.solve(matrix, 2.0 * self.a.T @ self.y / self.n)
        return self.dual(self.image(w))

    def state(self, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=self.n) * rng.choice([0.3, 1.0, 5.0])


def moved(problem: Any, alpha: np.ndarray, i: int, step: float) -> np.ndarray:
    """The blocks after block `i` went the share `step` of the way to its image."""
    alpha = alpha.copy()
    alpha[i] += step * (problem.image(problem.weights(alpha))[i] - alpha[i])
    return alpha


def expected_gain(problem: Any, alpha: np.ndarray, probabilities: np.ndarray, steps: np.ndarray) -> float:
    """``E D(alpha+) - D(alpha)``, by trying every block."""
    gains = [problem.dual(moved(problem, alpha, i, s)) for i, s in enumerate(steps)]
    return float(probabilities @ np.array(gains) - problem.dual(alpha))


def scheme(name: str, problem: Any, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Probabilities, step sizes, and what the theorem promises of one step over the mean gap."""
    c, n, g = problem.conditions, problem.n, problem.gaps(alpha)
    safe, chi = rates.safe_steps(c), rates.nonuniformity(g)
    if name == "uniform":
        return np.full(n, 1 / n), np.full(n, safe.uniform), safe.uniform / n
    if name == "importance":
        return c / c.sum(), 1 / c, safe.importance / n
    if name == "gap":
        return g / g.sum(), np.full(n, safe.uniform), safe.uniform * chi / n
    if name == "gap-importance":
        return g * c / (g @ c), 1 / c, safe.lipschitz_gap * np.sqrt(chi) / n
    d = problem.residuals(alpha)
    p, theta = d * np.sqrt(c) / (d @ np.sqrt(c)), rates.adaptive_rate(d, c)
    return p, theta / p, theta
