"""The loop: stopping, tracing, callbacks, the clock, divergence, precision, compilation."""

import dataclasses
import io
import sys
import threading
import time
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from cumulant import optim
from cumulant.errors import CertificateError, DomainError
from cumulant.optim.driver.compiled_engine import _records
from cumulant.pytrees import pytree
from tests.optim.cases import RIDGE, A, BareDescent, NoisyDescent, Y, log_sum_exp
from tests.optim.host import CoordinateDescent

OPTIMUM = np.linalg.solve(A.T @ A / 12 + 0.3 * np.eye(4), A.T @ Y / 12)
LOWEST = float(np.sum((A @ OPTIMUM - Y) ** 2) / 24 + 0.15 * OPTIMUM @ OPTIMUM)
ZERO = np.zeros(4)


def test_it_converges_and_the_certificate_bounds_the_true_gap():
    result = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=1e-10)
    assert result.status == "converged"
    np.testing.assert_allclose(result.x, OPTIMUM, atol=1e-5)
    gap = result.value - LOWEST
    assert -1e-15 <= gap <= result.certificate.upper + 1e-15  # the values themselves are rounded
    assert result.certificate.upper <= 1e-10 * result.scale
    assert result.relative_bound <= 1e-10
    assert np.all(result.trace.value - LOWEST <= result.trace.bound + 1e-15)  # and at every record, not only the last


def test_tol_is_relative_so_a_multiple_of_the_objective_stops_at_the_same_step():
    large = optim.LeastSquares(1e4 * A, 1e4 * Y, l2=0.3 * 1e8)
    small = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=1e-7)
    big = optim.run(optim.GradientDescent(), large, ZERO, tol=1e-7)
    assert small.work == big.work > 0
    assert big.value == pytest.approx(1e8 * small.value, rel=1e-9)


def test_a_start_at_the_optimum_needs_no_step():
    result = optim.run(optim.GradientDescent(), RIDGE, OPTIMUM, tol=1e-9)
    assert (result.status, result.work, len(result.trace)) == ("converged", 0, 1)


def test_without_a_tolerance_it_takes_all_its_steps():
    result = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=None, max_steps=500)
    assert (result.status, result.work) == ("max_steps", 500)
    assert optim.run(optim.GradientDescent(), RIDGE, ZERO, max_steps=0).work == 0


def test_a_tolerance_met_between_records_is_still_called_converged():
    result = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=1e-6, every=10_000, max_steps=900)
    assert (result.status, result.work) == ("converged", 900)
    np.testing.assert_array_equal(result.trace.steps, [0, 900])


def test_what_float32_cannot_certify_is_not_called_converged():
    # The bound inside the loop falls to zero long before the gradient, recomputed in float64, is that small.
    result = optim.run(optim.GradientDescent(), RIDGE, jnp.zeros(4), tol=1e-16, max_steps=3000)
    assert result.status == "rounding"
    assert result.certificate.upper > 1e-16 * result.scale
    assert result.value - LOWEST <= result.certificate.upper + 1e-6 * LOWEST  # the value itself is in float32


def test_the_best_iterate_is_returned_where_the_solver_asks_for_it():
    result = optim.run(NoisyDescent(0.3), RIDGE, ZERO, tol=None, max_steps=60, rng=4)
    best = int(np.argmin(result.trace.value))
    assert best != len(result.trace) - 1  # else the test would show nothing
    assert result.value == result.trace.value[best]
    assert RIDGE.value(result.x) == pytest.approx(result.value, rel=1e-14)


def test_what_is_called_converged_is_the_certified_iterate_and_not_another():
    @pytree
    @dataclasses.dataclass(frozen=True)
    class Best(NoisyDescent):
        def measure(self, problem, state):
            slope = problem.gradient(state.x)
            return {"value": problem.value(state.x), "bound": jnp.vdot(slope, slope) / (2 * 0.3)}

    result = optim.run(Best(0.2), RIDGE, ZERO, tol=2e-2, max_steps=500, rng=1)
    assert result.status == "converged"
    assert result.certificate.verify(result.subject).bound == result.certificate.bound
    assert result.certificate.upper <= 2e-2 * result.scale


def test_without_a_certificate_the_result_says_why():
    problem = optim.Objective(log_sum_exp, A, smoothness=50.0)
    result = optim.run(optim.GradientDescent(), problem, ZERO, max_steps=5)
    assert result.certificate is None
    assert result.refusal == "no certificate: it was not shown that the objective is strongly convex (mu = 0)"
    assert result.refusal in str(result)
    assert result.relative_bound == np.inf


def test_a_printed_result_can_be_read():
    text = str(optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=1e-6))
    assert text.startswith("GradientDescent on LeastSquares: converged after ")
    assert "f(x) - f* <= " in text
    assert "checked: mu = " in text
    assert "value" in str(optim.run(optim.GradientDescent(), RIDGE, ZERO, max_steps=3).trace)


# Divergence -----------------------------------------------------------------------------------------------------------


def test_a_diverging_run_stops_and_returns_the_best_finite_iterate():
    result = optim.run(optim.GradientDescent(50.0), RIDGE, np.ones(4), max_steps=10_000)
    assert result.status == "diverged"
    assert result.work < 10_000
    assert np.all(np.isfinite(result.trace.value))
    assert np.all(np.isfinite(result.x))
    assert result.value == np.min(result.trace.value)
    assert "diverged" in str(result)


def test_a_diverging_host_run_keeps_its_best_answer_and_admits_that_the_state_is_gone():
    @dataclasses.dataclass(frozen=True)
    class Explodes(CoordinateDescent):
        def step(self, problem, state):
            state = super().step(problem, state)
            if problem.value(state.x) < RIDGE.value(OPTIMUM) + 0.01:
                state.x[:] = np.nan
            return state

    result = optim.run(Explodes(2), RIDGE, np.ones(4), tol=None, rng=0)
    assert result.status == "diverged"
    assert np.all(np.isfinite(result.x))
    assert result.value == np.min(result.trace.value)
    assert result.certificate is None
    assert "consumed" in result.refusal


def test_a_start_outside_the_domain_is_refused():
    def barrier(x, data):
        return -jnp.sum(jnp.log(x))

    with pytest.raises(DomainError, match=r"not finite at x0 = \[-1\.\]"):
        optim.run(optim.GradientDescent(0.1), optim.Objective(barrier), [-1.0])
    with pytest.raises(DomainError, match="x0 must be finite"):
        optim.run(optim.GradientDescent(), RIDGE, [0.0, np.nan, 0.0, 0.0])


# Callback, clock, progress --------------------------------------------------------------------------------------------


def test_a_callback_sees_every_record_and_can_stop_the_run():
    seen = []

    def watch(snapshot):
        seen.append(snapshot)
        return snapshot.step >= 6

    result = optim.run(optim.GradientDescent(), RIDGE, ZERO, callback=watch, every=2, tol=None)
    assert (result.status, result.work) == ("stopped", 6)
    assert [s.step for s in seen] == [2, 4, 6]
    for snapshot in seen:
        assert type(snapshot.x) is np.ndarray
        assert RIDGE.value(snapshot.x) == pytest.approx(snapshot.value, rel=1e-14)
    np.testing.assert_array_equal(seen[-1].x, result.x)


def test_a_callback_that_returns_something_else_does_not_stop_the_run():
    assert optim.run(optim.GradientDescent(), RIDGE, ZERO, callback=lambda s: s.step, max_steps=5, tol=None).work == 5


def test_an_error_in_the_callback_is_not_swallowed():
    def fail(snapshot):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        optim.run(optim.GradientDescent(), RIDGE, ZERO, callback=fail)


@pytest.mark.parametrize(
    "solver", [optim.GradientDescent(), CoordinateDescent(), BareDescent()], ids=["jax", "host", "bare"]
)
def test_the_clock_ends_a_run_and_its_work_replays_it(solver):
    start = time.process_time()
    result = optim.run(solver, RIDGE, ZERO, tol=None, time_limit=0.3, every=1000, rng=2)
    assert time.process_time() - start < 30
    assert result.status == "time_limit"
    assert result.work > 0
    assert result.trace.steps[-1] == result.work  # recorded where it stopped
    again = optim.run(solver, RIDGE, ZERO, max_steps=result.work, tol=None, every=1000, rng=2)
    np.testing.assert_array_equal(again.x, result.x)
    assert again.value == result.value
    np.testing.assert_array_equal(again.trace.value, result.trace.value)


def test_the_records_do_not_depend_on_how_the_run_is_cut_into_calls(monkeypatch):
    whole = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=None, max_steps=300, every=7)
    monkeypatch.setattr(sys.modules["cumulant.optim.driver.run"], "_CALL", 1e-9)  # one step a call
    cut = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=None, max_steps=300, every=7)
    np.testing.assert_array_equal(whole.trace.steps, cut.trace.steps)
    np.testing.assert_array_equal(whole.trace.value, cut.trace.value)
    np.testing.assert_array_equal(whole.x, cut.x)


def test_a_bar_is_drawn_on_a_terminal_and_nowhere_else():
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=120)
    optim.run(
        optim.GradientDescent(),
        RIDGE,
        ZERO,
        tol=None,
        max_steps=20,
        progress=terminal,
        callback=lambda s: time.sleep(0.02),
    )
    assert "GradientDescent on LeastSquares" in screen.getvalue()
    assert "value" in screen.getvalue()
    pipe = io.StringIO()
    optim.run(optim.GradientDescent(), RIDGE, ZERO, max_steps=20, progress=Console(file=pipe))
    assert pipe.getvalue() == ""


def test_a_string_is_the_title_of_the_bar(monkeypatch):
    screen = io.StringIO()

    class Terminal(Console):
        def __init__(self, **_):
            super().__init__(file=screen, force_terminal=True, width=120)

    monkeypatch.setattr(sys.modules["cumulant.optim.driver.display"], "Console", Terminal)
    optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=None, max_steps=3, progress="Ridge")
    assert "Ridge" in screen.getvalue()
    assert "GradientDescent" not in screen.getvalue()


def test_it_runs_in_a_thread():
    answers = []
    worker = threading.Thread(target=lambda: answers.append(optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=1e-8)))
    worker.start()
    worker.join()
    assert answers[0].status == "converged"
    assert answers[0].x.dtype == np.float64


# Precision and compilation --------------------------------------------------------------------------------------------


def test_numpy_is_computed_in_float64_and_jax_in_the_callers_precision():
    wide = optim.run(optim.GradientDescent(), RIDGE, [0, 0, 0, 0], max_steps=3)
    assert type(wide.x) is np.ndarray
    assert wide.x.dtype == np.float64
    assert all(leaf.dtype in (np.float64, bool) for leaf in jax.tree.leaves(wide.state))
    narrow = optim.run(optim.GradientDescent(), RIDGE, jnp.zeros(4), max_steps=3)
    assert isinstance(narrow.x, jax.Array)
    assert narrow.x.dtype == jnp.float32
    np.testing.assert_allclose(narrow.x, wide.x, rtol=1e-5)
    of_jax = optim.run(
        optim.GradientDescent(), optim.LeastSquares(jnp.asarray(A), jnp.asarray(Y), 0.3), ZERO, max_steps=3
    )
    assert of_jax.x.dtype == jnp.float32
    assert not jax.config.jax_enable_x64


def test_float32_data_in_numpy_are_widened_not_the_computation_narrowed():
    problem = optim.LeastSquares(A.astype(np.float32), Y.astype(np.float32), 0.3)
    assert problem.A.dtype == np.float64
    assert optim.run(optim.GradientDescent(), problem, ZERO.astype(np.float32), max_steps=2).x.dtype == np.float64


def test_the_same_kind_of_run_is_compiled_once():
    rng = np.random.default_rng(0)
    optim.run(optim.GradientDescent(0.1), RIDGE, ZERO, max_steps=5)
    before = _records._cache_size()
    for step, every in ((0.2, 1), (0.05, 3)):
        problem = optim.LeastSquares(rng.normal(size=(12, 4)), rng.normal(size=12), l2=rng.uniform())
        optim.run(optim.GradientDescent(step), problem, rng.normal(size=4), max_steps=17, every=every, tol=1e-3)
    assert _records._cache_size() == before


def test_two_entropies_without_settings_are_two_programs():
    # Structures of dataclasses compare equal in jaxlib when only their classes differ.
    from cumulant.geometry import Burg, Euclidean, Shannon

    problem = optim.Quadratic(np.eye(2), [2.0, 1.0])
    found = [
        optim.run(optim.MirrorDescent(e, 0.1), problem, [1.0, 2.0], max_steps=1).x
        for e in (Euclidean(), Shannon(), Burg())
    ]
    expected = [(1.1, 1.9), (np.exp(0.1), 2 * np.exp(-0.1)), (1 / 0.9, 1 / 0.6)]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_it_says_that_it_cannot_be_traced():
    with pytest.raises(TypeError, match="cannot be traced"):
        jax.jit(lambda x: optim.run(optim.GradientDescent(), RIDGE, x).x)(jnp.zeros(4))


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_steps": -1}, "max_steps must be a whole number of at least 0; got -1"),
        ({"max_steps": 2.5}, "max_steps must be a whole number"),
        ({"tol": -1e-3}, "tol must be finite and not negative; got -0.001"),
        ({"tol": np.nan}, "tol must be"),
        ({"time_limit": 0}, "time_limit, in seconds, must be positive; got 0"),
        ({"every": 0}, "every must be a whole number of at least 1; got 0"),
        ({"tol": (1e-3, -1.0)}, "the scale of tol must be finite"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        optim.run(optim.GradientDescent(), RIDGE, ZERO, **settings)


def test_bad_starting_points_and_solvers_are_refused():
    with pytest.raises(TypeError, match="x0 must be an array of real numbers"):
        optim.run(optim.GradientDescent(), RIDGE, ["a", "b"])

    @dataclasses.dataclass(frozen=True)
    class Nowhere(BareDescent):
        backend: ClassVar[str] = "gpu"

    with pytest.raises(TypeError, match=r"solver\.backend of Nowhere must be 'jax' or 'host'; got 'gpu'"):
        optim.run(Nowhere(), RIDGE, ZERO)


def test_a_setting_that_cannot_be_part_of_a_program_is_refused_with_a_reason():
    @pytree
    @dataclasses.dataclass(frozen=True)
    class Listed(BareDescent):
        names: object = None

    with pytest.raises(TypeError, match="must be hashable"):
        optim.run(Listed(names={"a"}), RIDGE, ZERO)


def test_a_refused_certificate_does_not_stop_a_run_early():
    @pytree
    @dataclasses.dataclass(frozen=True)
    class Boaster(BareDescent):
        def measure(self, problem, state):
            return {"value": problem.value(state.x), "bound": 0.0}

        def certify(self, problem, state):
            raise CertificateError("no certificate: honesty was not shown", assumption="honesty")

    result = optim.run(Boaster(), RIDGE, ZERO, tol=1e-3, max_steps=12)
    assert (result.status, result.work) == ("max_steps", 12)
    assert "honesty" in result.refusal
