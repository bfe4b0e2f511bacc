"""Ising models of binary data as a scikit-learn density estimator."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cumulant.graphical.lattices import complete
from cumulant.graphical.learning.chow_liu import chow_liu
from cumulant.graphical.learning.fit import METHODS, fit
from cumulant.graphical.mixing.fast_mixing import FastMixing
from cumulant.graphical.pairwise import Ising

__all__ = ["IsingEstimator"]


class IsingEstimator(DensityMixin, BaseEstimator):
    """An Ising model of binary features, ``p(x) = exp(sum_ij J_ij x_i x_j + sum_i h_i x_i - A)``, learnt from data.

    Parameters
    ----------
    structure : str or pairs of features
        Which features are joined: ``"complete"`` (all), ``"tree"`` (the best one, by Chow and Liu), or edges.
    method : str
        As in `graphical.fit`: ``"pseudo_likelihood"``, ``"composite"``, ``"exact"`` (small width), ``"mcmc"``,
        ``"contrastive_divergence"`` or ``"persistent"``. A tree is always fitted exactly, in closed form.
    l2 : float
        The penalty ``l2/2 |theta|^2``; for a tree, so many observations are added as smoothing.
    radius : float, optional
        Stay among the couplings with ``norm(|J|) <= radius``; below 1, Gibbs sampling mixes fast. Needed by ``"mcmc"``.
    norm : str
        ``"spectral"``, ``"one"``, ``"inf"``, or ``"box"`` for ``|J_ij| <= radius``.
    eps, delta : float
        Of ``"mcmc"``: ``|theta - theta*| <= eps`` with probability ``1 - delta``.
    binarize : float, optional
        Features above it are +1 and others -1. Without it the data must be 0 and 1, or -1 and +1.
    random_state : int, Generator or None
        Only sampling methods draw, and `sample` where it is given no other.

    Attributes
    ----------
    model_ : Ising
    edges_, couplings_, fields_ : arrays
    certificate_ : Certificate or None
        What is guaranteed, and about which objective; ``refusal_`` says why where there is none.
    n_features_in_ : int

    Examples
    --------
    >>> x = Ising([(0, 1), (1, 2)], [0.8, -0.5], np.zeros(3)).sample(1000, rng=0)
    >>> model = IsingEstimator(method="exact", l2=0.01).fit((x + 1) // 2)
    >>> bool(np.abs(model.couplings_ - [0.8, 0.0, -0.5]).max() < 0.15)
    True
    >>> bool(model.score((x + 1) // 2) > -3 * np.log(2))
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
        binarize: float | None = None,
        random_state: Any = None,
    ):
        self.structure, self.method, self.l2, self.radius, self.norm = structure, method, l2, radius, norm
        self.eps, self.delta, self.binarize, self.random_state = eps, delta, binarize, random_state

    def fit(self, X: Any, y: Any = None) -> "IsingEstimator":
        """Learn from data of shape (observations, features)."""
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {self.method!r}")
        X = validate_data(self, X, dtype=np.float64)
        self.values_ = (-1.0, 1.0) if self.binarize is None and (X == -1).any() else (0.0, 1.0)
        x = self._spins(X)
        if isinstance(self.structure, str) and self.structure == "tree":
            self.model_: Any = chow_liu(x, smoothing=self.l2, spins=True)
            self.certificate_, self.refusal_ = None, "a closed form: no tree has a larger (smoothed) likelihood"
        else:
            edges = self._edges(x.shape[1])
            mixing = None if self.radius is None else FastMixing(self.radius, self.norm)
            found = fit(
                x,
                Ising(edges, 0.0, np.zeros(x.shape[1])),
                method=self.method,
                mixing=mixing,
                l2=self.l2,
                eps=self.eps,
                delta=self.delta,
                rng=self._rng(),
            )
            self.model_, self.certificate_, self.refusal_ = found.model, found.certificate, found.refusal
        self.edges_, self.couplings_, self.fields_ = self.model_.edges, self.model_.couplings, self.model_.fields
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """``log p(x)`` of each observation, by elimination; `TooWide` where the graph does not allow it."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.atleast_1d(self.model_.log_prob(self._spins(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Exact draws, coded as the data were."""
        check_is_fitted(self)
        x = self.model_.sample(n_samples, rng=self._rng() if random_state is None else random_state)
        return np.where(x > 0, self.values_[1], self.values_[0])

    def _spins(self, X: np.ndarray) -> np.ndarray:
        if self.binarize is not None:
            return np.where(self.binarize < X, 1, -1)
        if not np.isin(X, self.values_).all():
            bad = X[~np.isin(X, self.values_)][0]
            raise ValueError(f"X must hold 0 and 1, or -1 and +1 (or set binarize=); got {bad:g}")
        return np.where(X > 0, 1, -1)

    def _edges(self, n: int) -> np.ndarray:
        if isinstance(self.structure, str):
            if self.structure != "complete":
                raise ValueError(f"structure must be 'complete', 'tree' or pairs of features; got {self.structure!r}")
            return complete(n)
        return np.asarray(self.structure)

    def _rng(self) -> Any:
        state = self.random_state
        return int(state.randint(2**31)) if isinstance(state, np.random.RandomState) else state
