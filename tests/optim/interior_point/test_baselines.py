"""The rivals: each one's step by hand, and alternating projections against a quadratic program."""

import jax
import numpy as np
import pytest

from cumulant import optim
from cumulant.errors import NotConvergedError
from cumulant.geometry import projections
from cumulant.optim import RobbinsMonro
from cumulant.optim.gradients import ByRows
from cumulant.optim.interior_point import (
    AugmentedLagrangianSGD,
    ProjectedSGD,
    SmoothedL1SGD,
    SubgradientSGD,
    dykstra,
    l1_regularize,
)
from cumulant.precision import float64

LOSS = optim.LeastSquares([[2.0, 1.0]], [3.0])  # gradient at (0.5, 0): -(2, 1) * 2
PENALISED = optim.Composite(LOSS, optim.L1(0.5))
SPLIT, BOUND = l1_regularize(LOSS, 0.5), l1_regularize(LOSS, 0.5, "bound")
G = np.array([-4.0, -2.0])


@pytest.mark.parametrize(
    ("solver", "problem", "x0", "expected"),
    [
        (RobbinsMonro(0.1, ByRows()), LOSS, [0.5, 0.0], [0.9, 0.2]),
        (SubgradientSGD(0.1), PENALISED, [0.5, 0.0], [0.85, 0.15]),
        (SubgradientSGD(0.1, truncate=True), PENALISED, [-0.1, 0.0], [0.0, 0.27]),
        (SmoothedL1SGD(0.1), PENALISED, [0.5, 0.0], [0.9 - 0.05 * np.tanh(2.5), 0.2]),
        (ProjectedSGD(0.1), SPLIT, [0.5, 0.0, 0.0, 0.0], [0.85, 0.15, 0.0, 0.0]),
        (ProjectedSGD(0.1), BOUND, [0.5, 0.0, 0.5, 0.0], [0.675, 0.075, 0.675, 0.075]),
        # r = 50 / 51^0.1: the constraint w- >= 0 is violated at the start, the others hold with room or not at all.
        (
            AugmentedLagrangianSGD(0.001),
            SPLIT,
            [0.5, 0.0, -0.1, 0.0],
            np.array([0.5, 0.0, -0.1, 0.0])
            - 0.001 * (np.concatenate([[-3.6, -1.8], [3.6, 1.8]]) + 0.5 - 50 / 51**0.1 * np.array([0, 0, 0.1, 0])),
        ),
    ],
    ids=["delta rule", "sub-gradient", "truncated", "smoothed", "projected split", "projected bound", "augmented"],
)
def test_one_step_by_hand(solver, problem, x0, expected):
    with float64():
        go = jax.jit(lambda x: solver.step(problem, solver.init(problem, x, jax.random.PRNGKey(0))).x)
        np.testing.assert_allclose(go(np.array(x0)), expected, atol=1e-12)


@pytest.mark.slow
def test_certificates_of_the_rivals_hold():
    best = optim.run(optim.AcceleratedProximalGradient(), PENALISED, [0.0, 0.0], tol=1e-12, max_steps=5000).value
    for solver, problem, x0 in (
        (SubgradientSGD(0.05), PENALISED, np.zeros(2)),
        (ProjectedSGD(0.05), SPLIT, np.zeros(4)),
    ):
        result = optim.run(solver, problem, x0, max_steps=40, tol=None)
        assert 0 <= result.value - best <= result.certificate.upper


def test_alternating_projections_find_the_nearest_point_of_an_intersection():
    rng = np.random.default_rng(0)
    sets = (lambda v: np.maximum(v, 0.0), lambda v: v - (v.sum() - 1.0) / v.size)
    for point in rng.normal(size=(5, 4)):
        np.testing.assert_allclose(dykstra(sets, point), projections.simplex(point), atol=1e-9)
    with pytest.raises(NotConvergedError, match="still move"):
        dykstra(sets, [5.0, -1.0], max_sweeps=1)
    with pytest.raises(ValueError, match="at least one"):
        dykstra((), [1.0])


def test_what_a_method_cannot_solve_is_refused():
    with pytest.raises(TypeError, match="takes a ConstrainedProblem"):
        optim.run(ProjectedSGD(), LOSS, [0.0, 0.0])
    with pytest.raises(TypeError, match="takes an L1 penalty"):
        optim.run(SubgradientSGD(), optim.Composite(LOSS, optim.NonNegative()), [0.0, 0.0])
    with pytest.raises(TypeError, match="gradients must be"):
        RobbinsMonro(gradients=1)
