"""Which variables are joined: the penalised pseudo-likelihood along a path of penalties, and the choice among them."""

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cumulant.certificates import Certificate, Subject
from cumulant.graphical.learning.sparse_problem import AcceleratedPairs, SparseProblem
from cumulant.optim.driver.display import Display
from cumulant.optim.driver.result import Result
from cumulant.optim.driver.run import run

_STEP, _LEAST, _PATIENCE = 0.9, 0.005, 3  # from one penalty to the next, down to this share of the largest
_ROUGH = 1e-4  # the relative gap of the penalties that are not chosen; a tenth of it for second fits
_MAX_STEPS = 5000
_NO_PAIRS = np.zeros((0, 2), np.int64)


@dataclass(frozen=True)
class SparseStructure:
    """Pairs of variables that data join, and how they were chosen.

    Attributes
    ----------
    edges : array (edges, 2)
    penalties : array
        The values of ``l1`` that were tried, the largest first.
    n_edges : array
        How many pairs the minimum at each of them has; `edges` may be fewer.
    criterion : array
        The criterion of each; NaN where a penalty was given and nothing had to be chosen.
    chosen : int
        Which of them `edges` are those of.
    certificate : Certificate or None
        How far the penalised objective at the chosen penalty is from its minimum: a duality gap.
    status : str
        As in `optim.run`; ``"time_limit"`` and ``"interrupted"`` where the path ended early.
    theta : array
        The (nearly) minimising parameters at the chosen penalty.
    problem : SparseProblem
        What was minimised there.
    seconds : float
    """

    edges: np.ndarray
    penalties: np.ndarray
    n_edges: np.ndarray
    criterion: np.ndarray
    chosen: int
    certificate: Certificate | None
    status: str
    theta: np.ndarray = field(repr=False)
    problem: SparseProblem = field(repr=False)
    seconds: float = 0.0

    @property
    def subject(self) -> Subject:
        """What the certificate speaks of: ``found.certificate.verify(found.subject)`` issues it again."""
        return Subject(self.problem, self.theta)

    def __str__(self):
        n, total = len(self.edges), self.problem.starts.size * (self.problem.starts.size - 1) // 2
        lines = [f"{n} of {total} pairs at l1 = {self.penalties[self.chosen]:.4g}, {self.status}, {self.seconds:.2g} s"]
        return "\n".join(lines + ([] if self.certificate is None else [f"  {self.certificate}"]))


def sparse_structure(
    data: Any,
    cardinalities: Any = None,
    *,
    l1: float | None = None,
    l2: float | None = None,
    gamma: float = 0.5,
    tol: float = 1e-6,
    spins: bool | None = None,
    time_limit: float | None = None,
    progress: Any = None,
) -> SparseStructure:
    """The pairs of variables that are joined, by the pseudo-likelihood with a penalty on every pair.

    For each of a path of penalties ``l1`` the convex problem of `SparseProblem` is solved, from the last solution, and
    the parameters of the pairs that are left are fitted again without the penalty. The penalty with the smallest
    ``EBIC = n f + sum_e k_e log n + 4 gamma |E| log d`` is chosen, over ``n`` observations of ``d`` variables: ``f`` is
    the pseudo-likelihood of the second fit and ``k_e`` the number of parameters of a pair. This is the criterion of
    Foygel and Drton (2010) with ``n f`` in the place of twice the likelihood, because a pair is in two of the
    conditionals. The path ends after 3 sets of pairs in a row that are worse than the best before them. Of the chosen
    set, pairs are removed one after the other, the weakest first, where that makes the criterion smaller.

    Missing values (NaN) are taken as the mean of their variable in the conditionals of the others, and have none
    themselves: see `SparseProblem`.

    Parameters
    ----------
    data : array of shape (observations, variables)
        Spins -1 and +1, or states 0, 1, 2, ...; NaN is missing.
    cardinalities : sequence of int, optional
        How many states each variable has; as many as occur without it. Not for spins.
    l1 : float, optional
        The penalty; without it, the one that the criterion chooses.
    l2 : float, optional
        A small penalty on all parameters, ``1 / n`` without it; positive, since the certificate rests on it.
    gamma : float
        0 is the Bayesian information criterion, larger values allow fewer false pairs among many.
    tol : float
        The relative duality gap at the chosen penalty.
    spins : bool, optional
        Whether the data are spins; without it, whether -1 is among them.
    time_limit, progress
        As in `optim.run`; the bar counts penalties.

    Examples
    --------
    >>> from cumulant.graphical import Ising, grid
    >>> x = Ising(grid(3, 3), 0.5).sample(1000, rng=0)
    >>> found = sparse_structure(x)
    >>> sorted(map(tuple, found.edges.tolist())) == sorted(map(tuple, grid(3, 3).tolist()))
    True
    >>> found.certificate.upper < 1e-5
    True
    """
    x, sizes = _validated(data, cardinalities, spins)
    for name, value, least in (("l1", l1, 0.0), ("gamma", gamma, 0.0), ("tol", tol, 0.0)):
        if value is not None and not (math.isfinite(value) and value >= least):
            raise ValueError(f"{name} must be finite and not negative; got {value}")
    l2 = 1.0 / len(x) if l2 is None else l2
    if not (math.isfinite(l2) and l2 > 0):
        raise ValueError(f"l2 must be positive and finite: the certificate of the structure rests on it; got {l2}")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds; got {time_limit}")
    d = x.shape[1]
    problem = SparseProblem.of(x, sizes, l2, ~np.eye(d, dtype=bool))
    search = _Search(problem, float(gamma), float(tol), time_limit)
    with Display(progress, "Structure: penalties", None if l1 is not None else search.most) as display:
        return search.given(float(l1)) if l1 is not None else search.path(display)


@dataclass
class _Search:
    """The settings of a search, and what it knows so far."""

    problem: SparseProblem
    gamma: float
    tol: float
    time_limit: float | None
    curvature: float = 1.0

    def __post_init__(self):
        self.began = time.perf_counter()
        self.most = 1 + math.ceil(math.log(_LEAST) / math.log(_STEP))

    def given(self, l1: float) -> SparseStructure:
        """At one penalty."""
        start = self._solve(self.problem.along(0.0, _NO_PAIRS), np.zeros(self.problem.shape), _ROUGH)
        return self._answer([l1], [0], [math.nan], 0, start.x, "")

    def path(self, display: Display) -> SparseStructure:
        """From the penalty at which no pair is left, down, until the criterion says that it was enough."""
        found = self._solve(self.problem.along(0.0, _NO_PAIRS), np.zeros(self.problem.shape), self.tol)
        gradient = self.problem.loss_gradient(self.problem.slopes(self.problem.scores(found.x)))
        largest = max(float((self.problem.norms(gradient[1:]) / self.problem.weights).max(initial=0.0)), 1e-300)
        penalties, counts = [largest], [0]
        criteria, solutions, status = [self._criterion(found.x, _NO_PAIRS)], [found.x], ""
        last, worse = _NO_PAIRS, 0
        for k in range(1, self.most):
            l1 = largest * _STEP**k
            found = self._solve(self.problem.along(l1), solutions[-1], _ROUGH)
            if found.status in ("time_limit", "interrupted"):
                status = found.status
                break
            edges = self.problem.edges(found.x)
            if np.array_equal(edges, last):
                criteria.append(criteria[-1])
            else:
                again = self._solve(self.problem.along(0.0, edges), found.x, 0.1 * _ROUGH)
                if again.status in ("time_limit", "interrupted"):
                    status = again.status
                    break
                criteria.append(self._criterion(again.x, edges))
                last, worse = edges, 0 if criteria[-1] <= min(criteria) else worse + 1
            penalties.append(l1)
            counts.append(len(edges))
            solutions.append(found.x)
            display.update(k + 1, self._seconds(), min(criteria), math.inf)
            if worse >= _PATIENCE:
                break
        best = int(np.argmin(criteria))
        return self._answer(penalties, counts, criteria, best, solutions[best], status, prune=True)

    def _pruned(self, edges: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Without the pairs that the criterion can do without, tried from the smallest `W` on, until 3 in a row stay.

        Along the path a pair can enter before it is needed: two neighbours of one variable are correlated too.
        """
        found = self._solve(self.problem.along(0.0, edges), theta, 0.1 * _ROUGH)
        best, kept = self._criterion(found.x, edges), 0
        sizes = self.problem.norms(found.x[1:])[tuple(edges.T)]
        for pair in edges[np.argsort(sizes, kind="stable")]:
            if kept >= _PATIENCE or found.status in ("time_limit", "interrupted"):
                break
            fewer = edges[(edges != pair).any(axis=1)]
            found = self._solve(self.problem.along(0.0, fewer), found.x, 0.1 * _ROUGH)
            value = self._criterion(found.x, fewer)
            if value < best and found.status not in ("time_limit", "interrupted"):
                edges, best, kept = fewer, value, 0
            else:
                kept += 1
        return edges

    def _answer(self, penalties, counts, criteria, chosen, start, status, prune=False) -> SparseStructure:
        problem = self.problem.along(penalties[chosen])
        found = self._solve(problem, start, self.tol)
        edges = problem.edges(found.x)
        counts[chosen] = len(edges)
        edges = self._pruned(edges, found.x) if prune and not status else edges
        return SparseStructure(
            edges, np.array(penalties), np.array(counts), np.array(criteria), chosen, found.certificate,
            status or found.status, found.x, problem, self._seconds(),
        )  # fmt: skip

    def _solve(self, problem: SparseProblem, start: np.ndarray, tol: float) -> Result:
        left = None if self.time_limit is None else max(self.time_limit - self._seconds(), 1e-3)
        solver = AcceleratedPairs(self.curvature)
        found = run(solver, problem, start, max_steps=_MAX_STEPS, tol=tol, progress=False, time_limit=left)
        if found.state is not None:
            self.curvature = found.state.curvature
        return found

    def _criterion(self, theta: np.ndarray, edges: np.ndarray) -> float:
        problem = self.problem
        n, d = len(problem.features), problem.starts.size
        widths = np.diff(np.append(problem.starts, problem.features.shape[1]))
        free = np.ones(d) if problem.spins else widths - 1.0
        parameters = float((free[edges[:, 0]] * free[edges[:, 1]]).sum())
        loss = problem.loss(problem.scores(theta))
        return n * loss + parameters * math.log(n) + 4.0 * self.gamma * len(edges) * math.log(d)

    def _seconds(self) -> float:
        return time.perf_counter() - self.began


def _validated(data: Any, cardinalities: Any, spins: bool | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The data as float64, NaN where missing, and the number of states of each variable; None for spins."""
    x = np.asarray(data, dtype=np.float64)
    if x.ndim != 2 or not x.size or np.isinf(x).any():
        raise ValueError(f"data must be numbers of shape (observations, variables), or NaN; got shape {x.shape}")
    known = x[~np.isnan(x)]
    spins = cardinalities is None and bool((known == -1).any()) if spins is None else spins
    if spins:
        if not np.isin(known, (-1, 1)).all():
            raise ValueError("data must be spins -1 and +1, or states 0, 1, 2, ...; it has -1 and others than +1")
        return x, None
    if (known != np.floor(known)).any() or known.min(initial=0.0) < 0:
        raise ValueError("data must be spins -1 and +1, or states 0, 1, 2, ...")
    found = np.maximum(np.nanmax(np.vstack([x, np.zeros(x.shape[1])]), axis=0).astype(np.int64) + 1, 1)
    sizes = found if cardinalities is None else np.asarray(cardinalities, dtype=np.int64)
    if sizes.shape != found.shape or (sizes < found).any():
        raise ValueError(f"cardinalities must be {x.shape[1]} numbers, none below the states that occur; got {sizes}")
    return x, sizes
