"""What scikit-learn density estimators of pairwise models share: learning, scores, and draws."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cumulant.certificates import Certificate
from cumulant.graphical.lattices import complete
from cumulant.graphical.learning.fit import METHODS, fit
from cumulant.graphical.mixing.fast_mixing import FastMixing

__all__ = ["PairwiseDensity"]


class PairwiseDensity(DensityMixin, BaseEstimator):
    """A pairwise model learnt by `graphical.fit`. Heirs have the settings, code the data, and make models."""

    n_features_in_: int
    model_: Any
    edges_: np.ndarray
    certificate_: Certificate | None
    refusal_: str

    # Settings of the heirs
    structure: Any
    method: str
    l2: float
    radius: float | None
    norm: str
    eps: float
    delta: float
    random_state: Any

    def _dtype(self) -> Any:
        """Of the data as they come; None for any."""
        return np.float64

    def _learn_states(self, X: np.ndarray) -> np.ndarray:
        """Learn how data are coded, and code them."""
        raise NotImplementedError

    def _states(self, X: np.ndarray) -> np.ndarray:
        """Data as the model takes them."""
        raise NotImplementedError

    def _empty(self, edges: np.ndarray) -> Any:
        """The model with these edges and zero parameters."""
        raise NotImplementedError

    def _tree(self, x: np.ndarray) -> Any:
        """The best tree."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from data of shape (observations, features)."""
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {self.method!r}")
        data: Any = validate_data(self, X, dtype=self._dtype())
        x = self._learn_states(data)
        if isinstance(self.structure, str) and self.structure == "tree":
            self.model_ = self._tree(x)
            self.certificate_, self.refusal_ = None, "a closed form: no tree has a larger (smoothed) likelihood"
        else:
            if self.method == "mcmc" and self.radius is None:
                raise ValueError("method='mcmc' needs a radius, that of the set in which Gibbs sampling is sure to mix")
            found = fit(
                x,
                self._empty(self._joined(x.shape[1])),
                method=self.method,
                mixing=None if self.radius is None else FastMixing(self.radius, self.norm),
                l2=self.l2,
                eps=self.eps,
                delta=self.delta,
                rng=self._rng(),
            )
            self.model_, self.certificate_, self.refusal_ = found.model, found.certificate, found.refusal
        self.edges_ = self.model_.edges
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """``log p(x)`` of each observation, by elimination; `TooWide` where the graph does not allow it."""
        check_is_fitted(self)
        data: Any = validate_data(self, X, dtype=self._dtype(), reset=False)
        return np.atleast_1d(self.model_.log_prob(self._states(data)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def _drawn(self, n: int, random_state: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.model_.sample(n, rng=self._rng() if random_state is None else random_state)

    def _joined(self, n: int) -> np.ndarray:
        if isinstance(self.structure, str):
            if self.structure != "complete":
                raise ValueError(f"structure must be 'complete', 'tree' or pairs of features; got {self.structure!r}")
            return complete(n)
        return np.asarray(self.structure)

    def _rng(self) -> Any:
        state = self.random_state
        return int(state.randint(2**31)) if isinstance(state, np.random.RandomState) else state
