"""Pairwise models as scikit-learn density estimators: of binary data, and of categories or binned numbers."""

from typing import Any

import numpy as np
from sklearn.preprocessing import OrdinalEncoder

from cumulant.graphical.learning.chow_liu import chow_liu
from cumulant.graphical.learning.density import PairwiseDensity
from cumulant.graphical.mixing.fast_mixing import FastMixing
from cumulant.graphical.pairwise import Ising, PairwiseMRF


class IsingEstimator(PairwiseDensity):
    """An Ising model of binary features, ``p(x) = exp(sum_ij J_ij x_i x_j + sum_i h_i x_i - A)``, learnt from data.

    Parameters
    ----------
    structure : str or pairs of features
        Which features are joined: ``"sparse"`` (those that a penalised pseudo-likelihood chooses, see
        `sparse_structure`), ``"complete"`` (all), ``"tree"`` (the best one, by Chow and Liu), or edges.
    method : str or settings
        As in `graphical.fit`: ``"pseudo_likelihood"``, ``"composite"``, ``"exact"`` (small width), ``"mcmc"``,
        ``"contrastive_divergence"`` or ``"persistent"``, or an object of settings such as ``graphical.MCMC(eps=0.5)``:
        how the parameters of the chosen edges are learnt. A tree is always fitted exactly, in closed form. Missing
        values are for ``"pseudo_likelihood"``, which sums over them: see `MarginalisedProblem`.
    l1 : float, optional
        Of ``structure="sparse"``: the penalty on each pair. Without it, the one with the smallest EBIC.
    l2 : float
        The penalty ``l2/2 |theta|^2``; for a tree, the number of observations added as smoothing.
    mixing : FastMixing, optional
        The set to stay in, in which Gibbs sampling mixes fast. Needed by ``"mcmc"``.
    binarize : float, optional
        Features above it are +1 and others -1. Without it the data must be 0 and 1, or -1 and +1.
    random_state : int, Generator or None
        Only sampling methods draw, and `sample` where it is given no other.
    time_limit, checkpoint, callback
        As in `optim.run`.
    verbose : bool or None
        A progress bar on the terminal; None: once the fit has lasted a second.

    Attributes
    ----------
    model_ : Ising
    edges_, couplings_, fields_ : arrays
    certificate_ : Certificate or None
        What is guaranteed, and about which objective; ``refusal_`` says why where there is none. ``verify(X)`` issues
        it again from the data.
    status_ : str
        How the run ended.
    structure_ : SparseStructure or None
        How the edges were chosen, with the duality gap of that problem, where they were.
    normaliser_ : Normaliser
        ``log Z``, and how it is known: what `score` and `score_samples` rest on.
    draws_ : Draws or None
        The Markov chains behind the last `sample`, with R-hat and effective sample sizes; None where it was exact.
    n_features_in_ : int

    Examples
    --------
    >>> x = Ising([(0, 1), (1, 2)], [0.8, -0.5], np.zeros(3)).sample(1000, rng=0)
    >>> model = IsingEstimator().fit((x + 1) // 2)
    >>> model.edges_.tolist()
    [[0, 1], [1, 2]]
    >>> bool(np.abs(model.couplings_ - [0.8, -0.5]).max() < 0.15)
    True
    >>> bool(model.score((x + 1) // 2) > -3 * np.log(2))
    True
    """

    def __init__(
        self,
        structure: Any = "sparse",
        *,
        method: Any = "pseudo_likelihood",
        l1: float | None = None,
        l2: float = 0.01,
        mixing: FastMixing | None = None,
        binarize: float | None = None,
        random_state: Any = None,
        time_limit: float | None = None,
        checkpoint: Any = None,
        callback: Any = None,
        verbose: bool | None = None,
    ):
        self.structure, self.method, self.l1, self.l2, self.mixing = structure, method, l1, l2, mixing
        self.binarize = binarize
        self.random_state, self.time_limit, self.checkpoint = random_state, time_limit, checkpoint
        self.callback, self.verbose = callback, verbose

    @property
    def couplings_(self) -> np.ndarray:
        """Of the edges."""
        return self.model_.couplings

    @property
    def fields_(self) -> np.ndarray:
        """Of the features."""
        return self.model_.fields

    def _decoded(self, x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, self.values_[1], self.values_[0])

    def _sizes(self) -> None:
        return None

    def _learn_states(self, X: np.ndarray) -> np.ndarray:
        self.values_ = (-1.0, 1.0) if self.binarize is None and (X == -1).any() else (0.0, 1.0)
        return self._states(X)

    def _states(self, X: np.ndarray) -> np.ndarray:
        missing = np.isnan(X)
        if self.binarize is None and not (np.isin(X, self.values_) | missing).all():
            bad = X[~(np.isin(X, self.values_) | missing)][0]
            raise ValueError(f"X must hold 0 and 1, or -1 and +1, or NaN (or set binarize=); got {bad:g}")
        x = np.where((0.0 if self.binarize is None else self.binarize) < X, 1, -1)
        return np.where(missing, np.nan, x) if missing.any() else x

    def _empty(self, edges: np.ndarray) -> Ising:
        return Ising(edges, 0.0, np.zeros(self.n_features_in_))

    def _coding(self) -> dict[str, np.ndarray]:
        return {"values": np.array(self.values_)}

    def _set_coding(self, arrays: dict[str, np.ndarray]) -> None:
        low, high = arrays["values"].tolist()
        self.values_ = (low, high)

    def _tree(self, x: np.ndarray) -> Any:
        return chow_liu(x, smoothing=self.l2, spins=True)


class MarkovNetworkEstimator(PairwiseDensity):
    """A table for each feature and each joined pair, ``p(x) = exp(sum_i t_i(x_i) + sum_ij t_ij(x_i, x_j) - A)``, learnt
    from categorical data.

    Parameters
    ----------
    structure, method, l1, l2, mixing, random_state, time_limit, checkpoint, callback, verbose
        As those of `IsingEstimator`; `l2` is on all entries of tables, `l1` on the Frobenius norm of each table of two.
    categories : "auto", list of arrays, or int
        The values that each feature can have; ``"auto"``: those in the data. A whole number: features are numbers, and
        are cut at their quantiles into that many states; `score_samples` is then about these, and `sample` gives the
        mean of the training data in each.

    Attributes
    ----------
    model_ : PairwiseMRF
    categories_ : list of arrays
        The value of each state of each feature.
    edges_, certificate_, refusal_, status_, structure_, normaliser_, draws_, n_features_in_
        As those of `IsingEstimator`.

    Examples
    --------
    >>> x = np.array([["red", "warm"], ["red", "warm"], ["blue", "cold"], ["green", "cold"], ["blue", "warm"]])
    >>> model = MarkovNetworkEstimator("complete", method="exact", l2=0.1).fit(x)
    >>> [list(map(str, values)) for values in model.categories_]
    [['blue', 'green', 'red'], ['cold', 'warm']]
    >>> warm, cold = np.exp(model.score_samples([["red", "warm"], ["red", "cold"]]))
    >>> bool(warm > 2 * cold)
    True
    """

    def __init__(
        self,
        structure: Any = "sparse",
        *,
        method: Any = "pseudo_likelihood",
        l1: float | None = None,
        l2: float = 0.01,
        mixing: FastMixing | None = None,
        categories: Any = "auto",
        random_state: Any = None,
        time_limit: float | None = None,
        checkpoint: Any = None,
        callback: Any = None,
        verbose: bool | None = None,
    ):
        self.structure, self.method, self.l1, self.l2, self.mixing = structure, method, l1, l2, mixing
        self.categories, self.random_state, self.time_limit = categories, random_state, time_limit
        self.checkpoint, self.callback, self.verbose = checkpoint, callback, verbose

    def _sizes(self) -> list[int]:
        return [len(values) for values in self.categories_]

    def _decoded(self, x: np.ndarray) -> np.ndarray:
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
        missing = _is_missing(X)
        if missing.all(axis=0).any():
            raise ValueError(f"feature {int(missing.all(axis=0).argmax())} of X has no value that is known")
        if not self._binned:
            self._encoder = OrdinalEncoder(categories=self.categories).fit(_filled(X, missing))
            self.categories_ = list(self._encoder.categories_)
            return self._states(X)
        if isinstance(self.categories, bool) or self.categories < 1:
            raise ValueError(f"categories must be 'auto', lists of values, or at least 1; got {self.categories!r}")
        # The same edge twice makes a state that no number falls into: one of them is enough.
        inner = np.linspace(0.0, 1.0, int(self.categories) + 1)[1:-1]
        self._bin_edges = [np.unique(np.nanquantile(column, inner)) for column in X.T]
        x = self._states(X)
        self.categories_ = []
        for v, edges in enumerate(self._bin_edges):
            inside = [X[x[:, v] == k, v] for k in range(len(edges) + 1)]
            near = np.concatenate([edges[:1], edges]) if len(edges) else np.zeros(1)
            self.categories_.append(np.array([a.mean() if a.size else b for a, b in zip(inside, near, strict=True)]))
        return x

    def _states(self, X: Any) -> np.ndarray:
        missing = _is_missing(X)
        if self._binned:
            columns = [np.searchsorted(edges, X[:, v], side="right") for v, edges in enumerate(self._bin_edges)]
            x = np.stack(columns, axis=1).astype(np.int64)
        else:
            # What stands in for a missing value only has to be one that the encoder knows.
            known = np.array([values[0] for values in self.categories_], dtype=object)
            x = self._encoder.transform(np.where(missing, known, X) if missing.any() else X).astype(np.int64)
        return np.where(missing, np.nan, x) if missing.any() else x

    def _empty(self, edges: np.ndarray) -> PairwiseMRF:
        sizes = self._sizes()
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
        return chow_liu(x, smoothing=self.l2, cardinalities=self._sizes())


def _is_missing(X: np.ndarray) -> np.ndarray:
    """NaN, or None among objects."""
    if X.dtype.hasobject:
        nothing: Any = None
        return np.equal(X, nothing) | (X != X)
    return np.isnan(X) if X.dtype.kind == "f" else np.zeros(X.shape, bool)


def _filled(X: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """With the first value that is known in the place of missing ones."""
    first = (~missing).argmax(axis=0)
    return np.where(missing, X[first, np.arange(X.shape[1])], X) if missing.any() else X
