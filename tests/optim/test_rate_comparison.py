import numpy as np
import pytest

from cumulant import optim
from cumulant.optim import compare_with_rate, rates
from tests.optim.cases import RIDGE

TWO = optim.Quadratic(np.diag([1.0, 10.0]), np.zeros(2))


@pytest.fixture(scope="module")
def trace():
    return optim.run(optim.GradientDescent(), TWO, [1.0, 1.0], max_steps=30, tol=None).trace


def test_a_true_bound_holds_and_a_false_one_does_not(trace):
    good = compare_with_rate(trace, lambda k: rates.gd_convex(10.0, 2.0, k))
    assert good.holds
    assert good.worst_ratio == pytest.approx(0.55)  # at step 0: 5.5 against 10
    bad = compare_with_rate(trace, lambda k: rates.gd_convex(10.0, 2.0, k) / 100)
    assert not bad.holds
    assert bad.worst_ratio == pytest.approx(55)
    assert "VIOLATED" in str(bad)


def test_rounding_at_the_end_of_a_run_is_not_a_violation():
    exact = np.linalg.solve(RIDGE.A.T @ RIDGE.A / 12 + 0.3 * np.eye(4), RIDGE.A.T @ RIDGE.y / 12)
    run = optim.run(optim.GradientDescent(), RIDGE, np.zeros(4), max_steps=400, tol=None)
    L, mu = RIDGE.smoothness, RIDGE.strong_convexity
    found = compare_with_rate(
        run.trace,
        lambda k: L / 2 * rates.gd_strongly_convex(L, mu, k, np.linalg.norm(exact)) ** 2,
        optimum=float(RIDGE.value(exact)),
    )
    assert found.holds
    assert found.bound[-1] < 1e-17  # far below what the values can resolve
    assert not compare_with_rate(run.trace, found.bound, optimum=float(RIDGE.value(exact)), rounding=0.0).holds


def test_infinite_bounds_are_left_out_and_other_columns_can_be_used(trace):
    found = compare_with_rate(trace, lambda k: rates.mirror(10.0, 1.0, k), column="value")
    assert found.steps[0] == 1
    norms = compare_with_rate(
        trace, lambda k: 10.0 * rates.gd_strongly_convex(10.0, 1.0, k, np.sqrt(2)), column="residual"
    )
    assert norms.holds


def test_it_draws_on_axes_it_is_given(trace):
    calls = []

    class Axes:
        def __getattr__(self, name):
            return lambda *args, **kwargs: calls.append(name)

    compare_with_rate(trace, lambda k: rates.gd_convex(10.0, 2.0, k)).plot(Axes())
    assert calls == ["plot", "plot", "set", "legend"]


def test_bounds_that_say_nothing_are_refused(trace):
    with pytest.raises(ValueError, match="infinite or NaN at every record"):
        compare_with_rate(trace, np.full(31, np.inf))
    with pytest.raises(ValueError, match="one entry for each of the 31 records"):
        compare_with_rate(trace, np.ones(3))
    with pytest.raises(ValueError, match="must not be negative"):
        compare_with_rate(trace, -np.ones(31))
