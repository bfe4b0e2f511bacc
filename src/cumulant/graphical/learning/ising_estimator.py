"""Ising models of binary data as a scikit-learn density estimator."""

from typing import Any

import numpy as np

from cumulant.graphical.learning.chow_liu import chow_liu
from cumulant.graphical.learning.density_estimator import PairwiseDensity
from cumulant.graphical.mixing.fast_mixing import FastMixing
from cumulant.graphical.pairwise import Ising

__all__ = ["IsingEstimator"]


class IsingEstimator(PairwiseDensity):
    """An Ising model of binary features, ``p(x) = exp(sum_ij J_ij x_i x_j + sum_i h_i x_i - A)``, learnt from data.

    Parameters
    ----------
    structure : str or pairs of features
        Which features are joined: ``"complete"`` (all), ``"tree"`` (the best one, by Chow and Liu), or edges.
    method : str or settings
        As in `graphical.fit`: ``"pseudo_likelihood"``, ``"composite"``, ``"exact"`` (small width), ``"mcmc"``,
        ``"contrastive_divergence"`` or ``"persistent"``, or an object of settings such as ``graphical.MCMC(eps=0.5)``.
        A tree is always fitted exactly, in closed form.
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
    verbose : bool
        A progress bar on the terminal.

    Attributes
    ----------
    model_ : Ising
    edges_, couplings_, fields_ : arrays
    certificate_ : Certificate or None
        What is guaranteed, and about which objective; ``refusal_`` says why where there is none. ``verify(X)`` issues
        it again from the data.
    status_ : str
        How the run ended.
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
        method: Any = "pseudo_likelihood",
        l2: float = 0.01,
        mixing: FastMixing | None = None,
        binarize: float | None = None,
        random_state: Any = None,
        time_limit: float | None = None,
        checkpoint: Any = None,
        callback: Any = None,
        verbose: bool = False,
    ):
        self.structure, self.method, self.l2, self.mixing, self.binarize = structure, method, l2, mixing, binarize
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

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Exact draws, coded as the data were."""
        return np.where(self._drawn(n_samples, random_state) > 0, self.values_[1], self.values_[0])

    def _learn_states(self, X: np.ndarray) -> np.ndarray:
        self.values_ = (-1.0, 1.0) if self.binarize is None and (X == -1).any() else (0.0, 1.0)
        return self._states(X)

    def _states(self, X: np.ndarray) -> np.ndarray:
        if self.binarize is not None:
            return np.where(self.binarize < X, 1, -1)
        if not np.isin(X, self.values_).all():
            bad = X[~np.isin(X, self.values_)][0]
            raise ValueError(f"X must hold 0 and 1, or -1 and +1 (or set binarize=); got {bad:g}")
        return np.where(X > 0, 1, -1)

    def _empty(self, edges: np.ndarray) -> Ising:
        return Ising(edges, 0.0, np.zeros(self.n_features_in_))

    def _coding(self) -> dict[str, np.ndarray]:
        return {"values": np.array(self.values_)}

    def _set_coding(self, arrays: dict[str, np.ndarray]) -> None:
        low, high = arrays["values"].tolist()
        self.values_ = (low, high)

    def _tree(self, x: np.ndarray) -> Any:
        return chow_liu(x, smoothing=self.l2, spins=True)
