"""Which block a dual coordinate method visits next: uniform, fixed weights, or weights learned from the blocks' gaps.

Every sampler draws uniformly with probability ``1 - nonuniformity`` and by its weights otherwise, so that

    p_i = (1 - nonuniformity) / n + nonuniformity * q_i / sum_j q_j.

A sampler is a frozen object of settings; what changes is in a `SamplerState`. The weights that are learned are those
of the last visit of each block, so they are stale; they start at 100 for every block, which sends the first draws to
blocks not yet visited. Draws and updates cost O(log n).

Reference: Le Priol 2021, thesis chapter 3, sections 3.5 and 3.6.3; Csiba, Qu and Richtárik 2015 for the residuals.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.optim.finite_sums.sum_tree_kernels import (
    draw,
    max_tree_argmax,
    max_tree_build,
    remember,
    tree_build,
    tree_total,
)
from cumulant.randomness import seed

SAMPLINGS = (
    "uniform",
    "importance",
    "gap",
    "gap-importance",
    "max",
    "residual",
)  # in the order of the kernels' schemes
_WEIGHTED = ("importance", "gap-importance", "residual")
_INITIAL_ESTIMATE = 100.0  # far above the gap of any block at a sensible start
_NEGLIGIBLE = 1e-8  # a gap is a difference of larger numbers, and may come out this far below zero


@dataclass(eq=False)
class SamplerState:
    """What a sampler remembers: `draw` and `update` change it in place.

    Attributes
    ----------
    n : int
        The number of blocks.
    tree : array
        The weights, as a sum tree or a max tree of `sum_tree_kernels`.
    seed, draws : int
        Draw number k uses the two uniforms of the counter-based generator at ``(seed, 0, k >> 32, k)``.

    Examples
    --------
    >>> state = GapSampler().init(3, rng=0)
    >>> state = GapSampler().update(state, 1, 0.5)
    >>> state.weights
    array([100. ,   0.5, 100. ])
    """

    n: int
    tree: np.ndarray
    seed: int
    draws: int = 0

    @property
    def weights(self) -> np.ndarray:
        """The current weights ``q_i``, shape (n,): a view of the leaves."""
        capacity = self.tree.size // 2
        return self.tree[capacity : capacity + self.n]


@dataclass(frozen=True, eq=False)
class BlockSampler:
    """One of six ways to draw blocks, as `UniformSampler` and the functions after it make them.

    Parameters
    ----------
    sampling : str
        One of `SAMPLINGS`.
    weights : array, optional
        One positive number for each block, for those that use it.
    nonuniformity : float
        The share of the draws that is by weight; the rest is uniform, so that no block is forgotten.

    Examples
    --------
    >>> sampler = BlockSampler("gap", nonuniformity=0.5)
    >>> state = sampler.init(2, rng=0)
    >>> for i, gap in ((0, 3.0), (1, 1.0)):
    ...     state = sampler.update(state, i, gap)
    >>> sampler.probabilities(state)
    array([0.625, 0.375])
    """

    sampling: str
    weights: Any = None
    nonuniformity: float = 0.8

    def __post_init__(self):
        checks.choice("sampling", self.sampling, SAMPLINGS)
        if not 0 <= self.nonuniformity <= 1:
            raise ValueError(f"nonuniformity, the share of weighted draws, must be in [0, 1]; got {self.nonuniformity}")
        object.__setattr__(self, "weights", _positive(self.weights) if self.sampling in _WEIGHTED else None)

    @property
    def scheme(self) -> int:
        """The number by which kernels know it."""
        return SAMPLINGS.index(self.sampling)

    def tree(self, values: np.ndarray) -> np.ndarray:
        """The tree for blocks with these gaps or residuals."""
        if self.sampling == "max":
            return max_tree_build(values)
        drawn_by = {
            "uniform": np.ones(len(values)),
            "importance": self.weights,
            "gap": values,
            "gap-importance": values * self._weights,
            "residual": values * np.sqrt(self._weights),
        }
        return tree_build(drawn_by[self.sampling])

    @property
    def _weights(self) -> Any:
        return 1.0 if self.weights is None else self.weights

    def init(self, n: int, rng: Any = None) -> SamplerState:
        """The state before the first draw, for `n` blocks; `rng` is an int, a `numpy.random.Generator` or None."""
        checks.whole("n, the number of blocks,", n)
        if self.weights is not None and self.weights.size != n:
            raise ValueError(f"n, the number of blocks, must be {self.weights.size}, as many as weights; got {n}")
        return SamplerState(int(n), self.tree(np.full(n, _INITIAL_ESTIMATE)), seed(rng))

    def draw(self, state: SamplerState) -> int:
        """The next block."""
        k, state.draws = state.draws, state.draws + 1
        return int(draw(self.scheme, self.nonuniformity, state.tree, state.n, state.seed, 0, k >> 32, k & 0xFFFFFFFF))

    def update(self, state: SamplerState, i: int, gap_or_residual: float) -> SamplerState:
        """Record what was seen at block `i`, before its update: its duality gap, or the norm of its residual."""
        if not 0 <= i < state.n:
            raise ValueError(f"i, the block, must be between 0 and {state.n - 1}; got {i}")
        if not (np.isfinite(gap_or_residual) and gap_or_residual >= -_NEGLIGIBLE):
            raise ValueError(f"a gap or a residual norm must be finite and not negative; got {gap_or_residual}")
        weight = 1.0 if self.weights is None else float(self.weights[i])
        remember(self.scheme, state.tree, i, max(float(gap_or_residual), 0.0), weight)
        return state

    def probabilities(self, state: SamplerState) -> np.ndarray:
        """The probability of each block at the next draw, shape (n,)."""
        if self.sampling == "max":
            weighted = np.arange(state.n) == max_tree_argmax(state.tree)
        else:
            total = tree_total(state.tree)
            weighted = state.weights / total if total > 0 else np.full(state.n, 1 / state.n)
        return (1 - self.nonuniformity) / state.n + self.nonuniformity * weighted


def UniformSampler() -> BlockSampler:
    """Every block with probability ``1/n`` (the rate is `rates.sdca_uniform`).

    Shalev-Shwartz and Zhang (2013).

    >>> sampler = UniformSampler()
    >>> sampler.probabilities(sampler.init(4, rng=0))
    array([0.25, 0.25, 0.25, 0.25])
    """
    return BlockSampler("uniform", nonuniformity=0.0)


def ImportanceSampler(weights: Any, nonuniformity: float = 0.8) -> BlockSampler:
    """Fixed weights: ``q_i = weights[i]``.

    With the block condition numbers ``c_i`` as weights and `nonuniformity` one, this is the scheme of
    `rates.sdca_importance`. Zhao and Zhang (2015).

    >>> sampler = ImportanceSampler([1.0, 3.0], nonuniformity=1.0)
    >>> sampler.probabilities(sampler.init(2, rng=0))
    array([0.25, 0.75])
    """
    return BlockSampler("importance", weights, nonuniformity)


def GapSampler(nonuniformity: float = 0.8) -> BlockSampler:
    """Blocks by their duality gaps: ``q_i = g_i``, as of the last visit.

    With exact gaps and `nonuniformity` one this is the scheme of `rates.sdca_gap`; with stale gaps nothing is
    guaranteed, and the uniform part keeps every gap from growing too old. Le Priol (2021, sections 3.5 and 3.6.3).

    >>> sampler = GapSampler(nonuniformity=0.8)
    >>> state = sampler.init(4, rng=0)
    >>> for i, gap in enumerate([3.0, 1.0, 0.5, 0.5]):
    ...     state = sampler.update(state, i, gap)
    >>> sampler.probabilities(state).round(6)
    array([0.53, 0.21, 0.13, 0.13])
    """
    return BlockSampler("gap", None, nonuniformity)


def GapImportanceSampler(weights: Any, nonuniformity: float = 0.8) -> BlockSampler:
    """Gaps times fixed weights: ``q_i = g_i weights[i]``.

    With ``c_i`` as weights, exact gaps and `nonuniformity` one, this is the scheme of `rates.sdca_lipschitz_gap`.
    Le Priol (2021, sections 3.5 and 3.6.3).

    >>> sampler = GapImportanceSampler([1.0, 3.0], nonuniformity=1.0)
    >>> state = sampler.update(sampler.init(2, rng=0), 0, 300.0)    # the other block still counts as 100
    >>> sampler.probabilities(state)
    array([0.5, 0.5])
    """
    return BlockSampler("gap-importance", weights, nonuniformity)


def MaxGapSampler(nonuniformity: float = 0.8) -> BlockSampler:
    """The block of largest gap as of the last visit, the first of several; uniform otherwise.

    Fast at first. A block whose gap has grown since its last visit is seen again only by chance, so late progress is
    slow and the mean of the recorded gaps far too optimistic. Le Priol (2021, sections 3.5 and 3.6.3).

    >>> sampler = MaxGapSampler(nonuniformity=0.5)
    >>> sampler.probabilities(sampler.update(sampler.init(4, rng=0), 0, 1.0))
    array([0.125, 0.625, 0.125, 0.125])
    """
    return BlockSampler("max", None, nonuniformity)


def ResidualSampler(conditions: Any, nonuniformity: float = 0.8) -> BlockSampler:
    """AdaSDCA: ``q_i = d_i sqrt(c_i)``, ``d_i = |beta_i - alpha_i|`` (the norm, not its square) as of the last visit.

    ``beta_i`` is the image of block i by the fixed-point map, ``c_i`` its condition number. With exact residuals,
    quadratic losses and `nonuniformity` one, this is the scheme of `rates.sdca_adaptive`. Csiba, Qu and Richtárik
    (2015).

    >>> sampler = ResidualSampler([1.0, 9.0], nonuniformity=1.0)
    >>> sampler.probabilities(sampler.init(2, rng=0))
    array([0.25, 0.75])
    """
    return BlockSampler("residual", conditions, nonuniformity)


def _positive(weights: Any) -> np.ndarray:
    """A read-only copy; a block of weight zero might never be visited, and nothing could then be said of the answer."""
    weights = np.array(weights, dtype=np.float64)
    if weights.ndim != 1 or weights.size == 0:
        raise ValueError(f"weights must be a non-empty vector, one number per block; got shape {weights.shape}")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if wrong.size:
        raise ValueError(f"weights must be positive and finite; got {weights[wrong[0]]} at index {wrong[0]}")
    weights.flags.writeable = False
    return weights
