"""The logarithmic barrier and the central path, against closed forms."""

import numpy as np
import pytest
from scipy.optimize import brentq

from cumulant import optim
from cumulant.errors import DomainError
from cumulant.optim.interior_point import (
    Bounds,
    ConstrainedProblem,
    central_path,
    l1_regularize,
    log_barrier,
    noisy_central_path,
    solve_primal_dual,
)
from tests.optim.interior_point.cases import CORNER, FIACCO


def test_the_path_of_fiacco_and_mccormick_and_its_gap():
    mus = np.array([1.0, 0.5, 0.25, 0.1])
    path = central_path(FIACCO, mus, [1.0, 2.0])
    first = (np.sqrt(1 + 8 * mus) - 1) / 4
    np.testing.assert_allclose(path.x, np.stack([first, first**2 + mus], axis=1), atol=1e-9)
    np.testing.assert_allclose(path.z, np.stack([mus / first, np.ones(4)], axis=1), atol=1e-9)
    np.testing.assert_allclose(path.x[3], [0.08541020, 0.10729490], atol=1e-8)
    dual = -((1 - path.z[:, 0]) ** 2) / 4  # inf over x of x1 + x2 - z1 x1 + x1^2 - x2
    np.testing.assert_allclose(path.x.sum(axis=1) - dual, 2 * mus, atol=1e-12)
    direct = central_path(FIACCO, [0.1], [1.0, 2.0], max_steps=60)
    np.testing.assert_allclose(direct.x[0], path.x[3], atol=1e-8)


def test_the_barrier_its_derivatives_and_its_newton_steps():
    barrier = log_barrier(FIACCO, 0.1)
    x, h = np.array([0.4, 0.9]), 1e-6
    assert float(barrier.value(x)) == pytest.approx(1.3 - 0.1 * (np.log(0.4) + np.log(0.9 - 0.16)), abs=1e-12)
    assert np.isinf(barrier.value([0.4, 0.1]))
    differences = [(barrier.value(x + h * e) - barrier.value(x - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(barrier.gradient(x), differences, atol=1e-8)
    turned = [(barrier.gradient(x + h * e) - barrier.gradient(x - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(barrier.hessian(x), turned, atol=1e-6)
    for _ in range(60):  # the primal Newton step, halved while it does not decrease
        step, a = np.linalg.solve(barrier.hessian(x), -barrier.gradient(x)), 1.0
        assert step @ barrier.gradient(x) <= 0  # a direction of descent
        while barrier.value(x + a * step) > barrier.value(x) and a > 1e-10:
            a /= 2
        x = x + a * step
    np.testing.assert_allclose(x, [0.08541020, 0.10729490], atol=1e-8)


@pytest.mark.parametrize("formulation", ["split", pytest.param("bound", marks=pytest.mark.slow)])
def test_the_path_of_a_lasso_in_one_variable(formulation):
    """``(w - b)^2 / 2 + lam |w|``: on the path ``w = mu / (w - b + lam) - mu / (lam - w + b)``."""
    mus = np.array([1.0, 0.1, 0.01, 1e-4])
    if formulation == "split":
        problem = l1_regularize(optim.LeastSquares([[1.0]], [0.0]), 2.0)
        np.testing.assert_allclose(central_path(problem, mus, problem.start()).x, mus[:, None] / [2, 2], rtol=1e-8)
    for b, published in (
        (3.0, (2.33987689, 2.04764480, 2.00497516, 2.00005000)),
        (0.5, (None, 0.09642052, 0.01277768, 1.3327e-4)),
    ):
        problem = l1_regularize(optim.LeastSquares([[1.0]], [b]), 1.0, formulation)
        path = central_path(problem, mus, problem.start())
        w = np.array([problem.coefficients(x)[0] for x in path.x])
        if formulation == "split":
            reach = (max(b - 1, -b) + 1e-13, b + 1 - 1e-13)
            equation = lambda w, mu, b=b: mu / (w - b + 1) - mu / (1 - w + b) - w  # noqa: E731
            np.testing.assert_allclose(w, [brentq(equation, *reach, args=(mu,), xtol=1e-14) for mu in mus], atol=1e-8)
            for value, known in zip(w, published, strict=True):
                assert known is None or value == pytest.approx(known, abs=1e-8)
        assert w[-1] == pytest.approx(max(b - 1, 0.0), abs=2e-4)  # the soft threshold in the limit


def test_a_newton_step_is_the_tangent_of_the_noisy_path():
    start = noisy_central_path(CORNER, [0.1], 0.0, [1.0, 1.0])
    x, z = start.x[0], start.z[0]
    np.testing.assert_allclose(x, [0.091608, 1.091608], atol=1e-6)
    errors = []
    for part in (1.0, 0.5, 0.25):
        mu, noise = 0.1 - 0.01 * part, 0.01 * part
        step = solve_primal_dual(1.0, -np.eye(2), -x, z, x - [-1.0, 1.0] + noise, mu)
        target = noisy_central_path(CORNER, [mu], noise, x, z0=z)
        miss = np.concatenate([x + step.dx - target.x[0], z + step.dz - target.z[0]])
        errors.append(np.linalg.norm(miss))
        if part == 1.0:
            np.testing.assert_allclose(x + step.dx, [0.082382, 1.073931], atol=1e-6)
            np.testing.assert_allclose(target.x[0], [0.082388, 1.073813], atol=1e-6)
    np.testing.assert_allclose(errors, [1.660e-4, 4.105e-5, 1.021e-5], rtol=1e-3)


def test_bad_input_is_refused():
    with pytest.raises(DomainError, match=r"constraint 1 is 0\.75"):
        central_path(FIACCO, [1.0], [1.0, 0.25])
    with pytest.raises(ValueError, match="mus must be positive"):
        central_path(FIACCO, [0.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="z0 must be positive"):
        central_path(FIACCO, [1.0], [1.0, 2.0], z0=0.0)
    with pytest.raises(ValueError, match="mu must be positive"):
        log_barrier(FIACCO, 0.0)
    with pytest.raises(TypeError, match="ConstrainedProblem"):
        log_barrier(optim.Quadratic(np.eye(1), [1.0]), 1.0)
    with pytest.raises(TypeError, match="constraints must be"):
        ConstrainedProblem(optim.Quadratic(np.eye(1), [1.0]), 3.0)
    with pytest.raises(TypeError, match="strictly feasible point"):
        ConstrainedProblem(optim.Quadratic(np.eye(1), [1.0]), Bounds(0.0)).start()
