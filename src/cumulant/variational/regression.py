"""The best Gaussian for a regression without sampling: integrals over one dimension, natural gradient steps.

``f(w) = sum_i E psi_i(<x_i, z>) + E <z, P z> / 2 - log det C`` over ``z ~ N(m, C C^T)`` is convex in ``w = [m | C]``,
``C`` lower triangular, and as strongly as ``-log p`` is (Challis and Barber 2013; Domke, Garrigos and Gower 2023, lemma
19). Its gradient is known to rounding, so that strong convexity certifies how far any ``w`` is from the best.
"""

import dataclasses
import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from cumulant.certificates import Assumption, Certificate, by_construction, check, issuer
from cumulant.errors import DomainError
from cumulant.optim.problems.base import problem_type, widen
from cumulant.optim.protocol import Problem, Solver
from cumulant.variational.gaussians import FullRank
from cumulant.variational.quadrature import expectations
from cumulant.variational.targets import Regression, checked_strong_convexity

_UNIT = 2.0**-52
_LARGEST = 1e100  # of an expected loss: the squares of what follows from it are finite


class Evaluation(NamedTuple):
    """``f`` and its gradient, bounds on their errors (of the gradient in norm), and ``P + X^T diag(E psi'') X``."""

    value: float
    value_error: float
    gradient: np.ndarray
    error: float
    curvature: np.ndarray


@problem_type
class RegressionELBO(Problem):
    """``KL(q_w | p)`` less the log-evidence, for the posterior of a regression, by quadrature.

    >>> import numpy as np
    >>> from cumulant import variational as vi
    >>> problem = RegressionELBO(vi.linear_regression([[1.0]], [2.0]))
    >>> round(problem.value(np.array([[1.0, 0.5**0.5]])), 6)      # -log N(2 | 0, 2): the fit is exact
    2.265512
    """

    target: Regression

    convex: ClassVar[bool] = True
    constants_are: ClassVar[str] = "checked"

    def __post_init__(self):
        if not isinstance(self.target, Regression):
            raise TypeError(
                f"target must be a Regression, as logistic_regression makes; got {type(self.target).__name__}"
            )

    @property
    def gaussian(self) -> FullRank:
        """The family of approximations."""
        return FullRank(self.target.dim)

    shape = property(lambda self: self.gaussian.shape)
    strong_convexity = property(lambda self: self.target.strong_convexity)

    def value(self, x: Any) -> Any:
        """``f(w)``."""
        return self.evaluate(x).value

    def value_and_gradient(self, x: Any) -> Any:
        """``f(w)`` and its gradient, lower triangular in the part of ``C``."""
        found = self.evaluate(x)
        return found.value, found.gradient

    def evaluate(self, w: Any) -> Evaluation:
        """All there is to know at ``w``, from one pass over the rows."""
        w = np.asarray(w, dtype=np.float64)
        m, C = w[:, 0], w[:, 1:]
        diagonal = np.diagonal(C)
        if not (np.all(np.isfinite(w)) and np.all(diagonal > 0)):
            raise DomainError("w must be finite, with a positive diagonal of C")
        X, y, P, constant, noise = self.target.data
        n, d = X.shape
        size, absolute = np.abs(X), np.abs(C)
        means, spread = X @ m, X @ C
        scales = np.sqrt(np.einsum("ij,ij->i", spread, spread))
        # Scores are sums that may cancel: their rounding is that of the sizes of their terms.
        widths = size @ absolute
        doubt = 4 * (d + 4) * _UNIT * (size @ np.abs(m) + np.sqrt(np.einsum("ij,ij->i", widths, widths)))
        rows = expectations(self.target.likelihood, y, noise, means, scales, doubt)
        if not np.all(np.abs(rows.value) + rows.error < _LARGEST):  # expected counts overflow
            return Evaluation(math.inf, math.inf, np.full((d, d + 1), math.inf), math.inf, P)
        curvature = (X.T * rows.second) @ X + P
        Pm, PC = P @ m, P @ C
        entropy = float(np.sum(np.log(diagonal))) + d / 2 * (1 + math.log(2 * math.pi))
        value = float(np.sum(rows.value)) + float(m @ Pm + np.sum(C * PC)) / 2 - constant - entropy
        gradient = np.empty((d, d + 1))
        gradient[:, 0] = X.T @ rows.first + Pm
        gradient[:, 1:] = np.tril(curvature @ C)
        gradient[np.arange(d), np.arange(1, d + 1)] -= 1 / diagonal
        # What the errors of the expectations and of the products can change: first in m, then in C, then the value.
        terms = 4 * (n + d + 4) * _UNIT
        in_mean = size.T @ (rows.error + terms * np.abs(rows.first)) + terms * (np.abs(P) @ np.abs(m))
        width = rows.error + terms * np.abs(rows.second)
        in_factor = (size.T * width) @ widths + terms * (np.abs(P) @ absolute)
        error = float(np.linalg.norm(in_mean) + np.linalg.norm(in_factor) + 4 * _UNIT * np.linalg.norm(1 / diagonal))
        in_rows = rows.error * (np.abs(means) + np.abs(y) + scales + 3) + terms * np.abs(rows.value)
        in_rows += doubt * (np.abs(rows.first) + np.abs(rows.second) * (scales + doubt) + 1)
        quadratic = np.abs(m) @ np.abs(P) @ np.abs(m) + float(np.sum(absolute * (np.abs(P) @ absolute)))
        rest = quadratic + abs(constant) + abs(entropy) + float(np.sum(np.abs(np.log(diagonal))))
        value_error = 1.01 * (float(np.sum(in_rows)) + terms * rest)
        return Evaluation(value, value_error, gradient, 1.01 * error, curvature)


@issuer
def certify_regression(given: RegressionELBO, answer: Any) -> Certificate:
    """``KL(q_w | p) - min KL <= |grad f(w)|^2 / (2 mu)``, ``mu`` the strong convexity of ``-log p`` (Polyak 1963).

    And ``r = |w - w*| <= |grad f(w)| / mu``, which bounds the Wasserstein distance ``W2(q_w, q_w*)`` between the answer
    and the best Gaussian, the distance of their means, the difference of any two standard deviations, and by ``r (2 |C|
    + r)`` that of their covariances in spectral norm. It says nothing about the distance of the best Gaussian from the
    posterior.
    """
    problem, w = widen(given), np.asarray(answer, dtype=np.float64)
    mu = checked_strong_convexity(problem.target)
    assumptions: list[Assumption] = [check(mu > 0, "minus the log-density is strongly convex", f"mu = {mu:.6g}")]
    found = problem.evaluate(w)
    norm = float(np.linalg.norm(found.gradient))
    most = (norm + found.error) * (1 + 8 * _UNIT * w.size)
    radius = most / mu * (1 + 8 * _UNIT)
    check(math.isfinite(radius**2 * mu), "the gradient of the objective is finite", f"norm {most:.3g}")
    covariance = radius * (2 * float(np.linalg.norm(w[:, 1:])) + radius) * (1 + 8 * _UNIT * w.size)
    assumptions.append(by_construction("the expectations are within the slack", f"error {found.error:.2g} in norm"))
    bound = norm**2 / (2 * mu)
    return Certificate(
        "KL(q | p) - min KL",
        bound,
        "strong convexity: |grad f|^2 / (2 mu), Polyak 1963; Domke, Garrigos and Gower 2023, lemma 19",
        tuple(assumptions),
        slack=most**2 / (2 * mu) * (1 + 16 * _UNIT) - bound,
        details={
            "ELBO": -found.value,
            "W2 to the best Gaussian": radius,
            "means and deviations within": radius,
            "covariances within": covariance,
        },
    )


class NaturalGradientState(NamedTuple):
    """The approximation, what is known at it, and how far the last step went."""

    x: np.ndarray
    found: Any
    precision: np.ndarray
    taken: float
    stuck: bool


@dataclasses.dataclass(frozen=True)
class NaturalGradient(Solver):
    """``S^-1 <- (1 - t) S^-1 + t (P + X^T diag(E psi'') X)``, ``m <- m - t S grad_m f``: natural gradient steps.

    In natural parameters of the Gaussian a step of size ``t`` along the natural gradient is a mean of the precision and
    of the expected Hessian (Khan and Rue 2023, equation 4). ``t = 1`` unless the objective would grow; then halved.

    >>> import numpy as np
    >>> from cumulant import optim, variational as vi
    >>> problem = RegressionELBO(vi.logistic_regression([[1.0], [2.0], [-1.0]], [1, 1, 1]))
    >>> result = optim.run(NaturalGradient(), problem, vi.FullRank(1).pack(0.0, 1.0), tol=1e-10)
    >>> result.status, result.x.round(4)
    ('converged', array([[0.4638, 0.6902]]))
    """

    backend: ClassVar[str] = "host"
    every: ClassVar[int] = 1

    def init(self, problem, x0, rng):
        """The expectations at the start."""
        if not isinstance(problem, RegressionELBO):
            raise TypeError(f"NaturalGradient takes a RegressionELBO; got {type(problem).__name__}")
        w = problem.gaussian.pack(x0[:, 0], x0[:, 1:])
        inverse = solve_triangular(w[:, 1:], np.eye(len(w)), lower=True)
        return NaturalGradientState(w, problem.evaluate(w), inverse.T @ inverse, 1.0, False)

    def step(self, problem, state):
        """One damped step."""
        w, found, precision = state.x, state.found, state.precision
        t = 1.0
        for _ in range(40):
            trial = (1 - t) * precision + t * found.curvature
            # The factor of the inverse: from Lambda = R R^T, R upper triangular, C = R^-T is lower triangular.
            C = _inverse_factor(trial)
            m = w[:, 0] - t * (C @ (C.T @ found.gradient[:, 0]))
            x = np.concatenate([m[:, None], C], axis=1)
            new = problem.evaluate(x)
            slack = 64 * _UNIT * abs(found.value)
            falls = new.value <= found.value - slack
            if falls or (new.value <= found.value + slack and _norm(new) < _norm(found)):
                return NaturalGradientState(x, new, trial, t, False)
            t /= 2
        return state._replace(stuck=True)

    def measure(self, problem, state):
        """The objective and the bound from strong convexity."""
        norm = _norm(state.found)
        mu = float(problem.strong_convexity)
        bound = (norm + state.found.error) ** 2 / (2 * mu) if mu > 0 else math.inf
        return {"value": state.found.value, "bound": bound, "stuck": float(state.stuck), "step_size": state.taken}

    def certify(self, problem, state):
        """`certify_regression`."""
        return certify_regression(problem, state.x)


def _norm(found: Evaluation) -> float:
    return float(np.linalg.norm(found.gradient))


def _inverse_factor(precision: np.ndarray) -> np.ndarray:
    """The lower triangular ``C`` with ``C C^T`` the inverse of a matrix."""
    reversed_factor = np.linalg.cholesky(precision[::-1, ::-1])  # Lambda = U U^T with U upper triangular, turned round
    upper = reversed_factor[::-1, ::-1]
    return solve_triangular(upper, np.eye(len(precision))).T
