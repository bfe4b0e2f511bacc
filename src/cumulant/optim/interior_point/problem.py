"""Minimise a smooth function under smooth convex inequality constraints."""

from typing import Any, ClassVar

import numpy as np

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.optim.interior_point.constraints import Bounds, Constraints
from cumulant.optim.interior_point.lifted import BoundL1, Lifted, OnSimplex, Plain, SplitL1
from cumulant.optim.interior_point.structured_sets import AbsoluteBounds, SimplexConstraints
from cumulant.optim.problems.base import not_negative, problem_type
from cumulant.optim.protocol import Problem
from cumulant.precision import any_tracer, precise


@problem_type
class ConstrainedProblem(Problem):
    """Minimise ``f(x)`` subject to ``c(x) <= 0`` (Carbonetto 2009, equation 2.2).

    ``f`` and every ``c_i`` are convex and twice differentiable, and some point has ``c(x) < 0``. There are no equality
    constraints.

    Parameters
    ----------
    objective : problem
        Any smooth problem of `cumulant.optim` (`Quadratic`, `LeastSquares`, `Logistic`, `Objective`...), or one of the
        lifted objectives that `l1_regularize` and `on_simplex` make.
    constraints : Constraints
        `Bounds`, `LinearConstraints`, `QuadraticConstraints`, `SmoothConstraints`, `SimplexConstraints`, or an
        `Intersection` of several.
    radius : float, optional
        Your word that some minimiser is within this distance of every point that a certificate is asked for. Needed
        only where the set is not bounded by `Bounds` and the objective is not strongly convex.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = ConstrainedProblem(optim.Quadratic(np.eye(2), [-1.0, 1.0]), Bounds(0.0))
    >>> problem.value([1.0, 2.0]), problem.constraints_at([1.0, 2.0])
    (np.float64(1.5), array([-1., -2.]))
    """

    objective: Any
    constraints: Any
    radius: Any = None

    differentiable: ClassVar[bool] = False

    def __post_init__(self):
        if not isinstance(self.objective, Lifted):
            if self.objective is not None and not isinstance(self.objective, Problem):
                raise TypeError(f"objective must be a problem of cumulant.optim; got {type(self.objective).__name__}")
            object.__setattr__(self, "objective", Plain(self.objective))
        if not isinstance(self.constraints, Constraints):
            raise TypeError(f"constraints must be Bounds or the like; got {type(self.constraints).__name__}")
        if isinstance(self.radius, int | float):
            not_negative(self.radius, "radius")

    @property
    def loss(self) -> Any:
        """The function that gradients are drawn of: the objective itself, or what is inside a lifted one."""
        return self.objective.loss

    @property
    def shape(self) -> Any:
        """The shape of ``x``; None where any will do."""
        return self.objective.shape

    @property
    def convex(self) -> bool:
        """Whether the objective is said to be convex; the constraints always are."""
        return bool(self.loss.convex)

    @property
    def strong_convexity(self) -> float:
        """``mu`` of the objective in ``x``; a lifted one has none."""
        return float(self.loss.strong_convexity) if isinstance(self.objective, Plain) else 0.0

    @property
    def constants_are(self) -> str:
        """How the constants of the loss are known."""
        return self.loss.constants_are

    @precise
    def value(self, x):
        """``f(x)``."""
        return self.objective.value(x)

    @precise
    def gradient(self, x):
        """``grad f(x)``."""
        return self.objective.gradient(x)

    @precise
    def hessian(self, x):
        """``hess f(x)``; for bounding variables, the block of ``w`` alone."""
        return self.objective.hessian(x)

    @precise
    def constraints_at(self, x):
        """``c(x)``."""
        return self.constraints.value(x)

    @precise
    def coefficients(self, x):
        """The variables of the loss at ``x``: ``w``, where ``x`` is ``(w+, w-)`` or ``(w, u)``."""
        return self.objective.coefficients(x)

    def start(self, n: int | None = None, scale: float = 1.0) -> np.ndarray:
        """A strictly feasible point: ``w = 0`` for an l1 penalty, the centre for the simplex.

        `n` is the number of coefficients, needed where the loss does not know it; `scale` the size of ``w+ = w-`` or of
        ``u``.
        """
        if isinstance(self.objective, Plain):
            raise TypeError("only you know a strictly feasible point of these constraints: give it as x0")
        size = n if n is not None else self.objective._loss_size
        if size is None:
            raise ValueError("start needs n, the number of coefficients: the loss does not know it")
        return self.objective.start(int(size), scale)


def l1_regularize(loss: Any, weight: Any, formulation: str = "split") -> ConstrainedProblem:
    """``loss(w) + weight |w|_1`` for any smooth loss, as a smooth problem under bounds.

    Carbonetto (2009, section 2.5).

    Parameters
    ----------
    loss : problem
        `LeastSquares`, `Logistic`, an `Objective` of your own... None where the gradients of a stream are all there is.
    weight : float or array
        What multiplies ``|w|``: ``lam / N`` where the loss is a mean over N examples and ``lam`` belongs to their sum.
    formulation : str
        ``"split"``: ``w = w+ - w-``, both non-negative. ``"bound"``: ``-u <= w <= u``; the one to take with a matrix
        for the curvature.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = l1_regularize(optim.LeastSquares([[2.0]], [3.0]), 0.5)
    >>> problem.start(), problem.gradient(problem.start())
    (array([1., 1.]), array([-5.5,  6.5]))
    """
    checks.choice("formulation", formulation, ("split", "bound"))
    if formulation == "split":
        return ConstrainedProblem(SplitL1(loss, weight), Bounds(0.0))
    return ConstrainedProblem(BoundL1(loss, weight), AbsoluteBounds())


def on_simplex(loss: Any, total: float = 1.0) -> ConstrainedProblem:
    """The minimum of a loss over ``y >= 0``, ``sum y = total``, in all coordinates but the last.

    >>> from cumulant import optim
    >>> problem = on_simplex(optim.Quadratic(np.eye(3), [1.0, 0.0, 0.0]))
    >>> problem.coefficients([0.5, 0.25])
    array([0.5 , 0.25, 0.25])
    """
    checks.positive("total", total)
    return ConstrainedProblem(OnSimplex(loss, total), SimplexConstraints(total))


def require_constrained(problem: Any) -> None:
    """Refuse what has no objective under constraints."""
    checks.instance("problem", problem, ConstrainedProblem, "a ConstrainedProblem")


def point(problem: ConstrainedProblem, name: str, x: Any) -> np.ndarray:
    """`x` as a vector of the right length."""
    x = checks.real_array(name, x, ndim=1)
    shape = None if problem.loss is None else problem.shape
    if not x.size or (shape is not None and x.shape != shape):
        raise ValueError(f"{name} must have shape {shape or '(n,)'}; got {x.shape}")
    return x


def interior(problem: ConstrainedProblem, x0: Any) -> Any:
    """The slacks ``-c(x0)``; refused where one is not positive."""
    slack = -problem.constraints_at(x0)
    if not any_tracer(slack):
        host = np.asarray(slack)
        if not np.all(host > 0):
            worst = int(np.argmin(np.where(np.isnan(host), -np.inf, host)))
            there = 0.0 - host[worst]
            raise DomainError(f"x0 must be strictly feasible: constraint {worst} is {there:.6g}, must be negative")
    return slack
