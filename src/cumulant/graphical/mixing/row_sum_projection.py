"""The nearest non-negative weights on the edges of a graph whose sum around each node is at most `radius`."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import eye_array
from scipy.sparse.linalg import cg

from cumulant.graphical.mixing.dual_projection import Nearest, nearest_point
from cumulant.graphical.mixing.spectral_projection import WeightProjection, weight_matrix


def nearest_row_sums(
    edges: np.ndarray, weights: np.ndarray, n: int, radius: float, *, tol: float = 1e-9, max_steps: int = 500
) -> Nearest:
    """Minimise ``1/2 sum_e (z_e - a_e)^2`` over ``z >= 0`` with ``sum_j z_ij <= radius`` at every node ``i``.

    The one- and the infinity-norm of a symmetric matrix are both the largest such sum. With multipliers ``l >= 0`` of
    the nodes, ``z_e = max(a_e - l_i - l_j, 0)`` and the dual is

        ``max over l >= 0 of  1/2 sum_e a_e^2 - 1/2 sum_e max(a_e - l_i - l_j, 0)^2 - radius sum_i l_i``:

    piecewise quadratic, solved by Newton's method on the multipliers that are free (Bertsekas 1982). The point returned
    is ``z`` divided, at each edge, by the larger excess of its two nodes, so that it is feasible; ``value - lower`` is
    a duality gap. Edges must be distinct pairs, and weights not negative.
    """
    if np.bincount(edges.ravel(), np.repeat(weights, 2), n).max(initial=0.0) <= radius:
        return Nearest(weights, 0.0, 0.0, np.zeros(n))
    problem = RowSumProjection(edges, weights, n, radius)
    return nearest_point(problem, np.zeros(n), tol=tol, enough=tol, max_steps=max_steps)


def row_sum_dual(edges: np.ndarray, weights: np.ndarray, radius: float, multipliers: np.ndarray) -> float:
    """The dual at multipliers ``>= 0``: no feasible point has a smaller objective."""
    pair = multipliers[edges[:, 0]] + multipliers[edges[:, 1]]
    z = np.maximum(weights - pair, 0.0)
    return float((0.5 * (z - weights) ** 2 + pair * z).sum() - radius * multipliers.sum())


@dataclass(frozen=True)
class RowSumProjection(WeightProjection):
    """The dual of `nearest_row_sums` in the multipliers of the nodes."""

    @property
    def floor(self) -> float:
        """What rounding leaves of a point that is almost inside."""
        return 1e-16 * float(self.weights @ self.weights)

    def _parts(self, multipliers):
        z = np.maximum(self.weights - multipliers[self.i] - multipliers[self.j], 0.0)
        return z, self.around(z, z)

    def certified(self, multipliers: np.ndarray) -> Nearest:
        """The point of these multipliers, each weight divided by the larger excess of its two nodes."""
        dual = row_sum_dual(self.edges, self.weights, self.radius, multipliers)
        return self.shrunk(*self._parts(multipliers), multipliers, dual)

    def improve(self, multipliers: np.ndarray) -> tuple[np.ndarray, float]:
        """One Newton step on the free multipliers, along the path that is cut at zero, and the increase it promised."""
        edges, weights, n, radius, i, j = self.edges, self.weights, self.n, self.radius, self.i, self.j
        z, sums = self._parts(multipliers)
        gradient = radius - sums
        stationary = float(np.abs(multipliers - np.maximum(multipliers - gradient, 0.0)).max())
        near = min(1e-3 * float(weights.max()), stationary)
        free = ~((multipliers <= near) & (gradient > 0))
        active = z > 0
        diagonal = np.bincount(edges[active].ravel(), minlength=n).astype(np.float64)
        alone = (diagonal == 0) & (multipliers > 0)
        # On a bipartite piece the second derivative is singular: the ridge keeps the step finite there.
        diagonal = diagonal + np.where(diagonal == 0, 1.0, 1e-7)
        both = active & free[i] & free[j]
        scale = 1.0 / np.sqrt(diagonal)
        right = np.where(free, -gradient, 0.0) * scale
        scaled = eye_array(n) + weight_matrix(edges[both], scale[i[both]] * scale[j[both]], n)
        x, _ = cg(scaled, right, rtol=1e-10, maxiter=2000)
        d = np.where(free, scale * x, -gradient)
        if alone.any():
            # Without an active edge the dual is linear, with the small slope `radius`: go to where an edge becomes
            # active (half of the way, as both of its ends may move) instead of there in steps of `radius`.
            slack = np.full(n, np.inf)
            apart = multipliers[i] + multipliers[j] - weights
            np.minimum.at(slack, i, apart)
            np.minimum.at(slack, j, apart)
            d = np.where(alone, d - np.minimum(0.5 * np.maximum(slack, 0.0), multipliers), d)
        before, t = row_sum_dual(edges, weights, radius, multipliers), 1.0
        for _ in range(50):
            new = np.maximum(multipliers + t * d, 0.0)
            promised = float(gradient @ np.where(free, t * d, new - multipliers))
            if row_sum_dual(edges, weights, radius, new) >= before - 1e-4 * promised:
                return new, -promised
            t *= 0.5
        return np.maximum(multipliers - gradient / (2.0 * np.maximum(diagonal, 1.0)), 0.0), 0.0
