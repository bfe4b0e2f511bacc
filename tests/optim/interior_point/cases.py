"""Small problems that several tests share."""

import numpy as np

from cumulant import optim
from cumulant.optim.interior_point import Bounds, ConstrainedProblem, QuadraticConstraints


def total(x, data):
    return x.sum()


# min x1 + x2 subject to x1 >= 0 and x2 >= x1^2 (Fiacco and McCormick 1968).
PARABOLA = QuadraticConstraints([np.zeros((2, 2)), [[2.0, 0.0], [0.0, 0.0]]], -np.eye(2), np.zeros(2))
FIACCO = ConstrainedProblem(optim.Objective(total, convex=True), PARABOLA)
# min |x - (-1, 1)|^2 / 2 over x >= 0: solution (0, 1), multipliers (1, 0).
CORNER = ConstrainedProblem(optim.Quadratic(np.eye(2), [-1.0, 1.0]), Bounds(0.0))
