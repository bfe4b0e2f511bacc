"""The generalised linear model as a scikit-learn estimator."""

import os
import time
import warnings
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch, assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from cumulant import families, optim
from cumulant.certificates import Certificate
from cumulant.errors import CertificateError, NoEstimateError
from cumulant.families import ExponentialFamily
from cumulant.glm.batch.design import design_of, dot
from cumulant.glm.batch.losses import Loss, loss_of
from cumulant.glm.batch.model_files import load_model, save_model
from cumulant.glm.batch.partial_fits import PartialFits, weights_of
from cumulant.glm.batch.penalty_path import Paths
from cumulant.glm.batch.problem import GLMProblem
from cumulant.glm.batch.separation import separating_direction
from cumulant.glm.batch.standard_errors import standard_errors
from cumulant.glm.solvers.dual_ascent import SAMPLINGS, DualAscent
from cumulant.glm.solvers.newton import Newton, starting_point
from cumulant.glm.solvers.newton_step import held_back, is_small
from cumulant.glm.solvers.proximal_newton import ProximalNewton
from cumulant.glm.solvers.working_set import WorkingSet

__all__ = ["GLM"]

_NAMES = ("bernoulli", "binomial", "poisson", "normal", "gamma", "categorical")
_SOLVERS = ("auto", "newton", "prox-newton", "sdca")


class GLM(PartialFits, Paths, BaseEstimator):
    """Generalised linear model: observations from an exponential family whose parameter is linear in the features.

    The weights ``w`` and the intercept ``b`` minimise

        ``P(w, b) = (1/W) sum_i weight_i loss(y_i, x_i . w + b + offset_i) + l1 |w|_1 + l2/2 |w|^2``,

    ``W`` the sum of the weights, the loss half a unit deviance: the logistic loss for ``"bernoulli"``, half the squared
    error for ``"normal"``, ``y log(y/m) - y + m`` for ``"poisson"``. The intercept is not penalised. What is returned
    is at most ``certificate_.upper`` above the minimum.

    Parameters
    ----------
    family : str or ExponentialFamily
        ``"bernoulli"`` (two classes, logit), ``"categorical"`` (several, softmax with scores for every class),
        ``"normal"`` (identity), ``"poisson"`` (log), ``"gamma"`` (log: the natural link would confine scores to a
        half-line; with the log the loss is still convex). Or a family object with one natural parameter, such as
        ``families.Binomial(10)``, ``families.Exponential()`` or ``families.NegativeBinomial(2.0)``: the score is then
        its natural parameter, and predictions whose score is outside the domain are refused.
    l1, l2 : float
        Penalties; ``l2=None`` stands for ``1/W``. In scikit-learn's words: ``LogisticRegression(C=1/(W l2))``,
        ``Ridge(alpha=W l2)``, ``PoissonRegressor(alpha=l2)``, ``GammaRegressor(alpha=l2)``,
        ``ElasticNet(alpha=l1 + l2, l1_ratio=l1/(l1 + l2))``.
    fit_intercept : bool
    tol : float
        Stop when the certified gap is at most this share of the objective.
    solver : str
        ``"newton"`` (``l1 = 0``), ``"prox-newton"`` (``l1 > 0``), ``"sdca"`` (``l2 > 0``); ``"auto"``: the first two.
    max_iter : int, optional
        Newton steps (100 by default) or epochs of dual ascent (1000).
    sampling : str
        Of ``"sdca"``: see `DualAscent`.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.
    time_limit : float, optional
        Seconds. The best weights so far are kept, with their certificate.
    random_state : int, Generator or None
        Only ``"sdca"`` draws.

    Attributes
    ----------
    coef_ : array (features,), (1, features) for two classes, (classes, features) for ``"categorical"``
    intercept_ : float, or array (1,) or (classes,) for classifiers
    classes_ : array
        For classifiers.
    certificate_ : Certificate or None
        Of ``P(w) - P*``. None where nothing is certain: `refusal_` says why.
    objective_ : float
    status_ : str
        ``"converged"``, ``"rounding"`` (as near as float64 allows, which is not as near as `tol` asks),
        ``"uncertified"``, ``"max_iter"``, ``"time_limit"``, ``"interrupted"`` or ``"streamed"``.
    history_ : list of dict
        Steps, seconds, objective and bound.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = rng.poisson(np.exp(0.5 * X[:, 0] + 1.0))
    >>> model = GLM("poisson", l2=0.01, tol=1e-6).fit(X, y)
    >>> model.status_, bool(model.certificate_.upper <= 1e-6 * model.objective_)
    ('converged', True)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    coef_: np.ndarray
    intercept_: Any
    classes_: np.ndarray
    certificate_: Certificate | None
    refusal_: str
    objective_: float
    status_: str
    history_: list[dict[str, float]]
    n_iter_: int
    n_features_in_: int
    feature_names_in_: np.ndarray
    _link: Loss

    def __init__(
        self,
        family="normal",
        l1=0.0,
        l2=None,
        fit_intercept=True,
        tol=1e-4,
        solver="auto",
        max_iter=None,
        sampling="gap",
        n_jobs=None,
        time_limit=None,
        random_state=None,
    ):
        self.family = family
        self.l1 = l1
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.solver = solver
        self.max_iter = max_iter
        self.sampling = sampling
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.random_state = random_state

    # What kind of estimator this is -----------------------------------------------------------------------------------

    def _is_binary(self) -> bool:
        return self.family == "bernoulli" or isinstance(self.family, families.Bernoulli)

    def _is_categorical(self) -> bool:
        return self.family == "categorical" or isinstance(self.family, families.Categorical)

    def _is_classifier(self) -> bool:
        return self._is_binary() or self._is_categorical()

    def __sklearn_tags__(self):
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        if self._is_classifier():
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=not self._is_binary())
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
            tags.target_tags.positive_only = self.family in ("poisson", "gamma") or isinstance(
                self.family, ExponentialFamily
            )
        return tags

    # Fitting ----------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> "GLM":
        """Fit to features `X` (dense or sparse) and observations `y`.

        `offset` is added to the scores; ``exposure`` is the same on the scale of the mean, ``offset = log(exposure)``,
        for families with a log link.
        """
        self._check_settings()
        self.__dict__.pop("_stream", None)
        start = time.perf_counter()
        X, y = self._validated(X, y, finite=False)
        targets = self._targets(y)
        problem = self._problem(X, targets, sample_weight, offset, exposure)
        self._link = problem.loss.take(slice(0, 0))
        self.history_ = []
        result, floor = self._run(problem, starting_point(problem), start)
        self._finish(problem, result, floor)
        return self

    def _run(self, problem: GLMProblem, x0: np.ndarray, start: float) -> tuple[optim.Result, float]:
        """The run of the solver, and what `tol` is relative to where the fit is perfect."""
        # A billionth of the loss of the best constant score.
        constant = np.broadcast_to(problem.loss.start(problem.weights), (problem.n_terms, problem.loss.outputs))
        constant = constant.reshape(problem.offset.shape) + problem.offset
        floor = 1e-9 * dot(problem.weights, problem.loss.terms(constant)[0])
        solver = self._choose(problem)
        with held_back(problem):
            result = optim.run(
                solver,
                problem,
                x0,
                max_steps=self._max_iter(solver),
                tol=None,
                callback=lambda snapshot: self._watch(problem, snapshot, start, floor),
                time_limit=self.time_limit,
                rng=self._rng(),
                progress=False,
            )
        return result, floor

    def _rng(self):
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31 - 1))
        return self.random_state

    def _check_settings(self) -> None:
        known = isinstance(self.family, ExponentialFamily) or self.family in _NAMES
        if not known:
            raise ValueError(f"family must be one of {', '.join(_NAMES)} or a family object; got {self.family!r}")
        if self.family == "binomial":
            raise ValueError("family='binomial' needs the number of trials: use family=families.Binomial(trials)")
        for name in ("l1", "l2"):
            value = getattr(self, name)
            if not (value is None and name == "l2") and not (isinstance(value, Real) and 0 <= float(value) < np.inf):
                raise ValueError(f"{name} must be a number, at least 0; got {value!r}")
        if not (isinstance(self.tol, Real) and 0 < float(self.tol) < np.inf):
            raise ValueError(f"tol must be positive; got {self.tol!r}")
        if self.solver not in _SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(_SOLVERS)}; got {self.solver!r}")
        if self.solver == "newton" and self.l1:
            raise ValueError("solver='newton' does not take an l1 penalty: use solver='prox-newton' or 'sdca'")
        if self.solver == "prox-newton" and not self.l1:
            raise ValueError("solver='prox-newton' is for l1 > 0: use solver='newton'")
        if self.sampling not in SAMPLINGS:
            raise ValueError(f"sampling must be one of {', '.join(SAMPLINGS)}; got {self.sampling!r}")
        if self.max_iter is not None and (isinstance(self.max_iter, bool) or not self.max_iter >= 1):
            raise ValueError(f"max_iter must be a positive whole number or None; got {self.max_iter!r}")

    def _validated(self, X, y, reset=True, finite=True):
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=not self._is_classifier(), reset=reset,
            accept_large_sparse=True, ensure_all_finite=finite,
        )  # fmt: skip
        return X, y

    def _targets(self, y: np.ndarray) -> np.ndarray:
        """Observations as the loss takes them; sets `classes_` for classifiers."""
        if not self._is_classifier():
            return np.asarray(y, dtype=np.float64)
        self.classes_ = _labels(y)
        if len(self.classes_) > 2 or self.classes_.dtype.kind not in "biuUS":
            check_classification_targets(y)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"y has one class only, {only!r}: a classifier needs at least two")
        if self._is_binary() and len(self.classes_) > 2:
            kind = type_of_target(y, input_name="y")
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        if isinstance(self.family, families.Categorical) and len(self.classes_) > self.family.categories:
            raise ValueError(
                f"y has {len(self.classes_)} classes, more than the {self.family.categories} of the family"
            )
        if self._is_binary():
            return (y == self.classes_[1]).astype(np.float64)
        return np.searchsorted(self.classes_, y)

    def _offset(self, n: int, offset: Any, exposure: Any, outputs: int) -> np.ndarray:
        if exposure is not None:
            if self.family not in ("poisson", "gamma") and not isinstance(self.family, families.Poisson):
                raise ValueError(f"exposure needs a log link (poisson or gamma); got family={self.family!r}")
            if offset is not None:
                raise ValueError("give offset or exposure, not both")
            exposure = np.asarray(exposure, dtype=np.float64)
            if not np.all((exposure > 0) & np.isfinite(exposure)):
                raise ValueError("exposure must be positive and finite")
            offset = np.log(exposure)
        shape = (n,) if outputs == 1 else (n, outputs)
        if offset is None:
            return np.zeros(shape)
        offset = np.asarray(offset, dtype=np.float64)
        if offset.shape != shape:
            raise ValueError(f"offset or exposure must have shape {shape}; got {offset.shape}")
        if not np.all(np.isfinite(offset)):
            raise ValueError("offset must be finite")
        return np.ascontiguousarray(offset)

    def _problem(self, X, targets, sample_weight, offset, exposure) -> GLMProblem:
        weights = weights_of(sample_weight, X)
        total = float(weights.sum())
        if not total > 0:
            raise ValueError("sample_weight must have a positive sum; all weights are zero")
        classes = len(self.classes_) if self._is_categorical() else 0
        offset = self._offset(X.shape[0], offset, exposure, max(classes, 1))
        design = design_of(X, bool(self.fit_intercept), self.n_jobs)
        if not np.isfinite(design.column_norms).all():  # which certificates need anyway: one pass over the data less
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        kept = weights > 0
        if not kept.all():
            design, targets, weights, offset = design.take(kept), targets[kept], weights[kept], offset[kept]
            if self._is_classifier() and len(np.unique(targets)) < 2:
                raise ValueError("y has one class only among the rows of positive weight: at least two are needed")
        loss = loss_of(self.family, targets, classes)
        l2 = 1.0 / total if self.l2 is None else float(self.l2)
        return GLMProblem(design, loss, weights / total, offset, float(self.l1), l2)

    def _choose(self, problem: GLMProblem) -> Any:
        if self.solver == "sdca":
            return DualAscent(self.sampling)
        if not problem.l1:
            return Newton(self.tol)
        several = problem.loss.outputs > 1
        return ProximalNewton(self.tol) if several and is_small(problem) else WorkingSet(self.tol)

    def _max_iter(self, solver) -> int:
        if self.max_iter is not None:
            return int(self.max_iter)
        return 1000 if isinstance(solver, DualAscent) else 100

    def _watch(self, problem, snapshot, start, floor) -> bool:
        """Whether the run has done enough."""
        row = {
            "steps": float(snapshot.step),
            "seconds": time.perf_counter() - start,
            "objective": snapshot.value,
            "bound": snapshot.bound,
            "passes": snapshot.measures["passes"],
        }
        self.history_.append(row)
        scale = max(abs(snapshot.value), floor)
        # Without a penalty and with many parameters there is no bound: what a Newton step promises decides.
        promised = snapshot.measures.get("decrement", np.inf) ** 2
        blind = problem.l2 == 0 and problem.l1 == 0 and promised <= min(self.tol, 1e-6) ** 2 * scale
        return bool(snapshot.bound <= self.tol * scale or blind or snapshot.measures["stuck"])

    def _finish(self, problem, result, floor) -> None:
        self.n_iter_ = max(int(result.work), 1)
        self.objective_ = float(result.value)
        self.certificate_, self.refusal_ = result.certificate, result.refusal
        enough = self.tol * max(abs(self.objective_), floor)
        if result.certificate is not None and result.certificate.upper <= enough:
            self.status_ = "converged"
        elif result.status == "stopped":
            self.status_ = "uncertified" if result.certificate is None else "rounding"
        else:
            self.status_ = "max_iter" if result.status == "max_steps" else str(result.status)
        if problem.l1 == 0 and problem.l2 == 0 and self.status_ != "converged":
            self._refuse_separation(problem)
        self._keep(np.asarray(result.x))
        if self.status_ in ("max_iter", "diverged"):
            warnings.warn(
                f"GLM stopped after {self.n_iter_} iterations ({self.status_}) with a relative gap of "
                f"{self.history_[-1]['bound'] / max(abs(self.objective_), 1e-300):.2g}: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _refuse_separation(self, problem) -> None:
        if separating_direction(problem) is not None:
            raise NoEstimateError(
                "the likelihood has no maximum: a linear combination of the features separates the observations, and "
                "the weights go to infinity along it; use l2 > 0"
            )

    def _keep(self, x: np.ndarray) -> None:
        w, b = (x[:-1], x[-1]) if self.fit_intercept else (x, np.zeros(x.shape[1:]))
        if self._is_binary():
            self.coef_, self.intercept_ = w[None].copy(), np.atleast_1d(np.asarray(b, dtype=np.float64))
        elif self._is_categorical():
            self.coef_, self.intercept_ = np.ascontiguousarray(w.T), np.array(b)
        else:
            self.coef_, self.intercept_ = w.copy(), float(b)

    # Using ------------------------------------------------------------------------------------------------------------

    def _scores(self, X, offset, exposure) -> np.ndarray:
        check_is_fitted(self, "coef_")
        matrix: Any = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, reset=False, accept_large_sparse=True
        )
        outputs = len(self.classes_) if self._is_categorical() else 1
        shift = self._offset(matrix.shape[0], offset, exposure, outputs)
        w = self.coef_.T if self._is_categorical() else self.coef_.ravel()
        b = self.intercept_[0] if self._is_binary() else self.intercept_
        return np.asarray(matrix @ w) + b + shift

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> np.ndarray:
        """The mean of an observation, or for classifiers the most probable class."""
        scores = self._scores(X, offset, exposure)
        if self._is_binary():
            return self.classes_[(scores > 0).astype(int)]
        if self._is_categorical():
            return self.classes_[np.argmax(scores, axis=1)]
        return self._link.mean(scores)

    @available_if(_is_classifier)
    def decision_function(self, X: Any, offset: Any = None) -> np.ndarray:
        """The scores: log odds (n,) of the second of two classes, one column for each class for several."""
        scores = self._scores(X, offset, None)
        return scores[:, 1] - scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 2 else scores

    @available_if(_is_classifier)
    def predict_proba(self, X: Any, offset: Any = None) -> np.ndarray:
        """The probability of each class, in the order of `classes_`."""
        scores = self._scores(X, offset, None)
        if self._is_categorical():
            return self._link.mean(scores)
        return np.column_stack([self._link.mean(-scores), self._link.mean(scores)])

    @available_if(_is_classifier)
    def predict_log_proba(self, X: Any, offset: Any = None) -> np.ndarray:
        """The logarithms of `predict_proba`, without underflow."""
        scores = self._scores(X, offset, None)
        if self._is_categorical():
            top = scores.max(axis=1, keepdims=True)
            return scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
        return -np.column_stack([np.logaddexp(0.0, scores), np.logaddexp(0.0, -scores)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> float:
        """Accuracy for classifiers; else the share of deviance explained, ``1 - D(y, mean) / D(y, average)``."""
        if self._is_classifier():
            right = self.predict(X, offset, exposure) == np.asarray(y)
            return float(np.average(right, weights=sample_weight))
        scores = self._scores(X, offset, exposure)
        y = np.asarray(y, dtype=np.float64)
        loss = loss_of(self.family, y)
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        weights = weights / weights.sum()
        average = np.full(len(y), loss.start(weights)[0])
        residual, null = (float(weights @ loss.terms(eta)[0]) for eta in (scores, average))
        return 1.0 - residual / null if null > 0 else float(residual == 0)

    def standard_errors(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> Bunch:
        """Standard errors of `coef_` and `intercept_` on the data of the fit: roots of the inverse Fisher information.

        The information is that of the penalised likelihood, ``W (H + l2 I)``; with ``l2 = 0`` these are the usual
        standard errors, with ``l2 > 0`` the standard deviations of the Gaussian approximation to the posterior of which
        the penalty is the prior. The dispersion of ``"normal"`` and ``"gamma"`` is estimated by Pearson's statistic.
        Weights count repetitions. With ``l1 > 0`` there is no such thing: refused. Returns `coef` and `intercept` in
        the shapes of `coef_` and `intercept_`, and `dispersion`.
        """
        check_is_fitted(self, "coef_")
        if self.l1:
            raise CertificateError("no standard errors: an l1 penalty makes the estimate not differentiable", "l1 = 0")
        X, y = self._validated(X, y, reset=False)
        targets = self._numbers(y) if self._is_classifier() else y
        problem = self._problem(X, targets, sample_weight, offset, exposure)
        total = float(weights_of(sample_weight, X).sum())
        dispersed = self.family in ("normal", "gamma")
        errors, dispersion = standard_errors(problem, self._parameters(), total, dispersed, self.family == "gamma")
        w, b = (errors[:-1], errors[-1]) if self.fit_intercept else (errors, np.zeros(errors.shape[1:]))
        coef = w.T if self._is_categorical() else w[None] if self._is_binary() else w
        return Bunch(
            coef=coef, intercept=np.atleast_1d(b) if self._is_classifier() else float(b), dispersion=dispersion
        )

    def _parameters(self) -> np.ndarray:
        w = self.coef_.T if self._is_categorical() else self.coef_.ravel()
        if not self.fit_intercept:
            return np.array(w)
        return np.concatenate(
            [w, np.atleast_1d(self.intercept_)[None] if w.ndim == 2 else np.atleast_1d(self.intercept_)]
        )

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike):
        """Write the fitted model to a file, which `load` reads: never a pickle. A stream can be gone on with."""
        check_is_fitted(self, "coef_")
        return save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "GLM":
        """Read a model that `save` wrote."""
        return load_model(cls, path)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns of `coef_`: those of a data frame, or x0, x1, ..."""
        check_is_fitted(self, "coef_")
        if input_features is not None:
            names = np.asarray(input_features, dtype=object)
            if len(names) != self.n_features_in_:
                raise ValueError(f"input_features must have {self.n_features_in_} names; got {len(names)}")
            return names
        if hasattr(self, "feature_names_in_"):
            return self.feature_names_in_
        return np.asarray([f"x{j}" for j in range(self.n_features_in_)], dtype=object)


def _labels(y: np.ndarray) -> np.ndarray:
    """The different values of `y`, sorted; where they are two whole numbers, without sorting."""
    if y.dtype.kind in "iu":
        ends = np.array([y.min(), y.max()])
        if ends[0] != ends[1] and np.all((y == ends[0]) | (y == ends[1])):
            return ends
    return np.unique(y)
