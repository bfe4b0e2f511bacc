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
    assert (status, process.returncode, err) == ("interrupted", 0, "")
    assert int(work) >= 1000
    assert float(bound) > 0
    assert path.exists()
