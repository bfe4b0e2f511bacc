"""One shard of the sequences with its dual variables: what a worker of a cluster holds, and what it can be asked.

With the sequences cut into shards, ``v(mu) = (1/n) sum_b r_b`` where ``r_b = sum_{i in b} F(x_i, y_i) - E_{mu_i} F`` is
the residual of shard ``b``, and the two objectives are sums of a loss and of an entropy over the shards, beside
functions of ``v``. So a shard needs only ``v``, and answers with its own residual and a few numbers: its data and its
marginals stay where they are. Nothing here knows of a network.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from cumulant.sequences.chain.problem import ChainMarginals, ChainProblem
from cumulant.sequences.data.sequence_data import SequenceData
from cumulant.sequences.regularised import dot
from cumulant.sequences.solvers.dual_ascent import UNSEEN, SequenceDualAscent


@dataclass(eq=False)
class Shard:
    """Some of the sequences, and their dual variables.

    Parameters
    ----------
    problem : ChainProblem
        Of these sequences, with the penalties of the whole problem.
    ascent : DualAscent
        How to ascend. Its `n_blocks` is not used.
    place, shards, total
        Which shard this is, of how many, and the number of sequences of all of them.
    seed : int
        With `place`, it names the random numbers of this shard.
    """

    problem: ChainProblem
    ascent: SequenceDualAscent
    place: int
    shards: int
    total: int
    seed: int
    sweep: int = 0
    mu: ChainMarginals = field(init=False)
    gaps: np.ndarray = field(init=False)
    tree: np.ndarray = field(init=False)
    importance: np.ndarray = field(init=False)
    steps: np.ndarray | None = field(init=False)

    def begin(self, v: np.ndarray | None, sweep: int) -> np.ndarray:
        """Dual variables next to the labels, or at the marginals of the weights of `v`; returns the residual."""
        self.problem = problem = _writeable(self.problem)
        ascent, dtype = self.ascent, np.dtype(self.ascent.dtype)
        if v is None:
            self.mu = ascent.starting_marginals(problem)
        else:
            self.mu = problem.conjugate_marginals(problem.weights_of(v), dtype)
        self.sweep = sweep
        self.gaps = np.full(problem.n_terms, UNSEEN)
        self.importance = ascent.importance(problem, problem.l2 * self.total)
        self.tree = ascent.tree(self.gaps, self.importance)
        self.steps = ascent.steps(problem, self.shards * problem.n_terms / self.total)
        return self.residual()

    def residual(self, v: Any = None) -> np.ndarray:
        """``r_b``, from the marginals."""
        return self.problem.n_terms * self.problem.residual(self.mu)

    def ascend(self, v: np.ndarray, until: int) -> tuple[np.ndarray, np.ndarray]:
        """Epochs from the weights of `v`, up to number `until`; returns the residual after them, and counters.

        Steps are taken as many times as heavy as there are shards, which makes their sum safe (Ma et al. 2015: the
        subproblem with ``sigma' = K``). Asked again, it only answers again.
        """
        problem, ascent = self.problem, self.ascent
        hidden, counters = v / problem.l2, np.zeros(3)
        while self.sweep < until:
            problem.ascend(
                hidden,
                self.mu,
                np.arange(problem.n_terms),
                self.gaps,
                self.tree,
                self.importance,
                drawing=ascent.drawing,
                search=ascent.search(self.steps),
                sigma=self.shards * problem.n_terms / self.total,  # over l2 times its own number: K / (l2 n)
                source=(self.seed, self.place, self.sweep),
                counters=counters,
            )
            self.sweep += 1
        return self.residual(), counters

    def measure(self, v: np.ndarray) -> np.ndarray:
        """The sums over the sequences of their loss at the weights of `v`, of their entropy, and of their last gap."""
        return np.array([self.loss(self.problem.weights_of(v)), self.problem.entropies(self.mu).sum(), self.gaps.sum()])

    def certify(self, v: np.ndarray) -> tuple:
        """What a certificate needs, summed over the sequences: `ChainProblem.loss`, and `ChainProblem.dual_terms`."""
        return *self.problem.loss(self.problem.weights_of(v)), *self.problem.dual_terms(self.mu)

    def loss(self, w: np.ndarray) -> float:
        """``sum_i phi_i(w)``."""
        w, problem = np.array(w), self.problem
        return float(problem.log_partitions(w).sum() - problem.n_terms * dot(w, problem.gold))

    def slope(self, w: np.ndarray) -> np.ndarray:
        """``sum_i grad phi_i(w)``."""
        w = np.array(w)
        return self.problem.n_terms * (self.problem.gradient(w) - self.problem.l2 * w)


def _writeable(problem: ChainProblem) -> ChainProblem:
    """The same with arrays that may be written to: kernels are compiled, and cached, for such."""
    data = problem.data
    parts = [data.features.data, data.features.indices, data.features.indptr, data.offsets, data.labels]
    if all(part.flags.writeable for part in parts):
        return problem
    values, indices, indptr, offsets, labels = map(np.array, parts)
    features = sparse.csr_matrix((values, indices, indptr), shape=data.features.shape)
    return replace(problem, data=SequenceData(features, offsets, labels))
