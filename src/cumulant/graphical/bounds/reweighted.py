"""Upper bounds on ``log Z`` by a convex combination of models that exact inference can do.

Where the tables are shared out, ``theta = sum_k z_k``, and the weights add up to one, Hölder's inequality gives

    ``log Z(theta) <= sum_k w_k log Z(z_k / w_k)``.

Each copy ``k`` keeps those factors for which exact inference fits into memory: spanning trees (Wainwright, Jaakkola and
Willsky 2005, tree-reweighted bounds), or wide blocks, whose bounds are far tighter. The bound is jointly convex in
shares and weights (each term is the perspective of a convex function); its derivatives are the marginals and the
entropies of the copies. Every choice is a valid bound: nothing has to converge.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from cumulant.certificates import rounding
from cumulant.graphical.bounds.partition import Partition, outside, with_fields
from cumulant.graphical.exact.elimination import Elimination
from cumulant.graphical.exact.orders import fast_order
from cumulant.graphical.messages.incidence import LARGEST_SUM, ranges, require_addable
from cumulant.graphical.structure import Structure
from cumulant.threads import side_by_side

LANES = 2  # copies that are worked on at once, each with its share of the memory, whatever the number of threads
_LEAST = 1e-12  # a weight is kept away from zero, where shares divided by it would be infinite


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
        require_addable(theta)
        width, starts = np.diff(structure.scope_starts), structure.table_starts
        at = np.concatenate([[0], np.cumsum(structure.cardinalities)])
        single = np.flatnonzero(width == 1)
        own = structure.scopes[structure.scope_starts[single]]
        fields = np.zeros(int(at[-1]))
        places = ranges(at[own], structure.cardinalities[own])
        narrow = theta[ranges(starts[single], structure.cardinalities[own])]
        np.add.at(fields, places, narrow)
        constants = theta[starts[:-1][width == 0]]
        most = np.bincount(own, minlength=1).max()  # tables that are added up for one variable
        slack = rounding(narrow[np.isfinite(narrow)], terms=float(most - 1)) if most > 1 else 0.0
        wide = np.flatnonzero(width > 1)
        scopes = structure.scopes[ranges(structure.scope_starts[wide], width[wide])]
        kept = Structure.flat(structure.cardinalities, np.cumsum([0, *width[wide].tolist()]), scopes)
        theta = np.concatenate([theta[ranges(starts[wide], np.diff(starts)[wide])], fields])
        constant = math.fsum(constants)
        return cls(kept, theta, constant, slack + rounding(constant if np.isfinite(constant) else 0.0))

    def largest(self, values: np.ndarray) -> np.ndarray:
        """The largest of `values`, one for each entry, in each table: of the factors, and then of the variables."""
        sizes = np.concatenate([np.diff(self.structure.table_starts), self.structure.cardinalities])
        return np.maximum.reduceat(values, np.cumsum(sizes) - sizes) if sizes.size else np.zeros(0)


class Combination:
    """``U(z, w) = sum_k w_k log Z_k(z_k / w_k)`` over copies, each with some of the factors.

    Parameters
    ----------
    tables : Tables
    cuts : sequence of Partition
        Copies that are cut into blocks, each of which is solved by itself; blocks of one shape share all plans.
    others : sequence of (kept, part)
        Copies as they are: the numbers of the factors that one keeps, and its structure, these and then a table for
        each variable. Each factor must be in some copy.
    max_memory : int
        Bytes for the tables of all copies that are worked on at once.
    alive : callable
        Called between blocks, from several threads; raises where the time has ended.
    """

    def __init__(
        self,
        tables: Tables,
        cuts: Sequence[Partition],
        others: Sequence[tuple[np.ndarray, Structure]],
        max_memory: int,
        alive: Callable[[], None] = lambda: None,
        n_jobs: int | None = None,
    ):
        self.tables, self.cuts, self.alive, self.n_jobs = tables, list(cuts), alive, n_jobs
        self.memory = max_memory // LANES
        total, every = tables.theta.size, np.arange(tables.theta.size)
        factors = np.split(every, tables.structure.table_starts[1:])  # the last are the tables of single variables
        self.kept = [*(cut.kept for cut in cuts), *(kept for kept, _ in others)]
        self.places = [np.concatenate([*(factors[f] for f in kept.tolist()), factors[-1]]) for kept in self.kept]
        self.blocks = [_blocks(tables.structure, cut) for cut in cuts]  # of each copy: structures and their places
        self.blocks += [[(part, np.arange(part.table_starts[-1]))] for _, part in others]
        self.count = np.zeros(total)
        for place in self.places:
            self.count[place] += 1.0
        if (self.count < 1.0).any():
            raise ValueError("each factor must be in one of the copies")
        self.ends = np.cumsum([0, *(place.size for place in self.places)])
        self.shared = tables.theta / self.count
        sizes = tables.structure.cardinalities
        self.size = float(tables.largest(np.where(np.isfinite(tables.theta), np.abs(tables.theta), 0.0)).sum())
        self.entropy, self.states = float(np.log(sizes).sum()), float(sizes.sum())
        self.steps = max(kept.size for kept in self.kept) + 2 * sizes.size

    @property
    def n_copies(self) -> int:
        """How many copies there are."""
        return len(self.kept)

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

    def weights(self, x: np.ndarray) -> np.ndarray:
        """Positive weights that add up to one."""
        each = np.maximum(softmax(x[self.ends[-1] :]), _LEAST)
        return each / each.sum()

    def solve(self, k: int, scaled: np.ndarray) -> tuple[float, np.ndarray]:
        """``log Z`` of a copy with these tables, and its marginals, block by block."""
        total, mean = 0.0, np.empty(scaled.size)
        for part, place in self.blocks[k]:
            self.alive()
            memory = max(self.memory - outside(part), 256 * place.size)  # a tree always fits
            log_z, _, own = Elimination(part, scaled[place], fast_order(part), memory, 1).beliefs()
            if log_z == -np.inf:
                return -np.inf, np.zeros(0)
            total += log_z
            mean[place] = own
        return total, mean

    def from_shares(self, earlier: "Combination", x: np.ndarray) -> np.ndarray:
        """A point at which the first copies have what they have in `earlier` at `x`, in proportion, and each copy that
        is new an equal share.

        Copies are the same where they keep the same factors.
        """
        known = {
            kept.tobytes(): (z, log_w)
            for kept, z, log_w in zip(earlier.kept, earlier.shares(x), np.log(earlier.weights(x)), strict=True)
        }
        out, share = np.zeros(self.dim), earlier.n_copies / self.n_copies
        finite = np.isfinite(self.tables.theta)
        for k, (kept, place) in enumerate(zip(self.kept, self.places, strict=True)):
            if kept.tobytes() in known:
                z, log_w = known[kept.tobytes()]
                with np.errstate(invalid="ignore"):  # an impossible entry stays as it is in all copies
                    moved = share * z - self.shared[place]
                out[self.ends[k] : self.ends[k + 1]] = np.where(finite[place], moved, 0.0)
                out[self.ends[-1] + k] = np.log(share) + log_w
            else:
                out[self.ends[-1] + k] = -np.log(self.n_copies)
        return out

    def bound(self, x: np.ndarray) -> tuple[float, np.ndarray, float]:
        """The bound, its derivative by `x`, and what rounding may have taken from it."""
        if not np.abs(x).max(initial=0.0) < LARGEST_SUM:  # the search has gone too far to say anything there
            return np.inf, np.zeros(self.dim), 0.0
        shares, weights = self.shares(x), self.weights(x)

        def work(k):
            scaled = shares[k] / weights[k]
            return *self.solve(k, scaled), scaled

        found = side_by_side(work, self.n_copies, None if self.n_jobs is None else min(self.n_jobs, LANES))
        values = np.array([log_z for log_z, _, _ in found])
        if (values == -np.inf).any():
            # Sums of finite entries cannot overflow, so that only entries of minus infinity in theta itself, which are
            # impossible in every copy, make one impossible: then the model is.
            return -np.inf, np.zeros(self.dim), 0.0
        gradient, back = np.zeros(self.dim), np.zeros(self.tables.theta.size)
        by_weight, slack = np.zeros(self.n_copies), self._slack(x)
        for k, (log_z, mean, scaled) in enumerate(found):
            back[self.places[k]] += mean
            likely = mean > 0
            by_weight[k] = log_z - float(mean[likely] @ scaled[likely])  # the entropy of the copy
        back /= self.count
        for k, (_, mean, _) in enumerate(found):
            gradient[self.ends[k] : self.ends[k + 1]] = mean - back[self.places[k]]
        gradient[self.ends[-1] :] = weights * (by_weight - weights @ by_weight)
        value = float(weights @ values)
        slack += rounding(weights @ np.abs(values), self.tables.constant, terms=self.n_copies + 4.0)
        return value + self.tables.constant, gradient, slack

    def _slack(self, x: np.ndarray) -> float:
        """What rounding may have done: shares that do not quite add up to the tables, weights that do not quite add up
        to one, which counts by an entropy, and the eliminations of the copies (see `slack_of_elimination`), of which
        ``sum_k w_k max |z_k / w_k|`` is at most the largest entry and what is moved between copies.
        """
        moved = np.zeros(self.tables.theta.size)
        for k, place in enumerate(self.places):
            moved[place] += np.abs(x[self.ends[k] : self.ends[k + 1]])
        size = self.size + 2.0 * self.n_copies * float(self.tables.largest(moved).sum())
        return (
            self.tables.slack
            + rounding(2.0 * size, self.entropy, terms=4.0 * (self.steps + self.n_copies + 5))
            + rounding(self.states + 2.0 * self.steps, terms=4.0)
        )


def _blocks(structure: Structure, cut: Partition) -> list[tuple[Structure, np.ndarray]]:
    """The blocks of a copy, and where their tables are in it: factors inside, and then single variables."""
    starts = with_fields(structure, cut.kept).table_starts
    out = []
    for block in cut.blocks:
        which = np.concatenate([np.searchsorted(cut.kept, block.factors), cut.kept.size + block.variables])
        out.append((block.part, ranges(starts[:-1][which], np.diff(starts)[which])))
    return out


class Bound(Protocol):
    """A bound that is valid at every point ``x``."""

    @property
    def dim(self) -> int:
        """How many numbers a point has."""
        ...

    def bound(self, x: np.ndarray) -> tuple[float, np.ndarray, float]:
        """Its value at `x`, the derivative, and what rounding may have taken from it."""
        ...


@dataclass(eq=False)
class Tightest:
    """The best point of those tried, its bound with the rounding, and the best bound after each evaluation."""

    point: np.ndarray
    value: float = np.inf
    slack: float = 0.0
    trace: list[float] = field(default_factory=list)


def tighten(
    bound: Bound,
    report: Callable[[Tightest, float, float], bool],
    start: np.ndarray | None = None,
    max_steps: int = 1000,
    tol: float = 1e-5,
) -> Tightest:
    """Minimise a bound by L-BFGS; `report(best, value, slack)` after each evaluation says whether to go on."""
    start = np.zeros(bound.dim) if start is None else start
    best = Tightest(start)

    class Stopped(Exception):  # noqa: N818
        pass

    def objective(x):
        value, gradient, slack = bound.bound(start + x)
        if value + slack < best.value + best.slack:
            best.point, best.value, best.slack = start + x, value, slack
        best.trace.append(best.value + best.slack)
        if not report(best, value, slack) or value == -np.inf or bound.dim == 0:
            raise Stopped
        return value, gradient

    with contextlib.suppress(Stopped):
        minimize(
            objective, np.zeros(bound.dim), jac=True, method="L-BFGS-B",
            options={"maxiter": max_steps, "maxfun": 2 * max_steps, "ftol": tol * 1e-3, "gtol": tol, "maxcor": 10},
        )  # fmt: skip
    return best
