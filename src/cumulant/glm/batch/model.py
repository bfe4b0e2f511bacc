"""The generalised linear model as a scikit-learn estimator."""

import os
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from cumulant import optim
from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError, NoEstimateError
from cumulant.glm.batch.inference import Inference
from cumulant.glm.batch.inputs import Inputs
from cumulant.glm.batch.model_files import load_model, save_model
from cumulant.glm.batch.penalty_path import Paths
from cumulant.glm.batch.prediction import Predictions
from cumulant.glm.batch.streaming import PartialFits
from cumulant.glm.objective.certify import certify_glm_concordance, certify_glm_gap
from cumulant.glm.objective.duality_gap import PrimalDual
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.objective.separation import separating_direction
from cumulant.glm.solvers.dual_ascent import GLMDualAscent
from cumulant.glm.solvers.newton import GLMNewton, starting_point
from cumulant.glm.solvers.newton_step import is_small, one_thread_if_small
from cumulant.glm.solvers.proximal_newton import GLMProximalNewton
from cumulant.glm.solvers.working_set import GLMWorkingSet


@dataclass(eq=False, repr=False)
class GLM(PartialFits, Paths, Inference, Predictions, Inputs):
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
        Stop when the certified gap is at most this share of the objective. For coefficients, strong convexity turns a
        gap into a distance, ``|w - w*| <= sqrt(2 gap / mu)``: the default gives three digits or more where the data
        are well conditioned, ``1e-4`` one or two. `certify_distance` computes the bound.
    solver : str
        ``"newton"`` (``l1 = 0``), ``"prox-newton"`` (``l1 > 0``), ``"sdca"`` (``l2 > 0``); ``"auto"``: the first two.
    max_iter : int, optional
        Newton steps (100 by default) or epochs of dual ascent (1000).
    sampling : str
        Of ``"sdca"``: see `GLMDualAscent`.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.
    time_limit : float, optional
        Seconds. The best weights so far are kept, with their certificate.
    random_state : int, Generator or None
        Only ``"sdca"`` draws.
    checkpoint : path or optim.Checkpoint, optional
        Where the fit is saved as it goes. If the file exists, the fit is resumed; see `optim.run`.
    callback : callable, optional
        Called with an `optim.Snapshot` after each iteration. Returning True ends the fit.
    verbose : bool
        Show a progress bar on a terminal.

    Attributes
    ----------
    coef_ : array (features,), (1, features) for two classes, (classes, features) for ``"categorical"``
    intercept_ : float, or array (1,) or (classes,) for classifiers
    classes_ : array
        For classifiers.
    certificate_ : Certificate or None
        Of ``P(w) - P*``. None where nothing is certain: `refusal_` says why.
    dual_ : array or None
        The dual slopes that prove the certificate: one for each row of positive weight, and class. `verify` uses them.
    objective_ : float
    status_ : str
        ``"converged"``, ``"rounding"`` (as near as float64 allows, which is not as near as `tol` asks),
        ``"stationary"`` (the same without a certificate), ``"max_steps"``, ``"time_limit"``, ``"interrupted"``,
        ``"stopped"`` (by the callback) or ``"diverged"``.
    history_ : list of dict
        Steps, seconds, objective, bound and passes over the data, one record an iteration.

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

    family: Any = "normal"
    l1: float = 0.0
    l2: float | None = None
    fit_intercept: bool = True
    tol: float = 1e-8
    solver: str = "auto"
    max_iter: int | None = None
    sampling: str = "gap"
    n_jobs: int | None = None
    time_limit: float | None = None
    random_state: Any = None
    checkpoint: Any = None
    callback: Any = None
    verbose: bool = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> "GLM":
        """Fit to features `X` (dense or sparse) and observations `y`.

        `offset` is added to the scores; ``exposure`` is the same on the scale of the mean, ``offset = log(exposure)``,
        for families with a log link.
        """
        self._check_settings()
        self.__dict__.pop("_stream", None)
        X, y = self._validated(X, y, finite=False)
        problem = self._problem(X, self._targets(y), sample_weight, offset, exposure)
        self._link = problem.loss.take(slice(0, 0))
        self._finish(problem, self._run(problem, starting_point(problem)))
        return self

    def _run(self, problem: GLMProblem, x0: np.ndarray) -> optim.Result:
        solver, constant = self._choose(problem), problem.constant_loss()
        if not np.isfinite(constant):
            raise ValueError(
                "y, offset or exposure is too large: the loss of a constant score is beyond float64; scale the data"
            )
        if not (problem.design.intercept or np.isfinite(_loss_without_weights(problem))):
            raise ValueError(
                f"fit_intercept must be True for family={self.family!r}, or an offset given: a score of 0 is not among "
                "its natural parameters"
            )
        with one_thread_if_small(problem):
            return optim.run(
                solver,
                problem,
                x0,
                max_steps=int(self.max_iter or (1000 if self.solver == "sdca" else 100)),
                # Where the fit is perfect, `tol` is relative to a billionth of the loss of the best constant score.
                tol=(float(self.tol), 1e-9 * max(constant, 0.0)),
                callback=self.callback,
                time_limit=self.time_limit,
                checkpoint=self.checkpoint,
                rng=self._rng(),
                progress=type(self).__name__ if self.verbose else False,
            )

    def _choose(self, problem: GLMProblem) -> Any:
        if self.solver == "sdca":
            return GLMDualAscent(self.sampling)
        if not problem.l1:
            return GLMNewton(self.tol)
        several = problem.loss.outputs > 1
        return GLMProximalNewton(self.tol) if several and is_small(problem) else GLMWorkingSet(self.tol)

    def _finish(self, problem: GLMProblem, result: optim.Result) -> None:
        ended = result.status in ("converged", "rounding", "stationary")
        if not ended or result.value > _loss_without_weights(problem):
            result = _at_least_the_constant(problem, result)
        self.n_iter_ = max(int(result.work), 1)
        self.status_ = str(result.status)
        self.objective_ = problem.accurate_value(float(result.value), result.x)
        self.certificate_, self.refusal_ = result.certificate, result.refusal
        answer = None if result.subject is None else result.subject.answer
        self.dual_ = np.array(answer.slopes) if isinstance(answer, PrimalDual) else None
        trace, names = result.trace, ("steps", "seconds", "objective", "bound", "passes")
        columns = (trace.steps, trace.seconds, trace.value, trace.bound, trace.extra["passes"])
        rows = zip(*(column[1:].astype(np.float64).tolist() for column in columns), strict=True)
        self.history_ = [dict(zip(names, row, strict=True)) for row in rows]
        unpenalised = problem.l1 == 0 and problem.l2 == 0
        if unpenalised and self.status_ != "converged" and separating_direction(problem) is not None:
            raise NoEstimateError(
                "the likelihood has no maximum: a linear combination of the features separates the observations, and "
                "the weights go to infinity along it; use l2 > 0"
            )
        self.coef_, self.intercept_ = self._shaped(np.asarray(result.x))
        if self.status_ in ("max_steps", "diverged"):
            warnings.warn(
                f"GLM stopped after {self.n_iter_} iterations ({self.status_}) with a relative gap of "
                f"{self.history_[-1]['bound'] / max(abs(self.objective_), 1e-300):.2g}: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    def verify(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> Certificate:
        """Issue `certificate_` again from the data of the fit, also after `save` and `load`.

        Returns the fresh certificate. Raises `CertificateError` if there is none, or if it does not hold for these
        data and the weights as they are.
        """
        check_is_fitted(self, "coef_")
        if self.certificate_ is None:
            raise CertificateError(self.refusal_ or "no certificate", assumption="a fit on data that are at hand")
        problem, x = self._posed(X, y, sample_weight, offset, exposure), np.ascontiguousarray(self._parameters())
        return self.certificate_.verify(Subject(problem, x if self.dual_ is None else PrimalDual(x, self.dual_)))

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike):
        """Write the fitted model to a file, which `load` reads: never a pickle. A stream can be resumed."""
        check_is_fitted(self, "coef_")
        return save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "GLM":
        """Read a model that `save` wrote."""
        return load_model(cls, path)


def _loss_without_weights(problem: GLMProblem) -> float:
    """The objective of zero weights, with about the best intercept where there is one; no pass over the features."""
    if problem.design.intercept:
        return problem.constant_loss()
    return float(problem.weights @ problem.loss.terms(problem.offset)[0])


def _at_least_the_constant(problem: GLMProblem, result: optim.Result) -> optim.Result:
    """The result of a run, or no weights and a constant score where that is better."""
    x = min((problem.constant_start(), np.zeros(problem.shape)), key=problem.value)
    value = problem.value(x)
    if value >= result.value and result.certificate is not None:
        return result
    if value >= result.value:  # the run ended without the state that its certificate needs
        x, value = np.asarray(result.x), result.value
    known, found, refusal = result.subject and result.subject.answer, [], ""
    certify = certify_glm_gap if problem.l1 > 0 or problem.l2 > 0 else certify_glm_concordance
    for answer in [x, PrimalDual(x, known.slopes)] if isinstance(known, PrimalDual) else [x]:
        try:
            found.append((certify(problem, answer), Subject(problem, answer)))
        except CertificateError as refused:
            refusal = str(refused)
    if not found:
        return replace(result, x=x, value=value, certificate=None, refusal=refusal, subject=Subject(problem, x))
    certificate, subject = min(found, key=lambda pair: pair[0].upper)
    return replace(result, x=x, value=value, certificate=certificate, refusal="", subject=subject)
