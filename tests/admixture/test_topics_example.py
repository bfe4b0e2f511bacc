"""The example on news: with the data, and without."""

import os
import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "topics.py"
DATA = Path(os.environ.get("CUMULANT_DATA", "")) / "text" / "reuters.npz"


def test_it_is_left_out_without_data(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("CUMULANT_DATA", str(tmp_path))
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "left out: there is no file" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_file(), reason="CUMULANT_DATA does not name the folder of the data")
def test_topics_of_news(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    printed = capsys.readouterr().out
    topics = [line for line in printed.splitlines() if line.startswith("topic")]
    assert len(topics) == 20
    assert any({"mother", "teresa"} <= set(line.split()) for line in topics)
    few, many = (float(line.split()[3]) for line in printed.splitlines() if line.startswith("K ="))
    assert few < many < -6.5
