"""The regularised likelihood of labelled graphs, its dual, and the gap between them.

The same mathematics as for chains (`problem`), with a junction tree for each graph: ``mu_i`` are marginals of its
cliques ``C`` and separators ``S``, and the entropy is ``H(mu_i) = sum_C H(mu_C) - sum_S H(mu_S)``, that of
``prod_C mu_C / prod_S mu_S`` (Le Priol 2021, section 3.3.2). Weights are one vector: for each kind of factor a matrix
with a row for each feature and a column for each labelling of a factor's variables.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import kl_div

from cumulant.sequences.chain.chain_kernels import gather
from cumulant.sequences.chain.radius import attribute_radii
from cumulant.sequences.data.graph_data import Factors, GraphData
from cumulant.sequences.regularised import TINY, UNIT, Regularised
from cumulant.sequences.tree import junction_tree_kernels as kernels
from cumulant.sequences.tree.layout import Features, Layout, WeightRows, features_of, lay_out, rows_of
from cumulant.threads import in_parts

__all__ = ["MAX_TABLE", "TreeInference", "TreeMarginals", "TreeProblem"]

MAX_TABLE = 1_000_000  # entries of a clique: 8 megabytes


class TreeMarginals(NamedTuple):
    """Dual variables: the marginals of all cliques, graph after graph, and those of all separators."""

    cliques: np.ndarray
    separators: np.ndarray


class _Work(NamedTuple):
    """Room for one graph, whichever it is."""

    scores: np.ndarray
    tables: np.ndarray
    separators: np.ndarray
    message: np.ndarray
    one: np.ndarray
    direction: np.ndarray


class TreeInference:
    """Exact inference on all graphs of a data set, at any weights.

    Parameters
    ----------
    data : GraphData
    n_labels : int
    max_table : int
        A clique with more entries than this is refused (`TooWide`).
    n_jobs : int, optional
        Threads; all cores by default. The answers do not depend on it, to the last bit.
    """

    layout: Layout
    features: Features

    def __init__(self, data: GraphData, n_labels: int, max_table: int = MAX_TABLE, n_jobs: int | None = None):
        self.data, self.n_labels, self.n_jobs = data, n_labels, n_jobs
        self.layout, order = lay_out(data, n_labels, max_table)
        self.features = features_of(data, n_labels, order)
        widths = [n_labels**factors.arity for factors in data.factors.values()]
        counts = [len(factors) for factors in data.factors.values()]
        # Marginals of factors lie kind by kind, a matrix (factors, labellings) each.
        every = np.repeat(widths, counts)
        self.n_beliefs = int(every.sum())
        self.starts = (np.cumsum(every) - every)[order]
        self.order = order

    @property
    def size(self) -> int:
        """The number of weights."""
        return sum(f.n_features * self.n_labels**f.arity for f in self.data.factors.values())

    def split(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """The weights of each kind, ``(features, K^r)``: views of the vector."""
        return self._by_kind(w, {kind: factors.n_features for kind, factors in self.data.factors.items()})

    def split_beliefs(self, beliefs: np.ndarray) -> dict[str, np.ndarray]:
        """The marginals of the factors of each kind, ``(factors, K^r)``: views."""
        return self._by_kind(beliefs, {kind: len(factors) for kind, factors in self.data.factors.items()})

    def _by_kind(self, values: np.ndarray, rows: dict[str, int]) -> dict[str, np.ndarray]:
        widths = [self.n_labels**factors.arity for factors in self.data.factors.values()]
        ends = np.cumsum([count * width for count, width in zip(rows.values(), widths, strict=True)])
        parts = np.split(values, ends[:-1])
        return {
            kind: part.reshape(-1, width) if part.size else part.reshape(0, width)
            for kind, part, width in zip(rows, parts, widths, strict=True)
        }

    def work(self, direction: int = 0) -> _Work:
        """Room for the largest graph."""
        tables = int(np.diff(self.layout.table_offsets).max())
        separators = int(np.diff(self.layout.separator_offsets).max())
        one, states = int(self.layout.widths.max(initial=1)), int(self.layout.states.max())
        return _Work(*(np.empty(size) for size in (tables, tables, separators, states, one, direction)))

    def each(self, part: Callable[[int, int, _Work], Any]) -> None:
        """``part(first, last, work)`` on fixed parts of the graphs, by several threads, each with room of its own."""
        in_parts(lambda first, last: part(first, last, self.work()), len(self.data), self.n_jobs)

    def fill(self, kernel: Callable, w: np.ndarray, *arguments: Any) -> None:
        """A kernel on all graphs at the weights `w`, which fills the last of its arguments."""
        self.each(lambda first, last, work: kernel(w, self.layout, self.features, first, last, work, *arguments))

    def log_partitions(self, w: np.ndarray) -> np.ndarray:
        """``log Z_i(w)`` of every graph."""
        out = np.empty(len(self.data))
        self.fill(kernels.log_partitions_of, w, out)
        return out

    def expectations(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``log Z_i(w)`` of every graph, and the marginals of all factors."""
        log_z, beliefs = np.empty(len(self.data)), np.empty(self.n_beliefs)
        self.fill(kernels.expectations_of, w, self.starts, log_z, beliefs)
        return log_z, beliefs

    def node_marginals(self, w: np.ndarray) -> np.ndarray:
        """The marginals of all variables, ``(N, K)``."""
        out = np.empty((self.data.n_variables, self.n_labels))
        self.fill(kernels.node_marginals, w, self.n_labels, out)
        return out

    def best_labels(self, w: np.ndarray) -> np.ndarray:
        """The labelling of highest score of every graph, ``(N,)``."""
        out = np.empty(self.data.n_variables, dtype=np.int64)
        self.fill(kernels.best_labels, w, self.n_labels, out)
        return out

    def gold_entries(self, labels: np.ndarray) -> np.ndarray:
        """Which entry of each factor the labels are, kind after kind."""
        out = []
        for factors in self.data.factors.values():
            powers = self.n_labels ** np.arange(factors.arity - 1, -1, -1)
            out.append(labels[factors.variables] @ powers)
        return np.concatenate(out)

    def label_scores(self, w: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """``w . F(x_i, y_i)`` of every graph."""
        out = np.empty(len(self.order))
        kernels.gold_scores(w, self.features, self.gold_entries(labels)[self.order], out)
        offsets = self.layout.factor_offsets
        graphs = np.repeat(np.arange(len(self.data)), np.diff(offsets))
        return np.bincount(graphs, out, minlength=len(self.data))


@dataclass(frozen=True, eq=False)
class TreeProblem(Regularised):
    """Maximum likelihood for labelled graphs, with the penalty ``l2/2 |w|^2 + l1 |w|_1``.

    Parameters
    ----------
    data : GraphData
        With labels, numbered from 0 to ``n_labels - 1``.
    n_labels, l2, l1, n_jobs
        As in `ChainProblem`.
    max_table : int
        A junction tree with a clique of more entries is refused (`TooWide`).

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.sequences import SequenceDualAscent, GraphData, TreeProblem
    >>> star = (np.eye(4), [(0, 1), (0, 2), (0, 3)])
    >>> problem = TreeProblem(GraphData.from_graphs([star], [[0, 1, 1, 1]]), 2)
    >>> result = optim.run(SequenceDualAscent(), problem, np.zeros(problem.shape), tol=1e-10, rng=0)
    >>> result.status, round(result.value, 6)
    ('converged', 1.074003)
    """

    data: GraphData
    n_labels: int
    l2: Any = None
    l1: float = 0.0
    n_jobs: int | None = None
    max_table: int = MAX_TABLE
    n_terms: int = field(init=False)

    # Shapes -----------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int]:
        """The shape of the weights: one vector, which `split` cuts by kind."""
        return (self.inference.size,)

    @property
    def sizes(self) -> np.ndarray:
        """The number of variables of each graph."""
        return self.data.sizes

    def memory(self, dtype: str | None) -> int:
        """Bytes of marginals: of factors, and of cliques where they are kept as `dtype`."""
        layout = self.inference.layout
        cliques = 0 if dtype is None else layout.table_offsets[-1] * np.dtype(dtype).itemsize
        separators = 0 if dtype is None else layout.separator_offsets[-1] * 8
        return int(16 * self.inference.n_beliefs + cliques + separators)

    @cached_property
    def inference(self) -> TreeInference:
        """Marginals and log-partition functions at given weights."""
        return TreeInference(self.data, self.n_labels, self.max_table, self.n_jobs)

    def split(self, w: Any) -> dict[str, np.ndarray]:
        """The weights of each kind of factor, ``(features, K^r)``."""
        return self.inference.split(self._weights(w))

    @cached_property
    def rows(self) -> WeightRows:
        """The rows of weights that each graph touches."""
        return rows_of(self.inference.layout, self.inference.features)

    @cached_property
    def by_feature(self) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Of each kind, the factors that have each feature: CSR matrices."""
        out = {}
        for kind, factors in self.data.factors.items():
            matrix = sparse.csr_matrix(factors.features.T)
            out[kind] = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)
        return out

    @cached_property
    def gold_places(self) -> np.ndarray:
        """Where in the marginals of all factors the entries of the labels are."""
        widths = [self.n_labels**factors.arity for factors in self.data.factors.values()]
        every = np.repeat(widths, [len(factors) for factors in self.data.factors.values()])
        return np.cumsum(every) - every + self.inference.gold_entries(self.labels)

    @cached_property
    def gold(self) -> np.ndarray:
        """``(1/n) sum_i F(x_i, y_i)``."""
        truth = np.zeros(self.inference.n_beliefs)
        truth[self.gold_places] = 1.0
        return self._gathered(truth) / self.n_terms

    @cached_property
    def squared_radii(self) -> np.ndarray:
        """Upper bounds of ``max_y |F(x_i, y_i) - F(x_i, y)|^2``, as in `feature_radii`, kind by kind."""
        n, out, first = self.n_terms, np.zeros(self.n_terms), 0
        entries = self.inference.gold_entries(self.labels)
        for factors in self.data.factors.values():
            width, own = self.n_labels**factors.arity, entries[first : first + len(factors)]
            first += len(factors)
            if width > 1 and len(factors):
                group = self.data.graph_of(factors.variables[:, 0]) * width + own
                out += attribute_radii(factors.features, group, n, width)
        return out

    # Primal -----------------------------------------------------------------------------------------------------------

    def log_partitions(self, w: Any) -> np.ndarray:
        """``log Z_i(w)`` of every graph."""
        return self.inference.log_partitions(self._weights(w))

    def expectations(self, w: Any) -> dict[str, np.ndarray]:
        """The marginals of the factors of each kind, ``(factors, K^r)``."""
        return self.inference.split_beliefs(self._expectations(self._weights(w))[1])

    def _expectations(self, w):
        return self.inference.expectations(w)

    def _minus_labels(self, beliefs):
        beliefs[self.gold_places] -= 1.0
        return beliefs

    def _gathered(self, beliefs, magnitude=False):
        out = np.empty(self.shape)
        parts, targets = self.inference.split_beliefs(beliefs), self.inference.split(out)
        for kind, own in parts.items():
            (indptr, indices, values), target = self.by_feature[kind], targets[kind]
            arrays = indptr, indices, np.abs(values) if magnitude else values

            def part(first, last, arrays=arrays, own=own, target=target):
                gather(*arrays, own, first, last, target)

            in_parts(part, len(target), self.n_jobs)
        return out

    # Rounding ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _longest_sum(self) -> int:
        return max(int(np.diff(indptr).max(initial=0)) for indptr, _, _ in self.by_feature.values())

    @cached_property
    def _gold_magnitude(self) -> np.ndarray:
        truth = np.zeros(self.inference.n_beliefs)
        truth[self.gold_places] = 1.0
        return self._gathered(truth, magnitude=True) / self.n_terms

    def _magnitudes(self, w):
        out, parts = np.zeros(self.n_terms), self.inference.split(np.abs(w))
        for kind, factors in self.data.factors.items():
            if len(factors):
                own = np.asarray(abs(factors.features) @ parts[kind]).max(axis=1)
                out += np.bincount(self.data.graph_of(factors.variables[:, 0]), own, minlength=self.n_terms)
        return out

    @cached_property
    def _operations(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        layout = self.inference.layout
        cliques = np.diff(layout.cliques)[layout.structures]
        entries = np.diff(self.inference.features.indptr).max(initial=0)
        in_score = entries + np.diff(layout.factor_offsets) + 2 * cliques
        return in_score, cliques * (2.0 * layout.blocks.max() + 16.0), self.sizes * np.log(self.n_labels)

    def _belief_errors(self, beliefs, relative):
        summed, graphs = UNIT * (self._longest_sum + 16), []
        for factors in self.data.factors.values():
            own = self.data.graph_of(factors.variables[:, 0]) if len(factors) else np.zeros(0, dtype=np.int64)
            graphs.append(np.repeat(own, self.n_labels**factors.arity))
        errors = np.minimum((beliefs + TINY) * relative[np.concatenate(graphs)], 1.0) + summed * beliefs
        errors[self.gold_places] += summed
        return errors

    # Dual -------------------------------------------------------------------------------------------------------------

    def start(self, epsilon: float = 0.01, dtype: Any = np.float64) -> TreeMarginals:
        """Marginals next to the labels: ``epsilon`` of the uniform distribution, ``1 - epsilon`` on the labels."""
        layout, mu = self.inference.layout, self._empty(dtype)

        def part(first, last, _):
            kernels.start_trees(layout, self.labels, self.n_labels, float(epsilon), first, last, *mu)

        self.inference.each(part)
        return mu

    def start_from_potential(self, potential: float = 10.0, dtype: Any = np.float64) -> TreeMarginals:
        """The marginals of the graphs whose factors score `potential` where they agree with the labels."""
        factors, entries, weights, first = {}, self.inference.gold_entries(self.labels), [], 0
        for kind, own in self.data.factors.items():
            width, count = self.n_labels**own.arity, len(own)
            columns = entries[first : first + count]
            one = sparse.csr_matrix((np.ones(count), columns, np.arange(count + 1)), shape=(count, width))
            factors[kind] = Factors(own.variables, one)
            weights.append(potential * np.eye(width).ravel())
            first += count
        data = GraphData(self.data.offsets, factors, self.labels, self.data.trees)
        problem = TreeProblem(data, self.n_labels, n_jobs=self.n_jobs, max_table=self.max_table)
        return problem.conjugate_marginals(np.concatenate(weights), dtype)

    def _cliques(self, mu: TreeMarginals) -> Iterator[tuple[np.ndarray, np.ndarray, int, Any, Any, Any]]:
        """Clique after clique of each structure: the graphs, its variables in each, how many its parent shares.

        Then its tables ``(graphs, K, ..., K)``, those of the separator, and what the parent says about the separator.
        """
        layout, k = self.inference.layout, self.n_labels
        for structure in range(len(layout.cliques) - 1):
            graphs = np.flatnonzero(layout.structures == structure)
            tables: dict[int, tuple[list[int], np.ndarray]] = {}
            for c in range(layout.cliques[structure], layout.cliques[structure + 1]):
                scope = layout.variables[layout.scopes[c] : layout.scopes[c + 1]].tolist()
                shared, states = int(layout.shared[c]), int(layout.states[c])
                at = layout.table_offsets[graphs] + layout.tables[c]
                below = layout.separator_offsets[graphs] + layout.separators[c]
                table = mu.cliques[at[:, None] + np.arange(k ** len(scope))].reshape(-1, *[k] * len(scope))
                separator = mu.separators[below[:, None] + np.arange(states)].reshape(-1, *[k] * shared)
                tables[c] = scope, table
                above = np.ones(len(graphs))
                if layout.parents[c] >= 0:
                    wide, values = tables[int(layout.parents[c])]
                    above = np.einsum(values, [0, *(1 + v for v in wide)], [0, *(1 + v for v in scope[:shared])])
                yield graphs, layout.variable_offsets[graphs][:, None] + scope, shared, table, separator, above

    def _inconsistency(self, mu: TreeMarginals) -> float:
        off = 0.0
        for _, variables, shared, table, separator, above in self._cliques(mu):
            own = table.sum(axis=tuple(range(1 + shared, 1 + variables.shape[1])))
            off = max(off, float(np.abs(own - separator).max()), float(np.abs(above - separator).max()))
        return off

    def _as(self, mu: TreeMarginals, dtype: Any) -> TreeMarginals:
        return TreeMarginals(mu.cliques.astype(dtype), mu.separators)

    def _block(self, mu: TreeMarginals, i: int) -> tuple[np.ndarray, np.ndarray]:
        layout = self.inference.layout
        offsets = layout.table_offsets, layout.separator_offsets
        cliques, below = (part[at[i] : at[i + 1]] for part, at in zip(mu, offsets, strict=True))
        return cliques, below

    def _put(self, mu: TreeMarginals, nu: TreeMarginals, i: int) -> None:
        for own, other in zip(self._block(mu, i), self._block(nu, i), strict=True):
            own[:] = other

    def divergences(self, mu: TreeMarginals, nu: TreeMarginals) -> np.ndarray:
        """``sum_C KL(mu_C || nu_C) - sum_S KL(mu_S || nu_S)`` of every graph."""
        layout = self.inference.layout
        cliques = np.add.reduceat(kl_div(mu.cliques, nu.cliques, dtype=np.float64), layout.table_offsets[:-1])
        below = np.add.reduceat(kl_div(mu.separators, nu.separators), layout.separator_offsets[:-1])
        lost = np.isinf(cliques)
        return np.where(lost, np.inf, np.maximum(np.where(lost, 0.0, cliques) - np.where(lost, 0.0, below), 0.0))

    def log_probs(self, mu: TreeMarginals, labels: Any) -> np.ndarray:
        """The logarithm of the probability of a labelling of each graph: see `Regularised.log_probs`."""
        labels, out, impossible = self._labelling(labels), np.zeros(self.n_terms), np.zeros(self.n_terms, dtype=bool)
        for graphs, variables, shared, table, separator, _ in self._cliques(mu):
            own = labels[variables].T
            p, q = table[np.arange(len(graphs)), *own], separator[np.arange(len(graphs)), *own[:shared]]
            impossible[graphs] |= p <= 0
            out[graphs] += np.log(np.where(p > 0, p, 1.0), dtype=np.float64) - np.log(np.where(p > 0, q, 1.0))
        return np.where(impossible, -np.inf, out)

    def conjugate_marginals(self, w: Any, dtype: Any = np.float64) -> TreeMarginals:
        """The marginals of ``p(. | x_i; w)``, of every graph: the dual variables that the weights stand for."""
        mu = self._empty(dtype)
        self.inference.fill(kernels.all_marginals, self._weights(w), *mu)
        return mu

    def _empty(self, dtype: Any) -> TreeMarginals:
        layout = self.inference.layout
        return TreeMarginals(np.empty(layout.table_offsets[-1], dtype=dtype), np.empty(layout.separator_offsets[-1]))

    def _beliefs(self, mu: TreeMarginals) -> np.ndarray:
        inference, beliefs = self.inference, np.empty(self.inference.n_beliefs)
        inference.each(
            lambda first, last, _: kernels.factor_marginals(
                inference.layout, mu.cliques, first, last, inference.starts, beliefs
            )
        )
        return beliefs

    def _mean_scores(self, mu, w):
        out, weights, beliefs = np.zeros(self.n_terms), self.split(w), self.inference.split_beliefs(self._beliefs(mu))
        for kind, factors in self.data.factors.items():
            own = np.einsum("fk,fk->f", factors.features @ weights[kind], beliefs[kind])
            out += np.bincount(self.data.graph_of(factors.variables[:, 0]), own, minlength=self.n_terms)
        return out

    def residual(self, mu: TreeMarginals) -> np.ndarray:
        """``v(mu)``: see `Regularised.residual`."""
        return -self._gathered(self._minus_labels(self._beliefs(mu))) / self.n_terms

    def entropies(self, mu: TreeMarginals) -> np.ndarray:
        """``sum_C H(mu_C) - sum_S H(mu_S)`` of every graph."""
        out = np.empty(self.n_terms)
        layout = self.inference.layout
        self.inference.each(lambda first, last, _: kernels.entropies_of(layout, *mu, first, last, out))
        return out

    def _distribution(self, mu: TreeMarginals):
        inference, entropy = self.inference, np.empty(self.n_terms)
        size = int(inference.layout.table_offsets[-1])
        if mu.cliques.shape != (size,):
            raise ValueError(
                f"the marginals must have {size} entries; got {mu.cliques.size}: are they those of other data?"
            )
        beliefs = np.empty(inference.n_beliefs)

        def part(first, last, work):
            layout, starts = inference.layout, inference.starts
            kernels.tree_distributions(layout, mu.cliques, first, last, work, starts, beliefs, entropy)

        inference.each(part)
        return entropy, beliefs

    def ascend(
        self, hidden, mu: TreeMarginals, members, gaps, tree, importance, *, drawing, search, sigma, source, counters
    ) -> None:
        """An epoch of dual ascent on the graphs `members`, in place: see `junction_tree_kernels.ascend_trees`."""
        inference, rows = self.inference, self.rows
        ends = np.concatenate([[0], np.cumsum(rows.widths)])
        widest = np.diff(ends[rows.starts]).max()
        kernels.ascend_trees(
            hidden, self.l1 / self.l2, inference.layout, inference.features, rows, *mu, members, gaps, tree, importance,
            drawing, search, self.scale, sigma, len(members), source, counters, inference.work(int(widest)),
        )  # fmt: skip
