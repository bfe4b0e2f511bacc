"""The nearest non-negative weights on the edges of a graph whose matrix has a spectral norm of at most `radius`."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.sparse import coo_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import cg

from cumulant.errors import NotConvergedError
from cumulant.graphical.mixing.perron import perron_root, perron_vector

__all__ = ["Nearest", "dual_value", "nearest_weights", "weight_matrix"]

_DENSE = 100  # up to here the Newton system is factorised; beyond, conjugate gradients


@dataclass(frozen=True)
class Nearest:
    """A feasible point, its objective ``value``, a lower bound on every feasible value, and the multipliers that prove
    it.
    """

    point: np.ndarray
    value: float
    lower: float
    multipliers: np.ndarray
    iterations: int

    @property
    def gap(self) -> float:
        """At most so far is `value` above the optimum; half the squared distance to the projection is no larger."""
        return max(self.value - self.lower, 0.0)


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
    ``value - lower`` is a duality gap. Edges must be distinct pairs.
    """
    point = np.maximum(weights, 0.0)
    matrix = weight_matrix(edges, point, n)
    _, component = connected_components(matrix, directed=False)
    over = _components_over(matrix, component, radius)
    kept = over[component[edges[:, 0]]] & (point > 0)
    multipliers = np.zeros(n)
    if not kept.any():
        rest = 0.5 * float(((point - weights) ** 2).sum())
        return Nearest(point, rest, rest, multipliers, 0)
    nodes, inverse = np.unique(edges[kept], return_inverse=True)
    inside, a = inverse.reshape(-1, 2), point[kept]
    base = 0.5 * float(((point - weights)[~kept] ** 2).sum())  # negative weights elsewhere: their projection is zero
    floor = 1e-15 * float(a @ a)  # what rounding leaves of a point that is almost inside
    newton = _Newton(inside, a, nodes.size, radius)
    s, best, steps, in_vain = _start(newton), None, 0, 0
    for steps in range(1, max_steps + 1):
        s, decrease = newton.step(s)
        scale = base + max(newton.dual(s), 0.0)
        if decrease > max(0.1 * tol * scale, 0.1 * floor) and steps < max_steps:
            continue
        candidate = _certified(newton, s)
        in_vain += best is not None and candidate.gap > 0.5 * best.gap
        if best is None or candidate.gap < best.gap:
            best = candidate
        if (
            best.gap <= max(tol * (base + best.value), floor) or in_vain == 5
        ):  # five times: rounding is all that is left
            break
    if best is None or best.gap > max(max(tol, 1e-6) * (base + best.value), floor):
        raise NotConvergedError(
            f"the spectral projection stopped after {steps} steps at a gap of {best.gap if best else math.inf:.2g}, "
            f"above tol = {tol:g} times the distance: raise max_steps or tol"
        )
    point = point.copy()
    point[kept] = best.point
    multipliers[nodes] = best.multipliers
    return Nearest(point, base + best.value, base + best.lower, multipliers, steps)


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


def _start(newton: "_Newton") -> np.ndarray:
    """The best of a few rays ``t * shape``: the eigenvector of the weights, which is right close to the set, mixed with
    the weights around each node, which is better far from it.
    """
    i, j, a, n, radius = newton.i, newton.j, newton.a, newton.n, newton.radius
    around = np.bincount(newton.edges.ravel(), np.repeat(a, 2), minlength=n)
    top = perron_vector(weight_matrix(newton.edges, a, n)) ** 2
    tried = []
    for mix in (1.0, 1e-2, 1e-4, 1e-8):
        shape = (1.0 - mix) * top / top.max() + mix * np.maximum(around / around.max(), 1e-3)
        q = np.sqrt(shape[i] * shape[j])
        low, high = 0.0, float(a.max() / q.max())
        for _ in range(60):  # the derivative along the ray is increasing
            t = 0.5 * (low + high)
            slope = radius * shape.sum() - 2.0 * (q * np.maximum(a - 2.0 * t * q, 0.0)).sum()
            low, high = (low, t) if slope > 0 else (t, high)
        tried.append(high * shape)
    return max(tried, key=newton.dual)


class _Newton:
    """Relative Newton steps on the dual, to be minimised as ``h(s) = -dual(s)``."""

    def __init__(self, edges, a, n, radius):
        self.i, self.j, self.a, self.n, self.radius = edges[:, 0], edges[:, 1], a, n, radius
        self.edges = edges

    def dual(self, s):
        return dual_value(self.edges, self.a, self.radius, s)

    def parts(self, s):
        q = np.sqrt(s[self.i] * s[self.j])
        z = np.maximum(self.a - 2.0 * q, 0.0)
        flow = z * q
        gradient = self.radius * s - np.bincount(self.i, flow, self.n) - np.bincount(self.j, flow, self.n)
        return q, z, gradient

    def step(self, s):
        """The next ``s`` and the decrease that the quadratic model promised."""
        q, z, gradient = self.parts(s)
        active = z > 0
        same = np.where(active, q * q + 0.5 * z * q, 0.0)
        cross = np.where(active, q * q - 0.5 * z * q, 0.0)
        diagonal = np.bincount(self.i, same, self.n) + np.bincount(self.j, same, self.n)
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


def _certified(newton: "_Newton", s: np.ndarray) -> Nearest:
    """The point of these multipliers, made feasible: ``Z y <= radius y`` for ``y = sqrt(s) > 0`` bounds its Perron root
    (Collatz and Wielandt), and dividing each weight by what its two nodes exceed that by is enough.
    """
    _, z, _ = newton.parts(s)
    y = np.sqrt(s)
    i, j = newton.i, newton.j
    flow = np.bincount(i, z * y[j], newton.n) + np.bincount(j, z * y[i], newton.n)
    degree = np.bincount(newton.edges.ravel(), minlength=newton.n).max()
    excess = np.maximum(flow / (newton.radius * y) * (1.0 + (degree + 8.0) * 2.0**-52), 1.0)  # rounding included
    z = z / np.maximum(excess[i], excess[j])
    return Nearest(z, 0.5 * float(((z - newton.a) ** 2).sum()), newton.dual(s), s, 0)
