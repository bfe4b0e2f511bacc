"""The nearest non-negative weights on the edges of a graph whose matrix has a spectral norm of at most `radius`."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg
from scipy.sparse import coo_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import cg

from cumulant.graphical.mixing.dual_projection import Nearest, ProjectionProblem, nearest_point
from cumulant.graphical.mixing.perron import perron_root, perron_vector

_DENSE = 100  # up to here the Newton system is factorised; beyond, conjugate gradients


def nearest_weights(
    edges: np.ndarray, weights: np.ndarray, n: int, radius: float, *, tol: float = 1e-9, max_steps: int = 300
) -> Nearest:
    """Minimise ``1/2 sum_e (z_e - a_e)^2`` over ``z >= 0`` with ``|Z|_2 <= radius``, ``Z`` symmetric with ``z`` at the
    edges.

    As ``Z >= 0`` its norm is its Perron root, so that the constraint is ``radius I - Z >= 0`` with a multiplier
    ``X >= 0``, and ``z_e = max(a_e - 2 X_ij, 0)``. Replacing ``X = Y Y^T`` by the matrix of ``|y_i| |y_j|`` raises
    every entry at an edge and keeps the trace, which never makes the dual worse: a multiplier of rank one is optimal.
    With ``s_i = X_ii`` the dual is

        ``max over s >= 0 of  1/2 sum_e a_e^2 - 1/2 sum_e max(a_e - 2 sqrt(s_i s_j), 0)^2 - radius sum_i s_i``,

    a concave problem in one number for each node. It is solved by Newton's method in relative steps
    ``s -> s exp(d)``, for which the Hessian is the sum over edges with ``z_e > 0`` of
    ``q^2 (e_i + e_j)(e_i + e_j)^T + (z q / 2) (e_i - e_j)(e_i - e_j)^T``, ``q = sqrt(s_i s_j)``. The point returned is
    ``z`` made feasible by dividing each weight by what its two nodes exceed ``Z y <= radius y``, ``y = sqrt(s)``, and
    ``value - lower`` is a duality gap. Edges must be distinct pairs, and weights not negative.
    """
    matrix = weight_matrix(edges, weights, n)
    _, component = connected_components(matrix, directed=False)
    over = _components_over(matrix, component, radius)
    kept = over[component[edges[:, 0]]] & (weights > 0)
    point, multipliers = weights.copy(), np.zeros(n)
    if not kept.any():
        return Nearest(point, 0.0, 0.0, multipliers)
    nodes, inverse = np.unique(edges[kept], return_inverse=True)
    problem = SpectralProjection(inverse.reshape(-1, 2), weights[kept], nodes.size, radius)
    best = nearest_point(problem, _start(problem), tol=tol, enough=max(tol, 1e-6), max_steps=max_steps)
    point[kept], multipliers[nodes] = best.point, best.multipliers
    return best._replace(point=point, multipliers=multipliers)


def dual_value(edges: np.ndarray, weights: np.ndarray, radius: float, multipliers: np.ndarray) -> float:
    """The dual at ``s >= 0``: no feasible point has a smaller objective, whatever ``s`` is."""
    q = np.sqrt(multipliers[edges[:, 0]] * multipliers[edges[:, 1]])
    z = np.maximum(weights - 2.0 * q, 0.0)
    # 1/2 (z - a)^2 + 2 q z at each edge: the difference of two squares would cancel
    return float((0.5 * (z - weights) ** 2 + 2.0 * q * z).sum() - radius * multipliers.sum())


def weight_matrix(edges: np.ndarray, weights: np.ndarray, n: int) -> csr_array:
    """The symmetric matrix with these weights at the edges."""
    i, j = edges[:, 0], edges[:, 1]
    both = (np.concatenate([i, j]), np.concatenate([j, i]))
    out = coo_array((np.concatenate([weights, weights]), both), shape=(n, n)).tocsr()
    out.eliminate_zeros()
    return out


def _components_over(matrix: csr_array, component: np.ndarray, radius: float) -> np.ndarray:
    """Which connected components are not certain to have a norm of at most `radius`."""
    over = np.zeros(int(component.max(initial=-1)) + 1, dtype=bool)
    sums = np.zeros(over.size)
    np.maximum.at(sums, component, np.asarray(matrix.sum(axis=1)).ravel())
    for c in np.flatnonzero(sums > radius):  # a norm is at most the largest sum of a row
        here = np.flatnonzero(component == c)
        over[c] = perron_root(matrix[here][:, here]).upper > radius
    return over


def _start(problem: "SpectralProjection") -> np.ndarray:
    """The best of a few rays ``t * shape``: the eigenvector of the weights, which is right close to the set, mixed with
    the weights around each node, which is better far from it.
    """
    i, j, a, n, radius = problem.i, problem.j, problem.weights, problem.n, problem.radius
    around = np.bincount(problem.edges.ravel(), np.repeat(a, 2), minlength=n)
    top = perron_vector(weight_matrix(problem.edges, a, n)) ** 2
    mix = np.array([[1.0], [1e-2], [1e-4], [1e-8]])
    shapes = (1.0 - mix) * top / top.max() + mix * np.maximum(around / around.max(), 1e-3)
    q = np.sqrt(shapes[:, i] * shapes[:, j])
    cost, low, high = radius * shapes.sum(axis=1), np.zeros(len(q)), a.max() / q.max(axis=1)
    for _ in range(60):  # the derivative along a ray is increasing
        t = 0.5 * (low + high)
        rising = cost > 2.0 * (q * np.maximum(a - 2.0 * t[:, None] * q, 0.0)).sum(axis=1)
        low, high = np.where(rising, low, t), np.where(rising, t, high)
    tried = high[:, None] * shapes
    return max(tried, key=problem.dual)


@dataclass(frozen=True)
class WeightProjection(ProjectionProblem):
    """Half the squared distance of weights ``>= 0`` on the edges of a graph, in multipliers of its nodes."""

    edges: np.ndarray
    weights: np.ndarray
    n: int
    radius: float

    @cached_property
    def i(self) -> np.ndarray:
        """First nodes of the edges."""
        return np.ascontiguousarray(self.edges[:, 0])

    @cached_property
    def j(self) -> np.ndarray:
        """Second nodes of the edges."""
        return np.ascontiguousarray(self.edges[:, 1])

    def around(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The sum at each node, over its edges, of what they give to their first and to their second node."""
        return np.bincount(self.i, first, self.n) + np.bincount(self.j, second, self.n)

    def shrunk(self, z: np.ndarray, sums: np.ndarray, multipliers: np.ndarray, lower: float) -> Nearest:
        """The weights `z`, each divided by what the larger of the `sums` at its two nodes exceeds the radius by."""
        degree = np.bincount(self.edges.ravel(), minlength=self.n).max()
        excess = np.maximum(sums / self.radius * (1.0 + (degree + 8.0) * 2.0**-52), 1.0)  # rounding included
        point = z / np.maximum(excess[self.i], excess[self.j])
        return Nearest(point, 0.5 * float(((point - self.weights) ** 2).sum()), lower, multipliers)


@dataclass(frozen=True)
class SpectralProjection(WeightProjection):
    """The dual of `nearest_weights` in ``s``, with relative Newton steps on ``-dual(s)``."""

    @property
    def floor(self) -> float:
        """What rounding leaves of a point that is almost inside."""
        return 1e-15 * float(self.weights @ self.weights)

    def dual(self, s: np.ndarray) -> float:
        """The dual: see `dual_value`."""
        return dual_value(self.edges, self.weights, self.radius, s)

    def _parts(self, s):
        q = np.sqrt(s[self.i] * s[self.j])
        z = np.maximum(self.weights - 2.0 * q, 0.0)
        flow = z * q
        return q, z, self.radius * s - self.around(flow, flow)

    def improve(self, multipliers: np.ndarray) -> tuple[np.ndarray, float]:
        """The next ``s`` and the increase that the quadratic model promised."""
        s = multipliers
        q, z, gradient = self._parts(s)
        active = z > 0
        same = np.where(active, q * q + 0.5 * z * q, 0.0)
        cross = np.where(active, q * q - 0.5 * z * q, 0.0)
        diagonal = self.around(same, same)
        # A node whose edges are all cut has no curvature here: its own term makes a step that shrinks it.
        diagonal = diagonal + 1e-10 * self.radius * s + np.where(diagonal == 0, self.radius * s, 0.0)
        scale = 1.0 / np.sqrt(diagonal)
        d = scale * self._solve(cross * scale[self.i] * scale[self.j], -scale * gradient)
        d = np.clip(d, -3.0, 3.0)
        slope = float(gradient @ d)
        if not slope < 0:
            d = np.clip(-gradient / diagonal, -3.0, 3.0)
            slope = float(gradient @ d)
        before, t = self.dual(s), 1.0
        for _ in range(40):
            new = s * np.exp(t * d)
            if self.dual(new) >= before - 1e-4 * t * slope:
                return new, -slope
            t *= 0.5
        return s, 0.0

    def _solve(self, cross, right):
        if self.n <= _DENSE:
            H = np.zeros((self.n, self.n))
            np.add.at(H, (self.i, self.j), cross)
            H += H.T
            H[np.diag_indices(self.n)] = 1.0
            try:
                return linalg.cho_solve(linalg.cho_factor(H, overwrite_a=True, check_finite=False), right)
            except linalg.LinAlgError:
                return right
        operator = eye_array(self.n) + weight_matrix(self.edges, cross, self.n)
        size = float(np.linalg.norm(right))
        x, _ = cg(operator, right, rtol=min(0.1, max(math.sqrt(size), 1e-8)), maxiter=500)
        return x

    def certified(self, multipliers: np.ndarray) -> Nearest:
        """The point of these multipliers, made feasible: ``Z y <= radius y`` for ``y = sqrt(s) > 0`` bounds its Perron
        root (Collatz and Wielandt), and dividing each weight by what its two nodes exceed that by is enough.
        """
        z, y = self._parts(multipliers)[1], np.sqrt(multipliers)
        return self.shrunk(z, self.around(z * y[self.j], z * y[self.i]) / y, multipliers, self.dual(multipliers))
