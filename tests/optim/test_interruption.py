"""Ctrl-C: in the process, in a callback, in the middle of a step, in a process of its own."""

import dataclasses
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from cumulant import optim
from cumulant.optim.driver.interruption import Interruption
from tests.optim.cases import RIDGE
from tests.optim.host import CoordinateDescent


def press(at):
    def callback(snapshot):
        if snapshot.step == at:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("solver", [optim.GradientDescent(), CoordinateDescent()], ids=["jax", "host"])
def test_a_keyboard_interrupt_from_the_callback_ends_the_run_politely(solver):
    with pytest.warns(optim.InterruptedWarning, match="after 5 steps: the answer is the best so far"):
        result = optim.run(solver, RIDGE, np.zeros(4), callback=press(5), tol=None, rng=0)
    assert (result.status, result.work) == ("interrupted", 5)
    assert result.certificate is not None
    assert result.value - RIDGE.value(result.x) == pytest.approx(0, abs=1e-15)


def test_a_host_step_torn_by_an_insistent_ctrl_c_leaves_the_best_answer():
    @dataclasses.dataclass(frozen=True)
    class Torn(CoordinateDescent):
        def step(self, problem, state):
            if problem.value(state.x) < 0.9 * problem.value(np.zeros(4)):
                state.x[:] = 1e6  # half-way through an update
                raise KeyboardInterrupt
            return super().step(problem, state)

    with pytest.warns(optim.InterruptedWarning):
        result = optim.run(Torn(1), RIDGE, np.zeros(4), tol=None, rng=0)
    assert result.status == "interrupted"
    assert result.value == result.trace.value.min()
    assert RIDGE.value(result.x) == pytest.approx(result.value, rel=1e-12)
    assert result.certificate is None
    assert "consumed" in result.refusal


def test_the_first_ctrl_c_asks_and_the_second_insists():
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_after_an_interrupted_run_another_ctrl_c_is_for_the_program(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with Interruption():
        signal.raise_signal(signal.SIGINT)
    now[0] += 1.9
    with pytest.raises(KeyboardInterrupt), Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
    assert interruption.final
    with Interruption() as interruption:  # that was the end of the program: a new one begins
        signal.raise_signal(signal.SIGINT)
    assert (interruption.requested, interruption.final) == (True, False)
    now[0] += 2.1
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
    assert (interruption.requested, interruption.final) == (True, False)


def test_two_in_one_run_keep_its_answer_and_end_the_next_run(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def twice(snapshot):
        if snapshot.step == 5:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    def interrupted():
        with pytest.warns(optim.InterruptedWarning):
            result = optim.run(optim.GradientDescent(), RIDGE, np.zeros(4), callback=twice, tol=None)
        assert (result.status, result.work) == ("interrupted", 5)

    interrupted()
    with pytest.raises(KeyboardInterrupt):
        optim.run(optim.GradientDescent(), RIDGE, np.zeros(4), tol=None)
    interrupted()
    now[0] += 2.1
    assert optim.run(optim.GradientDescent(), RIDGE, np.zeros(4), max_steps=3, tol=None).status == "max_steps"


def test_a_run_does_not_keep_a_ctrl_c_that_is_for_the_program():
    def press(snapshot):
        if snapshot.step == 5:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(optim.InterruptedWarning):
        optim.run(optim.GradientDescent(), RIDGE, np.zeros(4), callback=press, tol=None)
    with pytest.raises(KeyboardInterrupt):
        optim.run(optim.GradientDescent(), RIDGE, np.zeros(4), callback=press, tol=None)


def test_a_handler_of_the_application_is_left_alone():
    def mine(number, frame):
        pass

    previous = signal.signal(signal.SIGINT, mine)
    try:
        with Interruption():
            assert signal.getsignal(signal.SIGINT) is mine
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, previous)


def test_a_process_that_gets_ctrl_c_prints_its_result_and_leaves_a_checkpoint(tmp_path):
    script = textwrap.dedent("""
        import sys, numpy as np
        from cumulant import optim

        def once(snapshot):
            if snapshot.step == 1000:
                print("running", flush=True)

        problem = optim.Quadratic(np.diag([1.0, 1e-7]), np.ones(2))
        result = optim.run(optim.GradientDescent(), problem, [0.0, 0.0], tol=1e-14, time_limit=100.0, every=1000,
                           checkpoint=sys.argv[1], callback=once)
        print(result.status, result.work, result.certificate.upper, flush=True)
    """)
    path = tmp_path / "run.npz"
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    status, work, bound = out.split()
    assert (status, process.returncode) == ("interrupted", 0)
    assert "InterruptedWarning: GradientDescent on Quadratic was interrupted after" in err
    assert int(work) >= 1000
    assert float(bound) > 0
    assert path.exists()
