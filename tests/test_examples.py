"""Examples that no test of their own package runs: a whole job each, in a few lines."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("distributions", ("LogNormal", "central 95%")),
        ("optimisation", ("strength", "stationary")),
        ("causes", ("faster: dose -> response", "response was set and no longer depends on dose")),
        (
            "friends",
            ("stationary after", "decides independently", "area less that of Markov logic", "log p of the class"),
        ),
    ],
)
def test_it_runs(name, words, capsys, monkeypatch):
    path = EXAMPLES / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert all(word in printed for word in words)
