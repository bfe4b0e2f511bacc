"""Pairwise Markov random fields of categorical data as a scikit-learn density estimator."""

from typing import Any

import numpy as np
from sklearn.preprocessing import OrdinalEncoder

from cumulant.graphical.learning.chow_liu import chow_liu
from cumulant.graphical.learning.density_estimator import PairwiseDensity
from cumulant.graphical.mixing.fast_mixing import FastMixing
from cumulant.graphical.pairwise import PairwiseMRF

__all__ = ["MarkovNetworkEstimator"]


class MarkovNetworkEstimator(PairwiseDensity):
    """A table for each feature and each joined pair, ``p(x) = exp(sum_i t_i(x_i) + sum_ij t_ij(x_i, x_j) - A)``, learnt
    from categorical data.

    Parameters
    ----------
    structure, method, l2, mixing, random_state, time_limit, checkpoint, callback, verbose
        As those of `IsingEstimator`; the penalty is on all entries of tables.
    categories : "auto", list of arrays, or int
        The values that each feature can have; ``"auto"``: those in the data. A whole number: features are numbers, and
        are cut at their quantiles into that many states; `score_samples` is then about these, and `sample` gives the
        mean of the training data in each.

    Attributes
    ----------
    model_ : PairwiseMRF
    categories_ : list of arrays
        The value of each state of each feature.
    edges_, certificate_, refusal_, status_, n_features_in_
        As those of `IsingEstimator`.

    Examples
    --------
    >>> x = np.array([["red", "warm"], ["red", "warm"], ["blue", "cold"], ["green", "cold"], ["blue", "warm"]])
    >>> model = MarkovNetworkEstimator(method="exact", l2=0.1).fit(x)
    >>> [list(map(str, values)) for values in model.categories_]
    [['blue', 'green', 'red'], ['cold', 'warm']]
    >>> warm, cold = np.exp(model.score_samples([["red", "warm"], ["red", "cold"]]))
    >>> bool(warm > 2 * cold)
    True
    """

    def __init__(
        self,
        structure: Any = "complete",
        *,
        method: Any = "pseudo_likelihood",
        l2: float = 0.01,
        mixing: FastMixing | None = None,
        categories: Any = "auto",
        random_state: Any = None,
        time_limit: float | None = None,
        checkpoint: Any = None,
        callback: Any = None,
        verbose: bool = False,
    ):
        self.structure, self.method, self.l2, self.mixing = structure, method, l2, mixing
        self.categories, self.random_state, self.time_limit = categories, random_state, time_limit
        self.checkpoint, self.callback, self.verbose = checkpoint, callback, verbose

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Exact draws, of the values that the data had."""
        x = self._drawn(n_samples, random_state)
        columns = [values[x[:, v]] for v, values in enumerate(self.categories_)]
        return np.stack(columns, axis=1)

    def __sklearn_tags__(self) -> Any:
        """Categories may be of any kind; bins are cut in numbers."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = not self._binned
        return tags

    def _dtype(self) -> Any:
        return np.float64 if self._binned else None

    @property
    def _binned(self) -> bool:
        return isinstance(self.categories, int | np.integer)

    def _learn_states(self, X: Any) -> np.ndarray:
        if not self._binned:
            self._encoder = OrdinalEncoder(categories=self.categories).fit(X)
            self.categories_ = list(self._encoder.categories_)
            return self._states(X)
        if isinstance(self.categories, bool) or self.categories < 1:
            raise ValueError(f"categories must be 'auto', lists of values, or at least 1; got {self.categories!r}")
        # The same edge twice makes a state that no number falls into: one of them is enough.
        inner = np.linspace(0.0, 1.0, int(self.categories) + 1)[1:-1]
        self._bin_edges = [np.unique(np.quantile(column, inner)) for column in X.T]
        x = self._states(X)
        self.categories_ = []
        for v, edges in enumerate(self._bin_edges):
            inside = [X[x[:, v] == k, v] for k in range(len(edges) + 1)]
            near = np.concatenate([edges[:1], edges]) if len(edges) else np.zeros(1)
            self.categories_.append(np.array([a.mean() if a.size else b for a, b in zip(inside, near, strict=True)]))
        return x

    def _states(self, X: Any) -> np.ndarray:
        if not self._binned:
            return self._encoder.transform(X).astype(np.int64)
        columns = [np.searchsorted(edges, X[:, v], side="right") for v, edges in enumerate(self._bin_edges)]
        return np.stack(columns, axis=1).astype(np.int64)

    def _empty(self, edges: np.ndarray) -> PairwiseMRF:
        sizes = [len(values) for values in self.categories_]
        return PairwiseMRF([np.zeros(q) for q in sizes], edges, [np.zeros((sizes[i], sizes[j])) for i, j in edges])

    def _coding(self) -> dict[str, np.ndarray]:
        arrays = {}
        for v, values in enumerate(self.categories_):
            plain = np.array(values.tolist())
            if plain.dtype.kind not in "biufU" or plain.tolist() != values.tolist():
                raise TypeError(f"the categories of feature {v} must be all numbers or all text to be saved")
            arrays[f"{'objects' if values.dtype.hasobject else 'values'}/{v}"] = plain
        if self._binned:
            arrays |= {f"bins/{v}": edges for v, edges in enumerate(self._bin_edges)}
        return arrays

    def _set_coding(self, arrays: dict[str, np.ndarray]) -> None:
        self.categories_ = [
            arrays[f"values/{v}"] if f"values/{v}" in arrays else arrays[f"objects/{v}"].astype(object)
            for v in range(self.n_features_in_)
        ]
        if self._binned:
            self._bin_edges = [arrays[f"bins/{v}"] for v in range(self.n_features_in_)]
            return
        # The encoder compares values of the type it was fitted with: numbers with numbers.
        kinds = {"n" if values.dtype.kind in "biuf" else values.dtype.kind for values in self.categories_}
        one = np.array([[values[0] for values in self.categories_]], dtype=None if kinds in ({"n"}, {"U"}) else object)
        categories: Any = self.categories_
        self._encoder = OrdinalEncoder(categories=categories).fit(one)

    def _tree(self, x: np.ndarray) -> Any:
        return chow_liu(x, smoothing=self.l2, cardinalities=[len(values) for values in self.categories_])
