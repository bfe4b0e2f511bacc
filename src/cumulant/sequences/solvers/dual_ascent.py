"""Dual coordinate ascent on chains and trees, with adaptive sampling of sequences and several blocks."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant import checks, randomness
from cumulant.certificates import Certificate, Subject
from cumulant.optim.finite_sums.sum_tree_kernels import max_tree_build, tree_build
from cumulant.optim.protocol import Solver
from cumulant.sequences.certify import certify_gap
from cumulant.sequences.chain.problem import ChainProblem
from cumulant.sequences.tree.problem import TreeProblem
from cumulant.threads import side_by_side

SequenceProblem = ChainProblem | TreeProblem

_SCHEMES = {"uniform": 0, "importance": 1, "gap": 2, "gap-importance": 3, "max": 4}
_FIRST_STEPS = ("chord", "half", "previous")
_EPOCHS_PER_STEP = 10
UNSEEN = 100.0  # the gap of a sequence that was not visited yet: such sequences come first


def assign_blocks(lengths: Any, blocks: int) -> list[np.ndarray]:
    """The sequences of each block.

    Groups of `blocks` consecutive sequences are divided, one sequence to each block, the longest to the block with the
    fewest tokens so far.

    Blocks then differ by at most one sequence and by at most the tokens of the longest one, and sequences that are
    neighbours in a file, which are often alike, are spread evenly. Blocks that are alike need far fewer rounds.

    >>> [members.tolist() for members in assign_blocks([5, 1, 5, 1, 2], 2)]  # 8 and 6 tokens
    [[0, 3, 4], [1, 2]]
    """
    if blocks == 1:
        return [np.arange(len(lengths))]
    lengths = np.asarray(lengths).tolist()
    members: list[list[int]] = [[] for _ in range(blocks)]
    tokens = [0] * blocks
    for first in range(0, len(lengths), blocks):
        group = sorted(range(first, min(first + blocks, len(lengths))), key=lambda i: (-lengths[i], i))
        for b, i in zip(sorted(range(blocks), key=lambda b: (tokens[b], b)), group, strict=False):
            members[b].append(i)
            tokens[b] += lengths[i]
    return [np.sort(np.array(own, dtype=np.int64)) for own in members]


class DualAscentState(NamedTuple):
    """Everything a run needs to be resumed, bit for bit."""

    hidden: np.ndarray  # v(mu) / l2: the weights before the soft threshold
    mu: Any  # the marginals of all sequences
    gaps: np.ndarray
    trees: tuple
    counters: np.ndarray  # oracle calls, evaluations of the line search, sum of the steps
    sweep: int
    updates: int
    seed: int
    steps: np.ndarray | None = None  # of each sequence: where its line search starts, or its fixed step


@dataclass(frozen=True)
class SequenceDualAscent(Solver):
    """Stochastic dual coordinate ascent (SDCA) for `ChainProblem` and `TreeProblem`, whose sequences are graphs.

    Every update costs one call of the marginalisation oracle for one sequence, and goes along a direction in which the
    dual objective rises: as far as it does with ``straightness=0``, and about as far with the shortcut that this
    setting allows. A step is one or more epochs: measuring costs almost as much as one, and waits until the running
    estimate of the gap has fallen to 40 %, or for ten epochs. The certificate is the duality gap, computed from the
    marginals in float64.

    Parameters
    ----------
    sampling : str
        ``"gap"`` (default), ``"uniform"``, ``"importance"``, ``"gap-importance"`` or ``"max"``: which sequence next.
    nonuniformity : float
        The share of draws made by `sampling`; the others are uniform.
    n_blocks : int
        The number of blocks of sequences that ascend in parallel from the same weights, each with its steps weighted
        by `n_blocks`, so that the dual does not fall when they are added up (Ma et al. 2015). It changes the algorithm,
        and so the answer; the number of threads does not.
    line_search : str or float
        ``"newton"`` (default); ``"bounded"``, golden sections until the bracket is shorter than `subprecision`;
        ``"safe"``, without a search the step ``1 / (1 + n_blocks R_i / (l2 n))`` of the ascent lemma (Le Priol 2021,
        lemma 3.F.6), at which the dual does not fall; or a number in (0, 1], that step at every update, where nothing
        but its size keeps the dual from falling.
    first_step : str
        Where Newton's method starts. ``"chord"``: the slope of the dual along the step is known at both ends for free,
        and the root of its chord is close. ``"half"``: at 1/2, as published, and ``"previous"``, at the last step of
        the sequence (Le Priol 2021, section 3.6.2; one evaluation more, and safeguarded as Press et al. 1992 do it).
    subprecision, max_evaluations, straightness
        Where the two divergences that make up the slope at the start differ by less than `straightness` of their sum,
        the root of the chord is taken (with ``first_step="chord"`` alone); else bracketed Newton's method looks for it
        until it moves by less than `subprecision`, with at most `max_evaluations` evaluations.
    refresh : int, optional
        Compute the gaps of all sequences again after this many epochs, and again after as many. It costs the oracle
        calls of one epoch, which are counted. Never by default.
    start
        Where the marginals start. ``("mixture", 1e-3)``: this share of the uniform distribution, the rest on the labels
        (default). ``("potential", 10.0)``: the distribution in which every factor has this score where it agrees with
        the labels, and 0 elsewhere. Or marginals, `ChainMarginals` or `TreeMarginals`, that agree with each other and
        are nowhere zero. Or weights, whose marginals are meant.
    dtype : str
        ``"float64"``, or ``"float32"`` for the marginals of pairs: half the memory, and no gap below about 1e-5.
    max_epochs : int, optional
        The number of epochs in all after which a step ends (its first epoch is always made).

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.sequences import ChainProblem, SequenceData
    >>> data = SequenceData([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 2, 3], [0, 1, 0])
    >>> result = optim.run(SequenceDualAscent(), ChainProblem(data, 2), np.zeros((7, 2)), tol=1e-10, rng=0)
    >>> result.status, round(result.value, 6)
    ('converged', 0.578004)
    """

    sampling: str = "gap"
    nonuniformity: float = 0.8
    n_blocks: int = 1
    subprecision: float = 1e-3
    max_evaluations: int = 100
    straightness: float = 0.3
    dtype: str = "float64"
    max_epochs: int | None = None
    line_search: str | float = "newton"
    first_step: str = "chord"
    refresh: int | None = None
    start: Any = ("mixture", 1e-3)

    backend: ClassVar[str] = "host"

    def __post_init__(self):
        if self.sampling not in _SCHEMES:
            raise ValueError(f"sampling must be one of {', '.join(_SCHEMES)}; got {self.sampling!r}")
        if not 0 <= self.nonuniformity <= 1:
            raise ValueError(f"nonuniformity must be between 0 and 1; got {self.nonuniformity}")
        _check_line_search(self.line_search)
        checks.choice("first_step", self.first_step, _FIRST_STEPS)
        if self.refresh is not None:
            checks.whole("refresh", self.refresh)
        _check_start(self.start)
        if self.dtype not in ("float64", "float32"):
            raise ValueError(f"dtype must be 'float64' or 'float32'; got {self.dtype!r}")
        if self.n_blocks < 1 or self.max_evaluations < 0:
            raise ValueError("n_blocks must be at least 1 and max_evaluations not negative")

    def init(self, problem: SequenceProblem, x0: Any, rng: Any) -> DualAscentState:
        """Marginals next to the labels. The starting weights `x0` are not used: they follow from the marginals."""
        mu = self.starting_marginals(problem)
        gaps, importance = np.full(problem.n_terms, UNSEEN), self.importance(problem, problem.scale)
        trees = tuple(self.tree(gaps[block], importance[block]) for block in self._blocks(problem))
        hidden = problem.residual(mu) / problem.l2
        counters, steps = np.zeros((len(trees), 3)), self.steps(problem, float(len(trees)))
        return DualAscentState(hidden, mu, gaps, trees, counters, 0, 0, randomness.seed(rng), steps)

    def starting_marginals(self, problem: SequenceProblem) -> Any:
        """The marginals of `start`."""
        dtype = np.dtype(self.dtype)
        if named(self.start):
            kind, amount = self.start
            return problem.start(amount, dtype) if kind == "mixture" else problem.start_from_potential(amount, dtype)
        if isinstance(self.start, tuple):
            return problem.checked_marginals(self.start, dtype)
        with checks.about("start"):
            return problem.conjugate_marginals(self.start, dtype)

    def steps(self, problem: SequenceProblem, sigma: float) -> np.ndarray | None:
        """What kernels keep of the line search for each sequence; None for the one by default."""
        if self.line_search == "newton":
            return None if self.first_step == "chord" else np.full(problem.n_terms, 0.5)
        if self.line_search == "safe":
            return 1.0 / (1.0 + sigma * problem.squared_radii / problem.scale)
        return np.full(problem.n_terms, 0.5 if self.line_search == "bounded" else float(self.line_search))

    @property
    def drawing(self) -> tuple[int, float]:
        """How sequences are drawn, for kernels."""
        return _SCHEMES[self.sampling], self.nonuniformity

    def search(self, steps: np.ndarray | None) -> tuple[float, int, float, int, np.ndarray | None]:
        """The line search, for kernels; `steps` is what they keep of it."""
        method = {"newton": int(self.first_step == "previous"), "bounded": 2}.get(str(self.line_search), 3)
        return self.subprecision, self.max_evaluations, self.straightness, method, steps

    def _blocks(self, problem) -> list[np.ndarray]:
        return assign_blocks(problem.sizes, min(self.n_blocks, problem.n_terms))

    def importance(self, problem: SequenceProblem, scale: float) -> np.ndarray:
        """The fixed weights of the sequences in draws, ``1 + R_i / scale``; ones where the sampling has none."""
        if self.sampling not in ("importance", "gap-importance"):
            return np.ones(problem.n_terms)
        return 1.0 + problem.squared_radii / scale

    def tree(self, gaps: np.ndarray, importance: np.ndarray) -> np.ndarray:
        """The tree by which sequences are drawn, before the first update."""
        build = max_tree_build if self.sampling == "max" else tree_build
        return build(importance.copy() if self.sampling == "importance" else gaps * importance)

    def step(self, problem: SequenceProblem, state: DualAscentState) -> DualAscentState:
        """Whole epochs, until the running estimate of the gap has fallen to 40 %."""
        before, last = np.mean(state.gaps), state.sweep + _EPOCHS_PER_STEP
        last = last if self.max_epochs is None else min(last, self.max_epochs)
        while True:
            state = self._epoch(problem, state)
            if state.sweep >= last or not np.mean(state.gaps) > 0.4 * before:
                return state

    def _epoch(self, problem, state):
        blocks, importance = self._blocks(problem), self.importance(problem, problem.scale)

        def work(b: int) -> np.ndarray:
            hidden = state.hidden.copy() if len(blocks) > 1 else state.hidden
            problem.ascend(
                hidden,
                state.mu,
                blocks[b],
                state.gaps,
                state.trees[b],
                importance,
                drawing=self.drawing,
                search=self.search(state.steps),
                sigma=float(len(blocks)),
                source=(state.seed, b, state.sweep),
                counters=state.counters[b],
            )
            return hidden

        if len(blocks) == 1:
            hidden = work(0)
        else:
            moved = side_by_side(work, len(blocks), problem.n_jobs)
            hidden = state.hidden
            for copy in moved:
                copy -= state.hidden
            for copy in moved:
                hidden = hidden + copy / len(blocks)
        state = state._replace(hidden=hidden, sweep=state.sweep + 1, updates=state.updates + problem.n_terms)
        if self.refresh is not None and state.sweep % self.refresh == 0:
            state.gaps[:] = problem.block_gaps(state.mu, self.solution(problem, state))
            for block, counters in zip(blocks, state.counters, strict=True):
                counters[0] += len(block)
            state = state._replace(trees=tuple(self.tree(state.gaps[block], importance[block]) for block in blocks))
        return state

    def solution(self, problem: SequenceProblem, state: DualAscentState) -> np.ndarray:
        """The weights."""
        threshold = problem.l1 / problem.l2
        if threshold == 0:
            return state.hidden
        return np.sign(state.hidden) * np.maximum(np.abs(state.hidden) - threshold, 0.0)

    def measure(self, problem: SequenceProblem, state: DualAscentState) -> dict[str, float]:
        """The two objectives and the gap, at the weights that are kept: the certificate rebuilds them."""
        w = self.solution(problem, state)
        primal = problem.value(w)
        dual = problem.dual(state.mu, w)
        return {
            "value": primal,
            "bound": max(primal - dual, 0.0),
            "dual": dual,
            "estimate": float(np.mean(state.gaps)),
            "updates": float(state.updates),
            "oracle_calls": float(state.counters[:, 0].sum()),
            "line_search_evaluations": float(state.counters[:, 1].sum()),
        }

    def certify(self, problem: SequenceProblem, state: DualAscentState) -> Certificate:
        """``P(w) - P* <= P(w) - D(mu)``."""
        return certify_gap(*self.subject(problem, state))

    def subject(self, problem: SequenceProblem, state: DualAscentState) -> Subject:
        """The problem; the weights and the marginals."""
        return Subject(problem, (self.solution(problem, state), state.mu))


def named(start: Any) -> bool:
    """Whether a start is a name and a number, and not marginals or weights."""
    return isinstance(start, tuple) and len(start) > 0 and isinstance(start[0], str)


def _check_line_search(value: Any) -> None:
    if isinstance(value, str):
        known = value in ("newton", "bounded", "safe")
    else:
        known = isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) <= 1
    if not known:
        raise ValueError(f"line_search must be 'newton', 'bounded', 'safe', or a step in (0, 1]; got {value!r}")


def _check_start(start: Any) -> None:
    forms = "('mixture', share), ('potential', score), marginals, or weights"
    if start is None or isinstance(start, str) or (isinstance(start, tuple) and len(start) != 2):
        raise ValueError(f"start must be {forms}; got {start!r}")
    if not named(start):
        return
    kind, amount = start
    if kind not in ("mixture", "potential"):
        raise ValueError(f"start must be {forms}; got {start!r}")
    checks.number("the number in start", amount)
    if kind == "mixture" and not 0 < amount < 1:
        raise ValueError(
            f"the share of the uniform distribution in start must be strictly between 0 and 1; got {amount}"
        )
    if kind == "potential" and not (np.isfinite(amount) and amount > 0):
        raise ValueError(f"the potential in start must be positive and finite; got {amount}")
