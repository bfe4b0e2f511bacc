"""The example for those who simulate spins does what its text says."""

import re
import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "spins.py"


def test_the_example_draws_near_the_exact_energy_and_finds_the_grid(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    printed = capsys.readouterr().out
    found = re.findall(r"energy (\S+), drawn (\S+) \+- (\S+)", printed)
    assert len(found) == 3
    for exact, drawn, error in found:
        assert abs(float(exact) - float(drawn)) < 4 * float(error)
    assert "24 couplings found" in printed
    assert "Fenchel duality gap" in printed
