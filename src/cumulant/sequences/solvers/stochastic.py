"""Stochastic gradient methods on the primal objective of chains: SAG, SAGA, SVRG, SGD; and gradient descent.

All of them minimise ``P(w) = l2/2 |w|^2 + (1/n) sum_i phi_i(w)`` of a `ChainProblem` without an l1 penalty. A step is
an epoch: ``n`` updates, each of one sequence (one of all, for gradient descent). Their certificate is
``P(w) - P* <= |grad P(w)|^2 / (2 l2)``, which takes one pass over the data and knows nothing of the run.

Every trace has the columns ``updates`` (of the weights), ``oracle_calls`` (sequences whose marginals or log-partition
function were computed) and ``line_search_evaluations`` (those among them that a line search asked for). Passes made to
measure are not counted.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.certificates import Certificate, Subject
from cumulant.optim.finite_sums.sum_tree_kernels import max_tree_build, tree_build
from cumulant.optim.protocol import Solver
from cumulant.sequences.certify import certify_weights
from cumulant.sequences.chain.problem import ChainProblem
from cumulant.sequences.chain.radius import feature_radii
from cumulant.sequences.solvers.sag_kernels import sag_epoch
from cumulant.sequences.solvers.stochastic_kernels import refresh, saga_epoch, sgd_epoch

__all__ = ["SAG", "SAGA", "SGD", "SVRG", "GradientDescent"]


class _Primal(Solver):
    """What the methods share: where the weights are, what is measured there, and the certificate."""

    backend: ClassVar[str] = "host"

    def solution(self, problem: ChainProblem, state: Any) -> np.ndarray:
        """The weights."""
        return state.x

    def measure(self, problem: ChainProblem, state: Any) -> dict[str, float]:
        """The objective, the bound on its distance to the minimum, and the work so far."""
        value, gradient = problem.value_and_gradient(self.solution(problem, state))
        return _measured(problem, value, gradient, state)

    def certify(self, problem: ChainProblem, state: Any) -> Certificate:
        """``P(w) - P* <= |grad P(w)|^2 / (2 l2)``."""
        return certify_weights(*self.subject(problem, state))

    def subject(self, problem: ChainProblem, state: Any) -> Subject:
        """The problem and the weights."""
        return Subject(problem, self.solution(problem, state))


def _measured(problem, value, gradient, state):
    return {
        "value": value,
        "bound": float(np.vdot(gradient, gradient)) / (2 * problem.strong_convexity),
        "updates": float(state.updates),
        "oracle_calls": float(state.counters[0]),
        "line_search_evaluations": float(state.counters[1]),
    }


def _start(problem: ChainProblem, x0: Any) -> np.ndarray:
    if problem.l1:
        raise ValueError("stochastic gradient methods need a differentiable objective: l1 must be 0")
    return np.array(x0, dtype=np.float64).reshape(problem.shape)


def _memory_of_labels(problem: ChainProblem) -> tuple[np.ndarray, np.ndarray]:
    """Nodes ``(N, K)`` and counts of transitions ``(n, K, K)`` of the labels: stored gradients that are zero."""
    labels, k = problem.labels, problem.n_labels
    nodes, counts = np.zeros((len(labels), k)), np.zeros((problem.n_terms, k, k))
    nodes[np.arange(len(labels)), labels] = 1.0
    sequence = np.repeat(np.arange(problem.n_terms), problem.data.lengths)
    left = np.flatnonzero(sequence[:-1] == sequence[1:])
    np.add.at(counts, (sequence[left], labels[left], labels[left + 1]), 1.0)
    return nodes, counts


def _positive_or_none(name: str, value: float | None) -> None:
    if value is not None and not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a positive number or None; got {value!r}")


# Stochastic average gradient ------------------------------------------------------------------------------------------


class SAGState(NamedTuple):
    """The weights, the sum of the stored gradients, what they are made of, and the constants of the sequences."""

    x: np.ndarray
    total: np.ndarray
    nodes: np.ndarray
    counts: np.ndarray
    order: np.ndarray
    places: np.ndarray
    constants: np.ndarray
    streaks: np.ndarray
    waits: np.ndarray
    tree: np.ndarray
    peaks: np.ndarray
    status: np.ndarray
    counters: np.ndarray
    sweep: int
    updates: int
    seed: int


@dataclass(frozen=True)
class SAG(_Primal):
    """Stochastic average gradient (Schmidt, Le Roux, Bach 2017), with non-uniform sampling for chains.

    ``w <- (1 - gamma l2) w - (gamma / m) sum_j g_j``, where ``g_j`` is the gradient of sequence ``j`` when it was last
    visited and ``m`` the number of sequences visited so far. What is stored of a sequence are its marginals of nodes
    and its ``K x K`` expected transitions, ``8 K (N + n K)`` bytes in all, where dual ascent keeps ``8 K^2 (N - n)``.

    Parameters
    ----------
    sampling : str
        ``"uniform"``, or ``"nus"``: half of the draws in proportion to the constants ``L_i`` of the sequences (Schmidt
        et al. 2015).
    line_search : bool or "skip"
        True: ``L_i`` is doubled while ``f_i(w - g_i / L_i) > f_i(w) - |g_i|^2 / (2 L_i)``; each trial is an oracle
        call. With uniform sampling one ``L`` serves all. ``"skip"``: after ``k`` searches in a row that did not raise
        ``L_i`` the next ``2^(k - 1)`` visits make none (SAG-NUS*). False: ``L_i`` is the squared radius of the
        features, a bound.
    variant : str
        For ``sampling="nus"`` with a line search. ``"recalled"``: constants shrink to 0.9 after a search that did not
        raise them; the step is ``(1 / L_max + 1 / L_mean) / 2``, the penalty added to both. ``"port"``, after published
        code for linear models: sequences not seen yet are drawn first with probability ``(n - m) / n``, constants are
        halved before each search, and the largest decays by ``2^(-1/n)``; a gradient too small to search along leaves
        its constant alone.
    step_size : float, optional
        A fixed step instead, without a line search; ``1 / (16 L)`` is safe, ``1 / L`` is usual.

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.sequences import ChainProblem, SequenceData
    >>> data = SequenceData([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 2, 3], [0, 1, 0])
    >>> result = optim.run(SAG(), ChainProblem(data, 2), np.zeros((7, 2)), tol=1e-10, rng=0)
    >>> result.status, round(result.value, 6)
    ('converged', 0.578004)
    """

    sampling: str = "nus"
    line_search: bool | str = True
    variant: str = "recalled"
    step_size: float | None = None

    def __post_init__(self):
        if self.sampling not in ("uniform", "nus"):
            raise ValueError(f"sampling must be 'uniform' or 'nus'; got {self.sampling!r}")
        if not (isinstance(self.line_search, bool) or self.line_search == "skip"):
            raise ValueError(f"line_search must be True, False or 'skip'; got {self.line_search!r}")
        if self.variant not in ("recalled", "port"):
            raise ValueError(f"variant must be 'recalled' or 'port'; got {self.variant!r}")
        if self.variant == "port" and (self.sampling != "nus" or self.line_search is False):
            raise ValueError("variant='port' is a way of non-uniform sampling with a line search")
        _positive_or_none("step_size", self.step_size)
        if self.step_size is not None and self.line_search is not False:
            raise ValueError("a fixed step_size takes the place of the line search: line_search must be False")

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> SAGState:
        """The weights `x0`, and stored gradients of zero."""
        x, n = _start(problem, x0), problem.n_terms
        nodes, counts = _memory_of_labels(problem)
        if self.line_search is False:
            constants = feature_radii(problem)
            known, largest = constants, float(constants.max())
            peaks = max_tree_build(constants)
        else:
            constants, known, largest = np.ones(n), np.zeros(n), 0.0 if self.variant == "port" else 1.0
            peaks = max_tree_build(np.full(n, -np.inf))
        numbers = np.arange(n)
        return SAGState(
            x, np.zeros_like(x), nodes, counts, numbers, numbers.copy(), constants, np.zeros(n, np.int64),
            np.zeros(n, np.int64), tree_build(known), peaks, np.array([0.0, largest]), np.zeros(2), 0, 0,
            randomness.seed(rng),
        )  # fmt: skip

    def step(self, problem: ChainProblem, state: SAGState) -> SAGState:
        """One epoch."""
        search = 2 if self.line_search == "skip" else int(self.line_search)
        sag_epoch(
            state.x, state.total, problem.bias, *problem.tokens, problem.data.offsets, problem.labels,
            *problem.attributes_of_sequences, *state[2:12], self.sampling == "nus", search, self.variant == "port",
            float(self.step_size or 0.0), problem.l2, problem.n_terms, state.seed, state.sweep, state.counters,
        )  # fmt: skip
        return state._replace(sweep=state.sweep + 1, updates=state.updates + problem.n_terms)


# SAGA and SVRG --------------------------------------------------------------------------------------------------------


class VarianceReducedState(NamedTuple):
    """The weights, the sum of the stored gradients and what they are made of."""

    x: np.ndarray
    total: np.ndarray
    nodes: np.ndarray
    counts: np.ndarray
    step_size: float
    counters: np.ndarray
    sweep: int
    updates: int
    seed: int


def _variance_reduced(problem, x0, rng, step_size):
    x = _start(problem, x0)
    nodes, counts = _memory_of_labels(problem)
    return VarianceReducedState(
        x, np.zeros_like(x), nodes, counts, float(step_size), np.zeros(2), 0, 0, randomness.seed(rng)
    )


def _epoch(problem, state, remember):
    starts, rows, _ = problem.attributes_of_sequences
    saga_epoch(
        state.x, state.total, problem.bias, *problem.tokens, problem.data.offsets, starts, rows, state.nodes,
        state.counts, remember, state.step_size, problem.l2, problem.n_terms, state.seed, state.sweep, state.counters,
    )  # fmt: skip
    return state._replace(sweep=state.sweep + 1, updates=state.updates + problem.n_terms)


@dataclass(frozen=True)
class SAGA(_Primal):
    """SAGA (Defazio, Bach, Lacoste-Julien 2014): ``w <- w - gamma (g_i - stored_i + mean stored + l2 w)``.

    The direction is the gradient on average, unlike that of `SAG`. The memory is the same.

    Parameters
    ----------
    step_size : float, optional
        ``1 / (3 (L + l2))`` by default, ``L`` the largest squared radius of the features.
    """

    step_size: float | None = None

    def __post_init__(self):
        _positive_or_none("step_size", self.step_size)

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> VarianceReducedState:
        """The weights `x0`, and stored gradients of zero."""
        step = self.step_size or 1 / (3 * (feature_radii(problem).max() + problem.l2))
        return _variance_reduced(problem, x0, rng, step)

    def step(self, problem: ChainProblem, state: VarianceReducedState) -> VarianceReducedState:
        """One epoch."""
        return _epoch(problem, state, remember=True)


@dataclass(frozen=True)
class SVRG(_Primal):
    """Stochastic variance-reduced gradient (Johnson, Zhang 2013).

    ``w <- w - gamma (grad phi_i(w) - grad phi_i(s) + mean grad phi(s) + l2 w)``, with a snapshot ``s`` of the weights
    taken every `snapshot_epochs` epochs by a pass over the data. The marginals of the snapshot are kept, as in `SAG`,
    so that an update takes one oracle call, not two.

    Parameters
    ----------
    step_size : float, optional
        ``1 / (10 (L + l2))`` by default, ``L`` the largest squared radius of the features.
    snapshot_epochs : int
    """

    step_size: float | None = None
    snapshot_epochs: int = 2

    def __post_init__(self):
        _positive_or_none("step_size", self.step_size)
        if self.snapshot_epochs < 1:
            raise ValueError(f"snapshot_epochs must be at least 1; got {self.snapshot_epochs}")

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> VarianceReducedState:
        """The weights `x0`."""
        step = self.step_size or 1 / (10 * (feature_radii(problem).max() + problem.l2))
        return _variance_reduced(problem, x0, rng, step)

    def step(self, problem: ChainProblem, state: VarianceReducedState) -> VarianceReducedState:
        """One epoch, before which a snapshot may be due."""
        if state.sweep % self.snapshot_epochs == 0:
            refresh(
                state.x, problem.bias, *problem.tokens, problem.data.offsets, problem.labels, state.nodes, state.counts,
                state.total,
            )  # fmt: skip
            state.counters[0] += problem.n_terms
        return _epoch(problem, state, remember=False)


# Stochastic gradient descent ------------------------------------------------------------------------------------------


class SGDState(NamedTuple):
    """The weights, and the sum of all weights so far, the ``t``-th ``t`` times."""

    x: np.ndarray
    running: np.ndarray
    first_step: float
    decrease: float
    counters: np.ndarray
    sweep: int
    updates: int
    seed: int


@dataclass(frozen=True)
class SGD(_Primal):
    """Stochastic gradient descent: ``w <- w - gamma_t (grad phi_i(w) + l2 w)``.

    With ``L`` the smoothness of each term (the largest squared radius of the features, plus ``l2``), ``sigma^2`` the
    mean of ``|grad phi_i(w*) + l2 w*|^2`` and ``gamma <= 1 / (2 L)``, one update has
    ``E |w' - w*|^2 <= (1 - gamma l2) |w - w*|^2 + 2 gamma^2 sigma^2``. Hence

    * constant steps: ``E P(w_t) - P* <= L/2 (1 - gamma l2)^t |w_0 - w*|^2 + gamma sigma^2 L / l2``;
    * decreasing steps ``gamma_t = 2 / (4 L + l2 t)``: ``E |w_t - w*|^2 <= C / (t + 4 L / l2)`` with
      ``C = max(4 L |w_0 - w*|^2, 8 sigma^2 / l2) / l2``.

    Parameters
    ----------
    schedule : str
        ``"decreasing"`` or ``"constant"``.
    step_size : float, optional
        The first step; ``1 / (2 L)`` by default.
    average : bool
        Whether the answer is the mean of the iterates, the ``t``-th weighted by ``t``, rather than the last one.
    """

    schedule: str = "decreasing"
    step_size: float | None = None
    average: bool = False

    def __post_init__(self):
        if self.schedule not in ("decreasing", "constant"):
            raise ValueError(f"schedule must be 'decreasing' or 'constant'; got {self.schedule!r}")
        _positive_or_none("step_size", self.step_size)

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> SGDState:
        """The weights `x0`."""
        x = _start(problem, x0)
        first = float(self.step_size or 1 / (2 * (feature_radii(problem).max() + problem.l2)))
        decrease = 0.5 * first * problem.l2 if self.schedule == "decreasing" else 0.0
        running = np.zeros(problem.shape if self.average else (1, problem.n_labels))
        return SGDState(x, running, first, decrease, np.zeros(2), 0, 0, randomness.seed(rng))

    def step(self, problem: ChainProblem, state: SGDState) -> SGDState:
        """One epoch."""
        sgd_epoch(
            state.x, state.running, self.average, problem.bias, *problem.tokens, problem.data.offsets, problem.labels,
            state.first_step, state.decrease, problem.l2, problem.n_terms, state.seed, state.sweep, state.counters,
        )  # fmt: skip
        return state._replace(sweep=state.sweep + 1, updates=state.updates + problem.n_terms)

    def solution(self, problem: ChainProblem, state: SGDState) -> np.ndarray:
        """The last weights, or their weighted mean."""
        if not self.average or state.updates == 0:
            return state.x
        return state.running * (2.0 / (state.updates * (state.updates + 1.0)))


# Gradient descent -----------------------------------------------------------------------------------------------------


class GradientDescentState(NamedTuple):
    """The iterate with the value and gradient there, and the constant to try next."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    constant: float
    counters: np.ndarray
    updates: int


@dataclass(frozen=True)
class GradientDescent(_Primal):
    """Gradient descent on a `ChainProblem`: ``w <- w - grad P(w) / L``, the relaxed fixed-point iteration of (3.8).

    ``|w_t - w*| <= (1 - l2 / L)^t |w_0 - w*|`` for ``L`` at least the smoothness of ``P``. Here a step is one update,
    of ``n`` oracle calls.

    Parameters
    ----------
    step_size : str
        ``"1/L"``: ``L = l2 + mean R_i``, ``R_i`` the squared radii of the features. ``"backtracking"``: ``L`` is
        doubled while ``P(w - g / L) > P(w) - |g|^2 / (2 L)``, and halved before the next step.
    """

    step_size: str = "1/L"

    def __post_init__(self):
        if self.step_size not in ("1/L", "backtracking"):
            raise ValueError(f"step_size must be '1/L' or 'backtracking'; got {self.step_size!r}")

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> GradientDescentState:
        """The value and gradient at `x0`."""
        x = _start(problem, x0)
        value, gradient = problem.value_and_gradient(x)
        constant = problem.l2 + float(np.mean(feature_radii(problem)))
        return GradientDescentState(x, value, gradient, constant, np.array([float(problem.n_terms), 0.0]), 0)

    def step(self, problem: ChainProblem, state: GradientDescentState) -> GradientDescentState:
        """One update."""
        backtracking = self.step_size == "backtracking"
        largest = state.constant
        constant = max(0.5 * largest, problem.l2) if backtracking else largest
        squared = float(np.vdot(state.gradient, state.gradient))
        fuzz = 4e-16 * abs(state.value)  # next to the minimum the promised decrease is below the rounding of the value
        counters = state.counters.copy()
        while True:
            x = state.x - state.gradient / constant
            value, gradient = problem.value_and_gradient(x)
            counters[0] += problem.n_terms
            counters[1] += problem.n_terms * backtracking
            if not backtracking or value <= state.value - squared / (2 * constant) + fuzz or constant > 1e6 * largest:
                break
            constant *= 2.0
        return GradientDescentState(x, value, gradient, constant, counters, state.updates + 1)

    def measure(self, problem: ChainProblem, state: GradientDescentState) -> dict[str, float]:
        """The objective, the bound on its distance to the minimum, and the work so far."""
        return _measured(problem, state.value, state.gradient, state)
