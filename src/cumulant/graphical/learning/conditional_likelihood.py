"""Learning by conditional likelihoods: of each variable given the rest, or of each pair that shares a table."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.special import expit, logsumexp

from cumulant.graphical.discrete_family import DiscreteFamily
from cumulant.graphical.learning.conditional_likelihood_kernels import conditional_likelihood
from cumulant.graphical.learning.problem import LearningProblem
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.samplers.gibbs import TableArrays
from cumulant.threads import in_parts

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True)
class ConditionalProblem(LearningProblem):
    """Minimise ``-mean over data of sum_b log p(x_b | rest) + l2/2 |theta|^2`` over blocks ``b``.

    `blocks` are ``"variables"`` (the pseudo-likelihood, Besag 1975) or ``"pairs"`` that share a table (a composite
    likelihood, Lindsay 1988). A certificate of this objective says nothing about the likelihood.
    """

    blocks: Literal["variables", "pairs"] = "variables"

    @property
    def objective(self) -> str:
        """What the objective is called in certificates."""
        return "-pseudo-likelihood" if self.blocks == "variables" else "-composite likelihood"

    @property
    def smoothness(self) -> None:
        """Unknown: that of the likelihood does not hold here."""
        return None

    @cached_property
    def _pairs(self) -> np.ndarray:
        return self.edges if isinstance(self.model, Ising) else self.model.structure.edges

    @cached_property
    def _unpenalised(self) -> Objective:
        """Spins have formulas of their own, all else goes by tables."""
        assert self.data is not None
        if isinstance(self.model, Ising):
            make = pseudo_likelihood if self.blocks == "variables" else composite_likelihood
            return make(self.data, self.edges)
        singles = [[v] for v in range(self.n)]
        blocks = singles if self.blocks == "variables" else self._pairs.tolist()
        return block_likelihood(self.model.family, self.data, blocks)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and its gradient."""
        value, gradient = self._unpenalised(self.full(theta))
        return value + 0.5 * self.l2 * float(theta @ theta), gradient[self.free] + self.l2 * theta

    def gradient_rounding(self, theta: np.ndarray) -> float:
        """How far rounding can take the computed gradient from the true one: as of the likelihood, for each of the
        blocks in which a parameter occurs, plus the rounding of the mean over the data.
        """
        assert self.data is not None
        degree = np.bincount(self._pairs.ravel(), minlength=1).max() if len(self._pairs) else 0
        blocks = 2.0 if self.blocks == "variables" else 2.0 * float(degree + 1)
        once = super().gradient_rounding(theta)
        return blocks * (once + 4.0 * 2.0**-53 * len(self.data) * float(np.sqrt(self.free.size)) * self.R)


def block_likelihood(family: DiscreteFamily, x: np.ndarray, blocks: Iterable[Sequence[int]]) -> Objective:
    """``theta -> -mean over data of sum_b log p(x_b | rest)`` and its gradient, for blocks ``b`` of variables.

    Blocks of one variable make the pseudo-likelihood (Besag 1975), pairs a composite likelihood (Lindsay 1988). Convex:
    a multinomial logistic regression for each block, with shared tables, which may be of any order. Observations that
    occur more than once are taken once, with their number as a weight.

    Examples
    --------
    >>> from cumulant.graphical import Potts
    >>> objective = block_likelihood(Potts([(0, 1)], 0.0, n_states=3).family, np.array([[0, 0], [1, 2]]), [[0], [1]])
    >>> value, gradient = objective(np.zeros(7))
    >>> round(float(value / np.log(3)), 12)                           # every state of two variables is as likely
    2.0
    """
    structure = family.structure
    states, counts = np.unique(family.states(x), axis=0, return_counts=True)
    states, weights = np.ascontiguousarray(states), counts / counts.sum()
    arrays = TableArrays.of(structure, np.zeros(int(structure.table_starts[-1])))
    plan = Blocks.of(arrays, [tuple(map(int, block)) for block in blocks])

    def value_and_gradient(theta):
        filled = arrays._replace(tables=np.ascontiguousarray(family.log_tables(theta)))

        def work(first, last):
            gradient = np.zeros(filled.tables.size)
            return conditional_likelihood(states[first:last], weights[first:last], filled, plan, gradient), gradient

        parts = in_parts(work, len(states), None)
        gradient = np.sum([part[1] for part in parts], axis=0)
        return float(sum(part[0] for part in parts)), family.mean_of(gradient)

    return value_and_gradient


class Blocks(NamedTuple):
    """Blocks of variables as flat arrays.

    Those of block ``b`` are ``members[starts[b] : starts[b + 1]]``, and its ``sizes[b]`` joint states are numbered
    ``sum strides * x``. Its factors are ``factors[factor_starts[b] : factor_starts[b + 1]]``, and
    ``offsets[offset_starts[a] + s]`` is how far the joint state ``s`` is from 0 in the table of the ``a``-th of them.
    """

    starts: np.ndarray
    members: np.ndarray
    strides: np.ndarray
    sizes: np.ndarray
    factor_starts: np.ndarray
    factors: np.ndarray
    offset_starts: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, arrays: TableArrays, blocks: list[tuple[int, ...]]) -> "Blocks":
        """From lists of variables."""
        starts, members, strides, sizes = [0], [], [], []
        factor_starts, factors, offset_starts, offsets = [0], [], [], []
        for block in blocks:
            shape = arrays.sizes[list(block)]
            joint = np.array(list(product(*map(range, shape))), dtype=np.int64).reshape(-1, len(block))
            stride_of: dict[int, np.ndarray] = {}
            for k, v in enumerate(block):
                here = slice(arrays.starts[v], arrays.starts[v + 1])
                for f, stride in zip(arrays.factors[here].tolist(), arrays.strides[here].tolist(), strict=True):
                    stride_of.setdefault(f, np.zeros(len(block), np.int64))[k] = stride
            for f, each in stride_of.items():
                factors.append(f)
                offset_starts.append(len(offsets))
                offsets += (joint @ each).tolist()
            members += block
            strides += [*np.cumprod(shape[:0:-1])[::-1], 1]
            sizes.append(len(joint))
            starts.append(len(members))
            factor_starts.append(len(factors))
        parts = (starts, members, strides, sizes, factor_starts, factors, offset_starts, offsets)
        return cls(*(np.array(part, np.int64) for part in parts))


def pseudo_likelihood(x: np.ndarray, edges: np.ndarray) -> Objective:
    """``theta -> -mean over data of sum_i log p(x_i | rest)`` and its gradient (Besag 1975).

    ``theta`` is the fields and then the couplings. Convex: a logistic regression for each spin, with shared couplings.
    """
    x = np.asarray(x, dtype=np.float64)
    i, j = edges[:, 0], edges[:, 1]

    def value_and_gradient(theta):
        margins = x * _local(x, theta, edges)
        slope = -2.0 * x * expit(-2.0 * margins)
        couplings = (slope[:, i] * x[:, j] + slope[:, j] * x[:, i]).mean(axis=0)
        value = np.logaddexp(0.0, -2.0 * margins).sum(axis=1).mean()
        return float(value), np.concatenate([slope.mean(axis=0), couplings])

    return value_and_gradient


def composite_likelihood(x: np.ndarray, edges: np.ndarray) -> Objective:
    """``theta -> -mean over data of sum_ij log p(x_i, x_j | rest)`` over the edges, and its gradient (Lindsay 1988)."""
    x = np.asarray(x, dtype=np.float64)
    n, m, i, j = x.shape[1], len(edges), edges[:, 0], edges[:, 1]
    products = x[:, i] * x[:, j]
    at_first, at_second = (coo_array((np.ones(m), (end, np.arange(m))), shape=(n, m)).tocsr() for end in (i, j))
    # The four states of a pair: of its first spin, its second, and their product.
    first, second = np.array([-1.0, -1.0, 1.0, 1.0]), np.array([-1.0, 1.0, -1.0, 1.0])

    def value_and_gradient(theta):
        local, J = _local(x, theta, edges), theta[n:]
        a, b = local[:, i] - J * x[:, j], local[:, j] - J * x[:, i]
        scores = a[..., None] * first + b[..., None] * second + J[:, None] * (first * second)
        total = np.asarray(logsumexp(scores, axis=-1))
        p = np.exp(scores - total[..., None])
        value = (total - a * x[:, i] - b * x[:, j] - J * products).sum(axis=1).mean()
        left, right, both = p @ first - x[:, i], p @ second - x[:, j], p @ (first * second) - products
        around = (at_first @ left.T + at_second @ right.T).T  # for each spin, over the pairs it is in
        couplings = (around[:, i] - left) * x[:, j] + (around[:, j] - right) * x[:, i] + both
        return float(value), np.concatenate([around.mean(axis=0), couplings.mean(axis=0)])

    return value_and_gradient


def _local(x, theta, edges):
    """``h_i + sum_j J_ij x_j`` for each observation and spin."""
    n, i, j = x.shape[1], edges[:, 0], edges[:, 1]
    J = coo_array((np.tile(theta[n:], 2), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(n, n)).tocsr()
    return theta[:n] + (J @ x.T).T
