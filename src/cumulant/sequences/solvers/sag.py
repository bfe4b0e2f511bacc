"""The stochastic average gradient on the primal objective of chains."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.optim.finite_sums.stochastic_gradient import positive_or_none
from cumulant.optim.finite_sums.sum_tree_kernels import max_tree_build, tree_build
from cumulant.sequences.chain.problem import ChainProblem
from cumulant.sequences.chain.radius import feature_radii
from cumulant.sequences.solvers.primal import PrimalSolver, memory_of_labels, start
from cumulant.sequences.solvers.sag_kernels import sag_epoch


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
class SequenceSAG(PrimalSolver):
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
    >>> result = optim.run(SequenceSAG(), ChainProblem(data, 2), np.zeros((7, 2)), tol=1e-10, rng=0)
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
        positive_or_none("step_size", self.step_size)
        if self.step_size is not None and self.line_search is not False:
            raise ValueError("a fixed step_size takes the place of the line search: line_search must be False")

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> SAGState:
        """The weights `x0`, and stored gradients of zero."""
        x, n = start(problem, x0), problem.n_terms
        nodes, counts = memory_of_labels(problem)
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
