"""Pairwise Markov random fields of categorical data as a scikit-learn density estimator."""

from typing import Any

import numpy as np
from sklearn.preprocessing import OrdinalEncoder

from cumulant.graphical.learning.chow_liu import chow_liu
from cumulant.graphical.learning.density_estimator import PairwiseDensity
from cumulant.graphical.pairwise import PairwiseMRF

__all__ = ["MarkovNetworkEstimator"]


class MarkovNetworkEstimator(PairwiseDensity):
    """A table for each feature and each joined pair, ``p(x) = exp(sum_i t_i(x_i) + sum_ij t_ij(x_i, x_j) - A)``, learnt
    from categorical data.

    Parameters
    ----------
    structure : str or pairs of features
        Which features are joined: ``"complete"`` (all), ``"tree"`` (the best one, by Chow and Liu), or edges.
    method : str
        As in `graphical.fit`: ``"pseudo_likelihood"``, ``"composite"``, ``"exact"`` (small width), ``"mcmc"``,
        ``"contrastive_divergence"`` or ``"persistent"``. A tree is always fitted exactly, in closed form.
    l2 : float
        The penalty ``l2/2 |theta|^2`` on all entries of tables; for a tree, so many observations are added as
        smoothing.
    radius : float, optional
        Stay among the tables whose linear dependency matrix has ``norm(R) <= radius``; below 1, Gibbs sampling mixes
        fast. Needed by ``"mcmc"``.
    norm : str
        ``"spectral"``, ``"one"`` or ``"inf"``.
    eps, delta : float
        Of ``"mcmc"``: ``|theta - theta*| <= eps`` with probability ``1 - delta``.
    categories : "auto" or list of arrays
        The values that each feature can have; without it, those in the data.
    n_bins : int, optional
        Features are numbers, and are cut at their quantiles into so many states; `score_samples` is then about these,
        and `sample` gives the mean of the training data in each.
    random_state : int, Generator or None
        Only sampling methods draw, and `sample` where it is given no other.

    Attributes
    ----------
    model_ : PairwiseMRF
    edges_ : array
    categories_ : list of arrays
        The value of each state of each feature.
    certificate_ : Certificate or None
        What is guaranteed, and about which objective; ``refusal_`` says why where there is none.
    n_features_in_ : int

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
        method: str = "pseudo_likelihood",
        l2: float = 0.01,
        radius: float | None = None,
        norm: str = "spectral",
        eps: float = 0.25,
        delta: float = 0.1,
        categories: Any = "auto",
        n_bins: int | None = None,
        random_state: Any = None,
    ):
        self.structure, self.method, self.l2, self.radius, self.norm = structure, method, l2, radius, norm
        self.eps, self.delta, self.categories, self.n_bins = eps, delta, categories, n_bins
        self.random_state = random_state

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Exact draws, of the values that the data had."""
        x = self._drawn(n_samples, random_state)
        columns = [values[x[:, v]] for v, values in enumerate(self.categories_)]
        return np.stack(columns, axis=1)

    def __sklearn_tags__(self) -> Any:
        """Categories may be of any kind; bins are cut in numbers."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = self.n_bins is None
        return tags

    def _dtype(self) -> Any:
        return None if self.n_bins is None else np.float64

    def _learn_states(self, X: Any) -> np.ndarray:
        if self.n_bins is None:
            self._encoder = OrdinalEncoder(categories=self.categories).fit(X)
            self.categories_ = list(self._encoder.categories_)
            return self._states(X)
        if isinstance(self.n_bins, bool) or not isinstance(self.n_bins, int | np.integer) or self.n_bins < 1:
            raise ValueError(f"n_bins must be a whole number, at least 1, or None; got {self.n_bins!r}")
        # The same edge twice makes a state that no number falls into: one of them is enough.
        inner = np.linspace(0.0, 1.0, int(self.n_bins) + 1)[1:-1]
        self._bin_edges = [np.unique(np.quantile(column, inner)) for column in X.T]
        x = self._states(X)
        self.categories_ = []
        for v, edges in enumerate(self._bin_edges):
            inside = [X[x[:, v] == k, v] for k in range(len(edges) + 1)]
            near = np.concatenate([edges[:1], edges]) if len(edges) else np.zeros(1)
            self.categories_.append(np.array([a.mean() if a.size else b for a, b in zip(inside, near, strict=True)]))
        return x

    def _states(self, X: Any) -> np.ndarray:
        if self.n_bins is None:
            return self._encoder.transform(X).astype(np.int64)
        columns = [np.searchsorted(edges, X[:, v], side="right") for v, edges in enumerate(self._bin_edges)]
        return np.stack(columns, axis=1).astype(np.int64)

    def _empty(self, edges: np.ndarray) -> PairwiseMRF:
        sizes = [len(values) for values in self.categories_]
        return PairwiseMRF([np.zeros(q) for q in sizes], edges, [np.zeros((sizes[i], sizes[j])) for i, j in edges])

    def _tree(self, x: np.ndarray) -> Any:
        return chow_liu(x, smoothing=self.l2, cardinalities=[len(values) for values in self.categories_])
