"""Upper bounds on ``log Z`` by a convex combination of models that exact inference can do.

Where the tables are shared out, ``theta = sum_k z_k``, and the weights add up to one, Hölder's inequality gives

    ``log Z(theta) <= sum_k w_k log Z(z_k / w_k)``.

Each copy ``k`` keeps those factors for which exact inference fits into memory: spanning trees (Wainwright, Jaakkola and
Willsky 2005, tree-reweighted bounds), or wide blocks, whose bounds are far tighter. The bound is jointly convex in
shares and weights (each term is the perspective of a convex function); its derivatives are the marginals and the
entropies of the copies. Every choice is a valid bound: nothing has to converge.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from cumulant.certificates import rounding
from cumulant.graphical.bounds.partition import good_order
from cumulant.graphical.exact.elimination import Elimination
from cumulant.graphical.structure import Structure
from cumulant.threads import side_by_side

__all__ = ["Bound", "Combination", "Tables", "tighten"]

LANES = 2  # copies that are worked on at once, each with its share of the memory, whatever the number of threads


@dataclass(frozen=True, eq=False)
class Tables:
    """A model in the form that the bounds work on: factors of two variables or more, a table for each single variable,
    and a constant.
    """

    structure: Structure  # the factors of two variables or more
    theta: np.ndarray  # their tables, and then those of single variables
    constant: float
    slack: float = 0.0  # what rounding may have done to the sums below

    @classmethod
    def of(cls, structure: Structure, theta: np.ndarray) -> "Tables":
        """Gather what is about single variables, and what is about none."""
        width = np.diff(structure.scope_starts)
        starts, at = structure.table_starts, np.concatenate([[0], np.cumsum(structure.cardinalities)])
        fields, constant = np.zeros(int(at[-1])), 0.0
        for f in np.flatnonzero(width == 1).tolist():
            v = int(structure.scopes[structure.scope_starts[f]])
            fields[at[v] : at[v + 1]] += theta[starts[f] : starts[f + 1]]
        for f in np.flatnonzero(width == 0).tolist():
            constant += float(theta[starts[f]])
        narrow = np.abs(theta[np.repeat(width < 2, np.diff(starts))])
        slack = rounding(narrow[np.isfinite(narrow)], terms=narrow.size)
        wide = np.flatnonzero(width > 1).tolist()
        scopes = [structure.scopes[structure.scope_starts[f] : structure.scope_starts[f + 1]] for f in wide]
        ends = np.cumsum([0, *map(len, scopes)])
        kept = Structure.flat(structure.cardinalities, ends, np.concatenate([*scopes, np.zeros(0, np.int64)]))
        theta = np.concatenate([*(theta[starts[f] : starts[f + 1]] for f in wide), fields])
        return cls(kept, theta, constant, slack)


class Combination:
    """``U(z, w) = sum_k w_k log Z_k(z_k / w_k)`` over copies, each with some of the factors.

    Parameters
    ----------
    tables : Tables
    copies : sequence of (kept, part)
        The numbers of the factors that a copy keeps, and its structure: these, then a table for each variable. Each
        factor must be in one of them.
    max_memory : int
        Bytes for the tables of all copies that are worked on at once.
    """

    def __init__(self, tables: Tables, copies: Sequence[tuple[np.ndarray, Structure]], max_memory: int, n_jobs=None):
        self.tables, self.copies, self.n_jobs = tables, list(copies), n_jobs
        self.memory = max_memory // LANES
        total, every = tables.theta.size, np.arange(tables.theta.size)
        factors = np.split(every, tables.structure.table_starts[1:])  # the last are the tables of single variables
        self.places = [np.concatenate([*(factors[f] for f in kept.tolist()), factors[-1]]) for kept, _ in copies]
        self.count = np.zeros(total)
        for place in self.places:
            self.count[place] += 1.0
        if (self.count < 1.0).any():
            raise ValueError("each factor must be in one of the copies")
        self.ends = np.cumsum([0, *(place.size for place in self.places)])
        self.shared = tables.theta / self.count

    @property
    def n_copies(self) -> int:
        """How many copies there are."""
        return len(self.copies)

    @property
    def dim(self) -> int:
        """Numbers that describe shares and weights."""
        return int(self.ends[-1]) + self.n_copies

    def shares(self, x: np.ndarray) -> list[np.ndarray]:
        """``z_k`` for each copy: equal shares, and what `x` moves between them, so that they add up to ``theta``."""
        moved = np.zeros(self.tables.theta.size)
        for k, place in enumerate(self.places):
            moved[place] += x[self.ends[k] : self.ends[k + 1]]
        moved /= self.count
        return [
            self.shared[place] + (x[self.ends[k] : self.ends[k + 1]] - moved[place])
            for k, place in enumerate(self.places)
        ]

    def log_weights(self, x: np.ndarray) -> np.ndarray:
        """The logarithms of the weights, which add up to one."""
        return x[self.ends[-1] :] - logsumexp(x[self.ends[-1] :])

    def solve(self, k: int, scaled: np.ndarray) -> tuple[float, np.ndarray]:
        """``log Z`` of a copy with these tables, and its marginals."""
        part = self.copies[k][1]
        memory = max(self.memory, 256 * scaled.size)  # a tree always fits
        log_z, _, mean = Elimination(part, scaled, good_order(part), memory, 1).beliefs()
        return log_z, mean

    def bound(self, x: np.ndarray) -> tuple[float, np.ndarray, float]:
        """The bound, its derivative by `x`, and what rounding may have taken from it."""
        shares, weights = self.shares(x), softmax(x[self.ends[-1] :])

        def work(k):
            scaled = shares[k] / weights[k]
            return *self.solve(k, scaled), scaled

        found = side_by_side(work, self.n_copies, None if self.n_jobs is None else min(self.n_jobs, LANES))
        values = np.array([log_z for log_z, _, _ in found])
        if (values == -np.inf).any():  # a copy has no possible state, and so has the model
            return -np.inf, np.zeros(self.dim), 0.0
        gradient, back = np.zeros(self.dim), np.zeros(self.tables.theta.size)
        by_weight, slack = np.zeros(self.n_copies), self.tables.slack + rounding(self.tables.constant)
        for k, (log_z, mean, scaled) in enumerate(found):
            back[self.places[k]] += mean
            likely = mean > 0
            by_weight[k] = log_z - float(mean[likely] @ scaled[likely])  # the entropy of the copy
            size = float(mean[likely] @ np.abs(scaled[likely])) + abs(log_z)
            slack += weights[k] * rounding(size, terms=4.0 * (self.copies[k][1].n_factors + 8))
        back /= self.count
        for k, (_, mean, _) in enumerate(found):
            gradient[self.ends[k] : self.ends[k + 1]] = mean - back[self.places[k]]
        gradient[self.ends[-1] :] = weights * (by_weight - weights @ by_weight)
        return float(weights @ values) + self.tables.constant, gradient, slack


class Bound(Protocol):
    """A bound that is valid at every point ``x``."""

    @property
    def dim(self) -> int:
        """How many numbers a point has."""
        ...

    def bound(self, x: np.ndarray) -> tuple[float, np.ndarray, float]:
        """Its value at `x`, the derivative, and what rounding may have taken from it."""
        ...


def tighten(
    combination: Bound, report: Callable[[float, float], bool], max_steps: int = 1000, tol: float = 1e-5
) -> bool:
    """Minimise the bound over shares and weights by L-BFGS; `report(bound, slack)` after each evaluation says whether
    to go on. Returns whether it converged.
    """

    class Stopped(Exception):  # noqa: N818
        pass

    def objective(x):
        value, gradient, slack = combination.bound(x)
        if not report(value, slack) or value == -np.inf:
            raise Stopped
        return value, gradient

    try:
        minimize(
            objective, np.zeros(combination.dim), jac=True, method="L-BFGS-B",
            options={"maxiter": max_steps, "maxfun": 2 * max_steps, "ftol": tol * 1e-3, "gtol": tol, "maxcor": 10},
        )  # fmt: skip
    except Stopped:
        return False
    return True
