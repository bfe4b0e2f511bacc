"""The example of populations runs."""

import runpy
from pathlib import Path


def test_it_runs(capsys):
    example = runpy.run_path(str(Path(__file__).parent.parent.parent / "examples" / "populations.py"))
    example["main"]([])
    printed = capsys.readouterr().out
    assert "25 individuals, 8 loci" in printed
    assert "-log p(w) <=" in printed
    assert "<- largest" in printed
