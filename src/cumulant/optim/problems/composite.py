"""A smooth function plus a penalty or a set: what proximal methods minimise."""

from typing import Any, ClassVar

import numpy as np

from cumulant import checks
from cumulant.optim.problems.base import problem_type, widen
from cumulant.optim.problems.penalties import NoPenalty
from cumulant.optim.problems.proximal_map import check_penalty, for_vector
from cumulant.optim.problems.trees import is_tree, vector
from cumulant.optim.protocol import DerivedProblem, Problem
from cumulant.precision import precise


@problem_type
class Composite(DerivedProblem):
    """``F(x) = f(x) + R(x)``: `smooth` with a gradient, `penalty` with a proximal map.

    The constants are those of the smooth part. There is no gradient: use `ProximalGradient` or
    `AcceleratedProximalGradient`.

    The composite problems of Beck and Teboulle (2009).

    Parameters
    ----------
    smooth : problem
        `LeastSquares`, `Logistic`, `MarginLoss`, `MultinomialLogistic`, `Quadratic` or an `Objective`.
    penalty : object
        `L1`, `ElasticNet`, `GroupLasso`, `Box`, `NonNegative`, `Simplex`, `L1Ball` or `L2Ball`; or a `ProximalMap` of
        your own. Where the unknowns are a tree, it speaks of all its leaves in one vector; a tree of penalties, such as
        ``{"weights": L1(0.1), "bias": None}``, has one for each part (None: no penalty).

    Examples
    --------
    >>> from cumulant import optim
    >>> smooth = optim.LeastSquares([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], reduction="sum")
    >>> problem = Composite(smooth, optim.L1(1.0))
    >>> float(problem.value([0.0, 27 / 56]).round(12))
    0.491071428571
    """

    smooth: Any
    penalty: Any

    quadratic: ClassVar[bool] = False
    differentiable: ClassVar[bool] = False

    def __post_init__(self):
        if isinstance(self.smooth, Composite):
            raise TypeError("smooth must be a problem with a gradient; got a Composite: add up the penalties instead")
        checks.instance("smooth", self.smooth, Problem, "a problem with a gradient, such as LeastSquares(A, y)")
        check_penalty(self.penalty)

    @property
    def problem(self) -> Any:
        """The smooth part, whose constants these are; the penalties all are convex."""
        return self.smooth

    @property
    def shape(self) -> Any:
        """The shape of ``x``; None where any will do."""
        return self.smooth.shape

    def gradient_rounding(self, x: Any) -> float:
        """That of the smooth part."""
        return self.smooth.gradient_rounding(x)

    @precise
    def value(self, x):
        """``f(x) + R(x)``; infinite outside a set."""
        if is_tree(x):
            return self.smooth.value(x) + for_vector(self.penalty, x).value(vector(x))
        return self.smooth.value(x) + self.penalty.value(x)


def parts(problem: Any) -> tuple[Any, Any]:
    """The smooth part and the penalty of any problem."""
    return (problem.smooth, problem.penalty) if isinstance(problem, Composite) else (problem, NoPenalty())


def lambda_max(smooth: Any) -> float:
    """The smallest weight of an `L1` penalty for which zero is a solution: ``max_j |grad f(0)_j|``.

    From the optimality conditions of the Lasso at zero (Osborne, Presnell and Turlach 2000).

    >>> from cumulant import optim
    >>> A, y = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0]
    >>> lambda_max(optim.LeastSquares(A, y, reduction="sum"))
    28.0
    """
    smooth = widen(checks.instance("smooth", smooth, Problem, "a problem with a gradient, such as LeastSquares(A, y)"))
    return float(np.max(np.abs(smooth.gradient(np.zeros(smooth.shape)))))
