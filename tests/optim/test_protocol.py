"""The contract of `protocol.py`, for every solver."""

import signal

import jax
import numpy as np
import pytest

from cumulant import optim
from cumulant.certificates import Certificate
from cumulant.errors import CertificateError
from cumulant.optim.driver.run import engine_for
from cumulant.optim.driver.window import Window
from cumulant.optim.protocol import Problem, Solver
from tests.optim.cases import CASES

NAMES = list(CASES)
STEPS, EVERY = 24, 3


def go(name, **settings):
    solver, problem, x0 = CASES[name]
    return optim.run(solver, problem, x0, **({"max_steps": STEPS, "tol": None, "rng": 7, "every": EVERY} | settings))


@pytest.fixture(scope="module")
def uninterrupted():
    """Every solver, run once without a break."""
    return {name: go(name) for name in NAMES}


def same(first, second):
    """Bit for bit, all but the clock."""
    np.testing.assert_array_equal(first.x, second.x)
    assert first.value == second.value
    assert first.work == second.work
    assert first.trace.columns().keys() == second.trace.columns().keys()
    for column in first.trace.columns().keys() - {"seconds"}:
        np.testing.assert_array_equal(first.trace[column], second.trace[column], err_msg=column)
    assert (first.certificate is None) == (second.certificate is None)
    if first.certificate is not None and second.certificate is not None:
        assert first.certificate == second.certificate


@pytest.mark.parametrize("name", NAMES)
def test_a_solver_and_a_problem_have_the_methods_they_should(name):
    solver, problem, _ = CASES[name]
    assert isinstance(solver, Solver)
    assert isinstance(problem, Problem)
    hash(type(solver))
    with pytest.raises(AttributeError):
        solver.something = 1  # frozen


@pytest.mark.parametrize("name", NAMES)
def test_a_step_keeps_the_structure_shapes_and_types_of_the_state(name):
    solver, problem, x0 = CASES[name]
    engine = engine_for(solver, problem, x0)
    engine.start(x0, 7)
    before = [(np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in jax.tree.leaves(engine.state)]
    structure = jax.tree.structure(engine.state)
    engine.advance(Window(0, 2, 1, -1.0, 0.0), lambda: False)
    after = [(np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in jax.tree.leaves(engine.state)]
    assert structure == jax.tree.structure(engine.state)
    assert before == after
    assert np.shape(engine.solution(engine.state)) == np.shape(x0)


@pytest.mark.parametrize("name", NAMES)
def test_the_result_is_numpy_in_float64_and_the_trace_is_what_was_asked(name, uninterrupted):
    result = uninterrupted[name]
    assert type(result.x) is np.ndarray
    assert result.x.dtype == np.float64
    assert result.work == STEPS
    assert result.status == "max_steps"
    np.testing.assert_array_equal(result.trace.steps, np.arange(0, STEPS + 1, EVERY))
    assert np.all(np.diff(result.trace.seconds) >= 0)
    assert np.all(np.isfinite(result.trace.value))
    assert str(result)


@pytest.mark.parametrize("name", NAMES)
def test_certify_gives_a_certificate_that_verifies_or_names_what_is_missing(name, uninterrupted):
    result = uninterrupted[name]
    if result.certificate is None:
        assert result.refusal
        assert "not shown" in result.refusal
        return
    assert isinstance(result.certificate, Certificate)
    assert result.refusal == ""
    fresh = result.certificate.verify(result.subject)
    assert fresh.bound == pytest.approx(result.certificate.bound, rel=1e-9, abs=1e-14)
    with pytest.raises(
        CertificateError, match=r"does not hold|not shown"
    ):  # what is claimed here is not true of the start
        result.certificate.verify(go(name, max_steps=0).subject)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_run(name, uninterrupted):
    same(go(name), uninterrupted[name])


@pytest.mark.parametrize("name", NAMES)
def test_a_run_in_three_processes_equals_one_in_one(name, uninterrupted, tmp_path):
    path = tmp_path / "run"
    first = go(name, max_steps=7, checkpoint=path)
    assert first.work == 7
    second = go(name, max_steps=16, checkpoint=path)
    assert second.work == 16
    same(go(name, checkpoint=path), uninterrupted[name])
    same(go(name, checkpoint=path), uninterrupted[name])  # and once it is done, asking again costs nothing


@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_returns_what_there_is_and_its_work_replays_it(name):
    def press(snapshot):
        if snapshot.step == 9:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(optim.InterruptedWarning, match="after 9 steps: the answer is the best so far"):
        result = go(name, callback=press)
    assert result.status == "interrupted"
    assert result.work == 9
    assert result.certificate is not None or result.refusal
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # put back
    replay = go(name, max_steps=result.work, tol=None)
    assert replay.status == "max_steps"
    np.testing.assert_array_equal(replay.x, result.x)
    assert replay.value == result.value
