"""A chain as a graphical model: what every discrete model answers, by the kernels for chains."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from cumulant.errors import DomainError
from cumulant.graphical.discrete_family import DiscreteFamily
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.factor_graph import FactorGraph
from cumulant.graphical.labels import Labels
from cumulant.graphical.structure import Structure
from cumulant.sequences.chain import oracle

__all__ = ["ChainModel", "labels_of"]


def labels_of(classes: Any, structure: Structure) -> Labels | None:
    """What the states of all variables are called: `classes`, in ascending order."""
    if classes is None:
        return None
    classes = np.asarray(classes)
    if classes.dtype.kind in "iu":
        return Labels.of(structure.cardinalities, values=tuple(classes.tolist()))
    return Labels.of(structure.cardinalities, states=[str(name) for name in classes.tolist()])


class ChainModel(DiscreteModel):
    """``p(y) = exp(sum_t unary[t, y_t] + sum_t pair[y_t, y_{t+1}] - A)`` over the labellings of ``T`` nodes.

    The parameter `theta` is all scores, those of the nodes and then those of the pairs of neighbours; the statistics
    are their indicators, so that `mean` are the marginals of nodes and pairs. This is over-complete. `log_partition`,
    `marginals`, `mean`, `entropy`, `kl` to another chain, `map` and `sample` take ``O(T K^2)`` with ``K`` labels. With
    a `method` or another option they are those of `graphical.DiscreteModel`, which answers everything else too.

    Parameters
    ----------
    unary : array (T, K)
        Scores of the labels of each node; minus infinity forbids one.
    pair : array (K, K) or (T - 1, K, K)
        Scores of neighbouring labels, the same for all pairs or of each.
    labels : sequence, optional
        What the labels are called, in ascending order: strings or whole numbers; 0, 1, 2, ... without it.

    Examples
    --------
    >>> model = ChainModel([[0.5, -0.2], [0.1, 0.3], [-1.0, 0.7]], [[0.4, -0.6], [0.2, 0.9]])
    >>> round(model.log_partition(), 6)
    3.318088
    >>> model.marginals().round(4)
    array([[0.4019, 0.5981],
           [0.2291, 0.7709],
           [0.1401, 0.8599]])
    >>> model.given({0: 0}).marginals()[2].round(4)
    array([0.1839, 0.8161])
    """

    def __init__(self, unary: Any, pair: Any, labels: Any = None):
        self._unary, self._pair = oracle.checked_scores(unary, pair)
        length, k = self._unary.shape
        nodes, left = np.arange(length), np.arange(length - 1)
        structure = Structure.flat(
            np.full(length, k),
            np.concatenate([nodes, length + 2 * np.arange(length)]),
            np.concatenate([nodes, np.stack([left, left + 1], axis=1).ravel()]),
        )
        pairs = np.broadcast_to(self._pair, (length - 1, k, k))
        self._bind(
            DiscreteFamily(structure, labels=labels_of(labels, structure)),
            np.concatenate([self._unary.ravel(), pairs.ravel()]),
        )
        self._passes: tuple[np.ndarray, np.ndarray, float] | None = None

    def given(self, evidence: Mapping[Any, Any]) -> Self:
        """The model with the labels of some nodes known, ``{node: label}``: see `DiscreteModel.given`."""
        new = super().given(evidence)
        new._passes = None
        return new

    def to_factor_graph(self) -> FactorGraph:
        """The same distribution as a `graphical.FactorGraph`."""
        graph = FactorGraph.from_flat(self.structure, self.theta, self.labels)
        return graph.given({t: self.labels.value(t, label) for t, label in self._evidence.items()})

    def _scores(self) -> tuple[np.ndarray, np.ndarray]:
        """The scores, with what the evidence rules out forbidden."""
        if not self._evidence:
            return self._unary, self._pair
        unary = self._unary.copy()
        for t, label in self._evidence.items():
            unary[t, np.arange(unary.shape[1]) != label] = -np.inf
        return unary, self._pair

    def _solved(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The marginals of nodes and pairs, and the log-partition function; `DomainError` where nothing is possible."""
        if self._passes is None:
            try:
                self._passes = oracle.sum_product(*self._scores())
            except DomainError:
                self._require_possible(-np.inf)
                raise
        return self._passes

    # The questions of every model ------------------------------------------------------------------------------------

    def log_partition(self, *, method: str | None = None, **options: Any) -> float:
        """``A(theta) = log Z``: with evidence, of the labellings that agree with it. -inf where none is possible."""
        if method is not None or options:
            return super().log_partition(method=method, **options)
        try:
            return self._solved()[2]
        except DomainError:
            return -np.inf

    def marginals(self, *, method: str | None = None, **options: Any) -> Any:
        """The distribution of the label of each node, an array ``(T, K)``."""
        if method is not None or options:
            return super().marginals(method=method, **options)
        return self._solved()[0].copy()

    def _beliefs(self, method: str | None, options: dict) -> tuple[float, np.ndarray]:
        if method is not None or options:
            return super()._beliefs(method, options)
        nodes, pairs, value = self._solved()
        return value, np.concatenate([nodes.ravel(), pairs.ravel()])

    def entropy(self, *, method: str | None = None, **options: Any) -> float:
        """``H = -E log p(y)`` in nats."""
        if method is not None or options:
            return super().entropy(method=method, **options)
        return oracle.tree_entropy(*self._solved()[:2])

    def kl(self, other: DiscreteModel, *, method: str | None = None, **options: Any) -> float:
        """``KL(self || other)``, infinite where `other` forbids what this model allows."""
        if method is not None or options or not isinstance(other, ChainModel):
            return super().kl(other, method=method, **options)
        if self._unary.shape != other._unary.shape:
            raise ValueError(
                f"kl needs two models of the same variables: {self._unary.shape} nodes and labels against "
                f"{other._unary.shape}"
            )
        return oracle.tree_kl(self._solved()[:2], other._solved()[:2])

    def map(self, **options: Any) -> tuple[np.ndarray, float]:
        """A most probable labelling and its score, by Viterbi's algorithm."""
        if options:
            return super().map(**options)
        try:
            labels, score = oracle.viterbi(*self._scores())
        except DomainError:
            self._require_possible(-np.inf)
            raise
        return self.family.values(labels), score

    def sample(self, n: int = 1, rng: Any = None, *, method: str | None = None, **options: Any) -> Any:
        """`n` independent labellings ``(n, T)``; with a `method`, as `DiscreteModel.sample` says."""
        if method is not None or options:
            return super().sample(n, rng, method=method, **options)
        return self.family.values(oracle.draw(*self._solved()[:2], n, rng))
