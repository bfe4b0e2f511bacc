"""Stochastic gradients whose noise goes away: SAG, SAGA and SVRG, linear on strongly convex problems."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.optim.finite_sums.finite_sum import Rows, finite_sum, rows_of, term_constants
from cumulant.optim.finite_sums.finite_sum_kernels import all_slopes, draws
from cumulant.optim.finite_sums.finite_sum_programs import every_gradient, reduced_program
from cumulant.optim.finite_sums.stochastic_gradient import FiniteSumSolver, positive_or_none
from cumulant.optim.finite_sums.variance_reduced_kernels import reduced_updates

_SAG, _SAGA, _SVRG = 0, 1, 2


class VarianceReducedState(NamedTuple):
    """The iterate, what is stored of the terms, and the position in the stream of draws.

    For losses of rows `table` holds a slope for each score, ``(n, K)``; else a gradient for each term.
    """

    x: np.ndarray
    total: np.ndarray
    table: np.ndarray
    seen: np.ndarray
    step_size: float
    updates: int
    gradients: int
    sweep: int
    seed: int


class _VarianceReduced(FiniteSumSolver):
    """What the three methods share."""

    step_size: float | None

    default: ClassVar[float]  # the step size is this over the largest smoothness of a term
    method: ClassVar[int]

    def init(self, problem: Any, x0: Any, rng: Any) -> VarianceReducedState:
        """The point `x0`, and stored gradients of zero."""
        x, rows, n = np.array(x0, dtype=np.float64), rows_of(problem), problem.n_terms
        if rows is None:
            problem = finite_sum(problem)
        size = self.step_size
        if size is None:
            largest = float(term_constants(problem).max())
            if not largest > 0:
                raise ValueError("every term is constant: there is nothing to minimise")
            size = self.default / largest
        table = np.zeros((n, rows.outputs) if rows is not None else (n, *x.shape))
        return VarianceReducedState(
            x, np.zeros_like(x), table, np.zeros(n, np.int64), float(size), 0, 0, 0, randomness.seed(rng)
        )

    def _remember_all(self, problem: Any, state: VarianceReducedState) -> VarianceReducedState:
        """Store every gradient at the iterate."""
        rows = rows_of(problem)
        if rows is None:
            table, total = every_gradient(finite_sum(problem), state.x)
            state = state._replace(table=table, total=total)
        else:
            all_slopes(*rows[:6], _columns(rows, state.x), state.table, _columns(rows, state.total))
        state.seen[:] = 1
        return state._replace(gradients=state.gradients + problem.n_terms)

    def _advance(
        self, problem: Any, state: VarianceReducedState, order: np.ndarray, *, plain: bool = True, made: int = -1
    ) -> VarianceReducedState:
        """The first `made` of the updates of `order`."""
        rows, made = rows_of(problem), len(order) if made < 0 else made
        if rows is None:
            # The others are of size zero: a program for every length would have to be compiled.
            sizes = np.where(np.arange(len(order)) < made, state.step_size, 0.0)
            x, total, table, seen = reduced_program(
                finite_sum(problem), state.x, state.total, state.table, state.seen, sizes, order,
                method=self.method, plain=plain,
            )  # fmt: skip
            state = state._replace(x=x, total=total, table=table, seen=seen)
        else:
            reduced_updates(
                *rows[:6], rows.scale, rows.l2, _columns(rows, state.x), _columns(rows, state.total), state.table,
                state.seen, self.method, plain, state.step_size, order[:made],
            )  # fmt: skip
        return state._replace(updates=state.updates + made, gradients=state.gradients + made, sweep=state.sweep + 1)


def _columns(rows: Rows, x: np.ndarray) -> np.ndarray:
    return x.reshape(x.shape[0], rows.outputs)


@dataclass(frozen=True)
class SAG(_VarianceReduced):
    """Stochastic average gradient (Schmidt, Le Roux and Bach 2017): ``x <- (1 - tau l2) x - (tau / m) sum_i g_i``.

    ``g_i`` is the gradient of term ``i`` when it was last visited, zero before; ``m`` the number of terms visited so
    far, which makes the first pass as fast as that of `SGD` (``normalise="all"``: all ``n``, as in the theorem). For
    losses of rows only a slope for each score is stored, and a row costs what its non-zero entries do.

    With ``tau = 1 / (16 L)``, ``L`` the largest smoothness of a term: `rates.sag` (with ``normalise="all"``, and the
    penalty among the terms).

    Parameters
    ----------
    step_size : float, optional
        ``1 / L`` by default, which is usual; ``1 / (16 L)`` is proven.
    normalise : str
        ``"seen"`` or ``"all"``.
    updates : int, optional
        Updates in one step of `run`; ``n`` by default.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Logistic([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.0]], [1, -1, 1], l2=0.1)
    >>> optim.run(SAG(), problem, [0.0, 0.0], tol=1e-10, rng=0).status
    'converged'
    """

    step_size: float | None = None
    normalise: str = "seen"
    updates: int | None = None

    default: ClassVar[float] = 1.0
    method: ClassVar[int] = _SAG

    def __post_init__(self):
        positive_or_none("step_size", self.step_size)
        positive_or_none("updates", self.updates, whole=True)
        if self.normalise not in ("seen", "all"):
            raise ValueError(f"normalise must be 'seen' or 'all'; got {self.normalise!r}")

    def step(self, problem: Any, state: VarianceReducedState) -> VarianceReducedState:
        """As many updates as `updates` says."""
        n = problem.n_terms
        order = draws(state.seed, state.sweep, n, self.updates or n)
        return self._advance(problem, state, order, plain=self.normalise == "all")


@dataclass(frozen=True)
class SAGA(_VarianceReduced):
    """SAGA (Defazio, Bach and Lacoste-Julien 2014): ``x <- (1 - tau l2) x - tau (grad f_i(x) - g_i + mean g)``.

    The stored gradients ``g`` are those at the start, then those of the last visits. The direction is the gradient on
    average, unlike that of `SAG`. Memory and cost are the same.

    Parameters
    ----------
    step_size : float, optional
        ``1 / (3 L)`` by default, ``L`` the largest smoothness of a term: `rates.saga`.
    updates : int, optional
        Updates in one step of `run`; ``n`` by default.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Logistic([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.0]], [1, -1, 1], l2=0.1)
    >>> optim.run(SAGA(), problem, [0.0, 0.0], tol=1e-10, rng=0).status
    'converged'
    """

    step_size: float | None = None
    updates: int | None = None

    default: ClassVar[float] = 1.0 / 3.0
    method: ClassVar[int] = _SAGA

    def __post_init__(self):
        positive_or_none("step_size", self.step_size)
        positive_or_none("updates", self.updates, whole=True)

    def init(self, problem: Any, x0: Any, rng: Any) -> VarianceReducedState:
        """The point `x0`, and the gradients there: one pass."""
        return self._remember_all(problem, super().init(problem, x0, rng))

    def step(self, problem: Any, state: VarianceReducedState) -> VarianceReducedState:
        """As many updates as `updates` says."""
        n = problem.n_terms
        return self._advance(problem, state, draws(state.seed, state.sweep, n, self.updates or n))


@dataclass(frozen=True)
class SVRG(_VarianceReduced):
    """Stochastic variance-reduced gradient (Johnson and Zhang 2013).

    ``x <- x - tau (grad f_i(x) - grad f_i(s) + grad f(s))`` with a snapshot ``s``. A step of `run` is a stage: a
    snapshot, for which every gradient is computed and kept, and `inner` updates.

    Parameters
    ----------
    step_size : float, optional
        ``1 / (10 L)`` by default, ``L`` the largest smoothness of a term.
    inner : int, optional
        Updates between two snapshots; ``2 n`` by default.
    snapshot : str
        ``"last"``: a stage ends with its last iterate. ``"random"``: with its ``t``-th, ``t`` uniform in 0, ...,
        ``inner - 1``, for which the rate is proven (`rates.svrg`); the updates after it are not made.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Logistic([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.0]], [1, -1, 1], l2=0.1)
    >>> optim.run(SVRG(), problem, [0.0, 0.0], tol=1e-10, rng=0).status
    'converged'
    """

    step_size: float | None = None
    inner: int | None = None
    snapshot: str = "last"

    default: ClassVar[float] = 0.1
    method: ClassVar[int] = _SVRG

    def __post_init__(self):
        positive_or_none("step_size", self.step_size)
        positive_or_none("inner", self.inner, whole=True)
        if self.snapshot not in ("last", "random"):
            raise ValueError(f"snapshot must be 'last' or 'random'; got {self.snapshot!r}")

    def step(self, problem: Any, state: VarianceReducedState) -> VarianceReducedState:
        """One stage."""
        state = self._remember_all(problem, state)
        inner = self.inner or 2 * problem.n_terms
        # One more draw than there are updates: the last says where a random stage stops.
        drawn = draws(state.seed, state.sweep, problem.n_terms, inner)
        stop = int(draws(state.seed, state.sweep, inner, inner + 1)[-1]) if self.snapshot == "random" else inner
        return self._advance(problem, state, drawn, made=stop)
