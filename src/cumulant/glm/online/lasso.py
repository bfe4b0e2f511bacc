"""The Lasso on a stream, by interior-point steps."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from cumulant.glm.online.base import OnlineL1


class OnlineLasso(RegressorMixin, OnlineL1):
    """Least squares with an l1 penalty, learned one row at a time by interior-point steps (the regularised delta rule).

    The weights approach the minimum of

        ``P(w, b) = (1/2n) |y - X w - b|^2 + l1 |w|_1``

    (`l1` is Carbonetto's ``lambda / n`` and scikit-learn's ``Lasso(alpha)``) through points strictly inside the
    constraints of a smooth problem: ``w = w+ - w-`` with ``w+, w- > 0`` (``"split"``) or ``-u < w < u`` (``"bound"``).
    A row of gradient ``g`` moves slacks ``s`` and multipliers ``z`` along the primal-dual direction, for ``"split"``

        ``ds = (-g - l1 + mu/s) / (h + z/s)``,    ``dz = mu/s - z - (z/s) ds``,    ``mu = centring_k * mean(s z)``,

    by the largest step below ``step / (step_delay + k)^step_power`` that goes at most 0.995 of the way to the boundary.
    There is no line search. That the iterates converge is a conjecture (Carbonetto 2009, section 2.3); that they stay
    inside is certain. The weights are not exactly sparse: see `prune`.

    Parameters
    ----------
    l1 : float
    formulation : str
        ``"bound"``, or ``"split"`` as in the published experiments. Split, ``w+`` and ``w-`` fall together only by
        the pull of the penalty, which is slow where `l1` is small.
    curvature : str
        ``h``: ``"identity"`` (1, as published), ``"diagonal"`` (the squares of the row's entries) or ``"averaged"``
        (their running average, with the steps as weights), which makes features of any scale alike.
    x0, z0 : float
        Where slacks and multipliers begin; all weights are zero there. ``z0 / x0`` is the curvature that a feature
        seems to have before its first occurrence.
    step, step_delay, step_power : float
        The largest step at row ``k = 1, 2, ...`` over all passes, at most 1.
    centring, centring_power : float
        ``centring_k = min(1, centring / k^centring_power)``; it must tend to zero for several passes to help.
    separate_steps : bool
        Each feature has a step of its own, instead of the smallest for all.
    implicit : bool
        The slope of a row's loss is taken at the score that the row will have after the step: the root of
        ``t = score - a_k r slope(t)``, ``r`` the fall of the score per unit of slope. A row with large entries then
        cannot overshoot itself. As published, the slope before the step is taken.
    deferral : float
        A feature that a row does not have still moves, by the barrier and the penalty alone. Its steps are put together
        until they amount to this share of a full step; 0 moves every feature at every row, as published.
    fit_intercept : bool
        Not penalised; moved by a plain scaled gradient step.
    passes : int
        Of `fit` over the rows.
    shuffle : bool
        Whether each pass of `fit` has an order of its own; `partial_fit` takes rows as they come.
    time_limit : float, optional
        Seconds of `fit`, and of each penalty of a path. What was learned so far is kept, with its certificate.
    random_state : int, Generator or None
    checkpoint : path or optim.Checkpoint, optional
        Where `fit` is saved as it goes. If the file exists, the fit is resumed; see `optim.run`.
    callback : callable, optional
        Called with an `optim.Snapshot` after each pass of `fit`. Returning True ends it.
    verbose : bool
        Show a progress bar on a terminal.

    Attributes
    ----------
    coef_ : array (features,)
    intercept_ : float
    certificate_ : Certificate or None
        Of `fit`, on its rows; see `verify`. None after `partial_fit` and `prune`: `refusal_` says why, and `certify`
        issues one for rows that are given.
    status_ : str
        ``"max_steps"`` (all passes, or all rows of a stream), ``"time_limit"``, ``"stopped"`` (by the callback) or
        ``"interrupted"``.
    n_iter_, n_rows_ : int
        Passes started, rows learned.

    References
    ----------
    Carbonetto (2009), New probabilistic inference algorithms that harness the strengths of variational and Monte Carlo
    methods, thesis, sections 2.5.2 to 2.5.4. Deferral and the averaged curvature are additions. Implicit steps: Toulis
    and Airoldi (2017), Asymptotic and finite-sample properties of estimators based on stochastic gradients, Annals of
    Statistics 45.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X @ [2.0, 0.0, -1.0, 0.0] + 0.1 * rng.normal(size=300)
    >>> model = OnlineLasso(l1=0.1, passes=100, random_state=0).fit(X, y)
    >>> model.coef_.round(1) + 0.0
    array([ 1.9,  0. , -0.9,  0. ])
    >>> bool(model.certificate_.upper < 0.01)
    True
    """

    _family, _code = "normal", 2

    @property
    def coef_(self) -> np.ndarray:
        """The weights."""
        return self._weights()

    @property
    def intercept_(self) -> float:
        """The intercept."""
        return self._state.intercept

    def _targets(self, y):
        return np.asarray(y, dtype=np.float64)

    def _predictions(self, scores):
        return scores

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from the rows of a batch, in order. How a stream is cut into batches makes no difference.

        The loss of a row counts `sample_weight` times; a row of weight 0 changes nothing.
        """
        self._absorb(X, y, sample_weight=sample_weight)
        return self

    def progressive(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """As `partial_fit`; returns the prediction for each row from just before it was learned."""
        return self._absorb(X, y, sample_weight=sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """The mean of each observation."""
        return self._scores(X)
