"""The nearest tables of a pairwise model whose linear dependency matrix has a norm of at most `radius`."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import coo_array, csr_array

from cumulant.errors import NotConvergedError
from cumulant.graphical.mixing.dual_projection import Nearest, ProjectionProblem, nearest_point
from cumulant.graphical.mixing.perron import spectral_norm
from cumulant.graphical.mixing.table_projection_kernels import shrink_edges

_DENSE = 400  # up to here singular vectors are cheap


@dataclass(frozen=True)
class Tables:
    """Tables of the edges ``(i, j)`` of `n` variables, one after the other: `flat`, with `shapes` (edges, 2)."""

    edges: np.ndarray
    shapes: np.ndarray
    flat: np.ndarray
    n: int

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each table begins, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.shapes.prod(axis=1))]).astype(np.int64)

    def shrunk(self, flat: np.ndarray, factors: Any) -> np.ndarray:
        """Tables `flat` of these shapes, each moved towards its mean until only the share `factors` of it is left."""
        sizes = np.diff(self.starts)
        edge = np.repeat(np.arange(sizes.size), sizes)
        mean, share = (np.bincount(edge, flat) / sizes)[edge], np.broadcast_to(factors, sizes.shape)[edge]
        return np.where(share < 1.0, mean + share * (flat - mean), flat)


def nearest_tables(
    tables: Tables, radius: float, norm: str, *, tol: float = 1e-8, floor: float = 0.0, max_steps: int = 2000
) -> Nearest:
    """Minimise ``1/2 sum_ij |psi_ij - theta_ij|^2`` over tables with ``norm(R(psi)) <= radius``.

    ``R_ij = max_a range_b psi_ij(a, b) / 2`` and ``R_ji = max_b range_a psi_ij(a, b) / 2``; `norm` is ``"spectral"``,
    ``"one"`` or ``"inf"``. The spectral norm of ``R >= 0`` is the Perron root of ``[[0, R], [R^T, 0]]``, with a
    multiplier of rank one (see `nearest_weights`), so that all three have one dual in a few numbers for each variable:

        ``max over s >= 0 of  sum_ij phi_ij(p_ij, p_ji) - radius sum s``,

    where ``phi_ij(p, p') = min_psi 1/2 |psi - theta_ij|^2 + p max_a range_b psi + p' max_b range_a psi`` and
    ``p_ij = sqrt(s_i s'_j)`` (spectral), ``s_i / 2`` (inf) or ``s_j / 2`` (one). It is concave and differentiable and
    is maximised by L-BFGS-B; ``phi`` is evaluated through its own dual, so that what is found is a lower bound at any
    accuracy. The point is made feasible by shrinking tables towards their means: all of them alike, or each by what its
    two variables exceed, whichever is nearer. A gap of `floor` is small enough whatever the distance is.
    """
    problem = TableProjection(tables, radius, norm, floor, max_steps)
    if problem.inside():
        return Nearest(tables.flat.copy(), 0.0, 0.0, np.zeros(problem.dim))
    refusals = []
    for x in problem.starts():
        try:
            return nearest_point(problem, x, tol=tol, enough=max(tol, 1e-4), max_steps=2)
        except NotConvergedError as refusal:
            refusals.append(refusal)
    raise refusals[0]


def table_dual(tables: Tables, radius: float, norm: str, multipliers: np.ndarray) -> float:
    """The dual at these multipliers (logarithms, for the spectral norm): no feasible tables are nearer than that."""
    return -TableProjection(tables, radius, norm).value_and_gradient(multipliers)[0]


def table_influences(tables: Tables) -> csr_array:
    """The linear dependency matrix: ``R_ij = max_a range_b / 2`` and ``R_ji = max_b range_a / 2``."""
    dual = TableProjection(tables, 1.0, "inf")
    dual._inner(np.zeros(len(dual.i)), np.zeros(len(dual.i)))
    return dual._matrix()


class TableProjection(ProjectionProblem):
    """The dual of `nearest_tables` as a function to be minimised, with the state of its inner problems."""

    def __init__(self, tables: Tables, radius: float, norm: str, floor: float = 0.0, max_steps: int = 2000):
        self.floor, self.max_steps = floor, max_steps
        self.t, self.radius, self.norm, self.n = tables, float(radius), norm, tables.n
        self.i, self.j = tables.edges[:, 0], tables.edges[:, 1]
        m = len(tables.edges)
        self.V, self.W = np.zeros(tables.flat.size), np.zeros(tables.flat.size)
        self.values, self.of_row, self.of_column = np.zeros(m), np.zeros(m), np.zeros(m)
        self.dim = 2 * self.n if norm == "spectral" else self.n
        self.used = np.zeros(self.n, dtype=bool)
        self.used[tables.edges.ravel()] = True
        # Which multiplier goes with R_ij and which with R_ji.
        self.left, self.right = (self.i, self.j) if norm == "inf" else (self.j, self.i)

    def inside(self) -> bool:
        """Whether the tables are in the set already."""
        self._inner(np.zeros(len(self.i)), np.zeros(len(self.i)))
        ones = np.ones(self.n)
        if self.norm == "spectral":
            return spectral_norm(self._matrix()).upper <= self.radius
        return bool(self._excess(ones, ones).max(initial=0.0) <= 1.0)

    def _matrix(self):
        i, j = self.i, self.j
        values = np.concatenate([0.5 * self.of_row, 0.5 * self.of_column])
        return coo_array((values, (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(self.n, self.n)).tocsr()

    def starts(self) -> list[np.ndarray]:
        """Where to begin: the best of each of a few rays, the best of them first.

        Multipliers are about as large as the distance to the set, over many orders of magnitude: far away they are
        much the same for all variables, close to the set they are the singular vectors of ``R``, squared.
        """
        size = max(float(self.of_row.mean()), 1e-3)
        if self.norm != "spectral":
            return [np.full(self.dim, 0.1 * size)]
        left, _, right = np.linalg.svd(self._matrix().toarray()) if self.n <= _DENSE else (None, None, None)
        shapes = [np.ones(self.dim)]
        if left is not None and right is not None:
            top = np.concatenate([left[:, 0], right[0]]) ** 2 * self.n
            shapes += [0.9 * top + 0.1, 0.999 * top + 1e-3]
        tried = []
        for shape in shapes:
            x = np.log(shape)
            low, high = -35.0, float(np.log(10.0 * size))
            while high - low > 0.3:  # the derivative along the ray is increasing
                t = 0.5 * (low + high)
                low, high = (low, t) if self.value_and_gradient(x + t)[1].sum() > 0 else (t, high)
            tried.append((self.value_and_gradient(x + low)[0], x + low))
        return [x for _, x in sorted(tried, key=lambda pair: pair[0])]

    def _inner(self, p: np.ndarray, p_turned: np.ndarray) -> None:
        t, found = self.t, (self.V, self.W, self.values, self.of_row, self.of_column)
        shrink_edges(t.flat, t.shapes, t.starts, p, p_turned, *found, 1e-14, 5000)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the dual, and its gradient."""
        n, i, j = self.n, self.i, self.j
        if self.norm == "spectral":
            s = np.exp(np.clip(x, -100.0, 100.0))
            rows, columns = s[:n], s[n:]
            p, p_turned = np.sqrt(rows[i] * columns[j]), np.sqrt(rows[j] * columns[i])
            self._inner(p, p_turned)
            u, w = 0.5 * p * self.of_row, 0.5 * p_turned * self.of_column
            gradient = self.radius * s
            gradient[:n] -= np.bincount(i, u, n) + np.bincount(j, w, n)
            gradient[n:] -= np.bincount(j, u, n) + np.bincount(i, w, n)
            used = np.concatenate([self.used, self.used])
            value = self.radius * s[used].sum() - self.values.sum()
            return float(value), np.where(used, gradient, 0.0)
        self._inner(0.5 * x[self.left], 0.5 * x[self.right])
        gradient = np.full(n, self.radius)
        gradient -= 0.5 * (np.bincount(self.left, self.of_row, n) + np.bincount(self.right, self.of_column, n))
        gradient = np.where(self.used, gradient, 0.0)
        return float(self.radius * x[self.used].sum() - self.values.sum()), gradient

    def _excess(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """By how much each edge must shrink for ``R y' <= radius y`` and ``R^T y <= radius y'``, or sums of rows."""
        n, i, j = self.n, self.i, self.j
        a, b = 0.5 * self.of_row, 0.5 * self.of_column
        safe = 1.0 + (np.bincount(np.concatenate([i, j])).max(initial=0) + 8.0) * 2.0**-51
        if self.norm != "spectral":
            sums = np.bincount(self.left, a, n) + np.bincount(self.right, b, n)
            each = np.maximum(sums / self.radius * safe, 1.0)
            return np.maximum(each[i], each[j])
        of_rows = (np.bincount(i, a * columns[j], n) + np.bincount(j, b * columns[i], n)) / (self.radius * rows)
        of_columns = (np.bincount(j, a * rows[i], n) + np.bincount(i, b * rows[j], n)) / (self.radius * columns)
        each = np.maximum(np.maximum(of_rows, of_columns) * safe, 1.0)
        return np.maximum(each[i], each[j])

    def improve(self, multipliers: np.ndarray) -> tuple[np.ndarray, float]:
        """L-BFGS-B until rounding ends it; nothing is promised.

        Started again it drops the curvature learnt elsewhere, which is wrong across a kink.
        """
        options = {"maxiter": self.max_steps, "maxfun": 2 * self.max_steps, "ftol": 1e-16, "gtol": 1e-13, "maxcor": 30}
        bounds = None if self.norm == "spectral" else [(0.0, None)] * multipliers.size
        found = minimize(
            self.value_and_gradient, multipliers, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return found.x, 0.0

    def certified(self, multipliers: np.ndarray) -> Nearest:
        """The point of these multipliers, its tables shrunk towards their means until it is feasible."""
        x = multipliers
        lower = -self.value_and_gradient(x)[0]
        spectral = self.norm == "spectral"
        y = np.exp(0.5 * np.clip(x, -100.0, 100.0)) if spectral else np.ones(2 * self.n)
        shrinks: list[Any] = [1.0 / self._excess(y[: self.n], y[self.n :])]
        if spectral:
            over = spectral_norm(self._matrix()).upper / self.radius * (1.0 + 2.0**-50)
            shrinks.append(1.0 / over)
        t = self.t
        points = [t.shrunk(t.flat - self.V - self.W, shrink) for shrink in shrinks]
        found = [Nearest(point, 0.5 * float(((point - t.flat) ** 2).sum()), lower, x) for point in points]
        return min(found, key=lambda nearest: nearest.value)
