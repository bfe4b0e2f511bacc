"""The regularised likelihood of a linear-chain model, its dual, and the gap between them.

With ``phi_i(w) = log Z_i(w) - w . F(x_i, y_i)``, the negative log-likelihood of sequence ``i``:

* primal ``P(w) = l2/2 |w|^2 + l1 |w|_1 + (1/n) sum_i phi_i(w)``;
* dual ``D(mu) = -(1 / (2 l2)) |soft(v(mu), l1)|^2 + (1/n) sum_i H(mu_i)``, where ``mu_i`` are marginals of the nodes
  and pairs of sequence ``i``, ``H`` is the entropy of the chain that has them, and
  ``v(mu) = (1/n) sum_i [F(x_i, y_i) - E_{mu_i} F(x_i, y)]``;
* ``w(mu) = soft(v(mu), l1) / l2``, and then ``P(w(mu)) - D(mu) = (1/n) sum_i KL(mu_i || p(. | x_i; w(mu)))``.

Le Priol 2021, chapter 3. Weights are a matrix with a row for each attribute, then the three biases (every node, first
node, last node), then the transitions; and a column for each label.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import kl_div

from cumulant.kernels import InterpretedFirst
from cumulant.sequences.chain import oracle
from cumulant.sequences.chain.chain_kernels import (
    all_marginals,
    chain_distribution,
    distinct_attributes,
    expectations,
    gather,
    subtract_gold,
)
from cumulant.sequences.data.sequence_data import SequenceData
from cumulant.sequences.regularised import TINY, UNIT, Regularised
from cumulant.sequences.solvers.dual_ascent_kernels import ascend, work_space
from cumulant.threads import in_parts

_SMALL = 10_000  # values up to which a kernel that passes over them once need not be compiled
_distinct_attributes, _subtract_gold = InterpretedFirst(distinct_attributes), InterpretedFirst(subtract_gold)


class ChainMarginals(NamedTuple):
    """Dual variables: probabilities of the labels of nodes ``(N, K)`` and of pairs of neighbours ``(N - n, K, K)``.

    The pairs of sequence ``i`` begin at ``offsets[i] - i``.
    """

    nodes: np.ndarray
    pairs: np.ndarray


@dataclass(frozen=True, eq=False)
class ChainProblem(Regularised):
    """Maximum likelihood for labelled sequences, with the penalty ``l2/2 |w|^2 + l1 |w|_1``.

    Parameters
    ----------
    data : SequenceData
        With labels, numbered from 0 to ``n_labels - 1``.
    n_labels : int
    l2 : float, optional
        Positive; ``1/n`` by default.
    l1 : float
        Not negative.
    bias : bool
        Whether every label has the three biases.
    n_jobs : int, optional
        Threads; all cores by default. The answers do not depend on it, to the last bit.
    """

    data: SequenceData
    n_labels: int
    l2: Any = None
    l1: float = 0.0
    bias: bool = True
    n_jobs: int | None = None
    n_terms: int = field(init=False)

    def __post_init__(self):
        if not isinstance(self.bias, bool | np.bool_):  # kernels write to three rows of weights or to none
            raise TypeError(f"bias must be True or False; got {self.bias!r}")
        super().__post_init__()

    # Shapes -----------------------------------------------------------------------------------------------------------

    @property
    def n_attributes(self) -> int:
        """The number of attributes, biases not counted."""
        return self.data.features.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weights."""
        return self.n_attributes + 3 * self.bias + self.n_labels, self.n_labels

    @property
    def sizes(self) -> np.ndarray:
        """The length of each sequence."""
        return self.data.lengths

    def memory(self, dtype: str | None) -> int:
        """Bytes of marginals: of nodes, and of pairs where they are kept as `dtype`."""
        tokens, k = len(self.labels), self.n_labels
        pairs = 0 if dtype is None else (tokens - self.n_terms) * k * k * np.dtype(dtype).itemsize
        return tokens * k * 24 + pairs

    @cached_property
    def tokens(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The CSR matrix of the tokens, as kernels take it."""
        return token_arrays(self.data)

    @cached_property
    def by_attribute(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Its transpose: the tokens of each attribute."""
        matrix = sparse.csr_matrix(self.data.features.T)
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data

    @cached_property
    def attributes_of_sequences(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(starts, attributes, place)``: those of each sequence, once each, and which of them each value is of."""
        (indptr, indices, _), a = self.tokens, self.n_attributes
        starts = np.empty(self.n_terms + 1, dtype=np.int64)
        distinct, place = np.empty((2, len(indices)), dtype=np.int32)
        seen = np.full(a, -1, dtype=np.int64), np.empty(a, dtype=np.int64)
        offsets = self.data.offsets
        _distinct_attributes(len(indices) <= _SMALL, indptr, indices, offsets, starts, distinct, place, *seen)
        return starts, distinct[: starts[-1]].copy(), place

    @cached_property
    def gold(self) -> np.ndarray:
        """``(1/n) sum_i F(x_i, y_i)``."""
        return self._label_features(self.by_attribute[2]) / self.n_terms

    @cached_property
    def squared_radii(self) -> np.ndarray:
        """`feature_radii` of the sequences."""
        from cumulant.sequences.chain.radius import feature_radii

        return feature_radii(self)

    # Primal -----------------------------------------------------------------------------------------------------------

    def log_partitions(self, w: Any) -> np.ndarray:
        """``log Z_i(w)`` of every sequence."""
        return self._expectations(self._weights(w))[0]

    def _expectations(self, w):
        log_z, nodes, transitions = expectations_of(w, self.tokens, self.data.offsets, self.bias, self.n_jobs)
        return log_z, (nodes, transitions)

    @cached_property
    def _label_transitions(self) -> np.ndarray:
        """How often each pair of labels is next to each other."""
        out = np.zeros((self.n_labels, self.n_labels))
        np.add.at(out, (self.labels[self._lefts], self.labels[self._lefts + 1]), 1.0)
        return out

    @cached_property
    def _lefts(self) -> np.ndarray:
        """The tokens that have a right neighbour."""
        inner = np.ones(len(self.labels), dtype=bool)
        inner[self.data.offsets[1:] - 1] = False
        return np.flatnonzero(inner)

    def _minus_labels(self, beliefs):
        nodes, transitions = beliefs
        nodes[np.arange(len(self.labels)), self.labels] -= 1.0
        return nodes, transitions - self._label_transitions

    def _gathered(self, beliefs, magnitude=False):
        nodes, transitions = beliefs
        out = np.empty(self.shape)
        a, (indptr, indices, values) = self.n_attributes, self.by_attribute
        values = np.abs(values) if magnitude else values
        in_parts(lambda first, last: gather(indptr, indices, values, nodes, first, last, out), a, self.n_jobs)
        if self.bias:
            offsets = self.data.offsets
            out[a], out[a + 1], out[a + 2] = nodes.sum(0), nodes[offsets[:-1]].sum(0), nodes[offsets[1:] - 1].sum(0)
        out[-self.n_labels :] = transitions
        return out

    # Rounding ---------------------------------------------------------------------------------------------------------

    @property
    def _longest_sum(self) -> int:
        return len(self.labels)

    @cached_property
    def _gold_magnitude(self) -> np.ndarray:
        values = self.by_attribute[2]
        return self._label_features(np.abs(values)) / self.n_terms if np.any(values < 0) else self.gold

    def _label_features(self, values):
        """``sum_i F(x_i, y_i)``, with `values` in the place of those of `by_attribute`."""
        n, k, a = len(self.labels), self.n_labels, self.n_attributes
        nodes = sparse.csr_matrix((np.ones(n), self.labels, np.arange(n + 1)), shape=(n, k))
        indptr, indices, _ = self.by_attribute
        out = np.zeros(self.shape)
        counts: Any = sparse.csr_matrix((values, indices, indptr), shape=(a, n)) @ nodes
        out[:a] = counts.toarray()
        if self.bias:
            firsts, lasts = self.data.offsets[:-1], self.data.offsets[1:] - 1
            for b, those in enumerate((slice(None), firsts, lasts)):
                out[a + b] = np.bincount(self.labels[those], minlength=k)
        out[-k:] = self._label_transitions
        return out

    def _magnitudes(self, w):
        sizes, a = np.abs(w), self.n_attributes
        nodes = np.asarray(abs(self.data.features) @ sizes[:a]).max(axis=1)
        out = np.add.reduceat(nodes, self.data.offsets[:-1]) + (self.sizes - 1) * sizes[-self.n_labels :].max()
        return out + (self.sizes + 2) * sizes[a : a + 3].max() if self.bias else out

    @cached_property
    def _operations(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        in_score = 2 * self.sizes + np.diff(self.tokens[0]).max(initial=0)
        return in_score, self.sizes * (2.0 * self.n_labels + 16.0), self.sizes * np.log(self.n_labels)

    def _belief_errors(self, beliefs, relative):
        nodes, transitions = beliefs
        summed, count = UNIT * (self._longest_sum + 16), len(self._lefts)
        errors = np.minimum((nodes + TINY) * np.repeat(relative, self.sizes)[:, None], 1.0) + summed * nodes
        errors[np.arange(len(errors)), self.labels] += summed
        moved = np.minimum((transitions + TINY) * relative.max(), count) if count else transitions
        return errors, moved + summed * (transitions + self._label_transitions)

    # Dual -------------------------------------------------------------------------------------------------------------

    def start(self, epsilon: float = 0.01, dtype: Any = np.float64) -> ChainMarginals:
        """Marginals next to the labels: ``epsilon`` of the uniform distribution, ``1 - epsilon`` on the labels.

        At the labels themselves the slope of the entropy is infinite; at the uniform distribution the weights are huge.
        """
        k, labels = self.n_labels, self.labels
        nodes = np.full((len(labels), k), epsilon / k)
        nodes[np.arange(len(labels)), labels] += 1.0 - epsilon
        left = self._lefts
        pairs = np.empty((len(left), k, k), dtype=dtype)

        def fill(first, last):  # by several threads: the first touch of memory is what takes the time
            pairs[first:last] = epsilon / k**2
            own = left[first:last]
            pairs[np.arange(first, last), labels[own], labels[own + 1]] += 1.0 - epsilon

        in_parts(fill, len(left), self.n_jobs)
        return ChainMarginals(nodes, pairs)

    def start_from_potential(self, potential: float = 10.0, dtype: Any = np.float64) -> ChainMarginals:
        """The marginals of the chains in which every label, and every pair of labels, of the data scores `potential`.

        Number the labels of each node so that the right one is 0: all sequences of one length then are the same chain.
        """
        k, labels, left = self.n_labels, self.labels, self._lefts
        unary, pair = np.zeros((int(self.sizes.max()), k)), np.zeros((k, k))
        unary[:, 0] = pair[0, 0] = potential
        mu = ChainMarginals(np.empty((len(labels), k)), np.empty((len(left), k, k), dtype=dtype))
        names = np.tile(np.arange(k), (len(labels), 1))  # 0 and the right label change places
        names[:, 0] = labels
        names[np.arange(len(labels)), labels] = 0
        first = self.data.offsets[:-1]
        for length in np.unique(self.sizes):
            nodes, pairs, _ = oracle.sum_product(unary[:length], pair)
            tokens = first[self.sizes == length][:, None] + np.arange(length)
            mu.nodes[tokens] = nodes[np.arange(length)[:, None], names[tokens]]
            inner, own = tokens[:, :-1], (tokens - np.flatnonzero(self.sizes == length)[:, None])[:, :-1]
            rows, columns = names[inner][..., :, None], names[inner + 1][..., None, :]
            mu.pairs[own] = pairs[np.arange(length - 1)[:, None, None], rows, columns]
        return mu

    def _inconsistency(self, mu: ChainMarginals) -> float:
        left = self._lefts
        parts = mu.nodes.sum(1) - 1.0, mu.pairs.sum(2) - mu.nodes[left], mu.pairs.sum(1) - mu.nodes[left + 1]
        return max(float(np.abs(part).max(initial=0.0)) for part in parts)

    def _as(self, mu: ChainMarginals, dtype: Any) -> ChainMarginals:
        return ChainMarginals(mu.nodes, mu.pairs.astype(dtype))

    @cached_property
    def _sequences(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The sequence of each pair; the nodes that count in entropies, with their sequences and signs."""
        sequence = np.repeat(np.arange(self.n_terms), self.sizes)
        sign = np.full(len(sequence), -1.0)  # inner nodes separate pairs
        firsts, lasts = self.data.offsets[:-1], self.data.offsets[1:] - 1
        sign[firsts] = sign[lasts] = 0.0
        sign[firsts[self.sizes == 1]] = 1.0  # a node alone is the clique
        return sequence[self._lefts], sequence, sign

    def _added(self, of_pairs: np.ndarray, of_nodes: np.ndarray) -> np.ndarray:
        """Sums over the cliques minus sums over the separators of each sequence."""
        pairs, nodes, sign = self._sequences
        of_nodes = np.multiply(sign, of_nodes, where=sign != 0, out=np.zeros_like(sign))
        return np.bincount(pairs, of_pairs, minlength=self.n_terms) + np.bincount(nodes, of_nodes)

    def _block(self, mu: ChainMarginals, i: int) -> tuple[np.ndarray, np.ndarray]:
        first, last = self.data.offsets[i : i + 2]
        if last - first == 1:
            return mu.nodes[first], np.zeros(0)
        return mu.pairs[first - i : last - i - 1].ravel(), mu.nodes[first + 1 : last - 1].ravel()

    def _put(self, mu: ChainMarginals, nu: ChainMarginals, i: int) -> None:
        first, last = self.data.offsets[i : i + 2]
        mu.nodes[first:last], mu.pairs[first - i : last - i - 1] = (
            nu.nodes[first:last],
            nu.pairs[first - i : last - i - 1],
        )

    def divergences(self, mu: ChainMarginals, nu: ChainMarginals) -> np.ndarray:
        """``KL(mu_i || nu_i)``: see `Regularised.divergences`."""
        of_pairs = kl_div(mu.pairs, nu.pairs, dtype=np.float64).sum((1, 2))
        lost, of_nodes = np.isinf(of_pairs), kl_div(mu.nodes, nu.nodes).sum(1)
        of_nodes[np.isinf(of_nodes) & (self._sequences[2] < 0)] = 0.0  # its pairs are infinite too
        out = self._added(np.where(lost, 0.0, of_pairs), of_nodes)
        out[self._sequences[0][lost]] = np.inf
        return np.maximum(out, 0.0)

    def log_probs(self, mu: ChainMarginals, labels: Any) -> np.ndarray:
        """The logarithm of the probability of a labelling of each sequence: see `Regularised.log_probs`."""
        labels, left = self._labelling(labels), self._lefts
        with np.errstate(divide="ignore"):
            pairs = np.log(mu.pairs[np.arange(len(left)), labels[left], labels[left + 1]], dtype=np.float64)
            nodes = np.log(mu.nodes[np.arange(len(labels)), labels])
        impossible = np.isneginf(pairs)
        nodes[np.isneginf(nodes) & (self._sequences[2] < 0)] = 0.0
        out = self._added(np.where(impossible, 0.0, pairs), nodes)
        out[self._sequences[0][impossible]] = -np.inf
        return out

    def conjugate_marginals(self, w: Any, dtype: Any = np.float64) -> ChainMarginals:
        """The marginals of ``p(. | x_i; w)``, of every sequence: the dual variables that the weights stand for."""
        w, k, longest, offsets = self._weights(w), self.n_labels, int(self.sizes.max()), self.data.offsets
        mu = ChainMarginals(np.empty((len(self.labels), k)), np.empty((len(self._lefts), k, k), dtype=dtype))

        def part(first, last):
            all_marginals(
                w, self.n_attributes, self.bias, *self.tokens, offsets, first, last, *mu,
                *np.empty((3, longest, k)), np.empty((k, k)), np.empty((longest, k, k)),
            )  # fmt: skip

        in_parts(part, self.n_terms, self.n_jobs)
        return mu

    def _mean_scores(self, mu, w):
        scores, a, offsets = self.data.features @ w[: self.n_attributes], self.n_attributes, self.data.offsets
        if self.bias:
            scores += w[a]
            scores[offsets[:-1]] += w[a + 1]
            scores[offsets[1:] - 1] += w[a + 2]
        of_tokens = np.einsum("tk,tk->t", scores, mu.nodes)
        of_tokens[self._lefts] += np.einsum("tjk,jk->t", mu.pairs, w[-self.n_labels :])
        return np.add.reduceat(of_tokens, offsets[:-1])

    def residual(self, mu: ChainMarginals) -> np.ndarray:
        """``v(mu)``: see `Regularised.residual`."""

        def part(first, last):
            own, out = np.zeros((2, self.n_labels, self.n_labels))
            small = mu.pairs.size <= _SMALL
            _subtract_gold(small, mu.pairs, self.data.offsets, self.labels, first, last, own, out)
            return out

        apart = -mu.nodes
        apart[np.arange(len(self.labels)), self.labels] += 1.0
        transitions = np.sum(in_parts(part, self.n_terms, self.n_jobs), axis=0)
        return self._gathered((apart, transitions)) / self.n_terms

    def entropies(self, mu: ChainMarginals) -> np.ndarray:
        """The entropy of the chain with these marginals, of every sequence."""
        return self._distribution(mu)[0]

    def _distribution(self, mu: ChainMarginals):
        tokens, pairs, k = len(self.labels), len(self._lefts), self.n_labels
        if mu.nodes.shape != (tokens, k) or mu.pairs.shape != (pairs, k, k):
            raise ValueError(
                f"the marginals must have shapes {(tokens, k)} and {(pairs, k, k)}; got {mu.nodes.shape} and "
                f"{mu.pairs.shape}: are they those of other data?"
            )
        nodes, entropy = np.empty_like(mu.nodes), np.empty(self.n_terms)

        def part(first, last):
            out = np.zeros((self.n_labels, self.n_labels))
            chain_distribution(mu.nodes, mu.pairs, self.data.offsets, first, last, nodes, out, entropy)
            return out

        transitions = np.sum(in_parts(part, self.n_terms, self.n_jobs), axis=0)
        return entropy, (nodes, transitions)

    def ascend(
        self, hidden, mu: ChainMarginals, members, gaps, tree, importance, *, drawing, search, sigma, source, counters
    ) -> None:
        """An epoch of dual ascent on the sequences `members`, in place: see `dual_ascent_kernels.ascend`."""
        k, longest = self.n_labels, int(self.data.lengths.max())
        starts, attributes, place = self.attributes_of_sequences
        widest = int(np.diff(starts).max(initial=1))
        threshold = self.l1 / self.l2 if self.l1 else None
        done = 0
        for logs in (None, True):  # the second is seldom needed, and compiled where it is
            if done < len(members):
                done = ascend(
                    hidden, threshold, self.bias, *self.tokens, self.data.offsets, starts, attributes, place, mu.nodes,
                    mu.nodes.reshape(-1), mu.pairs.reshape(-1), members, gaps, tree, importance, *drawing, self.scale,
                    sigma, *search, done, len(members), *source, counters, *work_space(k, longest, widest), logs,
                )  # fmt: skip


def token_arrays(data: SequenceData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The CSR matrix of the tokens, as kernels take it."""
    matrix = data.features
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data


def expectations_of(w, tokens, offsets, bias: bool, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-partition functions, marginals of the nodes, and expected transitions of sequences at the weights `w`."""
    k, longest, n = w.shape[1], int(np.diff(offsets).max()), len(offsets) - 1
    nodes, log_z = np.empty((offsets[-1], k)), np.empty(n)
    attributes = len(w) - k - 3 * bias

    def part(first, last):
        transitions, work = np.zeros((k, k)), (*np.empty((3, longest, k)), *np.empty((2, k, k)))
        for logs in (None, True):  # the second is seldom needed, and compiled where it is
            if first < last:
                first = expectations(
                    w, attributes, bias, *tokens, offsets, first, last, nodes, transitions, log_z, *work, logs
                )
        return transitions

    return log_z, nodes, np.sum(in_parts(part, n, n_jobs), axis=0)
