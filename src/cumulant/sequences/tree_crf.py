"""The conditional random field on graphs as a scikit-learn estimator."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.graphical import FactorGraph
from cumulant.graphical.structure import Structure
from cumulant.sequences.chain.model import labels_of
from cumulant.sequences.data.graph_data import GraphData, listed_graphs
from cumulant.sequences.data.sequence_data import numbered
from cumulant.sequences.estimator import CRF
from cumulant.sequences.tree.problem import MAX_TABLE, TreeInference, TreeProblem


@dataclass(eq=False, repr=False)
class TreeCRF(CRF):
    """Conditional random field on graphs: ``p(y | x) ~ exp(<w, F(x, y)>)``, fitted with a certified duality gap.

    ``F`` adds up the features of factors: on nodes, on edges, or on any few variables (`GraphData`). Inference is
    exact, on a junction tree of each graph, and takes time and memory in proportion to ``K^c``, with ``K`` labels and
    ``c`` variables in its largest clique: 2 for a tree, ``h + 1`` for a grid of height ``h``. The weights minimise
    ``l2/2 |w|^2 + l1 |w|_1 + (1/n) sum_i -log p(y_i | x_i)`` over the ``n`` graphs, a convex function. What is returned
    is at most `certificate_` above its minimum.

    Parameters
    ----------
    l2, l1, sampling, nonuniformity, tol, max_epochs, line_search, first_step, subprecision, refresh, start
        As in `ChainCRF`.
    solver : str
        ``"auto"``, ``"sdca"`` or ``"lbfgs"``, as in `ChainCRF`.
    bias : bool
        One more feature, which is 1, for every node, and for every edge that has features: an edge without any always
        has it. `GraphData` is taken as it is.
    max_table : int
        A graph with a clique of more entries than this is refused (`TooWide`).
    n_blocks, n_jobs, marginals, time_limit, checkpoint, callback, random_state, verbose
        As in `ChainCRF`.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    weights_ : array (d,)
        All weights; `weights` has those of one kind of factor.
    kinds_ : dict
        The number of variables and of features of each kind.
    certificate_, objective_, history_, status_
        As in `ChainCRF`.

    Examples
    --------
    A star whose leaves take the label that their centre has not:

    >>> graph = (np.array([[1.0], [0.0], [0.0]]), [(0, 1), (0, 2)])
    >>> crf = TreeCRF(tol=1e-6).fit([graph], [["hub", "leaf", "leaf"]])
    >>> crf.predict([graph])
    [['hub', 'leaf', 'leaf']]
    >>> crf.weights("edges").shape  # feature, label of the first node, label of the second
    (1, 2, 2)
    """

    max_table: int = MAX_TABLE

    _kind = "tree CRF"

    # Fitting ----------------------------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, X_dev: Any = None, y_dev: Any = None, X_test: Any = None, y_test: Any = None
    ) -> "TreeCRF":
        """Fit to graphs `X` with the labels `y` of their nodes.

        A graph is ``(node_features, edges)`` or ``(node_features, edges, edge_features)``: an array or sparse matrix
        ``(nodes, features)``, pairs of nodes numbered from 0, and a row of features for each pair. The weights of an
        edge depend on the order of its pair; give both orders where neither is first. `X` may be `GraphData`, whose own
        labels are used without `y`. Graphs without nodes are left out. With a development set, training stops when its
        accuracy has not risen for three records, and the best weights are kept. Errors on a test set are written into
        `history_` and change nothing.
        """
        return self._fit(X, y, X_dev, y_dev, X_test, y_test)

    def _prepare(self, X: Any, y: Any) -> TreeProblem:
        data = self._read(X, y)
        if data.labels is None:
            raise ValueError("y must be given: a label for each node")
        self.kinds_ = _kinds(data)
        self.classes_, labels = numbered(data.labels)
        return self._problem(data, labels)

    def _problem(self, data: GraphData, labels: np.ndarray) -> TreeProblem:
        data = data.with_labels(labels)
        return TreeProblem(data, len(self.classes_), self.l2, self.l1, self.n_jobs, self.max_table)

    def _check_settings(self) -> None:
        super()._check_settings()
        checks.whole("max_table", self.max_table)

    # Using ------------------------------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any = None) -> GraphData:
        if not isinstance(X, GraphData):
            return GraphData.from_graphs(X, y, self.bias)
        return X if y is None else X.with_labels(y)

    def _listed(self, X: Any) -> tuple[Any, np.ndarray]:
        return listed_graphs(X)

    def _encode(self, X: Any, y: Any = None) -> GraphData:
        """Data with the kinds of factors that training saw."""
        data = self._read(X, y)
        if _kinds(data) != self.kinds_:
            raise ValueError(
                f"X must have factors with as many variables and features as in training, {_described(self.kinds_)}; "
                f"got {_described(_kinds(data))}"
            )
        return data

    def _infer(self, data: GraphData) -> TreeInference:
        return TreeInference(data, len(self.classes_), self.max_table, self.n_jobs)

    def _decode(self, data: GraphData) -> np.ndarray:
        return self._infer(data).best_labels(self.weights_)

    def _model(self, data: GraphData) -> FactorGraph:
        k, scopes, tables = len(self.classes_), [], [np.zeros(0)]
        for kind, own in data.factors.items():
            scopes += own.variables.tolist()
            tables.append((own.features @ self.weights(kind).reshape(own.n_features, k**own.arity)).ravel())
        structure = Structure(np.full(data.n_variables, k), scopes)
        return FactorGraph.from_flat(structure, np.concatenate(tables), labels_of(self.classes_, structure))

    def _node_marginals(self, data: GraphData) -> np.ndarray:
        return self._infer(data).node_marginals(self.weights_)

    def _log_likelihoods(self, data: GraphData, labels: np.ndarray) -> np.ndarray:
        infer = self._infer(data)
        return infer.label_scores(self.weights_, labels) - infer.log_partitions(self.weights_)

    def weights(self, kind: str) -> np.ndarray:
        """The weights of one kind of factor: an axis for its features, and one for the label of each variable."""
        self._check_fitted()
        if kind not in self.kinds_:
            raise ValueError(f"kind must be one of {', '.join(self.kinds_)}; got {kind!r}")
        k, start = len(self.classes_), 0
        for name, (arity, features) in self.kinds_.items():
            if name == kind:
                return self.weights_[start : start + features * k**arity].reshape(features, *[k] * arity)
            start += features * k**arity
        raise AssertionError

    # Files ------------------------------------------------------------------------------------------------------------

    def _own(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"kinds": [[kind, *sizes] for kind, sizes in self.kinds_.items()]}, {}

    def _restore(self, saved: Any) -> None:
        self.kinds_ = {kind: (arity, features) for kind, arity, features in saved.settings["kinds"]}


def _kinds(data: GraphData) -> dict[str, tuple[int, int]]:
    return {kind: (factors.arity, factors.n_features) for kind, factors in data.factors.items()}


def _described(kinds: dict[str, tuple[int, int]]) -> str:
    return ", ".join(f"{kind} ({arity} and {features})" for kind, (arity, features) in kinds.items())
