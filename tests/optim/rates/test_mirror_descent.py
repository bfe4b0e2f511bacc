"""The theorems on mirror descent, against mirror descent."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from cumulant import optim
from cumulant.geometry import Burg, Shannon
from cumulant.optim import compare_with_rate, rates
from tests.optim.cases import poisson_fit


def test_the_rate_on_poisson_fits_in_the_geometry_of_burg():
    # sum (A x)_i - b_i log (A x)_i is smooth relative to Burg with constant sum b, and nothing better is known.
    rng = np.random.default_rng(0)
    for _ in range(8):
        matrix = rng.exponential(size=(6, 3))
        counts = rng.poisson(5.0, size=6).astype(float) + 1
        total = float(counts.sum())
        problem = optim.Objective(
            poisson_fit, (matrix, counts), convex=True, reference=Burg(), relative_smoothness=total
        )
        # A reference by another method; it need not be exact, since f(x_k) - f(x) <= L D(x|x_0) / k is claimed for
        # every x.
        exact = minimize(
            problem.value, np.ones(3), jac=problem.gradient, bounds=[(1e-9, None)] * 3, options={"ftol": 1e-15}
        )
        best, lowest = np.maximum(exact.x, 1e-6), float(problem.value(np.maximum(exact.x, 1e-6)))
        divergence = float(Burg().divergence(best, np.ones(3)))
        run = optim.run(optim.MirrorDescent(Burg()), problem, np.ones(3), max_steps=300, tol=None)
        found = compare_with_rate(run.trace, lambda k, d=divergence, L=total: rates.mirror(L, d, k), optimum=lowest)
        assert found.holds
        assert found.worst_ratio < 0.5


def weighted(x, data):
    weights, c = data
    return jnp.sum(weights * (x / c - jnp.log(x)))


@pytest.fixture(scope="module")
def relatively_strongly_convex():
    """``sum w_i (x_i / c_i - log x_i)``: relative to Burg, L = max w and mu = min w."""
    weights, c = np.array([1.0, 2.5, 4.0]), np.array([0.3, 2.0, 7.0])
    problem = optim.Objective(
        weighted, (weights, c), convex=True, reference=Burg(), relative_smoothness=4.0, relative_strong_convexity=1.0
    )
    xs = [np.ones(3)]
    run = optim.run(
        optim.MirrorDescent(Burg()), problem, np.ones(3), max_steps=60, tol=None, callback=lambda s: xs.append(s.x)
    )
    return problem, c, run, np.array(xs)


def test_the_linear_rates_under_relative_strong_convexity(relatively_strongly_convex):
    problem, c, run, xs = relatively_strongly_convex
    divergence = float(Burg().divergence(c, np.ones(3)))
    found = compare_with_rate(
        run.trace, lambda k: rates.mirror(4.0, divergence, k, mu=1.0), optimum=float(problem.value(c))
    )
    assert found.holds
    assert found.worst_ratio > 0.01
    left = np.array([float(Burg().divergence(c, x)) for x in xs])
    assert np.all(left <= rates.mirror_divergence(4.0, 1.0, divergence, np.arange(61)) * (1 + 1e-10) + 1e-15)
    # The order of the arguments matters: the reverse divergence does not obey the bound with the same start.
    assert rates.mirror(4.0, 1.0, 10, mu=1.0) < rates.mirror(4.0, 1.0, 10)


def test_the_certificate_inside_the_loop_is_above_the_gap_at_every_step(relatively_strongly_convex):
    problem, c, run, _ = relatively_strongly_convex
    gap = run.trace.value - float(problem.value(c))
    inside = np.isfinite(run.trace.bound)
    assert inside.sum() > 40
    assert np.all(gap[inside] <= run.trace.bound[inside] + 1e-13)


def test_the_implicit_rate():
    # KL, f = (x - 3)^2 / 2, x_0 = 0.2, tau = 0.7.
    problem = optim.Quadratic(np.eye(1), [3.0])
    run = optim.run(optim.MirrorDescent(Shannon(), 0.7, implicit=True), problem, [0.2], max_steps=40, tol=None)
    divergence = float(Shannon().divergence([3.0], [0.2]))
    found = compare_with_rate(run.trace, lambda k: rates.implicit_mirror(0.7, divergence, k), optimum=-4.5)
    assert found.holds
    assert found.worst_ratio == pytest.approx(0.295, abs=0.001)


def test_steps_of_any_size_below_one_over_l():
    rng = np.random.default_rng(2)
    problem = optim.Quadratic(np.diag([4.0, 1.0, 0.2]), np.array([4.0, 1.0, 0.2]))  # minimised at ones
    sizes = 0.25 * rng.uniform(0.2, 1.0, size=50)
    from cumulant.geometry import Euclidean

    run = optim.run(
        optim.MirrorDescent(Euclidean(), Listed(tuple(sizes))), problem, np.zeros(3), max_steps=50, tol=None
    )
    np.testing.assert_allclose(run.trace["travelled"][1:], np.cumsum(sizes), rtol=1e-13)
    bound = np.concatenate([[np.inf], rates.mirror_steps(1.5, sizes)])
    found = compare_with_rate(run.trace, bound, optimum=float(problem.value(np.ones(3))))
    assert found.holds
    assert found.worst_ratio > 0.05


class Listed:
    """A schedule that a user may write: any callable that can be hashed."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __call__(self, k):
        return jnp.asarray(self.sizes)[k]


def test_special_values():
    assert rates.mirror(1.0, 2.0, 0) == np.inf
    assert rates.mirror(1.0, 2.0, 1, mu=1.0) == 0.0  # a likelihood in its own geometry: one step
    np.testing.assert_allclose(
        rates.mirror(2.0, 3.0, np.array([1, 2]), mu=1e-12), rates.mirror(2.0, 3.0, np.array([1, 2])), rtol=1e-9
    )
    assert rates.simplex_radius(8) == pytest.approx(np.log(8))
    rng = np.random.default_rng(0)
    x = rng.dirichlet(np.full(8, 0.1), size=1000)
    uniform = np.full(8, 1 / 8)
    assert np.max(Shannon().divergence(x, uniform)) <= rates.simplex_radius(8)
    assert np.max(np.sum((x - uniform) ** 2, axis=1)) <= 1 - 1 / 8
    with pytest.raises(ValueError, match="tau, the step size, must be positive"):
        rates.implicit_mirror(0.0, 1.0, 3)
    with pytest.raises(ValueError, match="d, the number of entries"):
        rates.simplex_radius(0)


def test_nothing_is_said_before_the_first_step_even_from_the_solution():
    """Zero over zero: the theorems start at k = 1."""
    for bound in (
        rates.mirror(1.0, 0.0, [0, 1]),
        rates.implicit_mirror(1.0, 0.0, [0, 1]),
        rates.ista(1.0, 0.0, [0, 1]),
    ):
        np.testing.assert_array_equal(bound, [np.inf, 0.0])
    np.testing.assert_array_equal(rates.nesterov_flow(0.0, [0.0, 1.0]), [np.inf, 0.0])
