"""What a fitted `GLM` says about the errors of its coefficients: of sampling, and of the optimisation."""

from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from cumulant.certificates import Certificate
from cumulant.errors import CertificateError, NoEstimateError
from cumulant.glm.batch.coefficient_table import CoefficientTable
from cumulant.glm.batch.inputs import weights_of
from cumulant.glm.objective.certify import certify_glm_distance
from cumulant.glm.objective.duality_gap import PrimalDual
from cumulant.glm.objective.problem import GLMProblem

_LARGEST = 5000  # parameters: the inverse of a matrix of that size is formed


class Inference:
    """Standard errors, tests and distances for an estimator with the attributes of a fitted `GLM`."""

    def standard_errors(
        self: Any, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> Bunch:
        """Standard errors of `coef_` and `intercept_` on the data of the fit: roots of the inverse Fisher information.

        The information is that of the penalised likelihood, ``W (H + l2 I)``; with ``l2 = 0`` these are the usual
        standard errors, with ``l2 > 0`` the standard deviations of the Gaussian approximation to the posterior of which
        the penalty is the prior. The dispersion of ``"normal"`` and ``"gamma"`` is estimated by Pearson's statistic.
        Weights count repetitions. With ``l1 > 0`` there is no such thing: refused. For several classes without a
        penalty only differences between classes are determined: see `summary`. Returns `coef` and `intercept` in the
        shapes of `coef_` and `intercept_`, and `dispersion`.
        """
        problem, total = self._likelihood(X, y, sample_weight, offset, exposure)
        if problem.loss.outputs > 1 and not problem.l2:
            raise NoEstimateError(
                "no standard errors: without a penalty the classes determine only differences of their coefficients; "
                "summary(X, y) has those"
            )
        covariance, dispersion = _covariance(problem, self._parameters(), total, self.family)
        errors = np.sqrt(np.diagonal(covariance)).reshape(problem.shape)
        coef, intercept = self._shaped(errors)
        return Bunch(coef=coef, intercept=intercept, dispersion=dispersion)

    def summary(
        self: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        exposure: Any = None,
        *,
        level: float = 0.95,
    ) -> CoefficientTable:
        """The table of coefficients on the data of the fit: standard errors, tests, intervals at the given `level`.

        With ``l2 = 0``: standard errors from the inverse Fisher information, Wald's tests and intervals, normal or,
        where the dispersion is estimated (``"normal"``, ``"gamma"``), Student's t with ``W - parameters`` degrees of
        freedom. With ``l2 > 0`` the penalty is a Gaussian prior, and the table has the standard deviations and the
        intervals of the Gaussian approximation to the posterior, and no tests. With ``l1 > 0`` it is refused. Weights
        count repetitions; for weights that are precisions divide them by their mean. For several classes the
        coefficients are differences from those of the first class, as in other software.

        McCullagh and Nelder (1989, sections 2.4 and 4.4).

        Examples
        --------
        >>> import numpy as np
        >>> from cumulant.glm import GLM
        >>> dose, treated, died = np.array([[1.0], [2.0], [3.0]]), [20, 20, 20], np.array([2, 9, 17])
        >>> X, y = np.repeat(dose, treated, axis=0), np.repeat([1, 0] * 3, np.ravel([died, 20 - died], order="F"))
        >>> model = GLM("bernoulli", l2=0.0).fit(X, y)
        >>> print("\\n".join(str(model.summary(X, y)).splitlines()[:4]))
        family bernoulli, observations 60, residual degrees of freedom 58, dispersion 1, deviance 57.4394
                       coef  std err       z          p   2.5 %  97.5 %
        (intercept)  -4.141    1.053  -3.933  8.392e-05  -6.205  -2.077
        x0            1.963   0.4822   4.071  4.673e-05   1.018   2.908
        """
        if not (isinstance(level, Real) and 0 < float(level) < 1):
            raise ValueError(f"level must be a number between 0 and 1; got {level!r}")
        problem, total = self._likelihood(X, y, sample_weight, offset, exposure)
        x = self._parameters()
        covariance, dispersion = _covariance(problem, x, total, self.family)
        coef, error = _rows(problem, x, covariance)
        spare = total - coef.size
        dispersed = self.family in ("normal", "gamma")
        statistic = p_value = None
        if not problem.l2:
            with np.errstate(divide="ignore", invalid="ignore"):
                statistic = coef / error
            tail = -np.abs(statistic)
            p_value = 2.0 * np.asarray(stdtr(spare, tail) if dispersed else ndtr(tail))
        upper_share = 0.5 + 0.5 * float(level)
        reach = float(stdtrit(spare, upper_share) if dispersed else ndtri(upper_share)) * error
        several = problem.loss.outputs > 1
        terms, labels = self._terms(), [str(label) for label in self.classes_] if several else [""]
        rest = labels[1:] if several else labels
        deviance = 2.0 * total * (problem.value(x) - problem.penalty(x))
        return CoefficientTable(
            terms=terms * len(rest),
            classes=tuple(label for label in rest for _ in terms) if several else (),
            reference=labels[0],
            coef=coef,
            error=error,
            statistic=statistic,
            p_value=p_value,
            lower=coef - reach,
            upper=coef + reach,
            level=float(level),
            names=("posterior sd" if problem.l2 else "std err", "t" if dispersed else "z"),
            facts={
                "family": self.family if isinstance(self.family, str) else type(self.family).__name__,
                "observations": total,
                "residual degrees of freedom": spare,
                "dispersion": dispersion,
                "deviance": deviance,
            },
            notes=self._remarks(problem, x),
        )

    def _remarks(self: Any, problem: GLMProblem, x: np.ndarray) -> tuple[str, ...]:
        prior = (
            f"l2 = {problem.l2:.4g} is a Gaussian prior on the coefficients: deviations and intervals are those of the "
            "Gaussian approximation to the posterior; fit with l2=0 for standard errors and tests"
        )
        try:
            distance = f"numerical error of the coefficients: {self._distance(problem, x).upper:.2g} at most, certified"
        except CertificateError as refusal:
            distance = f"numerical error of the coefficients: {refusal}"
        return (prior, distance) if problem.l2 else (distance,)

    def certify_distance(
        self: Any, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> Certificate:
        """A bound on ``|w - w*|``, how far the coefficients are from those of the minimiser, on the data of the fit.

        ``|w - w*| <= sqrt(2 gap / mu)``: the certified gap, and strong convexity with ``mu`` from the l2 penalty or
        from the data, whichever is larger; see `certify_glm_distance`. Raises `CertificateError` where there is no
        such bound.
        """
        check_is_fitted(self, "coef_")
        return self._distance(self._posed(X, y, sample_weight, offset, exposure), self._parameters())

    def _distance(self: Any, problem: GLMProblem, x: np.ndarray) -> Certificate:
        x = np.ascontiguousarray(x)
        return certify_glm_distance(problem, x if self.dual_ is None else PrimalDual(x, self.dual_))

    def _terms(self: Any) -> tuple[str, ...]:
        """The names of the rows of a table."""
        names = tuple(str(name) for name in self.get_feature_names_out())
        return ("(intercept)", *names) if self.fit_intercept else names

    def _likelihood(self: Any, X, y, sample_weight, offset, exposure) -> tuple[GLMProblem, float]:
        """The problem on data and the number of observations; refused where errors mean nothing."""
        check_is_fitted(self, "coef_")
        if self.l1:
            raise CertificateError(
                f"no standard errors: with an l1 penalty (l1 = {self.l1:g}) the estimate is not a differentiable "
                "function of the data, and an inverse information is not its variance; fit with l1=0",
                "l1 = 0",
            )
        problem = self._posed(X, y, sample_weight, offset, exposure)
        size = int(np.prod(problem.shape))
        if size > _LARGEST:
            raise ValueError(
                f"standard errors need the inverse of a matrix of parameters: at most {_LARGEST}; got {size}"
            )
        return problem, float(weights_of(sample_weight, X).sum())


def _covariance(problem: GLMProblem, x: np.ndarray, total: float, family: Any) -> tuple[np.ndarray, float]:
    """The covariance of the parameters in the order of ``x.ravel()``, and the dispersion.

    It is the dispersion times the inverse of the information ``total (H + l2 I)``, `total` the number of observations.
    The dispersion of normal and gamma observations is Pearson's statistic over the degrees of freedom that are left.
    Gamma observations under the log link have the expected information, in which the curvature of a loss is one (the
    observed is ``y / mean``). For several classes without a penalty, adding one vector to the coefficients of every
    class changes nothing; some curvature is given to those directions, which no difference between classes feels.
    """
    _, slope, curvature = problem.loss.terms(problem.scores(x))
    hessian = problem.hessian(np.ones_like(curvature) if family == "gamma" else curvature)
    free = x.size
    if problem.loss.outputs > 1:
        columns, k = problem.shape
        free = columns * (k - 1)
        if not problem.l2:
            blocks = hessian.reshape(columns, k, columns, k)
            for j in range(columns - problem.design.intercept):  # that of the intercept has its curvature already
                blocks[j, :, j, :] += np.mean(np.diagonal(blocks[j, :, j, :])) / k
    scale = 1.0 / np.sqrt(np.where(np.diagonal(hessian) > 0, np.diagonal(hessian), np.inf))
    unit = hessian * scale[:, None] * scale
    if not float(np.linalg.eigvalsh(unit)[0]) > 1e-13 * len(unit):
        raise NoEstimateError("no standard errors: columns of X are linearly dependent; drop some or use l2 > 0")
    dispersion = 1.0
    if family in ("normal", "gamma"):
        if not total > free:
            raise NoEstimateError(f"no standard errors: {total:g} observations for {free} parameters")
        # The slope is Pearson's residual: mean - y, and 1 - y / mean for gamma observations.
        dispersion = total * float(problem.weights @ slope**2) / (total - free)
    return dispersion / total * np.linalg.inv(unit) * scale[:, None] * scale, dispersion


def _rows(problem: GLMProblem, x: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and their errors, the intercept first; for several classes the differences from the first class."""
    first = np.roll(np.arange(problem.shape[0]), int(problem.design.intercept))
    if x.ndim == 1:
        return x[first], np.sqrt(np.diagonal(covariance))[first]
    columns, k = problem.shape
    blocks = covariance.reshape(columns, k, columns, k)[np.arange(columns), :, np.arange(columns), :]
    own = np.diagonal(blocks, axis1=1, axis2=2)
    variance = own[:, 1:] + own[:, :1] - 2.0 * blocks[:, 0, 1:]
    return (x[:, 1:] - x[:, :1])[first].T.ravel(), np.sqrt(variance)[first].T.ravel()
