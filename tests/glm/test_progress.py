"""`verbose=True` shows a bar on a terminal."""

import os
import pty
import subprocess
import sys

import pytest

CODE = """
import time
import numpy as np
from cumulant.glm import {name}
X = np.random.default_rng(0).normal(size=(300, 3))
y = (X[:, 0] + np.random.default_rng(1).normal(size=300) > 0).astype(int)
{name}({settings}, callback=lambda snapshot: time.sleep(0.12), verbose={verbose}).fit(X, y)
"""
MODELS = {"GLM": "'bernoulli'", "OnlineL1Logistic": "passes=3"}


def on_a_terminal(code):
    """What a process writes to its standard error, a terminal."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs, env=environment) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # how a terminal without a writer ends on Linux
                part = b""
            if not part:
                break
            written += part
    os.close(ours)
    assert process.returncode == 0, written.decode()
    return written.decode()


@pytest.mark.parametrize("name", MODELS)
def test_a_bar_is_shown_if_asked_for(name):
    assert "value 0." in on_a_terminal(CODE.format(name=name, settings=MODELS[name], verbose=True))


def test_no_bar_is_shown_if_not():
    assert "value 0." not in on_a_terminal(CODE.format(name="GLM", settings=MODELS["GLM"], verbose=False))
