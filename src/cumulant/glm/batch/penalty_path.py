"""Fits at a sequence of l1 penalties, each begun where the last ended."""

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from cumulant.certificates import Certificate, Subject
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.column_pool import ColumnPool
from cumulant.glm.solvers.dual_ascent import fitted_intercept
from cumulant.glm.solvers.newton import starting_point


class PenaltyPath(NamedTuple):
    """Fits at the penalties `l1`, in their order.

    `coef` and `intercept` have the shapes of `GLM.coef_` and `GLM.intercept_` after an axis for the penalties; `gap` is
    the certified bound on ``P(w) - P*`` at each, `objective` is ``P(w)``, `degrees_of_freedom` does not count the
    intercept. ``certificates[i].verify(subjects[i])`` issues a certificate again.

    Friedman, Hastie and Tibshirani (2010) for the warm starts.

    >>> from cumulant.glm import GLM
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> path = GLM("normal", l2=0.0, fit_intercept=False, tol=1e-8).path(X, y, [2.0, 0.5])
    >>> path.coef.round(4), path.degrees_of_freedom
    (array([[0.3333],
           [1.0833]]), array([1., 1.]))
    """

    l1: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    objective: np.ndarray
    gap: np.ndarray
    degrees_of_freedom: np.ndarray
    certificates: tuple[Certificate | None, ...]
    subjects: tuple[Subject | None, ...]

    @classmethod
    def of(cls, l1: np.ndarray, fits: list[tuple[Any, Any, float, float, Certificate | None, Subject | None]]) -> Self:
        """From weights, intercept, objective, degrees of freedom, certificate and its subject at each penalty."""
        coef, intercept, objective, freedom, certificates, subjects = zip(*fits, strict=True)
        gap = [np.inf if found is None else found.upper for found in certificates]
        return cls(
            l1, np.array(coef), np.array(intercept), np.array(objective), np.array(gap), np.array(freedom),
            certificates, subjects,
        )  # fmt: skip


def penalties_of(l1s: Any, problems: tuple[GLMProblem, ...], count: int, least: float) -> np.ndarray:
    """The penalties `l1s`, checked; without them `count` from the largest useful for any problem to `least` of it."""
    if l1s is None:
        top = max(largest_penalty(problem) for problem in problems)
        if not top > 0:
            raise ValueError("l1s must be given: all weights are zero at every penalty")
        return np.geomspace(top, least * top, count)
    penalties = np.asarray(l1s, dtype=np.float64)
    if penalties.ndim != 1 or not len(penalties) or not np.all((penalties > 0) & np.isfinite(penalties)):
        raise ValueError(f"l1s must be a sequence of positive numbers; got {l1s!r}")
    return penalties


def largest_penalty(problem: GLMProblem) -> float:
    """The l1 from which on all weights are zero: ``max_j |X_j^T (p s)|`` at the best intercept and no weights."""
    x = starting_point(replace(problem, l1=1.0))
    if problem.design.intercept and problem.loss.outputs == 1:
        x[-1] = fitted_intercept(problem, problem.offset, float(x[-1]))
    slope = problem.loss.terms(problem.scores(x))[1]
    return float(np.max(np.abs(problem.without_intercept(problem.loss_gradient(slope))), initial=0.0))


def degrees_of_freedom(problem: GLMProblem, x: np.ndarray) -> float:
    """The weights that are not zero or, with an l2 penalty, ``tr H (H + l2 I)^-1`` on them; the intercept not counted.

    For the Lasso that is unbiased (Zou, Hastie and Tibshirani 2007). ``H`` is the Hessian of the losses in those
    weights, the intercept minimised over. For several outputs weights are counted.
    """
    weights = problem.without_intercept(x)
    active = np.flatnonzero(weights if weights.ndim == 1 else 0 * weights[:, 0])
    if weights.ndim == 2 or not problem.l2 or not active.size:
        return float(np.count_nonzero(weights))
    pool = ColumnPool(problem.design, active)
    bends = problem.weights * problem.loss.terms(problem.scores(x))[2]
    hessian = pool.gram(bends)
    if problem.design.intercept:
        sums = pool.transposed(bends)
        hessian = hessian - np.outer(sums, sums) / bends.sum()
    damped = hessian + problem.l2 * np.eye(active.size)
    return float(active.size - problem.l2 * np.trace(np.linalg.inv(damped)))


class Paths:
    """`largest_l1` and `path` for an estimator that has the settings, the checks and the run of `GLM`."""

    def largest_l1(
        self: Any, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> float:
        """The penalty `l1` from which on every weight is zero: ``max_j |X_j^T (p s)|`` at the best intercept."""
        return largest_penalty(type(self)(**self.get_params())._stated(X, y, sample_weight, offset, exposure))

    def path(
        self: Any, X: Any, y: Any, l1s: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> PenaltyPath:
        """Fits at each penalty of `l1s`, by default 50 from `largest_l1` down to a hundredth of it.

        Each begins where the last ended, so that `l1s` is best given from large to small. `l2` and all other settings
        are those of the estimator, which is left as it was. Every fit has its certificate.

        Examples
        --------
        >>> import numpy as np
        >>> from cumulant.glm import GLM
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 30))
        >>> y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=100)
        >>> path = GLM("normal", l2=0.0, tol=1e-6).path(X, y)
        >>> path.coef.shape, path.degrees_of_freedom[:2].tolist()
        ((50, 30), [0.0, 1.0])
        >>> bool(np.all(path.gap <= 1e-6 * path.objective))
        True
        """
        model = type(self)(**self.get_params())
        problem = model._stated(X, y, sample_weight, offset, exposure)
        penalties = penalties_of(l1s, (problem,), 50, 1e-2)
        start = starting_point(replace(problem, l1=float(penalties[0])))
        x, fits, last = start, [], np.inf
        for l1 in penalties.tolist():
            model.l1 = l1
            posed = replace(problem, l1=l1)
            if l1 > last:  # the last answer may be worse than no weights
                x = min((x, start), key=posed.value)
            result, last = model._run(posed, x), l1
            model._finish(posed, result)
            x = np.asarray(result.x)
            freedom = degrees_of_freedom(posed, x)
            fits.append((model.coef_, model.intercept_, model.objective_, freedom, model.certificate_, result.subject))
            if result.status == "interrupted":
                raise KeyboardInterrupt
        return PenaltyPath.of(penalties, fits)

    def _stated(self: Any, X, y, sample_weight, offset, exposure) -> GLMProblem:
        """The objective on these data, without its l1 penalty."""
        self.l1 = 0.0
        self.solver = self.solver if self.solver == "sdca" else "auto"
        self._check_settings()
        X, y = self._validated(X, y, finite=False)
        return self._problem(X, self._targets(y), sample_weight, offset, exposure)
