"""Stochastic dual coordinate ascent, slow and obvious: everything is recomputed from the dual variables at every step.

Two problems with the same methods: multiclass logistic regression, whose blocks are distributions over K labels, and
ridge regression, whose blocks are numbers and for which the ascent lemma is an equality.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import entr, logsumexp, rel_entr


def softmax(scores):
    """Of each row; scipy's looks for other kinds of arrays at every call, which is what a long run would then cost."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class MulticlassLogistic:
    """``l2/2 |w|^2 - 1/n sum_i log p(y_i | x_i; w)``, ``p(k | x; w)`` proportional to ``exp(w_k . x)``."""

    x: np.ndarray
    labels: np.ndarray
    n_labels: int
    l2: float
    loss_smoothness = 1.0

    @property
    def n(self):
        return len(self.x)

    @property
    def truth(self):
        return np.eye(self.n_labels)[self.labels]

    @property
    def squared_radii(self):
        return 2 * np.sum(self.x**2, axis=1)

    def weights(self, alpha):
        return (self.truth - alpha).T @ self.x / (self.l2 * self.n)

    def scores(self, w):
        scores = self.x @ w.T
        return scores - scores[np.arange(self.n), self.labels][:, None]

    def primal(self, w):
        return self.l2 / 2 * np.sum(w**2) + np.mean(logsumexp(self.scores(w), axis=1))

    def dual(self, alpha):
        return -self.l2 / 2 * np.sum(self.weights(alpha) ** 2) + entr(alpha).sum() / self.n

    def image(self, w):
        return softmax(self.scores(w))

    def gaps(self, alpha):
        return rel_entr(alpha, self.image(self.weights(alpha))).sum(axis=1)

    def residuals(self, alpha):
        return np.abs(self.image(self.weights(alpha)) - alpha).sum(axis=1)

    def random_state(self, rng):
        concentration = rng.choice([0.3, 1.0, 5.0])
        return rng.dirichlet(np.full(self.n_labels, concentration), size=self.n) * 0.999 + 0.001 / self.n_labels

    def optimum(self):
        """``(P*, w*)``, certified by the gradient: ``P(w) - P* <= |grad P|^2 / (2 l2)``."""

        def objective(flat):
            w = flat.reshape(self.n_labels, -1)
            return self.primal(w), (self.l2 * (w - self.weights(self.image(w)))).ravel()

        found = minimize(
            objective,
            np.zeros(self.n_labels * self.x.shape[1]),
            jac=True,
            options={"gtol": 1e-11, "ftol": 0.0, "maxiter": 10_000},
            method="L-BFGS-B",
        )
        assert np.sum(found.jac**2) / (2 * self.l2) < 1e-15
        return found.fun, found.x.reshape(self.n_labels, -1)

    def best_step(self, alpha, i):
        """The exact line search on block i."""
        w = self.weights(alpha)
        delta = self.image(w)[i] - alpha[i]
        v = -np.outer(delta, self.x[i]) / (self.l2 * self.n)

        def slope(step):
            return -delta @ np.log(alpha[i] + step * delta) - self.l2 * self.n * np.sum(v * (w + step * v))

        if slope(0.0) <= 0:
            return 0.0
        return brentq(slope, 0.0, 1.0) if slope(1.0) < 0 else 1.0


@dataclass(frozen=True, eq=False)
class Ridge:
    """``l2/2 |w|^2 + 1/n sum_i a/2 (x_i . w - y_i)^2``: losses ``phi_i(z) = a/2 (z + y_i)^2`` at ``z = -x_i . w``."""

    x: np.ndarray
    y: np.ndarray
    l2: float
    loss_smoothness: float

    @property
    def n(self):
        return len(self.x)

    @property
    def squared_radii(self):
        return np.sum(self.x**2, axis=1)

    def weights(self, alpha):
        return alpha @ self.x / (self.l2 * self.n)

    def primal(self, w):
        return self.l2 / 2 * w @ w + self.loss_smoothness / 2 * np.mean((self.x @ w - self.y) ** 2)

    def dual(self, alpha):
        w = self.weights(alpha)
        return -self.l2 / 2 * w @ w - np.mean(alpha**2 / (2 * self.loss_smoothness) - alpha * self.y)

    def image(self, w):
        return self.loss_smoothness * (self.y - self.x @ w)

    def gaps(self, alpha):
        # phi(z) + phi*(alpha) - z alpha, as a complete square: no cancellation near zero.
        return self.residuals(alpha) ** 2 / (2 * self.loss_smoothness)

    def residuals(self, alpha):
        return np.abs(self.image(self.weights(alpha)) - alpha)

    def random_state(self, rng):
        return rng.normal(size=self.n) * rng.choice([0.3, 1.0, 5.0])

    def optimum(self):
        a = self.loss_smoothness / self.n
        w = np.linalg.solve(self.l2 * np.eye(self.x.shape[1]) + a * self.x.T @ self.x, a * self.x.T @ self.y)
        return self.primal(w), w


def move(problem, alpha, i, step):
    """The dual variables after one update of block i."""
    alpha = alpha.copy()
    alpha[i] += step * (problem.image(problem.weights(alpha))[i] - alpha[i])
    return alpha


def expected_ascent(problem, alpha, probabilities, step_sizes):
    """``E D(alpha+) - D(alpha)``, by trying every block."""
    gains = [problem.dual(move(problem, alpha, i, s)) for i, s in enumerate(step_sizes)]
    return probabilities @ np.array(gains) - problem.dual(alpha)


def ascend(problem, alpha, rule: Callable, k: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """The dual values and the dual variables along k updates; `rule` maps a state to probabilities and step sizes.

    Step sizes None ask for an exact line search.
    """
    states = [alpha]
    for _ in range(k):
        probabilities, step_sizes = rule(problem, states[-1])
        i = rng.choice(problem.n, p=probabilities)
        step = problem.best_step(states[-1], i) if step_sizes is None else step_sizes[i]
        states.append(move(problem, states[-1], i, step))
    return np.array([problem.dual(state) for state in states]), np.array(states)
