"""Checkpoints: whose they are, that they are whole, and that a process may be killed at any moment."""

import dataclasses
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from cumulant import files, optim
from cumulant.errors import FileFormatError
from tests.optim.cases import RIDGE, A, NoisyDescent, Y, log_sum_exp
from tests.optim.host import CoordinateDescent

ZERO = np.zeros(4)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run.npz"
    optim.run(NoisyDescent(), RIDGE, ZERO, max_steps=5, tol=None, rng=1, checkpoint=path)
    return path


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"solver": NoisyDescent(0.2)}, "solver"),
        ({"solver": optim.GradientDescent()}, "solver"),
        ({"problem": optim.LeastSquares(A, Y, l2=0.31)}, "problem"),
        ({"problem": optim.Quadratic(np.eye(4), ZERO)}, "problem"),
        ({"x0": np.ones(4)}, "starting point"),
        ({"rng": 2}, "seed"),
        ({"rng": None}, "seed"),
        ({"every": 2}, "interval of records"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(saved, change, what):
    arguments = {"solver": NoisyDescent(), "problem": RIDGE, "x0": ZERO, "rng": 1, "every": 1} | change
    with pytest.raises(FileFormatError, match=f"run with another {what}: delete it, choose another path"):
        optim.run(max_steps=9, tol=None, checkpoint=saved, **arguments)


def test_an_edited_objective_is_another_objective(tmp_path):
    def first(x, data):
        return log_sum_exp(x, data)

    def second(x, data):
        return log_sum_exp(x, data) + 1.0

    second.__qualname__ = first.__qualname__
    path = tmp_path / "run.npz"
    solver = optim.GradientDescent(0.01)
    optim.run(solver, optim.Objective(first, A), ZERO, max_steps=2, checkpoint=path)
    with pytest.raises(FileFormatError, match="another problem"):
        optim.run(solver, optim.Objective(second, A), ZERO, max_steps=2, checkpoint=path)


@pytest.mark.parametrize("damage", ["truncated", "noise", "empty", "other kind"])
def test_a_damaged_or_foreign_file_is_refused(saved, damage):
    whole = saved.read_bytes()
    if damage == "truncated":
        saved.write_bytes(whole[: len(whole) // 2])
    elif damage == "noise":
        saved.write_bytes(os.urandom(2000))
    elif damage == "empty":
        saved.write_bytes(b"")
    else:
        files.save(saved, "family", {"a": [1.0]})
    with pytest.raises(FileFormatError):
        optim.run(NoisyDescent(), RIDGE, ZERO, max_steps=9, tol=None, rng=1, checkpoint=saved)


def test_what_cannot_be_told_apart_is_not_checkpointed(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Opaque(CoordinateDescent):
        thing: object = None

    with pytest.raises(TypeError, match="has no fingerprint"):
        optim.run(Opaque(thing=object()), RIDGE, ZERO, checkpoint=tmp_path / "run")


def test_the_state_of_a_generator_is_part_of_the_checkpoint(tmp_path):
    whole = optim.run(CoordinateDescent(), RIDGE, ZERO, max_steps=30, tol=None, rng=np.random.default_rng(9))
    for rng_class in (np.random.PCG64, np.random.MT19937, np.random.Philox):
        expected = optim.run(
            CoordinateDescent(), RIDGE, ZERO, max_steps=30, tol=None, rng=np.random.Generator(rng_class(4))
        )
        path = tmp_path / rng_class.__name__
        for steps in (11, 30):
            rng = np.random.Generator(rng_class(4))
            parts = optim.run(CoordinateDescent(), RIDGE, ZERO, max_steps=steps, tol=None, rng=rng, checkpoint=path)
        np.testing.assert_array_equal(parts.x, expected.x)
        assert not np.array_equal(parts.x, whole.x)


def test_convergence_is_remembered(tmp_path):
    path = tmp_path / "run"
    first = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=1e-6, checkpoint=path)
    again = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=1e-6, checkpoint=path)
    assert first.status == again.status == "converged"
    assert first.work == again.work
    finer = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=1e-12, checkpoint=path)
    direct = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=1e-12)
    assert finer.work == direct.work > first.work
    np.testing.assert_array_equal(finer.x, direct.x)
    np.testing.assert_array_equal(finer.trace.value, direct.trace.value)


def test_a_diverged_run_leaves_the_checkpoint_from_before_it_diverged(tmp_path):
    path = tmp_path / "run"
    optim.run(optim.GradientDescent(50.0), RIDGE, np.ones(4), max_steps=3, tol=None, checkpoint=path)
    result = optim.run(optim.GradientDescent(50.0), RIDGE, np.ones(4), max_steps=5000, checkpoint=path)
    assert result.status == "diverged"
    assert optim.run(optim.GradientDescent(50.0), RIDGE, np.ones(4), max_steps=3, checkpoint=path).work == 3


def test_a_checkpoint_that_is_further_than_asked_is_not_cut_short(saved):
    with pytest.raises(ValueError, match="the checkpoint is at step 5 already, beyond the 3 asked for"):
        optim.run(NoisyDescent(), RIDGE, ZERO, max_steps=3, rng=1, checkpoint=saved)


def test_it_is_saved_as_often_as_asked(tmp_path, monkeypatch):
    count = []
    save = files.save
    monkeypatch.setattr(files, "save", lambda *a, **k: (count.append(1), save(*a, **k)))
    optim.run(CoordinateDescent(), RIDGE, ZERO, max_steps=8, tol=None, checkpoint=tmp_path / "rare")
    assert len(count) == 1  # at the end
    count.clear()
    optim.run(
        NoisyDescent(),
        RIDGE,
        ZERO,
        max_steps=8,
        tol=None,
        checkpoint=optim.Checkpoint(tmp_path / "often", seconds=0),
        callback=lambda s: None,
    )
    assert len(count) == 9
    with pytest.raises(ValueError, match="must not be negative; got -1"):
        optim.Checkpoint("x", seconds=-1)


WORKER = textwrap.dedent("""
    import os, signal, sys
    import numpy as np
    from cumulant import optim
    from tests.optim.host import CoordinateDescent

    path, die_at = sys.argv[1], int(sys.argv[2])
    flush, calls = os.fsync, []

    def fsync(file):  # called by a save when its bytes are written and not yet renamed
        calls.append(file)
        if len(calls) == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        flush(file)

    os.fsync = fsync
    rng = np.random.default_rng(0)
    # A state of some megabytes, so that there is a write to be killed in.
    problem = optim.LeastSquares(rng.normal(size=(200_000, 2)), rng.normal(size=200_000), l2=0.1)
    result = optim.run(CoordinateDescent(), problem, [0.0, 0.0], max_steps=40, tol=None, rng=3, every=5,
                       checkpoint=optim.Checkpoint(path, seconds=0))
    print(result.work, result.x.tobytes().hex(), result.trace.value.tobytes().hex(), flush=True)
""")


def test_a_process_killed_at_any_moment_leaves_a_checkpoint_from_which_the_run_ends_the_same(tmp_path):
    path = tmp_path / "run.npz"

    def start(where, die_at=0):
        command = [sys.executable, "-c", WORKER, str(where), str(die_at)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def reached():
        saved = files.load(path, "optimisation run")  # whole, whenever it was killed
        assert saved.arrays["state/1"].shape == (200_000,)
        return saved.settings["steps"]

    whole = start(tmp_path / "whole.npz")
    # First killed in the middle of a write: the bytes are there, the name is not.
    torn = start(path, die_at=3)
    torn.communicate(timeout=300)
    assert torn.returncode == -signal.SIGKILL
    assert list(tmp_path.glob(".run.npz.*.part"))
    progress = [reached()]
    # Then at a moment of no one's choosing.
    process = start(path)
    before = path.stat().st_mtime_ns
    while process.poll() is None and path.stat().st_mtime_ns == before:
        time.sleep(0.002)
    time.sleep(random.uniform(0.0, 0.05))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    progress.append(reached())
    assert progress == sorted(progress)
    assert progress[0] > 0
    finished, error = start(path).communicate(timeout=300)
    expected, _ = whole.communicate(timeout=300)
    assert finished == expected, error
    assert not list(tmp_path.glob(".run.npz.*.part"))  # what the killed ones left behind is cleared away
